"""Emitters of the events of workflows."""

from typing import Any

from app.domain.platform.events.service import emit_dead
from tests.automation.workflows.factories import (
    EXECUTIONS,
    PATH,
    condition,
    create_workflow,
    publish,
    start,
    transform,
)
from tests.platform.events.database import load_work
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.responses import post_json, read_json
from tests.platform.events.user_emitters import Emitter
from workers.runner import Runner


async def _create(context: EmitterContext, *nodes: dict[str, Any]) -> str:
    workflow = await create_workflow(context.admin, list(nodes) or [transform("only", {"a": 1})])
    return str(workflow["id"])


async def _run(context: EmitterContext) -> None:
    """Runs the nodes that are queued."""
    runner = Runner(context.services, on_any_dead=emit_dead)
    for work in await load_work(context.services, context.tenant_id, "workflows.node"):
        await runner.run(work["id"])


async def emit_workflow_created(context: EmitterContext) -> None:
    await _create(context)


async def emit_workflow_updated(context: EmitterContext) -> None:
    """The name, a new version, and the withdrawal of the published one."""
    workflow_id = await _create(context)
    path = f"{PATH}/{workflow_id}"
    read_json(await context.admin.put(path, {"name": "Returns"}))
    read_json(await context.admin.put(path, {"nodes": [transform("only", 2)]}))
    await publish(context.admin, workflow_id)
    await post_json(context.admin, f"{path}/unpublish", {}, 200)


async def emit_workflow_published(context: EmitterContext) -> None:
    await publish(context.admin, await _create(context))


async def emit_workflow_deleted(context: EmitterContext) -> None:
    read_json(await context.admin.delete(f"{PATH}/{await _create(context)}"), 204)


async def emit_execution_completed(context: EmitterContext) -> None:
    await start(context.admin, await _create(context), input={"name": "Ada"})
    await _run(context)


async def emit_execution_failed(context: EmitterContext) -> None:
    await start(context.admin, await _create(context, condition("check", "input.missing > 1")))
    await _run(context)


async def emit_execution_cancelled(context: EmitterContext) -> None:
    execution_id = await start(context.admin, await _create(context))
    await post_json(context.admin, f"{EXECUTIONS}/{execution_id}/cancel", {}, 200)


EMITTERS: dict[str, Emitter] = {
    "workflow.created": emit_workflow_created,
    "workflow.updated": emit_workflow_updated,
    "workflow.published": emit_workflow_published,
    "workflow.deleted": emit_workflow_deleted,
    "workflow.execution.started": emit_execution_completed,
    "workflow.execution.completed": emit_execution_completed,
    "workflow.execution.failed": emit_execution_failed,
    "workflow.execution.cancelled": emit_execution_cancelled,
    "workflow.execution.node_completed": emit_execution_completed,
}
