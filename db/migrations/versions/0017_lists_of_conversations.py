"""Conversations are listed across agents: what filters need, and how far users have read."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_COUNTS = ("failed_answers", "ratings_up", "ratings_down")
_INDEXES = (
    ("ix_conversations_last_message_at", "tenant_id, last_message_at, id", ""),
    ("ix_conversations_source", "tenant_id, source, last_message_at, id", ""),
    ("ix_conversations_of_user", "user_id, last_message_at, id", "user_id IS NOT NULL"),
    (
        "ix_conversations_of_visitor",
        "tenant_id, (visitor ->> 'id'), last_message_at, id",
        "visitor IS NOT NULL",
    ),
    ("ix_conversations_failed", "tenant_id, last_message_at, id", "failed_answers > 0"),
    (
        "ix_conversations_rated",
        "tenant_id, last_message_at, id",
        "ratings_up > 0 OR ratings_down > 0",
    ),
)
_IS_FAILED = "{row}.status = 'failed' AND {row}.type = 'message' AND {row}.replaced_by IS NULL"
_OLD_FAILED, _NEW_FAILED = _IS_FAILED.format(row="OLD"), _IS_FAILED.format(row="NEW")
# Rows whose answer did not fail call no function.
_FAILURES = f"""
CREATE OR REPLACE FUNCTION count_failed_answers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE conversations SET failed_answers = failed_answers + TG_ARGV[0]::int
    WHERE id = CASE TG_OP WHEN 'DELETE' THEN OLD.conversation_id ELSE NEW.conversation_id END;
    RETURN NULL;
END $$
|
CREATE OR REPLACE TRIGGER count_added_failure AFTER INSERT ON conversation_entries
FOR EACH ROW WHEN ({_NEW_FAILED}) EXECUTE FUNCTION count_failed_answers('1')
|
CREATE OR REPLACE TRIGGER count_deleted_failure AFTER DELETE ON conversation_entries
FOR EACH ROW WHEN ({_OLD_FAILED}) EXECUTE FUNCTION count_failed_answers('-1')
|
CREATE OR REPLACE TRIGGER count_replaced_failure AFTER UPDATE ON conversation_entries
FOR EACH ROW WHEN (({_OLD_FAILED}) AND NOT ({_NEW_FAILED}))
EXECUTE FUNCTION count_failed_answers('-1')
|
CREATE OR REPLACE TRIGGER count_restored_failure AFTER UPDATE ON conversation_entries
FOR EACH ROW WHEN (NOT ({_OLD_FAILED}) AND ({_NEW_FAILED}))
EXECUTE FUNCTION count_failed_answers('1')
"""
_RATINGS = """
CREATE OR REPLACE FUNCTION count_ratings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE conversations c
    SET ratings_up = c.ratings_up + changed.up, ratings_down = c.ratings_down + changed.down
    FROM (SELECT coalesce((NEW.rating = 'up')::int, 0) - coalesce((OLD.rating = 'up')::int, 0),
                 coalesce((NEW.rating = 'down')::int, 0) - coalesce((OLD.rating = 'down')::int, 0)
         ) AS changed (up, down)
    WHERE c.id = coalesce(NEW.conversation_id, OLD.conversation_id)
      AND (changed.up <> 0 OR changed.down <> 0);
    RETURN NULL;
END $$
|
CREATE OR REPLACE TRIGGER count_ratings AFTER INSERT OR DELETE OR UPDATE OF rating
ON message_feedback FOR EACH ROW EXECUTE FUNCTION count_ratings()
"""
# Before the triggers exist, and in the transaction that creates them.
_FILL = """
UPDATE message_feedback f SET conversation_id = e.conversation_id
FROM conversation_entries e WHERE e.id = f.message_id AND f.conversation_id IS NULL
|
UPDATE conversations c SET failed_answers = counted.failed
FROM (SELECT conversation_id, count(*) AS failed FROM conversation_entries
      WHERE status = 'failed' AND type = 'message' AND replaced_by IS NULL
      GROUP BY conversation_id) counted
WHERE c.id = counted.conversation_id
|
UPDATE conversations c SET ratings_up = counted.up, ratings_down = counted.down
FROM (SELECT conversation_id, count(*) FILTER (WHERE rating = 'up') AS up,
             count(*) FILTER (WHERE rating = 'down') AS down
      FROM message_feedback GROUP BY conversation_id) counted
WHERE c.id = counted.conversation_id
"""
_OWNED = ("conversations", "chat_jobs", "chat_attachments", "message_feedback")
_READ = ("conversation_reads", "conversation_readers")


def _delete_with_users(tables: tuple[str, ...]) -> None:
    deletions = " ".join(f"DELETE FROM {table} WHERE user_id = OLD.id;" for table in tables)
    op.execute(
        "CREATE OR REPLACE FUNCTION delete_chats_of_user() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN {deletions} RETURN NULL; END $$"
    )


def _create_tables() -> None:
    op.create_table(
        "conversation_reads",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("is_unread", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name=op.f("fk_conversation_reads_conversation_id_conversations"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_conversation_reads_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", "conversation_id", name=op.f("pk_conversation_reads")),
        if_not_exists=True,
    )
    columns = ["tenant_id", "agent_id", "read_at"]
    op.create_index(
        "ix_conversation_reads_agent_id", "conversation_reads", columns, if_not_exists=True
    )
    op.create_index(
        "ix_conversation_reads_conversation_id",
        "conversation_reads",
        ["conversation_id"],
        if_not_exists=True,
    )
    op.create_index(
        "ix_conversation_reads_unread",
        "conversation_reads",
        ["user_id", "read_at"],
        postgresql_where=sa.text("is_unread"),
        if_not_exists=True,
    )
    op.create_table(
        "conversation_readers",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("read_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_conversation_readers_tenant_id_tenants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_conversation_readers")),
        if_not_exists=True,
    )
    op.create_index(
        "ix_conversation_readers_tenant_id",
        "conversation_readers",
        ["tenant_id"],
        if_not_exists=True,
    )


def upgrade() -> None:
    _create_tables()
    _delete_with_users((*_OWNED, *_READ))
    for name in _COUNTS:
        column = sa.Column(name, sa.Integer(), server_default="0", nullable=False)
        op.add_column("conversations", column, if_not_exists=True)
    op.add_column("message_feedback", sa.Column("conversation_id", sa.String()), if_not_exists=True)
    for statement in (*_FILL.split("\n|\n"), *_FAILURES.split("\n|\n"), *_RATINGS.split("\n|\n")):
        op.execute(statement)
    # Outside of a transaction: conversations may be many, and are written to meanwhile.
    with op.get_context().autocommit_block():
        for name, columns, condition in _INDEXES:
            # One that an earlier attempt left unfinished.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            where = f" WHERE {condition}" if condition else ""
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON conversations ({columns}){where}")
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_conversations_user_id")


def downgrade() -> None:
    op.create_index(
        "ix_conversations_user_id",
        "conversations",
        ["user_id"],
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    for name, _, _ in _INDEXES:
        op.drop_index(name, "conversations")
    for kind in ("added", "deleted", "replaced", "restored"):
        op.execute(f"DROP TRIGGER count_{kind}_failure ON conversation_entries")
    op.execute("DROP TRIGGER count_ratings ON message_feedback")
    op.execute("DROP FUNCTION count_failed_answers()")
    op.execute("DROP FUNCTION count_ratings()")
    op.drop_column("message_feedback", "conversation_id")
    for name in _COUNTS:
        op.drop_column("conversations", name)
    _delete_with_users(_OWNED)
    for table in _READ:
        op.drop_table(table)
