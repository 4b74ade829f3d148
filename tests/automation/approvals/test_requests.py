"""Requests of other areas: what is stored, who is notified, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest

from app.domain.automation.approvals import service
from app.kit import clock
from app.kit.errors import Invalid
from app.services import Services
from tests.assertions import wait_until
from tests.automation.approvals.factories import build_approval, read_approval, read_timer, request
from tests.database import fetch_rows, run_sql
from tests.platform.events.database import load_events
from tests.running_worker import cancel_earlier_work, run_worker
from tests.stores import Stores
from tests.world import Client, World


async def test_an_approval_has_the_fields_of_its_request(
    services: Services, developer: Client
) -> None:
    ids = [developer.user_id]
    approval_id = await request(services, developer.tenant_id, user_ids=ids)
    assert approval_id.startswith("apr_")
    approval = await read_approval(developer, approval_id)
    assert approval.pop("created_at")
    assert approval == {
        "id": approval_id,
        "workflow_execution_id": "wfx_1",
        "node_id": "review",
        "title": "Refund order 4711",
        "message": "The customer wants 49.90 back.",
        "origin": None,
        "details": [],
        "status": "pending",
        "user_ids": ids,
        "role": None,
        "comment": None,
        "decided_by": None,
        "decided_via": None,
        "decided_at": None,
        "expires_at": None,
    }


async def test_an_approval_with_a_time_limit_has_a_timer(
    services: Services, developer: Client
) -> None:
    with clock.frozen(clock.now()):
        due = clock.now() + timedelta(seconds=90)
        approval_id = await request(services, developer.tenant_id, timeout_seconds=90.0)
    approval = await read_approval(developer, approval_id)
    assert approval["expires_at"] == due.isoformat().replace("+00:00", "Z")
    timer = await read_timer(services, approval_id)
    assert (timer["kind"], timer["state"], timer["run_at"]) == ("approvals.expire", "pending", due)


async def test_the_event_says_who_is_asked_for_what(services: Services, developer: Client) -> None:
    approval_id = await request(services, developer.tenant_id, role="viewer", message="Why?")
    (event,) = await load_events(services, developer.tenant_id, "approval.requested")
    assert event["data"] == {
        "approval_id": approval_id,
        "workflow_execution_id": "wfx_1",
        "node_id": "review",
        "title": "Refund order 4711",
        "message": "Why?",
        "user_ids": None,
        "role": "viewer",
        "expires_at": None,
    }


async def test_a_request_that_is_rolled_back_leaves_nothing(
    services: Services, developer: Client
) -> None:
    tenant_id = developer.tenant_id
    async with services.db.tx(tenant_id) as tx:
        await service.request(tx, tenant_id, build_approval(timeout_seconds=1.0))
        await tx.rollback()
    assert await load_events(services, tenant_id) == []
    assert await fetch_rows(services, "SELECT 1 FROM work WHERE tenant_id = $1", tenant_id) == []


async def test_spaces_and_repeated_users_are_removed(services: Services, developer: Client) -> None:
    ids = [developer.user_id] * 2
    title = " Refund\n\n order\0 "
    approval_id = await request(services, developer.tenant_id, user_ids=ids, title=title)
    approval = await read_approval(developer, approval_id)
    assert (approval["title"], approval["user_ids"]) == ("Refund order", ids[:1])


_INVALID: list[tuple[dict[str, Any], str]] = [
    ({"title": ""}, "title"),
    ({"title": " \n"}, "title"),
    ({"title": "x" * 201}, "title"),
    ({"message": "x" * 10_001}, "message"),
    ({"role": None}, "user_ids"),
    ({"role": None, "user_ids": []}, "user_ids"),
    ({"role": "viewer", "user_ids": ["usr_1"]}, "user_ids"),
    ({"user_ids": [f"usr_{number}" for number in range(101)]}, "user_ids"),
    ({"user_ids": ["usr_none"]}, "user_ids.0"),
    ({"role": "boss"}, "role"),
    ({"role": ""}, "role"),
    ({"timeout_seconds": 0.0}, "timeout_seconds"),
    ({"timeout_seconds": -1.0}, "timeout_seconds"),
    ({"timeout_seconds": float("nan")}, "timeout_seconds"),
    ({"timeout_seconds": 1e9}, "timeout_seconds"),
]


async def test_a_wrong_request_is_refused_with_its_field(
    services: Services, developer: Client, subtests: pytest.Subtests
) -> None:
    for fields, name in _INVALID:
        with subtests.test(fields=str(fields)[:80]):
            with pytest.raises(Invalid) as error:
                await request(services, developer.tenant_id, **fields)
            assert set(error.value.details or {}) == {name}


async def test_the_largest_request_is_accepted(services: Services, developer: Client) -> None:
    limits = {"title": "x" * 200, "message": "x" * 10_000, "timeout_seconds": 366 * 86_400.0}
    assert await request(services, developer.tenant_id, **limits)


async def test_inactive_and_foreign_users_cannot_be_asked(
    services: Services, world: World, developer: Client
) -> None:
    inactive = await world.user("viewer", developer.tenant_id)
    await run_sql(services, "UPDATE users SET status = 'inactive' WHERE id = $1", inactive.user_id)
    ids = [inactive.user_id, developer.user_id, (await world.user()).user_id]
    with pytest.raises(Invalid) as error:
        await request(services, developer.tenant_id, user_ids=ids)
    assert set(error.value.details or {}) == {"user_ids.0", "user_ids.2"}


async def _count_notifications(*people: Client) -> list[int]:
    answers = [await person.get("/api/v1/notifications") for person in people]
    return [
        sum(item["type"] == "approval_requested" for item in answer.json()["data"])
        for answer in answers
    ]


_UNFINISHED = "SELECT 1 FROM work WHERE tenant_id = $1 AND state IN ('pending', 'leased')"


async def test_everybody_who_is_asked_is_notified_and_nobody_else(
    services: Services, world: World, stores: Stores, developer: Client
) -> None:
    tenant_id = developer.tenant_id
    roles = ("agent_user", "agent_user", "viewer", "tenant_admin")
    people = [await world.user(role, tenant_id) for role in roles]
    await cancel_earlier_work(stores)
    async with run_worker(stores.settings, "deliveries", "default", slots=4):
        await request(services, tenant_id, role="agent_user")
        await request(services, tenant_id, user_ids=[people[0].user_id, people[2].user_id])

        async def is_complete() -> bool:
            return not await fetch_rows(services, _UNFINISHED, tenant_id)

        await wait_until(is_complete)
    assert await _count_notifications(*people, developer) == [2, 1, 1, 0, 0]
    (notification, _) = (await people[0].get("/api/v1/notifications")).json()["data"]
    assert notification["title"] == "Your decision is needed: Refund order 4711"
    assert notification["message"] == "The customer wants 49.90 back."
