"""Configs of tools with an address."""

from typing import Any


def build_config(tool_type: str, url: str) -> dict[str, Any]:
    match tool_type:
        case "rest_api":
            return {"base_url": url, "endpoints": {"one": {"method": "GET", "path": "/"}}}
        case "webhook":
            return {"url": url}
        case _:
            return {"kind": "mcp", "url": url, "tool": "add"}


# The field of a config that has the address.
URL_FIELDS = {"rest_api": "config.base_url", "webhook": "config.url", "custom": "config.url"}
