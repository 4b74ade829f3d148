"""Commands on a database whose schema or root keys are not those of this release and process."""

import subprocess
from pathlib import Path

import asyncpg
import msgspec
import pytest

from app import container
from app.crypto import key_check
from app.crypto.keyring import Keyring
from app.settings import Settings
from db import migrate, schema
from db.session import ALL_TENANTS
from tests.later_migrations import add_migration
from tests.processes import run_parley
from tests.stores import Stores

NEWEST = schema.newest_revision()
COMMANDS = (
    ("tenants",),
    ("admin", "create", "--email", "root@example.com"),
    ("keys", "rotate"),
    ("keys", "rotate", "--verify"),
    ("vault", "verify"),
)


def _run(settings: Settings, *command: str) -> subprocess.CompletedProcess[str]:
    return run_parley(settings, *command, stdin="Good7Password\n")


async def _fetch(settings: Settings, sql: str) -> object:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def _store_check_value(settings: Settings) -> None:
    services = container.build(settings)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await key_check.check(await tx.raw(), services.keyring)
    await services.close()


async def _read_revision(settings: Settings) -> object:
    return await _fetch(settings, "SELECT version_num FROM alembic_version")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A revision after the newest one, which the release has in this test."""
    add_migration(monkeypatch, tmp_path, "later", "SELECT 1")
    return "later"


async def test_commands_refuse_an_older_schema_in_one_line(
    stores: Stores, later: str, subtests: pytest.Subtests
) -> None:
    behind = await stores.create_database()
    for command in COMMANDS:
        with subtests.test(command=command):
            result = _run(behind, *command)
            assert result.returncode == 1
            assert result.stderr == (
                f"parley: schema {NEWEST}, this release needs {later}: run `parley migrate`\n"
            )
    assert await _fetch(behind, "SELECT count(*) FROM users") == 0


async def test_commands_use_a_newer_schema_and_migrate_leaves_it(
    stores: Stores, subtests: pytest.Subtests
) -> None:
    ahead = await stores.create_database()
    await _fetch(ahead, "UPDATE alembic_version SET version_num = '9999'")
    for command in COMMANDS:
        with subtests.test(command=command):
            result = _run(ahead, *command)
            assert result.returncode == 0, result.stderr
    result = _run(ahead, "migrate")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"nothing to do: {schema.describe('9999')}\n"
    assert await _read_revision(ahead) == "9999"


async def test_nothing_is_migrated_or_verified_with_a_wrong_key(
    stores: Stores, later: str, subtests: pytest.Subtests
) -> None:
    behind, current = await stores.create_database(), await stores.create_database()
    await migrate.upgrade(current.sqlalchemy_url)
    for settings, command in (
        (behind, ("migrate",)),
        (current, ("keys", "rotate", "--verify")),
        (current, ("vault", "verify")),
    ):
        await _store_check_value(settings)
        for kid in ("test", "other"):
            with subtests.test(command=command, kid=kid):
                wrong = msgspec.structs.replace(settings, master_keys=Keyring.generate(kid))
                result = _run(wrong, *command)
                assert (result.returncode, result.stdout) == (1, "")
                assert result.stderr.startswith("parley: root key 'test' is not ")
                assert result.stderr.count("\n") == 1
    assert await _read_revision(behind) == NEWEST
