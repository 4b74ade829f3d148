"""The wire format of server-sent events; `app/http/sse.py` sends them."""


def event(name: str, data: bytes, event_id: str | None = None) -> bytes:
    """`event_id` is what a client sends as Last-Event-ID when it connects again."""
    id_line = b"id: %s\n" % event_id.encode() if event_id is not None else b""
    return b"%sevent: %s\ndata: %s\n\n" % (id_line, name.encode(), data)


def comment(text: str) -> bytes:
    return b": %s\n\n" % text.encode()
