"""Throttle rules with small numbers, and moments to test them at."""

from datetime import UTC, datetime, timedelta

from app.security.throttle import Rule

NOON = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
ACCOUNT = Rule("test_account", 3, 100, (10, 20, 40), cleared_by_success=True)
ADDRESS = Rule("test_address", 5, 100, (60,))


def after_noon(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)
