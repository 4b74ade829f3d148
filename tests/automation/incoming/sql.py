"""Reads payloads and locks in the database."""

from typing import Any

from app.services import Services
from tests.assertions import wait_until
from tests.database import Row, fetch_rows

# The connections that wait for a lock in a statement like $1.
LOCK_WAITERS = """
SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1
"""


async def wait_for_rows(services: Services, sql: str, *args: object) -> list[Row]:
    """Repeats the query until it returns rows."""
    return await wait_until(lambda: fetch_rows(services, sql, *args))


async def list_bodies(services: Services, webhook: dict[str, Any]) -> list[bytes]:
    """Returns the stored bodies of the webhook's payloads."""
    sql = "SELECT body FROM incoming_payloads WHERE webhook_id = $1 ORDER BY id"
    return [row["body"] for row in await fetch_rows(services, sql, webhook["id"])]
