"""/api/v1/api-keys: create, list and delete a tenant's provider keys."""

from datetime import datetime
from typing import Any

import pytest

from app.kit import clock
from app.kit.ids import new_id
from tests.agents.llm.provider_keys import (
    PATH,
    SECRET,
    create_key,
    invalid_fields,
    key_body,
    list_keys,
)
from tests.model_server import ModelServer
from tests.world import Client, World

KEY_FIELDS = {"id", "provider", "name", "key_hint", "base_url", "is_default", "created_at"}


# Create


async def test_a_key_is_added_and_shown_by_its_last_characters(admin: Client) -> None:
    key = await create_key(admin, name="Our account")
    assert set(key) == KEY_FIELDS
    assert key["id"].startswith("pvk_")
    assert key["provider"] == "openai"
    assert key["name"] == "Our account"
    assert key["key_hint"] == "…wxyz"
    assert key["base_url"] is None
    assert key["is_default"] is True
    assert key["created_at"].endswith("Z")
    age = clock.now() - datetime.fromisoformat(key["created_at"])
    assert abs(age.total_seconds()) < 60


async def test_a_short_key_has_no_hint(world: World, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str]] = [
        ("k", "…****"),
        ("x" * 11, "…****"),
        ("01234567abcd", "…abcd"),
        ("x" * 4092 + "tail", "…tail"),
    ]
    for api_key, hint in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(api_key=api_key, hint=hint):
            assert (await create_key(admin, api_key=api_key))["key_hint"] == hint


async def test_a_provider_of_the_table_needs_no_address(
    world: World, subtests: pytest.Subtests
) -> None:
    for provider in ("openai", "anthropic", "gemini", "together_ai", "ai21"):
        admin = await world.user("tenant_admin")
        with subtests.test(provider=provider):
            assert (await create_key(admin, provider=provider))["provider"] == provider


async def test_any_other_provider_may_have_an_address(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["my-own", "vllm.internal", "7b", "x" * 64]
    for provider in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(provider=provider):
            key = await create_key(
                admin, provider=provider, base_url="https://models.example.com/v1"
            )
            assert key["provider"] == provider


async def test_any_other_provider_needs_an_address(admin: Client) -> None:
    answer = await admin.post(PATH, key_body(provider="my-own"))
    assert invalid_fields(answer) == {"provider"}
    assert "base_url" in answer.json()["error"]["message"]
    assert "anthropic" in answer.json()["error"]["message"]


async def test_local_models_need_no_key(world: World, subtests: pytest.Subtests) -> None:
    cases: list[str | None] = [None, "https://models.example.com/v1"]
    for base_url in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(base_url=base_url):
            answer = await admin.post(PATH, key_body(provider="local", base_url=base_url))
            assert invalid_fields(answer) == {"provider"}
            assert await list_keys(admin) == []


async def test_names_and_keys_may_be_as_long_as_promised(admin: Client) -> None:
    key = await create_key(admin, name="ü" * 100, api_key="k" * 4096)
    assert key["name"] == "ü" * 100


async def test_fields_that_cannot_be_set_have_no_effect(admin: Client) -> None:
    fields = {"id": "pvk_mine", "key_hint": "mine", "created_at": "2000-01-01T00:00:00Z"}
    key = await create_key(admin, **fields)
    assert key["id"] != "pvk_mine"
    assert key["key_hint"] == "…wxyz"
    assert not key["created_at"].startswith("2000")
    assert [item["id"] for item in await list_keys(admin)] == [key["id"]]


_INVALID_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"provider": ""}, "provider"),
    ({"provider": "OpenAI"}, "provider"),
    ({"provider": "open ai"}, "provider"),
    ({"provider": "open/ai"}, "provider"),
    ({"provider": ".openai"}, "provider"),
    ({"provider": "-openai"}, "provider"),
    ({"provider": "öpenai"}, "provider"),
    ({"provider": "x" * 65}, "provider"),
    ({"provider": None}, "provider"),
    ({"provider": 5}, "provider"),
    ({"name": ""}, "name"),
    ({"name": " \t"}, "name"),
    ({"name": "two\nlines"}, "name"),
    ({"name": "x" * 101}, "name"),
    ({"name": None}, "name"),
    ({"api_key": ""}, "api_key"),
    ({"api_key": " "}, "api_key"),
    ({"api_key": "with a blank"}, "api_key"),
    ({"api_key": "two\r\nX-Evil: lines"}, "api_key"),
    ({"api_key": "schlüssel"}, "api_key"),
    ({"api_key": "nul\0"}, "api_key"),
    ({"api_key": "x" * 4097}, "api_key"),
    ({"api_key": None}, "api_key"),
    ({"api_key": ["x"]}, "api_key"),
    ({"base_url": 5}, "base_url"),
    ({"base_url": ""}, "base_url"),
    ({"is_default": "yes"}, "is_default"),
    ({"is_default": 1}, "is_default"),
    ({"is_default": None}, "is_default"),
    ({"provider": "mine\n", "base_url": "https://models.example.com/v1"}, "provider"),
    ({"name": "Ours\n"}, "name"),
    ({"api_key": f"{SECRET}\n"}, "api_key"),
]


