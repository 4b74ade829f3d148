"""The incoming webhooks' SQL: who owns a slug, and what came in."""

from app.http.paging import Page
from db import counting, fast
from db.counting import Counted
from db.fast import Row
from db.session import Tx

_BY_SLUG = """
SELECT w.id, w.tenant_id, w.name, w.workflow_id, w.scheme, w.header, w.secret, t.plan,
       t.limits::text AS limits
FROM incoming_webhooks w JOIN tenants t ON t.id = w.tenant_id
WHERE w.slug = $1 AND w.active
"""
_TAKEN = "SELECT 1 FROM incoming_webhooks WHERE slug = $1"
_ADD = """
INSERT INTO incoming_payloads (tenant_id, id, webhook_id, body, headers, source_ip, replay_of)
VALUES ($1, $2, $3, $4, $5::json, $6, $7)
"""
_EXECUTION = """
UPDATE incoming_payloads SET workflow_execution_id = $3 WHERE tenant_id = $1 AND id = $2
"""
# A page of them is read at once; longer ones are read one by one.
LISTED_BYTES = 32 * 1024

_COLUMNS = """
id, octet_length(body) AS size_bytes, headers::text AS headers, source_ip, workflow_execution_id,
replay_of, created_at
"""
_OF_WEBHOOK = """
FROM incoming_payloads WHERE webhook_id = $2 AND tenant_id IS NOT DISTINCT FROM $1
"""
# A webhook has one tenant. Asked for both, the planner takes them for independent and guesses low.
_GUESSED = "FROM incoming_payloads WHERE webhook_id = $2 AND $1::text IS NOT NULL"
_PAGE = f"""
SELECT {_COLUMNS}, CASE WHEN octet_length(body) <= {LISTED_BYTES} THEN body END AS body
{_OF_WEBHOOK} ORDER BY created_at DESC, id DESC LIMIT $3 OFFSET $4
"""
_ONE = f"SELECT {_COLUMNS}, body {_OF_WEBHOOK} AND id = $3"
_FORGET_EVENTS = """
DELETE FROM event_log
WHERE tenant_id = $1 AND id IN (SELECT id FROM incoming_payloads WHERE webhook_id = $2)
"""
_EVENT = "SELECT tenant_id = $1 AS own, correlation_id, depth FROM event_log WHERE id = $2"


async def by_slug(tx: Tx, slug: str) -> Row | None:
    """Whose it is, is what the slug says: there is no tenant yet."""
    found: Row | None = await (await tx.raw()).fetchrow(_BY_SLUG, slug)
    return found


async def is_taken(tx: Tx, slug: str) -> bool:
    """By whichever tenant."""
    return bool(await (await tx.raw()).fetchval(_TAKEN, slug))


async def add(tx: Tx, tenant: str, *values: object) -> None:
    await fast.execute(tx, tenant, _ADD, *values)


async def set_execution(tx: Tx, tenant: str, payload_id: str, execution_id: str) -> None:
    await fast.execute(tx, tenant, _EXECUTION, payload_id, execution_id)


async def page_of(tx: Tx, tenant: str, webhook_id: str, page: Page) -> tuple[list[Row], Counted]:
    total = await counting.rows(tx, tenant, _OF_WEBHOOK, webhook_id, guessed=_GUESSED)
    rows = await fast.rows(tx, tenant, _PAGE, webhook_id, page.per_page, page.offset)
    return rows, total


async def one(tx: Tx, tenant: str, webhook_id: str, payload_id: str) -> Row | None:
    return await fast.row(tx, tenant, _ONE, webhook_id, payload_id)


async def cause(tx: Tx, tenant: str, event_id: str) -> Row | None:
    """An event of any tenant: of another's, nothing but its depth is used."""
    return await fast.row(tx, tenant, _EVENT, event_id)


async def forget_events(tx: Tx, tenant: str, webhook_id: str) -> None:
    """The events that tell of its payloads, which have them inside."""
    await fast.execute(tx, tenant, _FORGET_EVENTS, webhook_id)
