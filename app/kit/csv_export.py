"""CSV files that are read from the database while they are sent."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from app.kit.concurrency import ConcurrencyLimit

_MAX_EXPORTS: Final = 2


class ExportLimit(ConcurrencyLimit):
    """Limits the exports of one tenant at the same time: each has a page of rows in memory. One per
    process.
    """

    def __init__(self, max_exports: int = _MAX_EXPORTS) -> None:
        super().__init__(max_exports, "exports of a tenant")


async def start(
    limit: ExportLimit, tenant_id: str, parts: AsyncGenerator[bytes]
) -> AsyncIterator[bytes]:
    """Returns the parts of a file. Raises RateLimited, or what the first part raises, so that the
    caller can still answer with an error.
    """
    counted = _count(limit, tenant_id, parts)
    # A generator that has started is closed when its last user is gone, as when a client leaves.
    first = await anext(counted)
    return _chain(first, counted)


async def _count(
    limit: ExportLimit, tenant_id: str, parts: AsyncGenerator[bytes]
) -> AsyncGenerator[bytes]:
    async with limit.hold(tenant_id):
        try:
            async for part in parts:
                yield part
        finally:
            await parts.aclose()


async def _chain(first: bytes, parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    try:
        yield first
        async for part in parts:
            yield part
    finally:
        await parts.aclose()
