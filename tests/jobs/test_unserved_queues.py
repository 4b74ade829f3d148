"""Queues that no worker serves are reported."""

from app.areas import AREAS
from app.http import health
from app.jobs.work import QUEUES
from app.observe import heartbeat
from app.observe.heartbeat import Beat
from app.services import Services

KINDS = AREAS.work_kinds.values()


def test_queues_that_no_worker_serves_are_found() -> None:
    served = [queue for queue in QUEUES if queue != "deliveries"]
    workers = [Beat("worker", "a", served[:1]), Beat("worker", "b", served[1:])]
    assert heartbeat.find_unserved_queues(workers, KINDS) == ["deliveries"]


def test_workers_that_serve_all_queues_leave_none(services: Services) -> None:
    workers = [Beat("worker", "a", list(QUEUES))]
    assert heartbeat.find_unserved_queues(workers, KINDS) == []
    assert health._check_workers(services, workers).state == "ok"


def test_readiness_names_the_queues_that_no_worker_serves(services: Services) -> None:
    state = health._check_workers(services, [Beat("worker", "a", ["chat", "tools", "default"])])
    assert state.state == "away"
    assert state.detail is not None
    assert "deliveries" in state.detail
