"""What of an agent is shown to whom: how it works, only to callers who may change it."""

from collections.abc import Iterable

from app.domain.agents.definition.schemas import AgentSummary, FullAgent, KnowledgeBase
from app.security.principal import Principal

_WRITE_PERMISSION = "agents:write"


def hide_models(principal: Principal, agents: Iterable[AgentSummary]) -> None:
    if not principal.may(_WRITE_PERMISSION):
        for agent in agents:
            agent.primary_model, agent.temperature = "", None


def hide_behaviour(principal: Principal, agent: FullAgent) -> FullAgent:
    if not principal.may(_WRITE_PERMISSION):
        agent.primary_model = agent.system_prompt = ""
        agent.temperature = agent.max_tokens = None
        agent.tools, agent.sub_agents = [], []
        agent.knowledge_base = KnowledgeBase()
    return agent
