"""Customers find their conversations."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_NAME = "ix_conversations_customer"


def upgrade() -> None:
    # Outside of a transaction: conversations may be many, and are written to meanwhile.
    with op.get_context().autocommit_block():
        # One that an earlier attempt left unfinished.
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {_NAME}")
        op.create_index(
            _NAME,
            "conversations",
            ["embed_key_id", sa.literal_column("(visitor ->> 'id')"), "last_message_at"],
            postgresql_where=sa.text("visitor IS NOT NULL"),
            postgresql_concurrently=True,
        )


def downgrade() -> None:
    op.drop_index(_NAME, table_name="conversations")
