"""The audit chain shows edited, deleted, moved and added rows."""

import asyncio

import pytest

from app.domain.agents.vault import audit
from app.domain.agents.vault.audit import ChainBreak
from app.services import Services
from tests.agents.vault.chain import (
    append_rows,
    delete_chains,
    find_break,
    find_row_id,
    verify_chains,
)
from tests.agents.vault.factories import create_credential
from tests.database import run_sql
from tests.world import Client, World

_CASES: list[str] = [
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
]


async def test_the_first_edited_row_is_reported(
    chain_services: Services, chain_writer: Client, subtests: pytest.Subtests
) -> None:
    for change in _CASES:
        await delete_chains(chain_services)
        with subtests.test(change=change):
            tenant = chain_writer.tenant_id
            await append_rows(chain_services, tenant, 5)
            for seq in (4, 3):
                statement = (
                    f"UPDATE credential_audit SET {change} WHERE tenant_id = $1 AND seq = $2"
                )
                await run_sql(chain_services, statement, tenant, seq)
                if change.startswith("id ="):
                    await run_sql(
                        chain_services,
                        "UPDATE credential_audit SET id = $1 WHERE id = 'aud_other'",
                        f"a{seq}",
                    )
            expected = ChainBreak(
                tenant, 3, await find_row_id(chain_services, tenant, 3), "the row was edited"
            )
            assert await verify_chains(chain_services) == (2, [expected])


async def test_a_deleted_row_is_reported(
    chain_services: Services, chain_writer: Client, subtests: pytest.Subtests
) -> None:
    for seq in (1, 3):
        await delete_chains(chain_services)
        with subtests.test(seq=seq):
            await append_rows(chain_services, chain_writer.tenant_id, 5)
            await run_sql(chain_services, "DELETE FROM credential_audit WHERE seq = $1", seq)
            expected = ChainBreak(chain_writer.tenant_id, seq, None, "the row is missing")
            assert await verify_chains(chain_services) == (seq - 1, [expected])


async def test_a_deleted_row_replaced_by_the_next_is_reported(
    chain_services: Services, chain_writer: Client
) -> None:
    await append_rows(chain_services, chain_writer.tenant_id, 5)
    await run_sql(chain_services, "DELETE FROM credential_audit WHERE seq = 3")
    await run_sql(chain_services, "UPDATE credential_audit SET seq = 3 WHERE seq = 4")
    assert (await find_break(chain_services)).seq == 3


async def test_truncated_rows_are_reported(chain_services: Services, chain_writer: Client) -> None:
    await append_rows(chain_services, chain_writer.tenant_id, 5)
    await run_sql(chain_services, "DELETE FROM credential_audit WHERE seq > 3")
    expected = ChainBreak(chain_writer.tenant_id, 4, None, "the row is missing")
    assert await verify_chains(chain_services) == (3, [expected])


async def test_a_head_that_was_set_back_is_reported(
    chain_services: Services, chain_writer: Client
) -> None:
    await append_rows(chain_services, chain_writer.tenant_id, 5)
    await run_sql(chain_services, "DELETE FROM credential_audit WHERE seq > 3")
    await run_sql(
        chain_services,
        "UPDATE credential_audit_chains SET seq = 3, "
        "mac = (SELECT mac FROM credential_audit WHERE seq = 3)",
    )
    expected = ChainBreak(chain_writer.tenant_id, 4, None, "rows after this one are missing")
    assert await verify_chains(chain_services) == (3, [expected])


async def test_a_chain_without_rows_is_reported(
    chain_services: Services, chain_writer: Client
) -> None:
    await append_rows(chain_services, chain_writer.tenant_id, 5)
    await run_sql(chain_services, "DELETE FROM credential_audit")
    assert (await find_break(chain_services)).seq == 1


async def test_a_swapped_pair_is_reported(chain_services: Services, chain_writer: Client) -> None:
    await append_rows(chain_services, chain_writer.tenant_id, 5)
    await run_sql(chain_services, "UPDATE credential_audit SET seq = 99 WHERE seq = 2")
    await run_sql(chain_services, "UPDATE credential_audit SET seq = 2 WHERE seq = 4")
    await run_sql(chain_services, "UPDATE credential_audit SET seq = 4 WHERE seq = 99")
    chain_break = await find_break(chain_services)
    assert (chain_break.seq, chain_break.problem) == (2, "the row was edited")


_SEQ_CASES: dict[str, int] = {
    "after a gap": 5,
    "at the next position": 3,
}


