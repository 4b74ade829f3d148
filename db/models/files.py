from datetime import datetime

from sqlalchemy import BigInteger, Index, func
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, DateTimeUTC, HasId, TenantOwned


class File(TenantOwned, HasId, Base):
    """A file in the store; its key there is made of its id alone."""

    __tablename__ = "files"
    __table_args__ = (Index("ix_files_tenant_id_created_at", "tenant_id", "created_at", "id"),)

    filename: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    # By content, not by name.
    mime_type: Mapped[str]
    sha256: Mapped[str]
    # No foreign key: the file outlives the user.
    created_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(
        DateTimeUTC(timezone=True), server_default=func.now()
    )
