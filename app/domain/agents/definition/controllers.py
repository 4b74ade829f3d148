from litestar import Controller, delete, get, patch, post, put
from litestar.params import JSONBody

from app.http.dependencies import Id, Page, Principal, Services, Tx
from app.http.paging import OfStatus, Search, Sort
from app.http.records import Record, lock_in_order, lock_row
from app.kit.paging import Paged
from app.kit.views import Data

from . import batch, service, sub_agents
from .schemas import (
    AgentBatch,
    AgentBatchResult,
    AgentSummary,
    AgentView,
    AttachSubAgent,
    CreateAgent,
    CreateDirectSubAgent,
    DirectSubAgentView,
    FullAgent,
    LogSettings,
    PatchSubAgent,
    Status,
    SubAgentView,
    UpdateAgent,
    UpdateDirectSubAgent,
    UpdateLogSettings,
    VersionDiff,
    VersionView,
)

_AGENT = Record(lock_row("agents", id="agent_id"))
_LINK = Record(
    lock_in_order(
        lock_row("sub_agents", agent_id="agent_id", child_id="child_id"),
        lock_row("agents", id="child_id"),
    )
)


class AgentController(Controller):
    path = "/api/v1/agents"
    tags = ["Agents"]

    @get(summary="List agents", needs="agents:read")
    async def list_agents(
        self,
        tx: Tx,
        principal: Principal,
        page_in: Page,
        search: Search = None,
        status: OfStatus[Status] = None,
        sort: Sort = None,
    ) -> Paged[AgentSummary]:
        """`search` looks in names. Sort by name, status, created_at or updated_at; by default the
        newest first. Callers without agents:write see no model: `primary_model` is empty, and
        `temperature` is null.
        """
        return await service.list_page(
            tx, principal, page_in, search=search, status=status, sort=sort
        )

    @post(summary="Create an agent", stores=True, needs="agents:write")
    async def create_agent(
        self, tx: Tx, principal: Principal, data: JSONBody[CreateAgent]
    ) -> AgentView:
        return await service.create(tx, principal, data)

    @get("/{agent_id:str}", summary="Get an agent", needs="agents:read")
    async def get_agent(self, tx: Tx, principal: Principal, agent_id: Id) -> FullAgent:
        """Callers without agents:write see its name, description and status. The model, the prompt,
        the tools, the knowledge base and the sub-agents are empty, the numbers of its configuration
        null.
        """
        return await service.get(tx, principal, agent_id)

    @put(
        "/{agent_id:str}",
        summary="Change an agent",
        stores=True,
        needs="agents:write",
        record=_AGENT,
    )
    async def update_agent(
        self, tx: Tx, principal: Principal, agent_id: Id, data: JSONBody[UpdateAgent]
    ) -> AgentView:
        """Any subset of the fields. A change of behaviour (model, prompt, temperature, length)
        creates a new version.
        """
        return await service.update(tx, principal, agent_id, data)

    @delete("/{agent_id:str}", summary="Delete an agent", needs="agents:delete")
    async def delete_agent(self, tx: Tx, services: Services, agent_id: Id) -> None:
        """Also deletes its conversations, embed keys, versions and direct sub-agents."""
        await service.delete(tx, services, agent_id)

    @get("/{agent_id:str}/versions", summary="List an agent's versions", needs="agents:write")
    async def list_agent_versions(self, tx: Tx, page_in: Page, agent_id: Id) -> Paged[VersionView]:
        """The newest first; the first one is the current version."""
        return await service.list_versions(tx, agent_id, page_in)

    @post(
        "/{agent_id:str}/versions/{version:str}/restore",
        summary="Restore a version",
        stores=True,
        needs="agents:write",
        record=Record(_AGENT.lock, "get_agent"),
        status_code=200,
    )
    async def restore_agent_version(
        self, tx: Tx, principal: Principal, agent_id: Id, version: Id
    ) -> AgentView:
        return await service.restore_version(tx, principal, agent_id, version)

    @get(
        "/{agent_id:str}/versions/{from_version:str}/diff/{to_version:str}",
        summary="Compare two versions",
        needs="agents:write",
    )
    async def diff_agent_versions(
        self, tx: Tx, agent_id: Id, from_version: Id, to_version: Id
    ) -> Data[VersionDiff]:
        """The changes that lead from the first version to the second one. Texts are cut after
        10,000 characters, and the list after 1,000 changes; then `truncated` is true.
        """
        return Data(await service.diff_versions(tx, agent_id, from_version, to_version))

    @get("/{agent_id:str}/log-settings", summary="Get log settings", needs="agents:write")
    async def get_log_settings(self, tx: Tx, agent_id: Id) -> LogSettings:
        return await service.get_log_settings(tx, agent_id)

    @put(
        "/{agent_id:str}/log-settings",
        summary="Change log settings",
        needs="agents:write",
        record=_AGENT,
    )
    async def update_log_settings(
        self, tx: Tx, principal: Principal, agent_id: Id, data: JSONBody[UpdateLogSettings]
    ) -> LogSettings:
        """Applies to new messages. Messages, tool calls and conversations older than
        `retention_days` are deleted.
        """
        return await service.update_log_settings(tx, principal, agent_id, data)


