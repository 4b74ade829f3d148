"""Writes the API document to a file: `python -m tests.clients.document FILE`."""

import sys
from pathlib import Path

import msgspec
from litestar import Litestar

from app.crypto.keyring import Keyring
from app.http import openapi
from app.main import create_app
from app.settings import Settings


def write(app: Litestar, path: Path) -> Path:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(openapi.document(app)), indent=2))
    return path


def create_documented_app() -> Litestar:
    """The application is not started, so nothing connects to these addresses."""
    settings = Settings(
        database_url="postgresql://127.0.0.1/parley",
        redis_url="redis://127.0.0.1",
        master_keys=Keyring.generate("document"),
        local_model=False,
    )
    return create_app(settings)


if __name__ == "__main__":
    write(create_documented_app(), Path(sys.argv[1]))
