"""Brings a database to the schema of this release, for `parley migrate` and `parley up`."""

from app.crypto import key_check
from app.crypto.keyring import Keyring
from db import migrate, schema
from db.session import ALL_TENANTS, Database


async def upgrade_schema(url: str, db: Database, keyring: Keyring) -> str | None:
    """Returns None, or why nothing was done: a newer release has migrated the database.

    Raises KeyProblem before anything is changed, and MigrationBlocked.
    """
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        await key_check.verify(await tx.raw(), keyring)
    revision = await migrate.upgrade(url)
    return schema.describe(revision) if schema.compare(revision) == "ahead" else None
