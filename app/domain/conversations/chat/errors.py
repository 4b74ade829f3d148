from app.kit.errors import ApiError, Conflict, NotFound


class ConversationNotFound(NotFound, code="conversation_not_found"): ...


class ConversationBusy(Conflict, code="conversation_busy"): ...


class JobNotFound(NotFound, code="job_not_found"): ...


class JobFinished(Conflict, code="job_finished"): ...


class NoOutcome(ApiError, status=500, code="internal_error"):
    """Every attempt to answer ended without an outcome."""