class SubAgentController(Controller):
    path = "/api/v1/agents/{agent_id:str}/sub-agents"
    tags = ["Sub-agents"]

    @get(summary="List sub-agents", needs="agents:write")
    async def list_sub_agents(self, tx: Tx, agent_id: Id) -> Data[list[SubAgentView]]:
        return Data(await sub_agents.list_all(tx, agent_id))

    @post(
        "/attach",
        summary="Attach an agent",
        needs="agents:write",
        record=Record(reader="get_sub_agent"),
    )
    async def attach_sub_agent(
        self, tx: Tx, principal: Principal, agent_id: Id, data: JSONBody[AttachSubAgent]
    ) -> SubAgentView:
        """Lets the agent delegate tasks to another existing agent. A cycle is refused with 409
        `sub_agent_cycle`.
        """
        principal.require_agent(data.agent_id)
        return await sub_agents.attach(tx, agent_id, data)

    @post("/direct", summary="Create a sub-agent", stores=True, needs="agents:write")
    async def create_sub_agent(
        self, tx: Tx, principal: Principal, agent_id: Id, data: JSONBody[CreateDirectSubAgent]
    ) -> DirectSubAgentView:
        """An agent for this parent alone: lists omit it, and it is deleted with its parent."""
        return await sub_agents.create(tx, principal, agent_id, data)

    @get("/direct/{child_id:str}", summary="Get a direct sub-agent", needs="agents:write")
    async def get_direct_sub_agent(self, tx: Tx, agent_id: Id, child_id: Id) -> DirectSubAgentView:
        return await sub_agents.get_direct(tx, agent_id, child_id)

    @put(
        "/direct/{child_id:str}",
        summary="Change a direct sub-agent",
        stores=True,
        needs="agents:write",
        record=_LINK,
    )
    async def update_sub_agent(
        self,
        tx: Tx,
        principal: Principal,
        agent_id: Id,
        child_id: Id,
        data: JSONBody[UpdateDirectSubAgent],
    ) -> DirectSubAgentView:
        return await sub_agents.update_direct(tx, principal, agent_id, child_id, data)

    @get("/{child_id:str}", summary="Get a sub-agent", needs="agents:write")
    async def get_sub_agent(self, tx: Tx, agent_id: Id, child_id: Id) -> SubAgentView:
        return await sub_agents.get(tx, agent_id, child_id)

    @patch("/{child_id:str}", summary="Change a delegation", needs="agents:write", record=_LINK)
    async def patch_sub_agent(
        self, tx: Tx, agent_id: Id, child_id: Id, data: JSONBody[PatchSubAgent]
    ) -> SubAgentView:
        return await sub_agents.patch(tx, agent_id, child_id, data)

    @delete("/{child_id:str}", summary="Remove a sub-agent", needs="agents:write")
    async def delete_sub_agent(
        self, tx: Tx, services: Services, principal: Principal, agent_id: Id, child_id: Id
    ) -> None:
        """An attached agent is only detached; a direct one is deleted, which needs
        agents:delete.
        """
        await sub_agents.detach(tx, services, principal, agent_id, child_id)


class AgentBatchController(Controller):
    path = "/v1/agents/batch"
    tags = ["Agents"]

    @post(summary="Change many agents", needs="agents:write", status_code=200)
    async def change_agents(
        self, tx: Tx, services: Services, principal: Principal, data: JSONBody[AgentBatch]
    ) -> AgentBatchResult:
        """1 to 100 operations in one request, which counts as one request for rate limits. Each
        operation has its own HTTP status in the result; deleting needs agents:delete.
        """
        return AgentBatchResult(await batch.run(tx, services, principal, data.operations))
