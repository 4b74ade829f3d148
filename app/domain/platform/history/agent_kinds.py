"""The kinds of records that agents consist of, and use."""

from typing import Final

from db.models import (
    Agent,
    AgentTool,
    Credential,
    CredentialAccess,
    DocumentSource,
    EmbedKey,
    ProviderKey,
    ServiceKey,
    SubAgent,
    Tool,
    WebSearchConfig,
)

from .record_kinds import RecordKind, TableHistory

AGENT: Final = RecordKind(
    name="agent",
    reads="agents:read",
    reads_all="agents:write",
    open_fields=("name", "description", "status"),
    tables=(
        TableHistory(
            model=Agent,
            fields=(
                "name",
                "description",
                "primary_model",
                "system_prompt",
                "temperature",
                "max_tokens",
                "status",
                "version",
                "log_messages",
                "log_tool_calls",
                "log_token_usage",
                "retention_days",
                "retrieval",
            ),
            hidden=("provider", "parent_id"),
        ),
        TableHistory(
            model=SubAgent,
            id="agent_id",
            name=None,
            part="sub_agents.{child_id}",
            fields=("relationship_type", "is_enabled", "delegation_prompt"),
            hidden=("id", "child_id"),
        ),
        TableHistory(
            model=AgentTool,
            id="agent_id",
            name=None,
            part="tools.{tool_id}",
            fields=("is_enabled", "display_order", "config_override"),
            secrets=("override_auth",),
            hidden=("id", "tool_id", "attached_at"),
        ),
        TableHistory(
            model=WebSearchConfig,
            id="agent_id",
            name=None,
            part="web_search",
            fields=("enabled", "search_engine", "max_results", "safe_search"),
        ),
    ),
)
CREDENTIAL: Final = RecordKind(
    name="credential",
    reads="credentials:read",
    tables=(
        TableHistory(
            model=Credential,
            fields=("name", "type", "description", "about", "is_valid"),
            secrets=("secrets",),
            hidden=(
                "secret_keys",
                "secrets_version",
                "secrets_updated_at",
                "last_tested_at",
                "last_used_at",
                "token_expires_at",
                "refresh_holder",
                "refresh_until",
            ),
            renamed={"about": "metadata"},
        ),
        TableHistory(
            model=CredentialAccess,
            id="credential_id",
            name=None,
            part="access.{id}",
            fields=("integration_type", "integration_id"),
            hidden=("id", "created_by"),
        ),
    ),
)
TOOL: Final = RecordKind(
    name="tool",
    reads="tools:read",
    reads_all="tools:write",
    open_fields=(
        "name",
        "slug",
        "description",
        "category",
        "tool_type",
        "auth_type",
        "input_schema",
        "output_schema",
        "is_enabled",
    ),
    tables=(
        TableHistory(
            model=Tool,
            fields=(
                "name",
                "slug",
                "description",
                "category",
                "tool_type",
                "config",
                "auth_type",
                "input_schema",
                "output_schema",
                "is_enabled",
            ),
            secrets=("auth_config",),
            hidden=("usage_count", "last_used_at"),
        ),
    ),
)
EMBED_KEY: Final = RecordKind(
    name="embed_key",
    reads="agents:write",
    tables=(
        TableHistory(
            model=EmbedKey,
            fields=(
                "agent_id",
                "name",
                "allowed_domains",
                "require_session_token",
                "require_user_token",
                "allow_voice",
                "allow_feedback",
                "allow_attachments",
                "max_messages_per_day",
                "max_tokens_per_day",
            ),
            secrets=("identity_secret",),
            hidden=("key_prefix", "key_hash", "last_used_at"),
        ),
    ),
)
SERVICE_KEY: Final = RecordKind(
    name="service_key",
    reads="admin:keys",
    tables=(
        TableHistory(
            model=ServiceKey,
            fields=("name", "role", "agent_ids", "expires_at"),
            hidden=("key_prefix", "key_hash", "last_used_at", "revoked_at", "created_by"),
        ),
    ),
)
PROVIDER_KEY: Final = RecordKind(
    name="provider_key",
    reads="models:read",
    tables=(
        TableHistory(
            model=ProviderKey,
            fields=("provider", "name", "base_url", "is_default"),
            secrets=("api_key",),
            hidden=("key_hint",),
        ),
    ),
)
SOURCE: Final = RecordKind(
    name="source",
    reads="agents:write",
    tables=(
        TableHistory(
            model=DocumentSource,
            fields=(
                "agent_id",
                "name",
                "type",
                "config",
                "schedule",
                "apply",
                "max_documents",
                "include",
                "exclude",
                "document",
            ),
            secrets=("secrets",),
            hidden=(
                "created_by",
                "status",
                "error",
                "failed_count",
                "work_id",
                "sync_no",
                "completed_no",
                "started_at",
                "last_synced_at",
                "next_sync_at",
                "wait_until",
                "added_count",
                "changed_count",
                "removed_count",
                "left_out_count",
            ),
        ),
    ),
)
