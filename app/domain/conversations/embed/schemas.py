from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.conversations.chat.schemas import (
    AttachmentIds,
    CustomerConversation,
    Replaces,
    ReplyEnd,
    VisitorMessage,
)
from app.domain.sources import SourceView
from app.kit import validation
from app.kit.validation import NOT_BLANK, ONE_LINE

_RULES = {
    "require_session_token": True,
    "require_user_token": False,
    "allow_voice": False,
    "allow_feedback": True,
    "allow_attachments": False,
    "max_messages_per_day": 1000,
    "max_tokens_per_day": None,
}
_KEY = {
    "id": "emk_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "name": "Our shop",
    "key_prefix": "emb_Zk3vQ0aB",
    "allowed_domains": ["shop.example.com"],
    **_RULES,
    "created_at": "2026-01-01T12:00:00Z",
}
_SECRET = "ids_mK2vQ0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2y"  # noqa: S105  # an example
_CODE = (
    '<script async src="https://parley.example.com/embed/widget.js" '
    'data-agent-id="agt_01k9x3m7e8c0v2q4r6t8w0y2a4" data-api-key="emb_…"></script>'
)

KeyName = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
AllowedDomains = Annotated[
    list[Annotated[str, Meta(max_length=300)]],
    Meta(
        max_length=100,
        description="Hosts (shop.example.com, *.example.com), origins (https://…) or *; "
        "none means no rule",
    ),
]
RequireSessionToken = Annotated[
    bool, Meta(description="Chat only with visitor tokens, never with the key itself")
]
RequireUserToken = Annotated[
    bool,
    Meta(description="Only for customers whom a user token names, signed with identity_secret"),
]
AllowVoice = Annotated[
    bool, Meta(description="Visitors may speak to the agent, and hear its replies")
]
AllowFeedback = Annotated[bool, Meta(description="Visitors may rate the agent's answers")]
AllowAttachments = Annotated[bool, Meta(description="Visitors may attach files to their messages")]
MaxMessages = Annotated[
    Annotated[int, Meta(ge=1, le=10_000_000)] | None,
    Meta(description="For all visitors together, per UTC day; null means no limit"),
]
MaxTokens = Annotated[
    Annotated[int, Meta(ge=1, le=1_000_000_000_000)] | None,
    Meta(description="For all visitors together, per UTC day; null means no limit"),
]


class CreateEmbedKey(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "agent_id": _KEY["agent_id"],
        "name": "Our shop",
        "allowed_domains": ["shop.example.com"],
        **_RULES,
    }

    agent_id: str
    name: KeyName
    allowed_domains: AllowedDomains = []
    require_session_token: RequireSessionToken = False
    require_user_token: RequireUserToken = False
    allow_voice: AllowVoice = False
    allow_feedback: AllowFeedback = True
    allow_attachments: AllowAttachments = False
    max_messages_per_day: MaxMessages = None
    max_tokens_per_day: MaxTokens = None


class UpdateEmbedKey(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"require_session_token": True, "allow_voice": True}

    name: KeyName | msgspec.UnsetType = msgspec.UNSET
    allowed_domains: AllowedDomains | msgspec.UnsetType = msgspec.UNSET
    require_session_token: RequireSessionToken | msgspec.UnsetType = msgspec.UNSET
    require_user_token: RequireUserToken | msgspec.UnsetType = msgspec.UNSET
    allow_voice: AllowVoice | msgspec.UnsetType = msgspec.UNSET
    allow_feedback: AllowFeedback | msgspec.UnsetType = msgspec.UNSET
    allow_attachments: AllowAttachments | msgspec.UnsetType = msgspec.UNSET
    max_messages_per_day: MaxMessages | msgspec.UnsetType = msgspec.UNSET
    max_tokens_per_day: MaxTokens | msgspec.UnsetType = msgspec.UNSET


class _EmbedKey(msgspec.Struct):
    id: str
    agent_id: str
    name: str
    key_prefix: str
    allowed_domains: list[str]
    require_session_token: bool
    require_user_token: bool
    allow_voice: bool
    allow_feedback: bool
    allow_attachments: bool
    max_messages_per_day: int | None
    max_tokens_per_day: int | None
    created_at: datetime


class CreatedEmbedKey(_EmbedKey):
    """`api_key` is public: it is part of the snippet. `identity_secret` is for your server alone,
    which signs user tokens with it.
    """

    example: ClassVar[dict[str, Any]] = {
        **_KEY,
        "api_key": "emb_Zk3vQ0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2y",
        "identity_secret": _SECRET,
        "embed_code": _CODE,
    }

    api_key: str
    identity_secret: str
    embed_code: Annotated[str, Meta(description="The tag for your pages, with the key in it")]


