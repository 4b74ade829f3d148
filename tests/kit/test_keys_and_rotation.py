"""Where the root keys come from, and how everything sealed moves to a new one."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import msgspec
import pytest

from app.domain.mail import service as mail
from app.kit import keys, rotation
from app.kit.crypto import CannotOpen, KeyProblem, Keyring, SealContext, kid_of
from app.kit.ids import new_id
from app.main import create_app
from app.settings import Settings
from db import migrate
from db.models import MailMessage
from db.session import ALL_TENANTS, Database
from tests.stores import Stores
from tests.world import World

OLD, NEW, LOST = Keyring.generate("old"), Keyring.generate("new"), Keyring.generate("lost")
OLD_ONLY, NEW_ONLY, LOST_ONLY = Keyring.parse(OLD), Keyring.parse(NEW), Keyring.parse(LOST)
BOTH = Keyring.parse(f"{NEW},{OLD}")
SOMEWHERE = mail.seal_context("ten_1", "mal_1")
MAILS = "mail_messages.body"
ANSWERS = "idempotency_keys.body"

# The key file


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Embedded: the keys are in a file."""
    return Settings(data_dir=tmp_path / "data")


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_written_key_file_is_for_its_owner_alone(settings: Settings) -> None:
    keys.write(settings, [NEW])
    path = keys.key_file(settings)
    assert (_mode(path), _mode(path.parent)) == (0o600, 0o700)


def test_rewriting_a_key_file_that_was_open_to_others_closes_it(settings: Settings) -> None:
    keys.write(settings, [OLD])
    keys.key_file(settings).chmod(0o644)
    keys.write(settings, [NEW])
    assert _mode(keys.key_file(settings)) == 0o600


def test_writing_leaves_nothing_but_the_key_file(settings: Settings) -> None:
    keys.write(settings, [OLD])
    keys.write(settings, [NEW, OLD])
    path = keys.key_file(settings)
    assert list(path.parent.iterdir()) == [path]


def test_a_written_key_file_is_read_in_order(settings: Settings) -> None:
    keys.write(settings, [NEW, OLD])
    assert keys.load(settings).kids == ["new", "old"]


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o644, 0o666, 0o601])
def test_a_key_file_open_to_others_is_refused(settings: Settings, mode: int) -> None:
    keys.write(settings, [NEW])
    keys.key_file(settings).chmod(mode)
    with pytest.raises(KeyProblem, match="chmod 600"):
        keys.load(settings)


def test_a_missing_key_names_the_variable_and_the_file(settings: Settings) -> None:
    with pytest.raises(KeyProblem) as raised:
        keys.load(settings)
    assert "PARLEY_MASTER_KEYS" in str(raised.value)
    assert str(keys.key_file(settings)) in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"\n", b"k1", b"k1:YWJj\n", b"k1:\xc3\xa9\n", b"\xff"])
def test_a_damaged_key_file_is_refused_by_name(settings: Settings, content: bytes) -> None:
    keys.write(settings, [NEW])
    keys.key_file(settings).write_bytes(content)
    with pytest.raises(KeyProblem, match=r"master\.keys"):
        keys.load(settings)


def test_the_variable_comes_before_the_file(settings: Settings) -> None:
    keys.write(settings, [OLD])
    named = msgspec.structs.replace(settings, master_keys=NEW)
    assert keys.load(named).kids == ["new"]


@pytest.mark.parametrize(
    "wrong", ["k1", "k1:aHVudGVyMg==", "k1:hunter2!", pytest.param(f"{NEW},{NEW}", id="twice")]
)
def test_a_wrong_variable_is_named_and_not_shown(settings: Settings, wrong: str) -> None:
    named = msgspec.structs.replace(settings, master_keys=wrong)
    with pytest.raises(KeyProblem, match="PARLEY_MASTER_KEYS") as raised:
        keys.load(named)
    assert wrong.rpartition(":")[2] not in str(raised.value).replace("PARLEY_MASTER_KEYS", "")


