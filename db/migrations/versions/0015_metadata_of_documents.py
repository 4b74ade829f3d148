"""Tags, groups, validity and fields of documents."""

import re
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_TRIGGERS = """
CREATE OR REPLACE FUNCTION count_insert_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'knowledge', sum(bytes) FROM (
        SELECT tenant_id, %(row)s AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION count_delete_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'knowledge', -sum(bytes) FROM (
        SELECT tenant_id, %(row)s AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION count_update_documents() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint := (%(new_row)s) - (%(old_row)s);
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'knowledge', change);
    END IF;
    RETURN NULL;
END $$;
"""
_STATEMENT = re.compile(r"CREATE.*?END \$\$;", re.DOTALL)
_UPDATE_TRIGGER = """
CREATE OR REPLACE TRIGGER count_update_documents AFTER UPDATE ON documents
FOR EACH ROW WHEN (%s) EXECUTE FUNCTION count_update_documents()
"""
_CHANGES = "OLD.chunk_count <> NEW.chunk_count"
_MORE_CHANGES = (
    " OR OLD.tags <> NEW.tags OR OLD.groups <> NEW.groups OR OLD.fields IS DISTINCT FROM NEW.fields"
)
_VALID_FROM, _VALID_UNTIL = (
    "greatest(valid_from, chunk_valid_from)",
    "least(valid_until, chunk_valid_until)",
)
_INTERNAL = "visibility = 'internal' OR has_internal_chunks"
_RESTRICTED = f"{_INTERNAL} OR groups <> '{{}}' OR chunk_groups <> '{{}}'"
# Each index with what follows the agent in it, and its condition.
_INDEXES = {
    "ix_documents_restricted": (None, _RESTRICTED),
    "ix_documents_valid_from": (_VALID_FROM, f"{_VALID_FROM} IS NOT NULL"),
    "ix_documents_valid_until": (_VALID_UNTIL, f"{_VALID_UNTIL} IS NOT NULL"),
}


def upgrade() -> None:
    names, moment = postgresql.ARRAY(sa.String()), sa.DateTime(timezone=True)
    columns: tuple[sa.Column[Any], ...] = (
        sa.Column("chosen_language", sa.String(), nullable=True),
        sa.Column("tags", names, server_default="{}", nullable=False),
        sa.Column("groups", names, server_default="{}", nullable=False),
        sa.Column("valid_from", moment, nullable=True),
        sa.Column("valid_until", moment, nullable=True),
        sa.Column("chunk_groups", names, nullable=True),
        sa.Column("chunk_valid_from", moment, nullable=True),
        sa.Column("chunk_valid_until", moment, nullable=True),
        sa.Column("fields", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    )
    for column in columns:
        # They are committed before the indexes are built, which may fail and be tried again.
        op.add_column("documents", column, if_not_exists=True)
    # No document has tags, groups or fields yet, so the stored rows count what they did.
    _count(_CHANGES + _MORE_CHANGES, with_metadata=True)
    # Outside of a transaction: documents may be many, and are written to meanwhile.
    with op.get_context().autocommit_block():
        for name, (column_sql, condition) in _INDEXES.items():
            # One that an earlier attempt left unfinished.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            _create_index(name, column_sql, condition, is_concurrent=True)
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_documents_internal")


def downgrade() -> None:
    _create_index("ix_documents_internal", None, _INTERNAL)
    for name in reversed(_INDEXES):
        op.drop_index(name, table_name="documents")
    _count(_CHANGES, with_metadata=False)
    for name in ("fields", "chunk_valid_until", "chunk_valid_from", "chunk_groups"):
        op.drop_column("documents", name)
    for name in ("valid_until", "valid_from", "groups", "tags", "chosen_language"):
        op.drop_column("documents", name)


def _create_index(
    name: str, column: str | None, condition: str, *, is_concurrent: bool = False
) -> None:
    more: list[Any] = [sa.literal_column(column)] if column else []
    op.create_index(
        name,
        "documents",
        ["tenant_id", "agent_id", *more],
        postgresql_where=sa.text(condition),
        postgresql_concurrently=is_concurrent,
    )


def _count(changes: str, *, with_metadata: bool) -> None:
    sizes = {
        "row": _size("t", with_metadata=with_metadata),
        "new_row": _size("NEW", with_metadata=with_metadata),
        "old_row": _size("OLD", with_metadata=with_metadata),
    }
    for statement in _STATEMENT.findall(_TRIGGERS % sizes):
        op.execute(statement)
    op.execute(_UPDATE_TRIGGER % changes)


def _size(row: str, *, with_metadata: bool) -> str:
    size = f"256 + 2560 * {row}.chunk_count::bigint"
    if not with_metadata:
        return size
    fields = f"coalesce(octet_length({row}.fields::text), 0)"
    names = f"octet_length(array_to_string({row}.tags || {row}.groups, ''))"
    return f"{size} + {fields} + {names}"
