"""Rules and budgets of embed keys, and who the visitor of a conversation is."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_FLAGS = ("require_session_token", "require_user_token", "allow_voice")


def upgrade() -> None:
    for name in _FLAGS:
        op.add_column(
            "embed_keys", sa.Column(name, sa.Boolean(), server_default="false", nullable=False)
        )
    op.add_column("embed_keys", sa.Column("identity_secret", sa.LargeBinary(), nullable=True))
    op.add_column("embed_keys", sa.Column("max_messages_per_day", sa.Integer(), nullable=True))
    op.add_column("embed_keys", sa.Column("max_tokens_per_day", sa.BigInteger(), nullable=True))
    op.add_column(
        "conversations",
        sa.Column("visitor", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    )
    op.create_table(
        "embed_key_usage",
        sa.Column("embed_key_id", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("messages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["embed_key_id"],
            ["embed_keys.id"],
            name=op.f("fk_embed_key_usage_embed_key_id_embed_keys"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_embed_key_usage_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("embed_key_id", "day", name=op.f("pk_embed_key_usage")),
    )
    op.create_index("ix_embed_key_usage_tenant_id", "embed_key_usage", ["tenant_id"])
    op.create_index("ix_embed_key_usage_day", "embed_key_usage", ["day"])


def downgrade() -> None:
    op.drop_table("embed_key_usage")
    op.drop_column("conversations", "visitor")
    for name in (*_FLAGS, "identity_secret", "max_messages_per_day", "max_tokens_per_day"):
        op.drop_column("embed_keys", name)
