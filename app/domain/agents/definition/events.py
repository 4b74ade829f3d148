from typing import Any, ClassVar

from app.domain.area import Event


class _AgentEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
    }

    agent_id: str
    name: str


class AgentCreated(_AgentEvent):
    type: ClassVar[str] = "agent.created"
    description: ClassVar[str] = "An agent was created"
    example: ClassVar[dict[str, Any]] = {
        **_AgentEvent.example,
        "status": "published",
        "primary_model": "local/smollm2",
    }

    status: str
    primary_model: str


class AgentUpdated(_AgentEvent):
    type: ClassVar[str] = "agent.updated"
    description: ClassVar[str] = "An agent was changed"
    example: ClassVar[dict[str, Any]] = {
        **_AgentEvent.example,
        "status": "published",
        "version": 3,
        "changed": ["name"],
    }

    status: str
    version: int
    changed: list[str]


class AgentPublished(_AgentEvent):
    type: ClassVar[str] = "agent.published"
    description: ClassVar[str] = "An agent was published"


class AgentDeleted(_AgentEvent):
    type: ClassVar[str] = "agent.deleted"
    description: ClassVar[str] = "An agent was deleted, with everything that it owned"
