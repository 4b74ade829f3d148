"""The requests of the engines, and their failures."""

import asyncio

import pytest

from app.domain.agents.search.engines import http
from app.domain.agents.search.engines.brave import Brave
from app.domain.agents.search.engines.duckduckgo import DuckDuckGo
from app.domain.agents.search.engines.protocol import SearchFailed
from app.domain.agents.search.engines.searxng import Searxng
from app.domain.agents.search.engines.tavily import Tavily
from app.net.egress import Egress
from tests.agents.search.engine_server import (
    ITEMS,
    EngineServer,
    brave_answer,
    duckduckgo_page,
    tavily_answer,
)
from tests.agents.search.engines import ENGINES, HITS, KEY, build_request, expect_failure
from tests.ports import free_port

# What is sent


async def test_duckduckgo_receives_a_form(loopback: Egress, engine: EngineServer) -> None:
    engine.body = duckduckgo_page(ITEMS)
    duckduckgo = DuckDuckGo(loopback, f"{engine.url}/html/")
    for safe_search, value in ((True, "1"), (False, "-2")):
        assert await duckduckgo.search(build_request("a&b=ü", safe_search=safe_search)) == HITS
        call = engine.calls.pop()
        assert (call.method, call.path, call.query) == ("POST", "/html/", {})
        assert call.form == {"q": "a&b=ü", "kl": "wt-wt", "kp": value}


async def test_searxng_receives_a_query(loopback: Egress, engine: EngineServer) -> None:
    searxng = Searxng(loopback, f"{engine.url}/base/")
    for safe_search, value in ((True, "2"), (False, "0")):
        assert await searxng.search(build_request("a&b=ü", safe_search=safe_search)) == HITS
        call = engine.calls.pop()
        assert (call.method, call.path) == ("GET", "/base/search")
        assert call.query == {"q": "a&b=ü", "format": "json", "safesearch": value}


async def test_brave_receives_the_key_in_a_header(loopback: Egress, engine: EngineServer) -> None:
    engine.body, brave = brave_answer(ITEMS), Brave(loopback, engine.url)
    for safe_search, value in ((True, "strict"), (False, "off")):
        request = build_request("a&b=ü", safe_search=safe_search, max_results=7)
        assert await brave.search(request) == HITS
        call = engine.calls.pop()
        assert (call.method, call.path) == ("GET", "/res/v1/web/search")
        assert (call.query["q"], call.query["count"]) == ("a&b=ü", "7")
        assert call.query["safesearch"] == value
        assert call.headers["x-subscription-token"] == KEY
        assert KEY not in str(call.query)


async def test_brave_receives_at_most_50_words(loopback: Egress, engine: EngineServer) -> None:
    engine.body = brave_answer([])
    await Brave(loopback, engine.url).search(build_request("w " * 60))
    assert engine.calls[-1].query["q"] == " ".join(["w"] * 50)


async def test_tavily_receives_the_key_in_a_header(loopback: Egress, engine: EngineServer) -> None:
    engine.body = tavily_answer(ITEMS, [0.9, 0.5, None])
    request = build_request("a&b=ü", max_results=7, safe_search=False)
    hits = await Tavily(loopback, engine.url).search(request)
    assert [hit.score for hit in hits] == [0.9, 0.5, None]
    (call,) = engine.calls
    assert (call.method, call.path, call.query) == ("POST", "/search", {})
    assert call.json == {"query": "a&b=ü", "max_results": 7, "search_depth": "basic"}
    assert call.headers["authorization"] == f"Bearer {KEY}"


async def test_tavily_receives_safe_search_where_it_is_on(
    loopback: Egress, engine: EngineServer
) -> None:
    """Tavily has it for enterprise keys only, so a search without it does not name it."""
    engine.body, tavily = tavily_answer(ITEMS), Tavily(loopback, engine.url)
    for safe_search in (True, False):
        await tavily.search(build_request(safe_search=safe_search))
        assert engine.calls.pop().json.get("safe_search") == (True if safe_search else None)


async def test_a_refused_safe_search_of_tavily_is_not_repeated_without_it(
    loopback: Egress, engine: EngineServer
) -> None:
    tavily = Tavily(loopback, engine.url)
    for status in (400, 403):
        engine.status = status
        error = await expect_failure(tavily)
        assert (error.reason, "safe_search" in str(error)) == ("refused", True)
        assert len(engine.calls) == 1
        engine.calls.clear()
        with pytest.raises(SearchFailed, match="status") as raised:
            await tavily.search(build_request(safe_search=False))
        assert "safe_search" not in str(raised.value)
        engine.calls.clear()


async def test_only_engines_with_keys_send_one(
    loopback: Egress, engine: EngineServer, subtests: pytest.Subtests
) -> None:
    for name, (create, body) in ENGINES.items():
        with subtests.test(name=name):
            engine.body, created = body, create(loopback, engine.url)
            await created.search(build_request())
            call = engine.calls.pop()
            sent = f"{call.headers} {call.query} {call.body!r}"
            assert (KEY in sent) == (created.key_provider is not None)


# Failures of every engine


async def test_a_status_other_than_200_fails_the_search(
    loopback: Egress, engine: EngineServer, subtests: pytest.Subtests
) -> None:
    statuses = [(202, "later"), (401, "refused"), (403, "refused"), (429, "later"), (503, "503")]
    for name, (create, body) in ENGINES.items():
        for status, text in statuses:
            with subtests.test(name=name, status=status):
                engine.body, engine.status = body, status
                error = await expect_failure(create(loopback, engine.url))
                assert (error.reason, text in str(error)) == ("refused", True)


async def test_no_redirect_is_followed(
    loopback: Egress, engine: EngineServer, subtests: pytest.Subtests
) -> None:
    engine.status, engine.headers = 302, {"Location": "/elsewhere"}
    for name, (create, _) in ENGINES.items():
        with subtests.test(name=name):
            assert (await expect_failure(create(loopback, engine.url))).reason == "refused"
            assert len(engine.calls) == 1
            engine.calls.clear()


async def test_a_private_address_is_not_asked(
    public_only: Egress, engine: EngineServer, subtests: pytest.Subtests
) -> None:
    for name, (create, body) in ENGINES.items():
        for address in (engine.url, engine.url.replace("127.0.0.1", "localhost")):
            with subtests.test(name=name, address=address):
                engine.body = body
                error = await expect_failure(create(public_only, address))
                assert error.reason == "blocked_address"
    assert engine.calls == []


async def test_an_engine_that_cannot_be_reached_fails_the_search(
    loopback: Egress, subtests: pytest.Subtests
) -> None:
    for name, (create, _) in ENGINES.items():
        with subtests.test(name=name):
            error = await expect_failure(create(loopback, f"http://127.0.0.1:{free_port()}"))
            assert error.reason == "unreachable"


async def test_an_engine_that_does_not_answer_in_time_fails_the_search(
    loopback: Egress, engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SECONDS", 0.1)
    engine.hold = asyncio.Event()
    errors = await asyncio.gather(
        *(expect_failure(create(loopback, engine.url)) for create, _ in ENGINES.values())
    )
    engine.hold.set()
    assert {error.reason for error in errors} == {"timeout"}


async def test_a_page_that_is_too_large_fails_the_search(
    loopback: Egress, engine: EngineServer
) -> None:
    engine.body = duckduckgo_page(ITEMS) + " " * 2 * 1024 * 1024
    error = await expect_failure(DuckDuckGo(loopback, engine.url))
    assert (error.reason, "too large" in str(error)) == ("bad_response", True)
