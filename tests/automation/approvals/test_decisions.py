"""Who decides, what is recorded, and that there is one outcome."""

import asyncio
from typing import Any

import pytest

from app.areas import AREAS
from app.domain.area import Area, Areas, FinishedCall
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.automation.approvals.factories import (
    CALLER_PREFIX,
    PATH,
    cancel,
    list_ids,
    read_approval,
    read_timer,
    request,
)
from tests.platform.events.database import load_events
from tests.security.locks import wait_for_blocked_transaction
from tests.world import Client, World
from workers.runner import Runner

ACTIONS = {"approve": "approved", "reject": "rejected"}


async def _decide(caller: Client, approval_id: str, action: str, body: Any = None) -> Any:
    return await caller.post(f"{PATH}/{approval_id}/{action}", body)


# The decision


async def test_a_decision_is_stored_emitted_and_reported_to_the_caller(
    services: Services, world: World, calls: list[FinishedCall], subtests: pytest.Subtests
) -> None:
    user = await world.user("agent_user")
    for action, status in ACTIONS.items():
        with subtests.test(action=action):
            caller_id = new_id(CALLER_PREFIX)
            approval_id = await request(services, user.tenant_id, caller_id=caller_id)
            answer = await _decide(user, approval_id, action, {"comment": "Fine"})
            assert answer.status_code == 200, answer.text
            approval = answer.json()["data"]
            assert (approval["status"], approval["comment"]) == (status, "Fine")
            assert (approval["decided_by"], approval["decided_via"]) == (user.user_id, "api")
            assert approval["decided_at"] >= approval["created_at"]
            assert await read_approval(user, approval_id) == approval
            (event,) = await load_events(services, user.tenant_id, f"approval.{status}")
            assert event["data"] == {
                "approval_id": approval_id,
                "workflow_execution_id": "wfx_1",
                "node_id": "review",
                "title": "Refund order 4711",
                "decided_by": user.user_id,
                "comment": "Fine",
                "via": "api",
            }
            call = calls.pop()
            assert (call.tenant_id, call.caller_id, call.error) == (user.tenant_id, caller_id, None)
            is_approved = status == "approved"
            assert call.output == {"status": status, "approved": is_approved, "comment": "Fine"}
    assert calls == []


async def test_a_comment_is_optional_and_limited(
    services: Services, world: World, subtests: pytest.Subtests
) -> None:
    user = await world.user("agent_user")
    for body, comment in (
        (None, None),
        ({}, None),
        ({"comment": None}, None),
        ({"comment": ""}, None),
        ({"comment": "x" * 2000}, "x" * 2000),
    ):
        with subtests.test(body=str(body)[:40]):
            approval_id = await request(services, user.tenant_id)
            answer = await _decide(user, approval_id, "approve", body)
            assert answer.json()["data"]["comment"] == comment
    approval_id = await request(services, user.tenant_id)
    answer = await _decide(user, approval_id, "approve", {"comment": "x" * 2001})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"comment"}
    assert (await read_approval(user, approval_id))["status"] == "pending"


async def test_a_second_decision_is_refused_with_the_first_one(
    services: Services, world: World, calls: list[FinishedCall]
) -> None:
    first = await world.user("agent_user")
    second = await world.user("agent_user", first.tenant_id)
    approval_id = await request(services, first.tenant_id)
    approval = (await _decide(first, approval_id, "approve")).json()["data"]
    for caller, action in ((second, "reject"), (first, "approve")):
        error = refused(await _decide(caller, approval_id, action), 409, "already_decided")
        assert error["details"] == {
            "status": "approved",
            "decided_by": first.user_id,
            "decided_at": approval["decided_at"],
        }
    assert await read_approval(second, approval_id) == approval
    assert len(calls) == 1


async def test_the_events_of_an_approval_belong_to_one_trace(
    services: Services, world: World
) -> None:
    user = await world.user("agent_user")
    approval_id = await request(services, user.tenant_id)
    path, headers = f"{PATH}/{approval_id}/approve", {"X-Correlation-ID": "mine"}
    answer = await user.post(path, headers=headers)
    assert answer.headers["X-Correlation-ID"] == "mine"
    ids = {event["correlation_id"] for event in await load_events(services, user.tenant_id)}
    assert len(ids) == 1
    assert ids != {"mine"}


