"""PUT /api/v1/embed/api-keys/:id, and the identity secret of a key."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.crypto.keyring import CannotOpen
from app.domain.conversations.embed import user_tokens
from app.kit import logs
from app.services import Services
from db.models import EmbedKey
from db.session import ALL_TENANTS
from tests.conversations.embed.factories import (
    KEYS_PATH,
    create_agent,
    create_embed_key,
    list_embed_keys,
    list_key_events,
)
from tests.conversations.embed.sites import error_of
from tests.conversations.embed.visits import create_shop, sign_user, visit
from tests.database import run_sql
from tests.scripted_agents import Talker
from tests.world import Client, World

RULES: dict[str, Any] = {
    "name": "Our other shop",
    "allowed_domains": ["shop.example.com", "*.example.org"],
    "require_session_token": True,
    "require_user_token": True,
    "allow_voice": True,
    "allow_feedback": False,
    "allow_attachments": True,
    "max_messages_per_day": 10,
    "max_tokens_per_day": 1_000_000_000_000,
}


async def _rotate(caller: Client, key_id: str) -> dict[str, Any]:
    answer = await caller.post(f"{KEYS_PATH}/{key_id}/identity-secret")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


# Change


async def test_a_key_is_created_with_rules(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id, **RULES)
    assert {name: key[name] for name in RULES} == RULES
    [listed] = await list_embed_keys(developer)
    assert {name: listed[name] for name in RULES} == RULES


async def test_each_field_can_be_changed_alone(
    developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    key_id = (await create_embed_key(developer, agent_id))["id"]
    [expected] = await list_embed_keys(developer)
    for name, value in RULES.items():
        with subtests.test(name=name):
            answer = await developer.put(f"{KEYS_PATH}/{key_id}", {name: value})
            assert answer.status_code == 200, answer.text
            expected[name] = value
            assert answer.json() == expected
            assert await list_embed_keys(developer) == [expected]
    changed = [data["changed"] for _, data in (await list_key_events(developer))[1:]]
    assert changed == [[name] for name in RULES]


async def test_null_clears_a_limit(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id, **RULES)
    body = {"max_messages_per_day": None, "max_tokens_per_day": None}
    answer = await developer.put(f"{KEYS_PATH}/{key['id']}", body)
    assert answer.status_code == 200, answer.text
    assert {name: answer.json()[name] for name in body} == body


async def test_what_does_not_change_emits_no_event(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id, **RULES)
    for body in ({}, RULES):
        answer = await developer.put(f"{KEYS_PATH}/{key['id']}", body)
        assert answer.status_code == 200, answer.text
    assert [kind for kind, _ in await list_key_events(developer)] == ["system.embed_key.created"]


async def test_wrong_fields_are_named_and_change_nothing(
    developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    key = await create_embed_key(developer, agent_id)
    before = await list_embed_keys(developer)
    wrong: list[tuple[str, Any, str]] = [
        ("name", "", "name"),
        ("name", None, "name"),
        ("name", "two\nlines", "name"),
        ("allowed_domains", None, "allowed_domains"),
        ("allowed_domains", ["ok.example.com", "*.com"], "allowed_domains.1"),
        ("require_session_token", None, "require_session_token"),
        ("require_session_token", "yes", "require_session_token"),
        ("require_user_token", 1, "require_user_token"),
        ("allow_voice", None, "allow_voice"),
        ("allow_feedback", None, "allow_feedback"),
        ("allow_attachments", None, "allow_attachments"),
        ("max_messages_per_day", 0, "max_messages_per_day"),
        ("max_messages_per_day", -1, "max_messages_per_day"),
        ("max_messages_per_day", 10_000_001, "max_messages_per_day"),
        ("max_messages_per_day", 1.5, "max_messages_per_day"),
        ("max_tokens_per_day", 0, "max_tokens_per_day"),
        ("max_tokens_per_day", 10**12 + 1, "max_tokens_per_day"),
        ("max_tokens_per_day", "many", "max_tokens_per_day"),
    ]
    for name, value, field in wrong:
        with subtests.test(name=name, value=value):
            answer = await developer.put(f"{KEYS_PATH}/{key['id']}", {name: value})
            assert error_of(answer) == (422, "validation_error")
            assert set(answer.json()["error"]["details"]) == {field}
    assert await list_embed_keys(developer) == before


async def test_other_columns_cannot_be_changed(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    other = await create_agent(developer, "Other")
    before = await list_embed_keys(developer)
    body = {
        "agent_id": other,
        "id": "emk_mine",
        "tenant_id": "ten_mine",
        "key_hash": "mine",
        "key_prefix": "emb_mine",
        "identity_secret": "ids_mine",
        "last_used_at": "2030-01-01T00:00:00Z",
        "messages_today": 7,
    }
    await developer.put(f"{KEYS_PATH}/{key['id']}", body)
    assert await list_embed_keys(developer) == before


async def test_keys_of_nobody_and_of_others_are_not_found(
    world: World, developer: Client, agent_id: str
) -> None:
    key = await create_embed_key(developer, agent_id)
    stranger = await world.user("tenant_admin")
    for caller, key_id in (
        (developer, "emk_none"),
        (stranger, key["id"]),
        (developer, key["key_prefix"]),
    ):
        answer = await caller.put(f"{KEYS_PATH}/{key_id}", {"require_session_token": True})
        assert error_of(answer) == (404, "embed_key_not_found")
        answer = await caller.post(f"{KEYS_PATH}/{key_id}/identity-secret")
        assert error_of(answer) == (404, "embed_key_not_found")
    [listed] = await list_embed_keys(developer)
    assert listed["require_session_token"] is False


async def test_a_change_needs_the_permission(
    world: World, developer: Client, agent_id: str
) -> None:
    key = await create_embed_key(developer, agent_id)
    for role in ("agent_user", "viewer"):
        caller = await world.user(role, developer.tenant_id)
        answer = await caller.put(f"{KEYS_PATH}/{key['id']}", {"name": "Mine"})
        assert error_of(answer) == (403, "forbidden")
        answer = await caller.post(f"{KEYS_PATH}/{key['id']}/identity-secret")
        assert error_of(answer) == (403, "forbidden")
    headers = {"authorization": f"Bearer {key['api_key']}"}
    answer = await world.anonymous().put(f"{KEYS_PATH}/{key['id']}", {}, headers=headers)
    assert error_of(answer) == (401, "unauthorized")


# The identity secret


async def test_the_identity_secret_is_shown_once(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    new = await _rotate(developer, key["id"])
    assert new["id"] == key["id"]
    secrets = [key["identity_secret"], new["identity_secret"]]
    assert len(set(secrets)) == 2
    for secret in secrets:
        assert secret.startswith("ids_")
        assert len(secret) >= 40
    answers = [
        await developer.get(KEYS_PATH),
        await developer.put(f"{KEYS_PATH}/{key['id']}", {"name": "Renamed"}),
        await developer.get("/api/v1/event-log"),
    ]
    for answer in answers:
        assert "ids_" not in answer.text
        assert '"identity_secret":"' not in answer.text
    events = await list_key_events(developer)
    assert [data["changed"] for _, data in events[1:]] == [["identity_secret"], ["name"]]


async def test_the_identity_secret_is_sealed_for_its_row(
    developer: Client, agent_id: str, services: Services
) -> None:
    key, other = [await create_embed_key(developer, agent_id) for _ in range(2)]
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(EmbedKey, key["id"])
    sealed = row.identity_secret
    assert sealed is not None
    secret = key["identity_secret"].encode()
    assert secret not in sealed
    context = user_tokens.seal_context(developer.tenant_id, key["id"])
    assert services.keyring.open(sealed, context) == secret
    # Copied to another row, it does not open.
    with pytest.raises(CannotOpen):
        services.keyring.open(sealed, user_tokens.seal_context(developer.tenant_id, other["id"]))


async def test_a_key_of_before_shows_that_it_has_no_identity_secret(
    developer: Client, agent_id: str, services: Services
) -> None:
    key = await create_embed_key(developer, agent_id)
    sql = "UPDATE embed_keys SET identity_secret = NULL WHERE id = $1"
    await run_sql(services, sql, key["id"])
    [listed] = await list_embed_keys(developer)
    assert listed["has_identity_secret"] is False
    await _rotate(developer, key["id"])
    [listed] = await list_embed_keys(developer)
    assert listed["has_identity_secret"] is True


@pytest.fixture
def full_logs() -> Iterator[None]:
    logs.configure("debug", "json")
    yield
    logs.configure("warning", "json")


async def test_secrets_and_tokens_are_not_logged(
    talk: Talker, full_logs: None, capfd: pytest.CaptureFixture[str]
) -> None:
    site = await create_shop(talk, max_messages_per_day=1)
    token = sign_user(site, name="Ada")
    customer = await visit(site, user_token=token)
    await customer.say("Hi")
    await customer.call("POST chat")
    await customer.call("POST chat", origin="https://evil.example.net")
    new = await _rotate(talk.client, site.key["id"])
    await customer.call("POST chat")
    logged = "".join(capfd.readouterr())
    assert f"{site.path}/session" in logged
    for secret in (
        site.api_key,
        customer.token,
        token,
        site.key["identity_secret"],
        new["identity_secret"],
    ):
        assert secret not in logged
        assert secret.rpartition(".")[2] not in logged
