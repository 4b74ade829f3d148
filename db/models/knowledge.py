from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ForeignKey, Index, SmallInteger, String, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned


class KnowledgeBase(TenantOwned, Base):
    """The vector table of an agent's documents.

    The table's name has the agent's id and `generation`. A table that is rebuilt gets a generation
    that no attempt had before. `revision` grows with every change that readers have to see.
    """

    __tablename__ = "knowledge_bases"
    __table_args__ = (
        Index(
            "ix_knowledge_bases_maintain_at",
            "maintain_at",
            postgresql_where=text("maintain_at IS NOT NULL"),
        ),
        Index("ix_knowledge_bases_tenant_id", "tenant_id"),
    )

    agent_id: Mapped[str] = mapped_column(
        ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True
    )
    generation: Mapped[int] = mapped_column(default=1, server_default="1")
    last_generation: Mapped[int] = mapped_column(default=1, server_default="1")
    revision: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    embedding_model: Mapped[str]
    # That of the table's columns; a table of an older one is rebuilt.
    format: Mapped[int] = mapped_column(SmallInteger, default=1, server_default="1")
    # Those of its documents. A question is cut into terms by all of them.
    languages: Mapped[list[str]] = mapped_column(ARRAY(String), default=list, server_default="{}")
    # The sentence encoders that have encoded passages of this generation.
    encoders: Mapped[list[str]] = mapped_column(ARRAY(String), default=list, server_default="{}")
    # Until then it is not refined, since that failed.
    refine_after: Mapped[datetime | None]
    # Rows were deleted or replaced; their text is still in the files of this generation.
    has_removed_chunks: Mapped[bool] = mapped_column(default=False, server_default="false")
    # When the table is to be compacted, indexed or rebuilt.
    maintain_at: Mapped[datetime | None]
    # A large table is not rebuilt for each document that is removed.
    rebuild_after: Mapped[datetime | None]
    # One process at a time changes the table.
    writer: Mapped[str | None]
    writer_until: Mapped[datetime | None]


class Document(TenantOwned, HasId, Base):
    """A file of an agent's knowledge base. `version` counts its uploads and re-indexings.

    `chunk_count` is that of the last version that was read. A document with `deleted_at` is hidden
    until its chunks are removed.

    `visibility` is public or internal; chunks of internal documents are not for visitors. Those of
    a document with `groups` are only for visitors of one of them. Nobody finds a document that is
    not valid now. Until a new file was read, the chunks keep also the groups and the validity that
    they had before: `chunk_groups` and what follows it, which are NULL otherwise.
    """

    __tablename__ = "documents"
    __table_args__ = (
        Index(
            "uq_documents_agent_id_name",
            "agent_id",
            "name",
            unique=True,
            postgresql_where=text("deleted_at IS NULL"),
        ),
        # Read by every turn of the agent; there are few such rows.
        Index(
            "ix_documents_deleted",
            "tenant_id",
            "agent_id",
            postgresql_where=text("deleted_at IS NOT NULL"),
        ),
        # Read by every turn of a visitor.
        Index(
            "ix_documents_restricted",
            "tenant_id",
            "agent_id",
            postgresql_where=text(
                "visibility = 'internal' OR has_internal_chunks OR groups <> '{}' "
                "OR chunk_groups <> '{}'"
            ),
        ),
        # Read by every turn, from now on to the future, and from the past until now.
        Index(
            "ix_documents_valid_from",
            "tenant_id",
            "agent_id",
            text("greatest(valid_from, chunk_valid_from)"),
            postgresql_where=text("greatest(valid_from, chunk_valid_from) IS NOT NULL"),
        ),
        Index(
            "ix_documents_valid_until",
            "tenant_id",
            "agent_id",
            text("least(valid_until, chunk_valid_until)"),
            postgresql_where=text("least(valid_until, chunk_valid_until) IS NOT NULL"),
        ),
        # Read by every turn, and by the work that refines them; mostly there are few such rows.
        Index(
            "ix_documents_unrefined",
            "tenant_id",
            "agent_id",
            postgresql_where=text("refined_count < chunk_count AND deleted_at IS NULL"),
        ),
        Index("ix_documents_tenant_id_agent_id", "tenant_id", "agent_id", "created_at", "id"),
        Index(
            "ix_documents_source_id",
            "source_id",
            "source_url",
            postgresql_where=text("source_id IS NOT NULL"),
        ),
        # Read by every turn.
        Index(
            "ix_documents_with_address",
            "tenant_id",
            "agent_id",
            postgresql_where=text("source_url IS NOT NULL"),
        ),
    )

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    name: Mapped[str]
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    error: Mapped[str | None]
    visibility: Mapped[str] = mapped_column(default="public", server_default="public")
    # The chunks are of an internal version, which a public one replaces as soon as it is read.
    has_internal_chunks: Mapped[bool] = mapped_column(default=False, server_default="false")
    mime_type: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str | None]
    # None when the file was refused and not stored.
    file_key: Mapped[str | None]
    version: Mapped[int] = mapped_column(default=1, server_default="1")
    chunk_count: Mapped[int] = mapped_column(default=0, server_default="0")
    # That of most of its text, like "de"; None until it was read.
    language: Mapped[str | None]
    # The language that somebody has set instead.
    chosen_language: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(ARRAY(String), default=list, server_default="{}")
    groups: Mapped[list[str]] = mapped_column(ARRAY(String), default=list, server_default="{}")
    valid_from: Mapped[datetime | None]
    valid_until: Mapped[datetime | None]
    chunk_groups: Mapped[list[str] | None] = mapped_column(ARRAY(String))
    chunk_valid_from: Mapped[datetime | None]
    chunk_valid_until: Mapped[datetime | None]
    # Names and values of the tenant's own; None for none.
    fields: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    # How many of the chunks the sentence encoder has encoded.
    refined_count: Mapped[int] = mapped_column(default=0, server_default="0")
    # How often its passages were quoted to a model. What is asked most is refined first.
    asked_count: Mapped[int] = mapped_column(default=0, server_default="0")
    work_id: Mapped[str | None]
    # What is done with a document that is processed, since when, and with how many passages.
    stage: Mapped[str | None]
    stage_at: Mapped[datetime | None]
    passage_count: Mapped[int | None]
    embedded_count: Mapped[int] = mapped_column(default=0, server_default="0")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    processed_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]
    # What it is kept equal to. A document whose source was deleted keeps the address.
    source_id: Mapped[str | None] = mapped_column(
        ForeignKey("document_sources.id", ondelete="SET NULL")
    )
    source_url: Mapped[str | None]
