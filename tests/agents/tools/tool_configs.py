"""Valid configs of each type of tool, and helpers that validate configs."""

from typing import Any

import pytest

from app.domain.agents.tools import configs
from app.domain.agents.tools.configs import Config
from app.kit.errors import Invalid
from app.net.egress import Guard

PATH = "/v1/tools"
GUARD = Guard(["127.0.0.1"])
ENDPOINT = {"method": "GET", "path": "/users/{id}"}

# A valid config of each type, with every key.
VALID_CONFIGS: dict[str, dict[str, Any]] = {
    "rest_api": {
        "base_url": "https://api.example.com/v1",
        "endpoints": {
            "get": {
                **ENDPOINT,
                "default_params": {"a": 1, "b": ["x", None], "c": True},
                "default_headers": {"X-A": "1"},
            },
            "put": {"method": "PUT", "path": ""},
        },
        "timeout_ms": 1000,
        "retry_count": 3,
    },
    "webhook": {
        "url": "https://hooks.example.com/in?a=1",
        "method": "PUT",
        "headers": {"X-A": "1"},
        "timeout_ms": 1,
    },
    "function": {"runtime": "javascript", "code": "x", "timeout_ms": 300_000, "packages": []},
    "script": {
        "runtime": "bash",
        "entrypoint": "main.sh",
        "files": {"main.sh": "true", "_data.v1-2.json": "{}"},
        "timeout_ms": 1,
        "packages": [],
    },
    "database": {
        "db_type": "postgresql",
        "host": "db.example.com",
        "port": 5433,
        "database": "shop",
        "ssl": True,
        "allowed_operations": ["select", "insert"],
        "max_rows": 10_000,
        "timeout_ms": 1,
    },
    "custom": {"kind": "mcp", "url": "https://mcp.example.com/mcp", "tool": "find"},
}


def tool_body(tool_type: str, config: Any) -> dict[str, Any]:
    return {
        "name": "T",
        "category": "custom",
        "tool_type": tool_type,
        "config": config,
        "auth_type": "none",
    }


def find_invalid_keys(
    tool_type: str, config: dict[str, Any], *, allow_http: bool = False
) -> set[str]:
    """Returns the keys that are refused."""
    with pytest.raises(Invalid) as raised:
        configs.validate(tool_type, config, GUARD, "config", allow_http=allow_http)
    return set(raised.value.details or {})


def validate_config(tool_type: str, config: dict[str, Any], *, allow_http: bool = False) -> Config:
    return configs.validate(tool_type, config, GUARD, "config", allow_http=allow_http)
