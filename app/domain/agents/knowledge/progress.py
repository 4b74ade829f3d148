"""How far the reading of a document is: written rarely, and read with its work."""

import time
from typing import Final

from app.domain.job import Job

from . import progress_queries

# A document of a few passages is embedded before anybody looks.
_MIN_PASSAGES: Final = 256
_SECONDS: Final = 5.0


class EmbeddingProgress:
    """Stores how many passages are embedded, every few seconds."""

    def __init__(self, job: Job, version: int, total: int) -> None:
        self._job = job
        self._version = version
        self._total = total
        self._stored_at = float("-inf")

    async def store(self, count: int) -> None:
        now = time.monotonic()
        if self._total < _MIN_PASSAGES or now - self._stored_at < _SECONDS:
            return
        self._stored_at = now
        # Without the lease of the work: nothing else reads these columns.
        async with self._job.read() as tx:
            await progress_queries.set_embedded(
                tx, self._job.tenant_id, self._job.ref_id, self._version, self._total, count
            )