def test_the_first_start_makes_a_key(settings: Settings) -> None:
    keys.ensure(settings, data_exists=False)
    assert keys.load(settings).kids == ["k1"]


def test_later_starts_keep_the_key(settings: Settings) -> None:
    keys.ensure(settings, data_exists=False)
    first = keys.key_file(settings).read_text()
    keys.ensure(settings, data_exists=True)
    assert keys.key_file(settings).read_text() == first


def test_no_key_is_made_beside_data_that_it_cannot_open(settings: Settings) -> None:
    with pytest.raises(KeyProblem):
        keys.ensure(settings, data_exists=True)
    assert not keys.key_file(settings).exists()


def test_no_key_is_made_for_a_database_elsewhere(settings: Settings) -> None:
    outside = msgspec.structs.replace(settings, database_url="postgresql://db.test/parley")
    with pytest.raises(KeyProblem):
        keys.ensure(outside, data_exists=False)
    assert not keys.key_file(outside).exists()


def test_no_key_is_made_where_the_variable_names_one(settings: Settings) -> None:
    named = msgspec.structs.replace(settings, master_keys=NEW)
    keys.ensure(named, data_exists=False)
    assert not keys.key_file(named).exists()


# A new active key


def test_embedded_a_new_key_is_put_before_the_old_ones(settings: Settings) -> None:
    keys.write(settings, [OLD])
    fresh = rotation.new_active_key(settings, OLD_ONLY)
    assert fresh.active != "old"
    assert fresh.kids[1:] == ["old"]


def test_embedded_the_new_key_is_in_the_file(settings: Settings) -> None:
    keys.write(settings, [OLD])
    fresh = rotation.new_active_key(settings, OLD_ONLY)
    assert keys.load(settings).kids == fresh.kids


def test_two_new_keys_can_be_made_at_once(settings: Settings) -> None:
    keys.write(settings, [OLD])
    first = rotation.new_active_key(settings, OLD_ONLY)
    assert len(rotation.new_active_key(settings, first).kids) == 3


def test_with_the_variable_the_operator_has_put_the_new_key_first(settings: Settings) -> None:
    named = msgspec.structs.replace(settings, master_keys=f"{NEW},{OLD}")
    assert rotation.new_active_key(named, BOTH) is BOTH


# A process that serves while another rotates, as `parley keys rotate` does


@pytest.fixture
def serving(settings: Settings) -> Keyring:
    """Read from the file long before the test."""
    keys.write(settings, [OLD])
    os.utime(keys.key_file(settings), (1, 1))
    return keys.load(settings)


def test_a_process_that_serves_can_open_what_another_sealed_under_a_new_key(
    settings: Settings, serving: Keyring
) -> None:
    sealed = serving.seal(b"text", SOMEWHERE)
    rotated = rotation.new_active_key(settings, keys.load(settings)).rewrap(sealed, SOMEWHERE)
    assert serving.open(rotated, SOMEWHERE) == b"text"


def test_a_process_that_met_the_new_key_seals_under_it(
    settings: Settings, serving: Keyring
) -> None:
    fresh = rotation.new_active_key(settings, keys.load(settings))
    serving.open(fresh.seal(b"text", SOMEWHERE), SOMEWHERE)
    assert kid_of(serving.seal(b"text", SOMEWHERE)) == fresh.active


def test_a_process_that_met_the_new_key_still_opens_under_the_old_one(
    settings: Settings, serving: Keyring
) -> None:
    sealed = serving.seal(b"old", SOMEWHERE)
    fresh = rotation.new_active_key(settings, keys.load(settings))
    serving.open(fresh.seal(b"new", SOMEWHERE), SOMEWHERE)
    assert serving.open(sealed, SOMEWHERE) == b"old"


DAMAGED = [b"", b"\n", b"nothing", b"lost:YWJj\n", b"lost:!!!\n", b"\xff"]


