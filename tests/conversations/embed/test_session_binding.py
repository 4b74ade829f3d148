"""A visitor token is worth nothing elsewhere: with another agent, key, origin or session, on other
routes, and after its key has changed.
"""

import pytest

from app.http.route_options import list_handlers, options_of
from tests.conversations.embed.factories import KEYS_PATH, create_embed_key, revoke_key
from tests.conversations.embed.sites import (
    NO_CORS,
    ORIGIN,
    PREFLIGHT_HEADERS,
    Site,
    assert_preflight_allowed,
    cors_headers,
    error_of,
)
from tests.conversations.embed.visits import (
    KNOWN_SESSION,
    SESSION_ROUTES,
    TOKEN_ROUTES,
    call,
    change_key,
    create_shop,
    open_session,
    visit,
)
from tests.scripted_agents import Talker
from tests.world import World

EVIL = "https://evil.example.net"


# What a token is bound to


async def test_a_token_is_refused_from_another_origin(
    site: Site, subtests: pytest.Subtests
) -> None:
    visitor = await visit(site)
    for route in TOKEN_ROUTES:
        for origin in (EVIL, "null", None, f"{ORIGIN}.", ORIGIN.upper(), f"{ORIGIN}:443"):
            with subtests.test(route=route, origin=origin):
                answer = await visitor.call(route, origin=origin)
                assert error_of(answer) == (403, "session_mismatch")
                assert answer.headers.get("access-control-allow-origin") == origin
    assert site.talk.asked == []


async def test_a_token_without_an_origin_is_refused_from_a_page(site: Site) -> None:
    visitor = await visit(site, None)
    for route in TOKEN_ROUTES:
        assert error_of(await visitor.call(route, origin=ORIGIN)) == (403, "session_mismatch")


