"""The schema of release 0.1.0, from `initial.sql`."""

import re
from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SCRIPT = Path(__file__).parent.parent / "initial.sql"
# The driver takes one statement at a time. The body of a function has semicolons, too.
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|[^;$])+;", re.DOTALL)


def upgrade() -> None:
    connection = op.get_bind()
    for statement in _STATEMENT.findall(_SCRIPT.read_text(encoding="utf-8")):
        connection.exec_driver_sql(statement)


def downgrade() -> None:
    raise RuntimeError("there is no schema before this one")
