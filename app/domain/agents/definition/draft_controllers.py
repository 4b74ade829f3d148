from typing import Final

from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody

from app.domain.platform.drafts.errors import DraftNotFound
from app.domain.platform.drafts.schemas import PublishDraft
from app.http.dependencies import Id, Principal, Tx
from app.http.records import Record, lock_row

from . import drafts
from .draft_schemas import AgentDraft
from .schemas import AgentView, UpdateAgent

# A draft that is not stored yet has no row.
_DRAFT: Final = Record(lock_row("agents", id="agent_id"), absent=DraftNotFound)
_AGENT: Final = Record(_DRAFT.lock, "get_agent")


class AgentDraftController(Controller):
    path = "/api/v1/agents/{agent_id:str}/draft"
    tags = ["Agents"]

    @get(summary="Get an agent's draft", needs="agents:write")
    async def get_agent_draft(self, tx: Tx, agent_id: Id) -> AgentDraft:
        """What a PUT stored here, and how it differs from the agent. Without a draft: 404
        `draft_not_found`.
        """
        return await drafts.get(tx, agent_id)

    @put(summary="Save an agent's draft", stores=True, needs="agents:write", record=_DRAFT)
    async def save_agent_draft(
        self, tx: Tx, principal: Principal, agent_id: Id, data: JSONBody[UpdateAgent]
    ) -> AgentDraft:
        """Any subset of the fields of an agent, in place of the draft before. The agent does not
        change until the draft is published. `If-None-Match: *` stores only a first draft.
        """
        return await drafts.save(tx, principal, agent_id, data)

    @delete(summary="Discard an agent's draft", needs="agents:write")
    async def delete_agent_draft(self, tx: Tx, agent_id: Id) -> None:
        await drafts.delete(tx, agent_id)

    @post(
        "/publish",
        summary="Publish an agent's draft",
        stores=True,
        needs="agents:write",
        status_code=200,
        errors=(409,),
        record=_AGENT,
    )
    async def publish_agent_draft(
        self, tx: Tx, principal: Principal, agent_id: Id, data: JSONBody[PublishDraft]
    ) -> AgentView:
        """Changes the agent as `PUT /api/v1/agents/:id` does, and deletes the draft. `note` is kept
        with the new version, if the behaviour changes. An agent that has changed since the draft
        began: 409 `draft_outdated`; `details` has `changes` from the agent to the draft, and
        `live_changes` since the draft began. `overwrite` publishes nevertheless. With `saved_at`,
        a draft that somebody saved since is not published: 412 `precondition_failed`.
        """
        return await drafts.publish(tx, principal, agent_id, data)
