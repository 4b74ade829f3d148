"""One correlation id from a request through events, jobs, tools, actions and deliveries."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.automation.subscriptions.factories import (
    create_webhook_for,
)
from tests.automation.workflows.factories import create_published, transform
from tests.database import run_sql
from tests.messaging.deliveries.receiver import Receiver, run_receiver
from tests.messaging.webhooks.factories import list_deliveries, redeliver
from tests.model_server import ModelServer
from tests.platform.events.api import PATH, read_trace
from tests.platform.events.database import load_work, wait_until_idle
from tests.platform.events.factories import create_agent
from tests.platform.events.log_entries import ENTRY_KEYS, MORE_SPAN_KEYS, SPAN_KEYS
from tests.platform.events.responses import post_json, read_json
from tests.platform.events.traced_chat import TracedChat, send_traced_message
from tests.scripted_agents import talker
from tests.world import Client, World
from workers.main import WorkerProcess


async def _emit_event(client: Client, services: Services) -> str:
    """Emits an event in a new chain and waits for its work; returns the correlation id."""
    correlation_id = new_id("cor")
    await create_agent(client, **{"X-Correlation-ID": correlation_id})
    await wait_until_idle(services, client.tenant_id)
    return correlation_id


@pytest.fixture(scope="module")
async def chat(
    world: World,
    models: ModelServer,
    courier: WorkerProcess,
    worker: WorkerProcess,
    services: Services,
) -> AsyncIterator[TracedChat]:
    async with run_receiver() as receiver:
        yield await send_traced_message(await talker(world, models), receiver, services)


# Events


def test_a_trace_holds_every_event_of_the_chain(chat: TracedChat) -> None:
    assert sorted(chat.types()) == [
        "agent.chat.message",
        "agent.chat.message",
        "agent.chat.started",
        "system.work.dead",
    ]
    assert {entry["correlation_id"] for entry in chat.entries} == {chat.correlation_id}
    assert all(set(entry) == ENTRY_KEYS for entry in chat.entries)


def test_a_trace_has_no_events_of_the_setup(chat: TracedChat) -> None:
    assert "system.webhook.created" not in chat.types()
    assert "system.subscription.created" not in chat.types()


def test_events_of_a_request_have_no_parent_and_later_ones_name_their_cause(
    chat: TracedChat,
) -> None:
    by_type = {entry["type"]: entry for entry in chat.entries}
    assert by_type["agent.chat.started"]["parent_id"] is None
    assert by_type["agent.chat.message"]["parent_id"] is None
    dead = by_type["system.work.dead"]
    assert dead["parent_id"] == by_type["agent.chat.started"]["id"]


def test_a_cause_is_before_its_effects(chat: TracedChat) -> None:
    positions = {entry["id"]: index for index, entry in enumerate(chat.entries)}
    for entry in chat.entries:
        if entry["parent_id"] is not None:
            assert positions[entry["parent_id"]] < positions[entry["id"]]


def test_events_are_in_the_order_in_which_they_happened(chat: TracedChat) -> None:
    ids = [entry["id"] for entry in chat.entries]
    assert ids == sorted(ids)
    moments = [datetime.fromisoformat(entry["created_at"]) for entry in chat.entries]
    assert moments[0] == min(moments)


# Spans


def test_a_trace_has_spans_of_every_kind(chat: TracedChat) -> None:
    assert {span["kind"] for span in chat.spans()} == {
        "request",
        "job",
        "model",
        "tool",
        "delivery",
    }
    assert all(SPAN_KEYS <= set(span) <= SPAN_KEYS | MORE_SPAN_KEYS for span in chat.spans())


def test_a_span_shows_what_went_in_and_came_out_and_what_failed(chat: TracedChat) -> None:
    (tool,) = chat.spans("tool")
    assert tool["input"] == {"what": "it"}
    assert tool["output"]
    assert "error" not in tool
    (dead,) = [span for span in chat.spans("job") if span["status"] == "dead"]
    assert "published" in dead["error"]


def test_a_job_tells_how_long_it_waited(chat: TracedChat) -> None:
    assert any(span["waited_ms"] > 0 for span in chat.spans("job") if "waited_ms" in span)


def test_an_event_tells_who_did_it(chat: TracedChat) -> None:
    actors = {entry["type"]: entry["actor"] for entry in chat.entries}
    user = chat.talker.client.user_id
    assert (actors["agent.chat.message"]["type"], actors["agent.chat.message"]["id"]) == (
        "user",
        user,
    )
    assert actors["agent.chat.message"]["name"]
    assert actors["system.work.dead"] == {"type": "system", "id": None, "name": None}


def test_the_parent_of_every_span_is_in_the_trace(chat: TracedChat) -> None:
    shown_ids = {entry["id"] for entry in chat.entries} | {span["id"] for span in chat.spans()}
    parents = {span["parent_id"] for span in chat.spans()} - {None}
    assert parents
    assert parents <= shown_ids


def test_no_span_is_there_twice(chat: TracedChat) -> None:
    ids = [span["id"] for span in chat.spans()]
    assert len(ids) == len(set(ids))


def test_the_request_is_one_span_without_a_parent(chat: TracedChat) -> None:
    (span,) = chat.spans("request")
    assert (span["id"], span["parent_id"], span["status"]) == (chat.request_id, None, "completed")


def test_each_event_with_subscribers_has_a_fan_out_job(chat: TracedChat) -> None:
    jobs = [span for span in chat.spans("job") if span["name"] == "events.fan_out"]
    assert {span["parent_id"] for span in jobs} == {entry["id"] for entry in chat.entries}
    assert {span["status"] for span in jobs} == {"done"}


def test_an_action_is_a_job_under_its_event(chat: TracedChat) -> None:
    (span,) = [span for span in chat.spans("job") if span["name"] == "events.act"]
    started = next(entry for entry in chat.entries if entry["type"] == "agent.chat.started")
    assert (span["parent_id"], span["status"]) == (started["id"], "dead")


def test_a_tool_is_a_span_within_the_job_that_ran_it(chat: TracedChat) -> None:
    (span,) = chat.spans("tool")
    (job,) = [span for span in chat.spans("job") if span["name"] == "tools.run"]
    assert (span["parent_id"], span["name"], span["status"]) == (job["id"], "Look up", "completed")


def test_a_delivery_is_a_span_under_its_event_and_names_type_and_host(chat: TracedChat) -> None:
    host = chat.receiver.url.removeprefix("http://")
    spans = chat.spans("delivery")
    assert sorted(span["name"] for span in spans) == [
        f"agent.chat.message to {host}",
        f"agent.chat.message to {host}",
        f"agent.chat.started to {host}",
        f"system.work.dead to {host}",
    ]
    assert {span["status"] for span in spans} == {"delivered"}
    assert {span["parent_id"] for span in spans} == {entry["id"] for entry in chat.entries}


def test_each_attempt_is_a_job_within_its_delivery(chat: TracedChat) -> None:
    jobs = [span for span in chat.spans("job") if span["name"] == "webhooks.deliver"]
    assert len(jobs) == 4
    assert {span["parent_id"] for span in jobs} == {span["id"] for span in chat.spans("delivery")}


def test_the_model_span_is_within_the_request(chat: TracedChat) -> None:
    (span,) = chat.spans("model")
    assert (span["parent_id"], span["status"]) == (chat.request_id, "completed")
    assert chat.talker.model in span["name"]


def test_span_names_contain_no_path(chat: TracedChat) -> None:
    assert not [span for span in chat.spans() if "/200" in span["name"]]


def test_spans_are_in_the_order_in_which_they_started(chat: TracedChat) -> None:
    moments = [datetime.fromisoformat(span["started_at"]) for span in chat.spans()]
    assert moments == sorted(moments)


def test_no_span_is_longer_than_the_trace(chat: TracedChat) -> None:
    assert chat.trace["duration_ms"] > 0
    for span in chat.spans():
        assert 0 <= span["duration_ms"] <= chat.trace["duration_ms"] + 0.1


def test_a_trace_lasts_from_the_first_start_to_the_last_end(chat: TracedChat) -> None:
    starts = [datetime.fromisoformat(span["started_at"]).timestamp() for span in chat.spans()]
    ends = [
        start + span["duration_ms"] / 1000 for start, span in zip(starts, chat.spans(), strict=True)
    ]
    moments = [datetime.fromisoformat(entry["created_at"]).timestamp() for entry in chat.entries]
    expected = (max(*ends, *moments) - min(*starts, *moments)) * 1000
    assert chat.trace["duration_ms"] == pytest.approx(expected, abs=1)


def test_deliveries_have_the_correlation_id(chat: TracedChat) -> None:
    requests = [*chat.receiver.requests_to("/200/hook"), *chat.receiver.requests_to("/200/own")]
    assert {request.json["correlation_id"] for request in requests} == {chat.correlation_id}
    assert {request.json["id"] for request in requests} == {entry["id"] for entry in chat.entries}


async def test_the_log_can_be_filtered_by_the_correlation_id(chat: TracedChat) -> None:
    body = read_json(
        await chat.talker.client.get(
            PATH, params={"correlation_id": chat.correlation_id, "per_page": 100}
        )
    )
    # The trace is in the order of the ids. Of transactions at the same moment, the one that began
    # first may emit its event last.
    newest_first = sorted(
        chat.entries, key=lambda entry: (entry["created_at"], entry["id"]), reverse=True
    )
    assert body["data"] == newest_first
    assert body["total"] == len(chat.entries)


async def test_the_jobs_equal_the_work_with_the_correlation_id(
    chat: TracedChat, services: Services
) -> None:
    rows = await load_work(services, chat.talker.client.tenant_id)
    work_ids = {row["id"] for row in rows if row["correlation_id"] == chat.correlation_id}
    assert work_ids == {span["id"] for span in chat.spans("job")}


async def test_the_span_of_a_delivery_has_no_path_query_or_fragment(
    world: World,
    courier: WorkerProcess,
    receiver: Receiver,
    services: Services,
    subtests: pytest.Subtests,
) -> None:
    for end in ("?key=planted", "/200?key=planted", "#planted"):
        with subtests.test(end=end):
            admin = await world.user("tenant_admin")
            receiver.reset()
            await create_webhook_for(admin, f"{receiver.url}{end}", "agent.created")
            trace = await read_trace(admin, await _emit_event(admin, services))
            (span,) = [span for span in trace["spans"] if span["kind"] == "delivery"]
            assert span["name"] == f"agent.created to {receiver.url.removeprefix('http://')}"


# Permissions and tenants


async def test_another_tenant_finds_no_such_trace(chat: TracedChat, admin: Client) -> None:
    refused(await admin.get(f"{PATH}/trace/{chat.correlation_id}"), 404, "trace_not_found")
    refused(await admin.get(f"{PATH}/{chat.entries[0]['id']}"), 404, "event_not_found")


async def test_a_colleague_sees_the_same_trace(world: World, chat: TracedChat) -> None:
    colleague = await world.user("agent_developer", chat.talker.client.tenant_id)
    assert (await read_trace(colleague, chat.correlation_id))["data"] == chat.entries


async def test_a_colleague_without_permission_gets_403(
    world: World, chat: TracedChat, subtests: pytest.Subtests
) -> None:
    for role in ("viewer", "agent_user"):
        with subtests.test(role=role):
            colleague = await world.user(role, chat.talker.client.tenant_id)
            refused(await colleague.get(f"{PATH}/trace/{chat.correlation_id}"), 403, "forbidden")


async def test_super_admin_sees_the_trace_of_any_tenant(
    super_admin: Client, chat: TracedChat
) -> None:
    trace = await read_trace(super_admin, chat.correlation_id)
    assert trace["data"] == chat.entries
    assert {span["id"] for span in trace["spans"]} == {span["id"] for span in chat.spans()}


async def test_another_tenant_with_the_same_correlation_id_sees_only_its_own_part(
    chat: TracedChat, admin: Client
) -> None:
    await create_agent(admin, **{"X-Correlation-ID": chat.correlation_id})
    other_trace = await read_trace(admin, chat.correlation_id)
    assert [entry["type"] for entry in other_trace["data"]] == ["agent.created"]
    assert [span["kind"] for span in other_trace["spans"]] == ["request"]
    assert (await read_trace(chat.talker.client, chat.correlation_id))["data"] == chat.entries


# Other chains


async def test_a_pending_delivery_is_a_pending_span(
    admin: Client, courier: WorkerProcess, receiver: Receiver, services: Services
) -> None:
    await create_webhook_for(admin, f"{receiver.url}/500", "agent.created")
    spans = (await read_trace(admin, await _emit_event(admin, services)))["spans"]
    states = {(span["kind"], span["name"].split(" ")[0]): span["status"] for span in spans}
    assert states["delivery", "agent.created"] == "pending"
    assert states["job", "webhooks.deliver"] == "pending"


async def test_a_redelivered_delivery_stays_one_span(
    admin: Client, courier: WorkerProcess, receiver: Receiver, services: Services
) -> None:
    webhook_id = await create_webhook_for(admin, f"{receiver.url}/200", "agent.created")
    correlation_id = await _emit_event(admin, services)
    (delivery,) = await list_deliveries(admin, webhook_id)
    await redeliver(admin, webhook_id, delivery["id"])
    await receiver.wait_for(2)
    await wait_until_idle(services, admin.tenant_id)
    trace = await read_trace(admin, correlation_id)
    (span,) = [span for span in trace["spans"] if span["kind"] == "delivery"]
    jobs = [span for span in trace["spans"] if span["name"] == "webhooks.deliver"]
    assert span["id"] == delivery["id"]
    assert [job["parent_id"] for job in jobs] == [span["id"]] * 2


async def test_events_caused_by_an_incoming_payload_are_in_its_trace(
    admin: Client, anonymous: Client, courier: WorkerProcess, services: Services
) -> None:
    workflow_id = await create_published(admin, [transform("only", 1)])
    body = {"name": "In", "workflow_id": workflow_id}
    incoming = await post_json(admin, "/api/v1/incoming-webhooks", body)
    correlation_id = new_id("cor")
    answer = await anonymous.post(
        f"/webhooks/in/{incoming['slug']}", {"a": 1}, headers={"X-Correlation-ID": correlation_id}
    )
    event_id = (read_json(answer, 202))["event_id"]

    trace = await read_trace(admin, correlation_id)
    assert [(entry["type"], entry["parent_id"]) for entry in trace["data"]] == [
        ("system.incoming_webhook.received", None),
        ("workflow.execution.started", event_id),
    ]


async def test_a_trace_remains_after_its_work_is_deleted(
    admin: Client, courier: WorkerProcess, receiver: Receiver, services: Services
) -> None:
    """Finished work is stored for a week, events and deliveries for longer."""
    await create_webhook_for(admin, f"{receiver.url}/200", "agent.created")
    correlation_id = await _emit_event(admin, services)
    await run_sql(services, "DELETE FROM work WHERE tenant_id = $1", admin.tenant_id)
    trace = await read_trace(admin, correlation_id)
    assert [entry["type"] for entry in trace["data"]] == ["agent.created"]
    shown_ids = {span["id"] for span in [*trace["data"], *trace["spans"]]} | {None}
    assert [span["kind"] for span in trace["spans"]] == ["request", "delivery"]
    assert {span["parent_id"] for span in trace["spans"]} <= shown_ids


@pytest.mark.usefixtures("restored_grants")
async def test_what_spans_contain_is_for_those_who_may_see_it_elsewhere(
    chat: TracedChat, world: World, super_admin: Client
) -> None:
    permissions = ["events:read", "tools:execute"]
    answer = await super_admin.put("/roles/viewer/permissions", {"permissions": permissions})
    assert answer.status_code == 200, answer.text
    viewer = await world.user("viewer", chat.talker.client.tenant_id)
    spans = (await read_trace(viewer, chat.correlation_id))["spans"]
    [tool] = [span for span in spans if span["kind"] == "tool"]
    assert not {"input", "output", "error"} & set(tool)
