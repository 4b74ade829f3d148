from app.kit.errors import Conflict, NotFound


class DraftNotFound(NotFound, code="draft_not_found"): ...


class DraftOutdated(Conflict, code="draft_outdated"):
    """The record has changed since the draft began; `details` has what differs."""
