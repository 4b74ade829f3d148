"""Secrets are returned by `reveal` alone; events contain none."""

from typing import Any

import pytest

from app.domain.agents.vault.types import TYPES
from app.services import Services
from tests.agents.vault.api import PATH, list_events, reveal_secrets
from tests.agents.vault.factories import VALID_SECRETS, create_credential, grant_access
from tests.assertions import refused
from tests.database import run_sql
from tests.world import Client, World

# Secrets


async def test_secrets_are_returned_by_reveal_only(world: World, subtests: pytest.Subtests) -> None:
    for type_ in TYPES:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
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


async def test_a_value_that_equals_its_default_is_revealed(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("oauth2", {"access_token": "", "refresh_token": "", "scopes": []}),
        (
            "database",
            {"port": None, "password": "", "ssl_mode": "prefer", "engine": "postgresql"},
        ),
        ("ssh", {"port": 22, "passphrase": "", "host_key": ""}),
        ("smtp", {"port": 587, "username": "", "password": "", "use_tls": True}),
    ]
    for type_, defaults in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_, defaults=defaults):
            secrets = {**VALID_SECRETS[type_], **defaults}
            credential = await create_credential(admin, type_, secrets)
            assert credential["secret_keys"] == sorted(secrets)
            assert await reveal_secrets(admin, credential["id"]) == secrets
            path = f"{PATH}/{credential['id']}"
            for update_path in (path, f"{path}/secrets"):
                await admin.put(update_path, {"secrets": VALID_SECRETS[type_]})
                answer = await admin.put(update_path, {"secrets": secrets})
                assert answer.json()["secret_keys"] == sorted(secrets)
                assert await reveal_secrets(admin, credential["id"]) == secrets


async def test_a_reveal_response_is_not_cached(admin: Client) -> None:
    credential = await create_credential(admin)
    answer = await admin.get(f"{PATH}/{credential['id']}/reveal")
    assert answer.headers["cache-control"] == "no-store"


async def test_nothing_is_revealed_without_an_audit_row(admin: Client, services: Services) -> None:
    credential = await create_credential(admin)
    await run_sql(
        services,
        "UPDATE credential_audit_chains SET key = 'x' WHERE tenant_id = $1",
        admin.tenant_id,
    )
    answer = await admin.get(f"{PATH}/{credential['id']}/reveal")
    refused(answer, 500, "internal_error")
    assert "planted-token" not in answer.text


async def test_secrets_moved_to_another_row_cannot_be_decrypted(
    world: World, services: Services
) -> None:
    owner, stranger = await world.user("tenant_admin"), await world.user("tenant_admin")
    other, own = (
        await create_credential(stranger, secrets={"token": "theirs-alone"}),
        await create_credential(owner),
    )
    await run_sql(
        services,
        "UPDATE credentials SET secrets = (SELECT secrets FROM credentials WHERE id = $1) "
        "WHERE id = $2",
        other["id"],
        own["id"],
    )
    answer = await owner.get(f"{PATH}/{own['id']}/reveal")
    refused(answer, 500, "internal_error")
    assert "theirs-alone" not in answer.text


# Events


async def test_events_of_a_credential_contain_no_secrets(admin: Client) -> None:
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
