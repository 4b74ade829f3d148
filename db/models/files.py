from datetime import datetime

from sqlalchemy import BigInteger, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned

# The other purposes belong to their own areas, which have many more files.
_IS_LISTED = text("purpose IN ('upload', 'form')")


class File(TenantOwned, HasId, Base):
    """A file in the store. Its key there has ids and random values, never a name from a user."""

    __tablename__ = "files"
    __table_args__ = (
        # For lists of one purpose, and for the deletion of a tenant. An index of the tenant alone
        # would be chosen for lists of a tenant that the statistics do not know yet.
        Index("ix_files_tenant_id_purpose", "tenant_id", "purpose", "created_at", "id"),
        *(
            Index(f"ix_files_listed_{name}", "tenant_id", name, "id", postgresql_where=_IS_LISTED)
            for name in ("created_at", "filename", "size_bytes", "mime_type")
        ),
        Index(
            "ix_files_listed_type_created_at",
            "tenant_id",
            "mime_type",
            "created_at",
            "id",
            postgresql_where=_IS_LISTED,
        ),
        # For lists of all tenants.
        Index("ix_files_listed", "created_at", "id", postgresql_where=_IS_LISTED),
        Index(
            "ix_files_owner_id",
            "owner_id",
            postgresql_where=text("owner_id IS NOT NULL"),
        ),
    )

    key: Mapped[str] = mapped_column(unique=True)
    # What it is stored for: upload, document, avatar or form.
    purpose: Mapped[str] = mapped_column(default="upload", server_default="upload")
    # The agent of a document, the user of an avatar, the form of an upload; no foreign key, since
    # the area of the owner deletes its files.
    owner_id: Mapped[str | None]
    filename: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    # By content, not by name.
    mime_type: Mapped[str]
    sha256: Mapped[str]
    # No foreign key: the file outlives the user.
    created_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
