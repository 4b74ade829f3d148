"""What a user wants to be notified of, which way, and when: the rules, without a database."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.kit.errors import Invalid, Problem
from app.kit.validation import describe_pattern, set_fields

from .types import TYPES

_TIME_OF_DAY = r"^(?![\s\S]*\n)([01][0-9]|2[0-3]):[0-5][0-9]$"
describe_pattern(_TIME_OF_DAY, "must be a time of day like 22:30")

TimeOfDay = Annotated[str, Meta(pattern=_TIME_OF_DAY)]
Digest = Literal["off", "hourly", "daily"]
# When a daily digest is sent, in the user's time zone.
DAILY_AT: Final = time(8)


class QuietHours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A daily window in the user's time zone; it may pass midnight."""

    start: TimeOfDay
    end: TimeOfDay


class Preference(msgspec.Struct, frozen=True, omit_defaults=True):
    """`quiet_hours` and `digest` hold mails and posts in team chats back, never the notification
    center.
    """

    in_app: bool
    email: bool
    team_chat: bool
    quiet_hours: QuietHours | None = None
    digest: Digest = "off"


class PreferenceChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keys that are absent stay as they are; null removes `quiet_hours`."""

    in_app: bool | UnsetType = UNSET
    email: bool | UnsetType = UNSET
    team_chat: bool | UnsetType = UNSET
    quiet_hours: QuietHours | UnsetType | None = UNSET
    digest: Digest | UnsetType = UNSET


def resolve(type_name: str, stored: dict[str, Any]) -> Preference:
    """Returns the default of a type with what the user has changed. `stored` is by type."""
    kind = TYPES[type_name]
    default = {"in_app": True, "email": kind.email, "team_chat": kind.team_chat}
    try:
        preference: Preference = msgspec.convert(
            {**default, **stored.get(type_name, {})}, Preference
        )
    except msgspec.ValidationError:
        # Stored by another version.
        preference = msgspec.convert(default, Preference)
    return preference


def find_zone(name: str) -> ZoneInfo:
    """Returns UTC for a name that this machine does not know."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def resolve_all(stored: dict[str, Any]) -> dict[str, Preference]:
    return {name: resolve(name, stored) for name in TYPES}


def change(stored: dict[str, Any], changes: dict[str, PreferenceChange]) -> dict[str, Any]:
    """Returns the preferences to store. Raises Invalid for an unknown type."""
    Invalid.check(_find_problems(changes))
    changed = {name: values for name, values in stored.items() if name in TYPES}
    for name, values in changes.items():
        new_values = msgspec.to_builtins(set_fields(values))
        changed[name] = {**changed.get(name, {}), **new_values}
    return changed


def _find_problems(changes: dict[str, PreferenceChange]) -> Iterator[Problem]:
    for name, values in changes.items():
        if name not in TYPES:
            yield (
                f"preferences.{name}",
                f"is not a notification type; there are {', '.join(TYPES)}",
            )
        elif TYPES[name].always_in_app and values.in_app is False:
            yield f"preferences.{name}.in_app", "cannot be switched off"
        elif isinstance(window := values.quiet_hours, QuietHours) and window.start == window.end:
            yield f"preferences.{name}.quiet_hours", "must not start and end at the same time"


class Timing(NamedTuple):
    """When a message goes out: at once, at a later time, or in the digest of that time."""

    at: datetime | None = None
    is_digest: bool = False


def time_of(type_name: str, preference: Preference, zone: ZoneInfo, now: datetime) -> Timing:
    """Returns when a mail or a post goes out. Urgent messages are never held back."""
    if TYPES[type_name].is_urgent:
        return Timing()
    due = _next_digest(preference.digest, zone, now)
    quiet_end = _quiet_end(preference.quiet_hours, zone, due or now)
    return Timing(quiet_end or due, is_digest=due is not None)


def _next_digest(digest: Digest, zone: ZoneInfo, now: datetime) -> datetime | None:
    local = now.astimezone(zone)
    if digest == "hourly":
        # In UTC, so that no hour is skipped or doubled when the clocks change.
        minutes = timedelta(minutes=60 - local.minute)
        return (now + minutes).replace(second=0, microsecond=0)
    if digest == "daily":
        return _next_local(local, DAILY_AT, zone)
    return None


def _quiet_end(window: QuietHours | None, zone: ZoneInfo, moment: datetime) -> datetime | None:
    """Returns the end of the quiet hours that the moment is in, if it is."""
    if window is None:
        return None
    start, end = time.fromisoformat(window.start), time.fromisoformat(window.end)
    local = moment.astimezone(zone)
    clock_time = local.time().replace(tzinfo=None)
    is_quiet = start <= clock_time < end if start < end else clock_time >= start or clock_time < end
    return _next_local(local, end, zone) if is_quiet else None


def _next_local(local: datetime, at: time, zone: ZoneInfo) -> datetime:
    """Returns the next moment after `local` at which clocks of the zone show a time."""
    day = local.date()
    while True:
        moment = datetime.combine(day, at, tzinfo=zone).astimezone(UTC)
        if moment > local:
            return moment
        day += timedelta(days=1)
