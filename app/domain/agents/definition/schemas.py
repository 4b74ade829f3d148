from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.domain.batch import Batch, OperationResult, build_example
from app.kit.json_diff import Change
from app.kit.validation import NOT_BLANK, ONE_LINE

Status = Literal["draft", "published", "archived"]
Relationship = Literal["template", "direct"]

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
Description = Annotated[str, Meta(max_length=2000)]
ModelName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=ONE_LINE,
        description="A model that GET /api/v1/models lists: local/smollm2, gpt-4o, anthropic/…",
    ),
]
Prompt = Annotated[str, Meta(min_length=1, max_length=100_000, pattern=NOT_BLANK)]
Temperature = Annotated[float, Meta(ge=0.0, le=1.0)]
DEFAULT_MAX_TOKENS: Final = 2048
DEFAULT_TEMPERATURE: Final = 0.7
MaxTokens = Annotated[
    int,
    Meta(
        ge=1,
        le=1_000_000,
        description="The longest reply, in the model's tokens. With the default, replies of the"
        " local model have at most 512.",
    ),
]
DelegationPrompt = Annotated[
    str, Meta(max_length=4000, description="Tells the parent what to delegate to this agent")
]

_ID = "agt_01k9x3m7e8c0v2q4r6t8w0y2a4"
_SUMMARY = {
    "id": _ID,
    "name": "Shop assistant",
    "description": "Answers questions about the shop",
    "primary_model": "local/smollm2",
    "status": "published",
    "temperature": 0.7,
    "created_at": "2026-01-01T12:00:00Z",
    "updated_at": "2026-01-01T12:00:00Z",
}
_AGENT = {
    **_SUMMARY,
    "system_prompt": "You help in a shop. The shop opens at 9 in the morning.",
    "max_tokens": 2048,
    "version": 1,
}
_SUB_AGENT = {
    "id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a5",
    "name": "Researcher",
    "relationship_type": "template",
    "is_enabled": True,
    "delegation_prompt": "Looks up facts about products",
}


class CreateAgent(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "name": "Shop assistant",
        "primary_model": "local/smollm2",
        "system_prompt": "You help in a shop. The shop opens at 9 in the morning.",
        "status": "published",
    }

    name: Name
    primary_model: ModelName
    system_prompt: Prompt
    description: Description = ""
    temperature: Temperature = DEFAULT_TEMPERATURE
    max_tokens: MaxTokens = DEFAULT_MAX_TOKENS
    status: Literal["draft", "published"] = "draft"


class UpdateAgent(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"temperature": 0.2, "status": "published"}

    name: Name | UnsetType = UNSET
    primary_model: ModelName | UnsetType = UNSET
    system_prompt: Prompt | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    temperature: Temperature | UnsetType = UNSET
    max_tokens: MaxTokens | UnsetType = UNSET
    status: Status | UnsetType = UNSET


class AgentSummary(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _SUMMARY

    id: str
    name: str
    description: str
    primary_model: str
    status: Status
    temperature: float | None
    created_at: datetime
    updated_at: datetime


class AgentView(AgentSummary):
    example: ClassVar[dict[str, Any]] = _AGENT

    system_prompt: str
    max_tokens: int | None
    version: int


class AttachedTool(msgspec.Struct):
    id: str
    name: str
    tool_type: str
    is_enabled: bool


class KnowledgeBase(msgspec.Struct):
    enabled: bool = False
    document_count: int = 0
    chunk_count: int = 0


class SubAgentBrief(msgspec.Struct):
    id: str
    name: str
    relationship_type: Relationship


class FullAgent(AgentView):
    example: ClassVar[dict[str, Any]] = {
        **_AGENT,
        "tools": [],
        "knowledge_base": {"enabled": False, "document_count": 0, "chunk_count": 0},
        "sub_agents": [{name: _SUB_AGENT[name] for name in ("id", "name", "relationship_type")}],
    }

    tools: list[AttachedTool]
    knowledge_base: KnowledgeBase
    sub_agents: list[SubAgentBrief]


class VersionView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "version": 1,
        "primary_model": "local/smollm2",
        "system_prompt": "You help in a shop.",
        "temperature": 0.7,
        "max_tokens": 2048,
        "note": "",
        "created_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "created_at": "2026-01-01T12:00:00Z",
    }

    version: int
    primary_model: str
    system_prompt: str
    temperature: float
    max_tokens: int
    note: Annotated[str, Meta(description="What changed, where a draft was published with it")]
    created_by: str | None
    created_at: datetime


