"""The config of each type of tool: its fields, validation, destination and input. TOOL_TYPES has
one row per type.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from app.kit import validation
from app.kit.errors import Invalid
from app.kit.validation import VISIBLE
from app.net import databases
from app.net.egress import Guard

ToolType = Literal["rest_api", "function", "webhook", "database", "script", "custom"]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Operation = Literal[
    "select", "insert", "update", "delete", "merge", "create", "alter", "drop", "truncate"
]

# A plain file name: no path, no command-line option, no hidden file.
_FILE = r"^(?![\s\S]*\n)(?![\s\S]*\.\.)[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$"
_PACKAGE = r"^(?![\s\S]*\n)[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$"
validation.describe_pattern(
    _FILE, "must be a plain file name: letters, digits, dots, dashes, underscores"
)
validation.describe_pattern(_PACKAGE, "must be the name of a package, without a version")

FileName = Annotated[str, Meta(pattern=_FILE)]
Packages = Annotated[list[Annotated[str, Meta(pattern=_PACKAGE)]], Meta(max_length=50)]
TimeoutMs = Annotated[int, Meta(ge=1, le=300_000)]
Url = Annotated[str, Meta(min_length=1, max_length=2000)]
Code = Annotated[str, Meta(min_length=1, max_length=262_144)]
HeaderMap = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=100, pattern=VISIBLE)],
        Annotated[str, Meta(max_length=8192)],
    ],
    Meta(max_length=50),
]
Scalar = str | int | float | bool | None


class Endpoint(msgspec.Struct, frozen=True):
    method: Method
    path: Annotated[str, Meta(max_length=2000)]
    default_params: dict[str, Scalar | list[Scalar]] = {}
    default_headers: HeaderMap = {}


class RestApiConfig(msgspec.Struct, frozen=True):
    base_url: Url
    endpoints: Annotated[
        dict[Annotated[str, Meta(min_length=1, max_length=100)], Endpoint],
        Meta(min_length=1, max_length=200),
    ]
    timeout_ms: TimeoutMs = 30_000
    retry_count: Annotated[int, Meta(ge=0, le=10)] = 0


class WebhookToolConfig(msgspec.Struct, frozen=True):
    url: Url
    method: Method = "POST"
    headers: HeaderMap = {}
    timeout_ms: TimeoutMs = 30_000


class FunctionConfig(msgspec.Struct, frozen=True):
    runtime: Literal["python", "javascript"]
    code: Code
    timeout_ms: TimeoutMs = 10_000
    packages: Packages = []


class ScriptConfig(msgspec.Struct, frozen=True):
    runtime: Literal["bash", "python", "node"]
    entrypoint: FileName
    files: Annotated[dict[FileName, Code], Meta(min_length=1, max_length=100)]
    timeout_ms: TimeoutMs = 10_000
    packages: Packages = []


class DatabaseConfig(msgspec.Struct, frozen=True):
    db_type: Literal["postgresql", "mysql", "sqlite"]
    database: Annotated[str, Meta(min_length=1, max_length=255)]
    host: Annotated[str, Meta(max_length=255)] = ""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    ssl: bool = False
    allowed_operations: Annotated[list[Operation], Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: ["select"]
    )
    max_rows: Annotated[int, Meta(ge=1, le=10_000)] = 100
    timeout_ms: TimeoutMs = 10_000


class CustomConfig(msgspec.Struct, frozen=True):
    kind: Literal["mcp"]
    url: Url
    tool: Annotated[str, Meta(max_length=200)] = ""
    timeout_ms: TimeoutMs = 30_000


class RestInput(msgspec.Struct):
    endpoint: str | None = None
    params: dict[str, Scalar | list[Scalar]] = {}
    body: Any = None
    headers: dict[str, str] = {}


class DatabaseInput(msgspec.Struct):
    query: str
    params: list[Any] = []


Config = (
    RestApiConfig
    | WebhookToolConfig
    | FunctionConfig
    | ScriptConfig
    | DatabaseConfig
    | CustomConfig
)


class ToolTypeSpec(msgspec.Struct, frozen=True):
    """A type of tool. `takes_auth`: its requests can be authenticated. `parameters` is the JSON
    Schema of the input that a model sees when the tool has no input_schema.
    """

    type: ToolType
    config: Any
    takes_auth: bool
    parameters: dict[str, Any]
    input: Any = None


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


TOOL_TYPES: Final[dict[str, ToolTypeSpec]] = {
    spec.type: spec
    for spec in (
        ToolTypeSpec(
            "rest_api",
            RestApiConfig,
            takes_auth=True,
            parameters=_object(
                [],
                endpoint={"type": "string", "description": "Which endpoint to call"},
                params={"type": "object", "description": "For the path and the query"},
                body={"description": "What to send"},
            ),
            input=RestInput,
        ),
        ToolTypeSpec("webhook", WebhookToolConfig, takes_auth=True, parameters=_object([])),
        ToolTypeSpec("function", FunctionConfig, takes_auth=False, parameters=_object([])),
        ToolTypeSpec("script", ScriptConfig, takes_auth=False, parameters=_object([])),
        ToolTypeSpec(
            "database",
            DatabaseConfig,
            takes_auth=True,
            parameters=_object(
                ["query"],
                query={"type": "string", "description": "One SQL statement"},
                params={"type": "array", "description": "Values for its placeholders"},
            ),
            input=DatabaseInput,
        ),
        ToolTypeSpec("custom", CustomConfig, takes_auth=True, parameters=_object([])),
    )
}


def validate(
    tool_type: str, value: dict[str, Any], guard: Guard, name: str, *, allow_http: bool
) -> Config:
    """Returns the config as the struct of its type. Raises Invalid for the field `name`.
    `allow_http` accepts plain HTTP, for requests that carry no secret.
    """
    config: Config = validation.convert_field(TOOL_TYPES[tool_type].config, value, name)
    match config:
        case RestApiConfig():
            _check_url(f"{name}.base_url", config.base_url, guard, allow_http=allow_http)
            for key, endpoint in config.endpoints.items():
                _check_path(f"{name}.endpoints.{key}.path", endpoint.path)
        case WebhookToolConfig() | CustomConfig():
            _check_url(f"{name}.url", config.url, guard, allow_http=allow_http)
        case ScriptConfig():
            if config.entrypoint not in config.files:
                raise Invalid.field(f"{name}.entrypoint", "must be one of the names in files")
        case DatabaseConfig():
            _check_database(config, name)
        case FunctionConfig():
            pass
    return config


def _check_url(name: str, text: str, guard: Guard, *, allow_http: bool) -> None:
    problem = guard.problem_with(text, allow_http=allow_http)
    if problem is not None:
        raise Invalid.field(name, problem)
    if guard.check_url(text).fragment:
        raise Invalid.field(name, "must have no fragment")


def _check_path(name: str, path: str) -> None:
    if path and not path.startswith("/"):
        raise Invalid.field(name, "must start with /")
    if any(part in {".", ".."} for part in path.partition("?")[0].split("/")):
        raise Invalid.field(name, "must not have . or .. in it")
    if "#" in path or any(ord(char) <= 32 or char == "\\" for char in path):  # noqa: PLR2004
        raise Invalid.field(name, "must be the path of a URL")


def _check_database(config: DatabaseConfig, name: str) -> None:
    if config.db_type == "sqlite":
        try:
            msgspec.convert(config.database, FileName)
        except msgspec.ValidationError:
            raise Invalid.field(f"{name}.database", "must be a plain file name") from None


def select_known_keys(tool_type: str, config: dict[str, Any]) -> dict[str, Any]:
    """Returns the keys of a config that its type has. Only these are stored."""
    fields = {field.encode_name for field in msgspec.structs.fields(TOOL_TYPES[tool_type].config)}
    return {key: value for key, value in config.items() if key in fields}


def merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Merges by key. `changes` has priority, and a null in it removes the key."""
    return {key: value for key, value in (base | changes).items() if value is not None}


