"""Cursors of lists that are read by keyset: the time and the id of the last row that was read."""

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from app.kit.errors import Invalid

MAX_CHARS: Final = 200
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# Times up to the year 2255.
_FORM: Final = re.compile(r"([0-9]{1,16})\.([A-Za-z0-9_-]{1,64})", re.ASCII)


class Cursor(NamedTuple):
    at: datetime
    id: str

    def encode(self) -> str:
        text = f"{(self.at - _START) // _MICROSECOND}.{self.id}"
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(text: str) -> Cursor:
    """Raises Invalid for a text that `encode` has not returned."""
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        match = _FORM.fullmatch(plain.decode())
    except (binascii.Error, ValueError):
        match = None
    if match is None or int(match[1]) > 9 * 10**15:
        raise Invalid.field("cursor", "must be next_cursor of an answer of this list")
    return Cursor(_START + int(match[1]) * _MICROSECOND, match[2])
