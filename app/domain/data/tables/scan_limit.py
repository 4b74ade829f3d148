"""Limits the time of lists that read rows without an index."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from app.kit.errors import Invalid
from db.session import Tx

# How long a list may take that reads rows without an index.
SCAN_SECONDS: Final = 5.0
_TOO_SLOW = (
    "the list takes too long: narrow it by a filter of an indexed column, or index the columns "
    "that it is filtered and sorted by; search and contains always read all rows"
)


@asynccontextmanager
async def limit_scan(tx: Tx, *, may_scan: bool) -> AsyncIterator[None]:
    """Raises Invalid when a list that may scan takes too long. The caller's transaction goes on."""
    if not may_scan:
        yield
        return
    raw = await tx.raw()
    try:
        async with AsyncExitStack() as stack:
            if raw.is_in_transaction():
                await stack.enter_async_context(raw.transaction())
            async with asyncio.timeout(SCAN_SECONDS):
                yield
    except TimeoutError:
        raise Invalid.field("filter", _TOO_SLOW) from None
