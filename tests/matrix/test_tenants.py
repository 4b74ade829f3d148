"""Every route with another tenant's things: they are not found, not shown and not changed."""

from collections.abc import AsyncIterator, Iterator
from itertools import chain
from itertools import product as every
from typing import Any

import httpx
import msgspec
import pytest
from litestar import get

from app.http.dependencies import Id, Tx
from app.main import create_app
from app.security.permissions import ROLES
from db.session import ALL_TENANTS
from tests.matrix import seeds
from tests.matrix.routes import Route, routes_of, texts_in
from tests.matrix.seeds import MARK, Rows
from tests.stores import Stores
from tests.world import Client, World

# One walk along every route, in every way.
pytestmark = pytest.mark.timeout(400)

_HIDDEN = {403, 404}
# super_admin is the one role that reaches every tenant.
_ROLES = [role for role in ROLES if role != "super_admin"]


class Neighbours(msgspec.Struct):
    """Two tenants with a row in every table; `ours` is who asks, `theirs` what must stay hidden."""

    world: World
    us: str
    ours: Rows
    them: str
    theirs: Rows

    async def caller(self, role: str) -> Client:
        """A new one per call, because some calls end the session or delete the caller."""
        return await self.world.user(role, self.us)

    async def stranger(self) -> Client:
        """Somebody of a tenant without planted rows, whose lists are whole."""
        return await self.world.user("tenant_admin")


class Walk(msgspec.Struct):
    """What came of calling every route in every way."""

    by_path: list[str]
    elsewhere: list[str]
    before: dict[str, list[Any]]
    after: dict[str, list[Any]]


@pytest.fixture(scope="module")
async def neighbours(product: World) -> AsyncIterator[Neighbours]:
    us, them = await product.tenant(), await product.tenant()
    ours, theirs = [await seeds.plant(product.services, tenant_id) for tenant_id in (us, them)]
    yield Neighbours(product, us, ours, them, theirs)
    for tenant_id in (us, them):
        await seeds.uproot(product.services, tenant_id)


@pytest.fixture(scope="module")
async def walk(neighbours: Neighbours) -> Walk:
    routes = routes_of(neighbours.world.app)
    assert len([route for route in routes if route.parameters]) > 10
    services, them = neighbours.world.services, neighbours.them
    before = await seeds.snapshot(services, them)
    by_path = [await _problems_by_path(route, neighbours) for route in routes if route.parameters]
    elsewhere = [await _problems_elsewhere(route, neighbours) for route in routes]
    after = await seeds.snapshot(services, them)
    return Walk(list(chain(*by_path)), list(chain(*elsewhere)), before, after)


# What can stand for a path parameter


def _values(parameter: str, rows: Rows) -> list[str]:
    """What a parameter may be filled with: the id of the row that it names, or any column of its
    own name; where nothing fits, the id of every row.
    """
    thing = parameter.removesuffix("_id").rstrip("s")
    named = [row["id"] for table, row in rows.items() if table.rstrip("s").endswith(thing)]
    named += [
        str(row[parameter]) for row in rows.values() if parameter in row and parameter != "id"
    ]
    return list(dict.fromkeys(named)) or [row["id"] for row in rows.values() if "id" in row]


def _fillings(route: Route, near: Neighbours) -> Iterator[dict[str, str]]:
    """Every way to name somebody else's thing: all of the path theirs, or one part of it."""
    names = route.parameters
    for theirs in every((True, False), repeat=len(names)):
        if not any(theirs):
            continue
        choices = [
            _values(name, near.theirs if foreign else near.ours)
            for name, foreign in zip(names, theirs, strict=True)
        ]
        for values in every(*choices):
            filling = dict(zip(names, values, strict=True))
            # A number, like a version, names something of ours just as well.
            if any(value not in _values(name, near.ours) for name, value in filling.items()):
                yield filling


