from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import String

from db.base import Base, DateTimeUTC, HasId, TenantOwned, Timestamps


class EmbedKey(TenantOwned, HasId, Timestamps, Base):
    """Lets a web site chat with one agent. Only the hash of the key is stored."""

    __tablename__ = "embed_keys"
    __table_args__ = (
        Index("ix_embed_keys_tenant_id", "tenant_id", "created_at"),
        Index("ix_embed_keys_agent_id", "agent_id"),
    )

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    name: Mapped[str]
    key_prefix: Mapped[str]
    key_hash: Mapped[str] = mapped_column(unique=True)
    allowed_domains: Mapped[list[str]] = mapped_column(
        ARRAY(String), default=list, server_default="{}"
    )
    last_used_at: Mapped[datetime | None] = mapped_column(DateTimeUTC(timezone=True))
