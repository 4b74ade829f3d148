from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, ForeignKey, Index, String, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class DocumentSource(TenantOwned, HasId, Timestamps, Base):
    """A web page, sitemap, feed, bucket or archive that documents of an agent are kept equal to.

    `sync_no` counts the syncs; `completed_no` is that of the last one that read everything.
    `document` has what new documents get. The counts are those of the last sync.
    """

    __tablename__ = "document_sources"
    __table_args__ = (
        Index(
            "ix_document_sources_next_sync_at",
            "next_sync_at",
            postgresql_where=text("next_sync_at IS NOT NULL"),
        ),
        Index("ix_document_sources_agent_id", "agent_id", "created_at", "id"),
        Index("ix_document_sources_tenant_id", "tenant_id"),
    )

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    name: Mapped[str]
    type: Mapped[str]
    config: Mapped[dict[str, Any]] = mapped_column(JSONB)
    secrets: Mapped[bytes | None] = mapped_column(Sealed)
    schedule: Mapped[str]
    apply: Mapped[str]
    max_documents: Mapped[int]
    include: Mapped[list[str]] = mapped_column(ARRAY(String))
    exclude: Mapped[list[str]] = mapped_column(ARRAY(String))
    document: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_by: Mapped[str | None]
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    error: Mapped[str | None]
    # Failures since the last sync that succeeded.
    failed_count: Mapped[int] = mapped_column(default=0, server_default="0")
    work_id: Mapped[str | None]
    sync_no: Mapped[int] = mapped_column(default=0, server_default="0")
    completed_no: Mapped[int] = mapped_column(default=0, server_default="0")
    started_at: Mapped[datetime | None]
    last_synced_at: Mapped[datetime | None]
    next_sync_at: Mapped[datetime | None]
    # Until then its server wants no more requests.
    wait_until: Mapped[datetime | None]
    added_count: Mapped[int] = mapped_column(default=0, server_default="0")
    changed_count: Mapped[int] = mapped_column(default=0, server_default="0")
    removed_count: Mapped[int] = mapped_column(default=0, server_default="0")
    # Documents beyond `max_documents`.
    left_out_count: Mapped[int] = mapped_column(default=0, server_default="0")


class SourceEntry(TenantOwned, HasId, Base):
    """What a source has under one address, as it was last seen.

    `change` is what a review has to decide about: added, changed or removed. A discarded one is not
    shown again until there is another content. The content of a change is the file `file_key`.
    """

    __tablename__ = "source_entries"
    __table_args__ = (
        Index("uq_source_entries_url", "source_id", "url", unique=True),
        Index(
            "ix_source_entries_changes",
            "source_id",
            "id",
            postgresql_where=text("change IS NOT NULL AND NOT is_discarded"),
        ),
        Index("ix_source_entries_tenant_id", "tenant_id"),
    )

    source_id: Mapped[str] = mapped_column(ForeignKey("document_sources.id", ondelete="CASCADE"))
    url: Mapped[str]
    name: Mapped[str]
    # The sync that last saw it, and the one that last found it gone.
    seen_no: Mapped[int] = mapped_column(default=0, server_default="0")
    gone_no: Mapped[int] = mapped_column(default=0, server_default="0")
    etag: Mapped[str | None]
    last_modified: Mapped[str | None]
    sha256: Mapped[str | None]
    # That of the text of a page, which differs less often than its markup.
    text_sha256: Mapped[str | None]
    change: Mapped[str | None]
    is_discarded: Mapped[bool] = mapped_column(default=False, server_default="false")
    file_key: Mapped[str | None]
    found_at: Mapped[datetime | None]
    # Why it could not be read.
    problem: Mapped[str | None]
