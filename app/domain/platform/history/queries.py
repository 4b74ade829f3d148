"""SQL of the history of records."""

from collections.abc import Sequence

import msgspec

from app.kit import paging
from app.kit.paging import Page
from db import fast
from db.fast import tenant_of
from db.lists import Total, Where
from db.session import Tx
from db.user_names import user_name_sql
from db.views import View

from .schemas import HistoryEntryView

_ACTOR = f"""
json_build_object(
    'type', CASE WHEN h.actor_id IS NULL THEN 'system'
                 WHEN h.actor_id LIKE 'svk\\_%' THEN 'service_key' ELSE 'user' END,
    'id', h.actor_id, 'name', coalesce(k.name, {user_name_sql("u")}))
"""
_VIEW = View(HistoryEntryView, "h", record_name="h.name", actor=_ACTOR)
_FROM = """
history_entries h
LEFT JOIN users u ON u.tenant_id = h.tenant_id AND u.id = h.actor_id
LEFT JOIN service_keys k ON k.tenant_id = h.tenant_id AND k.id = h.actor_id
"""
_ADD = """
INSERT INTO history_entries
    (tenant_id, id, kind, record_id, name, action, actor_id, changes, truncated, correlation_id)
SELECT r.tenant_id, r.id, r.kind, r.record_id, r.name, r.action, $2, r.changes::json, r.truncated,
       $3
FROM unnest($1::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
            $10::bool[])
     AS r(tenant_id, id, kind, record_id, name, action, changes, truncated)
"""
_ERASE = """
DELETE FROM history_entries WHERE tenant_id = $1 AND kind = $2 AND record_id = $3
"""


class NewEntry(msgspec.Struct):
    tenant_id: str
    id: str
    kind: str
    record_id: str
    name: str | None
    action: str
    changes: str
    truncated: bool


async def add(
    tx: Tx, entries: Sequence[NewEntry], actor_id: str | None, correlation_id: str
) -> None:
    tenants, *columns = [
        [getattr(entry, name) for entry in entries] for name in NewEntry.__struct_fields__
    ]
    raw = await tx.raw()
    await raw.execute(_ADD, tenants, actor_id, correlation_id, *columns)


async def erase(tx: Tx, tenant_id: str, kind: str, record_id: str) -> None:
    await fast.execute(tx, tenant_id, _ERASE, kind, record_id)


async def list_page(
    tx: Tx, page: Page, kind: str, record_id: str | None
) -> tuple[list[HistoryEntryView], Total]:
    where = Where(tenant_of(tx), tenant_column="h.tenant_id")
    where.add("h.kind = $n", kind)
    where.equal("h.record_id", record_id)
    return await paging.fetch(tx, _VIEW, _FROM, where, "h.id DESC", page)
