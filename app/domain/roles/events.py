from typing import ClassVar

from app.domain.events.event import Event


class RolePermissionsChanged(Event):
    type: ClassVar[str] = "system.role.permissions_changed"
    description: ClassVar[str] = "What a role may do was changed, for the whole instance"

    role: str
    added: list[str]
    removed: list[str]
