"""Workflows and their versions, and what other areas may call: they start workflows by `accept`."""

import re
from typing import Any

import msgspec
from msgspec import UNSET

from app.domain.agents.definition.schemas import VersionDiff
from app.domain.messaging.notifications import api as notifications
from app.domain.platform.events import api as events
from app.domain.platform.history import api as history
from app.jobs import work
from app.kit import clock, json_diff, paging, validation
from app.kit.changes import apply_changes
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.views import build_view
from app.security.principal import Principal
from app.services import Services
from db.fast import tenant_of
from db.models import Workflow, WorkflowVersion
from db.session import Tx

from . import checks, definitions, execution_queries, queries, schedule
from .checks import CheckedDefinitions
from .definitions import Definition
from .errors import InvalidState, WorkflowNotFound, WorkflowVersionNotFound
from .events import WorkflowCreated, WorkflowDeleted, WorkflowPublished, WorkflowUpdated
from .schemas import (
    CreateWorkflow,
    Schedule,
    UpdateWorkflow,
    VersionSummary,
    WorkflowSummary,
    WorkflowVersionView,
    WorkflowView,
)
from .work_kinds import CANCEL_ALL

_VERSION_PATTERN = re.compile(r"[1-9][0-9]{0,8}")


async def list_page(
    tx: Tx, page: Page, *, search: str | None, status: str | None, sort: str | None
) -> Paged[WorkflowSummary]:
    summaries, total = await queries.list_page(tx, page, search=search, status=status, sort=sort)
    return paging.paged(summaries, total, page)


async def get(tx: Tx, workflow_id: str) -> WorkflowView:
    view = await queries.find(tx, workflow_id)
    if view is None:
        raise _not_found(workflow_id)
    return view


async def show(tx: Tx, principal: Principal, workflow_id: str) -> WorkflowView:
    view = await get(tx, workflow_id)
    view.nodes = definitions.select_nodes(principal, view.nodes)
    return view


class ExecutionResult(msgspec.Struct, frozen=True):
    status: str
    output: Any


async def find_result(tx: Tx, principal: Principal, execution_id: str) -> ExecutionResult | None:
    """Returns the state of an execution that another area started. The output is None for those
    who may not run workflows.
    """
    row = await queries.find_result(tx, execution_id)
    if row is None:
        return None
    is_shown = principal.may("workflows:execute")
    return ExecutionResult(row["status"], row["output"] if is_shown else None)


async def delete_ended(tx: Tx, tenant_id: str, execution_ids: list[str]) -> None:
    """Deletes executions that are not running, with the messages that their nodes sent."""
    if execution_ids:
        message_ids = await execution_queries.list_messages(tx, tenant_id, execution_ids)
        await notifications.delete(tx, tenant_id, message_ids)
        await execution_queries.delete_ended(tx, tenant_id, execution_ids)


async def find(
    tx: Tx, workflow_id: str, *, for_update: bool = False, for_delete: bool = False
) -> Workflow:
    workflow = await queries.find_row(tx, workflow_id, for_update=for_update, for_delete=for_delete)
    if workflow is None:
        raise _not_found(workflow_id)
    return workflow


async def require(tx: Tx, tenant_id: str | None, workflow_id: str) -> None:
    """Raises WorkflowNotFound unless the workflow exists."""
    if not await queries.exists(tx, tenant_id, workflow_id):
        raise _not_found(workflow_id)


def _not_found(workflow_id: str) -> WorkflowNotFound:
    return WorkflowNotFound(f"There is no workflow {workflow_id[:64]}")


async def create(
    tx: Tx, services: Services, principal: Principal, data: CreateWorkflow
) -> WorkflowView:
    definition, checked = Definition(data.nodes, data.edges), CheckedDefinitions()
    # Before the first statement, which opens the transaction.
    await checked.check(services, principal, definition)
    checked.require(principal, definition)
    await checks.check_expressions(services, principal.home, data.nodes)
    return await create_checked(tx, principal, data, checked)


async def create_checked(
    tx: Tx, principal: Principal, data: CreateWorkflow, checked: CheckedDefinitions
) -> WorkflowView:
    """The expressions were checked, while no transaction was open."""
    tenant_id, definition = principal.home, Definition(data.nodes, data.edges)
    checked.require(principal, definition)
    if data.trigger is not None:
        _check_trigger(principal, data.trigger)
    await queries.check_quota(tx, tenant_id)
    await checks.check_references(tx, tenant_id, definition.nodes)
    workflow = Workflow(
        id=new_id("wfl"),
        tenant_id=tenant_id,
        name=data.name,
        description=data.description,
        status="draft",
        version=1,
        trigger=msgspec.to_builtins(data.trigger),
        created_by=principal.user_id,
    )
    session = await tx.session()
    session.add(workflow)
    await session.flush()
    await _store_version(tx, workflow, definition, principal)
    created = WorkflowCreated(workflow.id, workflow.name)
    await events.emit(tx, created, tenant_id=tenant_id)
    return _build_view(workflow, definition)


