"""Counts views of forms in memory, and stores the counts every few seconds."""

from collections import Counter
from datetime import UTC, date

from app.domain.forms.submissions import analytics_queries
from app.jobs.counters import BufferedCounter
from app.kit import clock, logs
from db.session import ALL_TENANTS, Database

log = logs.get("forms")

# A form and a day.
_Key = tuple[str, str, date]


class ViewCounter(BufferedCounter[_Key]):
    """The views that this process has counted. One that is killed loses those of its last seconds;
    one that stops stores them first.
    """

    def __init__(self, db: Database, every_seconds: float = 3.0) -> None:
        super().__init__(every_seconds)
        self._db = db

    def add_view(self, tenant_id: str, form_id: str) -> None:
        """Does not wait for the database."""
        self.add((tenant_id, form_id, clock.now().astimezone(UTC).date()))

    async def save(self, counts: Counter[_Key]) -> None:
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            await analytics_queries.add_views(tx, counts)
