"""Emitters of the events of approvals."""

from typing import Any

from app.domain.automation.approvals import service
from app.domain.platform.events.service import emit_dead
from tests.automation.approvals.factories import build_approval, read_timer
from tests.database import run_sql
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.responses import post_json
from tests.platform.events.user_emitters import Emitter
from workers.runner import Runner


async def _request(context: EmitterContext, **fields: Any) -> str:
    """Asks the administrators unless `user_ids` is set; returns the id of the approval."""
    role = None if "user_ids" in fields else "tenant_admin"
    approval = build_approval(role=role, **fields)
    async with context.services.db.tx(context.tenant_id) as tx:
        return await service.request(tx, context.tenant_id, approval)


async def emit_approval_requested(context: EmitterContext) -> None:
    """For a role, and for users with a time limit."""
    await _request(context)
    await _request(context, user_ids=[context.admin.user_id], timeout_seconds=60.0, node_id=None)


async def emit_approval_decided(context: EmitterContext) -> None:
    for action in ("approve", "reject"):
        path = f"/api/v1/approvals/{await _request(context)}/{action}"
        await post_json(context.admin, path, {"comment": "Fine"}, 200)


async def emit_approval_timeout(context: EmitterContext) -> None:
    approval_id = await _request(context, timeout_seconds=60.0)
    work_id = (await read_timer(context.services, approval_id))["id"]
    await run_sql(context.services, "UPDATE work SET run_at = now() WHERE id = $1", work_id)
    await Runner(context.services, on_any_dead=emit_dead).run(work_id)


EMITTERS: dict[str, Emitter] = {
    "approval.requested": emit_approval_requested,
    "approval.approved": emit_approval_decided,
    "approval.rejected": emit_approval_decided,
    "approval.timeout": emit_approval_timeout,
}
