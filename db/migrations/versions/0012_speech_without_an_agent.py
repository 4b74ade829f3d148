"""Speech for callers without an agent, with more options and more of an answer."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name, kind in (
        ("options", postgresql.JSONB(astext_type=sa.Text())),
        ("format", sa.String()),
        ("details", postgresql.JSONB(astext_type=sa.Text())),
    ):
        op.add_column("speech_jobs", sa.Column(name, kind, nullable=True), if_not_exists=True)
    op.alter_column("speech_jobs", "agent_id", existing_type=sa.VARCHAR(), nullable=True)


def downgrade() -> None:
    op.execute("DELETE FROM speech_jobs WHERE agent_id IS NULL")
    op.alter_column("speech_jobs", "agent_id", existing_type=sa.VARCHAR(), nullable=False)
    for name in ("details", "format", "options"):
        op.drop_column("speech_jobs", name)
