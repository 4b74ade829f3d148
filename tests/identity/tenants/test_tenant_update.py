"""PUT /api/v1/tenants/:id, and the limits that apply after it."""

from typing import Any

import pytest

from app.services import Services
from tests.identity.tenants.factories import PATH, create_tenant
from tests.world import Client, World


async def test_omitted_fields_are_not_changed(world: World, subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"name": "New"},
        {"plan": "pro"},
        {"limits": {"burst_seconds": 7}},
        {},
    ]
    for change in cases:
        super_admin = await world.user("super_admin")
        with subtests.test(change=change):
            fields = {"name": "Old", "plan": "enterprise", "limits": {}}
            tenant = await create_tenant(super_admin, **fields)
            answer = await super_admin.put(f"{PATH}/{tenant['id']}", change)
            assert answer.status_code == 200
            assert answer.json() == {**tenant, **change}


async def test_a_change_is_stored(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin)
    changed = await super_admin.put(f"{PATH}/{tenant['id']}", {"name": "New", "plan": "team"})
    assert (await super_admin.get(f"{PATH}/{tenant['id']}")).json() == changed.json()


async def test_new_limits_replace_all_old_ones(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin, plan="enterprise", limits={"burst_seconds": 7})
    answer = await super_admin.put(
        f"{PATH}/{tenant['id']}", {"limits": {"requests_per_minute": 5000}}
    )
    assert answer.json()["limits"] == {"requests_per_minute": 5000}


async def test_limits_are_for_the_enterprise_plan_only(
    world: World, subtests: pytest.Subtests
) -> None:
    for plan in ("free", "pro", "team"):
        super_admin = await world.user("super_admin")
        with subtests.test(plan=plan):
            tenant = await create_tenant(super_admin, plan=plan)
            answer = await super_admin.put(
                f"{PATH}/{tenant['id']}", {"limits": {"burst_seconds": 7}}
            )
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"limits"}


async def test_plan_and_limits_can_change_together(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin, plan="free")
    change = {"plan": "enterprise", "limits": {"requests_per_minute": 5000}}
    answer = await super_admin.put(f"{PATH}/{tenant['id']}", change)
    assert answer.json() == {**tenant, **change}


async def test_a_refused_change_changes_nothing(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin, name="Old", plan="pro")
    change = {"name": "New", "limits": {"burst_seconds": 7}}
    await super_admin.put(f"{PATH}/{tenant['id']}", change)
    assert (await super_admin.get(f"{PATH}/{tenant['id']}")).json() == tenant


async def test_an_invalid_field_of_a_change_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": ""}, "name"),
        ({"plan": "x"}, "plan"),
        ({"name": None}, "name"),
    ]
    for change, field in cases:
        super_admin = await world.user("super_admin")
        with subtests.test(change=change, field=field):
            tenant = await create_tenant(super_admin)
            answer = await super_admin.put(f"{PATH}/{tenant['id']}", change)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {field}


async def test_the_id_of_a_tenant_cannot_be_changed(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin)
    answer = await super_admin.put(f"{PATH}/{tenant['id']}", {"id": "ten_other"})
    assert answer.json()["id"] == tenant["id"]


async def test_a_change_emits_an_event_in_the_tenant(super_admin: Client, admin: Client) -> None:
    await super_admin.put(f"{PATH}/{admin.tenant_id}", {"name": "New"})
    log = (await admin.get("/api/v1/event-log")).json()["data"]
    assert [(entry["type"], entry["data"]) for entry in log] == [
        ("system.tenant.updated", {"tenant_id": admin.tenant_id, "changed": ["name"]})
    ]


async def _read_limit(caller: Client) -> int:
    return int((await caller.get("/auth/me")).headers["x-ratelimit-limit"])


async def test_changed_limits_apply_to_the_tenants_next_request(
    super_admin: Client, developer: Client
) -> None:
    before = await _read_limit(developer)
    change = {"limits": {"requests_per_minute": 77}}
    await super_admin.put(f"{PATH}/{developer.tenant_id}", change)
    assert (before, await _read_limit(developer)) == (1_000_000, 77)


async def test_a_lowered_limit_refuses_at_once(super_admin: Client, developer: Client) -> None:
    for _ in range(3):
        await developer.get("/auth/me")
    change = {"limits": {"requests_per_minute": 3, "burst_multiplier": 1}}
    await super_admin.put(f"{PATH}/{developer.tenant_id}", change)
    answer = await developer.get("/auth/me")
    assert answer.status_code == 429
    assert answer.json()["error"]["details"]["limit"] == 3


async def test_a_changed_plan_applies_to_the_tenants_next_request(
    world: World, subtests: pytest.Subtests
) -> None:
    """The limits of the tenant itself apply on the enterprise plan only."""
    cases: list[tuple[str, int]] = [
        ("free", 60),
        ("pro", 300),
        ("team", 600),
        ("enterprise", 1_000_000),
    ]
    for plan, limit in cases:
        super_admin = await world.user("super_admin")
        developer = await world.user()
        with subtests.test(plan=plan, limit=limit):
            await developer.get("/auth/me")
            await super_admin.put(f"{PATH}/{developer.tenant_id}", {"plan": plan})
            assert await _read_limit(developer) == limit


async def test_changed_limits_apply_after_redis_lost_its_data(
    super_admin: Client, developer: Client, services: Services
) -> None:
    change = {"limits": {"requests_per_minute": 77}}
    await super_admin.put(f"{PATH}/{developer.tenant_id}", change)
    await services.redis.flushall()
    assert await _read_limit(developer) == 77


async def test_a_refused_change_does_not_change_the_limits(
    super_admin: Client, developer: Client
) -> None:
    change = {"plan": "pro", "limits": {"requests_per_minute": 77}}
    await super_admin.put(f"{PATH}/{developer.tenant_id}", change)
    assert await _read_limit(developer) == 1_000_000
