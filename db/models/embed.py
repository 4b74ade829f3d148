from datetime import date, datetime

from sqlalchemy import BigInteger, ForeignKey, Index
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import String

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


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
    require_session_token: Mapped[bool] = mapped_column(default=False, server_default="false")
    require_user_token: Mapped[bool] = mapped_column(default=False, server_default="false")
    # Verifies the user tokens that the customer's server signs.
    identity_secret: Mapped[bytes | None] = mapped_column(Sealed)
    allow_voice: Mapped[bool] = mapped_column(default=False, server_default="false")
    allow_feedback: Mapped[bool] = mapped_column(default=True, server_default="true")
    allow_attachments: Mapped[bool] = mapped_column(default=False, server_default="false")
    max_messages_per_day: Mapped[int | None]
    max_tokens_per_day: Mapped[int | None] = mapped_column(BigInteger)
    last_used_at: Mapped[datetime | None]


class EmbedKeyUsage(TenantOwned, Base):
    """What visitors used with an embed key on one day in UTC."""

    __tablename__ = "embed_key_usage"
    __table_args__ = (
        Index("ix_embed_key_usage_tenant_id", "tenant_id"),
        Index("ix_embed_key_usage_day", "day"),
    )

    embed_key_id: Mapped[str] = mapped_column(
        ForeignKey("embed_keys.id", ondelete="CASCADE"), primary_key=True
    )
    day: Mapped[date] = mapped_column(primary_key=True)
    messages: Mapped[int] = mapped_column(default=0, server_default="0")
    tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
