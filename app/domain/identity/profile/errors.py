from app.kit.errors import NotFound


class AvatarNotFound(NotFound, code="avatar_not_found"): ...
