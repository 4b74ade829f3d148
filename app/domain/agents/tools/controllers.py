from typing import Annotated

from litestar import Controller, delete, get, patch, post, put
from litestar.params import JSONBody, QueryParameter

from app.http.dependencies import Context, Id, Page, Principal, Services, Tx
from app.http.paging import TIME, OfStatus, Search, Sort, parse_time
from app.http.records import Record, lock_row
from app.kit.paging import Paged
from app.kit.views import Data

from . import attachments, discovery, executions, openapi_import, service
from .categories import Category
from .configs import ToolType
from .execution_schemas import Execute, ExecutionResult, ExecutionView, Period, Status, ToolStats
from .openapi_schemas import ImportedApi, ImportOpenApi
from .queries import ExecutionFilter
from .schemas import (
    Attachment,
    AttachTool,
    CategoryView,
    CreateTool,
    Discovered,
    FullTool,
    NewAttachment,
    PatchAttachment,
    ToolSummary,
    ToolView,
    UpdateTool,
)

_TOOL = Record(lock_row("tools", id="tool_id"))
_ATTACHMENT = Record(lock_row("agent_tools", agent_id="agent_id", tool_id="tool_id"))


class ToolController(Controller):
    path = "/v1/tools"
    tags = ["Tools"]

    @get(summary="List tools", needs="tools:read")
    async def list_tools(
        self,
        tx: Tx,
        page_in: Page,
        category: Annotated[
            Category | None, QueryParameter(description="Only tools of this category")
        ] = None,
        tool_type: Annotated[
            ToolType | None, QueryParameter(description="Only tools of this type")
        ] = None,
        is_enabled: Annotated[
            bool | None, QueryParameter(description="Only enabled tools, or only disabled ones")
        ] = None,
        search: Search = None,
        sort: Sort = None,
    ) -> Paged[ToolSummary]:
        """`search` looks in names and descriptions. Sort by name, slug, category, tool_type,
        usage_count, last_used_at, created_at or updated_at; by default the newest come first.
        """
        return await service.list_page(
            tx,
            page_in,
            category=category,
            tool_type=tool_type,
            is_enabled=is_enabled,
            search=search,
            sort=sort,
        )

    @post(summary="Create a tool", stores=True, needs="tools:write")
    async def create_tool(self, context: Context, data: JSONBody[CreateTool]) -> Data[ToolView]:
        """The keys of `config` depend on `tool_type`, those of `auth_config` on `auth_type`.
        `auth_config` is encrypted and never shown again. `auth_config.credential_id` uses a
        credential of the vault, which needs an access rule for this tool.
        """
        return Data(await service.create(context, data))

    @get("/categories", summary="List categories", needs="tools:read")
    async def list_tool_categories(self, tx: Tx) -> Data[list[CategoryView]]:
        return Data(await service.list_categories(tx))

    @post(
        "/import-openapi",
        summary="Import a tool from OpenAPI",
        stores=True,
        needs="tools:write",
        status_code=200,
        idempotent="long_running",
        cost="execute",
    )
    async def import_openapi_tool(
        self, context: Context, data: JSONBody[ImportOpenApi]
    ) -> Data[ImportedApi]:
        """Lists the operations of an OpenAPI 3.0 or 3.1 document, or creates one tool of type
        rest_api that calls those in `operations`, by their `id` or operationId. References are
        followed inside the document only. With `credential_id` the tool authenticates itself as
        the document says; the credential needs an access rule for the tool.
        """
        return Data(await openapi_import.import_openapi(context, data))

    @get("/{tool_id:str}", summary="Get a tool", needs="tools:read")
    async def get_tool(self, context: Context, tool_id: Id) -> Data[FullTool]:
        """Callers without tools:write see an empty `config`."""
        return Data(await service.show(context, tool_id))

    @put("/{tool_id:str}", summary="Change a tool", stores=True, needs="tools:write", record=_TOOL)
    async def update_tool(
        self, context: Context, tool_id: Id, data: JSONBody[UpdateTool]
    ) -> Data[FullTool]:
        """Any subset of the fields. `config` is merged by key (null removes a key);
        `auth_config` replaces the stored one, and is needed again when the tool gets another
        host.
        """
        return Data(await service.update(context, tool_id, data))

    @delete("/{tool_id:str}", summary="Delete a tool", needs="tools:delete")
    async def delete_tool(self, tx: Tx, tool_id: Id) -> None:
        """Deletes its executions too, and detaches it from every agent."""
        await service.delete(tx, tool_id)

    @post(
        "/{tool_id:str}/execute",
        summary="Run a tool",
        stores=True,
        needs="tools:execute",
        status_code=200,
        idempotent="long_running",
        cost="execute",
    )
    async def execute_tool(
        self, services: Services, principal: Principal, tool_id: Id, data: JSONBody[Execute]
    ) -> Data[ExecutionResult]:
        """Runs the tool on a worker and waits for it. When the tool fails, the response is a normal
        one whose `status` is `failed` or `timeout`, with an `error`.
        """
        scope = principal.scope
        result = await executions.execute(services, scope, tool_id, data.input, data.agent_id)
        return Data(result)

    @get("/{tool_id:str}/executions", summary="List executions", needs="tools:read")
    async def list_tool_executions(
        self,
        tx: Tx,
        principal: Principal,
        page_in: Page,
        tool_id: Id,
        status: OfStatus[Status] = None,
        after: Annotated[str | None, QueryParameter(schema_extra=TIME)] = None,
        before: Annotated[str | None, QueryParameter(schema_extra=TIME)] = None,
    ) -> Paged[ExecutionView]:
        """Finished executions, the latest first. Input and output of calls by agents are shown to
        callers with `conversations:read`.
        """
        filters = ExecutionFilter(status, parse_time("after", after), parse_time("before", before))
        return await executions.list_page(tx, principal, tool_id, page_in, filters)

    @get(
        "/{tool_id:str}/executions/{execution_id:str}",
        summary="Get an execution",
        needs="tools:read",
    )
    async def get_tool_execution(
        self, tx: Tx, principal: Principal, tool_id: Id, execution_id: Id
    ) -> Data[ExecutionView]:
        return Data(await executions.get(tx, principal, tool_id, execution_id))

    @get("/{tool_id:str}/stats", summary="Get a tool's statistics", needs="tools:read")
    async def get_tool_stats(
        self,
        tx: Tx,
        tool_id: Id,
        period: Annotated[Period, QueryParameter(description="How far back")] = "7d",
    ) -> Data[ToolStats]:
        return Data(await executions.get_stats(tx, tool_id, period))

    @post(
        "/{tool_id:str}/discover",
        summary="List the tools of an MCP server",
        needs="tools:execute",
        status_code=200,
        idempotent=False,
        cost="execute",
        errors=(502,),
    )
    async def discover_tools(
        self, services: Services, principal: Principal, tool_id: Id
    ) -> Data[list[Discovered]]:
        """For tools of type `custom`: the names that `config.tool` can have."""
        return Data(await discovery.discover(services, principal.scope, tool_id))


