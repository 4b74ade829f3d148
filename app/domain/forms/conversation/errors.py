from app.kit.errors import Conflict, NotFound


class FormConversationNotFound(NotFound, code="form_conversation_not_found"): ...


class MessageConflict(Conflict, code="message_conflict"):
    """Two messages of one conversation at the same time."""
