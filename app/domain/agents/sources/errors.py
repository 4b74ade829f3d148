from app.kit.errors import Conflict, NotFound


class SourceNotFound(NotFound, code="source_not_found"): ...


class SourceBusy(Conflict, code="source_busy"):
    """A sync of the source runs, or its server wants no requests yet."""
