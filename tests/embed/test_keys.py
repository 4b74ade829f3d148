"""/api/v1/embed/api-keys: made, listed, revoked, and what is kept of them."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from app.domain.agents import runtime as runtimes
from app.domain.embed import keys
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import EmbedKey
from db.session import ALL_TENANTS
from tests.talk import Talker
from tests.world import Client, World

PATH = "/api/v1/embed/api-keys"
LISTED = {"id", "agent_id", "name", "key_prefix", "allowed_domains", "created_at", "last_used_at"}
CREATED = (LISTED - {"last_used_at"}) | {"api_key"}


async def make_key(
    caller: Client, agent_id: str, name: str = "Our shop", **more: Any
) -> dict[str, Any]:
    answer = await caller.post(PATH, {"agent_id": agent_id, "name": name, **more})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _agent(caller: Client, name: str = "Agent") -> str:
    body = {"name": name, "primary_model": "x/y", "system_prompt": "Be.", "status": "published"}
    answer = await caller.post("/api/v1/agents", body)
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


async def _listed(caller: Client, **params: Any) -> list[dict[str, Any]]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def _use(world: World, agent_id: str, api_key: str) -> httpx.Response:
    """The cheapest thing that a key opens."""
    path = f"/api/v1/public/agents/{agent_id}/embed"
    return await world.anonymous().get(path, headers={"x-api-key": api_key})


@pytest.fixture
async def agent_id(developer: Client) -> str:
    return await _agent(developer)


# Create


async def test_a_key_is_created_with_an_agent_and_a_name(developer: Client, agent_id: str) -> None:
    made = await make_key(developer, agent_id)
    assert set(made) == CREATED
    assert made["id"].startswith("emk_")
    assert (made["agent_id"], made["name"]) == (agent_id, "Our shop")
    assert made["allowed_domains"] == []
    created_at = datetime.fromisoformat(made["created_at"])
    assert abs(datetime.now(UTC) - created_at) < timedelta(minutes=1)


async def test_a_key_can_be_told_by_its_beginning(developer: Client, agent_id: str) -> None:
    made = await make_key(developer, agent_id)
    assert made["api_key"].startswith("emb_")
    assert made["key_prefix"].startswith("emb_")
    assert made["api_key"].startswith(made["key_prefix"])
    # Enough of it stays secret.
    assert len(made["api_key"]) - len(made["key_prefix"]) >= 32


async def test_no_two_keys_are_the_same(developer: Client, agent_id: str) -> None:
    made = [await make_key(developer, agent_id) for _ in range(5)]
    for field in ("id", "api_key", "key_prefix"):
        assert len({key[field] for key in made}) == 5


async def test_domains_are_answered_in_the_form_that_is_compared(
    developer: Client, agent_id: str
) -> None:
    given = ["Shop.Example.com", "*.EXAMPLE.org", "https://x.com:443/", "münchen.de", "*"]
    made = await make_key(developer, agent_id, allowed_domains=given)
    assert made["allowed_domains"] == [
        "shop.example.com",
        "*.example.org",
        "https://x.com",
        "xn--mnchen-3ya.de",
        "*",
    ]


async def test_a_domain_given_twice_is_kept_once(developer: Client, agent_id: str) -> None:
    given = ["b.com", "a.com", "B.com.", "a.com/"]
    made = await make_key(developer, agent_id, allowed_domains=given)
    assert made["allowed_domains"] == ["b.com", "a.com"]


async def test_a_hundred_domains_are_taken(developer: Client, agent_id: str) -> None:
    given = [f"shop{number}.example.com" for number in range(100)]
    made = await make_key(developer, agent_id, allowed_domains=given)
    assert made["allowed_domains"] == given


async def test_more_than_a_hundred_domains_are_refused(developer: Client, agent_id: str) -> None:
    given = [f"shop{number}.example.com" for number in range(101)]
    body = {"agent_id": agent_id, "name": "x", "allowed_domains": given}
    answer = await developer.post(PATH, body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"allowed_domains"}


@pytest.mark.parametrize("position", [0, 2])
@pytest.mark.parametrize(
    "entry", ["", "*.com", "https://a.com/path", "a b.com", "a.com:0", "[::x]", "user@a.com"]
)
async def test_a_wrong_domain_is_named_by_its_place(
    developer: Client, agent_id: str, entry: str, position: int
) -> None:
    domains = ["ok.example.com"] * position + [entry, "more.example.com"]
    body = {"agent_id": agent_id, "name": "x", "allowed_domains": domains}
    answer = await developer.post(PATH, body)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {f"allowed_domains.{position}"}
    assert await _listed(developer) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
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
    ],
)
async def test_a_wrong_field_is_named(
    developer: Client, agent_id: str, change: dict[str, Any], field: str
) -> None:
    answer = await developer.post(PATH, {"agent_id": agent_id, "name": "x", **change})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}


@pytest.mark.parametrize("field", ["agent_id", "name"])
async def test_a_missing_field_is_named(developer: Client, agent_id: str, field: str) -> None:
    body = {"agent_id": agent_id, "name": "x"}
    del body[field]
    answer = await developer.post(PATH, body)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {field: "is required"}


async def test_a_name_may_have_a_hundred_characters(developer: Client, agent_id: str) -> None:
    assert (await make_key(developer, agent_id, "ü" * 100))["name"] == "ü" * 100


@pytest.mark.parametrize(
    "field", ["id", "api_key", "key_prefix", "key_hash", "tenant_id", "last_used_at"]
)
async def test_nobody_chooses_what_is_ours_to_make(
    developer: Client, agent_id: str, field: str
) -> None:
    made = await make_key(developer, agent_id, **{field: "emb_mine"})
    [listed] = await _listed(developer)
    assert "emb_mine" not in {*map(str, made.values()), *map(str, listed.values())}


@pytest.mark.parametrize("status", ["draft", "archived"])
async def test_a_key_can_be_made_before_the_agent_is_published(
    developer: Client, agent_id: str, status: str
) -> None:
    await developer.put(f"/api/v1/agents/{agent_id}", {"status": status})
    assert (await make_key(developer, agent_id))["agent_id"] == agent_id


async def test_a_repeated_request_makes_one_key(developer: Client, agent_id: str) -> None:
    body = {"agent_id": agent_id, "name": "Once"}
    once = {"idempotency-key": new_id("idk")}
    first = await developer.post(PATH, body, headers=once)
    second = await developer.post(PATH, body, headers=once)
    assert second.json() == first.json()
    assert len(await _listed(developer)) == 1


# What is kept


async def _everywhere(services: Services, words: str) -> list[str]:
    """Names of the tables that hold these words anywhere."""
    found = []
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        tables = await session.scalars(
            text("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        )
        for table in tables.all():
            question = text(f'SELECT count(*) FROM "{table}" t WHERE strpos(t::text, :words) > 0')
            if await session.scalar(question, {"words": words}):
                found.append(table)
    return found


async def test_only_a_hash_of_the_key_is_in_the_database(
    developer: Client, agent_id: str, services: Services
) -> None:
    made = await make_key(developer, agent_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(EmbedKey, made["id"])
    assert row.key_hash == hashlib.sha256(made["api_key"].encode()).hexdigest()
    assert row.key_prefix == made["key_prefix"]
    assert row.tenant_id == developer.tenant_id
    # Neither the key nor the part that is not shown is anywhere.
    assert await _everywhere(services, made["api_key"]) == []
    assert await _everywhere(services, made["api_key"].removeprefix(made["key_prefix"])) == []
    # The search does find what is there.
    assert "embed_keys" in await _everywhere(services, made["id"])


async def test_a_key_that_talked_is_nowhere_in_the_database(
    talk: Talker, services: Services
) -> None:
    made = await make_key(talk.client, talk.agent_id)
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    answer = await talk.world.anonymous().post(
        path, {"session_id": "s", "message": "Hi"}, params={"api_key": made["api_key"]}
    )
    assert answer.status_code == 200, answer.text
    assert await _everywhere(services, made["api_key"]) == []


async def test_the_hash_does_not_open_anything(
    world: World, developer: Client, agent_id: str, services: Services
) -> None:
    made = await make_key(developer, agent_id)
    stolen = hashlib.sha256(made["api_key"].encode()).hexdigest()
    for guess in (stolen, f"emb_{stolen}", made["key_prefix"], made["id"], made["api_key"][:-1]):
        assert (await _use(world, agent_id, guess)).status_code == 401
    assert (await _use(world, agent_id, made["api_key"])).status_code == 200


async def test_a_key_leads_to_its_agent_and_rules(
    developer: Client, agent_id: str, services: Services
) -> None:
    made = await make_key(developer, agent_id, allowed_domains=["a.com"])
    async with services.db.tx(None, autocommit=True) as tx:
        found = await runtimes.find_by_embed_key(
            tx, services.keyring, keys.hash_key(made["api_key"])
        )
        missing = await runtimes.find_by_embed_key(tx, services.keyring, keys.hash_key("emb_other"))
    assert missing is None
    assert found is not None
    assert (found.embed_key_id, found.allowed_domains) == (made["id"], ["a.com"])
    assert (found.runtime.agent_id, found.runtime.tenant_id) == (agent_id, developer.tenant_id)


# List


async def test_a_listed_key_has_everything_but_itself(developer: Client, agent_id: str) -> None:
    made = await make_key(developer, agent_id, allowed_domains=["a.com"])
    [listed] = await _listed(developer)
    assert set(listed) == LISTED
    assert listed == {
        **{name: value for name, value in made.items() if name != "api_key"},
        "last_used_at": None,
    }


async def test_the_list_never_shows_a_key(developer: Client, agent_id: str) -> None:
    made = await make_key(developer, agent_id)
    answer = await developer.get(PATH)
    assert made["api_key"] not in answer.text
    assert "key_hash" not in answer.text


async def test_without_keys_the_list_is_empty(developer: Client) -> None:
    assert await _listed(developer) == []


async def test_the_newest_key_comes_first(developer: Client, agent_id: str) -> None:
    made = [(await make_key(developer, agent_id))["id"] for _ in range(3)]
    assert [key["id"] for key in await _listed(developer)] == list(reversed(made))


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
    found = [key["id"] for key in await _listed(developer)]
    assert found == sorted(found, reverse=True)


async def test_the_list_can_be_of_one_agent(developer: Client, agent_id: str) -> None:
    other = await _agent(developer, "Other")
    first, second = await make_key(developer, agent_id), await make_key(developer, other)
    assert [key["id"] for key in await _listed(developer, agent_id=agent_id)] == [first["id"]]
    assert [key["id"] for key in await _listed(developer, agent_id=other)] == [second["id"]]
    assert await _listed(developer, agent_id="agt_none") == []


async def test_an_agent_id_that_is_too_long_is_named(developer: Client) -> None:
    answer = await developer.get(PATH, params={"agent_id": "x" * 65})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"agent_id"}


# Revoke


async def _revoke(caller: Client, key_id: str) -> httpx.Response:
    return await caller.delete(PATH, params={"id": key_id})


async def test_a_key_is_revoked_by_its_id_in_the_query(developer: Client, agent_id: str) -> None:
    made = await make_key(developer, agent_id)
    answer = await _revoke(developer, made["id"])
    assert (answer.status_code, answer.content) == (204, b"")
    assert await _listed(developer) == []


async def test_a_key_is_revoked_by_its_id_in_a_body(developer: Client, agent_id: str) -> None:
    made = await make_key(developer, agent_id)
    answer = await developer("DELETE", PATH, json={"id": made["id"]})
    assert (answer.status_code, answer.content) == (204, b"")
    assert await _listed(developer) == []


async def test_the_query_counts_when_both_are_given(developer: Client, agent_id: str) -> None:
    one, two = await make_key(developer, agent_id), await make_key(developer, agent_id)
    answer = await developer("DELETE", PATH, params={"id": one["id"]}, json={"id": two["id"]})
    assert answer.status_code == 204
    assert [key["id"] for key in await _listed(developer)] == [two["id"]]


async def test_revoking_needs_an_id(developer: Client, agent_id: str) -> None:
    await make_key(developer, agent_id)
    answer = await developer.delete(PATH)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {"id"}
    assert len(await _listed(developer)) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{}", "id"),
        (b'{"id": null}', "id"),
        (b'{"id": 7}', "id"),
        (b'{"id": ["a"]}', "id"),
        (b'{"key_id": "emk_x"}', "id"),
        (b"[]", "body"),
        (b'"emk_x"', "body"),
        (b"emk_x", "body"),
        (b'{"id": "\\u0000"}', "body"),
    ],
)
async def test_a_body_that_names_no_key_is_refused(
    developer: Client, agent_id: str, body: bytes, field: str
) -> None:
    await make_key(developer, agent_id)
    headers = {"content-type": "application/json"}
    answer = await developer("DELETE", PATH, content=body, headers=headers)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}
    assert len(await _listed(developer)) == 1


@pytest.mark.parametrize("key_id", ["emk_none", "", "'; DROP TABLE embed_keys; --"])
async def test_a_key_that_is_not_there_is_not_found(developer: Client, key_id: str) -> None:
    answer = await _revoke(developer, key_id)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "embed_key_not_found"


async def test_an_id_that_is_too_long_is_named(developer: Client) -> None:
    answer = await _revoke(developer, "x" * 65)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"id"}


async def test_a_key_is_revoked_once(developer: Client, agent_id: str) -> None:
    made = await make_key(developer, agent_id)
    assert (await _revoke(developer, made["id"])).status_code == 204
    assert (await _revoke(developer, made["id"])).status_code == 404


async def test_of_two_who_revoke_at_once_one_does(developer: Client, agent_id: str) -> None:
    made = await make_key(developer, agent_id)
    answers = await asyncio.gather(*[_revoke(developer, made["id"]) for _ in range(4)])
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404, 404]
    log = (await developer.get("/api/v1/event-log")).json()["data"]
    assert [entry["type"] for entry in log].count("system.embed_key.revoked") == 1


async def test_a_key_cannot_be_revoked_by_itself(
    developer: Client, agent_id: str, world: World
) -> None:
    """Neither the key nor its beginning is an id."""
    made = await make_key(developer, agent_id)
    for name in ("api_key", "key_prefix"):
        assert (await _revoke(developer, made[name])).status_code == 404
    assert (await _use(world, agent_id, made["api_key"])).status_code == 200


async def test_a_revoked_key_stops_at_once(developer: Client, agent_id: str, world: World) -> None:
    made = await make_key(developer, agent_id)
    assert (await _use(world, agent_id, made["api_key"])).status_code == 200
    await _revoke(developer, made["id"])
    answer = await _use(world, agent_id, made["api_key"])
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"


async def test_other_keys_of_the_agent_go_on(
    developer: Client, agent_id: str, world: World
) -> None:
    one, two = await make_key(developer, agent_id), await make_key(developer, agent_id)
    await _revoke(developer, one["id"])
    assert (await _use(world, agent_id, two["api_key"])).status_code == 200


async def test_the_keys_of_a_deleted_agent_go_with_it(
    developer: Client, agent_id: str, world: World
) -> None:
    made = await make_key(developer, agent_id)
    assert (await developer.delete(f"/api/v1/agents/{agent_id}")).status_code == 204
    assert await _listed(developer) == []
    assert (await _use(world, agent_id, made["api_key"])).status_code == 401


# When it was used


async def _talk(talk: Talker, api_key: str, session: str = "s") -> None:
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    body = {"session_id": session, "message": "Hi"}
    answer = await talk.world.anonymous().post(path, body, headers={"x-api-key": api_key})
    assert answer.status_code == 200, answer.text


async def _last_used(talk: Talker, key_id: str) -> datetime | None:
    found = {key["id"]: key["last_used_at"] for key in await _listed(talk.client)}
    return datetime.fromisoformat(found[key_id]) if found[key_id] else None


async def test_a_key_tells_when_it_was_last_used(talk: Talker) -> None:
    used = await make_key(talk.client, talk.agent_id)
    idle = await make_key(talk.client, talk.agent_id)
    before = datetime.now(UTC)
    await _talk(talk, used["api_key"])
    at = await _last_used(talk, used["id"])
    assert at is not None
    assert before - timedelta(seconds=5) <= at <= datetime.now(UTC) + timedelta(seconds=5)
    assert await _last_used(talk, idle["id"]) is None


async def test_a_later_use_is_told_too(talk: Talker, services: Services) -> None:
    made = await make_key(talk.client, talk.agent_id)
    await _talk(talk, made["api_key"])
    long_ago = clock.now() - timedelta(hours=2)
    async with services.db.tx(ALL_TENANTS) as tx:
        (await (await tx.session()).get_one(EmbedKey, made["id"])).last_used_at = long_ago
    await _talk(talk, made["api_key"])
    at = await _last_used(talk, made["id"])
    assert at is not None
    assert at > long_ago + timedelta(hours=1)


async def test_a_refused_use_is_no_use(talk: Talker) -> None:
    made = await make_key(talk.client, talk.agent_id, allowed_domains=["a.com"])
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    body = {"session_id": "s", "message": "Hi"}
    answer = await talk.world.anonymous().post(path, body, headers={"x-api-key": made["api_key"]})
    assert answer.status_code == 403
    assert await _last_used(talk, made["id"]) is None


# Events


async def _events(caller: Client) -> list[tuple[str, dict[str, Any]]]:
    log = (await caller.get("/api/v1/event-log")).json()["data"]
    return [
        (entry["type"], entry["data"])
        for entry in reversed(log)
        if entry["type"].startswith("system.embed_key")
    ]


async def test_making_and_revoking_are_told_in_the_event_log(
    developer: Client, agent_id: str
) -> None:
    made = await make_key(developer, agent_id, "Shop", allowed_domains=["A.com"])
    await _revoke(developer, made["id"])
    same = {"key_id": made["id"], "agent_id": agent_id, "name": "Shop"}
    assert await _events(developer) == [
        ("system.embed_key.created", {**same, "allowed_domains": ["a.com"]}),
        ("system.embed_key.revoked", same),
    ]


async def test_the_key_is_not_in_the_event_log(developer: Client, agent_id: str) -> None:
    made = await make_key(developer, agent_id)
    await _revoke(developer, made["id"])
    answer = await developer.get("/api/v1/event-log", params={"per_page": 100})
    assert made["id"] in answer.text
    assert made["api_key"] not in answer.text
    assert made["api_key"][4:] not in answer.text


async def test_a_refused_creation_is_not_told(developer: Client, agent_id: str) -> None:
    body = {"agent_id": agent_id, "name": "x", "allowed_domains": ["*.com"]}
    await developer.post(PATH, body)
    assert await _events(developer) == []


# Whose


async def test_an_agent_of_another_tenant_is_not_found(world: World, developer: Client) -> None:
    foreign = await _agent(await world.user())
    answer = await developer.post(PATH, {"agent_id": foreign, "name": "x"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "agent_not_found"


@pytest.mark.parametrize("agent", ["agt_none", "", "x" * 500])
async def test_an_agent_that_is_not_there_is_not_found(developer: Client, agent: str) -> None:
    answer = await developer.post(PATH, {"agent_id": agent, "name": "x"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "agent_not_found"
    assert len(answer.json()["error"]["message"]) < 200


async def test_keys_of_another_tenant_are_not_listed(
    world: World, developer: Client, agent_id: str
) -> None:
    await make_key(developer, agent_id)
    stranger = await world.user("tenant_admin")
    assert await _listed(stranger) == []
    assert await _listed(stranger, agent_id=agent_id) == []


async def test_a_key_of_another_tenant_is_not_revoked(
    world: World, developer: Client, agent_id: str
) -> None:
    made = await make_key(developer, agent_id)
    stranger = await world.user("tenant_admin")
    assert (await _revoke(stranger, made["id"])).status_code == 404
    by_body = await stranger("DELETE", PATH, json={"id": made["id"]})
    assert by_body.status_code == 404
    assert (await _use(world, agent_id, made["api_key"])).status_code == 200


async def test_a_super_admins_key_belongs_to_the_agents_tenant(
    super_admin: Client, developer: Client, agent_id: str
) -> None:
    made = await make_key(super_admin, agent_id)
    assert [key["id"] for key in await _listed(developer)] == [made["id"]]
    assert [name for name, _ in await _events(developer)] == ["system.embed_key.created"]
    assert (await _revoke(super_admin, made["id"])).status_code == 204
    assert await _listed(developer) == []


async def test_a_super_admin_narrowed_elsewhere_does_not_reach_it(
    super_admin: Client, developer: Client, agent_id: str
) -> None:
    made = await make_key(developer, agent_id)
    narrowed = {"x-tenant-id": super_admin.tenant_id}
    answer = await super_admin.delete(PATH, params={"id": made["id"]}, headers=narrowed)
    assert answer.status_code == 404
    assert (await super_admin.get(PATH, headers=narrowed)).json() == {"data": []}


# Who may


@pytest.mark.parametrize("role", ["super_admin", "tenant_admin", "agent_developer"])
async def test_those_who_change_agents_make_and_revoke_keys(world: World, role: str) -> None:
    caller = await world.user(role)
    agent_id = await _agent(caller)
    made = await make_key(caller, agent_id)
    assert (await _revoke(caller, made["id"])).status_code == 204


@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_those_who_do_not_change_agents_make_no_keys(
    world: World, developer: Client, agent_id: str, role: str
) -> None:
    caller = await world.user(role, developer.tenant_id)
    answer = await caller.post(PATH, {"agent_id": agent_id, "name": "x"})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden"
    assert answer.json()["error"]["details"] == {"required": "agents:write", "your_role": role}
    assert await _listed(developer) == []


@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_those_who_do_not_change_agents_revoke_no_keys(
    world: World, developer: Client, agent_id: str, role: str
) -> None:
    made = await make_key(developer, agent_id)
    caller = await world.user(role, developer.tenant_id)
    answer = await _revoke(caller, made["id"])
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": "agents:write", "your_role": role}
    assert len(await _listed(developer)) == 1


@pytest.mark.parametrize("role", ["tenant_admin", "agent_developer", "agent_user", "viewer"])
async def test_everybody_who_sees_agents_sees_their_keys(
    world: World, developer: Client, agent_id: str, role: str
) -> None:
    made = await make_key(developer, agent_id)
    caller = await world.user(role, developer.tenant_id)
    assert [key["id"] for key in await _listed(caller)] == [made["id"]]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_keys_are_for_those_who_signed_in(anonymous: Client, method: str) -> None:
    answer = await anonymous(method, PATH)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", PATH),
        ("POST", PATH),
        ("DELETE", PATH),
        ("GET", "/api/v1/agents"),
        ("GET", "/api/v1/agents/{agent}"),
        ("POST", "/api/v1/agents/{agent}/chat"),
        ("POST", "/api/v1/agents/{agent}/chat/stream"),
        ("POST", "/api/v1/agents/{agent}/chat/async"),
        ("GET", "/api/v1/agents/{agent}/logs"),
        ("GET", "/api/v1/agents/{agent}/conversations"),
        ("DELETE", "/api/v1/agents/{agent}"),
        ("GET", "/auth/me"),
        ("GET", "/users"),
        ("GET", "/api/v1/event-log"),
        ("GET", "/api/v1/models"),
    ],
)
@pytest.mark.parametrize("way", ["bearer", "header", "query"])
async def test_an_embed_key_opens_nothing_of_the_console(
    world: World, developer: Client, agent_id: str, method: str, path: str, way: str
) -> None:
    key = (await make_key(developer, agent_id))["api_key"]
    sent: dict[str, Any] = {
        "bearer": {"headers": {"authorization": f"Bearer {key}"}},
        "header": {"headers": {"x-api-key": key}},
        "query": {"params": {"api_key": key}},
    }[way]
    answer = await world.anonymous()(method, path.format(agent=agent_id), **sent)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"
    assert key not in answer.text


async def test_a_sign_in_beside_a_key_still_counts_in_the_console(
    developer: Client, agent_id: str
) -> None:
    key = (await make_key(developer, agent_id))["api_key"]
    answer = await developer.get("/auth/me", headers={"x-api-key": key})
    assert answer.status_code == 200