class VersionDiff(msgspec.Struct):
    """`truncated`: there are more changes than the list has."""

    example: ClassVar[dict[str, Any]] = {
        "from": 1,
        "to": 2,
        "changes": [{"path": "temperature", "op": "changed", "before": 0.7, "after": 0.2}],
        "truncated": False,
    }

    from_version: int = msgspec.field(name="from")
    to_version: int = msgspec.field(name="to")
    changes: list[Change]
    truncated: bool


class LogSettings(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "log_messages": True,
        "log_tool_calls": True,
        "log_token_usage": True,
        "retention_days": 365,
    }

    log_messages: bool
    log_tool_calls: bool
    log_token_usage: bool
    retention_days: int


class UpdateLogSettings(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"log_messages": False, "retention_days": 30}

    log_messages: bool | UnsetType = UNSET
    log_tool_calls: bool | UnsetType = UNSET
    log_token_usage: bool | UnsetType = UNSET
    retention_days: Annotated[int, Meta(ge=1, le=3650)] | UnsetType = UNSET


# Sub-agents


class SubAgentView(SubAgentBrief):
    example: ClassVar[dict[str, Any]] = _SUB_AGENT

    is_enabled: bool
    delegation_prompt: str


class AttachSubAgent(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a5",
        "delegation_prompt": "Looks up facts about products",
    }

    agent_id: str
    delegation_prompt: DelegationPrompt = ""
    is_enabled: bool = True


class CreateDirectSubAgent(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "name": "Researcher",
        "primary_model": "local/smollm2",
        "system_prompt": "You look up facts about products.",
        "delegation_prompt": "Looks up facts about products",
    }

    name: Name
    primary_model: ModelName
    system_prompt: Prompt
    delegation_prompt: DelegationPrompt = ""
    description: Description = ""
    temperature: Temperature = DEFAULT_TEMPERATURE
    max_tokens: MaxTokens = DEFAULT_MAX_TOKENS
    is_enabled: bool = True


class UpdateDirectSubAgent(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"system_prompt": "You look up facts, briefly."}

    name: Name | UnsetType = UNSET
    primary_model: ModelName | UnsetType = UNSET
    system_prompt: Prompt | UnsetType = UNSET
    delegation_prompt: DelegationPrompt | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    temperature: Temperature | UnsetType = UNSET
    max_tokens: MaxTokens | UnsetType = UNSET
    is_enabled: bool | UnsetType = UNSET


class PatchSubAgent(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"is_enabled": False}

    delegation_prompt: DelegationPrompt | UnsetType = UNSET
    is_enabled: bool | UnsetType = UNSET


class DirectSubAgentView(SubAgentView):
    """A sub-agent that belongs to one parent, with its behaviour."""

    example: ClassVar[dict[str, Any]] = {
        **_SUB_AGENT,
        "relationship_type": "direct",
        "description": "",
        "primary_model": "local/smollm2",
        "system_prompt": "You look up facts about products.",
        "temperature": 0.7,
        "max_tokens": 2048,
        "created_at": "2026-01-01T12:00:00Z",
        "updated_at": "2026-01-01T12:00:00Z",
    }

    description: str
    primary_model: str
    system_prompt: str
    temperature: float
    max_tokens: int
    created_at: datetime
    updated_at: datetime


# Batch


class AgentBatch(Batch):
    example: ClassVar[dict[str, Any]] = {
        "operations": [
            {"action": "create", "data": CreateAgent.example},
            {"action": "update", "id": _ID, "data": {"status": "archived"}},
            {"action": "delete", "id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a5"},
        ]
    }


class AgentBatchResult(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = build_example(
        _AGENT, "agent_not_found", "There is no agent agt_…"
    )

    results: list[OperationResult[AgentView]]
