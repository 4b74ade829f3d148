"""Migrates the schema under a lock, so that several processes may start at once."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from db.url import DRIVER, parse_url

_ROOT = Path(__file__).parent


def config() -> Config:
    options = Config()
    options.set_main_option("script_location", str(_ROOT / "migrations"))
    return options


def _upgrade(connection: Connection, revision: str) -> None:
    options = config()
    options.attributes["connection"] = connection
    command.upgrade(options, revision)


def create_engine(url: str) -> AsyncEngine:
    return create_async_engine(DRIVER, connect_args=parse_url(url), poolclass=pool.NullPool)


async def upgrade(url: str, revision: str = "head") -> None:
    engine = create_engine(url)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_upgrade, revision)
    finally:
        await engine.dispose()
