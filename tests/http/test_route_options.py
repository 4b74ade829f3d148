"""Routes whose options are unknown, missing or contradict each other stop the start."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from litestar import Litestar, WebSocket, get, post, websocket

from app.http import route_options
from app.http.route_options import RouteOptionError, RouteOptions, options_of
from app.http.sse import MEDIA_TYPE
from app.main import create_app
from tests.stores import Stores

_CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
_PERMISSIONS = {"forms:write"}
_ONE_OF = "must have one of public, signed_in, own, needs, keyed; has"
_WRONG_POSTS: list[tuple[dict[str, Any], str]] = [
    ({"need": "forms:write"}, "there is no option need"),
    ({"needs": "forms:write", "ideempotent": False, "costs": 1}, "no option costs, ideempotent"),
    ({}, f"{_ONE_OF} none of them"),
    ({"public": False}, f"{_ONE_OF} none of them"),
    ({"cost": "chat"}, f"{_ONE_OF} none of them"),
    ({"public": True, "needs": "forms:write"}, f"{_ONE_OF} public and needs"),
    ({"public": True, "own": True}, f"{_ONE_OF} public and own"),
    ({"own": True, "needs": "forms:write"}, f"{_ONE_OF} own and needs"),
    ({"signed_in": True, "keyed": "only"}, f"{_ONE_OF} signed_in and keyed"),
    ({"keyed": "either"}, "keyed='either' goes together with needs"),
    ({"keyed": "either", "signed_in": True}, "keyed='either' goes together with needs"),
    ({"needs": "forms:wirte"}, "there is no permission forms:wirte"),
    ({"needs": True}, "Expected `str | null`, got `bool` - at `$.needs`"),
    ({"public": "yes"}, "Expected `bool`, got `str` - at `$.public`"),
    ({"public": True, "cost": "much"}, "Invalid enum value 'much' - at `$.cost`"),
    ({"public": True, "idempotent": "long"}, "Invalid enum value 'long' - at `$.idempotent`"),
    ({"needs": "forms:write", "upload": True, "full_files": 9}, "at `$.full_files`"),
    ({"needs": "forms:write", "verified": True}, "verified needs own"),
    ({"own": True, "handler_checks": True}, "handler_checks needs needs"),
    ({"public": True, "visitor_token": True}, "visitor_token needs keyed"),
    ({"keyed": "only", "takes_key": False}, "takes_key=False needs visitor_token"),
    ({"public": True, "opens_session": True}, "opens_session needs keyed"),
    ({"signed_in": True, "voice": True}, "voice needs keyed"),
    ({"signed_in": True, "attachments": True}, "attachments needs keyed"),
    ({"signed_in": True, "tenant_pays": True}, "tenant_pays needs public"),
    ({"public": True, "stores": True}, "stores needs a caller of a tenant"),
    ({"keyed": "only", "stores": True}, "stores needs a caller of a tenant"),
    ({"own": True, "full_files": 1}, "full_files needs upload"),
    ({"own": True, "upload": True, "max_upload_mb": 1}, "max_upload_mb needs full_files"),
    (
        {"own": True, "upload": True, "streamed_file": "file", "idempotent": "streamed"},
        "upload and streamed_file exclude each other",
    ),
    ({"own": True, "streamed_file": "file"}, "streamed_file and idempotent='streamed' go together"),
    ({"own": True, "idempotent": "streamed"}, "streamed_file and idempotent='streamed'"),
    ({"own": True, "streamed_texts": ("name",)}, "streamed_texts needs streamed_file"),
]


def _post(**options: Any) -> Litestar:
    @post("/things", **options)
    async def create_thing() -> None: ...

    return Litestar([create_thing], openapi_config=None)


def _get(**options: Any) -> Litestar:
    @get("/things", **options)
    async def list_things() -> None: ...

    return Litestar([list_things], openapi_config=None)


def _refuse(app: Litestar) -> str:
    with pytest.raises(RouteOptionError) as raised:
        route_options.apply(app, _PERMISSIONS)
    return str(raised.value)


def test_wrong_options_are_refused_with_the_name_of_the_route(subtests: pytest.Subtests) -> None:
    for options, problem in _WRONG_POSTS:
        with subtests.test(options=options):
            message = _refuse(_post(**options))
            assert "POST /things (" in message
            assert "create_thing): " in message
            assert problem in message


def test_options_of_writes_are_refused_for_reads() -> None:
    assert "idempotent is for POST" in _refuse(_get(own=True, idempotent=False))
    assert "stops_when_gone is for writes" in _refuse(_get(own=True, stops_when_gone=True))


def test_a_stream_that_does_not_name_its_events_is_refused() -> None:
    @get("/stream", public=True, media_type=MEDIA_TYPE)
    async def stream() -> None: ...

    app = Litestar([stream], openapi_config=None)
    assert "GET /stream" in _refuse(app)
    assert "a route that answers text/event-stream names its events" in _refuse(app)


def test_all_wrong_routes_are_named_at_once() -> None:
    @get("/a", public=True, pubic=True)
    async def a() -> None: ...

    @get("/b")
    async def b() -> None: ...

    @get("/c", public=True)
    async def c() -> None: ...

    assert re.findall(r"GET (/\w)", _refuse(Litestar([a, b, c], openapi_config=None))) == [
        "/a",
        "/b",
    ]


def test_routes_whose_options_nothing_reads_are_refused() -> None:
    @websocket("/socket", needs="forms:write")
    async def talk(socket: WebSocket[Any, Any, Any]) -> None: ...

    assert "/socket: only HTTP routes" in _refuse(Litestar([talk], openapi_config=None))


def test_the_application_does_not_start_with_a_misspelt_option(stores: Stores) -> None:
    @post("/test/misspelt", need="forms:write")
    async def misspelt() -> None: ...

    with pytest.raises(RouteOptionError, match="POST /test/misspelt"):
        create_app(stores.settings, routes=[misspelt])


def test_a_handler_keeps_its_keywords_for_the_next_application() -> None:
    @post("/things", signed_in=True)
    async def create_thing() -> None: ...

    for _ in range(2):
        app = Litestar([create_thing], openapi_config=None)
        route_options.apply(app, _PERMISSIONS)
        handlers = {method: handler for method, _, handler in route_options.list_handlers(app)}
        assert options_of(handlers["POST"]) == RouteOptions(signed_in=True)


def _describe(field: msgspec.inspect.Field) -> str:
    kind = field.type
    assert isinstance(kind, msgspec.inspect.Metadata)
    return str((kind.extra_json_schema or {})["description"])


def test_the_documentation_has_a_row_for_every_option() -> None:
    info = msgspec.inspect.type_info(RouteOptions)
    assert isinstance(info, msgspec.inspect.StructType)
    rows = [f"| `{field.name}` | {_describe(field)} |" for field in info.fields]
    assert "\n".join(rows) in _CONTRIBUTING.read_text()
