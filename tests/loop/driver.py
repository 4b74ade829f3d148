"""Calls routes with bodies, and measures what each call and the work that it causes cost."""

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from functools import cache, partial
from typing import Any

import httpx
import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from app.http.bodies import MAX_BYTES
from tests.assertions import wait_until
from tests.database import fetch_rows
from tests.loop import asgi
from tests.loop.largest import Unfit, build_body
from tests.loop.steps import MemoryPeak, StepTimer, is_short, sampling
from tests.matrix.routes import Route
from tests.world import Client, World

MAX_REQUEST_BYTES = 64 * 1024 * 1024
_TRIES = 3
# Sizes and depths of values that have no type, until the route accepts one.
_RUNGS = ((MAX_BYTES - 10_000, 60), (60_000, 14), (4_000, 4))
_MAX_SENDS = 4
_UNIQUE_FIELDS = ("name", "slug", "email")
_JSON = {"content-type": "application/json"}
# Routes that may end the session of their caller.
_OF_SESSIONS = ("/auth/", "/api/v1/mfa/")
_UNFINISHED = """
    SELECT kind FROM work
    WHERE tenant_id = $1 AND state IN ('pending', 'leased') AND run_at <= now() LIMIT 1
"""
_number = itertools.count(1)


class Cost(msgspec.Struct):
    route: str
    body: str
    status: int
    step: str
    seconds: float
    bytes: int
    is_allowed: bool
    places: list[str]

    def __str__(self) -> str:
        figures = f"{self.seconds * 1000:.0f} ms in {self.step}, {self.bytes / 2**20:.0f} MB"
        places = "; ".join(self.places)
        return f"{self.route} with {self.body}: {self.status}, {figures} {places}".rstrip()


class Driver:
    """`ids` are the values of parameters and of fields by name."""

    def __init__(self, world: World, client: Client, ids: Mapping[str, str]) -> None:
        self.world = world
        self.client = client
        self.ids = dict(ids)
        self.embed_key = ""
        self.costs: list[Cost] = []
        # The longest step of each name.
        self.steps: dict[str, float] = {}

    async def send(self, route: Route, name: str, **request: Any) -> httpx.Response:
        """Repeats a call that costs too much: a single one may be disturbed. A repeated one is
        sampled, to name the places that take the time.
        """
        costs: list[Cost] = []
        while not costs or (not costs[-1].is_allowed and len(costs) < _TRIES):
            samples: Counter[str] = Counter()
            timer, peak = StepTimer(), MemoryPeak()
            client = await self._find_client(route)
            prepared = self._prepare(client, route, **request)
            with ExitStack() as stack:
                stack.enter_context(peak.running())
                if costs:
                    stack.enter_context(sampling(samples))
                response = await timer.run(self._call(client, prepared))
            for step, seconds in timer.seconds.items():
                self.steps[step] = max(seconds, self.steps.get(step, 0.0))
            places = [f"{count} x {place}" for place, count in samples.most_common(4)]
            step, seconds = timer.longest
            is_allowed = is_short(seconds) and peak.bytes <= MAX_REQUEST_BYTES
            figures = (step, seconds, peak.bytes, is_allowed, places)
            costs.append(Cost(str(route), name, response.status_code, *figures))
        self.costs.append(costs[-1])
        return response

    async def _call(self, client: Client, request: httpx.Request) -> httpx.Response:
        """Returns when the work that the request caused has ended, too."""
        response = await asgi.call(self.world.app, request, client.address)
        if request.method != "GET":
            await wait_until(self._is_idle)
        return response

    async def _find_client(self, route: Route) -> Client:
        if route.public:
            return self.world.anonymous()
        if route.path.startswith(_OF_SESSIONS):
            return await self.world.user("super_admin", self.client.tenant_id)
        return self.client

    def _prepare(
        self,
        client: Client,
        route: Route,
        *,
        content: bytes | None = None,
        values: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> httpx.Request:
        headers = {"x-api-key": self.embed_key} if "/public/agents/" in route.path else {}
        headers |= {"x-parley-console": "1"} if "/console/" in route.path else {}
        more: dict[str, Any] = {}
        if files is not None:
            more["files"] = {name: (f"{name}.csv", data) for name, data in files.items()}
        elif content is not None:
            more["content"] = content
            headers |= _JSON
        path = route.fill_path({**self.ids, **(values or {})})
        return client.http.build_request(
            route.method, path, params=dict(query or {}), headers=headers, **more
        )

    async def _is_idle(self) -> bool:
        rows = await fetch_rows(self.world.services, _UNFINISHED, self.client.tenant_id)
        return not rows

    # Bodies

    async def drive(
        self, route: Route, kind: Any, values: Mapping[str, str]
    ) -> list[httpx.Response]:
        """Sends the largest bodies that the schema of the route allows, and the example if it
        accepts none of them.
        """
        example = {**kind.example, **_select(self.ids, kind.example)}
        builds: dict[str, Callable[[int], dict[str, Any]]] = {}
        for name, many_items in (("most items", True), ("longest texts", False)):
            builds[name] = cache(partial(self._build, kind, many_items))
        builds["the example"] = lambda _rung: example
        answers: list[httpx.Response] = []
        largest: list[dict[str, Any]] = []
        for name, build in builds.items():
            if name == "the example" and any(answer.is_success for answer in answers):
                break
            try:
                if (body := build(0)) in largest:
                    continue
                largest.append(body)
                answers.append(await self._send_accepted(route, name, build, example, values))
            except Unfit:
                continue
        return answers

    def _build(self, kind: Any, many_items: bool, rung: int) -> dict[str, Any]:  # noqa: FBT001
        size, depth = _RUNGS[rung]
        return build_body(kind, size, many_items=many_items, ids=self.ids, depth=depth)

    async def _send_accepted(
        self,
        route: Route,
        name: str,
        build: Callable[[int], dict[str, Any]],
        example: dict[str, Any],
        values: Mapping[str, str],
    ) -> httpx.Response:
        """Replaces fields that the route refuses by smaller ones, and at last by the example's."""
        rungs: Counter[str] = Counter()
        for _ in range(_MAX_SENDS):
            bodies = {rung: build(rung) for rung in {0, *rungs.values()} if rung < len(_RUNGS)}
            bodies[len(_RUNGS)] = example
            body = {
                field: bodies[min(rungs[field], len(_RUNGS))][field]
                for field in bodies[0]
                if field in bodies[min(rungs[field], len(_RUNGS))]
            }
            content = msgspec.json.encode(_make_unique(body))
            response = await self.send(route, name, content=content, values=values)
            refused = set(_list_refused(response)) & set(bodies[0])
            if not refused:
                break
            # The second smaller one is the example's, if others are refused as well.
            rungs.update(dict.fromkeys(refused, 1 if len(refused) == 1 else 2))
        return response


def _select(ids: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: ids[name] for name in names if name in ids}


def _make_unique(body: dict[str, Any]) -> dict[str, Any]:
    suffix = f"{next(_number):06}"
    return {
        name: value[: -len(suffix)] + suffix
        if name in _UNIQUE_FIELDS and isinstance(value, str) and "@" not in value and len(value) > 6
        else value
        for name, value in body.items()
    }


def _list_refused(response: httpx.Response) -> Iterator[str]:
    """Yields the fields that an answer names."""
    if response.status_code in {400, 422}:
        for path in response.json()["error"].get("details") or {}:
            yield path.partition(".")[0]


def find_handlers(app: Litestar) -> dict[tuple[str, str], HTTPRouteHandler]:
    return {
        (str(method), route.path_format): handler
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for method, (handler, _) in route.route_handler_map.items()
    }
