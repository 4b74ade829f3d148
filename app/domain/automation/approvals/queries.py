"""SQL of approvals."""

from datetime import datetime
from typing import get_args

import msgspec

from app.kit import paging
from app.kit.errors import Invalid
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import BOUND, Total, Where
from db.models import Approval
from db.session import Tx
from db.user_names import user_name_sql
from db.views import View

from .schemas import ApprovalView, Status

_SORT_ORDERS = SortOrders(
    "-created_at",
    Approval.id,
    created_at=Approval.created_at,
    expires_at=Approval.expires_at,
)
# No index has this order; few approvals are pending at a time.
_PENDING_SORTS = ("expires_at", "-expires_at")
# Without an order, a plan may read the whole table to count a few rows.
_COUNT_LIMIT = f"ORDER BY created_at DESC LIMIT {BOUND + 1}"
_VIEW = View(ApprovalView)
build_view = _VIEW.build
_COLUMNS = f"{_VIEW.columns}, tenant_id, caller_id, work_id, correlation_id"
_FIND = f"""
SELECT {_COLUMNS} FROM approvals WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""
_ADD = """
WITH added AS (
    INSERT INTO approvals (tenant_id, id, caller_id, workflow_execution_id, node_id, title, message,
                           origin, details, user_ids, role, expires_at, work_id, correlation_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8::json, $9::jsonb, $10, $11, $12, $13, $14)
    RETURNING tenant_id, id, created_at, expires_at
)
INSERT INTO approval_assignees (tenant_id, approval_id, assignee, created_at, expires_at)
SELECT tenant_id, id, unnest($15::text[]), created_at, expires_at FROM added
"""
# Once: of two that end it at the same time, the second one finds it ended. A decision counts only
# until the time is up.
_END = f"""
WITH ended AS (
    UPDATE approvals SET status = $3, comment = $4, decided_by = $5, decided_via = $6,
        decided_at = now()
    WHERE tenant_id = $1 AND id = $2 AND status = 'pending'
      AND ($3 = 'timed_out' OR expires_at IS NULL OR expires_at > now())
    RETURNING {_COLUMNS}
), marked AS (
    UPDATE approval_assignees a SET status = e.status FROM ended e
    WHERE a.tenant_id = e.tenant_id AND a.approval_id = e.id
)
SELECT * FROM ended
"""
_MAY_DECIDE = """EXISTS (SELECT 1 FROM role_grants g
                 WHERE g.role = u.role AND g.permission = 'approvals:decide')"""
# Waits for those that somebody is just ending.
_CANCEL = """
WITH cancelled AS (
    UPDATE approvals p SET status = 'cancelled', decided_at = now()
    FROM (SELECT id FROM approvals
          WHERE tenant_id = $1 AND caller_id = ANY($2) AND status = 'pending'
          ORDER BY id FOR UPDATE) pending
    WHERE p.id = pending.id
    RETURNING p.id, p.work_id
), marked AS (
    UPDATE approval_assignees a SET status = 'cancelled' FROM cancelled c
    WHERE a.tenant_id = $1 AND a.approval_id = c.id
)
SELECT work_id FROM cancelled WHERE work_id IS NOT NULL
"""
_LIST_USERS = f"""
SELECT id, status = 'active' AS is_active, {_MAY_DECIDE} AS may_decide FROM users u
WHERE (tenant_id = $1 OR role = 'super_admin') AND id = ANY($2)
"""
# By the token of a link, before the tenant is known. Whoever has not verified the address may not
# decide.
_FIND_USER = """
SELECT id, tenant_id, role,
       ARRAY(SELECT permission FROM role_grants g WHERE g.role = u.role) AS permissions
