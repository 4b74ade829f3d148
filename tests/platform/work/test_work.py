"""Work in the background: what is listed, and what retries and dismissals do."""

from typing import Any

import pytest

from app.areas import AREAS
from app.domain.platform.events.service import emit_dead
from app.domain.platform.mail.service import SEND_MAIL
from app.domain.platform.work.schemas import MAX_RETRIED
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.database import run_sql
from tests.world import Client, World
from workers.runner import Runner

PATH = "/api/v1/work"
_ADD = """
INSERT INTO work (tenant_id, id, kind, ref_id, state, attempt, max_attempts, last_error,
                  correlation_id, run_at, lease_until, lease_token, finished_at)
VALUES ($1, $2::text, $3, $4, $5::text, 3, 3, 'unexpected OSError', $2::text,
        now() - $6 * interval '1 second', now() - $6 * interval '1 second',
        CASE WHEN $5::text = 'leased' THEN $2::text END,
        CASE WHEN $5::text = 'dead' THEN now() END)
"""
_STATE = "SELECT state, attempt, dispatched_at FROM work WHERE id = $1"


async def _add(
    services: Services,
    tenant_id: str | None,
    kind: str = "events.act",
    *,
    state: str = "dead",
    ref_id: str = "sub_1",
    age: float = 0,
) -> str:
    """Work of a kind that needs no record."""
    work_id = new_id("wrk")
    await run_sql(services, _ADD, tenant_id, work_id, kind, ref_id, state, age)
    return work_id


async def _list(client: Client, **params: str) -> list[dict[str, Any]]:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    views: list[dict[str, Any]] = answer.json()["data"]
    return views


async def _state_of(services: Services, work_id: str) -> str:
    (row,) = await run_sql(services, _STATE, work_id)
    return str(row["state"])


def test_every_kind_of_work_has_a_title_and_says_how_to_go_on() -> None:
    titles = [job.title for job in AREAS.jobs.values()]
    assert len(titles) == len(set(titles))
    for job in AREAS.jobs.values():
        assert job.title[0].isupper(), job.kind.name
        assert not job.title.endswith("."), job.kind.name
        assert job.can_retry == (job.instead is None), job.kind.name


async def test_work_is_listed_by_its_status(world: World, services: Services) -> None:
    admin = await world.user("tenant_admin")
    ids = {
        status: await _add(services, admin.tenant_id, state=state, age=120)
        for status, state in (("dead", "dead"), ("waiting", "pending"), ("running", "leased"))
    }
    for status, work_id in ids.items():
        (view,) = await _list(admin, status=status)
        assert (view["id"], view["status"]) == (work_id, status)
        assert view["title"] == "Run the action of a subscription"
        assert view["record_id"] == "sub_1"
        assert view["error"] == "unexpected OSError"
        assert view["is_stuck"] == (status != "dead")
        assert view["can_retry"] == (status == "dead")
        assert (await admin.get(f"{PATH}/{work_id}")).json() == view
    (dead,) = await _list(admin)
    assert dead["id"] == ids["dead"]
    assert await _list(admin, kind="mail.send") == []
    assert await _list(admin, record_id="sub_2") == []
    assert len(await _list(admin, kind="events.act", record_id="sub_1")) == 1
    assert await _list(admin, **{"from": "2099-01-01"}) == []


async def test_finished_work_is_not_found(world: World, services: Services) -> None:
    admin = await world.user("tenant_admin")
    work_id = await _add(services, admin.tenant_id, state="done")
    refused(await admin.get(f"{PATH}/{work_id}"), 404, "work_not_found")
    refused(await admin.post(f"{PATH}/{work_id}/retry"), 404, "work_not_found")


async def test_queues_show_their_age(world: World, services: Services) -> None:
    admin = await world.user("tenant_admin")
    await _add(services, admin.tenant_id, state="pending", age=100)
    await _add(services, admin.tenant_id, state="pending", age=-100)
    await _add(services, admin.tenant_id, "mail.send", state="leased")
    await _add(services, admin.tenant_id, "knowledge.ingest")
    queues = {queue["queue"]: queue for queue in (await admin.get(f"{PATH}/queues")).json()["data"]}
    assert set(queues) == {"default", "ingest"}
    default = queues["default"]
    assert (default["waiting"], default["scheduled"], default["running"]) == (1, 1, 1)
    assert 99 < default["oldest_waiting_seconds"] < 200
    assert [kind["kind"] for kind in default["kinds"]] == ["events.act", "mail.send"]
    assert (queues["ingest"]["dead"], queues["ingest"]["oldest_waiting_at"]) == (1, None)


