from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned, Timestamps


class User(TenantOwned, HasId, Timestamps, Base):
    __tablename__ = "users"
    __table_args__ = (
        Index("uq_users_email", func.lower(text("email")), unique=True),
        Index("ix_users_tenant_id_created_at", "tenant_id", "created_at", "id"),
    )

    email: Mapped[str]
    first_name: Mapped[str] = mapped_column(default="")
    last_name: Mapped[str] = mapped_column(default="")
    password_hash: Mapped[str]
    role: Mapped[str]
    status: Mapped[str] = mapped_column(default="active", server_default="active")
    email_verified: Mapped[bool] = mapped_column(default=False, server_default="false")
    mfa_enabled: Mapped[bool] = mapped_column(default=False, server_default="false")
    last_login_at: Mapped[datetime | None]
    timezone: Mapped[str] = mapped_column(default="UTC", server_default="UTC")
    # None until the user chooses one: the console follows the browser until then.
    language: Mapped[str | None]
    # The file's key is part of the picture's public URL, so it is random.
    avatar_key: Mapped[str | None] = mapped_column(unique=True)
    avatar_type: Mapped[str | None]


class Session(TenantOwned, HasId, Timestamps, Base):
    """One sign-in. Its tokens are invalid once `ended_at` is set or `expires_at` is past."""

    __tablename__ = "sessions"
    __table_args__ = (
        Index("ix_sessions_user_id", "user_id"),
        Index("ix_sessions_expires_at", "expires_at"),
    )

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    refresh_jti: Mapped[str]
    expires_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    # Refresh tokens used in the last seconds, each with the token pair that replaced it.
    spent: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, default=list, server_default="[]")
    code_shown_at: Mapped[datetime | None]
    # The address and the program that signed in.
    ip_address: Mapped[str | None]
    user_agent: Mapped[str | None]
    # Written every few minutes at most.
    last_seen_at: Mapped[datetime] = mapped_column(server_default=func.now())


class OneTimeToken(TenantOwned, HasId, Timestamps, Base):
    """The hash of a single-use token, sent by mail or after the first step of a sign-in."""

    __tablename__ = "one_time_tokens"
    __table_args__ = (
        Index("ix_one_time_tokens_user_id", "user_id", "purpose"),
        Index("ix_one_time_tokens_expires_at", "expires_at"),
    )

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    purpose: Mapped[str]
    token_hash: Mapped[str] = mapped_column(unique=True)
    tries: Mapped[int] = mapped_column(default=0, server_default="0")
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class Invitation(TenantOwned, HasId, Timestamps, Base):
    __tablename__ = "invitations"
    __table_args__ = (
        Index("ix_invitations_tenant_id", "tenant_id", "created_at"),
        Index("ix_invitations_invited_by", "invited_by"),
        Index("ix_invitations_email", func.lower(text("email"))),
        Index("ix_invitations_expires_at", "expires_at"),
    )

    email: Mapped[str]
    role: Mapped[str]
    token_hash: Mapped[str] = mapped_column(unique=True)
    invited_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    # Why it ended before its time: superseded by a newer one, voided because the inviter lost the
    # right or the user was deleted, or revoked by hand. Lists do not show revoked ones.
    withdrawn_as: Mapped[str | None]
