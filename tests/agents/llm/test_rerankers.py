"""Requests to rerankers and what becomes of their answers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from app.domain.agents.llm import prices, rerankers
from app.domain.agents.llm.errors import ModelFailed, ModelNotConfigured
from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.protocol import Ranking, RerankRequest, Target, estimate_tokens
from app.domain.agents.llm.rerankers import RERANK_APIS
from app.net.egress import Guard
from tests.agents.llm.answers import KEY, STATUS_REASONS, check_refusal
from tests.agents.llm.openai_provider import JSON, MIB, serve_endlessly
from tests.agents.llm.rerank_server import RerankServer, serving_rerankers

_TEXTS = ["Dogs bark", "Red cats purr", "Cats sleep"]
_REQUEST = RerankRequest("red cats", _TEXTS, 5.0)
_SCORES = [0.0, 1.0, 0.5]


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RerankServer]:
    """Serves as all providers."""
    async with serving_rerankers() as server:
        for name, api in RERANK_APIS.items():
            url = f"{server.url}/v1" if api.path == "/rerank" else server.url
            moved = msgspec.structs.replace(api, base_url=url)
            monkeypatch.setitem(RERANK_APIS, name, moved)
        yield server


async def _fail(models: Models, target: Target, request: RerankRequest = _REQUEST) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        await models.rerank(target, request)
    return caught.value


def _own_server(server: RerankServer) -> Target:
    return Target("lab/bge-reranker", "lab", KEY, f"{server.url}/v1")


async def test_each_provider_ranks_in_its_own_form(
    model_gateway: Models, server: RerankServer, subtests: pytest.Subtests
) -> None:
    estimate = sum(map(estimate_tokens, ["red cats", *_TEXTS]))
    cases: dict[str, tuple[str | None, str, Ranking]] = {
        "cohere/rerank-v3.5": (None, "/v2/rerank", Ranking(_SCORES, 0, 1)),
        "jina/jina-reranker-m0": (None, "/v1/rerank", Ranking(_SCORES, 90)),
        "voyage/voyage-rerank": (None, "/v1/rerank", Ranking(_SCORES, 90)),
        "lab/bge-reranker": (f"{server.url}/v1", "/v1/rerank", Ranking(_SCORES, 90)),
        "tei/bge-reranker": (server.url, "/rerank", Ranking(_SCORES, estimate)),
    }
    for model, (base_url, path, expected) in cases.items():
        with subtests.test(model=model):
            provider, _, name = model.partition("/")
            ranking = await model_gateway.rerank(Target(model, provider, KEY, base_url), _REQUEST)
            assert ranking == expected
            sent_to, key, fields = server.requests[-1]
            assert (sent_to, key) == (path, f"Bearer {KEY}")
            assert fields.get("model", name) == name
            assert fields.get("documents", fields.get("texts")) == _TEXTS


async def test_a_server_of_tei_refuses_once_and_gets_its_own_form_from_then_on(
    model_gateway: Models, server: RerankServer
) -> None:
    for _ in range(2):
        await model_gateway.rerank(Target("tei/bge", "tei", KEY, server.url), _REQUEST)
    assert ["texts" in fields for _, _, fields in server.requests] == [False, True, True]


async def test_a_refusal_is_a_failure_with_its_reason(
    model_gateway: Models, server: RerankServer, subtests: pytest.Subtests
) -> None:
    server.body = {"message": "no"}
    for status, reason, ours in STATUS_REASONS:
        with subtests.test(status=status):
            server.status = status
            error = await _fail(model_gateway, Target("cohere/rerank-v3.5", "cohere", KEY))
            check_refusal(error, "cohere/rerank-v3.5", status, reason, ours)


def _list_results(*indexes: Any, score: Any = 0.5) -> dict[str, Any]:
    return {"results": [{"index": index, "relevance_score": score} for index in indexes]}


async def test_an_answer_that_does_not_rate_each_passage_once_is_broken(
    model_gateway: Models, server: RerankServer, subtests: pytest.Subtests
) -> None:
    cases: dict[str, Any] = {
        "one too few": _list_results(0, 1),
        "one too many": _list_results(0, 1, 2, 3),
        "one twice": _list_results(0, 1, 1),
        "one twice beside all": _list_results(0, 1, 2, 2),
        "wrong ones": _list_results(1, 2, 3),
        "one below zero": _list_results(-1, 0, 1),
        "a text for a number": _list_results("0", 1, 2),
        "a text for a score": _list_results(0, 1, 2, score="high"),
        "no score": _list_results(0, 1, 2, score=None),
        "an endless score": b'{"results": [%s]}'
        % b",".join(b'{"index": %d, "score": 1e999}' % n for n in range(3)),
        "nothing": {},
        "a list of numbers": [1, 2, 3],
        "no JSON": b"<html>",
        "no text": b"\xff\xfe",
        "deep": b'{"x": ' + b"[" * 100_000,
    }
    for name, body in cases.items():
        with subtests.test(name):
            server.body = body
            assert (await _fail(model_gateway, _own_server(server))).reason == "broken"


async def test_scores_before_the_logistic_function_become_shares(
    model_gateway: Models, server: RerankServer
) -> None:
    scores = [-1000.0, 0.0, 8.5]
    results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    server.body = {"results": results}
    ranking = await model_gateway.rerank(_own_server(server), _REQUEST)
    assert ranking.scores == pytest.approx([0.0, 0.5, 0.9998], abs=1e-4)


async def test_figures_that_cannot_be_read_spoil_no_ranking(
    model_gateway: Models, server: RerankServer
) -> None:
    server.body = {**_list_results(0, 1, 2), "usage": {"total_tokens": "many"}, "meta": [1]}
    ranking = await model_gateway.rerank(_own_server(server), _REQUEST)
    assert ranking.prompt_tokens == sum(map(estimate_tokens, ["red cats", *_TEXTS]))
    server.body = {
        **_list_results(0, 1, 2),
        "usage": {"total_tokens": 10**15},
        "meta": {"billed_units": {"search_units": 1e18}},
    }
    ranking = await model_gateway.rerank(_own_server(server), _REQUEST)
    assert (ranking.prompt_tokens, ranking.searches) == (10_000_000, 1000)


async def test_a_ranking_that_comes_too_late_is_a_timeout(
    model_gateway: Models, server: RerankServer
) -> None:
    server.released.clear()
    request = msgspec.structs.replace(_REQUEST, seconds=0.1)
    error = await _fail(model_gateway, _own_server(server), request)
    assert error.reason == "timeout"


async def test_an_endless_answer_is_broken(model_gateway: Models) -> None:
    async with serve_endlessly(JSON, b" " * MIB) as (url, sent_bytes):
        error = await _fail(model_gateway, Target("lab/one", "lab", KEY, url))
    assert error.reason == "broken"
    assert sent_bytes[0] < 40 * MIB


async def test_an_address_that_is_not_allowed_is_not_called(
    server: RerankServer, model_gateway: Models
) -> None:
    guarded = Models(Guard(()), model_gateway._redis, has_local=False)
    try:
        assert (await _fail(guarded, _own_server(server))).reason == "refused"
    finally:
        await guarded.close()
    assert server.requests == []


async def test_a_model_without_a_key_or_a_reranker_is_not_configured(
    model_gateway: Models, subtests: pytest.Subtests
) -> None:
    targets = [
        Target("cohere/rerank-v3.5", "cohere"),
        Target("openai/gpt-4o", "openai", KEY),
        Target("local/smollm2", "local"),
        Target("nobody/x", "nobody", KEY),
        Target("../x", "lab", KEY, "http://127.0.0.1:1"),
    ]
    for target in targets:
        with subtests.test(model=target.model), pytest.raises(ModelNotConfigured):
            await model_gateway.rerank(target, _REQUEST)


async def test_many_servers_of_tei_are_forgotten_together(
    model_gateway: Models, server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerankers, "_MAX_SERVERS", 1)
    urls = [server.url, server.url.replace("127.0.0.1", "localhost")]
    model_gateway._rerankers._tei_servers.add(urls[1])
    await model_gateway.rerank(Target("tei/bge", "tei", KEY, urls[0]), _REQUEST)
    assert model_gateway._rerankers._tei_servers == {urls[0]}


async def test_rankings_at_once_do_not_mix(model_gateway: Models, server: RerankServer) -> None:
    requests = [RerankRequest("cats", ["cats"] * count, 5.0) for count in range(1, 9)]
    target = _own_server(server)
    rankings = await asyncio.gather(*(model_gateway.rerank(target, item) for item in requests))
    assert [len(ranking.scores) for ranking in rankings] == list(range(1, 9))


async def test_a_ranking_costs_by_searches_or_by_tokens() -> None:
    assert await prices.rerank_cost_usd("cohere/rerank-v3.5", 0, 2) == pytest.approx(0.004)
    assert await prices.rerank_cost_usd("voyage/rerank-2.5", 1000, 0) == pytest.approx(5e-5)
    assert await prices.rerank_cost_usd("lab/bge-reranker", 1000, 0) == 0.0
