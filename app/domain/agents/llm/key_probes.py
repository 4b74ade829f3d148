"""Tests keys of providers without chat models: of search, speech and rerankers."""

from typing import Any, Final

import msgspec
from yarl import URL

from app.net.egress import BlockedAddress, Egress, EgressError, EgressTimeout

from .errors import ModelFailed, refused_by_provider
from .protocol import Target
from .provider_failures import error_message

_SECONDS = 5.0
_OK = 200
_KEY_MARK = "{key}"
# Of ElevenLabs: the key is valid, but restricted to other requests.
_MISSING_PERMISSIONS = "missing_permissions"


class Probe(msgspec.Struct, frozen=True):
    """A small request that a provider answers with 200 for a valid key only."""

    method: str
    address: str
    path: str
    headers: dict[str, str]
    success: str
    query: dict[str, str] = {}
    body: dict[str, Any] | None = None


def _probe_reranker(address: str, model: str) -> Probe:
    return Probe(
        "POST",
        address,
        "/v1/rerank",
        {"Content-Type": "application/json", "Authorization": f"Bearer {_KEY_MARK}"},
        "The provider accepted the key and ranked a text",
        body={"model": model, "query": "test", "documents": ["test"]},
    )


PROBES: Final = {
    "brave": Probe(
        "GET",
        "https://api.search.brave.com",
        "/res/v1/web/search",
        {"Accept": "application/json", "X-Subscription-Token": _KEY_MARK},
        "The search engine accepted the key and answered a search",
        query={"q": "test", "count": "1"},
    ),
    "tavily": Probe(
        "POST",
        "https://api.tavily.com",
        "/search",
        {"Content-Type": "application/json", "Authorization": f"Bearer {_KEY_MARK}"},
        "The search engine accepted the key and answered a search",
        body={"query": "test", "max_results": 1},
    ),
    "elevenlabs": Probe(
        "GET",
        "https://api.elevenlabs.io",
        "/v2/voices",
        {"Accept": "application/json", "xi-api-key": _KEY_MARK},
        "The provider accepted the key and lists voices",
        query={"page_size": "1"},
    ),
    "jina": _probe_reranker("https://api.jina.ai", "jina-reranker-v2-base-multilingual"),
    "voyage": _probe_reranker("https://api.voyageai.com", "rerank-2.5-lite"),
}


async def send(egress: Egress, target: Target, probe: Probe) -> str:
    """Returns what the test of the key shows. Raises ModelFailed when the key is not usable now."""
    headers = {
        name: value.replace(_KEY_MARK, target.api_key or "")
        for name, value in probe.headers.items()
    }
    try:
        answer = await egress.request(
            probe.method,
            URL(f"{probe.address}{probe.path}").with_query(probe.query),
            headers=headers,
            body=None if probe.body is None else msgspec.json.encode(probe.body),
            timeout_seconds=_SECONDS,
        )
    except EgressTimeout as error:
        raise ModelFailed(target.model, "timeout", f"{target.model}: {error}") from error
    except BlockedAddress as error:
        raise ModelFailed(target.model, "refused", f"{target.model}: {error}") from error
    except EgressError as error:
        raise ModelFailed(target.model, "unreachable", f"{target.model}: {error}") from error
    if answer.status == _OK:
        return probe.success
    return _explain(target, answer.status, _decode(answer.body))


def _explain(target: Target, status: int, body: Any) -> str:
    detail = body.get("detail") if isinstance(body, dict) else None
    if isinstance(detail, dict) and detail.get("status") == _MISSING_PERMISSIONS:
        return "The provider accepted the key, which is restricted: what it may do was not tested"
    message = error_message(target, _find_message(body), f"the provider answered {status}")
    raise refused_by_provider(target.model, status, message)


def _decode(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _find_message(body: Any) -> Any:
    """The providers wrap the message as `error.detail`, `detail.error` or `detail.message`."""
    while isinstance(body, dict):
        body = next((body[name] for name in ("error", "detail", "message") if name in body), None)
    return body
