"""An index in the order in which the poller dispatches pending work."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_WITHOUT_LANE = sa.text("state = 'pending' AND lane IS NULL")


def upgrade() -> None:
    op.drop_index("ix_work_pending", table_name="work")
    op.create_index(
        "ix_work_pending",
        "work",
        ["kind", "dispatched_at", "run_at"],
        unique=False,
        postgresql_where=_WITHOUT_LANE,
    )


def downgrade() -> None:
    op.drop_index("ix_work_pending", table_name="work")
    op.create_index(
        "ix_work_pending", "work", ["run_at"], unique=False, postgresql_where=_WITHOUT_LANE
    )
