"""The config of each type of tool: which keys it needs, and how problems are named."""

from typing import Any

import pytest

from app.domain.agents.tools import configs
from app.domain.agents.tools.configs import TOOL_TYPES, is_repeatable
from app.domain.agents.tools.stored_auth import parse_config
from tests.agents.tools.tool_configs import (
    ENDPOINT,
    GUARD,
    PATH,
    VALID_CONFIGS,
    find_invalid_keys,
    tool_body,
    validate_config,
)
from tests.assertions import refused
from tests.world import Client

REQUIRED = [
    ("rest_api", "base_url"),
    ("rest_api", "endpoints"),
    ("webhook", "url"),
    ("function", "runtime"),
    ("function", "code"),
    ("script", "runtime"),
    ("script", "entrypoint"),
    ("script", "files"),
    ("database", "db_type"),
    ("database", "database"),
    ("custom", "kind"),
    ("custom", "url"),
]


def test_the_valid_configs_cover_every_tool_type() -> None:
    assert VALID_CONFIGS.keys() == TOOL_TYPES.keys()


async def test_a_config_with_every_key_is_returned_unchanged(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for tool_type in VALID_CONFIGS:
        with subtests.test(tool_type=tool_type):
            answer = await developer.post(PATH, tool_body(tool_type, VALID_CONFIGS[tool_type]))
            assert answer.status_code == 201, answer.text
            view = await developer.get(f"{PATH}/{answer.json()['data']['id']}")
            assert view.json()["data"]["config"] == VALID_CONFIGS[tool_type]


async def test_unknown_keys_are_dropped(developer: Client, subtests: pytest.Subtests) -> None:
    for tool_type in VALID_CONFIGS:
        with subtests.test(tool_type=tool_type):
            config = {**VALID_CONFIGS[tool_type], "password": "x", "nonsense": {"a": 1}}
            answer = await developer.post(PATH, tool_body(tool_type, config))
            view = await developer.get(f"{PATH}/{answer.json()['data']['id']}")
            assert view.json()["data"]["config"] == VALID_CONFIGS[tool_type]


async def test_every_missing_key_is_named_at_once(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for tool_type in VALID_CONFIGS:
        with subtests.test(tool_type=tool_type):
            answer = await developer.post(PATH, tool_body(tool_type, {}))
            details = refused(answer, 422, "validation_error")["details"]
            assert set(details) == {f"config.{key}" for name, key in REQUIRED if name == tool_type}


def test_a_missing_key_is_named(subtests: pytest.Subtests) -> None:
    for tool_type, key in REQUIRED:
        with subtests.test(tool_type=tool_type, key=key):
            config = {
                name: value for name, value in VALID_CONFIGS[tool_type].items() if name != key
            }
            assert find_invalid_keys(tool_type, config) == {f"config.{key}"}


WRONG_VALUES: list[tuple[str, str, Any]] = [
    ("rest_api", "base_url", ""),
    ("rest_api", "base_url", 5),
    ("rest_api", "base_url", "example.com"),
    ("rest_api", "base_url", "ftp://example.com"),
    ("rest_api", "base_url", "file:///etc/passwd"),
    ("rest_api", "base_url", "https://user:pass@example.com"),
    ("rest_api", "base_url", "https://example.com/#part"),
    ("rest_api", "base_url", "https://10.0.0.1"),
    ("rest_api", "base_url", "https://169.254.169.254"),
    ("rest_api", "base_url", "https://[::1]"),
    ("rest_api", "base_url", "https://2130706434"),
    ("rest_api", "base_url", "https://" + "x" * 2000),
    ("rest_api", "endpoints", {}),
    ("rest_api", "endpoints", []),
    ("rest_api", "timeout_ms", 0),
    ("rest_api", "timeout_ms", 300_001),
    ("rest_api", "timeout_ms", "5"),
    ("rest_api", "timeout_ms", 1.5),
    ("rest_api", "retry_count", -1),
    ("rest_api", "retry_count", 11),
    ("webhook", "url", "javascript:alert(1)"),
    ("webhook", "url", "https://192.168.1.1/x"),
    ("webhook", "method", "TRACE"),
    ("webhook", "method", "post"),
    ("webhook", "headers", []),
    ("webhook", "timeout_ms", 0),
    ("function", "runtime", "ruby"),
    ("function", "runtime", "bash"),
    ("function", "code", ""),
    ("function", "code", "x" * 262_145),
    ("function", "timeout_ms", -1),
    ("function", "packages", "requests"),
    ("script", "runtime", "javascript"),
    ("script", "runtime", "sh"),
    ("script", "entrypoint", "other.sh"),
    ("script", "files", {}),
    ("script", "timeout_ms", 300_001),
    ("database", "db_type", "oracle"),
    ("database", "database", ""),
    ("database", "port", 0),
    ("database", "port", 65_536),
    ("database", "ssl", "yes"),
    ("database", "allowed_operations", []),
    ("database", "max_rows", 0),
    ("database", "max_rows", 10_001),
    ("custom", "kind", "other"),
    ("custom", "url", "https://127.0.0.2/mcp"),
    ("custom", "tool", "x" * 201),
]


def test_a_wrong_key_is_named(subtests: pytest.Subtests) -> None:
    for tool_type, key, value in WRONG_VALUES:
        with subtests.test(tool_type=tool_type, key=key, value=value):
            assert find_invalid_keys(tool_type, {**VALID_CONFIGS[tool_type], key: value}) == {
                f"config.{key}"
            }


WRONG_ENDPOINTS: list[tuple[dict[str, Any], str]] = [
    ({"path": "/"}, "config.endpoints"),
    ({"method": "GET"}, "config.endpoints"),
    ({"method": "HEAD", "path": "/"}, "config.endpoints"),
    ({"method": "GET", "path": "users"}, "config.endpoints.one.path"),
    ({"method": "GET", "path": "/../admin"}, "config.endpoints.one.path"),
    ({"method": "GET", "path": "/a/./b"}, "config.endpoints.one.path"),
    ({"method": "GET", "path": "/a b"}, "config.endpoints.one.path"),
    ({"method": "GET", "path": "/a\nb"}, "config.endpoints.one.path"),
    ({"method": "GET", "path": "/a\\b"}, "config.endpoints.one.path"),
    ({"method": "GET", "path": "/a#b"}, "config.endpoints.one.path"),
    ({**ENDPOINT, "default_params": {"a": {"b": 1}}}, "config.endpoints"),
    ({**ENDPOINT, "default_headers": {"X A": "1"}}, "config.endpoints"),
    ({**ENDPOINT, "default_headers": {"X-A": 1}}, "config.endpoints"),
]


def test_a_wrong_endpoint_is_named(subtests: pytest.Subtests) -> None:
    for endpoint, where in WRONG_ENDPOINTS:
        with subtests.test(endpoint=endpoint, where=where):
            config = {**VALID_CONFIGS["rest_api"], "endpoints": {"one": endpoint}}
            (key,) = find_invalid_keys("rest_api", config)
            assert key.startswith(where)


def test_every_method_of_an_endpoint_is_accepted() -> None:
    for method in ("GET", "POST", "PUT", "DELETE"):
        config = {
            **VALID_CONFIGS["rest_api"],
            "endpoints": {"one": {"method": method, "path": "/"}},
        }
        validate_config("rest_api", config)


def test_an_unknown_operation_is_named() -> None:
    config = {**VALID_CONFIGS["database"], "allowed_operations": ["select", "vacuum"]}
    (key,) = find_invalid_keys("database", config)
    assert key.startswith("config.allowed_operations")


def test_plain_http_is_accepted_only_without_secrets(subtests: pytest.Subtests) -> None:
    for tool_type in ("rest_api", "webhook", "custom"):
        with subtests.test(tool_type=tool_type):
            key = "base_url" if tool_type == "rest_api" else "url"
            config = {**VALID_CONFIGS[tool_type], key: "http://example.com"}
            assert find_invalid_keys(tool_type, config) == {f"config.{key}"}
            validate_config(tool_type, config, allow_http=True)


async def test_plain_http_is_refused_once_a_tool_has_auth(developer: Client) -> None:
    body = tool_body("webhook", {"url": "http://example.com"})
    answer = await developer.post(PATH, body)
    assert answer.status_code == 201, answer.text
    path = f"{PATH}/{answer.json()['data']['id']}"
    answer = await developer.put(path, {"auth_type": "bearer", "auth_config": {"token": "x"}})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config.url"}


# Limits


async def test_a_config_that_is_nested_too_deeply_is_refused(developer: Client) -> None:
    deep: Any = {}
    for _ in range(40):
        deep = {"a": deep}
    answer = await developer.post(
        PATH, tool_body("webhook", {**VALID_CONFIGS["webhook"], "x": deep})
    )
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config"}


async def test_a_config_that_is_too_large_is_refused(developer: Client) -> None:
    files = {f"f{number}": "x" * 200_000 for number in range(4)} | {"main.sh": "true"}
    answer = await developer.post(
        PATH, tool_body("script", {**VALID_CONFIGS["script"], "files": files})
    )
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config"}


async def test_a_body_that_is_too_large_is_refused(developer: Client) -> None:
    answer = await developer.post(PATH, tool_body("function", {"code": "x" * 1_100_000}))
    refused(answer, 413, "payload_too_large")


# Repeatable runs


REPEATABLE_RUNS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("function", {}, {}, True),
    ("script", {}, {}, True),
    ("database", {}, {"query": "select 1"}, False),
    ("database", {"allowed_operations": ["select"]}, {}, True),
    ("rest_api", {}, {"endpoint": "get"}, True),
    ("rest_api", {}, {}, True),
    ("rest_api", {}, {"endpoint": "put"}, False),
    ("rest_api", {}, {"endpoint": "none"}, False),
    ("rest_api", {}, {"endpoint": 5}, False),
    ("webhook", {}, {}, False),
    ("webhook", {"method": "POST"}, {}, False),
    ("webhook", {"method": "DELETE"}, {}, False),
    ("webhook", {"method": "GET"}, {}, True),
    ("custom", {}, {}, False),
]


def test_only_what_has_no_effects_is_repeatable(subtests: pytest.Subtests) -> None:
    for tool_type, change, arguments, repeatable in REPEATABLE_RUNS:
        with subtests.test(tool_type=tool_type, change=change):
            config = parse_config(tool_type, {**VALID_CONFIGS[tool_type], **change})
            assert is_repeatable(config, arguments) is repeatable


# Destinations


DESTINATION_CHANGES: list[tuple[str, dict[str, Any], bool]] = [
    ("rest_api", {"base_url": "https://api.example.com:443/v2"}, True),
    ("rest_api", {"base_url": "https://API.example.com/"}, True),
    ("rest_api", {"base_url": "http://api.example.com/v1"}, False),
    ("rest_api", {"base_url": "https://api.example.com:8443/v1"}, False),
    ("rest_api", {"base_url": "https://api.example.org/v1"}, False),
    ("webhook", {"url": "https://hooks.example.com/other"}, True),
    ("webhook", {"url": "https://hooks.example.net/in"}, False),
    ("custom", {"url": "https://mcp.example.com/other"}, True),
    ("custom", {"url": "https://evil.example.com/mcp"}, False),
    ("database", {"database": "other", "max_rows": 1}, True),
    ("database", {"host": "DB.example.com."}, True),
    ("database", {"host": "db2.example.com"}, False),
    ("database", {"port": 5432}, False),
    ("database", {"ssl": False}, False),
    ("database", {"db_type": "mysql"}, False),
    ("function", {"code": "y"}, True),
]


def test_a_change_of_the_destination_is_recognised(subtests: pytest.Subtests) -> None:
    for tool_type, change, same in DESTINATION_CHANGES:
        with subtests.test(tool_type=tool_type, change=change):
            before = parse_config(tool_type, VALID_CONFIGS[tool_type])
            after = parse_config(tool_type, {**VALID_CONFIGS[tool_type], **change})
            assert (configs.destination(before, GUARD) == configs.destination(after, GUARD)) is same