def _leaks(answer: httpx.Response, near: Neighbours, sent: set[str]) -> bool:
    """True when the answer tells something of theirs that the caller did not say itself."""
    try:
        texts = set(texts_in(answer.json()))
    except ValueError:
        texts = {answer.text}
    theirs = {row["id"] for row in near.theirs.values() if "id" in row} - sent
    ours = {str(value) for row in near.ours.values() for value in row.values()}
    for text in texts - ours - sent:
        if any(known in text for known in sent):
            continue
        if MARK in text or any(known in text for known in theirs):
            return True
    return False


async def _problems_by_path(route: Route, near: Neighbours) -> list[str]:
    problems = []
    for role, values in every(_ROLES, _fillings(route, near)):
        answer = await route.call(await near.caller(role), values)
        where = f"{route} as {role} with {values}: {answer.status_code}"
        if answer.status_code not in _HIDDEN and not route.public:
            problems.append(where)
        if _leaks(answer, near, set(values.values())):
            problems.append(f"{where} leaks {answer.text[:200]}")
    return problems


# Lists, bodies and queries


async def _problems_elsewhere(route: Route, near: Neighbours) -> list[str]:
    """Their ids wherever else a caller can put one; the header means nothing from this role."""
    problems = []
    header = {"x-tenant-id": near.them}
    for bodies, query in _inputs(route, near):
        sent = {near.them, *map(str, bodies.values()), *query.values()}
        asker = await near.stranger()
        answer = await route.call(asker, body=bodies, params=query, headers=header)
        if answer.status_code >= 500 or _leaks(answer, near, sent):
            problems.append(f"{route} {bodies} {query}: {answer.status_code} {answer.text[:200]}")
    return problems


def _inputs(route: Route, near: Neighbours) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    yield {}, {}
    for name in route.body_ids:
        for value in _values(name, near.theirs):
            yield {name: value}, {}
    for name in {*route.query, "tenant_id"} - {"page", "per_page", "sort"}:
        if name.endswith("_id"):
            for value in _values(name, near.theirs):
                yield {}, {name: value}


# What came of it


def test_a_foreign_id_in_a_path_is_not_found(walk: Walk) -> None:
    assert walk.by_path == []


def test_nothing_of_another_tenant_is_told_by_any_route(walk: Walk) -> None:
    assert walk.elsewhere == []


def test_no_route_changes_anything_of_another_tenant(walk: Walk) -> None:
    assert walk.after == walk.before


# The matrix itself


def test_another_tenant_owns_something_in_every_table(neighbours: Neighbours) -> None:
    tables = {table.name for table in seeds.owned_tables()}
    assert len(tables) > 5
    assert tables <= set(neighbours.theirs)


@get("/careless/{user_id:str}", summary="Forgets the tenant")
async def careless(tx: Tx, user_id: Id) -> dict[str, str]:
    raw = await tx.raw()
    return {"email": await raw.fetchval("SELECT email FROM users WHERE id = $1", user_id) or ""}


@get("/careless", summary="Lists everybody")
async def careless_list(tx: Tx) -> list[str]:
    return [row["email"] for row in await (await tx.raw()).fetch("SELECT email FROM users")]


async def test_a_route_that_forgets_the_tenant_is_noticed(
    neighbours: Neighbours, stores: Stores
) -> None:
    world = World(create_app(stores.settings, routes=[careless, careless_list]))
    near = msgspec.structs.replace(neighbours, world=world)
    one, many = (route for route in routes_of(world.app) if "careless" in route.path)
    assert await _problems_by_path(one if one.parameters else many, near)
    assert await _problems_elsewhere(many if one.parameters else one, near)
    await world.services.close()


async def test_a_row_that_somebody_changes_is_noticed(neighbours: Neighbours) -> None:
    services = neighbours.world.services
    before = await seeds.snapshot(services, neighbours.them)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE invitations SET role = role || '!' WHERE tenant_id = $1", neighbours.them
        )
    assert await seeds.snapshot(services, neighbours.them) != before
