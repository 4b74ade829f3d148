"""Permissions and roles that the administration of users needs."""

import itertools
from collections.abc import AsyncIterator

import httpx
import pytest

from app.services import Services
from tests.identity.accounts.api_calls import USER_ACTIONS, change_role, get_own_status
from tests.identity.accounts.records import read_role_and_status
from tests.identity.accounts.values import ADMIN_ROLES, NON_ADMIN_ROLES, ROLES
from tests.security.grants import change_grant
from tests.world import Client, World


async def test_other_roles_cannot_read_users(world: World, subtests: pytest.Subtests) -> None:
    for role in NON_ADMIN_ROLES:
        with subtests.test(role=role):
            caller = await world.user(role)
            for path in ("/users", "/users/usr_x"):
                answer = await caller.get(path)
                assert answer.status_code == 403
                assert answer.json()["error"]["details"] == {
                    "required": "admin:users",
                    "your_role": role,
                }


async def test_reading_users_needs_a_login(anonymous: Client, subtests: pytest.Subtests) -> None:
    for path in ("/users", "/users/usr_x"):
        with subtests.test(path=path):
            assert (await anonymous.get(path)).status_code == 401


async def test_changing_users_needs_a_login(
    anonymous: Client, stranger: Client, subtests: pytest.Subtests
) -> None:
    for action in USER_ACTIONS:
        with subtests.test(action=action.__name__):
            assert (await action(anonymous, stranger.user_id)).status_code == 401


def _find_missing_permission(actor: str, target: str) -> str | None:
    """Returns the permission or role that the actor needs to change a user of the role, or None."""
    if actor in NON_ADMIN_ROLES:
        return "admin:users"
    return f"role:{target}" if ROLES.index(target) < ROLES.index(actor) else None


def _assert_answer(answer: httpx.Response, actor: str, target: str) -> None:
    required = _find_missing_permission(actor, target)
    assert answer.status_code == (403 if required else 200)
    if required:
        assert answer.json()["error"]["details"] == {"required": required, "your_role": actor}


async def test_nobody_changes_a_user_above_their_own_role(
    world: World, subtests: pytest.Subtests
) -> None:
    for actor in ROLES:
        with subtests.test(actor=actor):
            caller = await world.user(actor)
            for target, action in itertools.product(ROLES, USER_ACTIONS):
                user = await world.user(target, caller.tenant_id)
                with subtests.test(target=target, action=action.__name__):
                    _assert_answer(await action(caller, user.user_id), actor, target)


async def test_nobody_assigns_a_role_above_their_own(
    world: World, subtests: pytest.Subtests
) -> None:
    for actor in ROLES:
        with subtests.test(actor=actor):
            caller = await world.user(actor)
            for role in ROLES:
                user = await world.user("viewer", caller.tenant_id)
                with subtests.test(role=role):
                    _assert_answer(await change_role(caller, user.user_id, role), actor, role)


async def test_nobody_raises_their_own_role(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            caller = await world.user(role)
            for higher in ROLES[: ROLES.index(role)]:
                assert (await change_role(caller, caller.user_id, higher)).status_code == 403
            assert await read_role_and_status(services, caller) == (role, "active")


async def test_a_refused_action_changes_nothing(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for action in USER_ACTIONS:
        admin = await world.user("tenant_admin")
        with subtests.test(action=action.__name__):
            above = await world.user("super_admin", admin.tenant_id)
            await action(admin, above.user_id)
            assert await read_role_and_status(services, above) == ("super_admin", "active")
            assert await get_own_status(above) == 200


async def test_a_user_of_another_tenant_cannot_be_changed(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for action in USER_ACTIONS:
        admin = await world.user("tenant_admin")
        stranger = await world.user("viewer")
        with subtests.test(action=action.__name__):
            answer = await action(admin, stranger.user_id)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "user_not_found"
            assert await read_role_and_status(services, stranger) == ("viewer", "active")


def _act_in_tenant(world: World, user: Client, tenant_id: str) -> Client:
    """Returns a client of the user that sends X-Tenant-ID."""
    client = Client(world.app, user.token)
    client.http.headers["x-tenant-id"] = tenant_id
    return client


async def test_the_tenant_header_does_not_let_an_admin_change_a_user_of_another_tenant(
    world: World, admin: Client, stranger: Client, subtests: pytest.Subtests
) -> None:
    for action in USER_ACTIONS:
        with subtests.test(action=action.__name__):
            caller = _act_in_tenant(world, admin, stranger.tenant_id)
            assert (await action(caller, stranger.user_id)).status_code == 404


async def test_super_admin_changes_users_of_every_tenant(
    world: World, subtests: pytest.Subtests
) -> None:
    for action in USER_ACTIONS:
        super_admin = await world.user("super_admin")
        stranger = await world.user("viewer")
        with subtests.test(action=action.__name__):
            assert (await action(super_admin, stranger.user_id)).status_code == 200


async def test_super_admin_acting_in_one_tenant_cannot_change_users_of_another(
    world: World, super_admin: Client, admin: Client, stranger: Client, subtests: pytest.Subtests
) -> None:
    for action in USER_ACTIONS:
        with subtests.test(action=action.__name__):
            caller = _act_in_tenant(world, super_admin, admin.tenant_id)
            assert (await action(caller, stranger.user_id)).status_code == 404


async def test_a_user_that_does_not_exist_cannot_be_changed(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    for action in USER_ACTIONS:
        with subtests.test(action=action.__name__):
            answer = await action(super_admin, "usr_nothing")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "user_not_found"


@pytest.fixture
async def _grant_user_management(services: Services) -> AsyncIterator[None]:
    """Grants admin:users to agent_developer during a test."""
    async with change_grant(services, "agent_developer", "admin:users", is_granted=True):
        yield


@pytest.mark.usefixtures("_grant_user_management")
async def test_the_permission_alone_does_not_allow_changing_a_user_with_a_higher_role(
    world: World, subtests: pytest.Subtests
) -> None:
    caller = await world.user("agent_developer")
    for target, action in itertools.product(ROLES, USER_ACTIONS):
        user = await world.user(target, caller.tenant_id)
        with subtests.test(target=target, action=action.__name__):
            answer = await action(caller, user.user_id)
            assert answer.status_code == (403 if target in ADMIN_ROLES else 200)


@pytest.mark.usefixtures("_grant_user_management")
async def test_the_permission_alone_does_not_allow_assigning_a_higher_role(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ADMIN_ROLES:
        with subtests.test(role=role):
            caller = await world.user("agent_developer")
            user = await world.user("viewer", caller.tenant_id)
            answer = await change_role(caller, user.user_id, role)
            assert answer.status_code == 403
            assert answer.json()["error"]["details"] == {
                "required": f"role:{role}",
                "your_role": "agent_developer",
            }
