from app.kit.errors import NotFound


class RoleNotFound(NotFound, code="role_not_found"): ...
