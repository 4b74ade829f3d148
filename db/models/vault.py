from datetime import datetime
from typing import Any

from advanced_alchemy.types import DateTimeUTC
from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, UniqueConstraint, func
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class Credential(TenantOwned, HasId, Timestamps, Base):
    """Secrets for one account somewhere, sealed as one value; their names are not secret."""

    __tablename__ = "credentials"
    __table_args__ = (
        Index("ix_credentials_tenant_id_created_at", "tenant_id", "created_at", "id"),
    )

    name: Mapped[str]
    type: Mapped[str]
    description: Mapped[str] = mapped_column(default="", server_default="")
    secrets: Mapped[bytes] = mapped_column(Sealed)
    secret_keys: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    about: Mapped[dict[str, Any]] = mapped_column("metadata", JSONB, default=dict)
    is_valid: Mapped[bool] = mapped_column(default=True, server_default="true")
    last_tested_at: Mapped[datetime | None] = mapped_column(DateTimeUTC(timezone=True))
    last_used_at: Mapped[datetime | None] = mapped_column(DateTimeUTC(timezone=True))
    # A set of secrets has a number, so that a refreshed token never replaces a newer set.
    secrets_version: Mapped[int] = mapped_column(default=1, server_default="1")
    token_expires_at: Mapped[datetime | None] = mapped_column(DateTimeUTC(timezone=True))
    # Who is asking for a new token right now, and until when others wait for it.
    refresh_holder: Mapped[str | None]
    refresh_until: Mapped[datetime | None] = mapped_column(DateTimeUTC(timezone=True))


class CredentialAccess(TenantOwned, HasId, Base):
    """What may use a credential: an agent, a tool, a workflow, a channel."""

    __tablename__ = "credential_access"
    __table_args__ = (
        UniqueConstraint(
            "credential_id", "integration_type", "integration_id", name="uq_credential_access"
        ),
        Index("ix_credential_access_integration", "integration_type", "integration_id"),
    )

    credential_id: Mapped[str] = mapped_column(ForeignKey("credentials.id", ondelete="CASCADE"))
    integration_type: Mapped[str]
    integration_id: Mapped[str]
    created_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(
        DateTimeUTC(timezone=True), server_default=func.now()
    )


class CredentialAudit(TenantOwned, HasId, Base):
    """What was done with a credential, by whom. Each row vouches for the one before it."""

    __tablename__ = "credential_audit"
    __table_args__ = (
        UniqueConstraint("tenant_id", "seq", name="uq_credential_audit_tenant_id_seq"),
        Index("ix_credential_audit_credential_id", "credential_id", "seq"),
    )

    seq: Mapped[int] = mapped_column(BigInteger)
    # Outlives its credential.
    credential_id: Mapped[str]
    action: Mapped[str]
    actor_id: Mapped[str | None]
    actor_type: Mapped[str]
    integration: Mapped[str | None]
    ip_address: Mapped[str | None]
    success: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(DateTimeUTC(timezone=True))
    mac: Mapped[bytes] = mapped_column(LargeBinary)


class CredentialAuditChain(TenantOwned, HasId, Base):
    """The end of a tenant's audit chain, and the key that it is made with."""

    __tablename__ = "credential_audit_chains"
    __table_args__ = (UniqueConstraint("tenant_id", name="uq_credential_audit_chains_tenant_id"),)

    key: Mapped[bytes] = mapped_column(Sealed)
    seq: Mapped[int] = mapped_column(BigInteger)
    mac: Mapped[bytes] = mapped_column(LargeBinary)
    # Vouches for the two above: rows cut off the end do not go unseen.
    seal: Mapped[bytes] = mapped_column(LargeBinary)
