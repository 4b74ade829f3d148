"""Parents of the spans of a turn."""

from datetime import UTC, datetime, timedelta

from app.domain.area import Span, find_turn
from app.kit import clock

_START = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_a_job_did_last_belongs_to_it_although_its_duration_is_rounded() -> None:
    end = _START + timedelta(microseconds=5049)
    job = Span("job", "wrk_1", None, "chat.turn", "done", _START, clock.milliseconds(_START, end))
    request = Span("request", "req_1", None, "event", "completed", _START, 1.0)
    assert find_turn([request, job], end) == "wrk_1"
    assert find_turn([request, job], end + timedelta(milliseconds=5)) == "req_1"