async def test_a_decision_is_rolled_back_when_the_callers_area_fails(
    services: Services, world: World
) -> None:
    async def fail(_call: FinishedCall) -> None:
        raise ZeroDivisionError

    user = await world.user("agent_user")
    approval_id = await request(services, user.tenant_id, timeout_seconds=60.0)
    services.add(Areas([*AREAS, Area(name="x", on_call_finished=(CALLER_PREFIX, fail))]))
    answer = await _decide(user, approval_id, "approve")
    services.add(AREAS)
    assert answer.status_code == 500
    assert (await read_approval(user, approval_id))["status"] == "pending"
    assert (await read_timer(services, approval_id))["state"] == "pending"
    assert await load_events(services, user.tenant_id, "approval.approved") == []


# Who decides


async def test_only_those_who_are_asked_decide(
    services: Services, world: World, subtests: pytest.Subtests
) -> None:
    named = await world.user("agent_user")
    tenant_id = named.tenant_id
    by_id = await request(services, tenant_id, user_ids=[named.user_id])
    by_role = await request(services, tenant_id, role="agent_developer")
    # With approvals:read an approval is visible, without it is not found.
    statuses = {
        "super_admin": (403, 403),
        "tenant_admin": (403, 403),
        "agent_developer": (403, 200),
        "agent_user": (404, 404),
        "viewer": (403, 403),
    }
    for role, expected in statuses.items():
        caller = await world.user(role, tenant_id)
        for approval_id, status in zip((by_id, by_role), expected, strict=True):
            with subtests.test(role=role, approval=approval_id, status=status):
                answer = await _decide(caller, approval_id, "approve")
                assert answer.status_code == status, answer.text
    assert (await _decide(named, by_id, "reject")).status_code == 200


async def test_somebody_of_the_role_in_another_tenant_is_not_asked(
    services: Services, world: World, subtests: pytest.Subtests
) -> None:
    owner = await world.user("agent_user")
    for role in ("agent_user", "tenant_admin"):
        approval_id = await request(services, owner.tenant_id, role=role)
        stranger = await world.user(role)
        with subtests.test(role=role):
            refused(await _decide(stranger, approval_id, "approve"), 404, "approval_not_found")
            answer = await stranger.get(f"{PATH}/{approval_id}")
            refused(answer, 404, "approval_not_found")


async def test_super_admin_decides_in_another_tenant_where_asked_by_id(
    services: Services, super_admin: Client, developer: Client
) -> None:
    by_role = await request(services, developer.tenant_id, role="super_admin")
    by_id = await request(services, developer.tenant_id, user_ids=[super_admin.user_id])
    refused(await _decide(super_admin, by_role, "approve"), 403, "forbidden")
    assert await list_ids(super_admin) == [by_id]
    assert (await _decide(super_admin, by_id, "approve")).status_code == 200
    narrowed = {"X-Tenant-ID": super_admin.tenant_id}
    answer = await super_admin.get(f"{PATH}/{by_id}", headers=narrowed)
    refused(answer, 404, "approval_not_found")


async def test_a_viewer_who_is_asked_reads_but_cannot_decide(
    services: Services, world: World
) -> None:
    viewer = await world.user("viewer")
    approval_id = await request(services, viewer.tenant_id, user_ids=[viewer.user_id])
    assert (await read_approval(viewer, approval_id))["status"] == "pending"
    error = refused(await _decide(viewer, approval_id, "approve"), 403, "forbidden")
    assert error["details"] == {"required": "approvals:decide", "your_role": "viewer"}


# One outcome


