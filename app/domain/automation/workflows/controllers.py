from functools import cache
from typing import Annotated

import msgspec
from litestar import Controller, Response, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from app.domain.agents.definition.schemas import VersionDiff
from app.http.dependencies import Context, Id, Page, Principal, Services, Tx
from app.http.paging import From, OfStatus, Search, Sort, To, parse_time
from app.http.records import Record, lock_row
from app.kit.paging import Paged
from app.kit.views import Data

from . import batch, dry_run, executions, service
from .execution_list_queries import ExecutionFilter
from .nodes.registry import NODE_TYPES
from .schemas import (
    AcceptedExecution,
    CreateWorkflow,
    DryRun,
    ExecuteWorkflow,
    ExecutionStatus,
    ExecutionSummary,
    FullExecution,
    NodeTypeView,
    Status,
    TriggerType,
    UpdateWorkflow,
    VersionSummary,
    WorkflowBatch,
    WorkflowBatchResult,
    WorkflowSummary,
    WorkflowVersionView,
    WorkflowView,
)

TriggerFilter = Annotated[
    TriggerType | None, QueryParameter(description="Only executions with this trigger")
]

_WORKFLOW = Record(lock_row("workflows", id="workflow_id"), "get_workflow")


class WorkflowController(Controller):
    path = "/api/v1/workflows"
    tags = ["Workflows"]

    @get(summary="List workflows", needs="workflows:read")
    async def list_workflows(
        self,
        tx: Tx,
        page_in: Page,
        search: Search = None,
        status: OfStatus[Status] = None,
        sort: Sort = None,
    ) -> Paged[WorkflowSummary]:
        """`search` looks in names and descriptions. Sort by name, status, created_at or updated_at;
        by default the newest first.
        """
        return await service.list_page(tx, page_in, search=search, status=status, sort=sort)

    @post(summary="Create a workflow", stores=True, needs="workflows:write", stops_when_gone=True)
    async def create_workflow(
        self, tx: Tx, services: Services, principal: Principal, data: JSONBody[CreateWorkflow]
    ) -> Data[WorkflowView]:
        """Nodes and edges form a graph without cycles; `GET /api/v1/workflow-node-types` has the
        config of each type. Texts in configs are Jinja templates over `input`,
        `nodes.<id>.output` and `execution`; a text that is exactly one `{{ expression }}` keeps the
        type of the value. `trigger` starts the workflow by a schedule once it is published.
        """
        return Data(await service.create(tx, services, principal, data))

    @get("/{workflow_id:str}", summary="Get a workflow", needs="workflows:read")
    async def get_workflow(
        self, tx: Tx, principal: Principal, workflow_id: Id
    ) -> Data[WorkflowView]:
        """With the nodes and edges of the newest version. Callers without workflows:write see no
        configs of nodes.
        """
        return Data(await service.show(tx, principal, workflow_id))

    @put(
        "/{workflow_id:str}",
        summary="Change a workflow",
        stores=True,
        record=_WORKFLOW,
        needs="workflows:write",
        stops_when_gone=True,
    )
    async def update_workflow(
        self,
        tx: Tx,
        services: Services,
        principal: Principal,
        workflow_id: Id,
        data: JSONBody[UpdateWorkflow],
    ) -> Data[WorkflowView]:
        """Any subset of the fields. A change of nodes or edges makes a new version; executions keep
        the version that they started with, and triggers start the published one until the next is
        published.
        """
        return Data(await service.update(tx, services, principal, workflow_id, data))

    @delete("/{workflow_id:str}", summary="Delete a workflow", needs="workflows:delete")
    async def delete_workflow(self, tx: Tx, workflow_id: Id) -> None:
        """Cancels its executions and deletes them."""
        await service.delete(tx, workflow_id)

    @post(
        "/{workflow_id:str}/publish",
        summary="Publish the newest version",
        record=_WORKFLOW,
        needs="workflows:write",
        status_code=200,
    )
    async def publish_workflow(
        self, tx: Tx, principal: Principal, workflow_id: Id
    ) -> Data[WorkflowView]:
        """Event subscriptions, incoming webhooks and the schedule start it from now on. The caller
        needs the permissions of its nodes.
        """
        return Data(await service.publish(tx, principal, workflow_id))

    @post(
        "/{workflow_id:str}/unpublish",
        summary="Withdraw a workflow",
        record=_WORKFLOW,
        needs="workflows:write",
        status_code=200,
    )
    async def unpublish_workflow(self, tx: Tx, workflow_id: Id) -> Data[WorkflowView]:
        """Triggers no longer start it; running executions continue."""
        return Data(await service.unpublish(tx, workflow_id))

    @get("/{workflow_id:str}/versions", summary="List versions", needs="workflows:read")
    async def list_workflow_versions(
        self, tx: Tx, page_in: Page, workflow_id: Id
    ) -> Paged[VersionSummary]:
        """The newest first."""
        return await service.list_versions(tx, workflow_id, page_in)

    @get(
        "/{workflow_id:str}/versions/{version:str}", summary="Get a version", needs="workflows:read"
    )
    async def get_workflow_version(
        self, tx: Tx, principal: Principal, workflow_id: Id, version: Id
    ) -> Data[WorkflowVersionView]:
        """Callers without workflows:write see no configs of nodes."""
        return Data(await service.get_version(tx, principal, workflow_id, version))

    @get(
        "/{workflow_id:str}/versions/{version:str}/diff/{other:str}",
        summary="Compare two versions",
        needs="workflows:write",
    )
    async def diff_workflow_versions(
        self, tx: Tx, workflow_id: Id, version: Id, other: Id
    ) -> Data[VersionDiff]:
        """What changed from the first version to the second. Nodes are compared by their ids; of
        secrets it says only that they changed.
        """
        return Data(await service.diff_versions(tx, workflow_id, version, other))

    @post(
        "/{workflow_id:str}/versions/{version:str}/restore",
        summary="Restore a version",
        record=_WORKFLOW,
        stores=True,
        stops_when_gone=True,
        needs="workflows:write",
        status_code=200,
    )
    async def restore_workflow_version(
        self, tx: Tx, services: Services, principal: Principal, workflow_id: Id, version: Id
    ) -> Data[WorkflowView]:
        """As a new version, which is not published yet."""
        view = await service.restore_version(tx, services, principal, workflow_id, version)
        return Data(view)

    @post(
        "/{workflow_id:str}/execute",
        summary="Execute a workflow",
        stores=True,
        stops_when_gone=True,
        needs="workflows:execute",
        status_code=202,
        cost="execute",
    )
    async def execute_workflow(
        self, context: Context, workflow_id: Id, data: JSONBody[ExecuteWorkflow | None] = None
    ) -> Response[Data[AcceptedExecution] | Data[DryRun]]:
        """Runs the published version, or the newest one of a draft. Beyond the plan's executions at
        a time it waits as `pending`, in order; beyond those per minute, and beyond 10,000 that are
        pending, the answer is 429.

        With `dry_run`, the answer is 200: everything is checked and rendered up to the first node
        with an effect, and nothing is stored. It finds what would refuse that node at once.
        """
        body = data or ExecuteWorkflow()
        if body.dry_run:
            services, principal = context.services, context.principal
            dry = await dry_run.run(services, principal, workflow_id, body)
            return Response(Data(dry), status_code=200)
        accepted = await executions.execute(context, workflow_id, body)
        return Response(Data(accepted), status_code=202)

    @get("/{workflow_id:str}/executions", summary="List executions", needs="workflows:read")
    async def list_workflow_executions(
        self,
        context: Context,
        page_in: Page,
        workflow_id: Id,
        status: OfStatus[ExecutionStatus] = None,
        trigger: TriggerFilter = None,
        since: From = None,
        until: To = None,
        sort: Sort = None,
    ) -> Paged[ExecutionSummary]:
        """Sort by created_at, or with a status of ended executions by finished_at; by default the
        newest first.
        """
        filters = ExecutionFilter(
            workflow_id, status, trigger, parse_time("from", since), parse_time("to", until)
        )
        return await executions.list_page(context, filters, page_in, sort)


