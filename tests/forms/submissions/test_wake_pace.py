"""How often a process wakes a worker for a submission."""

from app.domain.forms.submissions.submitting import WakePace


def test_a_flood_wakes_workers_at_a_limited_pace() -> None:
    moments = [0.0]
    pace = WakePace(lambda: moments[0])
    assert sum(pace.may_wake() for _ in range(1000)) == 50
    moments[0] += 0.1
    assert sum(pace.may_wake() for _ in range(1000)) == 5
    moments[0] += 3600.0
    assert sum(pace.may_wake() for _ in range(1000)) == 50
