"""The engines of a process."""

import asyncio

import pytest

from app.domain.agents.search.engines.registry import SearchEngines
from app.domain.agents.search.schemas import SearchEngine
from app.net.egress import BlockedAddress, Egress
from app.services import Services
from tests.agents.search.engine_server import EngineServer
from tests.agents.search.engines import HITS, build_request
from tests.assertions import until


async def test_every_engine_of_the_interface_exists(services: Services) -> None:
    engines = SearchEngines(services.egress, "http://search.internal:8080")
    names = SearchEngine.__origin__.__args__  # type: ignore[attr-defined]
    assert {name for name in names if engines.find(name) is not None} == set(names)
    await engines.close()


async def test_searxng_needs_an_address(services: Services) -> None:
    assert SearchEngines(services.egress, "").find("searxng") is None


async def test_searxng_may_be_at_a_private_address_and_only_there(
    services: Services, subtests: pytest.Subtests
) -> None:
    for address, other in [
        ("http://10.0.0.7:8080", "http://10.0.0.8:8080"),
        ("http://[fd00::7]", "http://[fd00::8]"),
        ("http://127.0.0.1:8080/searxng", "http://127.0.0.2"),
    ]:
        with subtests.test(address=address, other=other):
            engines = SearchEngines(services.egress, address)
            assert engines._searxng_egress is not None
            guard = engines._searxng_egress.guard
            guard.check_url(f"{address}/search")
            with pytest.raises(BlockedAddress):
                guard.check_url(other)
            await engines.close()


async def test_searxng_may_have_a_name_that_leads_to_a_private_address(
    public_only: Egress, engine: EngineServer
) -> None:
    engines = SearchEngines(public_only, engine.url.replace("127.0.0.1", "localhost"))
    searxng = engines.find("searxng")
    assert searxng is not None
    assert await engines.search("ten_x", searxng, build_request()) == HITS
    await engines.close()


async def test_searches_of_one_tenant_wait_for_each_other(
    services: Services, engine: EngineServer
) -> None:
    engines, engine.hold = services.get(SearchEngines), asyncio.Event()
    searxng = engines.find("searxng")
    assert searxng is not None
    mine = [
        asyncio.create_task(engines.search("ten_mine", searxng, build_request(str(number))))
        for number in range(12)
    ]
    other = asyncio.create_task(engines.search("ten_other", searxng, build_request("other")))
    await until(lambda: "other" in {call.query["q"] for call in engine.calls})
    assert engine.most_open <= 6
    engine.hold.set()
    assert await asyncio.gather(*mine, other) == [HITS] * 13
    assert len(engines._limits) == 0
