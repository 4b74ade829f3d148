"""Searches whose passages a reranker puts in order."""

from collections.abc import AsyncIterator

import pytest

from app.services import Services
from tests.agents.knowledge.librarian import Librarian
from tests.agents.llm.rerank_server import RerankServer, serving_rerankers
from tests.assertions import refused
from tests.database import fetch_rows
from tests.model_server import Reply
from tests.scripted_agents import Talker

_QUERY = "When does the shop in Riga open?"
_TOWNS = "\n\n".join(
    f"# {town}\n\nThe shop in {town} opens at {hour}, and no other shop does."
    for hour, town in enumerate(("Riga", "Oslo", "Bern", "Rome"), 6)
)


@pytest.fixture
async def reranker() -> AsyncIterator[RerankServer]:
    async with serving_rerankers() as server:
        yield server


@pytest.fixture
async def library(librarian: Librarian, reranker: RerankServer) -> Librarian:
    """Documents about four towns, and a reranker that prefers Rome."""
    key = {"provider": "lab", "name": "Lab", "api_key": "sk-0123456789ab"}
    body = {**key, "base_url": f"{reranker.url}/v1"}
    assert (await librarian.client.post("/api/v1/api-keys", body)).status_code == 201
    await librarian.add(towns_md=_TOWNS)
    await _set(librarian, rerank_model="lab/bge")
    return librarian


async def _set(librarian: Librarian, **settings: object) -> None:
    answer = await librarian.client.http.put(f"{librarian.path}/retrieval", json=settings)
    assert answer.status_code == 200, answer.text


def _prefer(town: str, found: list[str]) -> dict[str, object]:
    scores = [0.9 if text.startswith(town) else 0.1 for text in found]
    ranking = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return {"results": ranking, "usage": {"total_tokens": 90}}


async def _find(librarian: Librarian, limit: int = 5) -> list[tuple[str, float]]:
    found = await librarian.search(_QUERY, limit)
    return [(item["heading"], item["relevance_score"]) for item in found]


async def test_the_reranker_orders_what_the_search_found_and_is_counted(
    library: Librarian, reranker: RerankServer, services: Services
) -> None:
    await _set(library)
    fused = await _find(library)
    assert fused[0][0] == "Riga"
    assert not reranker.requests
    await _set(library, rerank_model="lab/bge")
    await _find(library)
    _, key, fields = reranker.requests[0]
    assert (key, fields["model"], fields["query"]) == ("Bearer sk-0123456789ab", "bge", _QUERY)
    texts = fields["documents"]
    assert len(texts) == 4
    reranker.body = _prefer("Rome", texts)
    found = await _find(library)
    assert found[0] == ("Rome", 0.9)
    assert [heading for heading, _ in found[1:]] == [
        heading for heading, _ in fused if heading != "Rome"
    ]
    assert await _find(library, limit=1) == found[:1]
    sql = "SELECT source, model, prompt_tokens FROM usage WHERE agent_id = $1"
    rows = await fetch_rows(services, sql, library.agent_id)
    assert [tuple(row.values()) for row in rows] == [("rerank", "lab/bge", 90)] * 3


async def test_the_order_of_the_search_stays_when_the_reranker_fails(
    library: Librarian, reranker: RerankServer, subtests: pytest.Subtests
) -> None:
    await _set(library)
    fused = await _find(library)
    await _set(library, rerank_model="lab/bge", rerank_timeout_ms=100)
    for name, status, body in (
        ("refused key", 401, {"message": "no"}),
        ("too many requests", 429, {"message": "no"}),
        ("broken", 200, {"results": []}),
    ):
        with subtests.test(name):
            reranker.status, reranker.body = status, body
            assert await _find(library) == fused
    with subtests.test("timeout"):
        reranker.released.clear()
        assert await _find(library) == fused
    with subtests.test("missing key"):
        await _set(library, rerank_model="cohere/rerank-v3.5")
        assert await _find(library) == fused


async def test_a_turn_quotes_what_the_reranker_prefers(
    library: Librarian, talk: Talker, reranker: RerankServer
) -> None:
    await _set(library, rerank_model="lab/bge", max_passages=1)
    talk.script(Reply(texts=["At six [1]."]))
    question = "When does the shop open?"
    (source,) = (await talk.say(question))["sources"]
    texts = reranker.requests[-1][2]["documents"]
    preferred = next(town for town in ("Oslo", "Rome") if town != source["metadata"]["heading"])
    reranker.body = _prefer(preferred, texts)
    (source,) = (await talk.say(question))["sources"]
    assert (source["metadata"]["heading"], source["relevance_score"]) == (preferred, 0.9)


async def test_a_model_that_nobody_offers_is_refused(
    librarian: Librarian, subtests: pytest.Subtests
) -> None:
    path = f"{librarian.path}/retrieval"
    cases = {
        "openai/gpt-4o": "OpenAI has no rerankers here; use cohere/…, jina/…, voyage/…",
        "lab/bge": "does not start with a known provider of rerankers; use cohere/…",
        "rerank-v3.5": "does not start with a known provider of rerankers; use cohere/…",
        "local/smollm2": "does not start with a known provider of rerankers; use cohere/…",
    }
    for model, problem in cases.items():
        with subtests.test(model=model):
            answer = await librarian.client.http.put(path, json={"rerank_model": model})
            details = refused(answer, 422, "validation_error")["details"]
            assert details["rerank_model"].startswith(problem)
    for timeout in (99, 5001):
        answer = await librarian.client.http.put(path, json={"rerank_timeout_ms": timeout})
        assert "rerank_timeout_ms" in refused(answer, 422, "validation_error")["details"]
    answer = await librarian.client.http.put(path, json={"rerank_model": "jina/jina-reranker-m0"})
    assert answer.status_code == 200
