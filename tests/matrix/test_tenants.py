"""Every route with ids of another tenant: its rows are not found, returned or changed."""

from collections.abc import AsyncIterator, Iterator
from itertools import chain
from itertools import product as cartesian_product
from typing import Any

import httpx
import msgspec
import pytest
from litestar import get

from app.areas import AREAS
from app.http.dependencies import Id, Tx
from app.main import create_app
from app.security.permissions import ROLES
from db.session import ALL_TENANTS
from tests.lengths import IS_LONG
from tests.matrix import seeds
from tests.matrix.routes import Route, iterate_texts, list_routes
from tests.matrix.seeds import MARKER, Rows, list_values
from tests.stores import Stores
from tests.world import Client, World

# The fixture `result` calls every route with every combination of ids.
pytestmark = pytest.mark.timeout(400)

_HIDDEN_STATUSES = {403, 404}
# super_admin is the one role that reaches every tenant.
_ROLES = [role for role in ROLES if role != "super_admin"]


class TwoTenants(msgspec.Struct):
    """Two tenants with a row in every table. Callers of the own one must not see the other."""

    world: World
    own_id: str
    own_rows: Rows
    other_id: str
    other_rows: Rows
    own_values: set[str]
    other_ids: set[str]
    # Of both tenants.
    ids: set[str]
    readers: dict[tuple[str, str | None], Client]

    def combine(self, choices: list[list[str]], *, is_short: bool) -> Iterator[tuple[str, ...]]:
        """Yields all combinations in the long run, else those of ids, and each text of another
        column once.
        """
        if IS_LONG:
            yield from cartesian_product(*choices)
            return
        ids = [
            [value for value in values if self._is_id(value)] or values[:1] for values in choices
        ]
        yield from cartesian_product(*ids)
        first = tuple(values[0] for values in ids)
        for place, values in enumerate(choices):
            for value in () if is_short else values:
                if value not in ids[place]:
                    yield (*first[:place], value, *first[place + 1 :])

    def _is_id(self, value: str) -> bool:
        """True for the id of a row, and for what both tenants have, such as a version number."""
        return value in self.ids or MARKER not in value

    async def call_as(self, role: str, route: Route, values: dict[str, str]) -> httpx.Response:
        """Calls a route as the same user as before, or as a new one when the request may have had
        an effect: it may have ended the session or deleted the user.
        """
        answer = await route.call(await self._find_user(role, self.own_id), values)
        if route.method != "GET" and answer.status_code not in _HIDDEN_STATUSES:
            del self.readers[role, self.own_id]
        return answer

    async def find_stranger(self, route: Route) -> Client:
        """Returns a user of a third tenant, which has no rows from `seeds`."""
        if route.method != "GET":
            return await self.world.user("tenant_admin")
        return await self._find_user("tenant_admin", None)

    async def _find_user(self, role: str, tenant_id: str | None) -> Client:
        if (role, tenant_id) not in self.readers:
            self.readers[role, tenant_id] = await self.world.user(role, tenant_id)
        return self.readers[role, tenant_id]


class MatrixResult(msgspec.Struct):
    """The problems of all requests, and the other tenant's rows before and after them."""

    path_problems: list[str]
    input_problems: list[str]
    before: dict[str, list[Any]]
    after: dict[str, list[Any]]


@pytest.fixture(scope="module")
async def tenants(product: World) -> AsyncIterator[TwoTenants]:
    own_id, other_id = await product.tenant(), await product.tenant()
    own_rows, other_rows = [
        await seeds.insert_rows(product.services, tenant_id) for tenant_id in (own_id, other_id)
    ]
    own_values = {str(value) for row in own_rows.values() for value in row.values()}
    own_ids, other_ids = [
        {row["id"] for row in rows.values() if "id" in row} for rows in (own_rows, other_rows)
    ]
    yield TwoTenants(
        product,
        own_id,
        own_rows,
        other_id,
        other_rows,
        own_values,
        other_ids,
        own_ids | other_ids,
        {},
    )
    for tenant_id in (own_id, other_id):
        await seeds.delete_rows(product.services, tenant_id)


@pytest.fixture(scope="module")
async def result(tenants: TwoTenants) -> MatrixResult:
    routes = list_routes(tenants.world.app)
    assert len([route for route in routes if route.parameters]) > 10
    services, other_id = tenants.world.services, tenants.other_id
    # A worker of another test may run these at any time: afterwards they have nothing to change.
    for task in AREAS.periodic_tasks:
        await task.run(services)
    before = await seeds.read_snapshot(services, other_id)
    path_problems = [
        await _find_path_problems(route, tenants) for route in routes if route.parameters
    ]
    input_problems = [await _find_input_problems(route, tenants) for route in routes]
    after = await seeds.read_snapshot(services, other_id)
    return MatrixResult(list(chain(*path_problems)), list(chain(*input_problems)), before, after)


# Values of path parameters


