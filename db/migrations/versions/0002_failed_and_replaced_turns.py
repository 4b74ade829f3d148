"""Failed turns are kept and counted, and an answer can take the place of another."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_CHAT = "('agent.chat.message', 'agent.chat.completed', 'agent.chat.failed', 'agent.chat.rated')"


def upgrade() -> None:
    for table, column in (
        ("conversation_entries", sa.Column("replaced_by", sa.String(), nullable=True)),
        ("request_spans", sa.Column("name", sa.String(), nullable=True)),
        ("request_spans", sa.Column("status_code", sa.SmallInteger(), nullable=True)),
        ("usage", sa.Column("failures", sa.Integer(), server_default="0", nullable=False)),
        ("usage_hours", sa.Column("failures", sa.BigInteger(), server_default="0", nullable=False)),
    ):
        # They are committed before the index is built, which may fail and be tried again.
        op.add_column(table, column, if_not_exists=True)
    _replace_index("ix_event_log_said", "ix_event_log_chat", _CHAT)


def downgrade() -> None:
    said = "('agent.chat.message', 'agent.chat.completed')"
    _replace_index("ix_event_log_chat", "ix_event_log_said", said)
    op.drop_column("usage_hours", "failures")
    op.drop_column("usage", "failures")
    op.drop_column("request_spans", "status_code")
    op.drop_column("request_spans", "name")
    op.drop_column("conversation_entries", "replaced_by")


def _replace_index(old: str, new: str, types: str) -> None:
    """Outside of a transaction: the log may be large, and is written to meanwhile."""
    with op.get_context().autocommit_block():
        # One that an earlier attempt left unfinished.
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {new}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY {new} ON event_log ((data->>'agent_id'), created_at)"
            f" WHERE type IN {types} AND NOT test"
        )
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {old}")
