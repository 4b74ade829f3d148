"""SQL of lists of executions."""

from datetime import datetime

import msgspec

from app.kit import paging
from app.kit.errors import Invalid
from app.kit.paging import Page, SortOrders
from db.fast import tenant_of
from db.lists import BOUND, Total, Where
from db.models import WorkflowExecution
from db.session import Tx
from db.views import View

from .graph import ENDED
from .queries import STATUSES
from .schemas import ExecutionSummary

_SORT_ORDERS = SortOrders(
    "-created_at",
    WorkflowExecution.id,
    created_at=WorkflowExecution.created_at,
    finished_at=WorkflowExecution.finished_at,
)
# An execution has this time only once it is finished.
_ENDED_SORTS = frozenset({"finished_at", "-finished_at"})
_SUMMARY = View(
    ExecutionSummary,
    trigger="json_build_object('type', trigger_type, 'id', trigger_id)",
)
# No join, which a plan may begin with the workflows. Deleted ones are few: they are kept until
# their executions are deleted.
_HAS_WORKFLOW = """
workflow_id <> ALL(ARRAY(SELECT w.id FROM workflows w
                         WHERE ($1::text IS NULL OR w.tenant_id = $1)
                           AND w.deleted_at IS NOT NULL))
"""
_FIND_OWNER = """
SELECT id AS owner_id, tenant_id AS owner_tenant_id FROM workflows
WHERE ($1::text IS NULL OR tenant_id = $1) AND deleted_at IS NULL
"""


class ExecutionFilter(msgspec.Struct, frozen=True):
    workflow_id: str | None = None
    status: str | None = None
    trigger: str | None = None
    since: datetime | None = None
    until: datetime | None = None


async def list_page(
    tx: Tx, filters: ExecutionFilter, page: Page, sort: str | None
) -> tuple[list[ExecutionSummary], Total]:
    where = Where(tenant_of(tx))
    where.equal("trigger_type", filters.trigger)
    where.between("created_at", filters.since, filters.until)
    order = _find_order(where, filters.status, sort)
    statuses = where.bind([filters.status] if filters.status else list(STATUSES))
    rows = f"FROM workflow_executions WHERE {where.sql} AND status = group_status"
    if filters.workflow_id is None:
        owners = "SELECT id AS owner_id FROM tenants WHERE $1::text IS NULL OR id = $1"
        rows += f" AND tenant_id = owner_id AND {_HAS_WORKFLOW}"
    else:
        workflow_id = where.bind(filters.workflow_id)
        where.require(f"workflow_id = {workflow_id}")
        owners = f"{_FIND_OWNER} AND id = {workflow_id}"
        rows += " AND workflow_id = owner_id AND tenant_id = owner_tenant_id"
    return await _fetch_merged(
        tx,
        where,
        f"unnest({statuses}::text[]) AS s(group_status) CROSS JOIN ({owners}) o",
        rows,
        order,
        page,
        estimated="FROM workflow_executions WHERE "
        + (where.sql_without_tenant if filters.workflow_id else where.estimated_sql)
        + f" AND status = ANY({statuses})",
    )


def _find_order(where: Where, status: str | None, sort: str | None) -> str:
    order = _SORT_ORDERS.sql(sort)
    if sort not in _ENDED_SORTS:
        return order
    if status not in ENDED:
        names = ", ".join(sorted(ENDED))
        raise Invalid.field("sort", f"may be {sort} only with one of these as status: {names}")
    where.require("finished_at IS NOT NULL")
    # Only this form is the order of an index in both directions.
    return order.replace(" NULLS LAST", "")


async def _fetch_merged(
    tx: Tx, where: Where, groups: str, rows: str, order: str, page: Page, *, estimated: str
) -> tuple[list[ExecutionSummary], Total]:
    """Reads one page of each group, a status of a tenant or of a workflow, through its index, and
    returns the first of these: the cost does not grow with the table. All columns that select a
    group are in its index, so that no wrong estimate makes another plan cheaper.
    """
    records, total = await paging.fetch_page(
        tx,
        where,
        f"""
        {_SUMMARY.columns} FROM {groups} CROSS JOIN LATERAL (
            SELECT * {rows} ORDER BY {order} LIMIT $limit::bigint + $offset::bigint
        ) workflow_executions ORDER BY {order} LIMIT $limit OFFSET $offset
        """,
        page,
        counted=f"""
        FROM {groups} CROSS JOIN LATERAL (
            SELECT 1 {rows} ORDER BY {order} LIMIT {BOUND + 1}) counted""",
        estimated=estimated,
    )
    return [_SUMMARY.build(record) for record in records], total
