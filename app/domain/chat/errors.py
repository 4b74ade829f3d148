from app.http.errors import Conflict, NotFound


class ConversationNotFound(NotFound):
    code = "conversation_not_found"


class ConversationBusy(Conflict):
    code = "conversation_busy"


class JobNotFound(NotFound):
    code = "job_not_found"


class JobFinished(Conflict):
    code = "job_finished"
