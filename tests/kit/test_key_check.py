"""A process with other root keys than the instance is detected and refused."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest

from app.kit import key_check, rotation
from app.kit.crypto import KeyProblem, Keyring
from app.services import Services
from app.settings import Settings
from db import key_checks
from db.session import Database
from tests.kit.root_keys import NEW_AND_OLD, NEW_ONLY, OLD_ONLY
from tests.processes import run_parley, run_parley_process
from tests.stores import Stores

OTHER_OLD = Keyring.parse(Keyring.generate("old"))


@pytest.fixture
async def settings(stores: Stores) -> Settings:
    return await stores.create_database()


@pytest.fixture
async def raw(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(settings.database_url)
    yield connection
    await connection.close()


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        (OLD_ONLY, OLD_ONLY, None),
        (OLD_ONLY, NEW_AND_OLD, None),
        (OLD_ONLY, OTHER_OLD, "is not the key of that name"),
        (OLD_ONLY, NEW_ONLY, "'old' is not configured"),
        (NEW_AND_OLD, OLD_ONLY, "'new' is not configured"),
    ],
)
async def test_later_processes_need_the_same_keys(
    raw: asyncpg.Connection, first: Keyring, second: Keyring, problem: str | None
) -> None:
    await key_check.check(raw, first)
    found = key_check.find_problem(await key_checks.read(raw), second)
    assert found is None if problem is None else problem in (found or "")


async def test_an_older_key_is_needed_until_a_rotation_has_ended(
    settings: Settings, raw: asyncpg.Connection
) -> None:
    await key_check.check(raw, OLD_ONLY)
    await key_check.check(raw, NEW_AND_OLD)
    with pytest.raises(KeyProblem, match="'old' is not configured"):
        await key_check.check(raw, NEW_ONLY)
    db = Database(settings.sqlalchemy_url, pool_size=1)
    await rotation.rotate_to_new_key(settings, db, NEW_AND_OLD, lambda _: None)
    await db.close()
    await key_check.check(raw, NEW_ONLY)


async def test_of_two_new_keys_with_one_name_the_first_is_valid(settings: Settings) -> None:
    async def start(keyring: Keyring) -> bool:
        connection = await asyncpg.connect(settings.database_url)
        try:
            await key_check.check(connection, keyring)
        except KeyProblem:
            return False
        finally:
            await connection.close()
        return True

    assert sorted(await asyncio.gather(start(OLD_ONLY), start(OTHER_OLD))) == [False, True]


@pytest.mark.parametrize("kid", ["test", "other"])
@pytest.mark.parametrize("command", ["serve", "worker", "migrate", "doctor"])
def test_no_process_starts_with_a_wrong_or_missing_key(
    services: Services, stores: Stores, command: str, kid: str
) -> None:
    """The database of these tests knows another key as `test`."""
    wrong = msgspec.structs.replace(stores.settings, master_keys=Keyring.generate(kid))
    # A worker needs the main thread of a process.
    run = run_parley_process if command == "worker" else run_parley
    result = run(wrong, command)
    assert result.returncode == 1
    (line,) = [line for line in (result.stdout + result.stderr).splitlines() if "root key" in line]
    assert "root key 'test' is not" in line
    assert "Traceback" not in result.stderr


def test_nothing_is_rotated_with_a_wrong_key(services: Services, stores: Stores) -> None:
    wrong = msgspec.structs.replace(stores.settings, master_keys=Keyring.generate("test"))
    result = run_parley(wrong, "keys", "rotate")
    assert result.returncode == 1
    assert "root key 'test' is not the key of that name" in result.stderr
