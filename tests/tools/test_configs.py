"""What each type of tool wants in its config, and by which name a problem is told."""

from typing import Any

import pytest

from app.domain.tools import configs
from app.domain.tools.configs import TOOL_TYPES, Config, is_repeatable
from app.domain.tools.registry import parse_config
from app.kit.egress import Guard
from app.kit.errors import Invalid
from tests.asking import refused
from tests.world import Client

PATH = "/v1/tools"
GUARD = Guard(["127.0.0.1"])
ENDPOINT = {"method": "GET", "path": "/users/{id}"}
# One good config of each type, with every key.
GOOD: dict[str, dict[str, Any]] = {
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


def _body(tool_type: str, config: Any) -> dict[str, Any]:
    return {
        "name": "T",
        "category": "custom",
        "tool_type": tool_type,
        "config": config,
        "auth_type": "none",
    }


def _details(tool_type: str, config: dict[str, Any], *, allow_http: bool = False) -> set[str]:
    """The keys that are refused."""
    with pytest.raises(Invalid) as caught:
        configs.validate(tool_type, config, GUARD, "config", allow_http=allow_http)
    return set(caught.value.details or {})


def _ok(tool_type: str, config: dict[str, Any], *, allow_http: bool = False) -> Config:
    return configs.validate(tool_type, config, GUARD, "config", allow_http=allow_http)


def test_there_is_a_good_config_of_every_type() -> None:
    assert GOOD.keys() == TOOL_TYPES.keys()


@pytest.mark.parametrize("tool_type", GOOD)
async def test_a_config_with_every_key_is_shown_as_it_was_given(
    developer: Client, tool_type: str
) -> None:
    made = await developer.post(PATH, _body(tool_type, GOOD[tool_type]))
    assert made.status_code == 201, made.text
    shown = await developer.get(f"{PATH}/{made.json()['data']['id']}")
    assert shown.json()["data"]["config"] == GOOD[tool_type]


@pytest.mark.parametrize("tool_type", GOOD)
async def test_keys_that_mean_nothing_are_not_kept(developer: Client, tool_type: str) -> None:
    config = {**GOOD[tool_type], "password": "x", "nonsense": {"a": 1}}
    made = await developer.post(PATH, _body(tool_type, config))
    shown = await developer.get(f"{PATH}/{made.json()['data']['id']}")
    assert shown.json()["data"]["config"] == GOOD[tool_type]


@pytest.mark.parametrize("tool_type", GOOD)
async def test_every_missing_key_is_named_at_once(developer: Client, tool_type: str) -> None:
    answer = await developer.post(PATH, _body(tool_type, {}))
    named = set(refused(answer, 422, "validation_error")["details"])
    assert named == {f"config.{key}" for of, key in REQUIRED if of == tool_type}


@pytest.mark.parametrize(("tool_type", "key"), REQUIRED)
def test_a_missing_key_is_named(tool_type: str, key: str) -> None:
    config = {name: value for name, value in GOOD[tool_type].items() if name != key}
    assert _details(tool_type, config) == {f"config.{key}"}


@pytest.mark.parametrize(
    ("tool_type", "key", "value"),
    [
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
    ],
)
def test_a_wrong_key_is_named(tool_type: str, key: str, value: Any) -> None:
    assert _details(tool_type, {**GOOD[tool_type], key: value}) == {f"config.{key}"}


@pytest.mark.parametrize(
    ("endpoint", "where"),
    [
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
    ],
)
def test_a_wrong_endpoint_is_named(endpoint: dict[str, Any], where: str) -> None:
    config = {**GOOD["rest_api"], "endpoints": {"one": endpoint}}
    (named,) = _details("rest_api", config)
    assert named.startswith(where)


def test_every_method_of_an_endpoint_is_taken() -> None:
    for method in ("GET", "POST", "PUT", "DELETE"):
        config = {**GOOD["rest_api"], "endpoints": {"one": {"method": method, "path": "/"}}}
        _ok("rest_api", config)


def test_an_operation_that_nobody_knows_is_named() -> None:
    config = {**GOOD["database"], "allowed_operations": ["select", "vacuum"]}
    (named,) = _details("database", config)
    assert named.startswith("config.allowed_operations")


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
def test_plain_http_is_only_for_where_no_secret_goes(tool_type: str) -> None:
    key = "base_url" if tool_type == "rest_api" else "url"
    config = {**GOOD[tool_type], key: "http://example.com"}
    assert _details(tool_type, config) == {f"config.{key}"}
    _ok(tool_type, config, allow_http=True)


async def test_plain_http_is_refused_once_a_tool_has_auth(developer: Client) -> None:
    body = _body("webhook", {"url": "http://example.com"})
    made = await developer.post(PATH, body)
    assert made.status_code == 201, made.text
    path = f"{PATH}/{made.json()['data']['id']}"
    answer = await developer.put(path, {"auth_type": "bearer", "auth_config": {"token": "x"}})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config.url"}


# Names of files


NO_FILES = [
    "",
    ".",
    "..",
    "/etc/passwd",
    "a/b.py",
    "../a.py",
    "a..py",
    "..\\a.py",
    "a\\b.py",
    "-c",
    "--version",
    ".hidden",
    "a b.py",
    " a.py",
    "a.py ",
    "a.py\n",
    "a\nb.py",
    "a\tb.py",
    "\u00e4.py",
    "\uff0e\uff0e/a",
    "a\u202egpj.py",
    "a;b",
    "$(id)",
    "a*",
    "x" * 101,
]


@pytest.mark.parametrize("name", NO_FILES)
def test_an_entrypoint_is_a_plain_file_name(name: str) -> None:
    config = {**GOOD["script"], "entrypoint": name}
    assert _details("script", config) == {"config.entrypoint"}


@pytest.mark.parametrize("name", NO_FILES)
def test_a_file_has_a_plain_file_name(name: str) -> None:
    config = {**GOOD["script"], "files": {"main.sh": "true", name: "x"}}
    (named,) = _details("script", config)
    assert named.startswith("config.files")


@pytest.mark.parametrize("name", [*NO_FILES, "-c"])
def test_an_embedded_database_is_a_plain_file_name(name: str) -> None:
    config = {"db_type": "sqlite", "database": name}
    assert _details("database", config) == {"config.database"}


@pytest.mark.parametrize("field", ["entrypoint", "files", "code"])
async def test_a_nul_in_a_config_is_refused(developer: Client, field: str) -> None:
    config = dict(GOOD["script"])
    config[field] = {"a\0.sh": "true"} if field == "files" else "main.sh\0"
    answer = await developer.post(PATH, _body("script", config))
    refused(answer, 422, "validation_error")


@pytest.mark.parametrize("name", ["a", "a.py", "A-1_b.tar.gz", "_x", "0", "x" * 100])
def test_plain_file_names_are_taken(name: str) -> None:
    _ok("script", {**GOOD["script"], "entrypoint": name, "files": {name: "true"}})


async def test_a_refused_name_is_told_in_words(developer: Client) -> None:
    config = {**GOOD["script"], "entrypoint": "-c"}
    answer = await developer.post(PATH, _body("script", config))
    details = refused(answer, 422, "validation_error")["details"]
    assert details == {
        "config.entrypoint": "must be a plain file name: letters, digits, dots, dashes, underscores"
    }


# Packages


@pytest.mark.parametrize("tool_type", ["function", "script"])
async def test_a_package_that_is_not_installed_is_named(developer: Client, tool_type: str) -> None:
    config = {**GOOD[tool_type], "runtime": "python", "packages": ["no-such-package"]}
    answer = await developer.post(PATH, _body(tool_type, config))
    details = refused(answer, 422, "validation_error")["details"]
    assert set(details) == {"config.packages"}
    assert "no-such-package" in details["config.packages"]


async def test_there_are_packages_for_python_only(developer: Client) -> None:
    config = {**GOOD["function"], "packages": ["left-pad"]}
    answer = await developer.post(PATH, _body("function", config))
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config.packages"}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-r",
        "--index-url=https://evil.example",
        "requests==2.0",
        "requests[security]",
        "../wheel.whl",
        "https://evil.example/x.whl",
        "a b",
        "a\n",
        "x" * 101,
    ],
)
def test_a_package_is_a_plain_name(name: str) -> None:
    (named,) = _details("function", {**GOOD["function"], "packages": [name]})
    assert named.startswith("config.packages")


