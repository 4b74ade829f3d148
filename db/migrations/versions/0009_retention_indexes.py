"""B-tree indexes for deleting expired rows. A BRIN index reads the whole table once space is used
again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# Name, table, columns and condition.
_REPLACED_BRIN = (
    ("ix_deliveries_created_at", "deliveries", ["created_at"], "status <> 'pending'"),
    ("ix_incoming_payloads_created_at", "incoming_payloads", ["created_at"], None),
    ("ix_request_spans_started_at", "request_spans", ["started_at"], None),
    ("ix_usage_created_at", "usage", ["created_at"], "rolled"),
)
_ADDED = (
    (
        "ix_conversations_titled",
        "conversations",
        ["tenant_id", "agent_id", "created_at"],
        "title <> ''",
    ),
    (
        "ix_event_log_received",
        "event_log",
        ["created_at"],
        "type = 'system.incoming_webhook.received'",
    ),
    ("ix_invitations_expires_at", "invitations", ["expires_at"], None),
    ("ix_mail_messages_created_at", "mail_messages", ["created_at"], None),
    (
        "ix_tool_executions_content",
        "tool_executions",
        ["tenant_id", "agent_id", "executed_at"],
        "input::text <> '{}' OR output IS NOT NULL OR error_message IS NOT NULL",
    ),
)


def _create(name: str, table: str, columns: list[str], condition: str | None) -> None:
    where = sa.text(condition) if condition else None
    op.create_index(name, table, columns, unique=False, postgresql_where=where)


def upgrade() -> None:
    for name, table, columns, condition in _REPLACED_BRIN:
        op.drop_index(name, table_name=table)
        _create(name, table, columns, condition)
    for name, table, columns, condition in _ADDED:
        _create(name, table, columns, condition)
    op.drop_index("ix_event_log_created_at", table_name="event_log")
    op.drop_index("ix_tool_executions_agent_id", table_name="tool_executions")
    op.drop_index("ix_chat_jobs_agent_id", table_name="chat_jobs")
    _create("ix_chat_jobs_agent_id", "chat_jobs", ["tenant_id", "agent_id", "finished_at"], None)
    op.drop_index("ix_work_correlation_id", table_name="work")
    _create("ix_work_correlation_id", "work", ["correlation_id", "finished_at"], None)


def downgrade() -> None:
    op.drop_index("ix_work_correlation_id", table_name="work")
    _create("ix_work_correlation_id", "work", ["correlation_id"], None)
    op.drop_index("ix_chat_jobs_agent_id", table_name="chat_jobs")
    _create("ix_chat_jobs_agent_id", "chat_jobs", ["tenant_id", "agent_id"], None)
    _create("ix_tool_executions_agent_id", "tool_executions", ["agent_id"], None)
    op.create_index("ix_event_log_created_at", "event_log", ["created_at"], postgresql_using="brin")
    for name, table, _columns, _condition in _ADDED:
        op.drop_index(name, table_name=table)
    for name, table, columns, _condition in _REPLACED_BRIN:
        op.drop_index(name, table_name=table)
        op.create_index(name, table, columns, postgresql_using="brin")
