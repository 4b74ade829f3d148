from typing import Final

from app.kit.errors import NO_RETRY, ApiError, Conflict, NotFound

# All that visitors read of a failure: the error of a provider may name keys, accounts and models.
CANNOT_ANSWER: Final = "The agent cannot answer right now; try again later"


class ConversationNotFound(NotFound, code="conversation_not_found"): ...


class ConversationBusy(Conflict, code="conversation_busy"): ...


class NotLastAnswer(Conflict, code="not_last_answer"):
    def __init__(self, message: str) -> None:
        super().__init__(message, headers=NO_RETRY)


class MessageNotFound(NotFound, code="message_not_found"): ...


class MessageNotRatable(Conflict, code="message_not_ratable"):
    """Only the agent's messages can be rated, and none of a preview."""


class JobNotFound(NotFound, code="job_not_found"): ...


class JobFinished(Conflict, code="job_finished"): ...


class NoOutcome(ApiError, status=500, code="internal_error"):
    """Every attempt to answer ended without an outcome."""