FROM users u WHERE id = $1 AND status = 'active' AND email_verified
"""
# Of users who decide, also of a super_admin of another tenant.
_LIST_NAMES = f"SELECT u.id, {user_name_sql('u')} AS name FROM users u WHERE u.id = ANY($1)"
_FIND_DECIDER = f"""
SELECT id FROM users u
WHERE tenant_id = $1 AND role = $2 AND status = 'active' AND email_verified AND {_MAY_DECIDE}
LIMIT 1
"""
_LIST_DECIDING_ROLES = f"SELECT u.role FROM unnest($1::text[]) AS u(role) WHERE {_MAY_DECIDE}"


class Assignee(msgspec.Struct, frozen=True):
    """A user who may be asked by id, or by the role in the own tenant."""

    user_id: str
    tenant_id: str
    role: str

    @property
    def names(self) -> list[str]:
        return [self.user_id, role_assignee(self.tenant_id, self.role)]


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """`assignee` selects the approvals that ask this user."""

    assignee: Assignee | None = None
    status: str | None = None
    workflow_execution_id: str | None = None


def role_assignee(tenant_id: str, role: str) -> str:
    return f"{tenant_id}:{role}"


async def find(tx: Tx, approval_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND, approval_id)


async def find_in_tenant(tx: Tx, tenant: str, approval_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND, approval_id)


async def add(
    tx: Tx,
    tenant: str,
    approval_id: str,
    *values: str | list[str] | datetime | None,
    assignees: list[str],
) -> None:
    await fast.execute(tx, tenant, _ADD, approval_id, *values, assignees)


async def end(
    tx: Tx,
    tenant: str,
    approval_id: str,
    status: str,
    comment: str | None = None,
    decided_by: str | None = None,
    decided_via: str | None = None,
) -> Row | None:
    """Returns the approval, or None when it has ended already or its time is up."""
    values = (status, comment, decided_by, decided_via)
    return await fast.row(tx, tenant, _END, approval_id, *values)


async def cancel(tx: Tx, tenant: str, caller_ids: list[str]) -> list[str]:
    """Returns the work of the cancelled approvals."""
    return [row["work_id"] for row in await fast.rows(tx, tenant, _CANCEL, caller_ids)]


async def list_users(tx: Tx, tenant: str, user_ids: list[str]) -> list[Row]:
    """Returns the users of the tenant and super_admins: id, is_active and may_decide."""
    return await fast.rows(tx, tenant, _LIST_USERS, user_ids)


async def find_user(tx: Tx, user_id: str) -> Row | None:
    """Returns id, tenant_id, role and permissions of an active, verified user."""
    row: Row | None = await (await tx.raw()).fetchrow(_FIND_USER, user_id)
    return row


async def list_names(tx: Tx, user_ids: list[str | None]) -> dict[str, str]:
    """Returns the names of users, or else their addresses, by their ids."""
    rows = await (await tx.raw()).fetch(_LIST_NAMES, user_ids)
    return {row["id"]: row["name"] for row in rows}


async def has_decider(tx: Tx, tenant: str, role: str) -> bool:
    return await fast.value(tx, tenant, _FIND_DECIDER, role) is not None


async def list_deciding_roles(tx: Tx, roles: list[str]) -> set[str]:
    """Returns the roles whose users may decide. Grants hold for all tenants."""
    rows = await (await tx.raw()).fetch(_LIST_DECIDING_ROLES, roles)
    return {row["role"] for row in rows}


async def list_page(
    tx: Tx, filters: Filter, page: Page, sort: str | None
) -> tuple[list[ApprovalView], Total]:
    where, order = Where(tenant_of(tx)), _SORT_ORDERS.sql(sort)
    if filters.workflow_execution_id is not None:
        # An execution has few of them.
        where.equal("workflow_execution_id", filters.workflow_execution_id)
        where.equal("status", filters.status)
        _require_assignee(where, filters.assignee)
        return await paging.fetch(tx, _VIEW, "approvals", where, order, page)
    if sort in _PENDING_SORTS and filters.status != "pending":
        reason = "only with status=pending or a workflow_execution_id"
        raise Invalid.field("sort", f"may be {sort} {reason}")
    statuses = where.bind([filters.status] if filters.status else list(get_args(Status)))
    groups = f"unnest({statuses}::text[]) AS s(group_status)"
    if filters.assignee is None:
        groups += (
            " CROSS JOIN (SELECT id AS group_key FROM tenants WHERE $1::text IS NULL OR id = $1) l"
        )
        source = f"FROM approvals WHERE {where.sql}"
        rows = f"SELECT id, created_at, expires_at {source} AND tenant_id = group_key"
    else:
        names = where.bind(filters.assignee.names)
        groups += f" CROSS JOIN unnest({names}::text[]) AS l(group_key)"
        source = f"FROM approval_assignees WHERE {where.sql}"
        rows = f"SELECT approval_id AS id, created_at, expires_at {source} AND assignee = group_key"
        source += f" AND assignee = ANY({names})"
    rows, source = f"{rows} AND status = group_status", f"{source} AND status = ANY({statuses})"
    return await _fetch_merged(tx, where, groups, rows, source, order, page)


def _require_assignee(where: Where, assignee: Assignee | None) -> None:
    if assignee is not None:
        values = (assignee.user_id, assignee.role, assignee.tenant_id)
        user_id, role, tenant_id = map(where.bind, values)
        where.require(
            f"({user_id} = ANY(user_ids) OR role = {role} AND tenant_id = {tenant_id}::text)"
        )


async def _fetch_merged(
    tx: Tx, where: Where, groups: str, rows: str, source: str, order: str, page: Page
) -> tuple[list[ApprovalView], Total]:
    """Reads one page of each group, a status of an assignee or of a tenant, through its index, and
    returns the first of these: the cost does not grow with the table.
    """
    records, total = await paging.fetch_page(
        tx,
        where,
        f"""
        {_VIEW.columns} FROM approvals JOIN (
            SELECT approvals.id AS listed_id FROM {groups} CROSS JOIN LATERAL (
                SELECT * FROM ({rows}) approvals
                ORDER BY {order} LIMIT $limit::bigint + $offset::bigint
            ) approvals ORDER BY {order} LIMIT $limit OFFSET $offset
        ) listed ON listed_id = id AND {where.tenant_condition} ORDER BY {order}
        """,
        page,
        counted=f"FROM {groups} CROSS JOIN LATERAL ({rows} {_COUNT_LIMIT}) counted",
        estimated=source,
    )
    return [_VIEW.build(record) for record in records], total
