from datetime import datetime
from typing import Any, Final

from sqlalchemy import BigInteger, Float, ForeignKey, Index, String, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned, Timestamps

_TEXT_SLOTS: Final = ("t1", "t2", "t3", "t4", "t5", "t6")
_NUMBER_SLOTS: Final = ("n1", "n2", "n3", "n4", "n5", "n6")
_UNIQUE_SLOTS: Final = ("u1", "u2", "u3", "u4")


def _slot_index(slot: str) -> Index:
    condition = text(f"{slot} IS NOT NULL")
    return Index(f"ix_data_rows_{slot}", "table_id", slot, "id", postgresql_where=condition)


def _unique_index(slot: str) -> Index:
    condition = text(f"{slot} IS NOT NULL")
    return Index(f"uq_data_rows_{slot}", "table_id", slot, unique=True, postgresql_where=condition)


def _text_slot() -> Any:
    """Ordered by code points, so that the order of the first characters is that of the texts."""
    return mapped_column(String(collation="C"))


class DataTable(TenantOwned, HasId, Timestamps, Base):
    """A table of a tenant. One with `deleted_at` is hidden until its rows are removed.

    `columns` is a list; each column has a key that no other column of the table gets later.
    `revision` grows with every change of the columns.
    """

    __tablename__ = "data_tables"
    __table_args__ = (
        Index("ix_data_tables_tenant_id_created_at", "tenant_id", "created_at", "id"),
        Index(
            "ix_data_tables_deleted_at",
            "deleted_at",
            postgresql_where=text("deleted_at IS NOT NULL"),
        ),
    )

    name: Mapped[str]
    description: Mapped[str] = mapped_column(default="", server_default="")
    columns: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    next_key: Mapped[int] = mapped_column(default=1, server_default="1")
    revision: Mapped[int] = mapped_column(default=1, server_default="1")
    # No foreign key: the table outlives the user.
    created_by: Mapped[str | None]
    deleted_at: Mapped[datetime | None]


class DataTableCount(TenantOwned, Base):
    """The number of rows of a table, in parts, so that writers do not wait for each other."""

    __tablename__ = "data_table_counts"
    __table_args__ = (Index("ix_data_table_counts_tenant_id", "tenant_id"),)

    table_id: Mapped[str] = mapped_column(
        ForeignKey("data_tables.id", ondelete="CASCADE"), primary_key=True
    )
    part: Mapped[int] = mapped_column(primary_key=True)
    rows: Mapped[int] = mapped_column(BigInteger)


class DataRow(TenantOwned, HasId, Base):
    """A row. `values` has the values by the keys of their columns, without nulls.

    Slots have the values of indexed columns once more: t for texts, n for numbers, u for unique
    values. A slot that a column of the table has is never NULL, not even for a missing value; the
    others are NULL, or have values of a column that was dropped. `created_at` is the time in the
    id, so that the order of ids is that of creation.
    """

    __tablename__ = "data_rows"
    __table_args__ = (
        Index("ix_data_rows_table_id", "table_id", "id"),
        Index("ix_data_rows_table_id_updated_at", "table_id", "updated_at", "id"),
        Index("ix_data_rows_tenant_id", "tenant_id"),
        Index(
            "uq_data_rows_source",
            "tenant_id",
            "source",
            unique=True,
            postgresql_where=text("source IS NOT NULL"),
        ),
        *(_slot_index(slot) for slot in (*_TEXT_SLOTS, *_NUMBER_SLOTS)),
        *(_unique_index(slot) for slot in _UNIQUE_SLOTS),
    )

    table_id: Mapped[str] = mapped_column(ForeignKey("data_tables.id", ondelete="CASCADE"))
    values: Mapped[dict[str, Any]] = mapped_column(JSONB)
    # What inserted the row, so that it inserts it only once.
    source: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    t1: Mapped[str | None] = _text_slot()
    t2: Mapped[str | None] = _text_slot()
    t3: Mapped[str | None] = _text_slot()
    t4: Mapped[str | None] = _text_slot()
    t5: Mapped[str | None] = _text_slot()
    t6: Mapped[str | None] = _text_slot()
    n1: Mapped[float | None] = mapped_column(Float(53))
    n2: Mapped[float | None] = mapped_column(Float(53))
    n3: Mapped[float | None] = mapped_column(Float(53))
    n4: Mapped[float | None] = mapped_column(Float(53))
    n5: Mapped[float | None] = mapped_column(Float(53))
    n6: Mapped[float | None] = mapped_column(Float(53))
    u1: Mapped[str | None] = _text_slot()
    u2: Mapped[str | None] = _text_slot()
    u3: Mapped[str | None] = _text_slot()
    u4: Mapped[str | None] = _text_slot()


class DataImport(TenantOwned, HasId, Base):
    """An import of a CSV file. `rows_done` counts the rows that were read, also wrong ones."""

    __tablename__ = "data_imports"
    __table_args__ = (
        Index("ix_data_imports_table_id", "table_id", "id"),
        Index("ix_data_imports_tenant_id", "tenant_id", "id"),
        Index("ix_data_imports_created_at", "created_at"),
    )

    table_id: Mapped[str] = mapped_column(ForeignKey("data_tables.id", ondelete="CASCADE"))
    status: Mapped[str]
    filename: Mapped[str]
    file_key: Mapped[str]
    mode: Mapped[str]
    # The column by which rows are matched, by its key.
    match_key: Mapped[str | None]
    delimiter: Mapped[str | None]
    rows_total: Mapped[int | None]
    rows_done: Mapped[int] = mapped_column(default=0, server_default="0")
    rows_failed: Mapped[int] = mapped_column(default=0, server_default="0")
    errors: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    error: Mapped[str | None]
    work_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]


class DataImportError(TenantOwned, Base):
    """What is wrong with a row of a file. `number` counts its rows from 1."""

    __tablename__ = "data_import_errors"
    __table_args__ = (Index("ix_data_import_errors_tenant_id", "tenant_id"),)

    import_id: Mapped[str] = mapped_column(
        ForeignKey("data_imports.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    # None where the whole row is wrong.
    column_name: Mapped[str | None]
    message: Mapped[str]
