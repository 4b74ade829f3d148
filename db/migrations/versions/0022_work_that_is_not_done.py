"""Indexes of work that is not done."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_INDEXES = (
    ("ix_work_dead", ["created_at"], "state = 'dead'"),
    (
        "ix_work_not_done",
        ["tenant_id", "state", "created_at"],
        "state IN ('pending', 'leased', 'dead')",
    ),
)


def upgrade() -> None:
    # Outside of a transaction: there may be much work, and it is written to meanwhile.
    with op.get_context().autocommit_block():
        for name, columns, condition in _INDEXES:
            # One that an earlier attempt left unfinished.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.create_index(
                name,
                "work",
                columns,
                postgresql_where=sa.text(condition),
                postgresql_concurrently=True,
            )


def downgrade() -> None:
    for name, _, condition in _INDEXES:
        op.drop_index(name, "work", postgresql_where=sa.text(condition))