async def test_a_token_is_refused_for_another_session(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    site = await create_shop(talk, allow_voice=True, max_messages_per_day=1)
    first, second = await visit(site), await visit(site)
    for route in SESSION_ROUTES:
        for session_id in (second.session_id, KNOWN_SESSION):
            with subtests.test(route=route, session_id=session_id):
                answer = await first.call(route, session_id=session_id)
                assert error_of(answer) == (403, "session_mismatch")
    # None of them was counted as a message.
    assert (await first.call()).status_code == 200


async def test_a_token_is_refused_for_another_agent(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    site = await create_shop(talk, allow_voice=True, allow_attachments=True)
    visitor = await visit(site)
    other = Site(await site.talk.agent(), site.key, site.session)
    for route in TOKEN_ROUTES:
        with subtests.test(route=route):
            answer = await call(other, route, visitor.token, session_id=visitor.session_id)
            assert error_of(answer) == (404, "agent_not_found")


async def test_keys_of_one_agent_do_not_share_sessions(talk: Talker) -> None:
    first, second = await create_shop(talk), await create_shop(talk)
    visitor = await visit(first)
    await visitor.say("A secret")
    same_id = await visit(second, session_id=visitor.session_id)
    assert same_id.session_id == visitor.session_id
    assert (await same_id.load())["messages"] == []


# Where it is taken


async def test_a_token_is_taken_by_no_other_route(world: World) -> None:
    taken = {
        f"{method} {path.partition('{agent_id}/')[2]}"
        for method, path, handler in list_handlers(world.app)
        if options_of(handler).visitor_token
    }
    assert taken == set(TOKEN_ROUTES)


async def test_the_other_routes_of_keys_refuse_a_token(site: Site) -> None:
    visitor = await visit(site)
    headers = {"authorization": f"Bearer {visitor.token}", "origin": ORIGIN}
    caller = site.talk.world.anonymous()
    body = {"model": site.talk.agent_id, "messages": [{"role": "user", "content": "Hi"}]}
    for answer in (
        await caller.get(f"{site.path}/embed", headers=headers),
        await caller.post("/v1/chat/completions", body, headers=headers),
        await caller.get("/v1/models", headers=headers),
    ):
        assert answer.status_code == 401, answer.text
    assert site.talk.asked == []


async def test_a_token_is_no_access_token(site: Site) -> None:
    token = (await visit(site)).token
    for credential in (token, token.removeprefix("vst_")):
        headers = {"authorization": f"Bearer {credential}"}
        caller = site.talk.world.anonymous()
        for path in ("/auth/me", "/api/v1/agents", KEYS_PATH, f"{site.talk.path}/conversations"):
            answer = await caller.get(path, headers=headers)
            assert error_of(answer) == (401, "unauthorized")


async def test_a_token_is_sent_in_the_authorization_header_only(site: Site) -> None:
    """Addresses end up in logs of proxies."""
    visitor = await visit(site)
    caller = site.talk.world.anonymous()
    for options in (
        {"params": {"api_key": visitor.token}, "headers": {"origin": ORIGIN}},
        {"headers": {"x-api-key": visitor.token, "origin": ORIGIN}},
    ):
        answer = await caller.get(f"{site.path}/session", **options)
        assert error_of(answer) == (401, "unauthorized")


# After a change


async def test_a_token_ends_with_its_key(shop: Site, subtests: pytest.Subtests) -> None:
    # Another key of the agent, so that only the revoked one is refused.
    await create_embed_key(shop.talk.client, shop.talk.agent_id, "Other")
    visitor = await visit(shop)
    await revoke_key(shop.talk.client, shop.key["id"])
    for route in TOKEN_ROUTES:
        with subtests.test(route=route):
            answer = await visitor.call(route)
            assert error_of(answer) == (401, "unauthorized")
            assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_a_token_ends_with_the_publication_of_its_agent(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    site = await create_shop(talk, allow_voice=True, allow_attachments=True)
    visitor = await visit(site)
    for status in ("draft", "archived"):
        await talk.client.put(talk.path, {"status": status})
        for route in TOKEN_ROUTES:
            with subtests.test(status=status, route=route):
                assert error_of(await visitor.call(route)) == (404, "agent_not_found")
    await talk.client.put(talk.path, {"status": "published"})
    assert (await visitor.call()).status_code == 200


async def test_a_token_ends_when_its_origin_leaves_the_allow_list(
    shop: Site, subtests: pytest.Subtests
) -> None:
    visitor = await visit(shop)
    await change_key(shop, allowed_domains=["other.example.com"])
    for route in TOKEN_ROUTES:
        with subtests.test(route=route):
            answer = await visitor.call(route)
            assert error_of(answer) == (403, "origin_not_allowed")
            assert answer.headers["access-control-allow-origin"] == ORIGIN


# What pages may read


async def test_every_site_may_ask_whether_it_can_open_a_session(shop: Site) -> None:
    caller = shop.talk.world.anonymous()
    for origin in (ORIGIN, EVIL):
        headers = {"origin": origin, **PREFLIGHT_HEADERS}
        answer = await caller("OPTIONS", f"{shop.path}/session", headers=headers)
        assert_preflight_allowed(answer, origin)


async def test_a_page_can_read_why_no_session_was_opened(shop: Site) -> None:
    answer = await open_session(shop, EVIL)
    assert error_of(answer) == (403, "origin_not_allowed")
    assert answer.headers["access-control-allow-origin"] == EVIL
    await revoke_key(shop.talk.client, shop.key["id"])
    answer = await open_session(shop)
    assert error_of(answer) == (401, "unauthorized")
    assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_other_routes_stay_closed_to_other_sites(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    shop = await create_shop(talk, "shop.example.com", allow_voice=True)
    caller = talk.world.anonymous()
    for route in ("POST chat", "POST chat/stream", "POST chat/audio", "POST chat/tts"):
        with subtests.test(route=route):
            headers = {"origin": EVIL, **PREFLIGHT_HEADERS}
            preflight = await caller("OPTIONS", f"{shop.path}/{route.split()[1]}", headers=headers)
            answer = await call(shop, route, shop.api_key, origin=EVIL)
            for refused in (preflight, answer):
                assert error_of(refused) == (403, "origin_not_allowed")
                assert cors_headers(refused) == NO_CORS
            headers["origin"] = ORIGIN
            preflight = await caller("OPTIONS", f"{shop.path}/{route.split()[1]}", headers=headers)
            assert_preflight_allowed(preflight, ORIGIN)
