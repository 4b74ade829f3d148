from typing import Final

from app.domain.agents.events import AgentCreated, AgentDeleted, AgentPublished, AgentUpdated
from app.domain.area import Area
from app.security.permissions import DEVELOPERS, EVERYBODY, USERS, Permission

AREA: Final = Area(
    name="agents",
    events=(AgentCreated, AgentUpdated, AgentPublished, AgentDeleted),
    permissions=(
        Permission("agents:read", "See agents: name, description and status", EVERYBODY),
        Permission(
            "agents:write",
            "Create and change agents, and see their prompts, documents and configuration",
            DEVELOPERS,
        ),
        Permission("agents:delete", "Delete agents", DEVELOPERS),
        Permission("agents:chat", "Chat with agents", USERS),
    ),
)
