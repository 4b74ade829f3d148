from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

SearchEngine = Annotated[
    Literal["duckduckgo", "searxng", "brave", "tavily"],
    Meta(
        description="searxng needs PARLEY_SEARXNG_URL; brave and tavily need a key of the same "
        "provider in /api/v1/api-keys"
    ),
]
MaxResults = Annotated[int, Meta(ge=1, le=20, description="The most results of one search")]
SafeSearch = Annotated[
    bool,
    Meta(
        description="Leave out adult results. tavily does so for keys of its enterprise plan only: "
        "with another key set it to false, or searches may fail"
    ),
]

_CONFIG = {
    "enabled": True,
    "search_engine": "duckduckgo",
    "max_results": 5,
    "safe_search": True,
}


class WebSearchConfigView(msgspec.Struct, kw_only=True):
    """The defaults are the config of an agent that has none."""

    example: ClassVar[dict[str, Any]] = _CONFIG

    enabled: bool = False
    search_engine: SearchEngine = "duckduckgo"
    max_results: MaxResults = 5
    safe_search: SafeSearch = True


class UpdateWebSearchConfig(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"max_results": 10, "safe_search": True}

    enabled: bool | UnsetType = UNSET
    search_engine: SearchEngine | UnsetType = UNSET
    max_results: MaxResults | UnsetType = UNSET
    safe_search: SafeSearch | UnsetType = UNSET
