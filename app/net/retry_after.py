"""The Retry-After header of responses."""

from datetime import UTC
from email.utils import parsedate_to_datetime

from app.kit import clock


def parse_retry_after(value: str | None) -> float | None:
    """Parses seconds or a date into seconds. A date without a zone is in GMT, as in HTTP. Returns
    None for a header that is missing or neither of both.
    """
    if value is None:
        return None
    text = value.strip()
    whole, _, fraction = text.partition(".")
    if text.isascii() and whole.isdigit() and (not fraction or fraction.isdigit()):
        return float(f"{whole[:9]}.{fraction[:3] or 0}")
    try:
        until = parsedate_to_datetime(text)
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return max(0.0, until.timestamp() - clock.epoch())
    except (ValueError, OverflowError, TypeError):
        return None
