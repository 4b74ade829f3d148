"""The last administrator of a tenant and of the instance cannot be removed."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from app import bootstrap
from app.main import create_app
from app.services import Services
from db.session import ALL_TENANTS
from tests.identity.accounts.api_calls import (
    ACCESS_REMOVALS,
    change_role,
    deactivate,
    get_own_status,
    refresh_own_tokens,
)
from tests.identity.accounts.records import read_role_and_status, set_user
from tests.stores import Stores
from tests.world import Client, World

# A tenant's last administrator


async def test_the_last_admin_of_a_tenant_cannot_be_removed(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        await world.user("agent_user", admin.tenant_id)
        with subtests.test(removal=removal.__name__):
            answer = await removal(admin, admin.user_id)
            assert answer.status_code == 409
            assert answer.json()["error"]["code"] == "last_admin"
            assert await read_role_and_status(services, admin) == ("tenant_admin", "active")


async def test_a_refused_removal_ends_no_session(world: World, subtests: pytest.Subtests) -> None:
    for removal in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        with subtests.test(removal=removal.__name__):
            await removal(admin, admin.user_id)
            assert (await get_own_status(admin), await refresh_own_tokens(admin)) == (200, 200)


async def test_an_inactive_admin_does_not_count_as_another_admin(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        with subtests.test(removal=removal.__name__):
            other = await world.user("tenant_admin", admin.tenant_id)
            await set_user(services, other, status="inactive")
            assert (await removal(admin, admin.user_id)).status_code == 409


async def test_an_admin_of_another_tenant_does_not_count_as_another_admin(
    world: World, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        with subtests.test(removal=removal.__name__):
            await world.user("tenant_admin")
            assert (await removal(admin, admin.user_id)).status_code == 409


async def test_an_admin_can_be_removed_while_another_remains(
    world: World, subtests: pytest.Subtests
) -> None:
    for role, removal in itertools.product(("tenant_admin", "super_admin"), ACCESS_REMOVALS):
        admin = await world.user("tenant_admin")
        with subtests.test(role=role, removal=removal.__name__):
            await world.user(role, admin.tenant_id)
            assert (await removal(admin, admin.user_id)).status_code == 200
            assert await get_own_status(admin) == 401


async def test_super_admin_can_remove_the_last_admin_of_a_tenant(
    world: World, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        super_admin = await world.user("super_admin")
        admin = await world.user("tenant_admin")
        with subtests.test(removal=removal.__name__):
            assert (await removal(super_admin, admin.user_id)).status_code == 200


async def _create_two_admins(world: World) -> tuple[Client, Client]:
    """Creates the only two administrators of a tenant."""
    first = await world.user("tenant_admin")
    return first, await world.user("tenant_admin", first.tenant_id)


async def test_of_two_admins_who_remove_each_other_at_once_one_remains(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        with subtests.test(removal=removal.__name__):
            for _ in range(3):
                first, second = await _create_two_admins(world)
                answers = await asyncio.gather(
                    removal(first, second.user_id), removal(second, first.user_id)
                )
                assert [answer.status_code for answer in answers].count(200) == 1
                roles_and_statuses = [
                    await read_role_and_status(services, user) for user in (first, second)
                ]
                assert roles_and_statuses.count(("tenant_admin", "active")) == 1


async def test_of_two_admins_who_remove_themselves_at_once_one_remains(
    world: World, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        with subtests.test(removal=removal.__name__):
            for _ in range(3):
                first, second = await _create_two_admins(world)
                answers = await asyncio.gather(
                    removal(first, first.user_id), removal(second, second.user_id)
                )
                assert sorted(answer.status_code for answer in answers) == [200, 409]


# The instance's last super_admin


@pytest.fixture(scope="module")
async def other_instance(stores: Stores) -> AsyncIterator[World]:
    """An instance with a database of its own, in which no other test creates a super_admin."""
    app = create_app(await stores.create_database())
    services: Services = app.state.services
    await bootstrap.prepare(services.db, services.keyring, "enterprise")
    yield World(app)
    await services.close()


async def _create_last_super_admin(other_instance: World) -> Client:
    """Creates the only active super_admin of the instance; another one is inactive."""
    inactive_admin = await other_instance.user("super_admin")
    async with other_instance.services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE users SET status = 'inactive' WHERE role = 'super_admin'"
        )
    return await other_instance.user("super_admin", inactive_admin.tenant_id)


@pytest.fixture
async def last_super_admin(other_instance: World) -> Client:
    return await _create_last_super_admin(other_instance)


async def test_the_last_super_admin_cannot_be_removed(
    other_instance: World, last_super_admin: Client, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        with subtests.test(removal=removal.__name__):
            answer = await removal(last_super_admin, last_super_admin.user_id)
            assert answer.status_code == 409
            assert answer.json()["error"]["code"] == "last_admin"
            assert await read_role_and_status(other_instance.services, last_super_admin) == (
                "super_admin",
                "active",
            )


async def test_the_last_super_admin_cannot_become_a_tenant_admin(
    last_super_admin: Client,
) -> None:
    answer = await change_role(last_super_admin, last_super_admin.user_id, "tenant_admin")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "last_admin"


async def test_a_tenant_admin_does_not_count_as_another_super_admin(
    other_instance: World, last_super_admin: Client, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        with subtests.test(removal=removal.__name__):
            await other_instance.user("tenant_admin", last_super_admin.tenant_id)
            assert (await removal(last_super_admin, last_super_admin.user_id)).status_code == 409


async def test_the_last_super_admin_stays_signed_in(
    last_super_admin: Client, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        with subtests.test(removal=removal.__name__):
            await removal(last_super_admin, last_super_admin.user_id)
            assert await get_own_status(last_super_admin) == 200


async def test_a_super_admin_can_be_removed_while_another_remains(
    other_instance: World, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        last_super_admin = await _create_last_super_admin(other_instance)
        with subtests.test(removal=removal.__name__):
            await other_instance.user("super_admin")
            assert (await removal(last_super_admin, last_super_admin.user_id)).status_code == 200


async def test_the_last_super_admin_can_be_set_to_its_own_role(
    last_super_admin: Client,
) -> None:
    assert (
        await change_role(last_super_admin, last_super_admin.user_id, "super_admin")
    ).status_code == 200
    assert await get_own_status(last_super_admin) == 200


async def test_an_inactive_super_admin_can_be_removed(
    other_instance: World, last_super_admin: Client, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        with subtests.test(removal=removal.__name__):
            inactive_admin = await other_instance.user("super_admin")
            await deactivate(last_super_admin, inactive_admin.user_id)
            assert (await removal(last_super_admin, inactive_admin.user_id)).status_code == 200


async def test_of_two_super_admins_who_remove_each_other_at_once_one_remains(
    other_instance: World, subtests: pytest.Subtests
) -> None:
    for removal in ACCESS_REMOVALS:
        last_super_admin = await _create_last_super_admin(other_instance)
        with subtests.test(removal=removal.__name__):
            other = await other_instance.user("super_admin")
            answers = await asyncio.gather(
                removal(last_super_admin, other.user_id), removal(other, last_super_admin.user_id)
            )
            assert [answer.status_code for answer in answers].count(200) == 1
            roles_and_statuses = [
                await read_role_and_status(other_instance.services, user)
                for user in (last_super_admin, other)
            ]
            assert roles_and_statuses.count(("super_admin", "active")) == 1