async def test_a_row_moved_to_another_tenant_is_reported_for_both(
    chain_services: Services, chain_world: World, subtests: pytest.Subtests
) -> None:
    for name, seq in _SEQ_CASES.items():
        await delete_chains(chain_services)
        with subtests.test(name):
            first_tenant, second_tenant = await chain_world.tenant(), await chain_world.tenant()
            await append_rows(chain_services, first_tenant, 5)
            await append_rows(chain_services, second_tenant, 2)
            moved_id = await find_row_id(chain_services, first_tenant, seq)
            await run_sql(
                chain_services,
                "UPDATE credential_audit SET tenant_id = $1 WHERE id = $2",
                second_tenant,
                moved_id,
            )
            first_break, second_break = sorted(
                (await verify_chains(chain_services))[1],
                key=lambda chain_break: chain_break.tenant_id != first_tenant,
            )
            assert first_break == ChainBreak(first_tenant, seq, None, "the row is missing")
            assert (second_break.tenant_id, second_break.seq) == (second_tenant, seq)
            assert second_break.row_id == moved_id


async def test_an_added_row_is_reported(
    chain_services: Services, chain_writer: Client, subtests: pytest.Subtests
) -> None:
    cases: list[int] = [0, -1, 6, 1000]
    for seq in cases:
        await delete_chains(chain_services)
        with subtests.test(seq=seq):
            await append_rows(chain_services, chain_writer.tenant_id, 5)
            await run_sql(
                chain_services,
                "INSERT INTO credential_audit SELECT (jsonb_populate_record(r, "
                "jsonb_build_object('id', 'aud_added', 'seq', $1::bigint))).* "
                "FROM credential_audit r WHERE seq = 5",
                seq,
            )
            intact_rows, (chain_break,) = await verify_chains(chain_services)
            assert (intact_rows, chain_break.tenant_id, chain_break.seq) == (
                5,
                chain_writer.tenant_id,
                seq,
            )
            assert chain_break.row_id == "aud_added"


async def test_rows_added_after_a_missing_one_do_not_block_the_verification(
    chain_services: Services, chain_writer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_BATCH_ROWS", 3)
    await append_rows(chain_services, chain_writer.tenant_id, 2)
    await run_sql(chain_services, "UPDATE credential_audit SET seq = seq + 100")
    await run_sql(
        chain_services,
        "INSERT INTO credential_audit SELECT (jsonb_populate_record(r, "
        "jsonb_build_object('id', 'aud_' || n, 'seq', n))).* "
        "FROM credential_audit r, generate_series(10, 20) n WHERE seq = 101",
    )
    async with asyncio.timeout(10):
        assert (await find_break(chain_services)).seq == 1


async def test_a_missing_chain_is_reported(
    chain_services: Services, chain_writer: Client, subtests: pytest.Subtests
) -> None:
    for remaining_table in ("credentials", "credential_audit"):
        await delete_chains(chain_services)
        with subtests.test(remaining_table=remaining_table):
            await create_credential(chain_writer)
            await run_sql(chain_services, "DELETE FROM credential_audit_chains")
            if remaining_table == "credentials":
                await run_sql(chain_services, "DELETE FROM credential_audit")
            else:
                await run_sql(chain_services, "DELETE FROM credentials")
            assert await find_break(chain_services) == ChainBreak(
                chain_writer.tenant_id, 0, None, "the chain is missing"
            )


async def test_a_restarted_chain_is_reported(
    chain_services: Services, chain_writer: Client
) -> None:
    """Deleting rows and chain together leaves credentials without a creation row."""
    credential = await create_credential(chain_writer)
    await run_sql(chain_services, "DELETE FROM credential_audit")
    await run_sql(chain_services, "DELETE FROM credential_audit_chains")
    await create_credential(chain_writer)
    expected = ChainBreak(
        chain_writer.tenant_id, 0, credential["id"], "no row records its creation"
    )
    assert await find_break(chain_services) == expected


async def test_a_chain_copied_to_another_tenant_is_reported(
    chain_services: Services, chain_world: World
) -> None:
    """Rows and head can be copied, but the key can be decrypted only for its own tenant."""
    first_tenant, second_tenant = await chain_world.tenant(), await chain_world.tenant()
    await append_rows(chain_services, first_tenant, 2)
    await run_sql(chain_services, "UPDATE credential_audit SET tenant_id = $1", second_tenant)
    await run_sql(
        chain_services, "UPDATE credential_audit_chains SET tenant_id = $1", second_tenant
    )
    chain_break = await find_break(chain_services)
    assert (chain_break.tenant_id, chain_break.seq) == (second_tenant, 0)
    assert "cannot be decrypted" in chain_break.problem


async def test_one_broken_chain_does_not_hide_the_others(
    chain_services: Services, chain_world: World
) -> None:
    tenants = [await chain_world.tenant() for _ in range(3)]
    for tenant in tenants:
        await append_rows(chain_services, tenant, 2)
    for tenant in tenants[:2]:
        await run_sql(
            chain_services, "DELETE FROM credential_audit WHERE tenant_id = $1 AND seq = 2", tenant
        )
    intact_rows, breaks = await verify_chains(chain_services)
    assert intact_rows == 4
    assert {chain_break.tenant_id for chain_break in breaks} == set(tenants[:2])
