"""Approvals: who is asked for a decision, and the one outcome that each of them has."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import msgspec

from app.context import RequestContext
from app.domain.area import Areas, Event, FinishedCall
from app.domain.identity.accounts import api as accounts
from app.domain.platform.events import api as events
from app.jobs import work
from app.jobs.work import WorkKind
from app.kit import clock, paging, trace
from app.kit.errors import Forbidden, Invalid, Problem
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.texts import as_json, storable
from app.security.permissions import ROLES
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import details, queries
from .errors import AlreadyDecided, ApprovalExpired, ApprovalNotFound, NobodyCanDecide
from .events import ApprovalApproved, ApprovalRejected, ApprovalRequested, ApprovalTimeout
from .queries import Assignee, Filter
from .schemas import ApprovalView, Origin, Via

# Ends an approval when its time is up.
EXPIRE: Final = WorkKind("approvals.expire")
MAX_TITLE_CHARS: Final = 200
MAX_MESSAGE_CHARS: Final = 10_000
MAX_USERS: Final = 100
MAX_TIMEOUT_SECONDS: Final = 366 * 24 * 3600
_READ = "approvals:read"


class NewApproval(msgspec.Struct, frozen=True, kw_only=True):
    """Asks the users in `user_ids`, or those with `role`: one of both. The area of `caller_id`
    learns the outcome by `on_call_finished`.
    """

    caller_id: str
    workflow_execution_id: str | None
    node_id: str | None
    title: str
    message: str
    user_ids: list[str] | None
    role: str | None
    timeout_seconds: float | None
    origin: Origin | None = None
    details: dict[str, Any] = {}


# For other areas, in their transactions


async def request(tx: Tx, tenant_id: str, new: NewApproval) -> str:
    """Returns the id of the approval. Raises Invalid when nobody can be asked, or a text does not
    fit.
    """
    title, message = " ".join(storable(new.title).split()), storable(new.message)
    user_ids = list(dict.fromkeys(new.user_ids or ())) or None
    Invalid.check(_find_problems(new, title, message, user_ids))
    if user_ids is not None:
        await _check_users(tx, tenant_id, user_ids)
    approval_id, expires_at, work_id = new_id("apr"), _find_expiry(new), None
    if expires_at is not None:
        work_id = await work.accept(
            tx, EXPIRE, tenant_id=tenant_id, ref_id=approval_id, run_at=expires_at
        )
    ids = (new.caller_id, new.workflow_execution_id, new.node_id)
    assignees = user_ids or [queries.role_assignee(tenant_id, new.role or "")]
    origin = as_json(new.origin) if new.origin is not None else None
    texts = (title, message, origin, as_json(details.build(new.details)))
    columns = (*ids, *texts, user_ids, new.role, expires_at, work_id)
    correlation_id = trace.current().correlation_id
    await queries.add(tx, tenant_id, approval_id, *columns, correlation_id, assignees=assignees)
    requested = ApprovalRequested(
        approval_id, *ids[1:], title, message, user_ids, new.role, expires_at
    )
    await events.emit(tx, requested, tenant_id=tenant_id)
    return approval_id


async def find_user_problems(tx: Tx, tenant_id: str, user_ids: list[str]) -> dict[str, str]:
    """Returns why users cannot decide approvals of the tenant."""
    rows = {row["id"]: row for row in await queries.list_users(tx, tenant_id, user_ids)}
    problems = {}
    for user_id in user_ids:
        row = rows.get(user_id)
        if row is None:
            problems[user_id] = f"there is no user {user_id}"
        elif not row["is_active"]:
            problems[user_id] = f"the user {user_id} is not active"
        elif not row["may_decide"]:
            problems[user_id] = f"the role of the user {user_id} may not decide approvals"
    return problems


async def find_role_problems(tx: Tx, _tenant_id: str, roles: list[str]) -> dict[str, str]:
    """Returns why users with these roles cannot decide approvals."""
    deciding_roles = await queries.list_deciding_roles(tx, roles)
    return {
        role: f"users with the role {role} may not decide approvals"
        for role in roles
        if role not in deciding_roles
    }


async def list_deciders(tx: Tx, tenant_id: str, user_ids: list[str]) -> list[str]:
    """Returns the users who are active and may decide. Raises NobodyCanDecide when none is."""
    problems = await find_user_problems(tx, tenant_id, user_ids)
    deciders = [user_id for user_id in user_ids if user_id not in problems]
    if not deciders:
        reason = next(iter(problems.values()), "nobody is asked")
        raise NobodyCanDecide(f"Nobody can decide this approval: {reason}")
    return deciders


async def require_decider(tx: Tx, tenant_id: str, role: str) -> None:
    """Raises NobodyCanDecide unless an active user has the role, and the role may decide."""
    if not await queries.has_decider(tx, tenant_id, role):
        reason = f"no active user has the role {role} and may decide approvals"
        raise NobodyCanDecide(f"Nobody can decide this approval: {reason}")


async def cancel(tx: Tx, services: Services, tenant_id: str, caller_ids: list[str]) -> None:
    """Ends the pending approvals of callers that no longer wait for them. One that is decided at
    the same time is waited for, and keeps its decision. Whoever decides locks rows of the caller's
    area after the approval: the transaction must not have locked any of these.
    """
    work_ids = await queries.cancel(tx, tenant_id, caller_ids)
    await _cancel_timers(tx, services, tenant_id, work_ids)


async def _cancel_timers(tx: Tx, services: Services, tenant_id: str, work_ids: list[str]) -> None:
    """A timer that is just running is not waited for. It finds that the approval has ended."""
    if work_ids:
        await work.cancel_many(tx, services.doorbell, tenant_id, work_ids, skip_locked=True)


def _find_problems(
    new: NewApproval, title: str, message: str, user_ids: list[str] | None
) -> Iterator[Problem]:
    if not title:
        yield "title", "must not be blank"
    if len(title) > MAX_TITLE_CHARS:
        yield "title", f"must have at most {MAX_TITLE_CHARS} characters"
    if len(message) > MAX_MESSAGE_CHARS:
        yield "message", f"must have at most {MAX_MESSAGE_CHARS:,} characters"
    if (user_ids is None) == (new.role is None):
        yield "user_ids", "either user_ids or role is required, not both"
    if user_ids is not None and len(user_ids) > MAX_USERS:
        yield "user_ids", f"must have at most {MAX_USERS} users"
    if new.role is not None and new.role not in ROLES:
        yield "role", f"must be one of {', '.join(ROLES)}"
    # Not true of NaN either.
    if new.timeout_seconds is not None and not 0 < new.timeout_seconds <= MAX_TIMEOUT_SECONDS:
        yield "timeout_seconds", f"must be more than 0 and at most {MAX_TIMEOUT_SECONDS:,}"


async def _check_users(tx: Tx, tenant_id: str, user_ids: list[str]) -> None:
    contacts = await accounts.list_contacts(
        tx, tenant_id, user_ids=user_ids, limit=len(user_ids), super_admins=True
    )
    active_ids = {row["id"] for row in contacts}
    Invalid.check(
        (f"user_ids.{index}", "is not an active user of this tenant")
        for index, user_id in enumerate(user_ids)
        if user_id not in active_ids
    )


def _find_expiry(new: NewApproval) -> datetime | None:
    seconds = new.timeout_seconds
    return None if seconds is None else clock.now() + timedelta(seconds=seconds)


# For the API


async def list_page(
    context: RequestContext,
    scope: Literal["mine", "all"],
    filters: Filter,
    page: Page,
    sort: str | None,
) -> Paged[ApprovalView]:
    principal = context.principal
    if scope == "all":
        principal.require(_READ)
    else:
        assignee = Assignee(principal.user_id, principal.tenant_id, principal.role)
        filters = msgspec.structs.replace(filters, assignee=assignee)
    views, total = await queries.list_page(context.tx, filters, page, sort)
    return paging.paged(views, total, page)


async def get(context: RequestContext, approval_id: str) -> ApprovalView:
    row = await queries.find(context.tx, approval_id)
    if row is None or not (is_asked(context.principal, row) or context.principal.may(_READ)):
        raise _not_found(approval_id)
    return queries.build_view(row)


async def decide(
    context: RequestContext,
    approval_id: str,
    status: Literal["approved", "rejected"],
    comment: str | None,
    via: Via = "api",
) -> ApprovalView:
    tx, principal = context.tx, context.principal
    row = await queries.find(tx, approval_id)
    if row is None or not (is_asked(principal, row) or principal.may(_READ)):
        raise _not_found(approval_id)
    if not is_asked(principal, row):
        raise Forbidden("Only those whom this approval asks can decide it")
    tenant_id: str = row["tenant_id"]
    decision = (status, comment or None, principal.user_id, via)
    approval = await queries.end(tx, tenant_id, approval_id, *decision)
    if approval is None:
        raise _build_refusal(await queries.find(tx, approval_id) or row)
    if approval["work_id"] is not None:
        await _cancel_timers(tx, context.services, tenant_id, [approval["work_id"]])
    fields = (approval["title"], principal.user_id, approval["comment"], via)
    kind = ApprovalApproved if status == "approved" else ApprovalRejected
    await _report_end(tx, context.services, approval, kind(*_build_ids(approval), *fields))
    return queries.build_view(approval)


def is_asked(principal: Principal, row: Row) -> bool:
    is_asked_by_role = row["role"] == principal.role and row["tenant_id"] == principal.tenant_id
    return is_asked_by_role or principal.user_id in (row["user_ids"] or ())


def _not_found(approval_id: str) -> ApprovalNotFound:
    return ApprovalNotFound(f"There is no approval {approval_id[:64]}")


def _build_refusal(row: Row) -> AlreadyDecided | ApprovalExpired:
    if row["status"] == "pending":
        return ApprovalExpired(
            "The deadline for this decision has passed", details={"expires_at": row["expires_at"]}
        )
    details = {name: row[name] for name in ("status", "decided_by", "decided_at")}
    return AlreadyDecided(f"This approval is already {row['status']}", details=details)


# For workers


async def expire(tx: Tx, services: Services, tenant_id: str, approval_id: str) -> None:
    """Ends an approval whose time is up; does nothing when it has ended already."""
    approval = await queries.end(tx, tenant_id, approval_id, "timed_out")
    if approval is not None:
        timeout = ApprovalTimeout(*_build_ids(approval), approval["title"], approval["expires_at"])
        await _report_end(tx, services, approval, timeout)


def _build_ids(row: Row) -> tuple[str, str | None, str | None]:
    return row["id"], row["workflow_execution_id"], row["node_id"]


async def _report_end(tx: Tx, services: Services, row: Row, event: Event) -> None:
    """Emits the event and tells the caller's area."""
    output = {
        "status": row["status"],
        "approved": row["status"] == "approved",
        "comment": row["comment"],
    }
    call = FinishedCall(tx, services, row["tenant_id"], row["caller_id"], output=output)
    with _join_trace(row["correlation_id"]):
        await events.emit(tx, event, tenant_id=row["tenant_id"])
        await services.get(Areas).on_call_finished(call)


@contextmanager
def _join_trace(correlation_id: str) -> Iterator[None]:
    """Events emitted and work accepted inside belong to the trace in which it was requested."""
    before = trace.current()
    trace.begin(msgspec.structs.replace(before, correlation_id=correlation_id))
    try:
        yield
    finally:
        trace.begin(before)
