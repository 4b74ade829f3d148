from datetime import datetime

from advanced_alchemy.types import DateTimeUTC
from sqlalchemy import ForeignKey, Index, func, text
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
    last_login_at: Mapped[datetime | None] = mapped_column(DateTimeUTC(timezone=True))


class Session(TenantOwned, HasId, Timestamps, Base):
    """One sign-in. Both of its tokens are dead once `ended_at` is set or `expires_at` is past."""

    __tablename__ = "sessions"
    __table_args__ = (Index("ix_sessions_user_id", "user_id"),)

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    refresh_jti: Mapped[str]
    expires_at: Mapped[datetime] = mapped_column(DateTimeUTC(timezone=True))
    ended_at: Mapped[datetime | None] = mapped_column(DateTimeUTC(timezone=True))


class Invitation(TenantOwned, HasId, Timestamps, Base):
    __tablename__ = "invitations"
    __table_args__ = (Index("ix_invitations_tenant_id", "tenant_id", "created_at"),)

    email: Mapped[str]
    role: Mapped[str]
    token_hash: Mapped[str] = mapped_column(unique=True)
    invited_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    expires_at: Mapped[datetime] = mapped_column(DateTimeUTC(timezone=True))
    used_at: Mapped[datetime | None] = mapped_column(DateTimeUTC(timezone=True))


class RoleGrant(Base):
    """Which permission a role has. Seeded from the defaults in code, then owned by super_admin."""

    __tablename__ = "role_grants"

    role: Mapped[str] = mapped_column(primary_key=True)
    permission: Mapped[str] = mapped_column(primary_key=True)