async def lock(tx: Tx, workflow_id: str) -> WorkflowView:
    workflow = await find(tx, workflow_id, for_update=True)
    return _build_view(workflow, await _load_definition(tx, workflow.id, workflow.version))


async def update(
    tx: Tx, services: Services, principal: Principal, workflow_id: str, data: UpdateWorkflow
) -> WorkflowView:
    """A change of nodes or edges makes a version. Triggers keep the published version until the
    next one is published.
    """
    checked = CheckedDefinitions()
    if data.nodes is not UNSET:
        await checks.check_expressions(services, principal.home, data.nodes)
    await check_update(services, principal, workflow_id, data, checked)
    return await update_checked(tx, principal, workflow_id, data, checked)


async def check_update(
    services: Services,
    principal: Principal,
    workflow_id: str,
    data: UpdateWorkflow,
    checked: CheckedDefinitions,
) -> None:
    """Checks the definition that the update makes, unless another request changes it meanwhile."""
    if data.nodes is UNSET and data.edges is UNSET:
        return
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        view = await queries.find(tx, workflow_id)
    if view is not None:
        definition = _merge(Definition(view.nodes, view.edges), data)
        await checked.check(services, principal, definition)


async def update_checked(
    tx: Tx,
    principal: Principal,
    workflow_id: str,
    data: UpdateWorkflow,
    checked: CheckedDefinitions,
) -> WorkflowView:
    """The expressions were checked, while no transaction was open. All else is checked against the
    newest version, which no other transaction changes meanwhile.
    """
    workflow = await find(tx, workflow_id, for_update=True)
    before = await _load_definition(tx, workflow.id, workflow.version)
    definition = _merge(before, data)
    if definition != before:
        checked.require(principal, definition)
        await checks.check_references(tx, workflow.tenant_id, definition.nodes)
    values = validation.set_fields(data)
    values.pop("nodes", None)
    values.pop("edges", None)
    if "trigger" in values:
        if data.trigger:
            _check_trigger(principal, data.trigger)
        values["trigger"] = msgspec.to_builtins(values["trigger"])
    await _change(tx, principal, workflow, values, before, definition)
    return _build_view(workflow, definition)


def _check_trigger(principal: Principal, trigger: Schedule) -> None:
    schedule.check(trigger)
    # Anyone who sets a trigger can start the workflow at any time.
    principal.require("workflows:execute")


def _merge(definition: Definition, data: UpdateWorkflow) -> Definition:
    return Definition(
        definition.nodes if data.nodes is UNSET else data.nodes,
        definition.edges if data.edges is UNSET else data.edges,
    )


async def _change(
    tx: Tx,
    principal: Principal,
    workflow: Workflow,
    values: dict[str, Any],
    before: Definition,
    definition: Definition,
) -> None:
    """Sets the values that differ, stores a version if the definition does, and emits the event."""
    changed = apply_changes(workflow, values)
    if "trigger" in changed:
        _set_next_run(workflow)
    if definition.nodes != before.nodes:
        changed.append("nodes")
    if definition.edges != before.edges:
        changed.append("edges")
    if definition != before:
        workflow.version += 1
        await _store_version(tx, workflow, definition, principal)
        _note_definition(tx, workflow, before, definition)
    if changed:
        workflow.updated_at = clock.now()
        await (await tx.session()).flush()
        updated = WorkflowUpdated(workflow.id, workflow.name, workflow.version, changed)
        await events.emit(tx, updated, tenant_id=workflow.tenant_id)


def _note_definition(tx: Tx, workflow: Workflow, before: Definition, after: Definition) -> None:
    history.note(
        tx,
        "workflow",
        workflow.id,
        workflow.name,
        tenant_id=workflow.tenant_id,
        changes={"nodes": (before.nodes, after.nodes), "edges": (before.edges, after.edges)},
    )


def _set_next_run(workflow: Workflow) -> None:
    """Only a published workflow has a next run."""
    workflow.next_run_at = None
    if workflow.trigger is not None and workflow.published_version is not None:
        workflow.next_run_at = schedule.find_next(Schedule(**workflow.trigger), clock.now())


async def publish(tx: Tx, principal: Principal, workflow_id: str) -> WorkflowView:
    """Publishes the newest version. Raises Invalid when a node refers to something that the tenant
    no longer has, and Forbidden when a node does what the caller may not do.
    """
    workflow = await find(tx, workflow_id, for_update=True)
    if workflow.published_version == workflow.version:
        raise InvalidState(f"Version {workflow.version} of this workflow is already published")
    definition = await _load_definition(tx, workflow.id, workflow.version)
    checks.check_permissions(principal, definition)
    await checks.check_references(tx, workflow.tenant_id, definition.nodes)
    workflow.status, workflow.published_version = "published", workflow.version
    history.call_action(tx, "published")
    _set_next_run(workflow)
    await (await tx.session()).flush()
    published = WorkflowPublished(workflow.id, workflow.name, workflow.version)
    await events.emit(tx, published, tenant_id=workflow.tenant_id)
    return _build_view(workflow, definition)


