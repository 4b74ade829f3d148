"""/v1/credentials: create, update and delete."""

from datetime import datetime
from typing import Any

import pytest

from app.domain.agents.vault.types import TYPES
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.agents.vault.api import (
    LIST_FIELDS,
    PATH,
    get_credential,
    list_audit,
    list_credentials,
    read_invalid_fields,
    reveal_secrets,
)
from tests.agents.vault.factories import VALID_SECRETS, build_body, create_credential
from tests.assertions import refused
from tests.database import run_sql
from tests.world import Client, World

FIELDS = LIST_FIELDS | {"metadata", "secret_keys", "secrets_updated_at"}


# Create


async def test_a_credential_is_added_with_every_field(admin: Client) -> None:
    credential = await create_credential(
        admin, name="Tickets", description="The team's account", metadata={"owner": "support"}
    )
    assert set(credential) == FIELDS
    assert credential["id"].startswith("crd_")
    assert credential["name"] == "Tickets"
    assert credential["type"] == "bearer_token"
    assert credential["description"] == "The team's account"
    assert credential["metadata"] == {"owner": "support"}
    assert credential["secret_keys"] == ["token"]
    assert credential["is_valid"] is True
    assert (credential["last_tested_at"], credential["last_used_at"]) == (None, None)
    for moment in (credential["created_at"], credential["updated_at"]):
        assert moment.endswith("Z")
        assert abs((clock.now() - datetime.fromisoformat(moment)).total_seconds()) < 60


async def test_description_and_metadata_may_be_left_out(admin: Client) -> None:
    credential = await create_credential(admin)
    assert (credential["description"], credential["metadata"]) == ("", {})


async def test_each_type_is_created_and_shows_only_the_names_of_its_secrets(
    world: World, subtests: pytest.Subtests
) -> None:
    for type_ in TYPES:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            credential = await create_credential(admin, type_)
            assert credential["type"] == type_
            assert credential["secret_keys"] == sorted(VALID_SECRETS[type_])


async def test_names_may_be_as_long_as_the_limit_and_need_not_be_unique(admin: Client) -> None:
    for _ in range(2):
        assert (await create_credential(admin, name="ü" * 100))["name"] == "ü" * 100


_INVALID_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": " "}, "name"),
    ({"name": "x" * 101}, "name"),
    ({"name": "two\nlines"}, "name"),
    ({"name": None}, "name"),
    ({"name": 5}, "name"),
    ({"type": "password"}, "type"),
    ({"type": ""}, "type"),
    ({"type": None}, "type"),
    ({"description": "x" * 2001}, "description"),
    ({"description": None}, "description"),
    ({"secrets": None}, "secrets"),
    ({"secrets": []}, "secrets"),
    ({"secrets": "planted-token"}, "secrets"),
    ({"metadata": None}, "metadata"),
    ({"metadata": ["x"]}, "metadata"),
    ({"metadata": "x"}, "metadata"),
]


async def test_a_wrong_field_is_named(admin: Client, subtests: pytest.Subtests) -> None:
    for fields, field in _INVALID_FIELDS:
        with subtests.test(fields=fields, field=field):
            assert set(read_invalid_fields(await admin.post(PATH, build_body(**fields)))) == {field}
    assert await list_credentials(admin) == []


async def test_a_missing_field_is_named(world: World, subtests: pytest.Subtests) -> None:
    for field in ("name", "type", "secrets"):
        admin = await world.user("tenant_admin")
        with subtests.test(field=field):
            body = build_body()
            del body[field]
            assert read_invalid_fields(await admin.post(PATH, body)) == {field: "is required"}


async def test_fields_that_cannot_be_set_have_no_effect(admin: Client) -> None:
    fields: dict[str, Any] = {
        "id": "crd_mine",
        "is_valid": False,
        "last_used_at": "2000-01-01T00:00:00Z",
        "created_at": "2000-01-01T00:00:00Z",
        "secret_keys": ["other"],
    }
    credential = await create_credential(admin, **fields)
    assert not [name for name, value in fields.items() if credential.get(name) == value]
    assert [item["id"] for item in await list_credentials(admin)] == [credential["id"]]


