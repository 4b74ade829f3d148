"""Searches that do not reach their engine."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from app.domain.agents.definition.runtime import find_runtime
from app.domain.agents.search.engines import http, registry
from app.domain.agents.search.engines.duckduckgo import DuckDuckGo
from app.domain.agents.search.engines.registry import SearchEngines
from app.domain.agents.search.web_search import WebSearch
from app.domain.agents.tools.offers import CallOutcome
from app.net.egress import Egress
from app.services import Services
from tests.agents.search.configs import set_config
from tests.agents.search.engine_server import EngineServer
from tests.ports import free_port
from tests.scripted_agents import Talker


@pytest.fixture
def engines(services: Services) -> Iterator[dict[str, Any]]:
    """The engines of the application, which a test may replace."""
    by_name = services.get(SearchEngines)._engines
    before = dict(by_name)
    yield by_name
    by_name.clear()
    by_name.update(before)


async def _search(services: Services, talk: Talker) -> CallOutcome:
    tenant_id = talk.client.tenant_id
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        runtime = await find_runtime(tx, services.keyring, talk.agent_id)
    search = WebSearch(services, runtime)
    (offer,) = search.offers
    assert offer.repeatable
    return await search.run(offer, "call_x", {"query": "x"}, None)


async def test_a_private_address_fails_the_call(
    talk: Talker,
    services: Services,
    engine: EngineServer,
    public_only: Egress,
    engines: dict[str, Any],
) -> None:
    engines["duckduckgo"] = DuckDuckGo(public_only, engine.url)
    await set_config(talk.client, talk.agent_id, enabled=True)
    outcome = await _search(services, talk)
    assert (outcome.status, outcome.output["code"]) == ("failed", "blocked_address")
    assert (outcome.sources, engine.calls) == ((), [])


async def test_an_engine_that_is_not_there_fails_the_call(
    talk: Talker, services: Services, loopback: Egress, engines: dict[str, Any]
) -> None:
    engines["duckduckgo"] = DuckDuckGo(loopback, f"http://127.0.0.1:{free_port()}")
    await set_config(talk.client, talk.agent_id, enabled=True)
    outcome = await _search(services, talk)
    assert (outcome.status, outcome.output["code"]) == ("failed", "unreachable")


async def test_searxng_whose_address_was_removed_fails_the_call(
    talk: Talker, services: Services, engines: dict[str, Any]
) -> None:
    await set_config(talk.client, talk.agent_id, enabled=True, search_engine="searxng")
    del engines["searxng"]
    outcome = await _search(services, talk)
    assert (outcome.status, outcome.output["code"]) == ("failed", "not_configured")


async def test_a_silent_engine_times_out_the_call(
    talk: Talker, services: Services, engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_config(talk.client, talk.agent_id, enabled=True, search_engine="searxng")
    engine.hold = asyncio.Event()
    for module, name in ((http, "SECONDS"), (registry, "_TOTAL_SECONDS")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, 0.1)
            outcome = await _search(services, talk)
        assert (outcome.status, outcome.output["code"]) == ("timeout", "timeout")
    engine.hold.set()
