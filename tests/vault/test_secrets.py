"""Secrets are returned by `reveal` alone; events contain none."""

import pytest

from app.services import Services
from tests.asking import refused
from tests.vault.api import PATH, list_events, reveal_secrets
from tests.vault.factories import TYPES, VALID_SECRETS, create_credential, grant_access
from tests.vault.sql import run_sql
from tests.world import Client, World

# Secrets


@pytest.mark.parametrize("type_", TYPES)
async def test_secrets_come_back_only_by_revealing(admin: Client, type_: str) -> None:
    credential = await create_credential(admin, type_)
    path = f"{PATH}/{credential['id']}"
    answers = [
        await admin.get(path),
        await admin.get(PATH),
        await admin.put(path, {"name": "Other"}),
        await admin.put(f"{path}/secrets", {"secrets": VALID_SECRETS[type_]}),
        await admin.get(f"{path}/audit"),
        await admin.get(f"{PATH}/audit"),
    ]
    assert all("planted" not in answer.text for answer in answers)
    assert "planted" not in str(credential)
    assert await reveal_secrets(admin, credential["id"]) == VALID_SECRETS[type_]


async def test_what_was_revealed_is_kept_by_no_cache(admin: Client) -> None:
    credential = await create_credential(admin)
    answer = await admin.get(f"{PATH}/{credential['id']}/reveal")
    assert answer.headers["cache-control"] == "no-store"


async def test_without_an_audit_trail_nothing_is_revealed(
    admin: Client, services: Services
) -> None:
    credential = await create_credential(admin)
    await run_sql(
        services,
        "UPDATE credential_audit_chains SET key = 'x' WHERE tenant_id = $1",
        admin.tenant_id,
    )
    answer = await admin.get(f"{PATH}/{credential['id']}/reveal")
    refused(answer, 500, "internal_error")
    assert "planted-token" not in answer.text


async def test_secrets_moved_to_another_row_do_not_open(world: World, services: Services) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    other, own = (
        await create_credential(there, secrets={"token": "theirs-alone"}),
        await create_credential(here),
    )
    await run_sql(
        services,
        "UPDATE credentials SET secrets = (SELECT secrets FROM credentials WHERE id = $1) "
        "WHERE id = $2",
        other["id"],
        own["id"],
    )
    answer = await here.get(f"{PATH}/{own['id']}/reveal")
    refused(answer, 500, "internal_error")
    assert "theirs-alone" not in answer.text


# Events


async def test_what_happens_to_a_credential_is_told_without_its_secrets(admin: Client) -> None:
    credential = await create_credential(admin, name="Ours")
    path = f"{PATH}/{credential['id']}"
    await admin.put(path, {"name": "New", "metadata": {"a": 1}, "secrets": {"token": "planted-2"}})
    await admin.put(f"{path}/secrets", {"secrets": {"token": "planted-3"}})
    rule = await grant_access(admin, credential["id"])
    await admin.delete(f"{path}/access/{rule['id']}")
    await admin.delete(path)
    base = {"credential_id": credential["id"], "name": "New", "credential_type": "bearer_token"}
    assert await list_events(admin) == [
        base,
        {**base, "changed": ["access"]},
        {**base, "changed": ["access"]},
        {**base, "changed": ["secrets"]},
        {**base, "changed": ["name", "metadata", "secrets"]},
        {**base, "name": "Ours"},
    ]
    assert "planted" not in (await admin.get("/api/v1/event-log")).text
