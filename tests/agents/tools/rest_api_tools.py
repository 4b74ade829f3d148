"""Creates tools of type rest_api."""

from typing import Any

from tests.agents.tools.factories import ToolCaller
from tests.agents.tools.site import Site


def build_endpoint(method: str = "GET", path: str = "/things", **fields: Any) -> dict[str, Any]:
    return {"method": method, "path": path, **fields}


async def create_rest_api(
    tools: ToolCaller, site: Site, endpoint: dict[str, Any] | None = None, **fields: Any
) -> str:
    config = {
        "base_url": site.url,
        "endpoints": {"one": endpoint or build_endpoint()},
        **fields.pop("config", {}),
    }
    return await tools.create("rest_api", config, **fields)
