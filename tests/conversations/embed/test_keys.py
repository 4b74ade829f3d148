"""/api/v1/embed/api-keys: create and list embed keys."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import EmbedKey
from db.session import ALL_TENANTS
from tests.conversations.embed.factories import (
    KEYS_PATH,
    create_agent,
    create_embed_key,
    list_embed_keys,
)
from tests.world import Client

STATE = {
    "has_identity_secret": True,
    "messages_today": 0,
    "tokens_today": 0,
    "last_used_at": None,
}
SHOWN_ONCE = {"api_key", "identity_secret", "embed_code"}
COMMON_FIELDS = {
    "id",
    "agent_id",
    "name",
    "key_prefix",
    "allowed_domains",
    "require_session_token",
    "require_user_token",
    "allow_voice",
    "allow_feedback",
    "allow_attachments",
    "max_messages_per_day",
    "max_tokens_per_day",
    "created_at",
}


# Create


async def test_a_key_is_created_with_an_agent_and_a_name(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    assert set(key) == COMMON_FIELDS | SHOWN_ONCE
    assert key["id"].startswith("emk_")
    assert (key["agent_id"], key["name"]) == (agent_id, "Our shop")
    assert key["allowed_domains"] == []
    created_at = datetime.fromisoformat(key["created_at"])
    assert abs(datetime.now(UTC) - created_at) < timedelta(minutes=1)


async def test_a_key_starts_with_its_prefix(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    assert key["api_key"].startswith("emb_")
    assert key["key_prefix"].startswith("emb_")
    assert key["api_key"].startswith(key["key_prefix"])
    # The rest of the key has enough entropy.
    assert len(key["api_key"]) - len(key["key_prefix"]) >= 32


async def test_no_two_keys_are_the_same(developer: Client, agent_id: str) -> None:
    keys = [await create_embed_key(developer, agent_id) for _ in range(5)]
    for field in ("id", "api_key", "key_prefix"):
        assert len({key[field] for key in keys}) == 5


async def test_domains_are_returned_in_normal_form(developer: Client, agent_id: str) -> None:
    domains = ["Shop.Example.com", "*.EXAMPLE.org", "https://x.com:443/", "münchen.de", "*"]
    key = await create_embed_key(developer, agent_id, allowed_domains=domains)
    assert key["allowed_domains"] == [
        "shop.example.com",
        "*.example.org",
        "https://x.com",
        "xn--mnchen-3ya.de",
        "*",
    ]


async def test_a_repeated_domain_is_stored_once(developer: Client, agent_id: str) -> None:
    domains = ["b.com", "a.com", "B.com.", "a.com/"]
    key = await create_embed_key(developer, agent_id, allowed_domains=domains)
    assert key["allowed_domains"] == ["b.com", "a.com"]


async def test_a_hundred_domains_are_accepted(developer: Client, agent_id: str) -> None:
    domains = [f"shop{number}.example.com" for number in range(100)]
    key = await create_embed_key(developer, agent_id, allowed_domains=domains)
    assert key["allowed_domains"] == domains


async def test_more_than_a_hundred_domains_are_refused(developer: Client, agent_id: str) -> None:
    domains = [f"shop{number}.example.com" for number in range(101)]
    body = {"agent_id": agent_id, "name": "x", "allowed_domains": domains}
    answer = await developer.post(KEYS_PATH, body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"allowed_domains"}


_INVALID_ENTRIES: list[str] = [
    "",
    "*.com",
    "https://a.com/path",
    "a b.com",
    "a.com:0",
    "[::x]",
    "user@a.com",
]


async def test_a_wrong_domain_is_named_by_its_index(
    developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    for position in (0, 2):
        for entry in _INVALID_ENTRIES:
            with subtests.test(position=position, entry=entry):
                domains = ["ok.example.com"] * position + [entry, "more.example.com"]
                body = {"agent_id": agent_id, "name": "x", "allowed_domains": domains}
                answer = await developer.post(KEYS_PATH, body)
                assert answer.status_code == 422
                assert answer.json()["error"]["code"] == "validation_error"
                assert set(answer.json()["error"]["details"]) == {f"allowed_domains.{position}"}
    assert await list_embed_keys(developer) == []


_INVALID_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"agent_id": None}, "agent_id"),
    ({"agent_id": 7}, "agent_id"),
    ({"name": None}, "name"),
    ({"name": ""}, "name"),
    ({"name": "   "}, "name"),
    ({"name": "two\nlines"}, "name"),
    ({"name": "line\n"}, "name"),
    ({"name": "\u007f"}, "name"),
    ({"name": "x" * 101}, "name"),
    ({"name": 7}, "name"),
    ({"allowed_domains": None}, "allowed_domains"),
    ({"allowed_domains": "a.com"}, "allowed_domains"),
    ({"allowed_domains": {"a.com": True}}, "allowed_domains"),
    ({"allowed_domains": [7]}, "allowed_domains.0"),
    ({"allowed_domains": ["a.com", None]}, "allowed_domains.1"),
    ({"allowed_domains": ["a.com", "x" * 301]}, "allowed_domains.1"),
]


async def test_a_wrong_field_is_named(
    developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    for change, field in _INVALID_CHANGES:
        with subtests.test(change=change, field=field):
            answer = await developer.post(KEYS_PATH, {"agent_id": agent_id, "name": "x", **change})
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {field}


async def test_a_missing_field_is_named(
    developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    for field in ["agent_id", "name"]:
        with subtests.test(field=field):
            body = {"agent_id": agent_id, "name": "x"}
            del body[field]
            answer = await developer.post(KEYS_PATH, body)
            assert answer.status_code == 422
            assert answer.json()["error"]["details"] == {field: "is required"}


async def test_a_name_may_have_a_hundred_characters(developer: Client, agent_id: str) -> None:
    assert (await create_embed_key(developer, agent_id, "ü" * 100))["name"] == "ü" * 100


async def test_generated_fields_cannot_be_set(
    developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    for field in ["id", "api_key", "key_prefix", "created_at"]:
        with subtests.test(field=field):
            key = await create_embed_key(developer, agent_id, **{field: "emb_mine"})
            listed_keys = await list_embed_keys(developer)
            values = [value for listed in (key, *listed_keys) for value in listed.values()]
            assert "emb_mine" not in {*map(str, values)}


async def test_a_key_can_be_created_before_the_agent_is_published(
    developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    for status in ["draft", "archived"]:
        with subtests.test(status=status):
            await developer.put(f"/api/v1/agents/{agent_id}", {"status": status})
            assert (await create_embed_key(developer, agent_id))["agent_id"] == agent_id


async def test_a_repeated_request_creates_one_key(developer: Client, agent_id: str) -> None:
    body = {"agent_id": agent_id, "name": "Once"}
    headers = {"idempotency-key": new_id("idk")}
    first = await developer.post(KEYS_PATH, body, headers=headers)
    second = await developer.post(KEYS_PATH, body, headers=headers)
    assert second.json() == first.json()
    assert len(await list_embed_keys(developer)) == 1


# List


async def test_a_listed_key_has_every_field_but_the_key(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id, allowed_domains=["a.com"])
    [listed_key] = await list_embed_keys(developer)
    assert set(listed_key) == COMMON_FIELDS | STATE.keys()
    assert listed_key == {
        **{name: value for name, value in key.items() if name not in SHOWN_ONCE},
        **STATE,
    }


async def test_the_list_never_shows_a_key(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    answer = await developer.get(KEYS_PATH)
    assert key["api_key"] not in answer.text
    assert key["identity_secret"] not in answer.text
    assert "key_hash" not in answer.text


async def test_without_keys_the_list_is_empty(developer: Client) -> None:
    assert await list_embed_keys(developer) == []


async def test_the_newest_key_comes_first(developer: Client, agent_id: str) -> None:
    key_ids = [(await create_embed_key(developer, agent_id))["id"] for _ in range(3)]
    assert [item["id"] for item in await list_embed_keys(developer)] == list(reversed(key_ids))


async def test_keys_of_the_same_moment_have_a_fixed_order(
    developer: Client, agent_id: str, services: Services
) -> None:
    now = clock.now()
    rows = [
        EmbedKey(
            id=new_id("emk"),
            tenant_id=developer.tenant_id,
            agent_id=agent_id,
            name="x",
            key_prefix="emb_x",
            key_hash=new_id("hash"),
            created_at=now,
        )
        for _ in range(5)
    ]
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add_all(rows)
    key_ids = [item["id"] for item in await list_embed_keys(developer)]
    assert key_ids == sorted(key_ids, reverse=True)


async def test_the_list_can_be_filtered_by_agent(developer: Client, agent_id: str) -> None:
    other = await create_agent(developer, "Other")
    first, second = (
        await create_embed_key(developer, agent_id),
        await create_embed_key(developer, other),
    )
    assert [item["id"] for item in await list_embed_keys(developer, agent_id=agent_id)] == [
        first["id"]
    ]
    assert [item["id"] for item in await list_embed_keys(developer, agent_id=other)] == [
        second["id"]
    ]
    assert await list_embed_keys(developer, agent_id="agt_none") == []


async def test_an_agent_id_that_is_too_long_is_named(developer: Client) -> None:
    answer = await developer.get(KEYS_PATH, params={"agent_id": "x" * 65})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"agent_id"}
