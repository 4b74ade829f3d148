"""A process with other root keys than the instance is detected and refused."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest

from app.crypto import key_check, rotation
from app.crypto.keyring import KeyProblem, Keyring
from app.services import Services
from app.settings import Settings
from db import key_checks
from db.session import Database
from tests.crypto.root_keys import NEW_AND_OLD, NEW_ONLY, OLD_ONLY
from tests.processes import Processes, run_parley
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


async def test_later_processes_need_the_same_keys(
    raw: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Keyring, Keyring, str | None]] = [
        (OLD_ONLY, OLD_ONLY, None),
        (OLD_ONLY, NEW_AND_OLD, None),
        (OLD_ONLY, OTHER_OLD, "is not the key of that name"),
        (OLD_ONLY, NEW_ONLY, "'old' is not configured"),
        (NEW_AND_OLD, OLD_ONLY, "'new' is not configured"),
    ]
    for first, second, problem in cases:
        await raw.execute("DELETE FROM instance_state")
        with subtests.test(first=first.kids, second=second.kids, problem=problem):
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


def _check_refusal(exit_code: int, output: str) -> None:
    assert exit_code == 1
    (line,) = [line for line in output.splitlines() if "root key" in line]
    assert "root key 'test' is not" in line
    assert "Traceback" not in output


def test_no_command_runs_with_a_wrong_or_missing_key(
    services: Services, stores: Stores, subtests: pytest.Subtests
) -> None:
    """The database of these tests knows another key as `test`."""
    commands = [("serve", "test"), ("serve", "other"), ("migrate", "test"), ("doctor", "test")]
    for command, kid in commands:
        with subtests.test(command=command, kid=kid):
            wrong = msgspec.structs.replace(stores.settings, master_keys=Keyring.generate(kid))
            result = run_parley(wrong, command)
            _check_refusal(result.returncode, result.stdout + result.stderr)


def test_no_worker_starts_with_a_wrong_key(
    services: Services, stores: Stores, capfd: pytest.CaptureFixture[str]
) -> None:
    """A worker needs the main thread of a process."""
    wrong = msgspec.structs.replace(stores.settings, master_keys=Keyring.generate("test"))
    processes = Processes(wrong)
    try:
        exit_code = processes.python("-m", "app.cli", "worker").wait(60)
    finally:
        processes.close()
    _check_refusal(exit_code, "".join(capfd.readouterr()))


def test_nothing_is_rotated_with_a_wrong_key(services: Services, stores: Stores) -> None:
    wrong = msgspec.structs.replace(stores.settings, master_keys=Keyring.generate("test"))
    result = run_parley(wrong, "keys", "rotate")
    assert result.returncode == 1
    assert "root key 'test' is not the key of that name" in result.stderr
