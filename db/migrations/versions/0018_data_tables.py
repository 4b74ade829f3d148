"""Data tables, their rows and imports."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_TEXT_SLOTS = ("t1", "t2", "t3", "t4", "t5", "t6")
_NUMBER_SLOTS = ("n1", "n2", "n3", "n4", "n5", "n6")
_UNIQUE_SLOTS = ("u1", "u2", "u3", "u4")


def _time(name: str) -> sa.Column[object]:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )


def _tenant(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_tenant_id_tenants")
    return sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=name, ondelete="CASCADE")


def _table(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_table_id_data_tables")
    return sa.ForeignKeyConstraint(["table_id"], ["data_tables.id"], name=name, ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "data_tables",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), server_default="", nullable=False),
        sa.Column("columns", postgresql.JSONB(), nullable=False),
        sa.Column("next_key", sa.Integer(), server_default="1", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        _time("created_at"),
        _time("updated_at"),
        _tenant("data_tables"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_tables")),
    )
    op.create_index(
        "ix_data_tables_tenant_id_created_at", "data_tables", ["tenant_id", "created_at", "id"]
    )
    op.create_index(
        "ix_data_tables_deleted_at",
        "data_tables",
        ["deleted_at"],
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_table(
        "data_table_counts",
        sa.Column("table_id", sa.String(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        _table("data_table_counts"),
        _tenant("data_table_counts"),
        sa.PrimaryKeyConstraint("table_id", "part", name=op.f("pk_data_table_counts")),
    )
    op.create_index("ix_data_table_counts_tenant_id", "data_table_counts", ["tenant_id"])
    text_slots = (*_TEXT_SLOTS, *_UNIQUE_SLOTS)
    op.create_table(
        "data_rows",
        sa.Column("table_id", sa.String(), nullable=False),
        sa.Column("values", postgresql.JSONB(), nullable=False),
        sa.Column("source", sa.String(), nullable=True),
        _time("created_at"),
        _time("updated_at"),
        *(sa.Column(slot, sa.String(collation="C"), nullable=True) for slot in text_slots),
        *(sa.Column(slot, sa.Float(53), nullable=True) for slot in _NUMBER_SLOTS),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        _table("data_rows"),
        _tenant("data_rows"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_rows")),
    )
    op.create_index("ix_data_rows_table_id", "data_rows", ["table_id", "id"])
    op.create_index(
        "ix_data_rows_table_id_updated_at", "data_rows", ["table_id", "updated_at", "id"]
    )
    op.create_index("ix_data_rows_tenant_id", "data_rows", ["tenant_id"])
    op.create_index(
        "uq_data_rows_source",
        "data_rows",
        ["tenant_id", "source"],
        unique=True,
        postgresql_where=sa.text("source IS NOT NULL"),
    )
    for slot in (*_TEXT_SLOTS, *_NUMBER_SLOTS):
        op.create_index(
            f"ix_data_rows_{slot}",
            "data_rows",
            ["table_id", slot, "id"],
            postgresql_where=sa.text(f"{slot} IS NOT NULL"),
        )
    for slot in _UNIQUE_SLOTS:
        op.create_index(
            f"uq_data_rows_{slot}",
            "data_rows",
            ["table_id", slot],
            unique=True,
            postgresql_where=sa.text(f"{slot} IS NOT NULL"),
        )
    op.create_table(
        "data_imports",
        sa.Column("table_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("filename", sa.String(), nullable=False),
        sa.Column("file_key", sa.String(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("match_key", sa.String(), nullable=True),
        sa.Column("delimiter", sa.String(), nullable=True),
        sa.Column("rows_total", sa.Integer(), nullable=True),
        sa.Column("rows_done", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_failed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("errors", postgresql.JSONB(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("work_id", sa.String(), nullable=False),
        _time("created_at"),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        _table("data_imports"),
        _tenant("data_imports"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_imports")),
    )
    op.create_index("ix_data_imports_table_id", "data_imports", ["table_id", "id"])
    op.create_index("ix_data_imports_tenant_id", "data_imports", ["tenant_id", "id"])
    op.create_index("ix_data_imports_created_at", "data_imports", ["created_at"])
    op.create_table(
        "data_import_errors",
        sa.Column("import_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("column_name", sa.String(), nullable=True),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["import_id"],
            ["data_imports.id"],
            name=op.f("fk_data_import_errors_import_id_data_imports"),
            ondelete="CASCADE",
        ),
        _tenant("data_import_errors"),
        sa.PrimaryKeyConstraint("import_id", "number", name=op.f("pk_data_import_errors")),
    )
    op.create_index("ix_data_import_errors_tenant_id", "data_import_errors", ["tenant_id"])


def downgrade() -> None:
    for table in (
        *("data_import_errors", "data_imports", "data_rows"),
        *("data_table_counts", "data_tables"),
    ):
        op.drop_table(table)
