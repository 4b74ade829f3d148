from typing import Annotated

from app.domain.area import Event, example


class RolePermissionsChanged(Event):
    """The permissions of a role were changed, for the whole instance."""

    type = "system.role.permissions_changed"

    role: Annotated[str, example("agent_developer")]
    added: Annotated[list[str], example(["agents:write"])]
    removed: Annotated[list[str], example(["agents:delete"])]
