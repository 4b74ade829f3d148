from typing import ClassVar

from app.domain.events.event import Event


class AgentCreated(Event):
    type: ClassVar[str] = "agent.created"
    description: ClassVar[str] = "An agent was created"

    agent_id: str
    name: str
    status: str
    primary_model: str


class AgentUpdated(Event):
    type: ClassVar[str] = "agent.updated"
    description: ClassVar[str] = "An agent was changed"

    agent_id: str
    name: str
    status: str
    version: int
    changed: list[str]


class AgentPublished(Event):
    type: ClassVar[str] = "agent.published"
    description: ClassVar[str] = "An agent was published"

    agent_id: str
    name: str


class AgentDeleted(Event):
    type: ClassVar[str] = "agent.deleted"
    description: ClassVar[str] = "An agent was deleted, with everything that it owned"

    agent_id: str
    name: str
