"""The wire format of server-sent events, which `app/http/sse.py` sends, and how many streams a user
may have open.
"""

from typing import Final

from app.kit.errors import RateLimited

MAX_STREAMS_PER_USER: Final = 10


def check_streams(count: int) -> None:
    """Raises RateLimited when a user has as many streams of a kind as allowed in this process."""
    if count >= MAX_STREAMS_PER_USER:
        raise RateLimited(
            f"A user has at most {MAX_STREAMS_PER_USER} open streams; close one first",
            details={"limit": MAX_STREAMS_PER_USER, "window": 0, "retry_after": 5},
            headers={"Retry-After": "5"},
        )


def event(name: str, data: bytes, event_id: str | None = None) -> bytes:
    """`event_id` is what a client sends as Last-Event-ID when it connects again."""
    id_line = b"id: %s\n" % event_id.encode() if event_id is not None else b""
    return b"%sevent: %s\ndata: %s\n\n" % (id_line, name.encode(), data)


def comment(text: str) -> bytes:
    return b": %s\n\n" % text.encode()
