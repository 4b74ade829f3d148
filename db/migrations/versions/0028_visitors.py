"""Limits of what visitors upload, recipients of forms' mails, and the texts of digests."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_form_uploads_network", "form_uploads", ["form_id", "network", "created_at"])
    op.create_index(
        "ix_form_uploads_waiting",
        "form_uploads",
        ["tenant_id"],
        postgresql_include=["network", "size_bytes"],
        postgresql_where=sa.text("submission_id IS NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_form_uploads_waiting", "form_uploads")
    op.drop_index("ix_form_uploads_network", "form_uploads")
