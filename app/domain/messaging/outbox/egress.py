"""The HTTP client for endpoints."""

import aiohttp
from yarl import URL

from app.net.egress import BlockedAddress, Egress, Guard

_CHUNK_BYTES = 32 * 1024


class OutboxEgress(Egress):
    """Without connection limits, which couriers have. Does not decompress response bodies, which
    are read in part.
    """

    def __init__(self, guard: Guard) -> None:
        super().__init__(guard, limit=0, per_host=0, decompress=False)

    def check_url(self, url: str | URL) -> URL:
        # The operator may have removed the host from the allow list since it was saved.
        problem = self.guard.problem_with(str(url))
        if problem is not None:
            raise BlockedAddress(problem)
        return super().check_url(url)


async def read_body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Returns the first bytes of a body, which may be endless."""
    content = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        content += chunk
        if len(content) >= max_bytes:
            # The connection is not reused.
            response.close()
            break
    return bytes(content[:max_bytes])
