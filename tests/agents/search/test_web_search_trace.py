"""Web searches as spans in the trace of a turn."""

from datetime import datetime
from typing import Any

from app.domain.agents.search import queries
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.agents.search.configs import add_search_key, set_config
from tests.agents.search.engine_server import ITEMS, EngineServer, brave_answer, searxng_answer
from tests.assertions import refused
from tests.conversations.chat.job_helpers import accept_job, run_job
from tests.database import fetch_rows
from tests.model_server import Reply
from tests.platform.events.api import PATH, read_trace
from tests.platform.events.log_entries import SPAN_KEYS
from tests.scripted_agents import Talker
from tests.world import World

_QUERY = "a question of private nature"
_CALL = ("web_search", {"query": _QUERY})


async def _enable(talk: Talker, engine_name: str = "searxng", **fields: Any) -> None:
    await set_config(talk.client, talk.agent_id, enabled=True, search_engine=engine_name, **fields)


def _script_search(talk: Talker, *calls: tuple[str, Any]) -> None:
    talk.script(Reply(texts=[], calls=list(calls or (_CALL,))), Reply(texts=["At nine."]))


async def _say(talk: Talker) -> tuple[str, str]:
    """Returns the ids of the request and of its trace."""
    ids = {"X-Correlation-ID": new_id("cor"), "X-Request-ID": new_id("req")}
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=ids)
    assert answer.status_code == 200, answer.text
    return ids["X-Request-ID"], ids["X-Correlation-ID"]


async def _list_searches(talk: Talker, correlation_id: str) -> list[dict[str, Any]]:
    trace = await read_trace(talk.client, correlation_id)
    return [span for span in trace["spans"] if span["kind"] == "tool"]


async def test_a_search_is_a_span_within_the_request(talk: Talker) -> None:
    await _enable(talk, max_results=2)
    _script_search(talk)
    before = clock.epoch()
    request_id, correlation_id = await _say(talk)
    after = clock.epoch()
    (span,) = await _list_searches(talk, correlation_id)
    assert set(span) == SPAN_KEYS
    assert (span["parent_id"], span["status"]) == (request_id, "completed")
    assert span["name"] == "Web search by searxng, 2 results"
    start = datetime.fromisoformat(span["started_at"]).timestamp()
    assert before - 0.001 <= start < start + span["duration_ms"] / 1000 <= after + 0.001


async def test_a_search_of_an_asynchronous_turn_is_a_span_within_its_job(
    talk: Talker, services: Services
) -> None:
    await _enable(talk)
    _script_search(talk)
    job = await accept_job(talk)
    await run_job(services, job)
    sql = "SELECT id, correlation_id FROM work WHERE ref_id = $1"
    (work,) = await fetch_rows(services, sql, job["job_id"])
    (span,) = await _list_searches(talk, work["correlation_id"])
    assert (span["parent_id"], span["status"]) == (work["id"], "completed")


async def test_each_search_is_a_span_also_of_a_sub_agent(
    talk: Talker, engine: EngineServer
) -> None:
    helper = await talk.with_helper()
    await _enable(helper)
    await _enable(talk)
    engine.body = searxng_answer(ITEMS[:1])
    _script_search(helper)
    delegation = ("delegate_to_helper", {"task": "search"})
    _script_search(talk, _CALL, _CALL, delegation)
    _, correlation_id = await _say(talk)
    spans = await _list_searches(talk, correlation_id)
    assert [span["name"] for span in spans] == ["Web search by searxng, 1 result"] * 3
    assert len({span["id"] for span in spans}) == 3


async def test_a_search_without_results_and_a_failed_one_are_spans(
    talk: Talker, engine: EngineServer
) -> None:
    await add_search_key(talk.client, "brave")
    await _enable(talk, "brave")
    for status, expected in (
        (200, ("Web search by brave, 0 results", "completed")),
        (403, ("Web search by brave", "failed")),
    ):
        engine.status, engine.body = status, brave_answer([])
        _script_search(talk)
        _, correlation_id = await _say(talk)
        (span,) = await _list_searches(talk, correlation_id)
        assert (span["name"], span["status"]) == expected


async def test_a_call_that_does_not_search_is_no_span(talk: Talker, engine: EngineServer) -> None:
    await _enable(talk)
    _script_search(talk, ("web_search", {"query": ""}))
    _, correlation_id = await _say(talk)
    assert await _list_searches(talk, correlation_id) == []


async def test_neither_the_query_nor_the_key_nor_a_result_is_recorded(
    talk: Talker, services: Services, engine: EngineServer
) -> None:
    secret = "brave-secret-0123456789"
    await add_search_key(talk.client, "brave", secret)
    await _enable(talk, "brave")
    engine.body = brave_answer(ITEMS)
    _script_search(talk)
    _, correlation_id = await _say(talk)
    sql = "SELECT s::text AS text FROM web_searches s WHERE tenant_id = $1"
    (row,) = await fetch_rows(services, sql, talk.client.tenant_id)
    spans = await _list_searches(talk, correlation_id)
    for text in (_QUERY, secret, ITEMS[0][0], ITEMS[0][1], engine.url):
        assert text not in row["text"]
        assert text not in str(spans)


async def test_another_tenant_does_not_see_the_search(talk: Talker, world: World) -> None:
    await _enable(talk)
    _script_search(talk)
    _, correlation_id = await _say(talk)
    other = await world.user("tenant_admin")
    refused(await other.get(f"{PATH}/trace/{correlation_id}"), 404, "trace_not_found")
    body = {"name": "Agent", "primary_model": "local/smollm2", "system_prompt": "Help."}
    headers = {"X-Correlation-ID": correlation_id}
    assert (await other.post("/api/v1/agents", body, headers=headers)).status_code == 201
    trace = await read_trace(other, correlation_id)
    assert [span["kind"] for span in trace["spans"]] == ["request"]


async def test_a_search_that_cannot_be_recorded_still_has_its_results(
    talk: Talker, monkeypatch: Any
) -> None:
    monkeypatch.setattr(queries, "_ADD_SEARCH", "SELECT 1 / 0")
    await _enable(talk)
    _script_search(talk)
    assert len((await talk.say("Hi"))["sources"]) == len(ITEMS)
