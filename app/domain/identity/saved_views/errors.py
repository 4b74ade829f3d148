from app.kit.errors import NotFound


class SavedViewNotFound(NotFound, code="view_not_found"): ...
