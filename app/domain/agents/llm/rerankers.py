"""Rerankers: models that rate how well each of a few passages answers a question.

Each provider has a row in `RERANK_APIS`; one decoder reads all their answers. A server of the
tenant's own is sent the fields of Jina, which vLLM and LiteLLM take too. Hugging Face's TEI
refuses them, and is sent its own.
"""

import asyncio
import math
from typing import Any, Final

import msgspec

from .errors import ModelFailed, ModelNotConfigured
from .openai_adapter import OpenAIAdapter
from .protocol import Ranking, RerankRequest, Target, UsedTokens, estimate_tokens
from .provider_failures import ranking_broken
from .providers import PROVIDERS

_MAX_BYTES = 1024 * 1024
_MAX_SEARCHES = 1000
_MAX_SERVERS = 1000
_UNPROCESSABLE = 422


class RerankApi(msgspec.Struct, frozen=True):
    """Where a provider's reranker is, and the fields of a request besides model, question and
    passages.
    """

    base_url: str | None
    path: str = "/rerank"
    fields: dict[str, Any] = {}


RERANK_APIS: Final = {
    "cohere": RerankApi("https://api.cohere.com", "/v2/rerank"),
    "jina": RerankApi(PROVIDERS["jina"].base_url, fields={"return_documents": False}),
    "voyage": RerankApi(PROVIDERS["voyage"].base_url),
}
_OWN_SERVER = RerankApi(None)


class _Result(msgspec.Struct):
    index: int
    relevance_score: float | None = None
    score: float | None = None


class _Answer(msgspec.Struct):
    results: list[_Result] | None = None
    data: list[_Result] | None = None
    # Any, because a ranking is not refused for figures that cannot be read.
    usage: Any = None
    meta: Any = None


class _Usage(msgspec.Struct):
    total_tokens: int = 0
    prompt_tokens: int = 0


class _BilledUnits(msgspec.Struct):
    search_units: float = 0


class _Meta(msgspec.Struct):
    billed_units: _BilledUnits


_decoder = msgspec.json.Decoder(_Answer | list[_Result])


def find_api(target: Target) -> RerankApi:
    """Raises ModelNotConfigured for a provider without rerankers."""
    api = _OWN_SERVER if target.base_url is not None else RERANK_APIS.get(target.provider)
    if api is None:
        raise ModelNotConfigured(f"The provider {target.provider} has no rerankers")
    return api


class Rerankers:
    def __init__(self, adapter: OpenAIAdapter) -> None:
        self._adapter = adapter
        # The addresses of servers that take the fields of TEI only.
        self._tei_servers: set[str] = set()

    async def rank(self, target: Target, request: RerankRequest) -> Ranking:
        """Raises ModelFailed, after `request.seconds` at the latest, and ModelNotConfigured."""
        try:
            async with asyncio.timeout(request.seconds):
                return read_ranking(target, await self._post(target, request), request)
        except TimeoutError as error:
            message = f"{target.model}: no ranking within {request.seconds:g} s"
            raise ModelFailed(target.model, "timeout", message) from error

    async def _post(self, target: Target, request: RerankRequest) -> bytes:
        api = find_api(target)
        if target.base_url is None:
            target = msgspec.structs.replace(target, base_url=api.base_url)
        elif target.base_url in self._tei_servers:
            return await self._post_to_tei(target, request)
        fields = {
            "model": target.name_at_provider,
            "query": request.query,
            "documents": request.texts,
            **api.fields,
        }
        limits = (request.seconds, _MAX_BYTES)
        try:
            return await self._adapter.post(target, api.path, fields, *limits)
        except ModelFailed as error:
            if api is not _OWN_SERVER or error.provider_status != _UNPROCESSABLE:
                raise
        raw = await self._post_to_tei(target, request)
        if len(self._tei_servers) >= _MAX_SERVERS:
            self._tei_servers.clear()
        self._tei_servers.add(target.base_url or "")
        return raw

    async def _post_to_tei(self, target: Target, request: RerankRequest) -> bytes:
        fields = {"query": request.query, "texts": request.texts, "truncate": True}
        limits = (request.seconds, _MAX_BYTES)
        return await self._adapter.post(target, _OWN_SERVER.path, fields, *limits)


def read_ranking(target: Target, raw: bytes, request: RerankRequest) -> Ranking:
    """Raises ModelFailed for an answer that does not rate each passage once."""
    try:
        answer = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ranking_broken(target) from error
    if isinstance(answer, list):
        answer = _Answer(answer)
    results = answer.results or answer.data or []
    scores = {result.index: _score_of(result) for result in results}
    is_complete = set(scores) == set(range(len(request.texts))) and len(results) == len(scores)
    ordered = [score for _, score in sorted(scores.items()) if score is not None]
    if not is_complete or len(ordered) != len(scores) or not all(map(math.isfinite, ordered)):
        raise ranking_broken(target)
    searches = _read_searches(answer.meta)
    tokens = _read_tokens(answer.usage)
    if not tokens and not searches:
        # A provider that reports nothing has used tokens all the same.
        tokens = sum(map(estimate_tokens, [request.query, *request.texts]))
    return Ranking(_normalize(ordered), tokens, searches)


def _score_of(result: _Result) -> float | None:
    return result.score if result.relevance_score is None else result.relevance_score


def _normalize(scores: list[float]) -> list[float]:
    """Returns scores from 0 to 1. Some servers return the numbers before the logistic function."""
    if all(0 <= score <= 1 for score in scores):
        return scores
    return [0.5 + 0.5 * math.tanh(score / 2) for score in scores]


def _read_tokens(usage: Any) -> int:
    counts = _convert(usage, _Usage) or _Usage()
    reported = counts.total_tokens or counts.prompt_tokens
    return UsedTokens.from_provider(reported, 0).prompt_tokens


def _read_searches(meta: Any) -> int:
    """Returns the searches that a provider charges for instead of tokens."""
    counts = _convert(meta, _Meta)
    if counts is None or not math.isfinite(counts.billed_units.search_units):
        return 0
    return int(min(max(0.0, counts.billed_units.search_units), _MAX_SEARCHES))


def _convert(value: Any, kind: Any) -> Any:
    """Returns None for a value of another form."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
