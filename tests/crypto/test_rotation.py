"""Rotation moves every sealed value to the new root key; verification counts values per key."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.crypto import rotation
from app.crypto.keyring import Keyring, SealContext
from app.domain.platform.mail import service as mail
from app.main import create_app
from db.session import ALL_TENANTS, Database
from tests.crypto.root_keys import LOST_ONLY, NEW_AND_OLD, NEW_ONLY, OLD_ONLY
from tests.crypto.sealed_mails import create_mails, read_bodies, read_kids
from tests.stores import Stores
from tests.world import World

MAILS = "mail_messages.body"
ANSWERS = "idempotency_keys.body"


# Rotation covers a whole database, so these tests have one of their own


@pytest.fixture(scope="module")
async def own_world(stores: Stores) -> AsyncIterator[World]:
    world = World(create_app(await stores.create_database()))
    yield world
    await world.services.close()


@pytest.fixture
def db(own_world: World) -> Database:
    return own_world.services.db


@pytest.fixture
async def tenant(own_world: World, db: Database) -> str:
    """A tenant in a database without sealed values."""
    async with db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("TRUNCATE mail_messages, idempotency_keys")
    return await own_world.tenant()


async def _set_body(db: Database, mail_id: str, body: bytes | None) -> None:
    async with db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("UPDATE mail_messages SET body = $2 WHERE id = $1", mail_id, body)


async def _open_bodies(db: Database, keyring: Keyring, tenant_id: str) -> dict[str, bytes]:
    return {
        mail_id: keyring.open(body, mail.seal_context(tenant_id, mail_id))
        for mail_id, body in (await read_bodies(db)).items()
    }


def _quiet(_line: str) -> None:
    return


class Killed(Exception):
    """Ends a rotation after its first batch."""


def _kill(_line: str) -> None:
    raise Killed


def test_every_sealed_column_is_known() -> None:
    assert {MAILS, ANSWERS} <= {column.name for column in rotation.sealed_columns()}


async def test_after_rotation_the_new_key_alone_opens_everything(db: Database, tenant: str) -> None:
    texts = await create_mails(db, tenant, OLD_ONLY, 5)
    await rotation.rotate(db, NEW_AND_OLD, _quiet)
    assert await _open_bodies(db, NEW_ONLY, tenant) == texts


async def test_rotation_goes_on_after_the_first_batch_and_reports_each(
    db: Database, tenant: str
) -> None:
    texts = await create_mails(db, tenant, OLD_ONLY, 450)
    lines: list[str] = []
    await rotation.rotate(db, NEW_AND_OLD, lines.append)
    assert await _open_bodies(db, NEW_ONLY, tenant) == texts
    assert lines == [f"{MAILS}: {count} rows" for count in (200, 400, 450)]


def _without_empty(counts: rotation.Counts) -> rotation.Counts:
    """Returns the counts without those of empty columns."""
    return {column: numbers for column, numbers in counts.items() if numbers}


async def test_rotation_counts_values_of_the_new_key(db: Database, tenant: str) -> None:
    await create_mails(db, tenant, OLD_ONLY, 3)
    await create_mails(db, tenant, NEW_ONLY, 2)
    assert _without_empty(await rotation.rotate(db, NEW_AND_OLD, _quiet)) == {MAILS: {"new": 5}}


async def test_values_of_the_new_key_do_not_change(db: Database, tenant: str) -> None:
    await create_mails(db, tenant, NEW_ONLY, 3)
    before = await read_bodies(db)
    await rotation.rotate(db, NEW_AND_OLD, _quiet)
    assert await read_bodies(db) == before


async def test_a_mail_whose_body_was_wiped_stays_wiped(db: Database, tenant: str) -> None:
    texts = await create_mails(db, tenant, OLD_ONLY, 1)
    await _set_body(db, next(iter(texts)), None)
    await rotation.rotate(db, NEW_AND_OLD, _quiet)
    assert await read_bodies(db) == dict.fromkeys(texts)


async def test_rows_of_no_tenant_are_rotated_too(db: Database, tenant: str) -> None:
    context = SealContext(tenant="", table="idempotency_keys", record="key-1", field="body")
    async with db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "INSERT INTO idempotency_keys (id, fingerprint, body) VALUES ('key-1', 'f', $1)",
            OLD_ONLY.seal(b"answer", context),
        )
    await rotation.rotate(db, NEW_AND_OLD, _quiet)
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        body = await (await tx.raw()).fetchval("SELECT body FROM idempotency_keys")
    assert NEW_ONLY.open(body, context) == b"answer"


async def _wait_until_rotation_is_blocked(db: Database) -> None:
    for _ in range(1_000):
        async with db.tx(ALL_TENANTS, autocommit=True) as tx:
            blocked = await (await tx.raw()).fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database() AND query LIKE '%mail_messages%'"
            )
        if blocked:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("rotation never reached the row")


async def _rotate_during_change(db: Database, mail_id: str, body: bytes | None) -> rotation.Counts:
    """Starts a rotation while a transaction that changes a row is open; returns its counts."""
    async with db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("UPDATE mail_messages SET body = $2 WHERE id = $1", mail_id, body)
        rotation_task = asyncio.create_task(rotation.rotate(db, NEW_AND_OLD, _quiet))
        await _wait_until_rotation_is_blocked(db)
    return await rotation_task


async def test_a_concurrent_change_of_a_row_is_kept(db: Database, tenant: str) -> None:
    (mail_id,) = await create_mails(db, tenant, OLD_ONLY, 1)
    changed = NEW_ONLY.seal(b"changed", mail.seal_context(tenant, mail_id))
    await _rotate_during_change(db, mail_id, changed)
    assert await read_bodies(db) == {mail_id: changed}


async def test_a_row_that_is_wiped_during_rotation_stays_wiped(db: Database, tenant: str) -> None:
    (mail_id,) = await create_mails(db, tenant, OLD_ONLY, 1)
    await _rotate_during_change(db, mail_id, None)
    assert await read_bodies(db) == {mail_id: None}


async def test_a_row_that_changes_during_rotation_under_the_old_key_is_not_counted_as_new(
    db: Database, tenant: str
) -> None:
    (mail_id,) = await create_mails(db, tenant, OLD_ONLY, 1)
    changed = OLD_ONLY.seal(b"changed", mail.seal_context(tenant, mail_id))
    counts = await _rotate_during_change(db, mail_id, changed)
    assert counts == await rotation.verify(db, NEW_AND_OLD)


async def test_a_rotation_stopped_half_way_has_moved_one_part(db: Database, tenant: str) -> None:
    await create_mails(db, tenant, OLD_ONLY, 300)
    with pytest.raises(Killed):
        await rotation.rotate(db, NEW_AND_OLD, _kill)
    assert await read_kids(db) == {"old", "new"}


async def test_everything_opens_after_a_rotation_stopped_half_way(
    db: Database, tenant: str
) -> None:
    texts = await create_mails(db, tenant, OLD_ONLY, 300)
    with pytest.raises(Killed):
        await rotation.rotate(db, NEW_AND_OLD, _kill)
    assert await _open_bodies(db, NEW_AND_OLD, tenant) == texts


async def test_a_rotation_stopped_half_way_finishes_when_run_again(
    db: Database, tenant: str
) -> None:
    texts = await create_mails(db, tenant, OLD_ONLY, 300)
    with pytest.raises(Killed):
        await rotation.rotate(db, NEW_AND_OLD, _kill)
    await rotation.rotate(db, NEW_AND_OLD, _quiet)
    assert await _open_bodies(db, NEW_ONLY, tenant) == texts


async def test_two_rotations_at_once_do_no_harm(db: Database, tenant: str) -> None:
    texts = await create_mails(db, tenant, OLD_ONLY, 300)
    await asyncio.gather(*(rotation.rotate(db, NEW_AND_OLD, _quiet) for _ in range(2)))
    assert await _open_bodies(db, NEW_ONLY, tenant) == texts


# Verification


async def test_verification_counts_per_key(db: Database, tenant: str) -> None:
    await create_mails(db, tenant, OLD_ONLY, 3)
    await create_mails(db, tenant, NEW_ONLY, 2)
    assert _without_empty(await rotation.verify(db, NEW_AND_OLD)) == {MAILS: {"old": 3, "new": 2}}


async def test_verification_goes_on_after_the_first_batch(db: Database, tenant: str) -> None:
    await create_mails(db, tenant, OLD_ONLY, 450)
    assert (await rotation.verify(db, NEW_AND_OLD))[MAILS] == {"old": 450}


async def test_verification_counts_values_that_no_key_opens(db: Database, tenant: str) -> None:
    await create_mails(db, tenant, LOST_ONLY, 2)
    await create_mails(db, tenant, NEW_ONLY, 1)
    assert (await rotation.verify(db, NEW_AND_OLD))[MAILS] == {"cannot open": 2, "new": 1}


async def test_verification_finds_a_value_that_was_moved(db: Database, tenant: str) -> None:
    first, second = await create_mails(db, tenant, NEW_ONLY, 2)
    await _set_body(db, second, (await read_bodies(db))[first])
    assert (await rotation.verify(db, NEW_AND_OLD))[MAILS] == {"new": 1, "cannot open": 1}


async def test_verification_finds_a_value_that_is_damaged(
    db: Database, tenant: str, subtests: pytest.Subtests
) -> None:
    cases: list[bytes] = [b"", b"x", b"\x01\x03new", bytes(200)]
    (mail_id,) = await create_mails(db, tenant, NEW_ONLY, 1)
    for damaged in cases:
        with subtests.test(damaged=damaged):
            await _set_body(db, mail_id, damaged)
            assert (await rotation.verify(db, NEW_AND_OLD))[MAILS] == {"cannot open": 1}


async def test_verification_changes_nothing(db: Database, tenant: str) -> None:
    await create_mails(db, tenant, OLD_ONLY, 3)
    before = await read_bodies(db)
    await rotation.verify(db, NEW_AND_OLD)
    assert await read_bodies(db) == before
