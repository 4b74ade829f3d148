from typing import Final

from app.domain.area import Area
from app.security.permissions import DEVELOPERS, EVERYBODY, USERS, Permission
from db.storage_quota import CountedTable, UncountedTable

from .events import AgentCreated, AgentDeleted, AgentPublished, AgentUpdated

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
    tables=(
        CountedTable(
            "agents",
            "definitions",
            "octet_length(t.system_prompt) + octet_length(t.description)",
            changes="OLD.updated_at <> NEW.updated_at",
        ),
        CountedTable("agent_versions", "definitions", "octet_length(t.system_prompt)"),
        UncountedTable("sub_agents", "one for each pair of agents, which count"),
    ),
)
