"""Which records have a history, and which of their fields it shows.

Each column of a table with a history is a field, a secret or not shown. Fields are shown to all who
may read the record, unless the kind names `open_fields`. A table without a history has a reason.
"""

from typing import Any, Final

from db.models import (
    DataTable,
    EventSubscription,
    Form,
    IncomingWebhook,
    NotificationChannel,
    Tenant,
    User,
    Webhook,
    Workflow,
)

from .agent_kinds import AGENT, CREDENTIAL, EMBED_KEY, PROVIDER_KEY, SERVICE_KEY, SOURCE, TOOL
from .record_kinds import TIMES, RecordKind, TableHistory

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
                "secrets_updated_at",
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
        AGENT,
        CREDENTIAL,
        TOOL,
        EMBED_KEY,
        SERVICE_KEY,
        PROVIDER_KEY,
        SOURCE,
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
UNSHOWN: Final = frozenset({"id", "tenant_id", *TIMES})
