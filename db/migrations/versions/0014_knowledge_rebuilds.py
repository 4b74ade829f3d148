"""Each rebuilding of a vector table has a generation of its own, and rebuildings keep a pause."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "knowledge_bases",
        sa.Column("last_generation", sa.Integer(), server_default="1", nullable=False),
    )
    op.add_column(
        "knowledge_bases", sa.Column("rebuild_after", sa.DateTime(timezone=True), nullable=True)
    )
    # An attempt of the release before may have begun the next generation.
    op.execute("UPDATE knowledge_bases SET last_generation = generation + 1")


def downgrade() -> None:
    op.drop_column("knowledge_bases", "rebuild_after")
    op.drop_column("knowledge_bases", "last_generation")
