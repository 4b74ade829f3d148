"""POST and GET /api/v1/tenants, and access to them."""

import itertools
from datetime import datetime
from typing import Any

import pytest

from app.kit import clock
from tests.identity.accounts.values import ROLES_BELOW_SUPER_ADMIN
from tests.identity.tenants.factories import KEYS, PATH, create_tenant
from tests.world import Client, World


async def test_a_tenant_is_created_with_a_name_only(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin, name="Acme")
    assert set(tenant) == KEYS
    assert (tenant["name"], tenant["plan"], tenant["limits"]) == ("Acme", "free", {})
    assert tenant["id"].startswith("ten_")


async def test_times_are_in_utc(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin)
    assert tenant["created_at"].endswith("Z")
    age = clock.now() - datetime.fromisoformat(tenant["created_at"])
    assert abs(age.total_seconds()) < 60


async def test_a_tenant_is_created_on_any_plan(world: World, subtests: pytest.Subtests) -> None:
    for plan in ("free", "pro", "team", "enterprise"):
        super_admin = await world.user("super_admin")
        with subtests.test(plan=plan):
            assert (await create_tenant(super_admin, plan=plan))["plan"] == plan


async def test_an_enterprise_tenant_has_limits_of_its_own(super_admin: Client) -> None:
    limits = {
        "requests_per_minute": 2400,
        "requests_per_hour": 100_000,
        "requests_per_day": 1_000_000,
        "workflow_executions_per_minute": 600,
        "concurrent_executions": 100,
        "burst_multiplier": 3,
        "burst_seconds": 30,
    }
    assert (await create_tenant(super_admin, plan="enterprise", limits=limits))["limits"] == limits


async def test_fields_that_cannot_be_set_have_no_effect(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin, id="ten_mine", created_at="2000-01-01T00:00:00Z")
    assert tenant["id"] != "ten_mine"
    assert not tenant["created_at"].startswith("2000")


_INVALID_BODIES: list[tuple[dict[str, Any], str]] = [
    ({}, "name"),
    ({"name": ""}, "name"),
    ({"name": " \t"}, "name"),
    ({"name": "x" * 101}, "name"),
    ({"name": 5}, "name"),
    ({"name": None}, "name"),
    ({"name": "a", "plan": "gold"}, "plan"),
    ({"name": "a", "plan": None}, "plan"),
    ({"name": "a", "limits": []}, "limits"),
    ({"name": "a", "plan": "pro", "limits": {"burst_seconds": 5}}, "limits"),
    ({"name": "a", "limits": {"requests_per_minute": 0}}, "limits.requests_per_minute"),
    ({"name": "a", "limits": {"requests_per_minute": "5"}}, "limits.requests_per_minute"),
    ({"name": "a", "limits": {"requests_per_day": 10**12}}, "limits.requests_per_day"),
    ({"name": "a", "limits": {"burst_multiplier": 101}}, "limits.burst_multiplier"),
    ({"name": "a", "limits": {"burst_seconds": 3601}}, "limits.burst_seconds"),
    ({"name": "a", "limits": {"concurrent_executions": 1.5}}, "limits.concurrent_executions"),
]


async def test_an_invalid_field_is_refused(super_admin: Client, subtests: pytest.Subtests) -> None:
    for body, field in _INVALID_BODIES:
        with subtests.test(body=body, field=field):
            answer = await super_admin.post(PATH, body)
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"
            assert set(answer.json()["error"]["details"]) == {field}


async def test_a_name_may_have_a_hundred_characters(super_admin: Client) -> None:
    assert (await create_tenant(super_admin, name="ü" * 100))["name"] == "ü" * 100


async def test_creating_emits_an_event_in_the_new_tenant(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin, name="Acme", plan="team")
    headers = {"x-tenant-id": tenant["id"]}
    log = (await super_admin.get("/api/v1/event-log", headers=headers)).json()["data"]
    assert [(entry["type"], entry["data"]) for entry in log] == [
        ("system.tenant.created", {"tenant_id": tenant["id"], "name": "Acme", "plan": "team"})
    ]


async def test_a_tenant_is_shown_as_it_was_created(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin, plan="enterprise", limits={"burst_seconds": 9})
    assert (await super_admin.get(f"{PATH}/{tenant['id']}")).json() == tenant


async def test_a_tenant_that_does_not_exist_is_404(
    super_admin: Client, subtests: pytest.Subtests
) -> None:
    for method in ("GET", "PUT", "DELETE"):
        with subtests.test(method=method):
            content = {"json": {"name": "New"}} if method == "PUT" else {}
            answer = await super_admin(method, f"{PATH}/ten_nothing", **content)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "tenant_not_found"


async def test_other_roles_cannot_access_even_their_own_tenant(
    world: World, subtests: pytest.Subtests
) -> None:
    for role, method in itertools.product(ROLES_BELOW_SUPER_ADMIN, ("GET", "PUT", "DELETE")):
        with subtests.test(role=role, method=method):
            caller = await world.user(role)
            content = {"json": {"plan": "enterprise"}} if method == "PUT" else {}
            answer = await caller(method, f"{PATH}/{caller.tenant_id}", **content)
            assert answer.status_code == 403
            assert answer.json()["error"]["details"] == {
                "required": "admin:tenants",
                "your_role": role,
            }