async def test_retried_work_has_all_its_attempts_and_runs(world: World, services: Services) -> None:
    admin = await world.user("tenant_admin")
    work_id = await _add(services, admin.tenant_id, SEND_MAIL.name, ref_id="mal_gone")
    view = (await admin.post(f"{PATH}/{work_id}/retry")).json()
    assert (view["status"], view["attempt"]) == ("waiting", 0)
    refused(await admin.post(f"{PATH}/{work_id}/retry"), 409, "work_not_dead")
    await Runner(services, on_any_dead=emit_dead).run(work_id)
    assert await _state_of(services, work_id) == "done"


async def test_kinds_whose_caller_is_gone_cannot_be_retried(
    world: World, services: Services
) -> None:
    admin = await world.user("tenant_admin")
    work_id = await _add(services, admin.tenant_id, "chat.turn")
    (view,) = await _list(admin)
    assert (view["can_retry"], view["instead"]) == (False, "Ask the question again")
    answer = await admin.post(f"{PATH}/{work_id}/retry")
    assert refused(answer, 409, "work_not_retryable")["message"] == "Ask the question again"
    assert (await admin.post(f"{PATH}/retry", {})).json()["retried"] == 0
    assert await _state_of(services, work_id) == "dead"


async def test_work_that_nothing_waits_for_is_not_retried(world: World, services: Services) -> None:
    admin = await world.user("tenant_admin")
    ids = [
        await _add(services, admin.tenant_id, kind, ref_id="gone")
        for kind in ("knowledge.ingest", "webhooks.deliver", "forms.process", "sources.sync")
    ]
    for work_id in ids:
        refused(await admin.post(f"{PATH}/{work_id}/retry"), 409, "work_not_retryable")
    retried = (await admin.post(f"{PATH}/retry", {})).json()
    assert retried == {"retried": 0, "dismissed": 4, "has_more": False}
    assert {await _state_of(services, work_id) for work_id in ids} == {"cancelled"}


async def test_all_that_matches_is_retried_up_to_a_limit(world: World, services: Services) -> None:
    admin = await world.user("tenant_admin")
    other = await _add(services, admin.tenant_id, "mail.send")
    for _ in range(MAX_RETRIED + 1):
        await _add(services, admin.tenant_id)
    body = {"kind": "events.act"}
    first = (await admin.post(f"{PATH}/retry", body)).json()
    assert first == {"retried": MAX_RETRIED, "dismissed": 0, "has_more": True}
    second = (await admin.post(f"{PATH}/retry", body)).json()
    assert second == {"retried": 1, "dismissed": 0, "has_more": False}
    assert await _state_of(services, other) == "dead"
    by_id = (await admin.post(f"{PATH}/retry", {"ids": [other], "record_id": "sub_1"})).json()
    assert by_id["retried"] == 1