async def unpublish(tx: Tx, workflow_id: str) -> WorkflowView:
    workflow = await find(tx, workflow_id, for_update=True)
    if workflow.published_version is None:
        raise InvalidState("This workflow is not published")
    workflow.status, workflow.published_version = "draft", None
    _set_next_run(workflow)
    await (await tx.session()).flush()
    updated = WorkflowUpdated(workflow.id, workflow.name, workflow.version, ["status"])
    await events.emit(tx, updated, tenant_id=workflow.tenant_id)
    return _build_view(workflow, await _load_definition(tx, workflow.id, workflow.version))


async def delete(tx: Tx, workflow_id: str) -> None:
    """Hides the workflow; its executions are cancelled by a worker and deleted in batches. No
    execution is accepted after that.
    """
    workflow = await find(tx, workflow_id, for_delete=True)
    workflow.deleted_at, workflow.next_run_at = clock.now(), None
    workflow.published_version = None
    await (await tx.session()).flush()
    await work.accept(tx, CANCEL_ALL, tenant_id=workflow.tenant_id, ref_id=workflow.id)
    deleted = WorkflowDeleted(workflow.id, workflow.name)
    await events.emit(tx, deleted, tenant_id=workflow.tenant_id)


# Versions


async def _store_version(
    tx: Tx, workflow: Workflow, definition: Definition, principal: Principal
) -> None:
    """All versions are kept, as those of agents: executions refer to them."""
    (await tx.session()).add(
        WorkflowVersion(
            id=new_id("wfv"),
            tenant_id=workflow.tenant_id,
            workflow_id=workflow.id,
            version=workflow.version,
            definition=msgspec.to_builtins(definition),
            created_by=principal.user_id,
        )
    )


async def _load_definition(tx: Tx, workflow_id: str, version: int) -> Definition:
    definition = await queries.find_definition(tx, workflow_id, version)
    if definition is None:
        raise WorkflowVersionNotFound(f"This workflow has no version {version}")
    return msgspec.convert(definition, Definition)


def choose_version(principal: Principal, workflow: Workflow, number: int | None) -> int:
    """Returns the version that a start by hand runs: the published one, or a draft's newest. Raises
    Forbidden for another one, which may lack an approval, unless the caller may change it.
    """
    default = workflow.published_version or workflow.version
    version = number or default
    if version != default:
        principal.require("workflows:write")
    if version > workflow.version:
        raise WorkflowVersionNotFound(f"This workflow has no version {version}")
    return version


async def list_versions(tx: Tx, workflow_id: str, page: Page) -> Paged[VersionSummary]:
    versions, total = await queries.list_versions(tx, workflow_id, page)
    if not versions:
        await require(tx, tenant_of(tx), workflow_id)
    return paging.paged(versions, total, page)


async def get_version(
    tx: Tx, principal: Principal, workflow_id: str, version: str
) -> WorkflowVersionView:
    definition = await _find_version(tx, workflow_id, version)
    nodes = definitions.select_nodes(principal, definition.nodes)
    return WorkflowVersionView(workflow_id, int(version), nodes, definition.edges)


async def _find_version(tx: Tx, workflow_id: str, version: str) -> Definition:
    if _VERSION_PATTERN.fullmatch(version):
        definition = await queries.find_definition(tx, workflow_id, int(version))
        if definition is not None:
            return msgspec.convert(definition, Definition)
    await require(tx, tenant_of(tx), workflow_id)
    raise WorkflowVersionNotFound(f"This workflow has no version {version[:20]}")


async def diff_versions(tx: Tx, workflow_id: str, before: str, after: str) -> VersionDiff:
    old = await _find_version(tx, workflow_id, before)
    new = await _find_version(tx, workflow_id, after)
    diff = json_diff.diff_bounded(msgspec.to_builtins(old), msgspec.to_builtins(new))
    return VersionDiff(int(before), int(after), diff.changes, diff.truncated)


async def restore_version(
    tx: Tx, services: Services, principal: Principal, workflow_id: str, version: str
) -> WorkflowView:
    """Copies a stored version to a new one."""
    async with services.db.tx(principal.scope, autocommit=True) as reader:
        definition = await _find_version(reader, workflow_id, version)
    data = UpdateWorkflow(nodes=definition.nodes, edges=definition.edges)
    history.call_action(tx, "restored")
    return await update(tx, services, principal, workflow_id, data)


def _build_view(workflow: Workflow, definition: Definition) -> WorkflowView:
    trigger = Schedule(**workflow.trigger) if workflow.trigger else None
    return build_view(
        WorkflowView,
        workflow,
        trigger=trigger,
        nodes=definition.nodes,
        edges=definition.edges,
    )