# Bounds


async def test_a_config_is_not_nested_without_end(developer: Client) -> None:
    deep: Any = {}
    for _ in range(40):
        deep = {"a": deep}
    answer = await developer.post(PATH, _body("webhook", {**GOOD["webhook"], "x": deep}))
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config"}


async def test_a_config_has_a_largest_size(developer: Client) -> None:
    files = {f"f{number}": "x" * 200_000 for number in range(4)} | {"main.sh": "true"}
    answer = await developer.post(PATH, _body("script", {**GOOD["script"], "files": files}))
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config"}


async def test_a_body_that_is_too_large_is_refused(developer: Client) -> None:
    answer = await developer.post(PATH, _body("function", {"code": "x" * 1_100_000}))
    refused(answer, 413, "payload_too_large")


# What may run twice


@pytest.mark.parametrize(
    ("tool_type", "change", "given", "repeatable"),
    [
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
    ],
)
def test_only_what_has_no_effects_is_repeatable(
    tool_type: str, change: dict[str, Any], given: dict[str, Any], *, repeatable: bool
) -> None:
    config = parse_config(tool_type, {**GOOD[tool_type], **change})
    assert is_repeatable(config, given) is repeatable


# Where a tool leads


@pytest.mark.parametrize(
    ("tool_type", "change", "same"),
    [
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
    ],
)
def test_another_destination_is_told_from_the_same(
    tool_type: str, change: dict[str, Any], *, same: bool
) -> None:
    before = parse_config(tool_type, GOOD[tool_type])
    after = parse_config(tool_type, {**GOOD[tool_type], **change})
    found = configs.destination(before, GUARD) == configs.destination(after, GUARD)
    assert found is same