class AgentToolController(Controller):
    path = "/v1/agents/{agent_id:str}/tools"
    tags = ["Tools"]

    @get(summary="List an agent's tools", needs="agents:write")
    async def list_agent_tools(self, tx: Tx, agent_id: Id) -> Data[list[Attachment]]:
        """In their `display_order`."""
        return Data(await attachments.list_all(tx, agent_id))

    @post(summary="Attach a tool", needs="agents:write")
    async def attach_tool(
        self, context: Context, agent_id: Id, data: JSONBody[AttachTool]
    ) -> Data[NewAttachment]:
        return Data(await attachments.attach(context, agent_id, data))

    @get("/{tool_id:str}", summary="Get an attachment", needs="agents:write")
    async def get_agent_tool(self, tx: Tx, agent_id: Id, tool_id: Id) -> Data[Attachment]:
        return Data(await attachments.get(tx, agent_id, tool_id))

    @patch(
        "/{tool_id:str}", summary="Change an attachment", needs="agents:write", record=_ATTACHMENT
    )
    async def patch_agent_tool(
        self,
        context: Context,
        agent_id: Id,
        tool_id: Id,
        data: JSONBody[PatchAttachment],
    ) -> Data[Attachment]:
        """`config_override` replaces the previous one; null removes it."""
        return Data(await attachments.patch(context, agent_id, tool_id, data))

    @delete("/{tool_id:str}", summary="Detach a tool", needs="agents:write")
    async def detach_tool(self, tx: Tx, agent_id: Id, tool_id: Id) -> None:
        await attachments.detach(tx, agent_id, tool_id)