async def test_a_wrong_field_is_named(admin: Client, subtests: pytest.Subtests) -> None:
    for fields, field in _INVALID_FIELDS:
        with subtests.test(fields=fields, field=field):
            assert invalid_fields(await admin.post(PATH, key_body(**fields))) == {field}
    assert await list_keys(admin) == []


async def test_a_missing_field_is_named(world: World, subtests: pytest.Subtests) -> None:
    for field in ("provider", "name", "api_key"):
        admin = await world.user("tenant_admin")
        with subtests.test(field=field):
            body = key_body()
            del body[field]
            answer = await admin.post(PATH, body)
            assert invalid_fields(answer) == {field}
            assert answer.json()["error"]["details"][field] == "is required"


async def test_every_wrong_field_is_named_at_once(admin: Client) -> None:
    assert invalid_fields(await admin.post(PATH, {"name": 5})) == {"provider", "name", "api_key"}


async def test_a_body_that_is_not_an_object_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    for content in (b"", b"{", b"[]", b'"x"', b"null"):
        admin = await world.user("tenant_admin")
        with subtests.test(content=content):
            headers = {"content-type": "application/json"}
            answer = await admin("POST", PATH, content=content, headers=headers)
            assert invalid_fields(answer) == {"body"}


async def test_the_same_idempotency_key_adds_one_key(admin: Client) -> None:
    headers = {"idempotency-key": new_id("idem")}
    first = await admin.post(PATH, key_body(), headers=headers)
    second = await admin.post(PATH, key_body(), headers=headers)
    other = await admin.post(PATH, key_body(name="Other"), headers=headers)
    assert (first.status_code, second.status_code, other.status_code) == (201, 201, 422)
    assert second.json() == first.json()
    assert other.json()["error"]["code"] == "idempotency_mismatch"
    assert len(await list_keys(admin)) == 1


async def test_a_tenant_has_fifty_keys_at_most(admin: Client, models: ModelServer) -> None:
    """A list of models sends a request with each default key."""
    for _ in range(50):
        await create_key(admin, provider="scripted", base_url=models.url)
    answer = await admin.post(PATH, key_body(provider="scripted", base_url=models.url))
    assert answer.status_code == 409


# List


async def test_a_list_is_data_by_provider_and_age(admin: Client) -> None:
    names = [("openai", "a"), ("anthropic", "b"), ("openai", "c"), ("anthropic", "d")]
    for provider, name in names:
        await create_key(admin, provider=provider, name=name)
    answer = await admin.get(PATH)
    assert set(answer.json()) == {"data"}
    assert [key["name"] for key in answer.json()["data"]] == ["b", "d", "a", "c"]
    assert all(set(key) == KEY_FIELDS for key in answer.json()["data"])


async def test_a_key_is_listed_as_it_was_created(admin: Client) -> None:
    key = await create_key(admin, base_url="https://models.example.com/v1")
    assert await list_keys(admin) == [key]


async def test_a_tenant_without_keys_has_an_empty_list(admin: Client) -> None:
    assert (await admin.get(PATH)).json() == {"data": []}


# Delete


async def test_a_deleted_key_is_gone(admin: Client) -> None:
    key = await create_key(admin)
    answer = await admin.delete(f"{PATH}/{key['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await list_keys(admin) == []


async def test_a_key_that_does_not_exist_is_404(admin: Client, subtests: pytest.Subtests) -> None:
    for key_id in ("pvk_nothing", "x", "pvk_" + "0" * 500, "..%2f"):
        for method, tail in (("DELETE", ""), ("POST", "/test")):
            with subtests.test(key_id=key_id, method=method, tail=tail):
                answer = await admin(method, f"{PATH}/{key_id}{tail}")
                assert answer.status_code == 404
                assert answer.json()["error"]["code"] in {"provider_key_not_found", "not_found"}


async def test_a_key_is_deleted_once(admin: Client) -> None:
    key = await create_key(admin)
    await admin.delete(f"{PATH}/{key['id']}")
    answer = await admin.delete(f"{PATH}/{key['id']}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "provider_key_not_found"
