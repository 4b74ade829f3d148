from typing import Any

from sqlalchemy import UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned, Timestamps


class RecordDraft(TenantOwned, HasId, Timestamps, Base):
    """Changes of a record that are not live yet, at most one draft for each record."""

    __tablename__ = "record_drafts"
    __table_args__ = (
        UniqueConstraint(
            "tenant_id", "kind", "record_id", name="uq_record_drafts_tenant_id_kind_record_id"
        ),
    )

    # `agent`, and the record's id there.
    kind: Mapped[str]
    record_id: Mapped[str]
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    # The record when the draft began: its version, and all fields that a draft can have.
    base_version: Mapped[int]
    base: Mapped[dict[str, Any]] = mapped_column(JSONB)
    saved_by: Mapped[str | None]