@pytest.mark.parametrize("content", DAMAGED)
def test_an_unknown_key_beside_a_damaged_file_is_a_plain_refusal(
    settings: Settings, serving: Keyring, content: bytes
) -> None:
    keys.key_file(settings).write_bytes(content)
    with pytest.raises(CannotOpen):
        serving.open(LOST_ONLY.seal(b"text", SOMEWHERE), SOMEWHERE)


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_takes_no_key_from_a_process_that_serves(
    settings: Settings, serving: Keyring, content: bytes
) -> None:
    keys.key_file(settings).write_bytes(content)
    with suppress(Exception):
        serving.open(LOST_ONLY.seal(b"text", SOMEWHERE), SOMEWHERE)
    other = mail.seal_context("ten_2", "mal_2")
    assert serving.open(OLD_ONLY.seal(b"text", other), other) == b"text"


def test_a_process_whose_key_file_is_gone_goes_on(settings: Settings, serving: Keyring) -> None:
    keys.key_file(settings).unlink()
    with pytest.raises(CannotOpen):
        serving.open(LOST_ONLY.seal(b"text", SOMEWHERE), SOMEWHERE)


# Rotation goes over a whole database, so these tests have one for themselves


@pytest.fixture(scope="module")
async def own_world(stores: Stores) -> AsyncIterator[World]:
    connection = await asyncpg.connect(stores.postgres.url("postgres"))
    # Tests of this module may come in several goes.
    await connection.execute("DROP DATABASE IF EXISTS rotation WITH (FORCE)")
    await connection.execute("CREATE DATABASE rotation")
    await connection.close()
    own = msgspec.structs.replace(stores.settings, database_url=stores.postgres.url("rotation"))
    await migrate.upgrade(own.sqlalchemy_url)
    world = World(create_app(own))
    yield world
    await world.services.close()


@pytest.fixture
def db(own_world: World) -> Database:
    return own_world.services.db


@pytest.fixture
async def tenant(own_world: World, db: Database) -> str:
    """A tenant in a database where nothing is sealed yet."""
    async with db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("TRUNCATE mail_messages, idempotency_keys")
    return await own_world.tenant()


async def _mails(db: Database, tenant_id: str, keyring: Keyring, count: int) -> dict[str, bytes]:
    """Mails with sealed bodies; gives their texts by id."""
    texts = {new_id("mal"): f"text {number}".encode() for number in range(count)}
    async with db.tx(tenant_id) as tx:
        (await tx.session()).add_all(
            MailMessage(
                id=mail_id,
                tenant_id=tenant_id,
                recipient="a@example.com",
                subject="Hello",
                body=keyring.seal(text, mail.seal_context(tenant_id, mail_id)),
            )
            for mail_id, text in texts.items()
        )
    return texts


async def _bodies(db: Database) -> dict[str, bytes]:
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch("SELECT id, body FROM mail_messages")
    return {row["id"]: row["body"] for row in rows}


async def _set_body(db: Database, mail_id: str, body: bytes | None) -> None:
    async with db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("UPDATE mail_messages SET body = $2 WHERE id = $1", mail_id, body)


async def _opened(db: Database, keyring: Keyring, tenant_id: str) -> dict[str, bytes]:
    return {
        mail_id: keyring.open(body, mail.seal_context(tenant_id, mail_id))
        for mail_id, body in (await _bodies(db)).items()
    }


async def _kids(db: Database) -> set[str]:
    return {kid_of(body) for body in (await _bodies(db)).values()}


def _quiet(_line: str) -> None:
    return


class Killed(Exception):
    """What ends a rotation half way."""


def _kill(_line: str) -> None:
    raise Killed


def test_every_sealed_column_is_known() -> None:
    assert {MAILS, ANSWERS} <= {column.name for column in rotation.sealed_columns()}


async def test_after_rotation_the_new_key_alone_opens_everything(db: Database, tenant: str) -> None:
    texts = await _mails(db, tenant, OLD_ONLY, 5)
    await rotation.rotate(db, BOTH, _quiet)
    assert await _opened(db, NEW_ONLY, tenant) == texts


