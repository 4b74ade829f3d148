from typing import Annotated, Literal

from app.domain.area import Event, example


class ChatStarted(Event):
    """A conversation with an agent began."""

    type = "agent.chat.started"

    agent_id: Annotated[str, example("agt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    conversation_id: Annotated[str, example("cnv_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    user_id: Annotated[str | None, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    source: Annotated[str, example("console")]


class ChatMessage(Event):
    """A message was added to a conversation.

    Where the agent may not log messages, `content` stays out of the event log, too.
    """

    type = "agent.chat.message"

    agent_id: Annotated[str, example("agt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    conversation_id: Annotated[str, example("cnv_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    message_id: Annotated[str, example("msg_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    role: Annotated[Literal["user", "assistant"], example("user")]
    status: Annotated[Literal["complete", "interrupted", "failed"], example("complete")]
    content: Annotated[str | None, example("What is the weather like?")]


class ChatFailed(Event):
    """An agent could not answer.

    The question stays in the conversation. `message_id` is the failed answer, which has what was
    said before the failure, and the error in words. `reason` is the kind of a model's failure.
    """

    type = "agent.chat.failed"

    agent_id: Annotated[str, example("agt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    conversation_id: Annotated[str, example("cnv_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    message_id: Annotated[str, example("msg_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    source: Annotated[str, example("console")]
    code: Annotated[str, example("provider_error")]
    reason: Annotated[str | None, example("timeout")]


class ChatCompleted(Event):
    """A conversation or an asynchronous chat ended.

    `job_id`, `status` and `message` are there when an asynchronous chat ended; `error` is the code
    of what went wrong, and the job says it in words.
    """

    type = "agent.chat.completed"

    agent_id: Annotated[str, example("agt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    conversation_id: Annotated[str, example("cnv_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    reason: Annotated[Literal["job", "idle", "ended"], example("job")]
    job_id: Annotated[str | None, example("job_01k9x3m7e8c0v2q4r6t8w0y2a4")] = None
    status: Annotated[Literal["completed", "failed", "cancelled"] | None, example("completed")] = (
        None
    )
    message: Annotated[str | None, example("It is sunny.")] = None
    error: Annotated[str | None, example(None)] = None


class ChatRated(Event):
    """Somebody rated an answer, changed the rating, or withdrew it: then `rating` is null.

    Where the agent may not log messages, `comment` stays out of the event log, too.
    """

    type = "agent.chat.rated"

    agent_id: Annotated[str, example("agt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    conversation_id: Annotated[str, example("cnv_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    message_id: Annotated[str, example("msg_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    rating: Annotated[Literal["up", "down"] | None, example("down")]
    comment: Annotated[str | None, example("The shop opens at ten.")] = None
