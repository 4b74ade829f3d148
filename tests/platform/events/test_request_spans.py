"""The span of a request in a trace: it lasts as long as the request, streams included."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.domain.platform.events import request_spans
from app.domain.platform.events.request_spans import RequestSpans
from app.kit import clock
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import wait_until
from tests.conversations.chat.conversation_helpers import start_conversation
from tests.database import fetch_rows
from tests.http.routes import stream_end
from tests.model_server import Reply
from tests.platform.events.api import read_trace
from tests.platform.events.database import wait_for_request_span
from tests.scripted_agents import Talker
from tests.world import Client

_ENDED = ("POST /test/stream", 200)


async def _read_span(client: Client, services: Services, ids: dict[str, str]) -> dict[str, Any]:
    """Returns the request's span, as soon as its end is stored."""
    await wait_for_request_span(services, ids["X-Request-ID"])
    spans = (await read_trace(client, ids["X-Correlation-ID"]))["spans"]
    (span,) = [span for span in spans if span["kind"] == "request"]
    assert span["id"] == ids["X-Request-ID"]
    return {**span, "spans": spans}


def _new_ids() -> dict[str, str]:
    return {"X-Correlation-ID": new_id("cor"), "X-Request-ID": new_id("req")}


def _bounds(span: dict[str, Any]) -> tuple[datetime, datetime]:
    started = datetime.fromisoformat(span["started_at"])
    return started, started + timedelta(milliseconds=span["duration_ms"])


async def test_the_span_of_a_chat_covers_the_call_of_the_model(
    talk: Talker, services: Services, subtests: pytest.Subtests
) -> None:
    for way in ("chat", "chat/stream"):
        with subtests.test(way=way):
            conversation_id, ids = await start_conversation(talk), _new_ids()
            talk.script(Reply(delay=0.05))
            body = {"message": "Hi", "conversation_id": conversation_id}
            before = clock.now()
            await talk.client.post(f"{talk.path}/{way}", body, headers=ids)
            after = clock.now()
            span = await _read_span(talk.client, services, ids)
            started, ended = _bounds(span)
            (model,) = [item for item in span["spans"] if item["kind"] == "model"]
            model_started, model_ended = _bounds(model)
            # Durations are in whole milliseconds.
            tolerance = timedelta(milliseconds=2)
            assert before - tolerance <= started <= model_started + tolerance
            assert model_ended - tolerance <= ended <= after + tolerance


async def test_the_span_of_a_stream_lasts_until_the_stream_ends(
    developer: Client, services: Services
) -> None:
    stream_end.clear()
    ids = _new_ids()
    request = asyncio.create_task(developer.post("/test/stream", headers=ids))
    sql = "SELECT 1 FROM event_log WHERE request_id = $1"
    await wait_until(lambda: fetch_rows(services, sql, ids["X-Request-ID"]))
    assert not request.done()
    moment = clock.now()
    stream_end.set()
    assert (await request).text == ": first\n\n: last\n\n"
    _, ended = _bounds(await _read_span(developer, services, ids))
    assert ended >= moment - timedelta(milliseconds=1)


async def test_requests_with_the_same_ids_are_one_span_from_the_first_to_the_last(
    developer: Client, services: Services
) -> None:
    """A client that repeats a request may repeat its ids."""
    now, ids = clock.now(), _new_ids()
    await developer.post("/test/stream", headers=ids)
    current = Trace(ids["X-Correlation-ID"], ids["X-Request-ID"])
    current.event_tenants.add(developer.tenant_id)
    for start in (now - timedelta(seconds=60), now - timedelta(seconds=30)):
        services.get(RequestSpans).add(current, *_ENDED, start, 5.0)

    async def has_all_rows() -> bool:
        sql = "SELECT 1 FROM request_spans WHERE request_id = $1"
        return len(await fetch_rows(services, sql, ids["X-Request-ID"])) == 3

    await wait_until(has_all_rows)
    started, ended = _bounds(await _read_span(developer, services, ids))
    assert started == now - timedelta(seconds=60)
    assert ended >= now


async def test_a_request_without_events_stores_no_span(
    developer: Client, services: Services
) -> None:
    read, written = _new_ids(), _new_ids()
    await developer.get("/auth/me", headers=read)
    await developer.post("/test/stream", headers=written)
    await _read_span(developer, services, written)
    sql = "SELECT 1 FROM request_spans WHERE request_id = $1"
    assert await fetch_rows(services, sql, read["X-Request-ID"]) == []


async def test_spans_of_many_requests_are_stored_together(
    developer: Client, services: Services
) -> None:
    requests = [_new_ids() for _ in range(20)]
    await asyncio.gather(*(developer.post("/test/stream", headers=ids) for ids in requests))
    for ids in requests:
        await _read_span(developer, services, ids)


_WAITING = "SELECT 1 FROM pg_locks WHERE relation = 'request_spans'::regclass AND NOT granted"
_STORED = """
SELECT duration_ms::int AS number, xmin::text AS transaction FROM request_spans
WHERE correlation_id = $1 ORDER BY duration_ms
"""


async def test_while_the_database_is_slow_one_statement_waits_and_the_spans_are_limited(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_spans, "_DELAY_SECONDS", 0)
    monkeypatch.setattr(request_spans, "_MAX_PENDING", 3)
    spans, current = RequestSpans(services.db), Trace(new_id("cor"), new_id("req"))
    current.event_tenants.add(new_id("ten"))

    async def wait_for(*numbers: int) -> list[dict[str, Any]]:
        async def are_stored() -> bool:
            rows = await fetch_rows(services, _STORED, current.correlation_id)
            return {row["number"] for row in rows} >= set(numbers)

        await wait_until(are_stored)
        return await fetch_rows(services, _STORED, current.correlation_id)

    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("LOCK TABLE request_spans IN ACCESS EXCLUSIVE MODE")
        spans.add(current, *_ENDED, clock.now(), 0.001)
        await wait_until(lambda: fetch_rows(services, _WAITING))
        for number in (2, 3, 4):
            spans.add(current, *_ENDED, clock.now(), number / 1000)
            # A second writer would begin meanwhile.
            await fetch_rows(services, "SELECT 1")
    assert [row["number"] for row in await wait_for(1, 2, 3)] == [1, 2, 3]
    spans.add(current, *_ENDED, clock.now(), 0.005)
    rows = await wait_for(5)
    assert [row["number"] for row in rows] == [1, 2, 3, 5]
    assert len({row["transaction"] for row in rows}) <= 3