async def test_the_same_idempotency_key_adds_one_credential(admin: Client) -> None:
    headers = {"idempotency-key": new_id("idem")}
    first = await admin.post(PATH, build_body(), headers=headers)
    second = await admin.post(PATH, build_body(), headers=headers)
    other = await admin.post(PATH, build_body(name="Other"), headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    refused(other, 422, "idempotency_mismatch")
    assert len(await list_credentials(admin)) == 1


# Change


async def test_one_field_is_changed_and_the_others_stay(admin: Client) -> None:
    credential = await create_credential(admin, description="Before", metadata={"owner": "support"})
    answer = await admin.put(f"{PATH}/{credential['id']}", {"name": "After"})
    assert answer.status_code == 200
    updated = answer.json()
    assert updated == {**credential, "name": "After", "updated_at": updated["updated_at"]}
    assert updated["updated_at"] > credential["updated_at"]
    assert await get_credential(admin, credential["id"]) == updated


async def test_every_field_is_changed_at_once(admin: Client) -> None:
    credential = await create_credential(admin, metadata={"owner": "support"})
    body = {"name": "N", "description": "D", "metadata": {"a": 1}, "secrets": {"token": "other"}}
    updated = (await admin.put(f"{PATH}/{credential['id']}", body)).json()
    assert (updated["name"], updated["description"], updated["metadata"]) == ("N", "D", {"a": 1})
    assert await reveal_secrets(admin, credential["id"]) == {"token": "other"}


async def test_the_type_cannot_be_changed(admin: Client) -> None:
    credential = await create_credential(admin)
    updated = (await admin.put(f"{PATH}/{credential['id']}", {"type": "api_key"})).json()
    assert updated == credential


async def test_an_update_without_changes_changes_nothing(admin: Client) -> None:
    credential = await create_credential(admin)
    for body in ({}, {"name": credential["name"]}):
        assert (await admin.put(f"{PATH}/{credential['id']}", body)).json() == credential
    assert [entry["action"] for entry in await list_audit(admin)] == ["created"]


async def test_an_invalid_update_is_refused_and_changes_nothing(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"description": 5}, "description"),
        ({"metadata": None}, "metadata"),
        ({"secrets": None}, "secrets"),
        ({"secrets": {}}, "secrets.token"),
        ({"secrets": {"token": "x", "more": "y"}}, "secrets.more"),
    ]
    for body, field in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(body=body, field=field):
            credential = await create_credential(admin)
            answer = await admin.put(f"{PATH}/{credential['id']}", {"description": "New", **body})
            assert set(read_invalid_fields(answer)) == {field}
            assert await get_credential(admin, credential["id"]) == credential


async def test_new_secrets_replace_the_whole_set(admin: Client) -> None:
    credential = await create_credential(admin, "smtp")
    answer = await admin.put(
        f"{PATH}/{credential['id']}/secrets", {"secrets": {"host": "new.example"}}
    )
    assert answer.status_code == 200
    assert set(answer.json()) == FIELDS
    assert answer.json()["secret_keys"] == ["host"]
    assert (await reveal_secrets(admin, credential["id"])) == {"host": "new.example"}


async def test_new_secrets_make_a_credential_valid_again(admin: Client, services: Services) -> None:
    credential = await create_credential(admin)
    await run_sql(
        services, "UPDATE credentials SET is_valid = false WHERE id = $1", credential["id"]
    )
    assert (await get_credential(admin, credential["id"]))["is_valid"] is False
    answer = await admin.put(f"{PATH}/{credential['id']}/secrets", {"secrets": {"token": "new"}})
    assert answer.json()["is_valid"] is True


async def test_replacing_secrets_needs_secrets_in_the_body(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [{}, {"secrets": None}, {"secrets": "x"}]
    for body in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(body=body):
            credential = await create_credential(admin)
            assert set(
                read_invalid_fields(await admin.put(f"{PATH}/{credential['id']}/secrets", body))
            ) == {"secrets"}


# Delete


async def test_a_deleted_credential_is_not_found_and_its_audit_rows_stay(admin: Client) -> None:
    credential = await create_credential(admin)
    answer = await admin.delete(f"{PATH}/{credential['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    refused(await admin.get(f"{PATH}/{credential['id']}"), 404, "credential_not_found")
    assert await list_credentials(admin) == []
    assert [entry["action"] for entry in await list_audit(admin)] == ["deleted", "created"]


async def test_a_credential_is_deleted_once(admin: Client) -> None:
    credential = await create_credential(admin)
    await admin.delete(f"{PATH}/{credential['id']}")
    refused(await admin.delete(f"{PATH}/{credential['id']}"), 404, "credential_not_found")
