"""Drafts of agents: changes that are stored, and become live when they are published."""

from typing import Any, Final

import msgspec

from app.domain.platform.drafts import api as drafts
from app.domain.platform.drafts.api import Draft, LiveRecord
from app.domain.platform.drafts.schemas import PublishDraft
from app.domain.platform.history import api as history
from app.kit import validation
from app.kit.views import build_view
from app.security.principal import Principal
from db.models import Agent
from db.session import Tx

from . import draft_queries, service
from .draft_schemas import AgentDraft
from .schemas import AgentView, UpdateAgent

_FIELDS: Final = UpdateAgent.__struct_fields__


async def get(tx: Tx, agent_id: str) -> AgentDraft:
    row = await draft_queries.find(tx, agent_id)
    if row is None:
        raise service.not_found(agent_id)
    fields = {name: row[name] for name in _FIELDS}
    live = LiveRecord(row["tenant_id"], "agent", agent_id, row["version"], fields)
    return _build(live, drafts.read(row))


async def save(tx: Tx, principal: Principal, agent_id: str, data: UpdateAgent) -> AgentDraft:
    """Stores the draft. The agent, which does not change, is locked: its deletion waits."""
    live = _live(await service.find(tx, agent_id, for_update=True))
    return _build(live, await drafts.save(tx, principal, live, validation.set_fields(data)))


async def delete(tx: Tx, agent_id: str) -> None:
    await drafts.delete(tx, _live(await service.find(tx, agent_id, for_update=True)))


async def publish(tx: Tx, principal: Principal, agent_id: str, data: PublishDraft) -> AgentView:
    """Changes the agent as a PUT of the draft does, and deletes the draft."""
    agent = await service.find(tx, agent_id, for_update=True)
    live = _live(agent)
    draft = await drafts.find(tx, live)
    drafts.require_saved_at(draft, data.saved_at)
    if not data.overwrite:
        drafts.require_current(live, draft)
    values = validation.set_fields(msgspec.convert(draft.body, UpdateAgent))
    history.call_action(tx, "published")
    await service.change(tx, principal, agent, values, data.note)
    await drafts.delete(tx, live)
    return build_view(AgentView, agent)


def _live(agent: Agent) -> LiveRecord:
    fields: dict[str, Any] = {name: getattr(agent, name) for name in _FIELDS}
    return LiveRecord(agent.tenant_id, "agent", agent.id, agent.version, fields)


def _build(live: LiveRecord, draft: Draft) -> AgentDraft:
    return msgspec.convert({**draft.body, "draft": drafts.describe(live, draft)}, AgentDraft)
