"""What other areas may call."""

from app.domain.agents.search.engines.protocol import SearchFailed, SearchRequest
from app.domain.agents.search.engines.searxng import Searxng, open_egress
from app.domain.agents.search.web_search import WebSearch