def _list_path_values(
    route: Route, tenants: TwoTenants, *, is_short: bool = False
) -> Iterator[dict[str, str]]:
    """Yields values for the path with at least one id of the other tenant. Those of `is_short` have
    none that is the id of no row.
    """
    names = route.parameters
    own_values = {name: list_values(name, tenants.own_rows) for name in names}
    other_values = {name: list_values(name, tenants.other_rows) for name in names}
    for foreign_flags in cartesian_product((True, False), repeat=len(names)):
        choices = [
            (other_values if is_foreign else own_values)[name]
            for name, is_foreign in zip(names, foreign_flags, strict=True)
        ]
        for values in tenants.combine(choices, is_short=is_short):
            path_values = dict(zip(names, values, strict=True))
            # Skips values that exist in both tenants, such as a version number.
            if any(value not in own_values[name] for name, value in path_values.items()):
                yield path_values


def _has_leak(answer: httpx.Response, tenants: TwoTenants, sent_values: set[str]) -> bool:
    """True when the response has data of the other tenant that the request did not contain."""
    if not any(value in answer.text for value in (MARKER, *tenants.other_ids)):
        return False
    try:
        texts = set(iterate_texts(answer.json()))
    except ValueError:
        texts = {answer.text}
    other_ids = tenants.other_ids - sent_values
    for text in texts - tenants.own_values - sent_values:
        if any(value in text for value in sent_values):
            continue
        if MARKER in text or any(value in text for value in other_ids):
            return True
    return False


def _list_roles(route: Route) -> list[str]:
    """Returns the roles that pass the permission of the route, or the first and the last of them:
    between those, rows are found by the same conditions.
    """
    roles = [
        role for role in _ROLES if route.permission in {None, *AREAS.default_grants[role]}
    ] or _ROLES
    return roles if IS_LONG else [*dict.fromkeys((roles[0], roles[-1]))]


async def _find_path_problems(route: Route, tenants: TwoTenants) -> list[str]:
    problems = []
    first, *others = _list_roles(route)
    requests = [(first, values) for values in _list_path_values(route, tenants)]
    for role in others:
        shown = _list_path_values(route, tenants, is_short=True)
        requests += [(role, values) for values in shown]
    for role, values in requests:
        answer = await tenants.call_as(role, route, values)
        request = f"{route} as {role} with {values}: {answer.status_code}"
        if answer.status_code not in _HIDDEN_STATUSES and not route.public:
            problems.append(request)
        if _has_leak(answer, tenants, set(values.values())):
            problems.append(f"{request} leaks {answer.text[:200]}")
    return problems


# Lists, bodies and queries


async def _find_input_problems(route: Route, tenants: TwoTenants) -> list[str]:
    """Sends ids of the other tenant in body, query and header."""
    problems = []
    header = {"x-tenant-id": tenants.other_id}
    for bodies, query in _list_inputs(route, tenants):
        sent_values = {tenants.other_id, *map(str, bodies.values()), *query.values()}
        caller = await tenants.find_stranger(route)
        answer = await route.call(caller, body=bodies, params=query, headers=header)
        if answer.status_code >= 500 or _has_leak(answer, tenants, sent_values):
            problems.append(f"{route} {bodies} {query}: {answer.status_code} {answer.text[:200]}")
    return problems


def _list_inputs(
    route: Route, tenants: TwoTenants
) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    yield {}, {}
    for name in route.body_ids:
        for value in list_values(name, tenants.other_rows):
            yield {name: value}, {}
    for name in {*route.query, "tenant_id"} - {"page", "per_page", "sort"}:
        if name.endswith("_id"):
            for value in list_values(name, tenants.other_rows):
                yield {}, {name: value}


# Results


def test_a_foreign_id_in_a_path_is_not_found(result: MatrixResult) -> None:
    assert result.path_problems == []


def test_no_route_returns_anything_of_another_tenant(result: MatrixResult) -> None:
    assert result.input_problems == []


def test_no_route_changes_anything_of_another_tenant(result: MatrixResult) -> None:
    assert result.after == result.before


# The matrix itself


def test_the_other_tenant_has_a_row_in_every_table(tenants: TwoTenants) -> None:
    tables = {table.name for table in seeds.list_owned_tables()}
    assert len(tables) > 5
    assert tables <= set(tenants.other_rows)


@get("/unscoped/{user_id:str}", summary="Reads a user of any tenant", signed_in=True)
async def get_unscoped_user(tx: Tx, user_id: Id) -> dict[str, str]:
    raw = await tx.raw()
    return {"email": await raw.fetchval("SELECT email FROM users WHERE id = $1", user_id) or ""}


@get("/unscoped", summary="Lists users of all tenants", signed_in=True)
async def list_unscoped_users(tx: Tx) -> list[str]:
    return [row["email"] for row in await (await tx.raw()).fetch("SELECT email FROM users")]


async def test_a_route_without_a_tenant_condition_is_detected(
    tenants: TwoTenants, stores: Stores
) -> None:
    world = World(create_app(stores.settings, routes=[get_unscoped_user, list_unscoped_users]))
    same_tenants = msgspec.structs.replace(tenants, world=world, readers={})
    first, second = (route for route in list_routes(world.app) if "unscoped" in route.path)
    assert await _find_path_problems(first if first.parameters else second, same_tenants)
    assert await _find_input_problems(second if first.parameters else first, same_tenants)
    await world.services.close()


async def test_a_changed_row_is_detected(tenants: TwoTenants) -> None:
    services = tenants.world.services
    before = await seeds.read_snapshot(services, tenants.other_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE invitations SET role = role || '!' WHERE tenant_id = $1", tenants.other_id
        )
    assert await seeds.read_snapshot(services, tenants.other_id) != before
