"""The audit chain: it holds under many writers and a new root key, and shows who meddled."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import msgspec
import pytest

from app import bootstrap, container
from app import settings as configuration
from app.domain.vault import audit
from app.domain.vault.audit import Actor, Break
from app.domain.vault.decrypted import seal_context
from app.kit.crypto import Keyring
from app.kit.ids import new_id
from app.main import create_app
from app.services import Services
from app.settings import Settings
from db import migrate
from tests.stores import Stores
from tests.vault.making import GOOD, PATH, create, fetch, revealed, sql, trail
from tests.world import Client, World

ROOT = Path(__file__).parent.parent.parent
OLD, NEW = Keyring.generate("old"), Keyring.generate("new")
SOMEBODY = Actor("system", None)


@pytest.fixture(scope="module")
async def own_world(stores: Stores) -> AsyncIterator[World]:
    """A database of its own: a chain that somebody cut is nobody else's concern."""
    name = f"chain_{new_id('x')}"
    connection = await asyncpg.connect(stores.postgres.url("postgres"))
    await connection.execute(f'CREATE DATABASE "{name}"')
    await connection.close()
    own = msgspec.structs.replace(
        stores.settings, database_url=stores.postgres.url(name), master_keys=OLD
    )
    await migrate.upgrade(own.sqlalchemy_url)
    world = World(create_app(own))
    await bootstrap.prepare(world.services.db, world.services.keyring, "enterprise")
    yield world
    await world.services.close()


@pytest.fixture
async def own(own_world: World) -> Services:
    """Parts whose database has no chain yet."""
    await sql(own_world.services, "TRUNCATE credentials, credential_audit CASCADE")
    await sql(own_world.services, "TRUNCATE credential_audit_chains")
    return own_world.services


@pytest.fixture
async def writer(own: Services, own_world: World) -> Client:
    return await own_world.user("tenant_admin")


async def _append(services: Services, tenant_id: str, count: int) -> None:
    for number in range(count):
        async with services.db.tx(tenant_id) as tx:
            await audit.append(tx, services.keyring, tenant_id, f"crd_{number}", "used", SOMEBODY)


async def _verify(services: Services) -> tuple[int, list[Break]]:
    return await audit.verify(services.db, services.keyring)


async def _break(services: Services) -> Break:
    (found,) = (await _verify(services))[1]
    return found


async def _row(services: Services, tenant_id: str, seq: int) -> str:
    """The id of a row."""
    wanted = "SELECT id FROM credential_audit WHERE tenant_id = $1 AND seq = $2"
    (row,) = await fetch(services, wanted, tenant_id, seq)
    return str(row["id"])


# It holds


async def test_an_empty_vault_holds(own: Services) -> None:
    assert await _verify(own) == (0, [])


async def test_every_deed_is_a_link(own: Services, writer: Client) -> None:
    made = await create(writer)
    await writer.put(f"{PATH}/{made['id']}", {"name": "New"})
    await revealed(writer, made["id"])
    await writer.delete(f"{PATH}/{made['id']}")
    assert await _verify(own) == (4, [])


async def test_fifty_writers_at_once_make_one_chain(own: Services, writer: Client) -> None:
    """Among them the very first, which begins it."""
    await asyncio.gather(*(_append(own, writer.tenant_id, 2) for _ in range(50)))
    assert await _verify(own) == (100, [])
    rows = await fetch(own, "SELECT seq FROM credential_audit ORDER BY seq")
    assert [row["seq"] for row in rows] == list(range(1, 101))


async def test_many_callers_at_once_make_one_chain(own: Services, writer: Client) -> None:
    made = await create(writer)
    reveals = [writer.get(f"{PATH}/{made['id']}/reveal") for _ in range(25)]
    creates = [create(writer) for _ in range(25)]
    await asyncio.gather(*reveals, *creates)
    assert await _verify(own) == (51, [])


