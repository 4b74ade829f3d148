"""Which records have a history, and which of their fields it shows.

Each column of a table with a history is a field, a secret or not shown. Fields are shown to all who
may read the record, unless the kind names `open_fields`. A table without a history has a reason.
"""

from typing import Any, Final

import msgspec

from db.base import Base
from db.models import (
    Agent,
    AgentTool,
    Credential,
    CredentialAccess,
    DataTable,
    DocumentSource,
    EmbedKey,
    EventSubscription,
    Form,
    IncomingWebhook,
    NotificationChannel,
    ProviderKey,
    ServiceKey,
    SubAgent,
    Tenant,
    Tool,
    User,
    Webhook,
    WebSearchConfig,
    Workflow,
)

# Set when a row is hidden before it is deleted.
_DELETED_AT: Final = "deleted_at"


class TableHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A table whose rows are records, or parts of records.

    `id` is the column with the record's id and `name` the one that names it. `part` is the path of
    a part, with columns in braces. `secrets` are shown as changed, without their values; `hidden`
    columns are not shown. `renamed` has the names that the API has for columns. Rows that have
    `unless` are no records.
    """

    model: type[Base]
    fields: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    id: str = "id"
    name: str | None = "name"
    part: str = ""
    renamed: dict[str, str] = {}
    unless: str | None = None

    @property
    def tracked(self) -> tuple[str, ...]:
        has_deletion = hasattr(self.model, _DELETED_AT)
        return (*self.fields, *self.secrets, *([_DELETED_AT] if has_deletion else []))


class RecordKind(msgspec.Struct, frozen=True, kw_only=True):
    """`reads` is the permission for its history. Callers without `reads_all` see the `open_fields`
    alone. With `is_personal`, the history of a record is deleted with it.
    """

    name: str
    reads: str
    tables: tuple[TableHistory, ...] = ()
    reads_all: str | None = None
    open_fields: tuple[str, ...] = ()
    is_personal: bool = False


_TIMES: Final = ("created_at", "updated_at")

_AGENT: Final = RecordKind(
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
_CREDENTIAL: Final = RecordKind(
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
_TOOL: Final = RecordKind(
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
_EMBED_KEY: Final = RecordKind(
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
_SERVICE_KEY: Final = RecordKind(
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
_PROVIDER_KEY: Final = RecordKind(
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
_SOURCE: Final = RecordKind(
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
_WEBHOOK: Final = RecordKind(
    name="webhook",
    reads="webhooks:read",
    tables=(
        TableHistory(
            model=Webhook,
            name="url",
            fields=("url", "events", "active", "description"),
            # The secret and the values of headers.
            secrets=("keys",),
            hidden=(
                "subscription_id",
                "previous_until",
                "failing_since",
                "disabled_reason",
                "created_by",
            ),
            renamed={"keys": "secrets"},
            # The subscription has the history.
            unless="subscription_id",
        ),
    ),
)
_INCOMING_WEBHOOK: Final = RecordKind(
    name="incoming_webhook",
    reads="webhooks:read",
    tables=(
        TableHistory(
            model=IncomingWebhook,
            fields=("name", "slug", "workflow_id", "active", "scheme", "header"),
            secrets=("secret",),
            renamed={"scheme": "verification.scheme", "header": "verification.header"},
        ),
    ),
)
_CHANNEL: Final = RecordKind(
    name="notification_channel",
    reads="notifications:read",
    tables=(
        TableHistory(
            model=NotificationChannel,
            fields=("name", "type", "provider", "active", "rate_limit_per_minute"),
            secrets=("config",),
            hidden=("created_by", "deleted_at"),
        ),
    ),
)
_SUBSCRIPTION: Final = RecordKind(
    name="subscription",
    reads="events:read",
    tables=(
        TableHistory(
            model=EventSubscription,
            name="event_type",
            fields=("event_type", "action_type", "action_config", "filters", "active"),
            hidden=("trigger_count", "last_triggered_at", "created_by"),
        ),
    ),
)
_WORKFLOW: Final = RecordKind(
    name="workflow",
    reads="workflows:read",
    reads_all="workflows:write",
    open_fields=("name", "description", "status", "version", "published_version", "trigger"),
    # The service adds nodes and edges, which are in the versions.
    tables=(
        TableHistory(
            model=Workflow,
            fields=("name", "description", "status", "version", "published_version", "trigger"),
            hidden=("next_run_at", "created_by", "deleted_at"),
        ),
    ),
)
_FORM: Final = RecordKind(
    name="form",
    reads="forms:read",
    reads_all="forms:write",
    open_fields=(
        "name",
        "slug",
        "description",
        "status",
        "version",
        "fields",
        "branding",
        "workflow_id",
        "data_table_config",
    ),
    # The service adds the fields, which are in the versions.
    tables=(
        TableHistory(
            model=Form,
            fields=(
                "name",
                "slug",
                "description",
                "status",
                "version",
                "settings",
                "branding",
                "workflow_id",
                "data_table_config",
            ),
            hidden=("field_count", "created_by", "published_at", "deleted_at"),
        ),
    ),
)
_DATA_TABLE: Final = RecordKind(
    name="data_table",
    reads="data_tables:read",
    tables=(
        TableHistory(
            model=DataTable,
            fields=("name", "description", "columns"),
            hidden=("next_key", "revision", "created_by", "deleted_at"),
        ),
    ),
)
_USER: Final = RecordKind(
    name="user",
    reads="admin:users",
    is_personal=True,
    tables=(
        TableHistory(
            model=User,
            name="email",
            fields=(
                "email",
                "first_name",
                "last_name",
                "role",
                "status",
                "email_verified",
                "mfa_enabled",
                "timezone",
                "language",
            ),
            secrets=("password_hash",),
            hidden=("last_login_at", "avatar_key", "avatar_type"),
            renamed={"password_hash": "password"},
        ),
    ),
)
_TENANT: Final = RecordKind(
    name="tenant",
    reads="admin:tenants",
    tables=(TableHistory(model=Tenant, fields=("name", "plan", "limits")),),
)
# Its service adds the changes, which have no rows of their own.
_ROLE: Final = RecordKind(name="role", reads="admin:roles")

KINDS: Final = {
    kind.name: kind
    for kind in (
        _AGENT,
        _CREDENTIAL,
        _TOOL,
        _EMBED_KEY,
        _SERVICE_KEY,
        _PROVIDER_KEY,
        _SOURCE,
        _WEBHOOK,
        _INCOMING_WEBHOOK,
        _CHANNEL,
        _SUBSCRIPTION,
        _WORKFLOW,
        _FORM,
        _DATA_TABLE,
        _USER,
        _TENANT,
        _ROLE,
    )
}
# By the mapped class.
TABLES: Final[dict[Any, tuple[RecordKind, TableHistory]]] = {
    table.model: (kind, table) for kind in KINDS.values() for table in kind.tables
}
UNSHOWN: Final = frozenset({"id", "tenant_id", *_TIMES})
