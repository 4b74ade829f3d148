from typing import Any, ClassVar, Literal

from app.domain.area import Event


class ChatStarted(Event):
    type: ClassVar[str] = "agent.chat.started"
    description: ClassVar[str] = "A conversation with an agent began"
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "conversation_id": "cnv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "source": "console",
    }

    agent_id: str
    conversation_id: str
    user_id: str | None
    source: str


class ChatMessage(Event):
    """Where the agent may not log messages, `content` stays out of the event log, too."""

    type: ClassVar[str] = "agent.chat.message"
    description: ClassVar[str] = "A message was added to a conversation"
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "conversation_id": "cnv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "message_id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "role": "user",
        "status": "complete",
        "content": "What is the weather like?",
    }

    agent_id: str
    conversation_id: str
    message_id: str
    role: Literal["user", "assistant"]
    status: Literal["complete", "interrupted"]
    content: str | None


class ChatCompleted(Event):
    """`job_id`, `status` and `message` are there when an asynchronous chat ended; `error` is the
    code of what went wrong, and the job says it in words.
    """

    type: ClassVar[str] = "agent.chat.completed"
    description: ClassVar[str] = "A conversation or an asynchronous chat ended"

    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "conversation_id": "cnv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "reason": "job",
        "job_id": "job_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "status": "completed",
        "message": "It is sunny.",
        "error": None,
    }

    agent_id: str
    conversation_id: str
    reason: Literal["job", "idle", "ended"]
    job_id: str | None = None
    status: Literal["completed", "failed", "cancelled"] | None = None
    message: str | None = None
    error: str | None = None
