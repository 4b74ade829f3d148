from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from app.domain.agents.llm.api import FinishReason
from app.domain.sources import SourceView
from app.kit.paging import Pagination
from app.kit.validation import NOT_BLANK

MessageText = Annotated[str, Meta(min_length=1, max_length=200_000, pattern=NOT_BLANK)]
MessageStatus = Literal["complete", "interrupted", "failed"]
JobStatus = Literal["pending", "running", "completed", "failed", "cancelled"]
Source = Literal["console", "async", "embed", "openai", "audio", "workflow", "preview"]
# Developers try an agent; nothing that is counted or announced of its conversations has these.
PREVIEW: Final = "preview"

_CONVERSATION_ID = "cnv_01k9x3m7e8c0v2q4r6t8w0y2a4"
_JOB_ID = "job_01k9x3m7e8c0v2q4r6t8w0y2a4"
_AGENT_ID = "agt_01k9x3m7e8c0v2q4r6t8w0y2a4"
_AT = "2026-01-01T12:00:00Z"


Replaces = Annotated[
    Annotated[str, Meta(max_length=64)] | None,
    Meta(
        description="The id of the last answer: this question and its answer take the place of "
        "that one and its question, to try again or to ask differently",
    ),
]


_ATTACHMENT_ID = "att_01k9x3m7e8c0v2q4r6t8w0y2a4"
AttachmentIds = Annotated[
    list[Annotated[str, Meta(max_length=64)]],
    Meta(max_length=5, description="Files of POST …/attachments that belong to this message"),
]


class AttachmentView(msgspec.Struct):
    """`characters` is how much of the file's text the agent can see; `truncated` says that the file
    has more.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": _ATTACHMENT_ID,
        "name": "invoice.pdf",
        "mime_type": "application/pdf",
        "size_bytes": 48_213,
        "characters": 3120,
        "truncated": False,
        "expires_at": "2026-01-02T12:00:00Z",
    }

    id: str
    name: str
    mime_type: str
    size_bytes: int
    characters: int
    truncated: bool
    expires_at: Annotated[datetime, Meta(description="Unless a message has it by then")]


class MessageAttachment(msgspec.Struct, frozen=True):
    id: str
    name: str
    size_bytes: int


class ChatRequest(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"message": "When does the shop open?"}

    message: MessageText
    conversation_id: Annotated[
        str | None,
        Meta(description="Continues one of your conversations; without it, a new one begins"),
    ] = None
    context: Annotated[
        dict[str, Any] | None,
        Meta(description="Facts for this turn alone; the model sees them beside the prompt"),
    ] = None
    replaces: Replaces = None
    attachments: AttachmentIds = []


ReplyEnd = Annotated[
    FinishReason,
    Meta(
        description="Why the answer ended: it was complete, reached the largest number of tokens, "
        "calls functions of the caller, or was stopped by the provider's content filter"
    ),
]


IsRefusal = Annotated[
    bool, Meta(description="Whether the model refused to answer, as its provider reports")
]


class ReplyMessage(msgspec.Struct):
    id: str
    role: Literal["assistant"]
    content: str
    created_at: datetime


class TokenUsage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


CutChars = Annotated[
    int | msgspec.UnsetType,
    Meta(
        description="The length of the whole text, where only its beginning is here: read it from "
        "…/messages/:message_id/text"
    ),
]


class ToolCallView(msgspec.Struct):
    """`parent_id` names the delegation within which a sub-agent made this call."""

    id: str
    tool: str
    tool_id: str | None
    input: Any
    output: Any
    status: Annotated[
        Literal["completed", "failed", "timeout", "requested"],
        Meta(description="`requested`: the caller runs the function, and has not sent its result"),
    ]
    execution_time_ms: int
    parent_id: str | None = None
    input_chars: CutChars = msgspec.UNSET
    output_chars: CutChars = msgspec.UNSET


_CALL = {
    "id": "call_1",
    "tool": "Researcher",
    "tool_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a5",
    "input": {"task": "Find the opening hours"},
    "output": "The shop opens at 9.",
    "status": "completed",
    "execution_time_ms": 640,
    "parent_id": None,
}


class ChatReply(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "conversation_id": _CONVERSATION_ID,
        "message": {
            "id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
            "role": "assistant",
            "content": "The shop opens at 9 in the morning [1].",
            "created_at": _AT,
        },
        "usage": {"prompt_tokens": 42, "completion_tokens": 10, "total_tokens": 52},
        "sources": [SourceView.example],
        "tool_calls": [_CALL],
        "finish_reason": "stop",
    }

    conversation_id: str
    message: ReplyMessage
    usage: TokenUsage
    sources: list[SourceView]
    tool_calls: list[ToolCallView]
    finish_reason: ReplyEnd = "stop"
    is_refusal: IsRefusal = False


class JobAccepted(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "job_id": _JOB_ID,
        "status": "pending",
        "conversation_id": _CONVERSATION_ID,
    }

    job_id: str
    status: JobStatus
    conversation_id: str


class JobError(msgspec.Struct, omit_defaults=True):
    code: str
    message: str
    details: dict[str, Any] | None = None


class JobView(msgspec.Struct, omit_defaults=True):
    example: ClassVar[dict[str, Any]] = {
        "job_id": _JOB_ID,
        "status": "completed",
        "conversation_id": _CONVERSATION_ID,
        "reply": ChatReply.example,
        "created_at": _AT,
        "finished_at": "2026-01-01T12:00:02Z",
    }

    job_id: str
    status: JobStatus
    conversation_id: str
    created_at: datetime
    reply: ChatReply | None = None
    error: JobError | None = None
    finished_at: datetime | None = None


class Training(msgspec.Struct):
    status: Literal["idle", "training", "ready", "failed"] = "idle"
    documents_total: int = 0
    documents_done: int = 0


class AgentStatus(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "agent_id": _AGENT_ID,
        "status": "published",
        "is_online": True,
        "active_conversations": 3,
        "training": {"status": "idle", "documents_total": 0, "documents_done": 0},
    }

    agent_id: str
    status: Literal["draft", "published", "archived"]
    is_online: bool
    active_conversations: int
    training: Training


class LogEntry(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "conversation_id": _CONVERSATION_ID,
        "type": "message",
        "role": "user",
        "content": "When does the shop open?",
        "data": {},
        "created_at": _AT,
    }

    id: str
    conversation_id: Annotated[
        str | None, Meta(description="null for training, which belongs to no conversation")
    ]
    type: Literal["message", "tool_call", "token_usage", "training"]
    role: str | None
    content: str | None
    data: dict[str, Any]
    created_at: datetime


class Visitor(msgspec.Struct, frozen=True):
    """A customer of the site that an agent is embedded in, as the site's own server names them."""

    id: str
    name: str | None = None
    email: str | None = None


