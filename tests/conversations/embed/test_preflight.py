"""CORS preflight requests of web sites."""

import pytest

from tests.conversations.embed.factories import KEYS_PATH, create_embed_key
from tests.conversations.embed.sites import (
    NO_CORS,
    ORIGIN,
    PREFLIGHT_HEADERS,
    Site,
    assert_preflight_allowed,
    cors_headers,
    error_of,
)
from tests.scripted_agents import Talker


async def test_a_preflight_of_an_allowed_origin_is_answered(
    shop: Site, subtests: pytest.Subtests
) -> None:
    for route in ["chat", "chat/stream", "embed"]:
        with subtests.test(route=route):
            caller = shop.talk.world.anonymous()
            headers = {"origin": ORIGIN, **PREFLIGHT_HEADERS}
            answer = await caller("OPTIONS", f"{shop.path}/{route}", headers=headers)
            assert_preflight_allowed(answer, ORIGIN)


async def test_a_preflight_of_another_origin_is_refused(
    shop: Site, subtests: pytest.Subtests
) -> None:
    for origin in [None, "null", "https://evil.com", "https://x.shop.example.com"]:
        for route in ["chat", "chat/stream", "embed"]:
            with subtests.test(origin=origin, route=route):
                caller = shop.talk.world.anonymous()
                headers = (
                    {**PREFLIGHT_HEADERS}
                    if origin is None
                    else {"origin": origin, **PREFLIGHT_HEADERS}
                )
                answer = await caller("OPTIONS", f"{shop.path}/{route}", headers=headers)
                assert error_of(answer) == (403, "origin_not_allowed")
                assert cors_headers(answer) == NO_CORS


async def test_a_preflight_counts_every_key_of_the_agent(shop: Site) -> None:
    await create_embed_key(shop.talk.client, shop.talk.agent_id, allowed_domains=["*.other.com"])
    caller = shop.talk.world.anonymous()
    for origin in (ORIGIN, "https://a.other.com"):
        headers = {"origin": origin, **PREFLIGHT_HEADERS}
        assert_preflight_allowed(
            await caller("OPTIONS", f"{shop.path}/chat", headers=headers), origin
        )


async def test_a_preflight_does_not_count_another_agents_keys(shop: Site) -> None:
    other = await shop.talk.agent()
    await create_embed_key(shop.talk.client, other.agent_id)
    caller = shop.talk.world.anonymous()
    headers = {"origin": "https://evil.com", **PREFLIGHT_HEADERS}
    answer = await caller("OPTIONS", f"{shop.path}/chat", headers=headers)
    assert error_of(answer) == (403, "origin_not_allowed")


async def test_a_preflight_for_an_agent_without_keys_is_refused(talk: Talker) -> None:
    caller = talk.world.anonymous()
    headers = {"origin": ORIGIN, **PREFLIGHT_HEADERS}
    for agent_id in (talk.agent_id, "agt_none"):
        path = f"/api/v1/public/agents/{agent_id}/chat"
        answer = await caller("OPTIONS", path, headers=headers)
        assert error_of(answer) == (403, "origin_not_allowed")


async def test_after_the_last_key_is_revoked_a_preflight_is_refused(shop: Site) -> None:
    await shop.talk.client.delete(KEYS_PATH, params={"id": shop.key["id"]})
    caller = shop.talk.world.anonymous()
    headers = {"origin": ORIGIN, **PREFLIGHT_HEADERS}
    answer = await caller("OPTIONS", f"{shop.path}/chat", headers=headers)
    assert error_of(answer) == (403, "origin_not_allowed")


async def test_a_refused_preflight_names_neither_domains_nor_agent(shop: Site) -> None:
    caller = shop.talk.world.anonymous()
    headers = {"origin": "https://evil.com", **PREFLIGHT_HEADERS}
    answer = await caller("OPTIONS", f"{shop.path}/chat", headers=headers)
    assert "shop.example.com" not in answer.text
    assert shop.talk.agent_id not in answer.text


async def test_a_preflight_of_the_openai_endpoints_allows_every_origin(
    shop: Site, subtests: pytest.Subtests
) -> None:
    for path in ["/v1/chat/completions", "/v1/models"]:
        for origin in [ORIGIN, "https://nobody.example"]:
            with subtests.test(path=path, origin=origin):
                headers = {"origin": origin, **PREFLIGHT_HEADERS}
                assert_preflight_allowed(
                    await shop.talk.world.anonymous()("OPTIONS", path, headers=headers), origin
                )


async def test_the_console_answers_no_preflight(site: Site, subtests: pytest.Subtests) -> None:
    for path in ["/api/v1/agents", "/api/v1/embed/api-keys", "/auth/login"]:
        with subtests.test(path=path):
            caller = site.talk.world.anonymous()
            answer = await caller("OPTIONS", path, headers={"origin": ORIGIN, **PREFLIGHT_HEADERS})
            assert cors_headers(answer) == NO_CORS
