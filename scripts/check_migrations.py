"""Applies the migrations to a fresh Postgres and checks that the models need no further one."""

import asyncio
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from alembic import command  # noqa: E402  # after the path is set
from alembic.config import Config  # noqa: E402
from alembic.util import CommandError  # noqa: E402

from tests.stores import Stores  # noqa: E402


def main() -> int:
    stores = Stores()
    try:
        asyncio.run(stores.start())
        os.environ["PARLEY_DATABASE_URL"] = stores.settings.database_url
        command.check(Config(ROOT / "alembic.ini"))
    except CommandError as error:
        print(error)
        return 1
    finally:
        stores.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
