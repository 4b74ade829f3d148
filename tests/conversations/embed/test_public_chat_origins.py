"""Origins of web sites, and the CORS headers of their answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import msgspec
import pytest

from app.main import create_app
from tests.conversations.embed.sites import (
    NO_CORS,
    ORIGIN,
    Site,
    cors_headers,
    create_site,
    error_of,
    key_options,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.stores import Stores
from tests.world import Client, World


async def _request_all_routes(site: Site, origin: str | None) -> list[httpx.Response]:
    """Sends a request to every route that accepts an embed key."""
    caller = site.talk.world.anonymous()
    headers = site.headers(origin)
    completion = {"model": site.talk.agent_id, "messages": [{"role": "user", "content": "Hi"}]}
    return [
        await caller.post(f"{site.path}/chat", site.body(), headers=headers),
        await caller.post(f"{site.path}/chat/stream", site.body(), headers=headers),
        await caller.get(f"{site.path}/embed", headers=headers),
        await caller.post("/v1/chat/completions", completion, headers=headers),
        await caller.get("/v1/models", headers=headers),
    ]


async def test_a_foreign_origin_is_refused_by_every_route(
    shop: Site, subtests: pytest.Subtests
) -> None:
    for origin in [
        None,
        "null",
        "https://evil.com",
        "https://evilshop.example.com",
        "https://shop.example.com.evil.com",
        "https://a.shop.example.com",
        "https://example.com",
        "https://user@shop.example.com",
        "https://shop.example.com/",
        "https://SHOP.example.com",
        "shop.example.com",
        "*",
        "",
    ]:
        with subtests.test(origin=origin):
            for answer in await _request_all_routes(shop, origin):
                assert error_of(answer) == (403, "origin_not_allowed")
                assert cors_headers(answer) == NO_CORS
                assert shop.api_key not in answer.text
            assert shop.talk.asked == []


async def test_a_refused_origin_creates_no_conversation(shop: Site) -> None:
    await shop.ask("Hi", origin="https://evil.com")
    conversations = await shop.talk.client.get(f"{shop.talk.path}/conversations")
    assert conversations.json()["data"] == []


async def test_an_allowed_origin_is_accepted_by_every_route(shop: Site) -> None:
    for answer in await _request_all_routes(shop, ORIGIN):
        assert answer.status_code == 200, answer.text
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert "origin" in answer.headers["vary"].lower()
        # These routes accept no cookies.
        assert "access-control-allow-credentials" not in answer.headers


async def test_a_site_can_read_retry_after_and_the_request_id(shop: Site) -> None:
    answer = await shop.ask(origin=ORIGIN)
    exposed = answer.headers["access-control-expose-headers"].lower()
    assert {"retry-after", "x-request-id"} <= {name.strip() for name in exposed.split(",")}


async def test_without_domains_every_origin_is_allowed(site: Site) -> None:
    for origin in ("https://any.where", "http://localhost:3000", "null"):
        for answer in await _request_all_routes(site, origin):
            assert answer.status_code == 200, answer.text
            assert answer.headers["access-control-allow-origin"] == origin


async def test_without_an_origin_there_are_no_cors_headers(site: Site) -> None:
    for answer in await _request_all_routes(site, None):
        assert answer.status_code == 200, answer.text
        assert cors_headers(answer) == NO_CORS


async def test_a_key_with_a_star_allows_every_origin(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    for origin in ["https://any.where", "null", None]:
        with subtests.test(origin=origin):
            site = await create_site(talk, "*")
            for answer in await _request_all_routes(site, origin):
                assert answer.status_code == 200, answer.text
                assert answer.headers.get("access-control-allow-origin") == origin


async def test_a_key_is_limited_to_its_entries(talk: Talker, subtests: pytest.Subtests) -> None:
    for domains, origin, status in [
        (["*.example.com"], "https://a.example.com", 200),
        (["*.example.com"], "https://example.com", 403),
        (["https://example.com:8443"], "https://example.com:8443", 200),
        (["https://example.com:8443"], "https://example.com", 403),
        (["https://example.com"], "http://example.com", 403),
        (["a.com", "b.com"], "https://b.com", 200),
        (["münchen.de"], "https://xn--mnchen-3ya.de", 200),
    ]:
        with subtests.test(domains=domains, origin=origin, status=status):
            site = await create_site(talk, *domains)
            answer = await site.ask(origin=origin)
            assert answer.status_code == status
            assert answer.headers.get("access-control-allow-origin") == (
                origin if status == 200 else None
            )


@pytest.mark.parametrize(
    "origins",
    [
        ["https://evil.com", ORIGIN],
        pytest.param([ORIGIN, "https://evil.com"]),
    ],
)
async def test_two_origin_headers_are_refused(shop: Site, origins: list[str]) -> None:
    headers = [*shop.headers().items(), *(("origin", origin) for origin in origins)]
    caller = shop.talk.world.anonymous()
    answer = await caller.post(f"{shop.path}/chat", shop.body(), headers=headers)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "origin_not_allowed"
    assert cors_headers(answer) == NO_CORS


async def test_the_refusal_does_not_repeat_a_long_origin(shop: Site) -> None:
    answer = await shop.ask(origin="https://" + "x" * 5000)
    assert error_of(answer) == (403, "origin_not_allowed")
    assert len(answer.json()["error"]["message"]) < 400


async def test_an_allowed_site_can_read_that_the_agent_is_not_found(shop: Site) -> None:
    await shop.talk.client.put(shop.talk.path, {"status": "draft"})
    for answer in (await _request_all_routes(shop, ORIGIN))[:4]:
        assert error_of(answer) == (404, "agent_not_found")
        assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_an_allowed_site_can_read_that_the_model_failed(shop: Site) -> None:
    shop.talk.script(Reply(status=400))
    answer = await shop.ask(origin=ORIGIN)
    assert error_of(answer) == (502, "provider_error")
    assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_an_allowed_site_can_read_a_validation_error(
    shop: Site, subtests: pytest.Subtests
) -> None:
    for message in ["", "x" * 32_001]:
        with subtests.test(message=message):
            answer = await shop.ask(message, origin=ORIGIN)
            assert answer.status_code == 422
            assert answer.headers.get("access-control-allow-origin") == ORIGIN


async def test_a_wrong_key_is_refused_before_the_body_is_validated(site: Site) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/chat", {}, **key_options("header", "emb_wrong"))
    assert error_of(answer) == (401, "unauthorized")


@asynccontextmanager
async def _limit_addresses(stores: Stores, units: int) -> AsyncIterator[Client]:
    """Yields a caller of an instance that allows so many units per minute and address."""
    settings = msgspec.structs.replace(stores.settings, anonymous_per_minute=units)
    app = create_app(settings)
    yield Client(app)
    await app.state.services.close()


@pytest.fixture
async def rate_limited_caller(stores: Stores, world: World) -> AsyncIterator[Client]:
    """A caller of an instance that allows one request per minute and address."""
    async with _limit_addresses(stores, 1) as caller:
        yield caller


async def test_a_chat_costs_its_address_one_unit(stores: Stores, site: Site) -> None:
    """A customer's server sends the requests of all its visitors from one address; the tenant of
    the key pays the ten units of a chat.
    """
    async with _limit_addresses(stores, 30) as caller:
        for number in range(20):
            body = {**site.body(), "session_id": f"visitor-{number}"}
            answer = await caller.post(f"{site.path}/chat", body, headers=site.headers())
            assert answer.status_code == 200, answer.text


async def test_too_many_requests_of_a_visitor_are_refused(
    rate_limited_caller: Client, site: Site
) -> None:
    path = f"{site.path}/chat"
    first = await rate_limited_caller.post(path, site.body(), headers=site.headers())
    second = await rate_limited_caller.post(path, site.body(), headers=site.headers())
    assert first.status_code == 200
    assert error_of(second) == (429, "rate_limited")
    assert int(second.headers["retry-after"]) > 0
    assert len(site.talk.asked) == 1


async def test_an_allowed_site_can_read_that_it_is_rate_limited(
    rate_limited_caller: Client, shop: Site
) -> None:
    path, headers = f"{shop.path}/chat", shop.headers(ORIGIN)
    await rate_limited_caller.post(path, shop.body(), headers=headers)
    answer = await rate_limited_caller.post(path, shop.body(), headers=headers)
    assert answer.status_code == 429
    assert answer.headers.get("access-control-allow-origin") == ORIGIN


async def test_console_answers_have_no_cors_headers(shop: Site) -> None:
    headers = {"origin": ORIGIN}
    answer = await shop.talk.client.get(shop.talk.path, headers=headers)
    assert answer.status_code == 200
    assert cors_headers(answer) == NO_CORS


async def test_an_allowed_origin_does_not_affect_the_next_answer(shop: Site) -> None:
    """The same connection sends another origin."""
    caller = shop.talk.world.anonymous()
    path, body = f"{shop.path}/chat", shop.body()
    allowed = await caller.post(path, body, headers=shop.headers(ORIGIN))
    refused = await caller.post(path, body, headers=shop.headers("https://evil.com"))
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert cors_headers(refused) == NO_CORS