class EmbedKeyView(_EmbedKey):
    example: ClassVar[dict[str, Any]] = {
        **_KEY,
        "has_identity_secret": True,
        "messages_today": 12,
        "tokens_today": 4711,
        "last_used_at": None,
    }

    has_identity_secret: bool
    messages_today: Annotated[int, Meta(description="Counted while the key has a daily limit")]
    tokens_today: Annotated[int, Meta(description="Counted while the key has a daily limit")]
    last_used_at: datetime | None


class NewIdentitySecret(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"id": _KEY["id"], "identity_secret": _SECRET}

    id: str
    identity_secret: str


class Snippet(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "embed_code": _CODE,
        "agent_id": _KEY["agent_id"],
        "agent_name": "Shop assistant",
        "hint": None,
    }

    embed_code: str
    agent_id: str
    agent_name: str
    hint: Annotated[
        str | None, Meta(description="Where to get a key; null when the code has one")
    ] = None


SessionId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        pattern=ONE_LINE,
        description="Chosen by you and hard to guess, or of POST …/session; the same id continues "
        "its conversation",
    ),
]


class PublicChatRequest(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "session_id": "b3f0c6b2-1f0e-4a57-9c53-3f6b7d2e9a10",
        "message": "When does the shop open?",
    }

    session_id: SessionId
    message: Annotated[str, Meta(min_length=1, max_length=32_000, pattern=NOT_BLANK)]
    replaces: Replaces = None
    attachments: AttachmentIds = []


class AssistantReply(msgspec.Struct):
    id: str
    role: Literal["assistant"]
    content: str
    created_at: datetime


class PublicReply(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "session_id": PublicChatRequest.example["session_id"],
        "conversation_id": "cnv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "assistant_reply": {
            "id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
            "role": "assistant",
            "content": "The shop opens at 9 in the morning [1].",
            "created_at": "2026-01-01T12:00:00Z",
        },
        "sources": [SourceView.example],
        "finish_reason": "stop",
    }

    session_id: str
    conversation_id: str
    assistant_reply: AssistantReply
    sources: list[SourceView]
    finish_reason: ReplyEnd


# Sessions of visitors

_SESSION_PATTERN = r"^(?![\s\S]*\n)vis_[A-Za-z0-9_-]{32}$"
validation.describe_pattern(_SESSION_PATTERN, "must be the id of a session of POST …/session")
_SESSION_ID = "vis_Zk3vQ0aB1cD2eF3gH4iJ5kL6mN7oP8qR"


_CONVERSATION_PATTERN = r"^(?![\s\S]*\n)(new|usr_[0-9a-v]{32}(_[0-9a-v]{8})?)$"
validation.describe_pattern(
    _CONVERSATION_PATTERN, "must be new, or a session_id of GET …/conversations"
)


class OpenSession(msgspec.Struct, kw_only=True):
    """Without fields, a new session."""

    example: ClassVar[dict[str, Any]] = {"session_id": _SESSION_ID}

    session_id: Annotated[
        Annotated[str, Meta(pattern=_SESSION_PATTERN)] | None,
        Meta(description="Continues an earlier session of this browser"),
    ] = None
    user_token: Annotated[
        Annotated[str, Meta(min_length=1, max_length=8192)] | None,
        Meta(
            description="A JWT of your server, signed with HS256 and the key's identity_secret: "
            "sub, exp, and optionally name, email and groups",
        ),
    ] = None
    conversation: Annotated[
        Annotated[str, Meta(pattern=_CONVERSATION_PATTERN)] | None,
        Meta(
            description="For customers, whom a user token names: `new` begins another "
            "conversation, a session_id of GET …/conversations continues that one. Without it, the "
            "latest is continued"
        ),
    ] = None


class VisitorSession(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "token": "vst_eyJhbGciOiJIUzI1NiJ9.e30.6dQlAe0cNq8xY2Zk3vQ0aB1cD2eF3gH4iJ5kL6mN7oP",
        "session_id": _SESSION_ID,
        "expires_in": 900,
    }

    token: str
    session_id: str
    expires_in: int


class SessionAgent(msgspec.Struct):
    name: str
    allow_voice: bool
    allow_feedback: bool
    allow_attachments: bool


class SessionState(msgspec.Struct):
    """`messages` has the newest 100, the oldest of them first. `visitor_name` is the name in the
    user token. `has_earlier`: the customer has other conversations, which GET …/conversations
    lists.
    """

    example: ClassVar[dict[str, Any]] = {
        "session_id": _SESSION_ID,
        "agent": {
            "name": "Shop assistant",
            "allow_voice": False,
            "allow_feedback": True,
            "allow_attachments": False,
        },
        "visitor_name": None,
        "messages": [VisitorMessage.example],
        "has_earlier": False,
    }

    session_id: str
    agent: SessionAgent
    visitor_name: str | None
    messages: list[VisitorMessage]
    has_earlier: bool


class CustomerConversations(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"data": [CustomerConversation.example]}

    data: list[CustomerConversation]