class WorkflowBatchController(Controller):
    path = "/v1/workflows/batch"
    tags = ["Workflows"]

    @post(
        summary="Change many workflows",
        needs="workflows:write",
        stops_when_gone=True,
        status_code=200,
    )
    async def change_workflows(
        self, tx: Tx, services: Services, principal: Principal, data: JSONBody[WorkflowBatch]
    ) -> WorkflowBatchResult:
        """1 to 100 operations in one request, which counts as one request for rate limits. Each
        operation has its own HTTP status in the result; deleting needs workflows:delete.
        """
        return WorkflowBatchResult(await batch.run(tx, services, principal, data.operations))


class WorkflowExecutionController(Controller):
    path = "/api/v1/workflow-executions"
    tags = ["Workflows"]

    @get(summary="List executions of all workflows", needs="workflows:read")
    async def list_all_workflow_executions(
        self,
        context: Context,
        page_in: Page,
        status: OfStatus[ExecutionStatus] = None,
        trigger: TriggerFilter = None,
        since: From = None,
        until: To = None,
        sort: Sort = None,
    ) -> Paged[ExecutionSummary]:
        """Sort by created_at, or with a status of ended executions by finished_at; by default the
        newest first.
        """
        filters = ExecutionFilter(
            None, status, trigger, parse_time("from", since), parse_time("to", until)
        )
        return await executions.list_page(context, filters, page_in, sort)

    @get("/{execution_id:str}", summary="Get an execution", needs="workflows:read")
    async def get_workflow_execution(
        self,
        services: Services,
        principal: Principal,
        execution_id: Id,
        wait: Annotated[
            int, QueryParameter(ge=0, le=30, description="Seconds to wait for it to finish")
        ] = 0,
    ) -> Data[FullExecution]:
        """With status, input, output, error and times of each node. Callers without
        workflows:execute see no content: inputs, outputs and messages of errors are empty.
        """
        return Data(await executions.get(services, principal, execution_id, wait))

    @post(
        "/{execution_id:str}/cancel",
        summary="Cancel an execution",
        needs="workflows:execute",
        status_code=200,
    )
    async def cancel_workflow_execution(
        self, context: Context, execution_id: Id
    ) -> Data[FullExecution]:
        """Effects of its nodes so far stay. 409 `invalid_state` when it has ended."""
        return Data(await executions.cancel(context, execution_id))

    @post(
        "/{execution_id:str}/retry",
        summary="Retry an execution",
        stores=True,
        needs="workflows:execute",
        status_code=202,
        cost="execute",
    )
    async def retry_workflow_execution(
        self, context: Context, execution_id: Id
    ) -> Data[FullExecution]:
        """Continues a failed or cancelled execution: the nodes that failed or were cancelled run
        again, and completed ones keep their outputs.
        """
        return Data(await executions.retry(context, execution_id))


class WorkflowNodeTypeController(Controller):
    path = "/api/v1/workflow-node-types"
    tags = ["Workflows"]

    @get(summary="List node types", needs="workflows:read")
    async def list_node_types(self) -> Data[list[NodeTypeView]]:
        """The JSON Schema of the config of each type, with an example."""
        return list_node_types()


@cache
def list_node_types() -> Data[list[NodeTypeView]]:
    return Data(
        [
            NodeTypeView(
                node_type.name,
                node_type.description,
                _build_schema(node_type.config),
                sorted(node_type.literal | node_type.conditions),
                node_type.has_branches,
                node_type.has_timeout,
                node_type.has_retry,
                node_type.example,
            )
            for node_type in NODE_TYPES.values()
        ]
    )


def _build_schema(config: type[msgspec.Struct]) -> dict[str, object]:
    """Returns the schema of the struct itself, without a reference to it."""
    (schema,), components = msgspec.json.schema_components([config])
    own_schema: dict[str, object] = components.get(config.__name__, schema)
    return own_schema
