"""A tour of all routes: creates the largest definitions, uses and changes them, reads lists of many
large rows, and deletes them. Only routes with something special are named.
"""

from collections.abc import Collection, Mapping
from typing import Any

import httpx
import msgspec
from litestar.handlers import HTTPRouteHandler

from tests.loop.definition import Definition
from tests.loop.definitions import (
    CONTENTS,
    DEFINITIONS,
    SHORT_BODIES,
    UPLOADS,
)
from tests.loop.driver import Driver, find_handlers
from tests.matrix.routes import FILE, UNKNOWN_ID, Route, list_routes

# What others refer to is created first.
_FIRST = (
    "/api/v1/agents",
    "/api/v1/data-tables",
    "/v1/tools",
    "/api/v1/workflows",
    "/api/v1/forms",
)
# What ends something that other routes need comes last, in this order.
_ENDS = (
    *("/cancel", "/end", "/disable", "/restore", "/unpublish", "/archive", "/deactivate"),
    *("/rotate-secret", "/identity-secret", "/reject", "/mfa/reset"),
)
# Addresses of what was created elsewhere.
_OTHER_PATHS = {
    "/api/v1/public/agents": "/api/v1/agents",
    "/v1/agents": "/api/v1/agents",
    "/api/v1/public/forms": "/api/v1/forms",
    "/api/v1/forms/slug": "/api/v1/forms",
    "/api/v1/workflow-executions": "/api/v1/workflows",
    "/webhooks/in": "/api/v1/incoming-webhooks",
}
_LARGEST_PAGE = {"page": "1", "per_page": "100"}
# Reads that end only when the client leaves.
_ENDLESS = {"/api/v1/notifications/stream", "/api/v1/event-log/stream"}


class Scene(msgspec.Struct):
    """Something that was created by `path`, with the largest bodies for its routes."""

    name: str = "nothing"
    path: str = ""
    ids: dict[str, str] = {}
    uses: dict[str, dict[str, Any]] = {}


