from sqlalchemy import BigInteger, ForeignKey, Identity, SmallInteger
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, TenantOwned


class StorageUsage(TenantOwned, Base):
    """What a tenant stores. Files are counted in the transactions that add and delete them, so that
    no two uploads take the same free space. The rest is added up from `StorageChange`.
    """

    __tablename__ = "storage_usage"

    tenant_id: Mapped[str] = mapped_column(
        ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True
    )
    # Those of files alone.
    used_bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    file_count: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    # The sum of `StorageKind`.
    other_bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    # The last level, in percent of the quota, that an event told of.
    warned_percent: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")


class StorageKind(TenantOwned, Base):
    """What the rows of one kind take, besides files. Only workers write it."""

    __tablename__ = "storage_kinds"

    tenant_id: Mapped[str] = mapped_column(
        ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True
    )
    kind: Mapped[str] = mapped_column(primary_key=True)
    bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")


class StorageChange(TenantOwned, Base):
    """By how much one statement changed what rows of one kind take; workers add it up and delete
    it. Triggers write it, so that no statement is forgotten, the deletions of foreign keys
    included. A counter that every statement updates would make a tenant's transactions wait for
    each other.
    """

    __tablename__ = "storage_changes"

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    # No foreign key: a deleted tenant's rows are discarded.
    tenant_id: Mapped[str] = mapped_column()
    kind: Mapped[str]
    bytes: Mapped[int] = mapped_column(BigInteger)
