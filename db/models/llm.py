from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class ProviderKey(TenantOwned, HasId, Timestamps, Base):
    """A tenant's API key of a model provider; one key per provider is the default."""

    __tablename__ = "provider_keys"
    __table_args__ = (
        Index(
            "uq_provider_keys_default",
            "tenant_id",
            "provider",
            unique=True,
            postgresql_where=text("is_default"),
        ),
        Index("ix_provider_keys_tenant_id", "tenant_id", "created_at"),
    )

    provider: Mapped[str]
    name: Mapped[str]
    api_key: Mapped[bytes] = mapped_column(Sealed)
    key_hint: Mapped[str]
    base_url: Mapped[str | None]
    is_default: Mapped[bool] = mapped_column(default=False, server_default="false")