async def test_rotation_goes_on_after_the_first_batch(db: Database, tenant: str) -> None:
    texts = await _mails(db, tenant, OLD_ONLY, 450)
    await rotation.rotate(db, BOTH, _quiet)
    assert await _opened(db, NEW_ONLY, tenant) == texts


async def test_rotation_says_how_far_it_is_after_each_batch(db: Database, tenant: str) -> None:
    await _mails(db, tenant, OLD_ONLY, 450)
    said: list[str] = []
    await rotation.rotate(db, BOTH, said.append)
    assert said == [f"{MAILS}: {count} rows" for count in (200, 400, 450)]


def _filled(counts: rotation.Counts) -> rotation.Counts:
    """Without the columns that hold nothing."""
    return {column: found for column, found in counts.items() if found}


async def test_rotation_counts_what_is_under_the_new_key(db: Database, tenant: str) -> None:
    await _mails(db, tenant, OLD_ONLY, 3)
    await _mails(db, tenant, NEW_ONLY, 2)
    assert _filled(await rotation.rotate(db, BOTH, _quiet)) == {MAILS: {"new": 5}}


async def test_what_is_under_the_new_key_already_is_left_untouched(
    db: Database, tenant: str
) -> None:
    await _mails(db, tenant, NEW_ONLY, 3)
    before = await _bodies(db)
    await rotation.rotate(db, BOTH, _quiet)
    assert await _bodies(db) == before


async def test_a_mail_whose_body_was_wiped_stays_wiped(db: Database, tenant: str) -> None:
    texts = await _mails(db, tenant, OLD_ONLY, 1)
    await _set_body(db, next(iter(texts)), None)
    await rotation.rotate(db, BOTH, _quiet)
    assert await _bodies(db) == dict.fromkeys(texts)


async def test_rows_of_no_tenant_are_rotated_too(db: Database, tenant: str) -> None:
    place = SealContext(tenant="", table="idempotency_keys", record="key-1", field="body")
    async with db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "INSERT INTO idempotency_keys (id, fingerprint, body) VALUES ('key-1', 'f', $1)",
            OLD_ONLY.seal(b"answer", place),
        )
    await rotation.rotate(db, BOTH, _quiet)
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        body = await (await tx.raw()).fetchval("SELECT body FROM idempotency_keys")
    assert NEW_ONLY.open(body, place) == b"answer"


async def _wait_until_rotation_is_blocked(db: Database) -> None:
    for _ in range(1_000):
        async with db.tx(ALL_TENANTS, autocommit=True) as tx:
            blocked = await (await tx.raw()).fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = 'rotation' AND query LIKE '%mail_messages%'"
            )
        if blocked:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("rotation never came to the row")


async def test_a_row_that_changed_meanwhile_keeps_its_change(db: Database, tenant: str) -> None:
    (mail_id,) = await _mails(db, tenant, OLD_ONLY, 1)
    changed = NEW_ONLY.seal(b"changed", mail.seal_context(tenant, mail_id))
    async with db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("UPDATE mail_messages SET body = $2 WHERE id = $1", mail_id, changed)
        rotating = asyncio.create_task(rotation.rotate(db, BOTH, _quiet))
        await _wait_until_rotation_is_blocked(db)
    await rotating
    assert await _bodies(db) == {mail_id: changed}


async def test_a_row_that_was_wiped_meanwhile_stays_wiped(db: Database, tenant: str) -> None:
    (mail_id,) = await _mails(db, tenant, OLD_ONLY, 1)
    async with db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("UPDATE mail_messages SET body = NULL WHERE id = $1", mail_id)
        rotating = asyncio.create_task(rotation.rotate(db, BOTH, _quiet))
        await _wait_until_rotation_is_blocked(db)
    await rotating
    assert await _bodies(db) == {mail_id: None}


