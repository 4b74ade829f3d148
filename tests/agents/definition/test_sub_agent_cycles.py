"""Delegation never has a cycle."""

import asyncio
import itertools

import pytest

from app.services import Services
from tests.agents.definition.database import count_rows
from tests.agents.definition.factories import PATH
from tests.agents.definition.sub_agent_requests import (
    attach_sub_agent,
    create_agent_id,
    create_direct_sub_agent,
    read_error,
    request_attachment,
)
from tests.world import Client, World


async def _create_chain(caller: Client, count: int) -> list[str]:
    """Creates agents of which each delegates to the next; returns their ids."""
    ids = [await create_agent_id(caller, f"Agent {number}") for number in range(count)]
    for parent, child in itertools.pairwise(ids):
        await attach_sub_agent(caller, parent, child)
    return ids


async def test_a_cycle_is_refused(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for length in (1, 2, 3, 7):
        developer = await world.user()
        with subtests.test(length=length):
            ids = await _create_chain(developer, length)
            answer = await request_attachment(developer, ids[-1], ids[0])
            assert read_error(answer) == (409, "sub_agent_cycle")
            assert (
                await count_rows(services, "sub_agents", "tenant_id", developer.tenant_id)
                == length - 1
            )


async def test_a_cycle_through_a_disabled_link_is_refused(developer: Client) -> None:
    """A disabled link could be enabled again later."""
    first, second = await _create_chain(developer, 2)
    path = f"{PATH}/{first}/sub-agents/{second}"
    await developer("PATCH", path, json={"is_enabled": False})
    assert read_error(await request_attachment(developer, second, first)) == (
        409,
        "sub_agent_cycle",
    )


async def test_a_cycle_through_a_direct_sub_agent_is_refused(
    developer: Client, parent: str
) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    assert read_error(await request_attachment(developer, sub_agent["id"], parent)) == (
        409,
        "sub_agent_cycle",
    )


async def test_a_diamond_is_not_a_cycle(developer: Client) -> None:
    top, left, right, bottom = [await create_agent_id(developer, name) for name in "abcd"]
    for parent, child in ((top, left), (top, right), (left, bottom), (right, bottom)):
        await attach_sub_agent(developer, parent, child)
    await attach_sub_agent(developer, top, bottom)


async def test_a_reverse_link_is_allowed_once_the_link_is_removed(developer: Client) -> None:
    first, second = await _create_chain(developer, 2)
    await developer.delete(f"{PATH}/{first}/sub-agents/{second}")
    await attach_sub_agent(developer, second, first)


async def test_one_of_concurrent_attachments_that_close_a_cycle_fails(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for length in (2, 3, 4):
        developer = await world.user()
        with subtests.test(length=length):
            for _ in range(5):
                ids = [
                    await create_agent_id(developer, f"Agent {number}") for number in range(length)
                ]
                before = await count_rows(services, "sub_agents", "tenant_id", developer.tenant_id)
                pairs = [(ids[number], ids[(number + 1) % length]) for number in range(length)]
                answers = await asyncio.gather(
                    *(request_attachment(developer, *pair) for pair in pairs)
                )
                codes = sorted(answer.status_code for answer in answers)
                assert codes == [201] * (length - 1) + [409]
                (refused,) = (answer for answer in answers if answer.status_code == 409)
                assert refused.json()["error"]["code"] == "sub_agent_cycle"
                assert (
                    await count_rows(services, "sub_agents", "tenant_id", developer.tenant_id)
                    == before + length - 1
                )


async def test_an_agent_is_not_its_own_sub_agent(developer: Client, parent: str) -> None:
    answer = await developer.post(f"{PATH}/{parent}/sub-agents/attach", {"agent_id": parent})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "sub_agent_cycle"
    assert "itself" in answer.json()["error"]["message"]
