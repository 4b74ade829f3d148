"""Lanes of tenants, an index for what is still owed for an event, and vacuum of the ledger after
few dead rows.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_IN_LANE = sa.text("lane IS NOT NULL AND state IN ('pending', 'leased')")


def upgrade() -> None:
    # Chat turns and runs of tools have their tenant as their lane, and are claimed by lane.
    op.execute(
        "UPDATE work SET lane = tenant_id"
        " WHERE kind IN ('chat.turn', 'tools.run') AND state IN ('pending', 'leased')"
    )
    op.drop_index("ix_work_lane", table_name="work")
    op.create_index(
        "ix_work_lane", "work", ["kind", "lane", "run_at"], unique=False, postgresql_where=_IN_LANE
    )
    op.drop_index("ix_work_pending", table_name="work")
    op.create_index(
        "ix_work_pending",
        "work",
        ["run_at"],
        unique=False,
        postgresql_where=sa.text("state = 'pending' AND lane IS NULL"),
    )
    op.create_index(
        "ix_work_pending_in_lane",
        "work",
        ["kind", "run_at"],
        unique=False,
        postgresql_where=sa.text("state = 'pending' AND lane IS NOT NULL"),
    )
    op.create_index(
        "ix_work_cause_event_id",
        "work",
        ["cause_event_id"],
        unique=False,
        postgresql_where=sa.text("cause_event_id IS NOT NULL AND state IN ('pending', 'leased')"),
    )
    # Each row is updated twice and stays for a week. By default, vacuum would wait for the dead
    # rows of more than a day, all of them in the indexes of pending and leased work.
    op.execute(
        "ALTER TABLE work SET (autovacuum_vacuum_scale_factor = 0.01,"
        " autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.02)"
    )


def downgrade() -> None:
    op.execute(
        "ALTER TABLE work RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,"
        " autovacuum_analyze_scale_factor)"
    )
    op.drop_index("ix_work_cause_event_id", table_name="work")
    op.drop_index("ix_work_pending_in_lane", table_name="work")
    op.drop_index("ix_work_pending", table_name="work")
    op.create_index(
        "ix_work_pending",
        "work",
        ["run_at"],
        unique=False,
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.drop_index("ix_work_lane", table_name="work")
    op.create_index(
        "ix_work_lane", "work", ["lane", "run_at"], unique=False, postgresql_where=_IN_LANE
    )
    op.execute("UPDATE work SET lane = NULL WHERE kind IN ('chat.turn', 'tools.run')")
