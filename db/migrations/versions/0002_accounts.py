"""Accounts: one-time tokens, authenticators, recovery codes, counted failures, profiles."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("blocked_until", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    op.create_index("ix_attempts_since", "attempts", ["since"], unique=False)
    op.create_table(
        "mfa_devices",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column(
            "used_steps", postgresql.ARRAY(sa.BigInteger()), server_default="{}", nullable=False
        ),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_mfa_devices_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_mfa_devices_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mfa_devices")),
    )
    op.create_index("ix_mfa_devices_user_id", "mfa_devices", ["user_id"], unique=False)
    op.create_table(
        "one_time_tokens",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_one_time_tokens_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_one_time_tokens_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_one_time_tokens")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_one_time_tokens_token_hash")),
    )
    op.create_index(
        "ix_one_time_tokens_expires_at", "one_time_tokens", ["expires_at"], unique=False
    )
    op.create_index(
        "ix_one_time_tokens_user_id", "one_time_tokens", ["user_id", "purpose"], unique=False
    )
    op.create_table(
        "recovery_codes",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("code_hash", sa.String(), nullable=False),
        sa.Column("is_pending", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_recovery_codes_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_recovery_codes_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recovery_codes")),
    )
    op.create_index("ix_recovery_codes_user_id", "recovery_codes", ["user_id"], unique=False)
    op.create_index("ix_invitations_invited_by", "invitations", ["invited_by"], unique=False)
    op.create_index(
        "ix_invitations_email", "invitations", [sa.literal_column("lower(email)")], unique=False
    )
    op.add_column(
        "sessions",
        sa.Column(
            "spent", postgresql.JSONB(astext_type=sa.Text()), server_default="[]", nullable=False
        ),
    )
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"], unique=False)
    op.add_column("sessions", sa.Column("code_shown_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("sessions", sa.Column("ip_address", sa.String(), nullable=True))
    op.add_column("users", sa.Column("timezone", sa.String(), server_default="UTC", nullable=False))
    op.add_column("users", sa.Column("language", sa.String(), server_default="en", nullable=False))
    op.add_column("users", sa.Column("avatar_key", sa.String(), nullable=True))
    op.add_column("users", sa.Column("avatar_type", sa.String(), nullable=True))
    op.create_unique_constraint(op.f("uq_users_avatar_key"), "users", ["avatar_key"])


def downgrade() -> None:
    op.drop_constraint(op.f("uq_users_avatar_key"), "users", type_="unique")
    op.drop_column("users", "avatar_type")
    op.drop_column("users", "avatar_key")
    op.drop_column("users", "language")
    op.drop_column("users", "timezone")
    op.drop_column("sessions", "ip_address")
    op.drop_column("sessions", "code_shown_at")
    op.drop_index("ix_sessions_expires_at", table_name="sessions")
    op.drop_column("sessions", "spent")
    op.drop_index("ix_invitations_email", table_name="invitations")
    op.drop_index("ix_invitations_invited_by", table_name="invitations")
    op.drop_index("ix_recovery_codes_user_id", table_name="recovery_codes")
    op.drop_table("recovery_codes")
    op.drop_index("ix_one_time_tokens_user_id", table_name="one_time_tokens")
    op.drop_index("ix_one_time_tokens_expires_at", table_name="one_time_tokens")
    op.drop_table("one_time_tokens")
    op.drop_index("ix_mfa_devices_user_id", table_name="mfa_devices")
    op.drop_table("mfa_devices")
    op.drop_index("ix_attempts_since", table_name="attempts")
    op.drop_table("attempts")
