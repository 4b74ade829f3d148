"""When the secrets of credentials and webhooks were replaced."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_TABLES = ("credentials", "webhooks")


def upgrade() -> None:
    for table in _TABLES:
        column = sa.Column("secrets_updated_at", sa.DateTime(timezone=True), nullable=True)
        op.add_column(table, column)


def downgrade() -> None:
    for table in _TABLES:
        op.drop_column(table, "secrets_updated_at")
