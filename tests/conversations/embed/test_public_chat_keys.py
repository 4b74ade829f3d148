"""Authentication of a web site's chat with an embed key."""

import pytest

from tests.conversations.embed.factories import KEYS_PATH
from tests.conversations.embed.sites import (
    NO_CORS,
    ORIGIN,
    Site,
    cors_headers,
    create_site,
    error_of,
    key_options,
)
from tests.model_server import ModelServer
from tests.scripted_agents import talker
from tests.world import World


async def test_the_key_can_be_sent_in_three_ways(site: Site, subtests: pytest.Subtests) -> None:
    for transport in ["bearer", "lowercase bearer", "spaced bearer", "header", "query"]:
        with subtests.test(transport=transport):
            caller = site.talk.world.anonymous()
            answer = await caller.post(
                f"{site.path}/chat", site.body(), **key_options(transport, site.api_key)
            )
            assert answer.status_code == 200, answer.text


async def test_a_session_does_not_depend_on_how_the_key_is_sent(site: Site) -> None:
    caller = site.talk.world.anonymous()
    conversation_ids = set()
    for transport in ("bearer", "header", "query"):
        answer = await caller.post(
            f"{site.path}/chat", site.body(), **key_options(transport, site.api_key)
        )
        conversation_ids.add(answer.json()["conversation_id"])
    assert len(conversation_ids) == 1


async def test_the_bearer_token_precedes_the_header_and_the_query(
    site: Site, subtests: pytest.Subtests
) -> None:
    for bearer, header, query, status in [
        ("good", "bad", "bad", 200),
        ("bad", "good", "good", 401),
        (None, "good", "bad", 200),
        (None, "bad", "good", 401),
        ("good", None, "bad", 200),
        (None, "", "good", 200),
        (None, "", "", 401),
    ]:
        with subtests.test(bearer=bearer, header=header, query=query, status=status):
            keys_by_name = {"good": site.api_key, "bad": "emb_" + "x" * 43, "": ""}
            headers = {}
            if bearer is not None:
                headers["authorization"] = f"Bearer {keys_by_name[bearer]}"
            if header is not None:
                headers["x-api-key"] = keys_by_name[header]
            params = {"api_key": keys_by_name[query]} if query is not None else {}
            caller = site.talk.world.anonymous()
            answer = await caller.post(
                f"{site.path}/chat", site.body(), headers=headers, params=params
            )
            assert answer.status_code == status


async def test_an_access_token_beside_the_key_is_ignored(
    site: Site, subtests: pytest.Subtests
) -> None:
    for transport in ["header", "query"]:
        with subtests.test(transport=transport):
            answer = await site.talk.client.post(
                f"{site.path}/chat", site.body(), **key_options(transport, site.api_key)
            )
            assert answer.status_code == 200
            conversation = answer.json()["conversation_id"]
            stored = await site.talk.client.get(f"/api/v1/conversations/{conversation}")
            assert (stored.json()["source"], stored.json()["user_id"]) == ("embed", None)


async def test_without_a_key_the_error_names_the_ways_to_send_one(
    site: Site, subtests: pytest.Subtests
) -> None:
    for route in ["chat", "chat/stream"]:
        with subtests.test(route=route):
            answer = await site.talk.world.anonymous().post(f"{site.path}/{route}", site.body())
            assert error_of(answer) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
            for word in ("Bearer", "X-API-Key", "api_key"):
                assert word in answer.json()["error"]["message"]


_WRONG_KEYS: list[str] = [
    "emb_",
    "emb_wrong",
    "emb_" + "A" * 43,
    "wrong",
    "Bearer",
    "%",
    "emb_%ff",
    "' OR 1=1 --",
    "x" * 5000,
]


