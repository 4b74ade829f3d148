"""Engines at the stub, requests to them and the failures that they raise."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.agents.search.engines.brave import Brave
from app.domain.agents.search.engines.duckduckgo import DuckDuckGo
from app.domain.agents.search.engines.protocol import Engine, Hit, SearchFailed, SearchRequest
from app.domain.agents.search.engines.searxng import Searxng
from app.domain.agents.search.engines.tavily import Tavily
from app.net.egress import Egress
from tests.agents.search.engine_server import (
    ITEMS,
    brave_answer,
    duckduckgo_page,
    searxng_answer,
    tavily_answer,
)

KEY = "key-0123456789-abcdef"
HITS = [Hit(title, url, text) for title, url, text in ITEMS]

# Each with an answer that it can read.
ENGINES: dict[str, tuple[Callable[[Egress, str], Engine], str]] = {
    "duckduckgo": (DuckDuckGo, duckduckgo_page(ITEMS)),
    "searxng": (Searxng, searxng_answer(ITEMS)),
    "brave": (Brave, brave_answer(ITEMS)),
    "tavily": (Tavily, tavily_answer(ITEMS)),
}


def build_request(query: str = "shop hours", **fields: Any) -> SearchRequest:
    values = {"max_results": 5, "safe_search": True, "api_key": KEY, **fields}
    return SearchRequest(query, **values)


async def expect_failure(engine: Engine) -> SearchFailed:
    """Searches, and returns the failure, which names neither the key nor the address."""
    with pytest.raises(SearchFailed) as raised:
        await engine.search(build_request())
    assert KEY not in str(raised.value)
    assert "127.0.0.1" not in str(raised.value)
    return raised.value