async def test_a_row_that_changed_meanwhile_under_the_old_key_is_not_counted_as_new(
    db: Database, tenant: str
) -> None:
    (mail_id,) = await _mails(db, tenant, OLD_ONLY, 1)
    changed = OLD_ONLY.seal(b"changed", mail.seal_context(tenant, mail_id))
    async with db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("UPDATE mail_messages SET body = $2 WHERE id = $1", mail_id, changed)
        rotating = asyncio.create_task(rotation.rotate(db, BOTH, _quiet))
        await _wait_until_rotation_is_blocked(db)
    assert await rotating == await rotation.verify(db, BOTH)


async def test_a_rotation_stopped_half_way_has_moved_one_part(db: Database, tenant: str) -> None:
    await _mails(db, tenant, OLD_ONLY, 300)
    with pytest.raises(Killed):
        await rotation.rotate(db, BOTH, _kill)
    assert await _kids(db) == {"old", "new"}


async def test_everything_opens_after_a_rotation_stopped_half_way(
    db: Database, tenant: str
) -> None:
    texts = await _mails(db, tenant, OLD_ONLY, 300)
    with pytest.raises(Killed):
        await rotation.rotate(db, BOTH, _kill)
    assert await _opened(db, BOTH, tenant) == texts


async def test_a_rotation_stopped_half_way_finishes_when_run_again(
    db: Database, tenant: str
) -> None:
    texts = await _mails(db, tenant, OLD_ONLY, 300)
    with pytest.raises(Killed):
        await rotation.rotate(db, BOTH, _kill)
    await rotation.rotate(db, BOTH, _quiet)
    assert await _opened(db, NEW_ONLY, tenant) == texts


async def test_two_rotations_at_once_do_no_harm(db: Database, tenant: str) -> None:
    texts = await _mails(db, tenant, OLD_ONLY, 300)
    await asyncio.gather(*(rotation.rotate(db, BOTH, _quiet) for _ in range(2)))
    assert await _opened(db, NEW_ONLY, tenant) == texts


# Verification


async def test_verification_counts_per_key(db: Database, tenant: str) -> None:
    await _mails(db, tenant, OLD_ONLY, 3)
    await _mails(db, tenant, NEW_ONLY, 2)
    assert _filled(await rotation.verify(db, BOTH)) == {MAILS: {"old": 3, "new": 2}}


async def test_verification_goes_on_after_the_first_batch(db: Database, tenant: str) -> None:
    await _mails(db, tenant, OLD_ONLY, 450)
    assert (await rotation.verify(db, BOTH))[MAILS] == {"old": 450}


async def test_verification_counts_what_no_key_opens(db: Database, tenant: str) -> None:
    await _mails(db, tenant, LOST_ONLY, 2)
    await _mails(db, tenant, NEW_ONLY, 1)
    assert (await rotation.verify(db, BOTH))[MAILS] == {"cannot open": 2, "new": 1}


async def test_verification_finds_a_value_that_was_moved(db: Database, tenant: str) -> None:
    first, second = await _mails(db, tenant, NEW_ONLY, 2)
    await _set_body(db, second, (await _bodies(db))[first])
    assert (await rotation.verify(db, BOTH))[MAILS] == {"new": 1, "cannot open": 1}


@pytest.mark.parametrize("damaged", [b"", b"x", b"\x01\x03new", bytes(200)])
async def test_verification_finds_a_value_that_is_damaged(
    db: Database, tenant: str, damaged: bytes
) -> None:
    (mail_id,) = await _mails(db, tenant, NEW_ONLY, 1)
    await _set_body(db, mail_id, damaged)
    assert (await rotation.verify(db, BOTH))[MAILS] == {"cannot open": 1}


async def test_verification_changes_nothing(db: Database, tenant: str) -> None:
    await _mails(db, tenant, OLD_ONLY, 3)
    before = await _bodies(db)
    await rotation.verify(db, BOTH)
    assert await _bodies(db) == before