async def test_a_wrong_key_is_refused(site: Site, subtests: pytest.Subtests) -> None:
    for guess in _WRONG_KEYS:
        for transport in ("header", "query"):
            with subtests.test(guess=guess, transport=transport):
                caller = site.talk.world.anonymous()
                answer = await caller.post(
                    f"{site.path}/chat", site.body(), **key_options(transport, guess)
                )
                assert error_of(answer) == (401, "unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"
                assert cors_headers(answer) == NO_CORS


async def test_a_key_of_broken_bytes_is_refused(site: Site, subtests: pytest.Subtests) -> None:
    for raw in ["%ff", "%ed%a0%80", "%f0%28%8c%28", "emb_%c3%bc", "%e2%82"]:
        with subtests.test(raw=raw):
            caller = site.talk.world.anonymous()
            answer = await caller.post(f"{site.path}/chat?api_key={raw}", site.body())
            assert error_of(answer) == (401, "unauthorized")


async def test_a_header_of_broken_bytes_is_refused(site: Site) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller.post(
        f"{site.path}/chat", site.body(), headers=[(b"x-api-key", b"emb_\xff\xfe")]
    )
    assert error_of(answer) == (401, "unauthorized")


async def test_a_changed_key_is_refused(site: Site) -> None:
    key = site.api_key
    caller = site.talk.world.anonymous()
    for guess in (key.upper(), key[:-1], key + "x", key.removeprefix("emb_"), site.key["id"]):
        answer = await caller.post(f"{site.path}/chat", site.body(), **key_options("header", guess))
        assert answer.status_code == 401


async def test_an_access_token_is_not_an_embed_key(site: Site, subtests: pytest.Subtests) -> None:
    """Not even the token of the agent's owner."""
    for transport in ["bearer", "header", "query"]:
        with subtests.test(transport=transport):
            caller = site.talk.world.anonymous()
            for token in (site.talk.client.token, site.talk.client.refresh_token):
                options = key_options(transport, token or "")
                answer = await caller.post(f"{site.path}/chat", site.body(), **options)
                assert error_of(answer) == (401, "unauthorized")


async def test_basic_authentication_is_not_accepted(site: Site) -> None:
    caller = site.talk.world.anonymous()
    headers = {"authorization": f"Basic {site.api_key}"}
    answer = await caller.post(f"{site.path}/chat", site.body(), headers=headers)
    assert error_of(answer) == (401, "unauthorized")


async def test_a_key_in_the_body_is_not_accepted(site: Site) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/chat", site.body(api_key=site.api_key))
    assert error_of(answer) == (401, "unauthorized")


async def test_a_key_is_for_its_own_agent(site: Site) -> None:
    other = await site.talk.agent()
    caller = site.talk.world.anonymous()
    for route in ("chat", "chat/stream"):
        path = f"/api/v1/public/agents/{other.agent_id}/{route}"
        answer = await caller.post(path, site.body(), headers=site.headers())
        assert error_of(answer) == (404, "agent_not_found")
    assert other.asked == []


async def test_a_key_does_not_reach_into_another_tenant(
    site: Site, world: World, models: ModelServer
) -> None:
    stranger = await talker(world, models)
    path = f"/api/v1/public/agents/{stranger.agent_id}/chat"
    answer = await world.anonymous().post(path, site.body(), headers=site.headers())
    assert error_of(answer) == (404, "agent_not_found")
    missing = await world.anonymous().post(
        "/api/v1/public/agents/agt_none/chat", site.body(), headers=site.headers()
    )
    assert error_of(missing) == (404, "agent_not_found")


async def test_an_unpublished_agent_is_not_found(site: Site, subtests: pytest.Subtests) -> None:
    for route in ["chat", "chat/stream"]:
        for status in ["draft", "archived"]:
            with subtests.test(route=route, status=status):
                await site.talk.client.put(site.talk.path, {"status": status})
                caller = site.talk.world.anonymous()
                answer = await caller.post(
                    f"{site.path}/{route}", site.body(), headers=site.headers()
                )
                assert error_of(answer) == (404, "agent_not_found")
                assert site.talk.asked == []


async def test_an_agent_that_is_published_again_is_found(site: Site) -> None:
    await site.talk.client.put(site.talk.path, {"status": "draft"})
    assert (await site.ask()).status_code == 404
    await site.talk.client.put(site.talk.path, {"status": "published"})
    assert (await site.ask()).status_code == 200


async def test_a_revoked_key_ends_its_sessions(site: Site) -> None:
    await site.say()
    await site.talk.client.delete(KEYS_PATH, params={"id": site.key["id"]})
    assert error_of(await site.ask()) == (401, "unauthorized")


async def test_visitors_do_not_learn_that_a_model_has_no_key(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for route in ["chat", "chat/stream"]:
        with subtests.test(route=route):
            talk = await talker(world, models, primary_model="nowhere/at-all")
            site = await create_site(talk, "shop.example.com")
            caller = world.anonymous()
            answer = await caller.post(
                f"{site.path}/{route}", site.body(), headers=site.headers(ORIGIN)
            )
            assert error_of(answer) == (503, "unavailable")
            assert int(answer.headers["retry-after"]) > 0
            assert answer.headers["access-control-allow-origin"] == ORIGIN
            assert "nowhere" not in answer.text
            assert "at-all" not in answer.text


async def test_a_chat_costs_a_visitor_ten_units(site: Site) -> None:
    caller = site.talk.world.anonymous()
    remaining = []
    for _ in range(2):
        answer = await caller.post(f"{site.path}/chat", site.body(), headers=site.headers())
        remaining.append(int(answer.headers["x-ratelimit-remaining"]))
    assert remaining[0] - remaining[1] == 10
