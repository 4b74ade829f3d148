"""The options of routes: who may call a route, what it costs, and how its body is read.

Litestar takes any keyword of a handler, so a misspelt one would be ignored, and with it the check
that it asks for. `apply` reads the options of every route when the application starts, and refuses
to start with one that is unknown, missing or contradicts another.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Annotated, Any, Final, Literal

import msgspec
from litestar import Litestar
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.routes import HTTPRoute
from msgspec import Meta

from app.http.records import Record
from app.http.sse import MEDIA_TYPE
from app.http.uploads import MAX_FULL_FILES

_KEY = "route_options"
_CALLERS = ("public", "signed_in", "own", "needs", "keyed")
_READS = {"GET", "HEAD", "OPTIONS"}
_CHANGES = {"PUT", "PATCH"}


class RouteOptionError(Exception):
    """Routes have options that cannot be meant so. Lists all of them."""


class RouteOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each route has one of the first five, which say who may call it."""

    public: Annotated[bool, Meta(description="for anybody")] = False
    signed_in: Annotated[
        bool,
        Meta(
            description="for everybody who signed in with a verified e-mail address; "
            "the service decides which rows are theirs"
        ),
    ] = False
    own: Annotated[
        bool,
        Meta(
            description="for the caller's own account, verified or not; the transaction is "
            "scoped to the caller's own tenant, whatever X-Tenant-ID says"
        ),
    ] = False
    needs: Annotated[str | None, Meta(description="for callers whose role has this permission")] = (
        None
    )
    keyed: Annotated[
        Literal["only", "either"] | None,
        Meta(
            description="for holders of an agent's embed key; with `either`, also for signed-in "
            "callers with the permission of `needs`"
        ),
    ] = None
    verified: Annotated[
        bool, Meta(description="with `own`: the e-mail address must be verified all the same")
    ] = False
    handler_checks: Annotated[
        bool, Meta(description="with `needs`: the handler checks the permission, later")
    ] = False
    checks_agent: Annotated[
        bool,
        Meta(
            description="open to service keys that are for certain agents: the handler checks "
            "whether the agent is one of them, which its path does not name"
        ),
    ] = False
    visitor_token: Annotated[
        bool, Meta(description="with `keyed`: a visitor token replaces the key")
    ] = False
    takes_key: Annotated[
        bool, Meta(description="with `visitor_token`: False where the key itself is of no use")
    ] = True
    opens_session: Annotated[
        bool,
        Meta(
            description="with `keyed`: open to keys that demand a visitor token, which it "
            "gives out, and to this instance's own pages"
        ),
    ] = False
    voice: Annotated[bool, Meta(description="with `keyed`: for keys that allow voice")] = False
    attachments: Annotated[
        bool, Meta(description="with `keyed`: for keys that allow attachments")
    ] = False
    cost: Annotated[
        Literal["read", "write", "execute", "chat"] | None,
        Meta(description="what the rate limit charges; by default the method decides"),
    ] = None
    tenant_pays: Annotated[
        bool,
        Meta(
            description="with `public`: the handler charges the tenant whose page it is; the "
            "visitor's address pays for a read"
        ),
    ] = False
    idempotent: Annotated[
        bool | Literal["long_running", "streamed"],
        Meta(
            description="for POST: False where an Idempotency-Key has no meaning, `long_running` "
            "where the handler waits for something other than the database, `streamed` with "
            "`streamed_file`"
        ),
    ] = True
    stops_when_gone: Annotated[
        bool, Meta(description="a write that is cancelled when its client is gone, as reads are")
    ] = False
    stores: Annotated[
        bool, Meta(description="refused when the storage of the caller's tenant is full")
    ] = False
    upload: Annotated[bool, Meta(description="takes files, which go to disk while they arrive")] = (
        False
    )
    full_files: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_FULL_FILES)] | None,
        Meta(description="with `upload`: how many files of the largest size fit into one body"),
    ] = None
    max_upload_mb: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="with `full_files`: the largest file, where PARLEY_MAX_BODY_MB is not "
            "smaller"
        ),
    ] = None
    streamed_file: Annotated[
        str | None,
        Meta(
            description="the field of the file that the handler itself reads while it arrives; "
            "limited by PARLEY_MAX_FILE_MB"
        ),
    ] = None
    streamed_texts: Annotated[
        tuple[str, ...], Meta(description="with `streamed_file`: the fields before it")
    ] = ()
    open_body: Annotated[
        bool, Meta(description="ignores unknown fields of its body, for clients of other services")
    ] = False
    errors: Annotated[
        tuple[int, ...],
        Meta(description="for the documentation: statuses besides those that every route has"),
    ] = ()
    events: Annotated[
        dict[str, Any] | None,
        Meta(
            description="the events of a stream by name, each with the type of its data; one "
            "without a name is a `message`"
        ),
    ] = None
    record: Annotated[
        Any,
        Meta(
            description="for every PUT and PATCH: the record that it changes, whose ETag the "
            "answers carry and If-Match names"
        ),
    ] = None
    no_record: Annotated[
        str | None, Meta(description="for a PUT or PATCH without `record`: the reason")
    ] = None
    filters: Annotated[
        str | None,
        Meta(description="for the documentation: explains `filter[column][operator]`"),
    ] = None

    @property
    def finds_tenant(self) -> bool:
        """True where the handler finds the tenant itself, because the caller has none."""
        return self.public or self.keyed is not None

    @property
    def is_open_to_unverified(self) -> bool:
        return self.own and not self.verified

    @property
    def takes_files(self) -> bool:
        return self.upload or self.streamed_file is not None