async def test_of_twenty_simultaneous_decisions_one_counts(
    services: Services, world: World, calls: list[FinishedCall]
) -> None:
    tenant_id = await world.tenant()
    people = [await world.user("agent_user", tenant_id) for _ in range(20)]
    approval_id = await request(services, tenant_id, timeout_seconds=60.0)
    answers = await asyncio.gather(
        *(
            _decide(person, approval_id, "approve" if number % 2 else "reject")
            for number, person in enumerate(people)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 19
    (accepted,) = [answer.json()["data"] for answer in answers if answer.status_code == 200]
    for answer in answers:
        if answer.status_code == 409:
            details = refused(answer, 409, "already_decided")["details"]
            assert details["decided_by"] == accepted["decided_by"]
    kinds = {event["type"] for event in await load_events(services, tenant_id)}
    assert kinds == {"approval.requested", f"approval.{accepted['status']}"}
    assert [call.output["status"] for call in calls] == [accepted["status"]]


async def test_a_simultaneous_time_out_and_decisions_have_one_outcome(
    services: Services, world: World, runner: Runner, calls: list[FinishedCall]
) -> None:
    """The timer runs while the time of a decision is not up, as clocks may differ."""
    tenant_id = await world.tenant()
    people = [await world.user("agent_user", tenant_id) for _ in range(3)]
    for _ in range(10):
        approval_id = await request(services, tenant_id, timeout_seconds=60.0)
        timer = await read_timer(services, approval_id)
        async with services.db.tx(tenant_id) as tx:
            raw = await tx.raw()
            await raw.execute("UPDATE work SET run_at = now() WHERE id = $1", timer["id"])
        *answers, _ = await asyncio.gather(
            *(_decide(person, approval_id, "approve") for person in people),
            runner.run(timer["id"]),
        )
        statuses = [answer.status_code for answer in answers]
        outcome = (await read_approval(people[0], approval_id))["status"]
        assert statuses.count(200) == (outcome == "approved")
        assert statuses.count(200) + statuses.count(409) == len(people)
        assert [call.output["status"] for call in calls] == [outcome]
        calls.clear()
        assert (await read_timer(services, approval_id))["state"] in {"done", "cancelled"}


# The end of the caller


async def test_a_cancelled_approval_can_no_longer_be_decided(
    services: Services, world: World, calls: list[FinishedCall]
) -> None:
    user, caller_id = await world.user("agent_user"), new_id(CALLER_PREFIX)
    tenant_id = user.tenant_id
    first, second, kept = [
        await request(services, tenant_id, caller_id=id_, timeout_seconds=60.0)
        for id_ in (caller_id, caller_id, new_id(CALLER_PREFIX))
    ]
    await _decide(user, second, "reject")
    calls.clear()
    async with services.db.tx(tenant_id) as tx:
        await cancel(tx, services, tenant_id, caller_id, "tst_none")
    states = [(await read_approval(user, id_))["status"] for id_ in (first, second, kept)]
    assert states == ["cancelled", "rejected", "pending"]
    error = refused(await _decide(user, first, "approve"), 409, "already_decided")
    assert (error["details"]["status"], error["details"]["decided_by"]) == ("cancelled", None)
    assert [(await read_timer(services, id_))["state"] for id_ in (first, kept)] == [
        "cancelled",
        "pending",
    ]
    assert await list_ids(user, status="pending") == [kept]
    assert calls == []
    kinds = {event["type"] for event in await load_events(services, tenant_id)}
    assert kinds == {"approval.requested", "approval.rejected"}


async def test_a_cancellation_waits_for_a_decision_at_the_same_time(
    services: Services, world: World, subtests: pytest.Subtests
) -> None:
    user = await world.user("agent_user")
    tenant_id = user.tenant_id
    end = "UPDATE approvals SET status = 'approved', decided_at = now() WHERE id = $1"

    async def cancel_alone(caller_id: str) -> None:
        async with services.db.tx(tenant_id) as tx:
            await cancel(tx, services, tenant_id, caller_id)

    for outcome, status in (("committed", "approved"), ("rolled back", "cancelled")):
        with subtests.test(outcome):
            caller_id = new_id(CALLER_PREFIX)
            approval_id = await request(services, tenant_id, caller_id=caller_id)
            async with services.db.tx(tenant_id) as tx:
                raw = await tx.raw()
                await raw.execute(end, approval_id)
                cancellation = asyncio.create_task(cancel_alone(caller_id))
                await wait_for_blocked_transaction(services)
                if outcome == "rolled back":
                    await tx.rollback()
            await cancellation
            assert (await read_approval(user, approval_id))["status"] == status
