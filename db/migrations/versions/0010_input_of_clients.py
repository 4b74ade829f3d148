"""Asynchronous turns of clients with functions and parameters of their own."""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_TRIGGERS = """
CREATE OR REPLACE FUNCTION count_delete_chat_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO storage_changes (tenant_id, kind, bytes)
    SELECT tenant_id, 'conversations', -sum(bytes) FROM (
        SELECT tenant_id, %(old)s AS bytes FROM changed t
    ) counted
    GROUP BY tenant_id HAVING sum(bytes) > 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION count_update_chat_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE change bigint := (%(new_row)s) - (%(old_row)s);
BEGIN
    IF change <> 0 THEN
        INSERT INTO storage_changes (tenant_id, kind, bytes)
        VALUES (NEW.tenant_id, 'conversations', change);
    END IF;
    RETURN NULL;
END $$;
"""
_STATEMENT = re.compile(r"CREATE.*?END \$\$;", re.DOTALL)
_COUNTED = ("reply", "context")


def upgrade() -> None:
    op.add_column("chat_jobs", sa.Column("client", JSONB(), nullable=True))
    # No job has a client yet, so the stored rows count what they did.
    _count((*_COUNTED, "client"))


def downgrade() -> None:
    _count(_COUNTED)
    op.drop_column("chat_jobs", "client")


def _count(columns: tuple[str, ...]) -> None:
    sizes = {
        "old": _size("t", columns),
        "new_row": _size("NEW", columns),
        "old_row": _size("OLD", columns),
    }
    for statement in _STATEMENT.findall(_TRIGGERS % sizes):
        op.execute(statement)


def _size(row: str, columns: tuple[str, ...]) -> str:
    more = "".join(f" + coalesce(octet_length({row}.{name}::text), 0)" for name in columns)
    size = f"256 + octet_length({row}.progress::text){more}"
    return f"CASE WHEN {row}.finished_at IS NULL THEN 0 ELSE {size} END"
