from datetime import date, datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSON
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned


def _form_id() -> Any:
    return mapped_column(ForeignKey("forms.id", ondelete="CASCADE"))


class FormCount(TenantOwned, Base):
    """The number of submissions of a form, in parts, so that writers do not wait for each other."""

    __tablename__ = "form_counts"
    __table_args__ = (Index("ix_form_counts_tenant_id", "tenant_id"),)

    form_id: Mapped[str] = mapped_column(
        ForeignKey("forms.id", ondelete="CASCADE"), primary_key=True
    )
    part: Mapped[int] = mapped_column(primary_key=True)
    submissions: Mapped[int] = mapped_column(BigInteger)


class FormViewCount(TenantOwned, Base):
    """How often a form was shown on a day (in UTC)."""

    __tablename__ = "form_views"
    __table_args__ = (Index("ix_form_views_tenant_id", "tenant_id"),)

    form_id: Mapped[str] = mapped_column(
        ForeignKey("forms.id", ondelete="CASCADE"), primary_key=True
    )
    day: Mapped[date] = mapped_column(primary_key=True)
    views: Mapped[int] = mapped_column(BigInteger)


class FormSubmission(TenantOwned, HasId, Base):
    """The answers of somebody, and how they came."""

    __tablename__ = "form_submissions"
    __table_args__ = (
        Index("ix_form_submissions_form_id_created_at", "form_id", "created_at", "id"),
        Index("ix_form_submissions_form_id_status", "form_id", "status", "created_at", "id"),
        # Analytics read this index alone.
        Index(
            "ix_form_submissions_figures",
            "form_id",
            "version",
            "answered",
            postgresql_include=["tenant_id", "source", "created_at", "completion_seconds"],
        ),
        Index("ix_form_submissions_fingerprint", "fingerprint", "created_at"),
    )

    # No foreign key: the row is deleted with its form.
    tenant_id: Mapped[str] = mapped_column()
    form_id: Mapped[str] = _form_id()
    version: Mapped[int]
    status: Mapped[str] = mapped_column(default="received", server_default="received")
    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    # The caller's own keys.
    custom_metadata: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    source: Mapped[str]
    ip_address: Mapped[str]
    user_agent: Mapped[str]
    page_url: Mapped[str]
    referrer: Mapped[str]
    # Signs of abuse: honeypot, repeat.
    flags: Mapped[list[str]] = mapped_column(ARRAY(String), server_default="{}")
    # Which fields of the version are answered: a 0 or 1 for each that takes answers, in order.
    answered: Mapped[str]
    completion_seconds: Mapped[int | None]
    # A hash of form, address and answers, to find repeated submissions.
    fingerprint: Mapped[int] = mapped_column(BigInteger)
    # No foreign keys: the submission outlives all of these.
    submitted_by: Mapped[str | None]
    conversation_id: Mapped[str | None]
    workflow_execution_id: Mapped[str | None]
    row_id: Mapped[str | None]
    # What failed while it was processed, each with a step and a message.
    errors: Mapped[list[dict[str, str]]] = mapped_column(JSON, default=list)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    processed_at: Mapped[datetime | None]


class FormUpload(TenantOwned, Base):
    """A file that was uploaded for a field. It is deleted at `expires_at` unless a submission, a
    draft or a conversation keeps it.
    """

    __tablename__ = "form_uploads"
    __table_args__ = (
        Index("ix_form_uploads_tenant_id", "tenant_id"),
        Index("ix_form_uploads_form_id", "form_id", "submission_id"),
        # What an address uploaded to a form, and what waits for submissions in a tenant.
        Index("ix_form_uploads_network", "form_id", "network", "created_at"),
        Index(
            "ix_form_uploads_waiting",
            "tenant_id",
            postgresql_include=["network", "size_bytes"],
            postgresql_where=text("submission_id IS NULL"),
        ),
        Index(
            "ix_form_uploads_submission_id",
            "submission_id",
            postgresql_where=text("submission_id IS NOT NULL"),
        ),
        Index(
            "ix_form_uploads_expires_at",
            "expires_at",
            postgresql_where=text("expires_at IS NOT NULL"),
        ),
    )

    # No foreign keys to files, which belong to another area, and to submissions, whose files are
    # deleted after them.
    file_id: Mapped[str] = mapped_column(primary_key=True)
    form_id: Mapped[str] = _form_id()
    field_id: Mapped[str]
    submission_id: Mapped[str | None]
    filename: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    mime_type: Mapped[str]
    # From where it was sent: only some may wait for one.
    network: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    # Null for a file of a submission.
    expires_at: Mapped[datetime | None]


class FormMailCount(TenantOwned, Base):
    """How many mails a form has sent within an hour, and how many submissions the next digest
    counts.
    """

    __tablename__ = "form_mail_counts"
    __table_args__ = (Index("ix_form_mail_counts_tenant_id", "tenant_id"),)

    form_id: Mapped[str] = mapped_column(
        ForeignKey("forms.id", ondelete="CASCADE"), primary_key=True
    )
    hour: Mapped[datetime]
    mails: Mapped[int]
    withheld: Mapped[int] = mapped_column(default=0, server_default="0")
    # Part of the key of the next digest's work.
    digests: Mapped[int] = mapped_column(default=0, server_default="0")


class FormDraft(TenantOwned, HasId, Base):
    """Answers that a visitor continues later. The link has the secret, of which the hash is stored.
    Once expired, it is kept without its answers, for analytics.
    """

    __tablename__ = "form_drafts"
    __table_args__ = (
        Index("ix_form_drafts_tenant_id", "tenant_id"),
        Index("ix_form_drafts_form_id", "form_id", "stopped_at"),
        Index(
            "ix_form_drafts_expires_at",
            "expires_at",
            postgresql_where=text("token_hash IS NOT NULL"),
        ),
    )

    form_id: Mapped[str] = _form_id()
    version: Mapped[int]
    token_hash: Mapped[str | None] = mapped_column(unique=True)
    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    # The first field without an answer.
    stopped_at: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]
