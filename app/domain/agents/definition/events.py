from typing import Any, ClassVar

from app.domain.area import Event


class AgentCreated(Event):
    type: ClassVar[str] = "agent.created"
    description: ClassVar[str] = "An agent was created"
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
        "status": "published",
        "primary_model": "local/smollm2",
    }

    agent_id: str
    name: str
    status: str
    primary_model: str


class AgentUpdated(Event):
    type: ClassVar[str] = "agent.updated"
    description: ClassVar[str] = "An agent was changed"
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
        "status": "published",
        "version": 3,
        "changed": ["name"],
    }

    agent_id: str
    name: str
    status: str
    version: int
    changed: list[str]


class AgentPublished(Event):
    type: ClassVar[str] = "agent.published"
    description: ClassVar[str] = "An agent was published"
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
    }

    agent_id: str
    name: str


class AgentDeleted(Event):
    type: ClassVar[str] = "agent.deleted"
    description: ClassVar[str] = "An agent was deleted, with everything that it owned"
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
    }

    agent_id: str
    name: str
