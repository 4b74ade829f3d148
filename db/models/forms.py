from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned, Timestamps


def _form_id() -> Any:
    return mapped_column(ForeignKey("forms.id", ondelete="CASCADE"))


class Form(TenantOwned, HasId, Timestamps, Base):
    """A form. Its fields are in its versions; `version` is the newest one."""

    __tablename__ = "forms"
    __table_args__ = (
        Index("ix_forms_tenant_id_created_at", "tenant_id", "created_at", "id"),
        Index("ix_forms_deleted_at", "deleted_at", postgresql_where=text("deleted_at IS NOT NULL")),
    )

    name: Mapped[str]
    # The public address names no tenant, so that the slug is unique in the instance.
    slug: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str] = mapped_column(default="", server_default="")
    status: Mapped[str] = mapped_column(default="draft", server_default="draft")
    version: Mapped[int] = mapped_column(default=1, server_default="1")
    field_count: Mapped[int]
    settings: Mapped[dict[str, Any]] = mapped_column(JSONB, default=dict, server_default="{}")
    branding: Mapped[dict[str, Any]] = mapped_column(JSONB, default=dict, server_default="{}")
    # No foreign key: a deleted workflow starts nothing.
    workflow_id: Mapped[str | None]
    data_table_config: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    # No foreign key: the form outlives the user.
    created_by: Mapped[str | None]
    published_at: Mapped[datetime | None]
    # A deleted form is hidden until its submissions and files are deleted.
    deleted_at: Mapped[datetime | None]


class FormVersion(TenantOwned, HasId, Base):
    """The fields at one time. Once published it never changes: submissions keep the version that
    they were made for.
    """

    __tablename__ = "form_versions"
    __table_args__ = (
        Index("ix_form_versions_tenant_id", "tenant_id"),
        UniqueConstraint("form_id", "version", name="uq_form_versions_form_id_version"),
    )

    form_id: Mapped[str] = _form_id()
    version: Mapped[int]
    # The order of keys is the author's.
    fields: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    created_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    # When it could be submitted for the first time.
    published_at: Mapped[datetime | None]


class FormRecipient(TenantOwned, Base):
    """An address outside of a tenant that its forms may mail to, once its owner has agreed by the
    link that was mailed. The secret of the link is stored as a hash.
    """

    __tablename__ = "form_recipients"

    tenant_id: Mapped[str] = mapped_column(
        ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True
    )
    # In lower case.
    address: Mapped[str] = mapped_column(primary_key=True)
    token_hash: Mapped[str | None] = mapped_column(unique=True)
    expires_at: Mapped[datetime | None]
    confirmed_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
