"""ETag, If-Match and If-None-Match: nobody overwrites a change that they have not seen.

The option `record` of a route that changes a record is all that the route declares. The answers
that show the record carry its tag. With If-Match, the first step of the request's transaction locks
the record, reads it as its GET does, and compares the tags, so that of two requests with the same
tag only one succeeds. If-None-Match of a PUT that creates records does the same, so that of two
requests with `*` only one creates the record. Without these headers nothing is read or locked.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, get_args, get_origin

import msgspec
from litestar import Litestar, Request, Response
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler

from app.context import RequestContext
from app.http.authorization import caller_of, principal_of
from app.http.dependencies import services_of
from app.http.records import Lock
from app.http.route_options import RouteOptionError, list_handlers, options_of
from app.http.transaction import request_tx
from app.kit.errors import NotFound, PreconditionFailed
from app.kit.etags import RecordTag, TagList, build_tag, read_tags, require_match, require_no_match
from app.kit.views import Data
from db.session import Tx

IF_MATCH: Final = "If-Match"
IF_NONE_MATCH: Final = "If-None-Match"
_KEY: Final = "record_route"
_CHANGES: Final = {"PUT", "PATCH"}
_FIRST_ERROR_STATUS = 400
_NOT_MODIFIED = 304


class RecordRoute(msgspec.Struct, frozen=True):
    """What a route that reads or changes a record needs to know of it."""

    tag: RecordTag
    reader: HTTPRouteHandler
    lock: Lock | None = None
    absent: type[NotFound] | None = None


class Conditions(msgspec.Struct, frozen=True):
    """The headers of a change."""

    match: TagList | None = None
    none_match: TagList | None = None


def route_of(handler: BaseRouteHandler) -> RecordRoute | None:
    route: RecordRoute | None = handler.opt.get(_KEY)
    return route


def takes_if_match(handler: BaseRouteHandler) -> bool:
    route = route_of(handler)
    return route is not None and route.lock is not None


def takes_if_none_match(handler: BaseRouteHandler) -> bool:
    route = route_of(handler)
    return route is not None and route.reader is handler


def creates_record(handler: BaseRouteHandler) -> bool:
    route = route_of(handler)
    return route is not None and route.absent is not None


# Reading the declarations


def apply(app: Litestar) -> None:
    """Finds the reader of each record, and the fields of its tag. Raises RouteOptionError."""
    handlers = list(list_handlers(app))
    readers = {handler.handler_name: handler for method, _, handler in handlers if method == "GET"}
    paths = {path: handler for method, path, handler in handlers if method == "GET"}
    routes: dict[str, list[HTTPRouteHandler]] = {}
    problems = []
    for method, path, handler in handlers:
        record = options_of(handler).record
        if record is None:
            continue
        reader = readers.get(record.reader) if record.reader else paths.get(path)
        if reader is None:
            problems.append(f"{method} {path}: no GET answers with its record")
            continue
        routes.setdefault(reader.handler_name, []).append(handler)
    for name, changes in routes.items():
        problems += _join(readers[name], changes)
    if problems:
        raise RouteOptionError("\n".join(["The records of these routes are wrong:", *problems]))
    _tag_creations(handlers)


def _join(reader: HTTPRouteHandler, changes: list[HTTPRouteHandler]) -> Iterable[str]:
    bodies = [
        handler.parsed_data_field.annotation
        for handler in changes
        if handler.http_methods & _CHANGES and handler.parsed_data_field is not None
    ]
    tagged = [name for handler in changes for name in options_of(handler).record.tagged]
    tag = build_tag(_answer_of(reader), bodies, tagged)
    if not tag.fields:
        yield f"{reader.handler_name}: shows no field that {changes[0].handler_name} changes"
    reader.opt[_KEY] = RecordRoute(tag, reader)
    for handler in changes:
        record = options_of(handler).record
        handler.opt[_KEY] = RecordRoute(tag, reader, record.lock, record.absent)


def _tag_creations(handlers: list[tuple[str, str, HTTPRouteHandler]]) -> None:
    """A POST to the collection whose answer shows the record has a tag too."""
    posts = {path: handler for method, path, handler in handlers if method == "POST"}
    for method, path, handler in handlers:
        route = route_of(handler)
        if method != "GET" or route is None or not path.endswith("}"):
            continue
        creation = posts.get(path.rpartition("/")[0])
        if creation is None or route_of(creation) is not None:
            continue
        answer = _answer_of(creation)
        if set(route.tag.fields) <= set(getattr(answer, "__struct_fields__", ())):
            creation.opt[_KEY] = RecordRoute(route.tag, route.reader)


def _answer_of(handler: HTTPRouteHandler) -> Any:
    annotation = handler.parsed_return_field.annotation
    if get_origin(annotation) is Data:
        (annotation,) = get_args(annotation)
    return annotation


# Requests

_current: ContextVar[tuple[Request[Any, Any, Any], RecordRoute] | None] = ContextVar(
    "record", default=None
)


def begin(request: Request[Any, Any, Any]) -> None:
    """Lets the transaction of a request with If-Match begin with the comparison."""
    route = route_of(request.route_handler)
    # A pipelined request starts in the context of the one before it.
    _current.set(None if route is None else (request, route))
    if route is None or route.lock is None:
        return
    conditions = _read_conditions(request, route)
    if conditions == Conditions():
        return
    tx = request_tx(request)
    check = partial(_check, request, tx, route, conditions)
    tx.on_begin = partial(_begin_with_check, tx.on_begin, check)


def _read_conditions(request: Request[Any, Any, Any], route: RecordRoute) -> Conditions:
    match = _read_header(request, IF_MATCH)
    if route.absent is not None:
        return Conditions(match, _read_header(request, IF_NONE_MATCH))
    # The handler answers 404 for a record that does not exist.
    return Conditions(None if match is not None and match.is_any else match)


def _read_header(request: Request[Any, Any, Any], name: str) -> TagList | None:
    values = request.headers.getall(name, [])
    if not values:
        return None
    return read_tags(name, ", ".join(values))


async def _begin_with_check(
    first: Callable[[], Awaitable[None]] | None, check: Callable[[], Awaitable[None]]
) -> None:
    if first is not None:
        await first()
    await check()


async def _check(
    request: Request[Any, Any, Any], tx: Tx, route: RecordRoute, conditions: Conditions
) -> None:
    """Raises PreconditionFailed, or the error of the GET when there is no such record."""
    lock = route.lock
    if lock is not None:
        parameters = {"user_id": principal_of(request).user_id, **request.path_params}
        await lock(tx, parameters)
    try:
        answer = _unwrap(await _read(request, tx, route.reader))
    except NotFound as error:
        if route.absent is None or not isinstance(error, route.absent):
            raise
        if conditions.match is None:
            return
        raise PreconditionFailed(
            "This record no longer exists", details={"current": None}
        ) from error
    if conditions.match is not None:
        require_match(route.tag, answer, conditions.match)
    if conditions.none_match is not None:
        require_no_match(route.tag, answer, conditions.none_match)


async def _read(request: Request[Any, Any, Any], tx: Tx, reader: HTTPRouteHandler) -> object:
    """Calls the handler of the GET in the transaction of this request."""
    services, principal = services_of(request), principal_of(request)
    context = RequestContext(tx, services, principal, caller_of(request).address)
    values = {"tx": tx, "services": services, "principal": principal, "context": context}
    values |= request.path_params
    names = inspect.signature(reader.fn).parameters
    return await reader.fn(**{name: values[name] for name in names})


def _unwrap(answer: object) -> object:
    return answer.data if isinstance(answer, Data) else answer


# Answers


def add_tag(response: Response[Any]) -> Response[Any]:
    """Adds the tag of the record that the response shows; answers 304 when the client has it."""
    current = _current.get()
    _current.set(None)
    status = response.status_code or 200
    if current is None or status >= _FIRST_ERROR_STATUS:
        return response
    request, route = current
    tag = route.tag.compute(_read_answer(response.content))
    if tag is None:
        return response
    if request.route_handler is route.reader:
        tags = _read_header(request, IF_NONE_MATCH)
        if tags is not None and tags.matches_weakly(tag):
            return Response(None, status_code=_NOT_MODIFIED, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response


def _read_answer(content: object) -> object:
    """Also of the stored answer of an earlier request with the same Idempotency-Key."""
    if not isinstance(content, bytes):
        return _unwrap(content)
    try:
        answer = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return None
    has_data = isinstance(answer, dict) and answer.keys() == {"data"}
    return answer["data"] if has_data else answer
