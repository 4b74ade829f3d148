from app.kit.errors import Conflict, NotFound


class FormConversationNotFound(NotFound):
    code = "form_conversation_not_found"


class MessageConflict(Conflict):
    """Two messages of one conversation at the same time."""

    code = "message_conflict"