# Combinations that cannot be meant so.
_CONTRADICTIONS: Final[dict[str, Callable[[RouteOptions], bool]]] = {
    "verified needs own": lambda it: it.verified and not it.own,
    "handler_checks needs needs": lambda it: it.handler_checks and it.needs is None,
    "visitor_token needs keyed": lambda it: it.visitor_token and it.keyed is None,
    "takes_key=False needs visitor_token": lambda it: not it.takes_key and not it.visitor_token,
    "opens_session needs keyed": lambda it: it.opens_session and it.keyed is None,
    "voice needs keyed": lambda it: it.voice and it.keyed is None,
    "attachments needs keyed": lambda it: it.attachments and it.keyed is None,
    "tenant_pays needs public": lambda it: it.tenant_pays and not it.public,
    "stores needs a caller of a tenant": lambda it: it.stores and it.finds_tenant,
    "full_files needs upload": lambda it: it.full_files is not None and not it.upload,
    "max_upload_mb needs full_files": lambda it: (
        it.max_upload_mb is not None and it.full_files is None
    ),
    "upload and streamed_file exclude each other": lambda it: (
        it.upload and it.streamed_file is not None
    ),
    "streamed_file and idempotent='streamed' go together": lambda it: (
        (it.streamed_file is not None) is not (it.idempotent == "streamed")
    ),
    "streamed_texts needs streamed_file": lambda it: (
        bool(it.streamed_texts) and it.streamed_file is None
    ),
}


def options_of(handler: BaseRouteHandler) -> RouteOptions:
    options: RouteOptions = handler.opt[_KEY]
    return options


def request_options(connection: ASGIConnection[Any, Any, Any, Any]) -> RouteOptions:
    return options_of(connection.route_handler)


def replace_options(handler: BaseRouteHandler, **changes: Any) -> None:
    handler.opt[_KEY] = msgspec.structs.replace(options_of(handler), **changes)


def list_handlers(app: Litestar) -> Iterator[tuple[str, str, HTTPRouteHandler]]:
    """Yields the method, the path and the handler of every route."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, _) in route.route_handler_map.items():
                yield str(method), route.path_format, handler


def apply(app: Litestar, permissions: Collection[str]) -> None:
    """Reads the options of all routes. Raises RouteOptionError."""
    others = (route for route in app.routes if not isinstance(route, HTTPRoute))
    problems = [f"{route.path}: only HTTP routes have options that are checked" for route in others]
    for method, path, handler in list_handlers(app):
        if _KEY in handler.opt:
            # Read for another of its methods.
            continue
        try:
            options = _parse(handler, permissions)
        except ValueError as error:
            problems.append(f"{method} {path} ({handler.handler_name}): {error}")
        else:
            handler.opt = {_KEY: options}
    if problems:
        raise RouteOptionError("\n".join(["The options of these routes are wrong:", *problems]))


def _parse(handler: HTTPRouteHandler, permissions: Collection[str]) -> RouteOptions:
    """Raises ValueError, also for options of a wrong type (msgspec.ValidationError)."""
    if handler.fn.__module__ == HTTPRoute.__module__:
        # Litestar's own answer to OPTIONS, which lists the methods of a path.
        return RouteOptions(signed_in=True)
    unknown = handler.opt.keys() - set(RouteOptions.__struct_fields__)
    if unknown:
        raise ValueError(f"there is no option {', '.join(sorted(unknown))}")
    options = msgspec.convert(handler.opt, RouteOptions)
    problem = _find_problem(options, handler, permissions)
    if problem is not None:
        raise ValueError(problem)
    return options


def _find_problem(
    options: RouteOptions, handler: HTTPRouteHandler, permissions: Collection[str]
) -> str | None:
    callers = [name for name in _CALLERS if getattr(options, name)]
    if options.keyed == "either":
        callers.remove("keyed")
        if callers != ["needs"]:
            return "keyed='either' goes together with needs"
    if len(callers) != 1:
        found = " and ".join(callers) or "none of them"
        return f"must have one of {', '.join(_CALLERS)}; has {found}"
    if options.needs is not None and options.needs not in permissions:
        return f"there is no permission {options.needs}"
    if handler.media_type == MEDIA_TYPE and options.events is None:
        return f"a route that answers {MEDIA_TYPE} names its events"
    if (problem := _find_record_problem(options, handler)) is not None:
        return problem
    if options.idempotent is not True and "POST" not in handler.http_methods:
        return "idempotent is for POST"
    if options.stops_when_gone and handler.http_methods <= _READS:
        return "stops_when_gone is for writes; reads stop by themselves"
    return next((text for text, is_met in _CONTRADICTIONS.items() if is_met(options)), None)


def _find_record_problem(options: RouteOptions, handler: HTTPRouteHandler) -> str | None:
    changes = bool(handler.http_methods & _CHANGES)
    if options.record is not None and not isinstance(options.record, Record):
        return "record is a Record"
    if options.record is not None and options.no_record is not None:
        return "record and no_record exclude each other"
    if changes and options.record is None and not options.no_record:
        return "a PUT or PATCH needs record, or no_record with a reason"
    if changes and options.record is not None and options.record.lock is None:
        return "the record of a PUT or PATCH needs a lock"
    return None
