"""How far the reading of a document is, and retries of those that failed."""

from typing import Any

import pytest

from app.domain.agents.knowledge import jobs
from app.domain.agents.knowledge.progress import EmbeddingProgress
from app.domain.job import Job
from app.kit.ids import new_id
from app.services import Services
from db.ledger import WorkRow
from tests.agents.knowledge.librarian import HANDBOOK, Librarian, librarian_of
from tests.assertions import refused
from tests.database import run_sql
from tests.scripted_agents import Talker

_ADD = """
WITH accepted AS (
    INSERT INTO work (tenant_id, id, kind, ref_id, state, attempt, max_attempts, correlation_id,
                      run_at, lease_until, last_error)
    VALUES ($1, $4::text, 'test.none', $2::text, $5::text, 2, 5, $4::text,
            now() + $6 * interval '1 second', now() + $6 * interval '1 second', 'broken')
)
INSERT INTO documents (tenant_id, id, agent_id, name, mime_type, size_bytes, status, stage,
                       stage_at, passage_count, embedded_count, work_id, chunk_count, refined_count)
VALUES ($1, $2::text, $3, $2::text, 'text/plain', 1, $7::text, $8, now(), 40, 10, $4::text, 8, $9)
"""


async def _add(
    services: Services,
    talk: Talker,
    status: str,
    *,
    work: str = "leased",
    due: int = 20,
    stage: str | None = None,
    refined: int = 0,
) -> dict[str, Any]:
    """A document whose work nobody runs, because no worker knows its kind."""
    ids = (new_id("doc"), talk.agent_id, new_id("wrk"))
    values = (*ids, work, due, status, stage, refined)
    await run_sql(services, _ADD, talk.client.tenant_id, *values)
    return await librarian_of(talk).document(ids[0])


async def test_progress_shows_the_stage_and_how_much_is_done(
    talk: Talker, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"status": "pending", "work": "pending"}, {"stage": "waiting", "last_error": "broken"}),
        ({"status": "processing"}, {"stage": "reading", "share": None, "is_stuck": False}),
        (
            {"status": "processing", "stage": "embedding"},
            {"stage": "embedding", "share": 0.25, "passages_done": 10, "passages_total": 40},
        ),
        ({"status": "processing", "due": -5}, {"stage": "reading", "is_stuck": True}),
        ({"status": "processing", "work": "pending"}, {"stage": "waiting", "is_stuck": False}),
        ({"status": "processing", "work": "dead"}, {"stage": "waiting", "is_stuck": True}),
        ({"status": "ready", "work": "done"}, {"stage": "ready", "share": 1.0}),
        ({"status": "ready", "work": "done", "refined": 2}, {"stage": "refining", "share": 0.25}),
        ({"status": "failed", "work": "dead"}, {"stage": "failed", "is_stuck": False}),
    ]
    for values, expected in cases:
        with subtests.test(values=values):
            progress = (await _add(services, talk, **values))["progress"]
            assert progress.items() >= expected.items()
            assert (progress["attempt"], progress["max_attempts"]) == (2, 5)
            assert progress["last_seen_at"]
            assert (progress["next_attempt_at"] is None) == (values.get("work") != "pending")


async def test_a_document_that_was_read_is_ready(librarian: Librarian) -> None:
    [document] = await librarian.add(handbook_md=HANDBOOK)
    progress = document["progress"]
    assert (progress["stage"], progress["share"], progress["attempt"]) == ("ready", 1.0, 1)


async def test_progress_is_stored_every_few_seconds_at_most(
    talk: Talker, services: Services
) -> None:
    document = await _add(services, talk, "processing")
    row = WorkRow("wrk_1", talk.client.tenant_id, "", document["id"], 1, 5, "lea_1", "cor_1", None)
    progress = EmbeddingProgress(Job(services, row), 1, 1000)
    for count in (64, 128, 192):
        await progress.store(count)
    shown = (await librarian_of(talk).document(document["id"]))["progress"]
    assert (shown["stage"], shown["passages_done"], shown["passages_total"]) == (
        "embedding",
        64,
        1000,
    )
    short = EmbeddingProgress(Job(services, row), 1, 10)
    await short.store(5)
    assert (await librarian_of(talk).document(document["id"]))["progress"] == shown


async def test_all_failed_documents_are_retried_at_once(
    librarian: Librarian, services: Services
) -> None:
    documents = await librarian.add(a_md=HANDBOOK, b_md=HANDBOOK, c_md=HANDBOOK)
    *ids, refused_id = [document["id"] for document in documents]
    sql = "UPDATE documents SET status = 'failed', error = 'broken' WHERE agent_id = $1"
    await run_sql(services, sql, librarian.agent_id)
    # One that was refused when it was uploaded.
    await run_sql(services, "UPDATE documents SET file_key = NULL WHERE id = $1", refused_id)
    path = f"{librarian.path}/documents/retry-failed"
    answer = await librarian.client.post(path)
    assert (answer.status_code, answer.json()) == (202, {"retried": 2, "not_stored": 1})
    for document_id in ids:
        assert (await librarian.wait_for(document_id))["status"] == "ready"
    assert (await librarian.document(refused_id))["status"] == "failed"
    assert (await librarian.client.post(path)).json() == {"retried": 0, "not_stored": 1}


async def test_a_retried_document_leaves_no_dead_work(talk: Talker, services: Services) -> None:
    document = await _add(services, talk, "failed", work="dead")
    sql = "UPDATE documents SET file_key = 'gone' WHERE id = $1"
    await run_sql(services, sql, document["id"])
    admin = await talk.world.user("tenant_admin", talk.client.tenant_id)
    params = {"record_id": document["id"]}
    assert len((await admin.get("/api/v1/work", params=params)).json()["data"]) == 1
    await talk.client.post(f"{librarian_of(talk).path}/documents/retry-failed")
    assert (await admin.get("/api/v1/work", params=params)).json()["data"] == []


async def test_documents_of_others_are_not_retried(talk: Talker) -> None:
    path = f"{librarian_of(talk).path}/documents/retry-failed"
    stranger = await talk.world.user("tenant_admin")
    refused(await stranger.post(path), 404, "agent_not_found")
    viewer = await talk.world.user("viewer", talk.client.tenant_id)
    refused(await viewer.post(path), 403, "forbidden")


def test_reasons_of_failures_say_what_helps() -> None:
    for error, words in (
        ("unexpected OSError", "log"),
        ("took more than 1800 s", "smaller"),
        ("the embedding model did not answer: busy", "Retry"),
        ("every attempt ended without an outcome", "Retry"),
    ):
        assert words in jobs.explain(error)