def destination(config: Config, guard: Guard) -> tuple[Any, ...]:
    """Returns the server that receives a tool's secrets. They are not sent to any other."""
    match config:
        case RestApiConfig():
            return (str(guard.check_url(config.base_url).origin()),)
        case WebhookToolConfig() | CustomConfig():
            return (str(guard.check_url(config.url).origin()),)
        case DatabaseConfig():
            port = config.port or databases.PORTS.get(config.db_type)
            return (config.db_type, config.host.lower().rstrip("."), port, config.ssl)
        case FunctionConfig() | ScriptConfig():
            return ()


def destination_host(config: Config, guard: Guard) -> str:
    """Returns the host name that a tool connects to, empty when it connects to none."""
    match config:
        case RestApiConfig():
            return guard.check_url(config.base_url).raw_host or ""
        case WebhookToolConfig() | CustomConfig():
            return guard.check_url(config.url).raw_host or ""
        case DatabaseConfig():
            return config.host
        case FunctionConfig() | ScriptConfig():
            return ""


def is_repeatable(config: Config, arguments: dict[str, Any]) -> bool:
    """True when the run has no side effects, so that it may run again after a worker died."""
    match config:
        case FunctionConfig() | ScriptConfig():
            # Code in the sandbox can change nothing outside it.
            return True
        case DatabaseConfig():
            return config.allowed_operations == ["select"]
        case RestApiConfig():
            name = arguments.get("endpoint") or next(iter(config.endpoints))
            endpoint = config.endpoints.get(name) if isinstance(name, str) else None
            return endpoint is not None and endpoint.method == "GET"
        case WebhookToolConfig():
            return config.method == "GET"
        case CustomConfig():
            return False