async def test_a_failed_document_waits_again(world: World, services: Services) -> None:
    admin = await world.user("tenant_admin")
    body = {"name": "A", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
    agent_id = (await admin.post("/api/v1/agents", body)).json()["id"]
    document_id = new_id("doc")
    work_id = await _add(services, admin.tenant_id, "knowledge.ingest", ref_id=document_id)
    sql = """
    INSERT INTO documents (tenant_id, id, agent_id, name, mime_type, size_bytes, status, error,
                           work_id)
    VALUES ($1, $2, $3, 'a.txt', 'text/plain', 1, 'failed', 'broken', $4)
    """
    await run_sql(services, sql, admin.tenant_id, document_id, agent_id, work_id)
    assert (await admin.post(f"{PATH}/{work_id}/retry")).status_code == 200
    document = (await admin.get(f"/api/v1/agents/{agent_id}/documents/{document_id}")).json()
    assert (document["status"], document["error"]) == ("pending", None)


async def test_dismissed_work_leaves_the_list(world: World, services: Services) -> None:
    admin = await world.user("tenant_admin")
    work_id = await _add(services, admin.tenant_id)
    waiting = await _add(services, admin.tenant_id, state="pending")
    assert (await admin.delete(f"{PATH}/{work_id}")).status_code == 204
    refused(await admin.delete(f"{PATH}/{waiting}"), 409, "work_not_dead")
    assert await _list(admin) == []
    assert (await _state_of(services, work_id), await _state_of(services, waiting)) == (
        "cancelled",
        "pending",
    )


async def test_retries_and_dismissals_are_in_the_event_log_of_the_tenant(
    world: World, services: Services, super_admin: Client
) -> None:
    owners = [await world.user("tenant_admin") for _ in range(2)]
    ids = [await _add(services, owner.tenant_id) for owner in owners]
    of_instance = await _add(services, None)
    body = {"ids": [*ids, of_instance]}
    assert (await super_admin.post(f"{PATH}/retry", body)).json()["retried"] == 3
    gone = await _add(services, owners[0].tenant_id, "knowledge.ingest", ref_id="gone")
    assert (await owners[0].post(f"{PATH}/retry", {"ids": [gone]})).json()["dismissed"] == 1
    retried = [[("events.act", ids[number], super_admin.user_id)] for number in range(2)]
    assert [await _list_events(owner, "system.work.retried") for owner in owners] == retried
    dismissed = [("knowledge.ingest", gone, owners[0].user_id)]
    assert await _list_events(owners[0], "system.work.dismissed") == dismissed


async def _list_events(client: Client, event_type: str) -> list[tuple[str, str, str]]:
    answer = await client.get("/api/v1/event-log", params={"event_type": event_type})
    return [
        (*event["data"]["kinds"], *event["data"]["work_ids"], event["actor"]["id"])
        for event in answer.json()["data"]
    ]


async def test_work_of_another_tenant_and_of_the_instance_is_not_found(
    world: World, services: Services
) -> None:
    admin, other = await world.user("tenant_admin"), await world.user("tenant_admin")
    ids = [await _add(services, owner) for owner in (other.tenant_id, None)]
    for work_id in ids:
        refused(await admin.get(f"{PATH}/{work_id}"), 404, "work_not_found")
        refused(await admin.post(f"{PATH}/{work_id}/retry"), 404, "work_not_found")
        refused(await admin.delete(f"{PATH}/{work_id}"), 404, "work_not_found")
        assert (await admin.post(f"{PATH}/retry", {"ids": [work_id]})).json()["retried"] == 0
        assert await _state_of(services, work_id) == "dead"
    assert await _list(admin) == []
    assert (await admin.get(f"{PATH}/queues")).json() == {"data": []}


async def test_super_admin_sees_work_of_the_instance_and_of_a_selected_tenant(
    world: World, services: Services, super_admin: Client
) -> None:
    tenant_id, record_id = await world.tenant(), new_id("sub")
    of_tenant = await _add(services, tenant_id, ref_id=record_id)
    of_instance = await _add(services, None, ref_id=record_id)
    listed = await _list(super_admin, record_id=record_id)
    assert {view["id"]: view["tenant_id"] for view in listed} == {
        of_tenant: tenant_id,
        of_instance: None,
    }
    headers = {"x-tenant-id": tenant_id}
    answer = await super_admin.get(PATH, params={"record_id": record_id}, headers=headers)
    assert [view["id"] for view in answer.json()["data"]] == [of_tenant]
    assert (await super_admin.post(f"{PATH}/{of_instance}/retry")).status_code == 200


async def test_wrong_filters_are_refused(world: World, subtests: pytest.Subtests) -> None:
    admin = await world.user("tenant_admin")
    for params in ({"status": "done"}, {"kind": "mail.sent"}, {"from": "yesterday"}):
        with subtests.test(params=params):
            refused(await admin.get(PATH, params=params), 422, "validation_error")
    bodies: list[dict[str, Any]] = [
        {"ids": []},
        {"kind": "nothing"},
        {"ids": ["wrk"] * 101},
        {"all": True},
    ]
    for body in bodies:
        with subtests.test(body=body):
            refused(await admin.post(f"{PATH}/retry", body), 422, "validation_error")


async def test_roles_without_the_permission_are_refused(world: World, services: Services) -> None:
    developer = await world.user("agent_developer")
    work_id = await _add(services, developer.tenant_id)
    for method, path in (
        ("GET", PATH),
        ("GET", f"{PATH}/queues"),
        ("GET", f"{PATH}/{work_id}"),
        ("POST", f"{PATH}/{work_id}/retry"),
        ("DELETE", f"{PATH}/{work_id}"),
    ):
        refused(await developer(method, path), 403, "forbidden")
    refused(await developer.post(f"{PATH}/retry", {}), 403, "forbidden")
