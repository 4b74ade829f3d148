"""Sub-agents never cross tenants."""

import pytest

from app.services import Services
from tests.agents.definition.database import count_rows
from tests.agents.definition.factories import PATH
from tests.agents.definition.sub_agent_requests import (
    attach_sub_agent,
    create_agent_id,
    create_direct_sub_agent,
    list_sub_agents,
    read_error,
    request_attachment,
)
from tests.world import Client, World


async def test_another_tenants_agent_is_not_attached(
    developer: Client, world: World, parent: str
) -> None:
    other = await create_agent_id(await world.user(), "Theirs")
    assert read_error(await request_attachment(developer, parent, other)) == (
        404,
        "agent_not_found",
    )


async def test_nothing_is_attached_to_another_tenants_agent(
    developer: Client, world: World, child: str
) -> None:
    other = await create_agent_id(await world.user(), "Theirs")
    assert read_error(await request_attachment(developer, other, child)) == (404, "agent_not_found")


async def test_not_even_super_admin_attaches_across_tenants(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[str | None] = [None, "parent", "child"]
    for header in cases:
        super_admin = await world.user("super_admin")
        developer = await world.user()
        with subtests.test(header=header):
            other = await world.user()
            parent, child = (
                await create_agent_id(developer, "Parent"),
                await create_agent_id(other, "Child"),
            )
            tenants = {"parent": developer.tenant_id, "child": other.tenant_id}
            headers = {"x-tenant-id": tenants[header]} if header else {}
            path = f"{PATH}/{parent}/sub-agents/attach"
            answer = await super_admin.post(path, {"agent_id": child}, headers=headers)
            assert read_error(answer) == (404, "agent_not_found")
            assert await count_rows(services, "sub_agents", "tenant_id", developer.tenant_id) == 0
            assert await count_rows(services, "sub_agents", "tenant_id", other.tenant_id) == 0


async def test_super_admin_attaches_within_a_tenant(
    super_admin: Client, developer: Client, parent: str, child: str
) -> None:
    await attach_sub_agent(super_admin, parent, child)
    assert [item["id"] for item in await list_sub_agents(developer, parent)] == [child]


async def test_a_direct_sub_agent_created_by_super_admin_is_in_the_parents_tenant(
    super_admin: Client, developer: Client, parent: str
) -> None:
    sub_agent = await create_direct_sub_agent(super_admin, parent)
    assert (await developer.get(f"{PATH}/{sub_agent['id']}")).status_code == 200
    assert (await developer.get(f"{PATH}/{sub_agent['id']}/versions")).json()["pagination"][
        "total"
    ] == 1


async def test_another_tenants_sub_agents_are_not_found(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("GET", ""),
        ("PATCH", "/{}"),
        ("DELETE", "/{}"),
        ("PUT", "/direct/{}"),
    ]
    for method, tail in cases:
        developer = await world.user()
        with subtests.test(method=method, tail=tail):
            owner = await world.user()
            parent = await create_agent_id(owner)
            sub_agent = await create_direct_sub_agent(owner, parent)
            content = {"json": {"is_enabled": False}} if method in {"PATCH", "PUT"} else {}
            path = f"{PATH}/{parent}/sub-agents{tail.format(sub_agent['id'])}"
            assert read_error(await developer(method, path, **content)) == (404, "agent_not_found")
            assert [item["is_enabled"] for item in await list_sub_agents(owner, parent)] == [True]
