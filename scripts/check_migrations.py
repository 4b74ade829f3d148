"""Applies the migrations to a fresh Postgres and checks that the models need no further one."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.stores import Stores  # noqa: E402  # after the path is set


def main() -> int:
    stores = Stores()
    try:
        asyncio.run(stores.start())
        env = {**os.environ, "PARLEY_DATABASE_URL": stores.settings.database_url}
        command = [sys.executable, "-m", "alembic", "check"]
        return subprocess.run(command, env=env, cwd=ROOT, check=False).returncode
    finally:
        stores.close()


if __name__ == "__main__":
    sys.exit(main())
