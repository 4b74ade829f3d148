"""/api/v1/event-log/trace/:id: the entries, spans and duration of simple chains."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from app.domain.platform.mail.service import SEND_MAIL
from app.jobs import work
from app.kit import clock
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.kit.trace import begin as begin_trace
from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import refused
from tests.platform.events.api import PATH, read_trace
from tests.platform.events.factories import invite_user
from tests.platform.events.log_entries import (
    ENTRY_KEYS,
    MORE_SPAN_KEYS,
    NOON,
    SPAN_KEYS,
    LogEntry,
    insert_entries,
)
from tests.world import Client, World


async def test_an_unknown_trace_is_404(developer: Client) -> None:
    refused(await developer.get(f"{PATH}/trace/cor_nothing"), 404, "trace_not_found")


async def test_a_trace_has_entries_spans_and_a_duration(admin: Client) -> None:
    correlation_id = new_id("cor")
    await invite_user(admin, x_correlation_id=correlation_id)
    trace = await read_trace(admin, correlation_id)
    assert set(trace) == {"correlation_id", "data", "spans", "duration_ms"}
    assert trace["correlation_id"] == correlation_id
    assert {frozenset(entry) for entry in trace["data"]} == {frozenset(ENTRY_KEYS)}
    assert all(SPAN_KEYS <= set(span) <= SPAN_KEYS | MORE_SPAN_KEYS for span in trace["spans"])


async def test_a_trace_lists_its_events_in_order(admin: Client) -> None:
    correlation_id = new_id("cor")
    invitation_ids = [
        (await invite_user(admin, x_correlation_id=correlation_id))["id"] for _ in range(3)
    ]
    trace = await read_trace(admin, correlation_id)
    assert [entry["data"]["invitation_id"] for entry in trace["data"]] == invitation_ids


async def test_a_trace_holds_nothing_of_another_chain(admin: Client) -> None:
    correlation_id = new_id("cor")
    invitation = await invite_user(admin, x_correlation_id=correlation_id)
    await invite_user(admin)
    trace = await read_trace(admin, correlation_id)
    assert [entry["data"]["invitation_id"] for entry in trace["data"]] == [invitation["id"]]


async def _list_spans(caller: Client, correlation_id: str, kind: str) -> list[dict[str, Any]]:
    trace = await read_trace(caller, correlation_id)
    return [span for span in trace["spans"] if span["kind"] == kind]


async def test_a_job_is_a_span_under_the_event_that_caused_it(
    admin: Client, services: Services
) -> None:
    correlation_id = new_id("cor")
    await invite_user(admin, x_correlation_id=correlation_id)
    event_id = (await admin.get(PATH)).json()["data"][0]["id"]
    begin_trace(Trace(correlation_id))
    async with services.db.tx(admin.tenant_id) as tx:
        # Due in an hour, so that no worker takes it.
        run_at = clock.now() + timedelta(hours=1)
        work_id = await work.accept(
            tx,
            SEND_MAIL,
            tenant_id=admin.tenant_id,
            run_at=run_at,
            cause_event_id=event_id,
        )
    spans = await _list_spans(admin, correlation_id, "job")
    (span,) = [span for span in spans if span["id"] == work_id]
    span.pop("started_at")
    assert span == {
        "kind": "job",
        "id": work_id,
        "parent_id": event_id,
        "name": "mail.send",
        "status": "pending",
        "duration_ms": 0.0,
        "is_waiting": True,
    }


async def test_a_finished_job_has_its_duration(admin: Client, services: Services) -> None:
    correlation_id = new_id("cor")
    await invite_user(admin, x_correlation_id=correlation_id)
    started_at = clock.now()
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE work SET state = 'done', started_at = $2, finished_at = $3 "
            "WHERE correlation_id = $1",
            correlation_id,
            started_at,
            started_at + timedelta(milliseconds=1500),
        )
    (span,) = await _list_spans(admin, correlation_id, "job")
    assert (span["status"], span["duration_ms"]) == ("done", 1500.0)


async def test_a_request_is_a_span_known_by_its_id(admin: Client) -> None:
    correlation_id, request_id = new_id("cor"), new_id("req")
    await invite_user(admin, x_correlation_id=correlation_id, x_request_id=request_id)
    (span,) = await _list_spans(admin, correlation_id, "request")
    assert (span["id"], span["name"], span["status"]) == (
        request_id,
        "system.user.invited",
        "completed",
    )


async def test_spans_are_in_the_order_in_which_they_started(admin: Client) -> None:
    correlation_id = new_id("cor")
    for _ in range(3):
        await invite_user(admin, x_correlation_id=correlation_id)
    trace = await read_trace(admin, correlation_id)
    moments = [datetime.fromisoformat(span["started_at"]) for span in trace["spans"]]
    assert len(moments) == 6
    assert moments == sorted(moments)


async def test_the_duration_of_a_trace_is_from_its_first_moment_to_its_last(
    developer: Client, services: Services
) -> None:
    correlation_id = new_id("cor")
    entries = [
        LogEntry(correlation_id=correlation_id, at=NOON),
        LogEntry(correlation_id=correlation_id, at=NOON + timedelta(seconds=2, milliseconds=500)),
    ]
    await insert_entries(services, developer.tenant_id, *entries)
    trace = await read_trace(developer, correlation_id)
    assert trace["duration_ms"] == 2500.0


async def test_every_valid_correlation_id_can_be_traced(
    world: World, subtests: pytest.Subtests
) -> None:
    for correlation_id in ("order:42", "a+b=c", "a.b-c_d"):
        with subtests.test(correlation_id=correlation_id):
            admin = await world.user("tenant_admin")
            invitation = await invite_user(admin, x_correlation_id=correlation_id)
            trace = await read_trace(admin, correlation_id.replace("+", "%2B"))
            assert [entry["data"]["invitation_id"] for entry in trace["data"]] == [invitation["id"]]


# Other tenants


async def test_another_tenants_trace_is_not_found(developer: Client, admin: Client) -> None:
    correlation_id = new_id("cor")
    await invite_user(admin, x_correlation_id=correlation_id)
    refused(await developer.get(f"{PATH}/trace/{correlation_id}"), 404, "trace_not_found")


async def test_a_correlation_id_that_two_tenants_use_shows_each_its_own_part(
    world: World, admin: Client
) -> None:
    correlation_id, other = new_id("cor"), await world.user("tenant_admin")
    invitation = await invite_user(admin, x_correlation_id=correlation_id)
    await invite_user(other, x_correlation_id=correlation_id)
    trace = await read_trace(admin, correlation_id)
    assert [entry["data"]["invitation_id"] for entry in trace["data"]] == [invitation["id"]]
    assert [span["kind"] for span in trace["spans"]].count("job") == 1