class Tour:
    """`left_out` has routes, each with the name of a scene in which it is not called."""

    def __init__(self, driver: Driver, left_out: Collection[tuple[str, str]] = ()) -> None:
        app = driver.world.app
        self.driver = driver
        self._left_out = left_out
        self.routes = [route for route in list_routes(app) if route.path not in _ENDLESS]
        # The statuses of the answers of each route.
        self.statuses: dict[str, set[int]] = {str(route): set() for route in self.routes}
        self._scenes: list[Scene] = []
        self._handlers: dict[tuple[str, str], HTTPRouteHandler] = find_handlers(app)
        self._paths = {route.path for route in self.routes}
        self._lists = {route.path for route in self.routes if route.method == "GET"}

    async def create(self) -> None:
        routes = [route for route in self._list("POST") if not route.parameters]
        for route in sorted(routes, key=_order_of_creation):
            for build in DEFINITIONS.get(self._name_kind(route), ()):
                name = build.__name__.lstrip("_")
                if (str(route), name) not in self._left_out:
                    await self._create(route, name, build(self.driver.ids))
            await self._send_generated(route, Scene())

    async def _create(self, route: Route, name: str, definition: Definition) -> None:
        content = msgspec.json.encode(definition.body)
        answer = await self.driver.send(route, name, content=content)
        assert answer.status_code < 300, f"{route} {name}: {answer.text[:500]}"
        scene = Scene(name, route.path, dict(definition.ids), definition.uses)
        self._note(route, scene, answer)
        self._scenes.append(scene)
        if route.path.endswith("/api-keys"):
            self.driver.embed_key = _read_data(answer).get("api_key", "")

    async def publish(self) -> None:
        for route in self._list("POST"):
            if route.path.endswith("/publish"):
                await self._visit(route)

    async def use(self) -> None:
        # What is created within others is used after that.
        for route in sorted(self._list("POST"), key=lambda route: route.path.count("/")):
            if route.parameters and not route.path.endswith(("/publish", *_ENDS)):
                await self._visit(route)

    async def find_ids(self) -> None:
        """Finds what the routes name, before the lists are full of copies."""
        for route in self.routes:
            for scene in self._find_scenes(route):
                await self._resolve(route, scene)

    async def change(self) -> None:
        for route in self._list("PUT", "PATCH"):
            await self._visit(route)

    async def read(self) -> None:
        for route in self._list("GET"):
            await self._visit(route)

    async def end(self) -> None:
        for ending in _ENDS:
            for route in self._list("POST"):
                if route.parameters and route.path.endswith(ending):
                    await self._visit(route)

    async def delete(self) -> None:
        for route in sorted(self._list("DELETE"), key=lambda route: -len(route.path)):
            await self._visit(route)

    def _list(self, *methods: str) -> list[Route]:
        return [route for route in self.routes if route.method in methods]

    # Calls

    async def _visit(self, route: Route) -> None:
        """Calls the route for each scene that it belongs to."""
        scenes = self._find_scenes(route)
        for scene in scenes:
            if (str(route), scene.name) in self._left_out:
                continue
            body = scene.uses.get(self._name_kind(route))
            if body is not None:
                values = await self._resolve(route, scene)
                content = msgspec.json.encode(body)
                answer = await self.driver.send(route, scene.name, content=content, values=values)
                self._note(route, scene, answer)
            elif self._find_kind(route) is None:
                await self._send_without_body(route, scene)
        await self._send_generated(route, scenes[0])

    async def _send_without_body(self, route: Route, scene: Scene) -> None:
        query = {name: value for name, value in _LARGEST_PAGE.items() if name in route.query}
        query |= dict(route.needed_query)
        upload = UPLOADS.get(route.path, FILE)
        answer = await self.driver.send(
            route,
            scene.name,
            content=CONTENTS.get(route.path),
            values=await self._resolve(route, scene),
            query=query,
            files=dict.fromkeys(route.files, upload) or None,
        )
        self._note(route, scene, answer)

    async def _send_generated(self, route: Route, scene: Scene) -> None:
        kind = self._find_kind(route)
        if kind is None:
            if not route.parameters and route.method == "POST":
                await self._send_without_body(route, scene)
            return
        values = await self._resolve(route, scene)
        short = SHORT_BODIES.get(kind.__name__)
        if short is not None:
            content = msgspec.json.encode(short)
            answer = await self.driver.send(route, "a short body", content=content, values=values)
            self._note(route, scene, answer)
            return
        for answer in await self.driver.drive(route, kind, values):
            self._note(route, scene, answer)

    def _find_kind(self, route: Route) -> Any:
        """Returns the struct of the route's JSON body, if it has one."""
        field = self._handlers[route.method, route.path].parsed_data_field
        if field is None or route.files:
            return None
        return field.annotation.__args__[0] if field.is_optional else field.annotation

    def _name_kind(self, route: Route) -> str:
        return getattr(self._find_kind(route), "__name__", "")

    # Ids

    def _find_scenes(self, route: Route) -> list[Scene]:
        path = route.path.partition("/{")[0]
        path = _OTHER_PATHS.get(path, path)
        scenes = [scene for scene in self._scenes if scene.path == path]
        if not scenes:
            scenes = [Scene(path=path)]
            self._scenes += scenes
        return scenes

    def _note(self, route: Route, scene: Scene, answer: httpx.Response) -> None:
        """Keeps the status, and the ids in the answer."""
        self.statuses[str(route)].add(answer.status_code)
        data = _read_data(answer)
        ids = {name: value for name, value in data.items() if name.endswith("_id") and value}
        if "id" in data:
            names = [
                path.rpartition("{")[2].rstrip("}")
                for path in self._paths
                if path.rpartition("/{")[0] == route.path and path.endswith("}")
            ]
            ids |= dict.fromkeys(names, data["id"])
        if route.path.endswith("/execute") and "id" in data:
            ids["execution_id"] = data["id"]
        if "slug" in data:
            ids["slug"] = data["slug"]
        for name, value in ids.items():
            if route.method == "POST":
                scene.ids.setdefault(name, value)
                self.driver.ids.setdefault(name, value)

    async def _resolve(self, route: Route, scene: Scene) -> dict[str, str]:
        """Returns the values of the route's parameters. What the scene does not have is the first
        item of the list at the address before the parameter.
        """
        values: dict[str, str] = {}
        for name in route.parameters:
            value = scene.ids.get(name)
            path = route.path.partition(f"/{{{name}}}")[0]
            if value is None and (value := await self._find_first(path, values)) is not None:
                scene.ids[name] = value
            values[name] = value or self.driver.ids.get(name, UNKNOWN_ID)
        return values

    async def _find_first(self, path: str, values: Mapping[str, str]) -> str | None:
        if path not in self._lists:
            return None
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", value)
        answer = await self.driver.client.get(path)
        items = answer.json().get("data") if answer.status_code == 200 else None
        if isinstance(items, list) and items and isinstance(items[0], dict) and "id" in items[0]:
            return str(items[0]["id"])
        return None


def _order_of_creation(route: Route) -> int:
    return _FIRST.index(route.path) if route.path in _FIRST else len(_FIRST)


def _read_data(answer: httpx.Response) -> dict[str, Any]:
    if answer.status_code >= 300:
        return {}
    try:
        body: dict[str, Any] = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.DecodeError:
        # Not JSON, or only the beginning of it.
        return {}
    data = body.get("data", body)
    return data if isinstance(data, dict) else {}
