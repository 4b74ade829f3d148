"""Keys that only open sessions, and the pages of this instance."""

from urllib.parse import urlsplit

import pytest

from tests.conversations.embed.sites import NO_CORS, ORIGIN, Site, cors_headers, error_of
from tests.conversations.embed.visits import (
    TOKEN_ROUTES,
    call,
    change_key,
    create_shop,
    open_session,
    visit,
)
from tests.scripted_agents import Talker

# The address by which the tests call the application.
CALLED = "http://parley.test"
SAME_ORIGIN = {"sec-fetch-site": "same-origin"}


def _public_origin(site: Site) -> str:
    url = urlsplit(site.talk.world.services.settings.public_url)
    return f"{url.scheme}://{url.netloc}"


# Only with a token


async def test_a_key_may_only_open_sessions(talk: Talker, subtests: pytest.Subtests) -> None:
    site = await create_shop(talk, require_session_token=True, allow_voice=True)
    visitor = await visit(site)
    for route in TOKEN_ROUTES:
        if route != "POST session":
            with subtests.test(route=route):
                answer = await call(site, route, site.api_key)
                assert error_of(answer) == (401, "session_token_required")
    body = {"model": talk.agent_id, "messages": [{"role": "user", "content": "Hi"}]}
    answer = await talk.world.anonymous().post("/v1/chat/completions", body, headers=site.headers())
    assert error_of(answer) == (401, "session_token_required")
    assert talk.asked == []
    assert (await visitor.call("POST chat")).status_code == 200
    assert (await visitor.call("POST chat/stream")).status_code == 200


async def test_the_rule_holds_from_the_next_request_on(site: Site) -> None:
    await site.say()
    await change_key(site, require_session_token=True)
    assert error_of(await site.ask()) == (401, "session_token_required")
    await change_key(site, require_session_token=False)
    await site.say()


async def test_a_session_that_began_with_the_key_goes_on_with_a_token(site: Site) -> None:
    visitor = await visit(site)
    await site.say(session_id=visitor.session_id)
    await change_key(site, require_session_token=True)
    await visitor.say("Hi")
    assert len((await visitor.load())["messages"]) == 4


# Pages of this instance


async def test_a_page_of_this_instance_may_open_a_session(shop: Site) -> None:
    origin = _public_origin(shop)
    visitor = await visit(shop, origin)
    assert (await visitor.call("POST chat")).status_code == 200
    assert (await visitor.renew()).status_code == 200
    answer = await call(shop, "POST chat", shop.api_key, origin=origin)
    assert error_of(answer) == (403, "origin_not_allowed")
    assert cors_headers(answer) == NO_CORS


async def test_another_name_that_points_to_this_instance_is_not_its_own(shop: Site) -> None:
    """An attacker's page can be at a name that later resolves to this instance."""
    assert error_of(await open_session(shop, CALLED)) == (403, "origin_not_allowed")


async def test_an_address_of_this_instance_is_its_own(shop: Site) -> None:
    caller = shop.talk.world.anonymous()
    for host in ("localhost:8000", "127.0.0.1:8000", "[::1]:8000", "192.0.2.7"):
        headers = {**shop.headers(f"http://{host}"), "host": host}
        answer = await caller.post(f"{shop.path}/session", {}, headers=headers)
        assert answer.status_code == 200, answer.text


async def test_a_page_of_this_instance_reads_without_an_origin(shop: Site) -> None:
    """A browser sends none with such a GET. Behind a proxy, the public address is another one."""
    visitor = await visit(shop, _public_origin(shop))
    answer = await visitor.call("GET session", origin=None, **SAME_ORIGIN)
    assert answer.status_code == 200, answer.text
    for headers in ({}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "none"}):
        answer = await visitor.call("GET session", origin=None, **headers)
        assert error_of(answer) == (403, "session_mismatch")


async def test_a_token_of_a_site_is_not_one_of_this_instance(site: Site) -> None:
    visitor = await visit(site)
    answer = await visitor.call("GET session", origin=None, **SAME_ORIGIN)
    assert error_of(answer) == (403, "session_mismatch")
    for origin in (CALLED, _public_origin(site)):
        answer = await visitor.call("GET session", origin=origin)
        assert error_of(answer) == (403, "session_mismatch")


async def test_a_host_that_is_no_address_breaks_nothing(
    shop: Site, subtests: pytest.Subtests
) -> None:
    caller = shop.talk.world.anonymous()
    for host in ("", "[", "a b", "[::1", "evil.example.net/x", "a:b:c", "a" * 5000):
        with subtests.test(host=host[:20]):
            headers = {**shop.headers("https://evil.example.net"), "host": host}
            answer = await caller.post(f"{shop.path}/session", {}, headers=headers)
            assert answer.status_code in {403, 422}, answer.text
            headers = {**shop.headers(), **SAME_ORIGIN, "host": host}
            answer = await caller.post(f"{shop.path}/session", {}, headers=headers)
            assert answer.status_code in {403, 422}, answer.text


async def test_several_origins_are_none(shop: Site) -> None:
    caller = shop.talk.world.anonymous()
    headers = [
        ("authorization", f"Bearer {shop.api_key}"),
        ("origin", ORIGIN),
        ("origin", "https://evil.example.net"),
    ]
    answer = await caller.http.post(f"{shop.path}/session", json={}, headers=headers)
    assert error_of(answer) == (403, "origin_not_allowed")


async def test_an_origin_in_another_spelling_is_not_allowed(
    shop: Site, subtests: pytest.Subtests
) -> None:
    for origin in (
        f"{ORIGIN}.evil.example.net",
        f"{ORIGIN}@evil.example.net",
        f"{ORIGIN}/",
        "null",
        "",
        "file://",
        "https://evil.example.net#shop.example.com",
    ):
        with subtests.test(origin=origin):
            answer = await open_session(shop, origin)
            assert error_of(answer) == (403, "origin_not_allowed")
