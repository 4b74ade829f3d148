"""Applies the migrations to a fresh Postgres and checks that the models need no further one. With
`--write <name>` it writes that one instead, to be read and completed.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from alembic import command  # noqa: E402  # after the path is set
from alembic.config import Config  # noqa: E402
from alembic.util import CommandError  # noqa: E402

from db import schema  # noqa: E402
from tests.stores import Stores  # noqa: E402

_CONFIG = Config(ROOT / "alembic.ini")
_RUFF = ROOT / ".venv/bin/ruff"


def main(name: str | None) -> int:
    stores = Stores()
    try:
        asyncio.run(stores.start())
        os.environ["PARLEY_DATABASE_URL"] = stores.settings.database_url
        if name is None:
            command.check(_CONFIG)
        else:
            _write(name)
    except CommandError as error:
        print(error)
        return 1
    finally:
        stores.close()
    return 0


def _write(name: str) -> None:
    number = int(schema.newest_revision()) + 1
    command.revision(_CONFIG, name, autogenerate=True, rev_id=f"{number:04}")
    (path,) = schema.MIGRATIONS.glob(f"versions/{number:04}_*.py")
    subprocess.run([_RUFF, "format", "--quiet", path], check=True)
    subprocess.run([_RUFF, "check", "--quiet", "--fix", path], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[2] if sys.argv[1:2] == ["--write"] else None))
