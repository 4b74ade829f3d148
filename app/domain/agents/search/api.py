"""What other areas may call."""

from .engines.protocol import SearchFailed, SearchRequest
from .engines.searxng import Searxng, open_egress
from .web_search import WebSearch
