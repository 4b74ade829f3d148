"""Rate limits of an agent's visitors: the share of an address, and the cost of refused requests."""

import pytest

from app.services import Services
from tests.assertions import refused, wait_until
from tests.conversations.embed.sites import ORIGIN, Site, create_site
from tests.model_server import ModelServer
from tests.scripted_agents import talker
from tests.world import Client, World


@pytest.fixture
async def free_site(world: World, models: ModelServer) -> Site:
    admin = await world.user("tenant_admin", await world.tenant("free"))
    return await create_site(await talker(world, models, client=admin))


async def _read_units(services: Services, site: Site, visitor: Client | None = None) -> int:
    """Returns the units that the tenant, or one address, has used of the minute."""
    key = f"parley:limit:embed:{site.talk.client.tenant_id}"
    units = await services.redis.hget(f"{key}:{visitor.address}" if visitor else key, "minute")
    return int(units or 0)


async def test_one_address_uses_its_share_and_others_are_served(
    free_site: Site, services: Services
) -> None:
    visitor, path = free_site.talk.world.anonymous(), f"{free_site.path}/chat"
    statuses = []
    for _ in range(12):
        answer = await visitor.post(path, free_site.body(), headers=free_site.headers(ORIGIN))
        statuses.append(answer.status_code)
    assert statuses == [200] * 3 + [429] * 9
    error = refused(answer, 429, "rate_limited")
    wait = int(answer.headers["retry-after"])
    assert error["details"] == {"limit": 30, "window": 60, "retry_after": wait}
    assert "your address" in error["message"]
    assert answer.headers["x-ratelimit-limit"] == "30"
    assert await _read_units(services, free_site) == 30
    assert (await free_site.ask()).status_code == 200


async def test_a_refused_request_costs_one_unit(free_site: Site, services: Services) -> None:
    visitor, headers = free_site.talk.world.anonymous(), free_site.headers(ORIGIN)
    path, elsewhere = f"{free_site.path}/chat", "/api/v1/public/agents/agt_none/chat"
    requests = [(path, {}), (path, {"message": 7}), (elsewhere, free_site.body())]
    for number, (target, body) in enumerate(requests, start=1):
        assert (await visitor.post(target, body, headers=headers)).status_code in {404, 422}

        async def is_refunded(cost: int = number) -> bool:
            used = [await _read_units(services, free_site, who) for who in (None, visitor)]
            return used == [cost, cost]

        await wait_until(is_refunded)