class ConversationView(msgspec.Struct):
    """`visitor` is null for visitors who are not signed in at their site."""

    example: ClassVar[dict[str, Any]] = {
        "id": _CONVERSATION_ID,
        "agent_id": _AGENT_ID,
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "visitor": None,
        "source": "console",
        "title": "When does the shop open?",
        "status": "active",
        "message_count": 2,
        "created_at": _AT,
        "last_message_at": _AT,
        "ended_at": None,
    }

    id: str
    agent_id: str
    user_id: str | None
    visitor: Visitor | None
    source: Source
    title: str
    status: Literal["active", "ended"]
    message_count: int
    created_at: datetime
    last_message_at: datetime
    ended_at: datetime | None


class CustomerConversation(msgspec.Struct):
    """A conversation as its customer sees it: a visitor who is signed in at their site."""

    example: ClassVar[dict[str, Any]] = {
        "session_id": "usr_5r8d0c1m7e8c0v2q4r6t8k0j2a4b6c8d",
        "title": "When does the shop open?",
        "last_message_at": _AT,
    }

    session_id: str
    title: str
    last_message_at: datetime


class Feedback(msgspec.Struct, frozen=True):
    rating: Literal["up", "down"]
    comment: str | None


class RateMessage(msgspec.Struct, kw_only=True):
    """The last rating of a person counts; null withdraws it, with its comment."""

    example: ClassVar[dict[str, Any]] = {"rating": "down", "comment": "The shop opens at ten."}

    rating: Literal["up", "down"] | None
    comment: Annotated[
        Annotated[str, Meta(max_length=2000)] | None, Meta(description="What was good or wrong")
    ] = None


class RatedMessage(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "message_id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "feedback": RateMessage.example,
    }

    message_id: str
    feedback: Feedback | None


class MessageError(msgspec.Struct):
    code: str
    message: str


class VisitorMessage(msgspec.Struct):
    """A message as a visitor sees it, without the calls of tools. `feedback` is the caller's own
    rating. `error` says why an answer failed; to visitors, only that it did.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "role": "assistant",
        "content": "The shop opens at 9 in the morning [1].",
        "status": "complete",
        "sources": [SourceView.example],
        "feedback": None,
        "created_at": _AT,
        "error": None,
        "attachments": [],
    }

    id: str
    role: Literal["user", "assistant"]
    content: str
    status: MessageStatus
    sources: list[SourceView]
    feedback: Feedback | None
    created_at: datetime
    error: MessageError | None
    attachments: list[MessageAttachment]


class MessageView(VisitorMessage):
    example: ClassVar[dict[str, Any]] = {**VisitorMessage.example, "tool_calls": [_CALL]}

    tool_calls: list[ToolCallView]
    content_chars: CutChars = msgspec.UNSET


class MessagePage(msgspec.Struct):
    """A page by its number has `pagination`. One by `before`, `after` or `limit` has `has_more`:
    whether there are more messages before it, or after it with `after`.
    """

    example: ClassVar[dict[str, Any]] = {"data": [MessageView.example], "has_more": False}

    data: list[MessageView]
    pagination: Pagination | msgspec.UnsetType = msgspec.UNSET
    has_more: bool | msgspec.UnsetType = msgspec.UNSET


class TextSlice(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "text": "The shop opens at 9",
        "offset": 0,
        "total_chars": 39,
        "next_offset": 19,
    }

    text: str
    offset: int
    total_chars: int
    next_offset: Annotated[int | None, Meta(description="null at the end of the text")]
