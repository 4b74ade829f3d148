from datetime import datetime

from sqlalchemy import Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned, Timestamps


class ServiceKey(TenantOwned, HasId, Timestamps, Base):
    """The hash of a key with which a program acts for itself. A revoked one stays for a while,
    because events name it.
    """

    __tablename__ = "service_keys"
    __table_args__ = (
        Index("ix_service_keys_created_at", "tenant_id", "created_at", "id"),
        Index(
            "ix_service_keys_revoked_at",
            "revoked_at",
            postgresql_where=text("revoked_at IS NOT NULL"),
        ),
    )

    name: Mapped[str]
    role: Mapped[str]
    # None means all agents.
    agent_ids: Mapped[list[str] | None] = mapped_column(JSONB)
    key_prefix: Mapped[str]
    key_hash: Mapped[str] = mapped_column(unique=True)
    expires_at: Mapped[datetime | None]
    # Written every few minutes at most.
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    created_by: Mapped[str | None]
