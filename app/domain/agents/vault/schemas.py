from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.kit.validation import ONE_LINE, VISIBLE

from .types import Type

Integration = Literal["agent", "tool", "workflow", "channel"]
Action = Literal[
    "created",
    "updated",
    "secrets_updated",
    "revealed",
    "used",
    "denied",
    "tested",
    "access_granted",
    "access_revoked",
    "deleted",
]
ActorType = Literal["user", "service_key", "agent", "tool", "workflow", "channel", "system"]
Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
Description = Annotated[str, Meta(max_length=2000)]

_ID = "crd_01k9x3m7e8c0v2q4r6t8w0y2a4"
_SUMMARY = {
    "id": _ID,
    "name": "Ticket system",
    "type": "bearer_token",
    "description": "The support team's account",
    "is_valid": True,
    "last_tested_at": None,
    "last_used_at": "2026-01-02T09:00:00Z",
    "token_expires_at": None,
    "created_at": "2026-01-01T12:00:00Z",
    "updated_at": "2026-01-01T12:00:00Z",
}
_VIEW = {
    **_SUMMARY,
    "metadata": {"owner": "support"},
    "secret_keys": ["token"],
    "secrets_updated_at": None,
}


class CreateCredential(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "name": "Ticket system",
        "type": "bearer_token",
        "secrets": {"token": "tkn-0123456789abcdef"},
        "metadata": {"owner": "support"},
    }

    name: Name
    type: Type
    secrets: Annotated[
        dict[str, Any],
        Meta(description="As the JSON Schema of the type in GET /v1/credentials/types"),
    ]
    description: Description = ""
    metadata: Annotated[
        dict[str, Any],
        Meta(
            description="Not secret. `test_url` is the URL that a test requests for types without "
            "a host; `allowed_hosts` are the only hosts that tools may send the secrets to. "
            "Changing these two needs credentials:reveal, or to have set all secrets"
        ),
    ] = {}


class UpdateCredential(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"description": "The support team's account"}

    name: Name | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    secrets: dict[str, Any] | UnsetType = UNSET


class UpdateSecrets(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"secrets": {"token": "tkn-fedcba9876543210"}}

    secrets: dict[str, Any]


class CredentialSummary(msgspec.Struct):
    """`token_expires_at`: when the access token of an oauth2 credential expires, if it has one. It
    is renewed then.
    """

    example: ClassVar[dict[str, Any]] = _SUMMARY

    id: str
    name: str
    type: Type
    description: str
    is_valid: bool
    last_tested_at: datetime | None
    last_used_at: datetime | None
    token_expires_at: datetime | None
    created_at: datetime
    updated_at: datetime


class CredentialView(CredentialSummary):
    example: ClassVar[dict[str, Any]] = _VIEW

    metadata: dict[str, Any]
    secret_keys: list[str]
    secrets_updated_at: Annotated[
        datetime | None,
        Meta(description="When somebody replaced the secrets; null for those of the creation"),
    ]


class Revealed(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _ID,
        "type": "bearer_token",
        "secrets": {"token": "tkn-0123456789abcdef"},
    }

    id: str
    type: Type
    secrets: dict[str, Any]


class TypeView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "type": "bearer_token",
        "name": "Bearer token",
        "description": "A token in the Authorization header",
        "tested_by": "GET metadata.test_url",
        "schema": {
            "type": "object",
            "properties": {"token": {"type": "string"}},
            "required": ["token"],
        },
    }

    type: Type
    name: str
    description: str
    tested_by: str
    schema: dict[str, Any]


class GrantAccess(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "integration_type": "tool",
        "integration_id": "tool_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    integration_type: Integration
    integration_id: Annotated[str, Meta(min_length=1, max_length=64, pattern=VISIBLE)]


class AccessRule(msgspec.Struct):
    """`integration_name` is null for an integration that does not exist."""

    example: ClassVar[dict[str, Any]] = {
        "id": "acr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "integration_type": "tool",
        "integration_id": "tool_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "integration_name": "Search tickets",
        "created_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "created_at": "2026-01-01T12:00:00Z",
    }

    id: str
    integration_type: Integration
    integration_id: str
    integration_name: str | None
    created_by: str | None
    created_at: datetime


class AuditEntry(msgspec.Struct):
    """The names are those of today. They are null for what does not exist any more, and for a user
    of another tenant.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": "aud_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "credential_id": _ID,
        "credential_name": "Ticket system",
        "action": "used",
        "actor_id": "tool_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "actor_type": "tool",
        "actor_name": "Search tickets",
        "integration": "tool:tool_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "integration_name": "Search tickets",
        "ip_address": None,
        "success": True,
        "created_at": "2026-01-02T09:00:00Z",
    }

    id: str
    credential_id: str
    credential_name: str | None
    action: Action
    actor_id: str | None
    actor_type: ActorType
    actor_name: str | None
    integration: str | None
    integration_name: str | None
    ip_address: str | None
    success: bool
    created_at: datetime
