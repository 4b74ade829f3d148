"""Tells when the client of a request has closed its connection."""

from app.http.dependencies import HttpRequest


async def wait_for_disconnect(request: HttpRequest) -> None:
    """To be awaited once the body is read: it takes the messages of the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
