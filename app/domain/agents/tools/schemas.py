from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.kit import validation
from app.kit.validation import ONE_LINE

from .auth_configs import AuthType
from .categories import Category
from .configs import ToolType

_SLUG_PATTERN = r"^(?![\s\S]*\n)[a-z0-9]+(-[a-z0-9]+)*$"
validation.describe_pattern(
    _SLUG_PATTERN, "must be lower-case letters and digits, with single dashes between them"
)

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
Slug = Annotated[str, Meta(min_length=1, max_length=100, pattern=_SLUG_PATTERN)]
Description = Annotated[str, Meta(max_length=2000)]
AuthSource = Literal["none", "own", "credential"]

EXAMPLE_TOOL_ID = "tool_01k9x3m7e8c0v2q4r6t8w0y2a4"
EXAMPLE_AGENT_ID = "agt_01k9x3m7e8c0v2q4r6t8w0y2a4"
_CONFIG = {
    "runtime": "python",
    "code": "def main(input):\n    return {'sum': sum(input['numbers'])}\n",
    "timeout_ms": 5000,
}
_SCHEMA = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
    "required": ["numbers"],
}
_SUMMARY = {
    "id": EXAMPLE_TOOL_ID,
    "name": "Add numbers",
    "slug": "add-numbers",
    "description": "Adds up numbers",
    "category": "automation",
    "tool_type": "function",
    "auth_type": "none",
    "is_enabled": True,
    "usage_count": 12,
    "last_used_at": "2026-01-02T09:00:00Z",
    "created_at": "2026-01-01T12:00:00Z",
}
_TOOL = {
    **_SUMMARY,
    "input_schema": _SCHEMA,
    "output_schema": None,
    "updated_at": "2026-01-01T12:00:00Z",
}


class CreateTool(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "name": "Add numbers",
        "description": "Adds up numbers",
        "category": "automation",
        "tool_type": "function",
        "config": _CONFIG,
        "auth_type": "none",
        "input_schema": _SCHEMA,
    }

    name: Name
    category: Category
    tool_type: ToolType
    config: Annotated[dict[str, Any], Meta(description="Its keys depend on `tool_type`")]
    auth_type: AuthType
    slug: Annotated[Slug, Meta(description="Unique; derived from the name if omitted")] | None = (
        None
    )
    description: Description = ""
    auth_config: (
        Annotated[
            dict[str, Any],
            Meta(description="Encrypted and never shown again; its keys depend on `auth_type`"),
        ]
        | None
    ) = None
    input_schema: (
        Annotated[
            dict[str, Any], Meta(description="JSON Schema that the input of a run must conform to")
        ]
        | None
    ) = None
    output_schema: (
        Annotated[dict[str, Any], Meta(description="JSON Schema that the output must conform to")]
        | None
    ) = None
    is_enabled: bool = True


class UpdateTool(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"config": {"timeout_ms": 10000}}

    name: Name | UnsetType = UNSET
    slug: Slug | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    category: Category | UnsetType = UNSET
    tool_type: ToolType | UnsetType = UNSET
    config: dict[str, Any] | UnsetType = UNSET
    auth_type: AuthType | UnsetType = UNSET
    auth_config: dict[str, Any] | UnsetType | None = UNSET
    input_schema: dict[str, Any] | UnsetType | None = UNSET
    output_schema: dict[str, Any] | UnsetType | None = UNSET
    is_enabled: bool | UnsetType = UNSET


class ToolSummary(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _SUMMARY

    id: str
    name: str
    slug: str
    description: str
    category: Category
    tool_type: ToolType
    auth_type: AuthType
    is_enabled: bool
    usage_count: int
    last_used_at: datetime | None
    created_at: datetime


class ToolView(ToolSummary):
    example: ClassVar[dict[str, Any]] = _TOOL

    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    updated_at: datetime


class UsageStats(msgspec.Struct):
    """Figures of the last 30 days."""

    total_executions: int
    successful: int
    failed: int
    success_rate: float
    avg_execution_time_ms: float


class FullTool(ToolView):
    """`auth_source` says whether the tool has secrets of its own or uses a credential of the vault,
    and `credential_id` which one. Callers without tools:write do not see the latter.
    """

    example: ClassVar[dict[str, Any]] = {
        **_TOOL,
        "config": _CONFIG,
        "auth_source": "none",
        "credential_id": None,
        "usage_stats": {
            "total_executions": 12,
            "successful": 12,
            "failed": 0,
            "success_rate": 100.0,
            "avg_execution_time_ms": 41.5,
        },
    }

    config: dict[str, Any]
    auth_source: AuthSource
    credential_id: str | None
    usage_stats: UsageStats


class CategoryView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "slug": "automation",
        "name": "Automation",
        "description": "Moving work between systems",
        "icon": "zap",
        "tool_count": 1,
    }

    slug: Category
    name: str
    description: str
    icon: str
    tool_count: int


# MCP servers


class Discovered(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "name": "search_issues",
        "description": "Finds issues",
        "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
    }

    name: str
    description: str
    input_schema: dict[str, Any]


# Attachments: the tools of an agent

_ATTACHMENT = {
    "tool_id": EXAMPLE_TOOL_ID,
    "is_enabled": True,
    "display_order": 0,
    "config_override": None,
    "attached_at": "2026-01-01T12:00:00Z",
}


class AttachTool(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"tool_id": EXAMPLE_TOOL_ID}

    tool_id: Annotated[str, Meta(min_length=1, max_length=64)]
    is_enabled: bool = True
    display_order: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    config_override: (
        Annotated[
            dict[str, Any],
            Meta(
                description="Merged over the tool's config by key. An override with another host "
                "does not use the tool's auth. It can have an `auth_config` of its own, which is "
                "never shown"
            ),
        ]
        | None
    ) = None


class PatchAttachment(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"is_enabled": False}

    is_enabled: bool | UnsetType = UNSET
    display_order: Annotated[int, Meta(ge=0, le=1_000_000)] | UnsetType = UNSET
    config_override: dict[str, Any] | UnsetType | None = UNSET


class NewAttachment(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"agent_id": EXAMPLE_AGENT_ID, **_ATTACHMENT}

    agent_id: str
    tool_id: str
    is_enabled: bool
    display_order: int
    config_override: dict[str, Any] | None
    attached_at: datetime


class Attachment(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        **_ATTACHMENT,
        "tool_name": "Add numbers",
        "tool_type": "function",
        "category": "automation",
    }

    tool_id: str
    tool_name: str
    tool_type: ToolType
    category: Category
    is_enabled: bool
    display_order: int
    config_override: dict[str, Any] | None
    attached_at: datetime
