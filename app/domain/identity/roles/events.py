from typing import Any, ClassVar

from app.domain.area import Event


class RolePermissionsChanged(Event):
    type: ClassVar[str] = "system.role.permissions_changed"
    description: ClassVar[str] = "The permissions of a role were changed, for the whole instance"
    example: ClassVar[dict[str, Any]] = {
        "role": "agent_developer",
        "added": ["agents:write"],
        "removed": ["agents:delete"],
    }

    role: str
    added: list[str]
    removed: list[str]
