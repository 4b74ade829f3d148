"""Which way a notification goes, and when: the rules of preferences."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from app.domain.messaging.notifications import preferences
from app.domain.messaging.notifications.preferences import PreferenceChange, Timing
from app.domain.messaging.notifications.types import TYPES
from app.kit.errors import Invalid

NIGHT = {"start": "22:00", "end": "07:00"}
LUNCH = {"start": "12:00", "end": "13:30"}


def _change(**values: Any) -> PreferenceChange:
    return msgspec.convert(values, PreferenceChange)


def test_a_type_has_defaults_until_a_user_changes_them() -> None:
    for type_name, kind in TYPES.items():
        preference = preferences.resolve(type_name, {})
        assert preference.in_app, type_name
        defaults = (kind.email, kind.team_chat)
        assert (preference.email, preference.team_chat) == defaults, type_name


def test_of_the_types_of_the_spec_only_pending_decisions_are_mailed_at_first() -> None:
    for name, is_mailed in (
        ("workflow_completed", False),
        ("workflow_failed", False),
        ("form_submission", False),
        ("approval_requested", True),
    ):
        shown = msgspec.to_builtins(preferences.resolve(name, {}))
        assert shown == {"in_app": True, "email": is_mailed, "team_chat": False}


def test_each_combination_is_kept() -> None:
    for ways in product([True, False], repeat=3):
        in_app, email, team_chat = ways
        changes = {"message": _change(in_app=in_app, email=email, team_chat=team_chat)}
        preference = preferences.resolve("message", preferences.change({}, changes))
        assert (preference.in_app, preference.email, preference.team_chat) == ways


def test_a_change_keeps_the_other_keys_and_types() -> None:
    stored = preferences.change({}, {"message": _change(email=True, quiet_hours=NIGHT)})
    stored = preferences.change(stored, {"message": _change(digest="daily")})
    stored = preferences.change(stored, {"workflow_failed": _change(in_app=False)})
    shown = msgspec.to_builtins(preferences.resolve("message", stored))
    assert shown == {
        "in_app": True,
        "email": True,
        "team_chat": False,
        "quiet_hours": NIGHT,
        "digest": "daily",
    }
    assert not preferences.resolve("workflow_failed", stored).in_app


def test_null_removes_quiet_hours() -> None:
    stored = preferences.change({}, {"message": _change(quiet_hours=NIGHT)})
    stored = preferences.change(stored, {"message": _change(quiet_hours=None)})
    assert preferences.resolve("message", stored).quiet_hours is None


def test_a_type_that_no_longer_exists_is_dropped() -> None:
    assert preferences.change({"retired": {"email": True}}, {"message": _change()}) == {
        "message": {}
    }


def test_an_unknown_type_is_refused_by_its_name() -> None:
    with pytest.raises(Invalid) as refused:
        preferences.change({}, {"nonsense": _change(email=True)})
    assert list(refused.value.details or {}) == ["preferences.nonsense"]


def test_security_notices_cannot_be_hidden_from_the_center() -> None:
    with pytest.raises(Invalid, match="cannot be switched off"):
        preferences.change({}, {"security": _change(in_app=False)})


def test_a_preference_that_another_version_stored_falls_back_to_the_default() -> None:
    stored = {"message": {"email": "sometimes"}}
    assert preferences.resolve("message", stored) == preferences.resolve("message", {})


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd"])
def test_an_unknown_zone_is_utc(name: str) -> None:
    assert preferences.find_zone(name) == ZoneInfo("UTC")


def test_quiet_hours_that_last_all_day_are_refused() -> None:
    with pytest.raises(Invalid, match="same time"):
        preferences.change({}, {"message": _change(quiet_hours={"start": "08:00", "end": "08:00"})})


# The local time, the zone, the preference, and when a mail goes out in UTC. None is at once.
_TIMES: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("2026-03-02 21:59", "UTC", {"quiet_hours": NIGHT}, None),
    ("2026-03-02 22:00", "UTC", {"quiet_hours": NIGHT}, "2026-03-03 07:00"),
    ("2026-03-02 23:30", "UTC", {"quiet_hours": NIGHT}, "2026-03-03 07:00"),
    ("2026-03-03 00:00", "UTC", {"quiet_hours": NIGHT}, "2026-03-03 07:00"),
    ("2026-03-03 06:59", "UTC", {"quiet_hours": NIGHT}, "2026-03-03 07:00"),
    ("2026-03-03 07:00", "UTC", {"quiet_hours": NIGHT}, None),
    ("2026-03-03 12:00", "UTC", {"quiet_hours": LUNCH}, "2026-03-03 13:30"),
    ("2026-03-03 13:30", "UTC", {"quiet_hours": LUNCH}, None),
    # The window is in the zone of the user.
    ("2026-03-03 23:00", "Asia/Tokyo", {"quiet_hours": NIGHT}, "2026-03-03 22:00"),
    ("2026-03-03 23:00", "Asia/Kolkata", {"quiet_hours": NIGHT}, "2026-03-04 01:30"),
    ("2026-07-03 23:00", "Europe/London", {"quiet_hours": NIGHT}, "2026-07-04 06:00"),
    # The clocks go forward in that night: 7 o'clock is in summer time.
    ("2026-03-28 23:00", "Europe/Berlin", {"quiet_hours": NIGHT}, "2026-03-29 05:00"),
    # A window that ends in the hour that does not exist.
    (
        "2026-03-29 01:30",
        "Europe/Berlin",
        {"quiet_hours": {"start": "01:00", "end": "02:30"}},
        "2026-03-29 01:30",
    ),
    # Digests.
    ("2026-03-03 10:15", "UTC", {"digest": "hourly"}, "2026-03-03 11:00"),
    ("2026-03-03 10:00", "UTC", {"digest": "hourly"}, "2026-03-03 11:00"),
    ("2026-03-03 10:59", "Asia/Kolkata", {"digest": "hourly"}, "2026-03-03 05:30"),
    ("2026-03-03 10:15", "UTC", {"digest": "daily"}, "2026-03-04 08:00"),
    ("2026-03-03 07:15", "UTC", {"digest": "daily"}, "2026-03-03 08:00"),
    ("2026-03-03 07:15", "America/New_York", {"digest": "daily"}, "2026-03-03 13:00"),
    # A digest that falls into quiet hours waits for their end.
    ("2026-03-03 21:30", "UTC", {"digest": "hourly", "quiet_hours": NIGHT}, "2026-03-04 07:00"),
    ("2026-03-03 09:30", "UTC", {"digest": "hourly", "quiet_hours": NIGHT}, "2026-03-03 10:00"),
    (
        "2026-03-03 09:30",
        "UTC",
        {"digest": "daily", "quiet_hours": {"start": "07:00", "end": "09:00"}},
        "2026-03-04 09:00",
    ),
    ("2026-03-03 09:30", "UTC", {"digest": "off"}, None),
]


def test_quiet_hours_and_digests_hold_a_mail_back(subtests: pytest.Subtests) -> None:
    for local, zone, changes, expected in _TIMES:
        with subtests.test(local=local, zone=zone):
            stored = preferences.change({}, {"message": _change(email=True, **changes)})
            preference = preferences.resolve("message", stored)
            now = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
            due = datetime.fromisoformat(expected).replace(tzinfo=UTC) if expected else None
            is_digest = changes.get("digest", "off") != "off"
            assert preferences.time_of("message", preference, ZoneInfo(zone), now) == Timing(
                due, is_digest
            )


@pytest.mark.parametrize("type_name", [name for name, kind in TYPES.items() if kind.is_urgent])
@pytest.mark.parametrize("changes", [{"quiet_hours": NIGHT}, {"digest": "daily"}])
def test_what_is_urgent_is_never_held_back(type_name: str, changes: dict[str, Any]) -> None:
    stored = preferences.change({}, {type_name: _change(email=True, **changes)})
    preference = preferences.resolve(type_name, stored)
    midnight = datetime(2026, 3, 3, tzinfo=UTC)
    assert preferences.time_of(type_name, preference, ZoneInfo("UTC"), midnight) == Timing()


def test_approvals_and_security_are_urgent() -> None:
    assert {name for name, kind in TYPES.items() if kind.is_urgent} == {
        "approval_requested",
        "security",
    }


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"])
def test_a_mail_is_never_due_in_the_past_or_within_quiet_hours(zone: str) -> None:
    """Every half hour around the days on which the clocks change."""
    tz = ZoneInfo(zone)
    stored = preferences.change(
        {}, {"message": _change(quiet_hours=NIGHT, digest="hourly", email=True)}
    )
    preference = preferences.resolve("message", stored)
    for start in (datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 3, tzinfo=UTC)):
        for step in range(30 * 48):
            now = start + timedelta(minutes=30 * step)
            due = preferences.time_of("message", preference, tz, now).at
            assert due is not None
            assert now < due <= now + timedelta(hours=11)
            assert 7 <= due.astimezone(tz).hour < 22
