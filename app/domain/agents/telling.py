"""What an agent can do is part of it, though not of its versions: its tools and sub-agents."""

from typing import Literal

from app.domain.agents.events import AgentUpdated
from app.domain.events import service as events
from db.models import Agent
from db.session import Tx


async def tell(tx: Tx, agent: Agent, changed: Literal["tools", "sub_agents"]) -> None:
    updated = AgentUpdated(agent.id, agent.name, agent.status, agent.version, [changed])
    await events.emit(tx, updated, tenant_id=agent.tenant_id)
