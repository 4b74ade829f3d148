"""One correlation id from a request through events, jobs, tools, actions and deliveries."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import msgspec
import pytest

from app.domain.subscriptions import actions
from app.kit.ids import new_id
from app.services import Services
from tests.asking import refused
from tests.deliveries.receiver import Receiver, run_receiver
from tests.events.database import load_events, load_work, run_sql, wait_until, wait_until_idle
from tests.events.responses import post_json, read_json
from tests.model_server import ModelServer, Reply
from tests.talk import Talker, talker
from tests.world import Client, World
from workers.main import WorkerProcess

PATH = "/api/v1/event-log"
ENTRY = {"id", "type", "correlation_id", "parent_id", "data", "created_at"}
SPAN = {"kind", "id", "parent_id", "name", "status", "started_at", "duration_ms"}


class Story(msgspec.Struct):
    """One question to an agent, and everything that it led to."""

    talk: Talker
    receiver: Receiver
    chain: str
    request: str
    trace: dict[str, Any]

    @property
    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.trace["data"]
        return found

    def spans(self, kind: str | None = None) -> list[dict[str, Any]]:
        return [span for span in self.trace["spans"] if kind in {None, span["kind"]}]

    def types(self) -> list[str]:
        return [entry["type"] for entry in self.entries]


async def _subscribe(client: Client, event_type: str, **config: Any) -> None:
    body = {
        "event_type": event_type,
        "action_type": "webhook" if "url" in config else "workflow",
        "action_config": config or {"workflow_id": "wfl_nothing"},
    }
    with pytest.MonkeyPatch.context() as patch:
        # No area runs workflows yet; the action ends dead.
        patch.setattr(actions, "is_handled", lambda _action: True)
        await post_json(client, "/api/v1/event-subscriptions", body)


async def _give_tool(talk: Talker, url: str) -> None:
    tool = {
        "name": "Look up",
        "description": "Looks things up",
        "category": "custom",
        "tool_type": "webhook",
        "config": {"url": url, "method": "POST"},
        "auth_type": "none",
    }
    tool_id = (await post_json(talk.client, "/v1/tools", tool))["data"]["id"]
    await post_json(talk.client, f"/v1/agents/{talk.agent_id}/tools", {"tool_id": tool_id})


async def _trace(client: Client, chain: str) -> dict[str, Any]:
    found: dict[str, Any] = read_json(await client.get(f"{PATH}/trace/{chain}"))
    return found


async def _tell(talk: Talker, receiver: Receiver, services: Services) -> Story:
    hook = {"url": f"{receiver.url}/200/hook", "events": ["agent.chat.started", "system.work.dead"]}
    await post_json(talk.client, "/api/v1/webhooks", hook)
    await _subscribe(talk.client, "agent.chat.started")
    await _subscribe(talk.client, "agent.chat.message", url=f"{receiver.url}/200/own")
    await _give_tool(talk, f"{receiver.url}/200/tool")
    talk.script(Reply(calls=[("look_up", {"what": "it"})]), Reply())
    ids = {"X-Correlation-ID": new_id("cor"), "X-Request-ID": new_id("req")}
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=ids)
    assert answer.headers["X-Correlation-ID"] == ids["X-Correlation-ID"]
    read_json(answer)
    await wait_until_idle(services, talk.client.tenant_id)
    trace = await _trace(talk.client, ids["X-Correlation-ID"])
    return Story(talk, receiver, ids["X-Correlation-ID"], ids["X-Request-ID"], trace)


@pytest.fixture(scope="module")
async def story(
    world: World,
    models: ModelServer,
    courier: WorkerProcess,
    worker: WorkerProcess,
    services: Services,
) -> AsyncIterator[Story]:
    async with run_receiver() as receiver:
        yield await _tell(await talker(world, models), receiver, services)


# Events


def test_a_trace_holds_every_event_of_the_chain(story: Story) -> None:
    assert sorted(story.types()) == [
        "agent.chat.message",
        "agent.chat.message",
        "agent.chat.started",
        "system.work.dead",
    ]
    assert {entry["correlation_id"] for entry in story.entries} == {story.chain}
    assert all(set(entry) == ENTRY for entry in story.entries)


def test_nothing_that_was_set_up_before_is_part_of_it(story: Story) -> None:
    assert "system.webhook.created" not in story.types()
    assert "system.subscription.created" not in story.types()


def test_what_a_request_emits_has_no_parent_and_what_follows_names_its_cause(story: Story) -> None:
    by_type = {entry["type"]: entry for entry in story.entries}
    assert by_type["agent.chat.started"]["parent_id"] is None
    assert by_type["agent.chat.message"]["parent_id"] is None
    dead = by_type["system.work.dead"]
    assert dead["parent_id"] == by_type["agent.chat.started"]["id"]


def test_a_cause_stands_before_what_it_led_to(story: Story) -> None:
    place = {entry["id"]: index for index, entry in enumerate(story.entries)}
    for entry in story.entries:
        if entry["parent_id"] is not None:
            assert place[entry["parent_id"]] < place[entry["id"]]


def test_events_are_in_the_order_in_which_they_happened(story: Story) -> None:
    ids = [entry["id"] for entry in story.entries]
    assert ids == sorted(ids)
    moments = [datetime.fromisoformat(entry["created_at"]) for entry in story.entries]
    assert moments[0] == min(moments)


# Spans


def test_a_trace_has_spans_of_every_kind_that_took_part(story: Story) -> None:
    assert {span["kind"] for span in story.spans()} == {
        "request",
        "job",
        "model",
        "tool",
        "delivery",
    }
    assert all(set(span) == SPAN for span in story.spans())


def test_every_span_hangs_on_something_that_the_trace_shows(story: Story) -> None:
    known = {entry["id"] for entry in story.entries} | {span["id"] for span in story.spans()}
    parents = {span["parent_id"] for span in story.spans()} - {None}
    assert parents
    assert parents <= known


def test_no_span_is_there_twice(story: Story) -> None:
    ids = [span["id"] for span in story.spans()]
    assert len(ids) == len(set(ids))


def test_the_request_is_one_span_under_nothing(story: Story) -> None:
    (span,) = story.spans("request")
    assert (span["id"], span["parent_id"], span["status"]) == (story.request, None, "completed")


def test_each_event_that_somebody_waits_for_is_handed_out_by_a_job(story: Story) -> None:
    jobs = [span for span in story.spans("job") if span["name"] == "events.fan_out"]
    assert {span["parent_id"] for span in jobs} == {entry["id"] for entry in story.entries}
    assert {span["status"] for span in jobs} == {"done"}


def test_an_action_is_a_job_under_its_event(story: Story) -> None:
    (span,) = [one for one in story.spans("job") if one["name"] == "events.act"]
    started = next(one for one in story.entries if one["type"] == "agent.chat.started")
    assert (span["parent_id"], span["status"]) == (started["id"], "dead")


def test_a_tool_is_a_span_within_the_job_that_ran_it(story: Story) -> None:
    (span,) = story.spans("tool")
    (job,) = [one for one in story.spans("job") if one["name"] == "tools.run"]
    assert (span["parent_id"], span["name"], span["status"]) == (job["id"], "Look up", "completed")


def test_a_delivery_is_a_span_under_its_event_and_names_type_and_host(story: Story) -> None:
    host = story.receiver.url.removeprefix("http://")
    found = story.spans("delivery")
    assert sorted(span["name"] for span in found) == [
        f"agent.chat.message to {host}",
        f"agent.chat.message to {host}",
        f"agent.chat.started to {host}",
        f"system.work.dead to {host}",
    ]
    assert {span["status"] for span in found} == {"delivered"}
    assert {span["parent_id"] for span in found} == {entry["id"] for entry in story.entries}


def test_each_attempt_is_a_job_within_its_delivery(story: Story) -> None:
    jobs = [one for one in story.spans("job") if one["name"] == "webhooks.deliver"]
    assert len(jobs) == 4
    assert {one["parent_id"] for one in jobs} == {one["id"] for one in story.spans("delivery")}


def test_the_model_answered_within_the_request(story: Story) -> None:
    (span,) = story.spans("model")
    assert (span["parent_id"], span["status"]) == (story.request, "completed")
    assert story.talk.model in span["name"]


def test_a_span_tells_no_address_but_the_host(story: Story) -> None:
    assert not [span for span in story.spans() if "/200" in span["name"]]


def test_spans_are_in_the_order_in_which_they_started(story: Story) -> None:
    moments = [datetime.fromisoformat(span["started_at"]) for span in story.spans()]
    assert moments == sorted(moments)


def test_no_span_lasts_longer_than_the_whole(story: Story) -> None:
    assert story.trace["duration_ms"] > 0
    for span in story.spans():
        assert 0 <= span["duration_ms"] <= story.trace["duration_ms"] + 0.1


def test_the_whole_lasts_from_the_first_start_to_the_last_end(story: Story) -> None:
    starts = [datetime.fromisoformat(span["started_at"]).timestamp() for span in story.spans()]
    ends = [
        start + span["duration_ms"] / 1000
        for start, span in zip(starts, story.spans(), strict=True)
    ]
    told = [datetime.fromisoformat(one["created_at"]).timestamp() for one in story.entries]
    wanted = (max(*ends, *told) - min(*starts, *told)) * 1000
    assert story.trace["duration_ms"] == pytest.approx(wanted, abs=1)


def test_what_is_delivered_carries_the_chain(story: Story) -> None:
    got = [*story.receiver.requests_to("/200/hook"), *story.receiver.requests_to("/200/own")]
    assert {one.json["correlation_id"] for one in got} == {story.chain}
    assert {one.json["id"] for one in got} == {entry["id"] for entry in story.entries}


async def test_the_log_can_be_narrowed_to_the_chain(story: Story) -> None:
    found = read_json(
        await story.talk.client.get(PATH, params={"correlation_id": story.chain, "per_page": 100})
    )
    assert found["data"] == story.entries[::-1]
    assert found["total"] == len(story.entries)


async def test_the_ledger_knows_the_same_chain(story: Story, services: Services) -> None:
    rows = await load_work(services, story.talk.client.tenant_id)
    theirs = {row["id"] for row in rows if row["correlation_id"] == story.chain}
    assert theirs == {span["id"] for span in story.spans("job")}


@pytest.mark.parametrize("end", ["?key=planted", "/200?key=planted", "#planted"])
async def test_a_span_of_a_delivery_tells_nothing_of_what_an_address_carries(
    admin: Client, courier: WorkerProcess, receiver: Receiver, services: Services, end: str
) -> None:
    hook = {"url": f"{receiver.url}{end}", "events": ["agent.created"]}
    await post_json(admin, "/api/v1/webhooks", hook)
    chain = new_id("cor")
    body = {"name": "Agent", "primary_model": "x/y", "system_prompt": "Be."}
    await admin.post("/api/v1/agents", body, headers={"X-Correlation-ID": chain})
    await wait_until_idle(services, admin.tenant_id)
    (span,) = [one for one in (await _trace(admin, chain))["spans"] if one["kind"] == "delivery"]
    assert span["name"] == f"agent.created to {receiver.url.removeprefix('http://')}"


# Who sees it


async def test_another_tenant_finds_no_such_trace(story: Story, admin: Client) -> None:
    refused(await admin.get(f"{PATH}/trace/{story.chain}"), 404, "trace_not_found")
    refused(await admin.get(f"{PATH}/{story.entries[0]['id']}"), 404, "event_not_found")


async def test_a_colleague_sees_the_same_trace(world: World, story: Story) -> None:
    colleague = await world.user("agent_developer", story.talk.client.tenant_id)
    assert (await _trace(colleague, story.chain))["data"] == story.entries


@pytest.mark.parametrize("role", ["viewer", "agent_user"])
async def test_a_colleague_who_may_not_read_events_does_not(
    world: World, story: Story, role: str
) -> None:
    colleague = await world.user(role, story.talk.client.tenant_id)
    refused(await colleague.get(f"{PATH}/trace/{story.chain}"), 403, "forbidden")


async def test_super_admin_sees_the_trace_of_any_tenant(super_admin: Client, story: Story) -> None:
    found = await _trace(super_admin, story.chain)
    assert found["data"] == story.entries
    assert {span["id"] for span in found["spans"]} == {span["id"] for span in story.spans()}


async def test_another_tenant_with_the_same_correlation_id_sees_its_own_part_alone(
    story: Story, admin: Client
) -> None:
    chain = {"X-Correlation-ID": story.chain}
    body = {"name": "Agent", "primary_model": "x/y", "system_prompt": "Be."}
    read_json(await admin.post("/api/v1/agents", body, headers=chain), 201)
    theirs = await _trace(admin, story.chain)
    assert [entry["type"] for entry in theirs["data"]] == ["agent.created"]
    assert [span["kind"] for span in theirs["spans"]] == ["request"]
    assert (await _trace(story.talk.client, story.chain))["data"] == story.entries


# Other chains


async def test_a_delivery_that_still_waits_is_a_pending_span(
    admin: Client, courier: WorkerProcess, receiver: Receiver, services: Services
) -> None:
    hook = {"url": f"{receiver.url}/500", "events": ["agent.created"]}
    await post_json(admin, "/api/v1/webhooks", hook)
    chain = new_id("cor")
    body = {"name": "Agent", "primary_model": "x/y", "system_prompt": "Be."}
    await admin.post("/api/v1/agents", body, headers={"X-Correlation-ID": chain})
    await receiver.wait_for(1)
    await wait_until_idle(services, admin.tenant_id)
    spans = (await _trace(admin, chain))["spans"]
    states = {(span["kind"], span["name"].split(" ")[0]): span["status"] for span in spans}
    assert states["delivery", "agent.created"] == "pending"
    assert states["job", "webhooks.deliver"] == "pending"


async def test_a_delivery_that_is_made_once_more_stays_one_span(
    admin: Client, courier: WorkerProcess, receiver: Receiver, services: Services
) -> None:
    hook = {"url": f"{receiver.url}/200", "events": ["agent.created"]}
    path = f"/api/v1/webhooks/{(await post_json(admin, '/api/v1/webhooks', hook))['id']}/executions"
    chain = new_id("cor")
    body = {"name": "Agent", "primary_model": "x/y", "system_prompt": "Be."}
    await admin.post("/api/v1/agents", body, headers={"X-Correlation-ID": chain})
    await wait_until_idle(services, admin.tenant_id)
    (delivery,) = (read_json(await admin.get(path)))["data"]
    await post_json(admin, f"{path}/{delivery['id']}/redeliver", {}, 202)
    await receiver.wait_for(2)
    await wait_until_idle(services, admin.tenant_id)
    trace = await _trace(admin, chain)
    (span,) = [one for one in trace["spans"] if one["kind"] == "delivery"]
    jobs = [one for one in trace["spans"] if one["name"] == "webhooks.deliver"]
    assert span["id"] == delivery["id"]
    assert [one["parent_id"] for one in jobs] == [span["id"]] * 2


async def test_what_an_incoming_payload_sets_going_is_of_its_chain(
    admin: Client, anonymous: Client, courier: WorkerProcess, services: Services
) -> None:
    body = {"name": "In", "workflow_id": "wfl_nothing"}
    incoming = await post_json(admin, "/api/v1/incoming-webhooks", body)
    chain = new_id("cor")
    answer = await anonymous.post(
        f"/webhooks/in/{incoming['slug']}", {"a": 1}, headers={"X-Correlation-ID": chain}
    )
    event_id = (read_json(answer, 202))["event_id"]

    async def is_dead() -> object:
        return await load_events(services, admin.tenant_id, "system.work.dead")

    await wait_until(is_dead)
    trace = await _trace(admin, chain)
    assert [(one["type"], one["parent_id"]) for one in trace["data"]] == [
        ("system.incoming_webhook.received", None),
        ("system.work.dead", event_id),
    ]


async def test_a_trace_outlives_the_work_that_is_forgotten(
    admin: Client, courier: WorkerProcess, receiver: Receiver, services: Services
) -> None:
    """Finished work is kept for a week, events and deliveries for longer."""
    hook = {"url": f"{receiver.url}/200", "events": ["agent.created"]}
    await post_json(admin, "/api/v1/webhooks", hook)
    chain = new_id("cor")
    body = {"name": "Agent", "primary_model": "x/y", "system_prompt": "Be."}
    await admin.post("/api/v1/agents", body, headers={"X-Correlation-ID": chain})
    await wait_until_idle(services, admin.tenant_id)
    await run_sql(services, "DELETE FROM work WHERE tenant_id = $1", admin.tenant_id)
    trace = await _trace(admin, chain)
    assert [one["type"] for one in trace["data"]] == ["agent.created"]
    known = {one["id"] for one in [*trace["data"], *trace["spans"]]} | {None}
    assert [span["kind"] for span in trace["spans"]] == ["request", "delivery"]
    assert {span["parent_id"] for span in trace["spans"]} <= known
