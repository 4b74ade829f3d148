"""Rotation while other processes seal values: none is left under a key that may be removed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest

from app.crypto import key_check, key_file, rotation
from app.crypto import keyring as keyrings
from app.crypto.keyring import KeyProblem, Keyring, kid_of
from app.settings import Settings
from db import key_checks
from db.session import ALL_TENANTS, Database
from tests.assertions import until
from tests.crypto.root_keys import NEW_AND_OLD, OLD, OLD_ONLY
from tests.crypto.sealed_mails import add_mails, create_mails, read_kids
from tests.stores import Stores

TENANT = "ten_1"


@pytest.fixture
async def settings(stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a database of its own, with the old key in the key file."""
    monkeypatch.setattr(keyrings, "RELOAD_SECONDS", 0.05)
    settings = msgspec.structs.replace(
        await stores.create_database(), data_dir=tmp_path, master_keys=""
    )
    key_file.write(settings, [OLD])
    return settings


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    db = Database(settings.sqlalchemy_url, pool_size=3)
    async with db.tx(ALL_TENANTS) as tx:
        sql = "INSERT INTO tenants (id, name, plan, limits) VALUES ($1, 'One', 'free', '{}')"
        await (await tx.raw()).execute(sql, TENANT)
    yield db
    await db.close()


async def _read_checked_kids(db: Database) -> set[str]:
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        return {kid_of(value) for value in await key_checks.read(await tx.raw())}


async def _create_mails_until_done(
    db: Database, keyring: Keyring, rotating: asyncio.Task[rotation.Counts]
) -> None:
    while not rotating.done():
        await create_mails(db, TENANT, keyring, 1)


async def test_another_process_seals_with_the_new_key_before_the_old_one_may_go(
    settings: Settings, db: Database
) -> None:
    serving = key_file.load(settings)
    await create_mails(db, TENANT, serving, 1)
    rotating = asyncio.create_task(
        rotation.rotate_to_new_key(settings, db, key_file.load(settings), lambda _: None)
    )
    await _create_mails_until_done(db, serving, rotating)
    await rotating
    await create_mails(db, TENANT, serving, 1)
    assert await read_kids(db) == {key_file.load(settings).active} == await _read_checked_kids(db)


async def test_a_transaction_that_began_before_the_rotation_is_waited_for(
    settings: Settings, db: Database
) -> None:
    lines: list[str] = []
    async with db.tx(TENANT) as tx:
        await add_mails(tx, TENANT, OLD_ONLY, 1)
        rotating = asyncio.create_task(
            rotation.rotate_to_new_key(settings, db, key_file.load(settings), lines.append)
        )
        await until(lambda: "waiting for open transactions …" in lines or rotating.done())
    await rotating
    assert await read_kids(db) == {key_file.load(settings).active}


async def test_an_older_key_stays_needed_while_a_process_seals_with_it(
    settings: Settings, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With PARLEY_MASTER_KEYS, a process that was not restarted."""
    rotate = rotation.rotate

    async def rotate_and_create_mail(
        db: Database, keyring: Keyring, report: Callable[[str], object]
    ) -> rotation.Counts:
        counts = await rotate(db, keyring, report)
        await create_mails(db, TENANT, OLD_ONLY, 1)
        return counts

    monkeypatch.setattr(rotation, "rotate", rotate_and_create_mail)
    with_variable = msgspec.structs.replace(settings, master_keys="set")
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        await key_check.check(await tx.raw(), OLD_ONLY)
    with pytest.raises(KeyProblem, match="start all processes with 'new' as the first key"):
        await rotation.rotate_to_new_key(with_variable, db, NEW_AND_OLD, lambda _: None)
    assert await _read_checked_kids(db) == {"old", "new"}
