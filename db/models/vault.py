from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, UniqueConstraint, func
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class Credential(TenantOwned, HasId, Timestamps, Base):
    """Secrets of one external account, sealed as one value; their names are not secret."""

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
    last_tested_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    # Incremented with each change, so that a refreshed token never replaces newer secrets.
    secrets_version: Mapped[int] = mapped_column(default=1, server_default="1")
    # When somebody replaced the secrets; a refreshed token does not count.
    secrets_updated_at: Mapped[datetime | None]
    token_expires_at: Mapped[datetime | None]
    # The process that refreshes the token now, and until when others wait for it.
    refresh_holder: Mapped[str | None]
    refresh_until: Mapped[datetime | None]


class CredentialAccess(TenantOwned, HasId, Base):
    """An integration that may use a credential: an agent, a tool, a workflow, a channel."""

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
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class CredentialAudit(TenantOwned, HasId, Base):
    """An action on a credential and its actor. The MAC of each row covers the row before it."""

    __tablename__ = "credential_audit"
    __table_args__ = (
        UniqueConstraint("tenant_id", "seq", name="uq_credential_audit_tenant_id_seq"),
        Index("ix_credential_audit_credential_id", "credential_id", "seq"),
    )

    seq: Mapped[int] = mapped_column(BigInteger)
    # No foreign key: the row outlives its credential.
    credential_id: Mapped[str]
    action: Mapped[str]
    actor_id: Mapped[str | None]
    actor_type: Mapped[str]
    integration: Mapped[str | None]
    ip_address: Mapped[str | None]
    success: Mapped[bool]
    created_at: Mapped[datetime]
    mac: Mapped[bytes] = mapped_column(LargeBinary)


class CredentialAuditChain(TenantOwned, HasId, Base):
    """The last row of a tenant's audit chain, and the key of its MACs."""

    __tablename__ = "credential_audit_chains"
    __table_args__ = (UniqueConstraint("tenant_id", name="uq_credential_audit_chains_tenant_id"),)

    key: Mapped[bytes] = mapped_column(Sealed)
    seq: Mapped[int] = mapped_column(BigInteger)
    mac: Mapped[bytes] = mapped_column(LargeBinary)
    # A MAC of `seq` and `mac`, which reveals rows deleted from the end.
    seal: Mapped[bytes] = mapped_column(LargeBinary)
