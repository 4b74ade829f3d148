from typing import Final

from app.domain.area import Area
from app.domain.roles.events import RolePermissionsChanged
from app.security.permissions import DEVELOPERS, EVERYBODY, USERS, Permission

# Permissions of areas that do not exist yet; the API lists them already.
_RESERVED: Final = (
    Permission("forms:read", "See forms and submissions", EVERYBODY),
    Permission("forms:write", "Create and change forms", DEVELOPERS),
    Permission("forms:delete", "Delete forms", DEVELOPERS),
    Permission("forms:submit", "Submit forms", USERS),
)

AREA: Final = Area(
    name="roles",
    events=(RolePermissionsChanged,),
    permissions=(
        Permission("admin:roles", "Change what roles may do", instance_wide=True),
        *_RESERVED,
    ),
)
