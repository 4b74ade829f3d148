"""A center with many rows, and rows that are kept for too long."""

import pytest

from app.areas import AREAS
from app.services import Services
from db import retention
from db.lists import BOUND
from db.session import ALL_TENANTS
from tests.database import fetch_rows, run_sql
from tests.messaging.notifications.center.api import PATH, count_unread, list_titles, read_page
from tests.messaging.notifications.center.post_office import add_notification
from tests.platform.events.responses import read_json
from tests.world import Client

COUNT = BOUND + 200
# One in ten is of another type; the newest has the highest number.
_ADD_MANY = """
WITH message AS (
    INSERT INTO notification_messages (tenant_id, id, type, title, message, data, recipients,
                                       occasion, source, correlation_id)
    SELECT $1, 'ntm_' || substr($2, 5) || n,
           CASE WHEN n % 10 = 0 THEN 'security' ELSE 'message' END, n::text, 'Text.', '{}', '{}',
           'ntm_' || substr($2, 5) || n, 'x', 'corr'
    FROM generate_series(1, $3::int) n RETURNING id, type, title
)
INSERT INTO notifications (tenant_id, id, user_id, message_id, type, created_at)
SELECT $1, 'ntf' || substr(id, 4), $2, id, type, now() - ($3 - title::int) * interval '1 second'
FROM message
"""


async def test_totals_beyond_the_bound_are_estimates(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    await run_sql(services, _ADD_MANY, developer.tenant_id, developer.user_id, COUNT)
    await run_sql(services, "ANALYZE notifications")
    for params in ({}, {"read": "false"}):
        with subtests.test(params=params):
            page = await read_page(developer, per_page=2, **params)
            assert [item["title"] for item in page["data"]] == [str(COUNT), str(COUNT - 1)]
            assert page["estimated"] is True
            assert min(page["total"], page["unread"]) > BOUND
    with subtests.test("few of one type"):
        page = await read_page(developer, type="security", per_page=1)
        assert (page["total"], "estimated" in page) == (COUNT // 10, False)
        assert page["unread"] > BOUND
    with subtests.test("count"):
        assert await count_unread(developer) > BOUND
    with subtests.test("all read"):
        assert read_json(await developer.post(f"{PATH}/read-all")) == {"updated": COUNT}
        assert await count_unread(developer) == 0
        assert (await read_page(developer, read="false"))["total"] == 0


async def test_old_messages_are_deleted_with_their_notifications(
    developer: Client, services: Services
) -> None:
    for title in ("Old", "New"):
        await add_notification(services, developer, title)
    sql = """
    UPDATE notification_messages SET created_at = now() - interval '91 days'
    WHERE tenant_id = $1 AND title = 'Old'
    """
    await run_sql(services, sql, developer.tenant_id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await retention.delete_expired(await tx.raw(), AREAS.retention)
    assert await list_titles(developer) == ["New"]
    sql = "SELECT 1 FROM notification_messages WHERE tenant_id = $1"
    assert len(await fetch_rows(services, sql, developer.tenant_id)) == 1
