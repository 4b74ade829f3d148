"""Work that nobody takes is noticed before somebody misses it."""

from app.http import health
from app.kit import heartbeat
from app.kit.heartbeat import Beat
from app.kit.work import QUEUES


def test_queues_that_no_worker_takes_are_named() -> None:
    workers = [Beat("worker", "a", ["chat"]), Beat("worker", "b", ["tools", "default"])]
    assert heartbeat.untaken(workers) == ["deliveries"]


def test_workers_that_take_all_queues_leave_none() -> None:
    workers = [Beat("worker", "a", list(QUEUES))]
    assert heartbeat.untaken(workers) == []
    assert health._workers(workers).state == "ok"


def test_readiness_says_which_queues_nobody_takes() -> None:
    state = health._workers([Beat("worker", "a", ["chat", "tools", "default"])])
    assert state.state == "away"
    assert state.detail is not None
    assert "deliveries" in state.detail
