"""GET /api/v1/approvals: whose approvals it lists, filters, sort orders and pages."""

from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.automation.approvals.factories import PATH, list_ids, request
from tests.world import Client, World


async def test_mine_are_those_that_ask_the_caller_by_id_or_by_role(
    services: Services, world: World, subtests: pytest.Subtests
) -> None:
    tenant_id = await world.tenant()
    roles = ("agent_user", "agent_user", "viewer", "tenant_admin")
    first, second, viewer, admin = [await world.user(role, tenant_id) for role in roles]
    by_role = await request(services, tenant_id, role="agent_user")
    by_id = await request(services, tenant_id, user_ids=[first.user_id, viewer.user_id])
    # Another tenant's.
    await request(services, await world.tenant(), role="agent_user")
    everything = [by_id, by_role]
    for caller, expected in (
        (first, [by_id, by_role]),
        (second, [by_role]),
        (viewer, [by_id]),
        (admin, []),
    ):
        with subtests.test(user=caller.email):
            assert await list_ids(caller) == expected
            assert await list_ids(caller, scope="mine") == expected
            assert await list_ids(caller, workflow_execution_id="wfx_1") == expected
    assert await list_ids(admin, scope="all") == everything


async def test_all_needs_the_permission(services: Services, world: World) -> None:
    developer = await world.user("agent_developer")
    approval_id = await request(services, developer.tenant_id, role="viewer")
    assert await list_ids(developer, scope="all") == [approval_id]
    for role in ("agent_user", "viewer"):
        caller = await world.user(role, developer.tenant_id)
        error = refused(await caller.get(PATH, params={"scope": "all"}), 403, "forbidden")
        assert error["details"] == {"required": "approvals:read", "your_role": role}


async def test_an_approval_is_found_by_those_asked_and_by_readers(
    services: Services, world: World, subtests: pytest.Subtests
) -> None:
    tenant_id = await world.tenant()
    approval_id = await request(services, tenant_id, role="viewer")
    for role, status in (
        ("super_admin", 200),
        ("tenant_admin", 200),
        ("agent_developer", 200),
        ("agent_user", 404),
        ("viewer", 200),
    ):
        with subtests.test(role=role):
            caller = await world.user(role, tenant_id)
            answer = await caller.get(f"{PATH}/{approval_id}")
            assert answer.status_code == status


async def test_super_admin_lists_all_tenants_or_one(
    services: Services, world: World, super_admin: Client
) -> None:
    first, second = [await world.tenant() for _ in range(2)]
    ids = [await request(services, tenant, title="Of two") for tenant in (first, second)]
    listed = await list_ids(super_admin, scope="all", per_page=2)
    assert listed == ids[::-1]
    params, narrowed = {"scope": "all"}, {"X-Tenant-ID": first}
    answer = await super_admin.get(PATH, params=params, headers=narrowed)
    assert [item["id"] for item in answer.json()["data"]] == ids[:1]


async def test_filters_and_pages_select_the_same_rows_in_both_scopes(
    services: Services, world: World, subtests: pytest.Subtests
) -> None:
    user = await world.user("agent_user")
    admin = await world.user("tenant_admin", user.tenant_id)
    ids = []
    for number in range(6):
        fields: dict[str, Any] = {"user_ids": [user.user_id]} if number % 2 else {}
        seconds = None if number == 2 else 1000.0 - number
        execution = f"wfx_{number % 3}"
        fields |= {"timeout_seconds": seconds, "workflow_execution_id": execution}
        ids.append(await request(services, user.tenant_id, **fields))
    for number, action in ((1, "approve"), (4, "reject")):
        await user.post(f"{PATH}/{ids[number]}/{action}")
    newest, pending = ids[::-1], {"status": "pending"}
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, newest),
        ({"sort": "created_at"}, ids),
        ({**pending, "sort": "expires_at"}, [ids[number] for number in (5, 3, 0, 2)]),
        ({**pending, "sort": "-expires_at"}, [ids[number] for number in (0, 3, 5, 2)]),
        ({"workflow_execution_id": "wfx_1", "sort": "-expires_at"}, [ids[1], ids[4]]),
        (pending, [ids[number] for number in (5, 3, 2, 0)]),
        ({"status": "approved"}, [ids[1]]),
        ({"status": "timed_out"}, []),
        ({"workflow_execution_id": "wfx_1"}, [ids[4], ids[1]]),
        ({"workflow_execution_id": "wfx_1", "status": "rejected"}, [ids[4]]),
        ({"workflow_execution_id": "wfx_9"}, []),
        ({"per_page": 2, "page": 2}, newest[2:4]),
        ({"per_page": 4, "page": 2, "sort": "created_at"}, ids[4:]),
        ({"per_page": 4, "page": 3}, []),
    ]
    for params, expected in cases:
        for caller, scope in ((user, "mine"), (admin, "all")):
            with subtests.test(params=params, scope=scope):
                answer = await caller.get(PATH, params={**params, "scope": scope})
                body = answer.json()
                assert [item["id"] for item in body["data"]] == expected
                if "page" in params:
                    assert body["pagination"]["total"] == 6


async def test_a_wrong_parameter_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for name, value in (
        ("scope", "theirs"),
        ("status", "open"),
        ("sort", "title"),
        ("sort", "expires_at"),
        ("sort", "-expires_at"),
        ("per_page", "0"),
        ("workflow_execution_id", "x" * 65),
    ):
        with subtests.test(name=name):
            answer = await developer.get(PATH, params={name: value})
            assert set(refused(answer, 422, "validation_error")["details"]) == {name}
    params = {"sort": "expires_at", "status": "approved"}
    refused(await developer.get(PATH, params=params), 422, "validation_error")