async def test_each_tenant_has_a_chain_of_its_own(own: Services, own_world: World) -> None:
    tenants = [await own_world.tenant() for _ in range(3)]
    await asyncio.gather(*(_append(own, tenant, 5) for tenant in tenants))
    assert await _verify(own) == (15, [])


async def test_a_deed_that_is_rolled_back_leaves_no_gap(own: Services, writer: Client) -> None:
    await _append(own, writer.tenant_id, 1)
    tx = own.db.begin(writer.tenant_id)
    await audit.append(tx, own.keyring, writer.tenant_id, "crd_x", "used", SOMEBODY)
    await tx.rollback()
    await _append(own, writer.tenant_id, 1)
    assert await _verify(own) == (2, [])


async def test_a_chain_longer_than_one_look_holds(
    own: Services, writer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_BATCH", 3)
    for count in (2, 1, 1, 2, 1):
        await _append(own, writer.tenant_id, count)
        assert (await _verify(own))[1] == []


async def test_rows_written_while_it_is_checked_are_no_break(own: Services, writer: Client) -> None:
    writing = asyncio.gather(*(_append(own, writer.tenant_id, 10) for _ in range(4)))
    while not writing.done():
        assert (await _verify(own))[1] == []
    await writing


# Somebody meddled


@pytest.mark.parametrize(
    "change",
    [
        "action = 'tested'",
        "actor_id = 'usr_other'",
        "actor_type = 'user'",
        "credential_id = 'crd_other'",
        "integration = 'tool:x'",
        "ip_address = '1.2.3.4'",
        "success = NOT success",
        "created_at = created_at - interval '1 microsecond'",
        "id = 'aud_other'",
        "mac = 'x'",
    ],
)
async def test_the_first_edited_row_is_named(own: Services, writer: Client, change: str) -> None:
    tenant = writer.tenant_id
    await _append(own, tenant, 5)
    for seq in (4, 3):
        await sql(
            own, f"UPDATE credential_audit SET {change} WHERE tenant_id = $1 AND seq = $2",
            tenant, seq,
        )  # fmt: skip
        if change.startswith("id ="):
            await sql(own, "UPDATE credential_audit SET id = $1 WHERE id = 'aud_other'", f"a{seq}")
    expected = Break(tenant, 3, await _row(own, tenant, 3), "the row was edited")
    assert await _verify(own) == (2, [expected])


@pytest.mark.parametrize("seq", [1, 3])
async def test_a_deleted_row_is_named(own: Services, writer: Client, seq: int) -> None:
    await _append(own, writer.tenant_id, 5)
    await sql(own, "DELETE FROM credential_audit WHERE seq = $1", seq)
    expected = Break(writer.tenant_id, seq, None, "the row is missing")
    assert await _verify(own) == (seq - 1, [expected])


async def test_a_deleted_row_whose_place_was_filled_is_named(own: Services, writer: Client) -> None:
    await _append(own, writer.tenant_id, 5)
    await sql(own, "DELETE FROM credential_audit WHERE seq = 3")
    await sql(own, "UPDATE credential_audit SET seq = 3 WHERE seq = 4")
    assert (await _break(own)).seq == 3


async def test_rows_cut_off_the_end_are_named(own: Services, writer: Client) -> None:
    await _append(own, writer.tenant_id, 5)
    await sql(own, "DELETE FROM credential_audit WHERE seq > 3")
    expected = Break(writer.tenant_id, 4, None, "the row is missing")
    assert await _verify(own) == (3, [expected])


async def test_an_end_that_was_set_back_is_named(own: Services, writer: Client) -> None:
    await _append(own, writer.tenant_id, 5)
    await sql(own, "DELETE FROM credential_audit WHERE seq > 3")
    await sql(
        own,
        "UPDATE credential_audit_chains SET seq = 3, "
        "mac = (SELECT mac FROM credential_audit WHERE seq = 3)",
    )
    expected = Break(writer.tenant_id, 4, None, "rows after this one are missing")
    assert await _verify(own) == (3, [expected])


async def test_every_row_deleted_is_named(own: Services, writer: Client) -> None:
    await _append(own, writer.tenant_id, 5)
    await sql(own, "DELETE FROM credential_audit")
    assert (await _break(own)).seq == 1


async def test_a_swapped_pair_is_named(own: Services, writer: Client) -> None:
    await _append(own, writer.tenant_id, 5)
    await sql(own, "UPDATE credential_audit SET seq = 99 WHERE seq = 2")
    await sql(own, "UPDATE credential_audit SET seq = 2 WHERE seq = 4")
    await sql(own, "UPDATE credential_audit SET seq = 4 WHERE seq = 99")
    found = await _break(own)
    assert (found.seq, found.problem) == (2, "the row was edited")


async def test_a_row_moved_to_another_tenant_is_named_in_both(
    own: Services, own_world: World
) -> None:
    here, there = await own_world.tenant(), await own_world.tenant()
    await _append(own, here, 5)
    await _append(own, there, 2)
    moved = await _row(own, here, 5)
    await sql(own, "UPDATE credential_audit SET tenant_id = $1 WHERE id = $2", there, moved)
    found = sorted((await _verify(own))[1], key=lambda broken: broken.tenant_id != here)
    assert found[0] == Break(here, 5, None, "the row is missing")
    assert (found[1].tenant_id, found[1].row_id) == (there, moved)


async def test_a_row_moved_to_the_very_next_seal_context_another_tenant_is_named(
    own: Services, own_world: World
) -> None:
    here, there = await own_world.tenant(), await own_world.tenant()
    await _append(own, here, 5)
    await _append(own, there, 2)
    moved = await _row(own, here, 3)
    await sql(own, "UPDATE credential_audit SET tenant_id = $1 WHERE id = $2", there, moved)
    assert {(broken.tenant_id, broken.seq) for broken in (await _verify(own))[1]} == {
        (here, 3),
        (there, 3),
    }


@pytest.mark.parametrize("seq", [0, -1, 6, 1000])
async def test_a_row_that_somebody_added_is_named(own: Services, writer: Client, seq: int) -> None:
    await _append(own, writer.tenant_id, 5)
    await sql(
        own,
        "INSERT INTO credential_audit SELECT (jsonb_populate_record(r, "
        "jsonb_build_object('id', 'aud_added', 'seq', $1::bigint))).* "
        "FROM credential_audit r WHERE seq = 5",
        seq,
    )
    held, (found,) = await _verify(own)
    assert (held, found.tenant_id, found.seq) == (5, writer.tenant_id, seq)
    assert found.row_id == "aud_added"


async def test_rows_added_after_a_missing_one_do_not_hold_up_the_check(
    own: Services, writer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_BATCH", 3)
    await _append(own, writer.tenant_id, 2)
    await sql(own, "UPDATE credential_audit SET seq = seq + 100")
    await sql(
        own,
        "INSERT INTO credential_audit SELECT (jsonb_populate_record(r, "
        "jsonb_build_object('id', 'aud_' || n, 'seq', n))).* "
        "FROM credential_audit r, generate_series(10, 20) n WHERE seq = 101",
    )
    async with asyncio.timeout(10):
        assert (await _break(own)).seq == 1


@pytest.mark.parametrize("what", ["credentials", "credential_audit"])
async def test_a_missing_chain_is_named(own: Services, writer: Client, what: str) -> None:
    await create(writer)
    await sql(own, "DELETE FROM credential_audit_chains")
    if what == "credentials":
        await sql(own, "DELETE FROM credential_audit")
    else:
        await sql(own, "DELETE FROM credentials")
    assert await _break(own) == Break(writer.tenant_id, 0, None, "the chain is missing")


async def test_a_trail_that_was_begun_anew_is_named(own: Services, writer: Client) -> None:
    """Whoever wipes rows and chain together is found out by the credentials that are left."""
    made = await create(writer)
    await sql(own, "DELETE FROM credential_audit")
    await sql(own, "DELETE FROM credential_audit_chains")
    await create(writer)
    expected = Break(writer.tenant_id, 0, made["id"], "no row tells of its creation")
    assert await _break(own) == expected


async def test_a_chain_of_somebody_else_s_making_is_named(own: Services, own_world: World) -> None:
    """Rows and end may be copied; the key opens only where it belongs."""
    here, there = await own_world.tenant(), await own_world.tenant()
    await _append(own, here, 2)
    await sql(own, "UPDATE credential_audit SET tenant_id = $1", there)
    await sql(own, "UPDATE credential_audit_chains SET tenant_id = $1", there)
    found = await _break(own)
    assert (found.tenant_id, found.seq) == (there, 0)
    assert "does not open" in found.problem


async def test_one_broken_chain_does_not_hide_the_others(own: Services, own_world: World) -> None:
    tenants = [await own_world.tenant() for _ in range(3)]
    for tenant in tenants:
        await _append(own, tenant, 2)
    for tenant in tenants[:2]:
        await sql(own, "DELETE FROM credential_audit WHERE tenant_id = $1 AND seq = 2", tenant)
    held, breaks = await _verify(own)
    assert held == 4
    assert {broken.tenant_id for broken in breaks} == set(tenants[:2])


# The command line


def _parley(settings: Settings, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *command],
        env={**os.environ, **configuration.as_env(settings)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_the_command_counts_what_holds_and_names_what_does_not(
    own: Services, own_world: World
) -> None:
    here, there = await own_world.tenant(), await own_world.tenant()
    for tenant in (here, there):
        await asyncio.gather(*(_append(own, tenant, 1) for _ in range(25)))
    good = await asyncio.to_thread(_parley, own.settings, "vault", "verify")
    assert (good.returncode, good.stdout) == (0, "50 audit rows hold\n"), good.stderr
    row = await _row(own, here, 7)
    await sql(own, "UPDATE credential_audit SET success = false WHERE id = $1", row)
    await sql(own, "DELETE FROM credential_audit WHERE tenant_id = $1 AND seq > 20", there)
    bad = await asyncio.to_thread(_parley, own.settings, "vault", "verify")
    assert bad.returncode == 1, bad.stderr
    assert sorted(bad.stdout.splitlines()) == sorted(
        [
            f"BAD  {here}  row 7 ({row}): the row was edited",
            f"BAD  {there}  row 21: the row is missing",
            "26 audit rows hold",
        ]
    )


async def test_chain_and_secrets_outlive_the_root_key(own: Services, writer: Client) -> None:
    made = await create(writer)
    both = msgspec.structs.replace(own.settings, master_keys=f"{NEW},{OLD}")
    new_only = msgspec.structs.replace(own.settings, master_keys=NEW)
    rotated = await asyncio.to_thread(_parley, both, "keys", "rotate")
    assert rotated.returncode == 0, rotated.stderr
    verified = await asyncio.to_thread(_parley, new_only, "vault", "verify")
    assert (verified.returncode, verified.stdout) == (0, "1 audit rows hold\n"), verified.stderr
    after = container.build(new_only)
    try:
        await _append(after, writer.tenant_id, 1)
        assert await audit.verify(after.db, after.keyring) == (2, [])
        (row,) = await fetch(after, "SELECT secrets FROM credentials WHERE id = $1", made["id"])
        opened = after.keyring.open(row["secrets"], seal_context(writer.tenant_id, made["id"]))
        assert msgspec.json.decode(opened) == GOOD["bearer_token"]
    finally:
        await after.close()


async def test_the_trail_of_a_deleted_credential_still_vouches(
    own: Services, writer: Client
) -> None:
    made = await create(writer)
    await writer.delete(f"{PATH}/{made['id']}")
    assert [row["action"] for row in await trail(writer)] == ["deleted", "created"]
    assert await _verify(own) == (2, [])
