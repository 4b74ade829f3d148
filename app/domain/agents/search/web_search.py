"""Web search as a function that a model can call."""

import asyncio
import time
from datetime import datetime
from typing import Any, Final

from app.domain.agents.definition.api import AgentRuntime, WebSearchInfo
from app.domain.agents.llm.api import Function, load_search_key
from app.domain.agents.tools.api import WEB_SEARCH, CallOutcome, CallStatus, ToolOffer
from app.kit import clock, logs, trace
from app.kit.ids import new_id
from app.kit.texts import storable
from app.services import Services

from . import queries, results
from .engines.protocol import Hit, SearchFailed, SearchRequest
from .engines.registry import SearchEngines
from .queries import FinishedSearch

log = logs.get("search")

# No engine takes longer ones.
MAX_QUERY_CHARS: Final = 400
_NOT_CONFIGURED = "web search is not set up: its search engine lacks an address or a key"
_FUNCTION = Function(
    WEB_SEARCH,
    "Searches the web. Returns titles, addresses and excerpts of web pages.",
    {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What to search for, in a few words",
                "minLength": 1,
                "maxLength": MAX_QUERY_CHARS,
            }
        },
        "required": ["query"],
    },
)
_OFFER = ToolOffer(_FUNCTION, "Web search", None, repeatable=True)


class WebSearch:
    """The web search of one agent, if it is enabled."""

    def __init__(self, services: Services, runtime: AgentRuntime) -> None:
        self._services = services
        self._tenant_id = runtime.tenant_id
        self._info = runtime.web_search
        self.offers = [] if runtime.web_search is None else [_OFFER]

    async def run(
        self, _offer: ToolOffer, _call_id: str, arguments: dict[str, Any], _report: object
    ) -> CallOutcome:
        query = arguments.get("query")
        query = " ".join(storable(query).split()) if isinstance(query, str) else ""
        if not query or len(query) > MAX_QUERY_CHARS:
            message = f"`query` must be a string of 1 to {MAX_QUERY_CHARS} characters"
            return CallOutcome({"error": message}, "failed")
        if self._info is None:
            return _fail(SearchFailed("not_configured", _NOT_CONFIGURED))
        started_at, started = clock.now(), time.perf_counter()
        outcome = await self._answer(self._info, query)
        await self._record(self._info.engine, outcome, started_at, time.perf_counter() - started)
        return outcome

    async def _answer(self, info: WebSearchInfo, query: str) -> CallOutcome:
        try:
            hits = await self._search(info, query)
        except SearchFailed as error:
            log.info("web search failed", engine=info.engine, reason=error.reason)
            return _fail(error)
        # Up to tens of milliseconds for texts that are full of tags and invisible characters.
        selected = await asyncio.to_thread(results.select_results, hits, info.max_results)
        return CallOutcome(
            results.render(selected), sources=tuple(map(results.to_source, selected))
        )

    async def _record(
        self, engine: str, outcome: CallOutcome, started_at: datetime, seconds: float
    ) -> None:
        """Records the search for the trace of the turn, which does not fail without it."""
        count = len(outcome.sources) if outcome.status == "completed" else None
        search = FinishedSearch(
            new_id("wsr"),
            trace.current().correlation_id,
            engine,
            outcome.status,
            count,
            started_at,
            round(seconds * 1000, 3),
        )
        try:
            async with self._services.db.tx(self._tenant_id, autocommit=True) as tx:
                await queries.add_search(tx, self._tenant_id, search)
        except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
            log.warning("a web search was not recorded", reason=str(error)[:200])

    async def _search(self, info: WebSearchInfo, query: str) -> list[Hit]:
        engines = self._services.get(SearchEngines)
        engine = engines.find(info.engine)
        api_key: str | None = ""
        if engine is not None and engine.key_provider is not None:
            api_key = await self._load_key(engine.key_provider)
        if engine is None or api_key is None:
            raise SearchFailed("not_configured", _NOT_CONFIGURED)
        request = SearchRequest(query, info.max_results, info.safe_search, api_key)
        return await engines.search(self._tenant_id, engine, request)

    async def _load_key(self, provider: str) -> str | None:
        async with self._services.db.tx(self._tenant_id, autocommit=True) as tx:
            return await load_search_key(tx, self._services.keyring, self._tenant_id, provider)


def _fail(error: SearchFailed) -> CallOutcome:
    status: CallStatus = "timeout" if error.reason == "timeout" else "failed"
    return CallOutcome({"error": str(error), "code": error.reason}, status)
