from typing import Annotated

from app.domain.area import Event, example


class _AgentEvent(Event):
    agent_id: Annotated[str, example("agt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Orders")]


class AgentCreated(_AgentEvent):
    """An agent was created."""

    type = "agent.created"

    status: Annotated[str, example("published")]
    primary_model: Annotated[str, example("local/smollm2")]


class AgentUpdated(_AgentEvent):
    """An agent was changed."""

    type = "agent.updated"

    status: Annotated[str, example("published")]
    version: Annotated[int, example(3)]
    changed: Annotated[list[str], example(["name"])]


class AgentPublished(_AgentEvent):
    """An agent was published."""

    type = "agent.published"


class AgentDeleted(_AgentEvent):
    """An agent was deleted, with everything that it owned."""

    type = "agent.deleted"
