"""The audit chain: concurrent writers, a new root key and `parley vault verify`."""

import asyncio

import msgspec
import pytest

from app import container
from app.crypto.keyring import Keyring
from app.domain.agents.vault import audit
from app.domain.agents.vault.decrypted import seal_context
from app.services import Services
from tests.agents.vault.api import PATH, list_audit, reveal_secrets
from tests.agents.vault.chain import ACTOR, append_rows, find_row_id, verify_chains
from tests.agents.vault.factories import VALID_SECRETS, create_credential
from tests.database import fetch_rows, run_sql
from tests.processes import run_parley
from tests.world import Client, World

NEW_KEY = Keyring.generate("new")

# Intact chains


async def test_an_empty_vault_is_intact(chain_services: Services) -> None:
    assert await verify_chains(chain_services) == (0, [])


async def test_every_action_appends_a_row(chain_services: Services, chain_writer: Client) -> None:
    credential = await create_credential(chain_writer)
    await chain_writer.put(f"{PATH}/{credential['id']}", {"name": "New"})
    await reveal_secrets(chain_writer, credential["id"])
    await chain_writer.delete(f"{PATH}/{credential['id']}")
    assert await verify_chains(chain_services) == (4, [])


async def test_fifty_writers_at_once_make_one_chain(
    chain_services: Services, chain_writer: Client
) -> None:
    """One of them starts the chain."""
    await asyncio.gather(
        *(append_rows(chain_services, chain_writer.tenant_id, 2) for _ in range(50))
    )
    assert await verify_chains(chain_services) == (100, [])
    rows = await fetch_rows(chain_services, "SELECT seq FROM credential_audit ORDER BY seq")
    assert [row["seq"] for row in rows] == list(range(1, 101))


async def test_many_callers_at_once_make_one_chain(
    chain_services: Services, chain_writer: Client
) -> None:
    credential = await create_credential(chain_writer)
    reveals = [chain_writer.get(f"{PATH}/{credential['id']}/reveal") for _ in range(25)]
    creates = [create_credential(chain_writer) for _ in range(25)]
    await asyncio.gather(*reveals, *creates)
    assert await verify_chains(chain_services) == (51, [])


async def test_each_tenant_has_a_chain_of_its_own(
    chain_services: Services, chain_world: World
) -> None:
    tenants = [await chain_world.tenant() for _ in range(3)]
    await asyncio.gather(*(append_rows(chain_services, tenant, 5) for tenant in tenants))
    assert await verify_chains(chain_services) == (15, [])


async def test_a_row_that_is_rolled_back_leaves_no_gap(
    chain_services: Services, chain_writer: Client
) -> None:
    await append_rows(chain_services, chain_writer.tenant_id, 1)
    tx = chain_services.db.begin(chain_writer.tenant_id)
    await audit.append_entry(
        tx, chain_services.keyring, chain_writer.tenant_id, "crd_x", "used", ACTOR
    )
    await tx.rollback()
    await append_rows(chain_services, chain_writer.tenant_id, 1)
    assert await verify_chains(chain_services) == (2, [])


async def test_a_chain_longer_than_one_batch_is_intact(
    chain_services: Services, chain_writer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_BATCH_ROWS", 3)
    for count in (2, 1, 1, 2, 1):
        await append_rows(chain_services, chain_writer.tenant_id, count)
        assert (await verify_chains(chain_services))[1] == []


async def test_rows_written_during_a_verification_are_no_break(
    chain_services: Services, chain_writer: Client
) -> None:
    writers = asyncio.gather(
        *(append_rows(chain_services, chain_writer.tenant_id, 10) for _ in range(4))
    )
    while not writers.done():
        assert (await verify_chains(chain_services))[1] == []
    await writers


# The command line


async def test_the_command_counts_intact_rows_and_names_broken_ones(
    chain_services: Services, chain_world: World
) -> None:
    first_tenant, second_tenant = await chain_world.tenant(), await chain_world.tenant()
    for tenant in (first_tenant, second_tenant):
        await asyncio.gather(*(append_rows(chain_services, tenant, 1) for _ in range(25)))
    intact = await asyncio.to_thread(run_parley, chain_services.settings, "vault", "verify")
    assert (intact.returncode, intact.stdout) == (0, "50 audit rows are intact\n"), intact.stderr
    row = await find_row_id(chain_services, first_tenant, 7)
    await run_sql(chain_services, "UPDATE credential_audit SET success = false WHERE id = $1", row)
    await run_sql(
        chain_services,
        "DELETE FROM credential_audit WHERE tenant_id = $1 AND seq > 20",
        second_tenant,
    )
    broken = await asyncio.to_thread(run_parley, chain_services.settings, "vault", "verify")
    assert broken.returncode == 1, broken.stderr
    assert sorted(broken.stdout.splitlines()) == sorted(
        [
            f"BAD  {first_tenant}  row 7 ({row}): the row was edited",
            f"BAD  {second_tenant}  row 21: the row is missing",
            "26 audit rows are intact",
        ]
    )


async def test_chain_and_secrets_survive_a_new_root_key(
    chain_services: Services, chain_writer: Client
) -> None:
    credential = await create_credential(chain_writer)
    old_and_new = msgspec.structs.replace(
        chain_services.settings, master_keys=f"{NEW_KEY},{chain_services.settings.master_keys}"
    )
    new_only = msgspec.structs.replace(chain_services.settings, master_keys=NEW_KEY)
    rotated = await asyncio.to_thread(run_parley, old_and_new, "keys", "rotate")
    assert rotated.returncode == 0, rotated.stderr
    verified = await asyncio.to_thread(run_parley, new_only, "vault", "verify")
    assert (verified.returncode, verified.stdout) == (0, "1 audit rows are intact\n"), (
        verified.stderr
    )
    new_services = container.build(new_only)
    try:
        await append_rows(new_services, chain_writer.tenant_id, 1)
        assert await audit.verify(new_services.db, new_services.keyring) == (2, [])
        (row,) = await fetch_rows(
            new_services, "SELECT secrets FROM credentials WHERE id = $1", credential["id"]
        )
        plaintext = new_services.keyring.open(
            row["secrets"], seal_context(chain_writer.tenant_id, credential["id"])
        )
        assert msgspec.json.decode(plaintext) == VALID_SECRETS["bearer_token"]
    finally:
        await new_services.close()


async def test_the_rows_of_a_deleted_credential_stay_intact(
    chain_services: Services, chain_writer: Client
) -> None:
    credential = await create_credential(chain_writer)
    await chain_writer.delete(f"{PATH}/{credential['id']}")
    assert [row["action"] for row in await list_audit(chain_writer)] == ["deleted", "created"]
    assert await verify_chains(chain_services) == (2, [])
