"""Every GET with ids of its own tenant: one statement of plain SQL, and no ORM session."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import product as cartesian_product

import httpx
import msgspec
import pytest

from db.session import Tx
from tests.database import run_sql
from tests.matrix import seeds
from tests.matrix.routes import Route, list_routes
from tests.matrix.seeds import Rows
from tests.matrix.test_tenants import _list_values
from tests.world import Client, World

# Statistics and what is gathered from several areas.
_MORE_STATEMENTS = {
    "/api/v1/agents/{agent_id}/stats",
    "/api/v1/agents/{agent_id}/status",
    "/api/v1/event-log/trace/{correlation_id}",
    "/api/v1/event-subscriptions/{subscription_id}/executions",
    "/api/v1/event-subscriptions/{subscription_id}/executions/{delivery_id}",
    "/v1/tools/{tool_id}/stats",
}


# The rows have any text in every column; responses have only certain values in these.
_VALID_VALUES = (
    "UPDATE sub_agents SET relationship_type = 'direct' WHERE tenant_id = $1",
    "UPDATE conversation_entries SET type = 'message', logged = true WHERE tenant_id = $1",
    "UPDATE chat_jobs SET reply = NULL, error = NULL WHERE tenant_id = $1",
    "UPDATE tenants SET limits = '{}' WHERE id = $1",
)


class Statements(msgspec.Struct):
    plain: int = 0
    of_orm: int = 0


@pytest.fixture(scope="module")
async def rows(product: World) -> AsyncIterator[Rows]:
    tenant_id = await product.tenant()
    rows = await seeds.insert_rows(product.services, tenant_id)
    for statement in _VALID_VALUES:
        await run_sql(product.services, statement, tenant_id)
    yield rows
    await seeds.delete_rows(product.services, tenant_id)


@contextmanager
def _count_statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[Statements]:
    statements = Statements()
    raw, session = Tx.raw, Tx.session

    async def count_plain(tx: Tx) -> object:
        statements.plain += 1
        return await raw(tx)

    async def count_of_orm(tx: Tx) -> object:
        statements.of_orm += 1
        return await session(tx)

    with monkeypatch.context() as patched:
        patched.setattr(Tx, "raw", count_plain)
        patched.setattr(Tx, "session", count_of_orm)
        yield statements


async def _read(route: Route, reader: Client, rows: Rows) -> httpx.Response | None:
    """Calls the route with ids of rows, and returns the first response that has found them."""
    choices = [_list_values(name, rows) for name in route.parameters]
    for values in cartesian_product(*choices):
        response = await route.call(reader, dict(zip(route.parameters, values, strict=True)))
        if response.status_code == 200:
            return response
    return None


async def test_a_read_is_one_statement_without_the_orm(
    product: World, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant_id = rows["tenants"]["id"]
    readers = [await product.user(role, tenant_id) for role in ("tenant_admin", "super_admin")]
    routes = [route for route in list_routes(product.app) if route.method == "GET"]
    problems, count = [], 0
    for reader, route in cartesian_product(readers, routes):
        # The first request also reads the session, the second one finds it in the cache.
        response = await _read(route, reader, rows)
        if response is None or not response.headers["Content-Type"].endswith("json"):
            continue
        with _count_statements(monkeypatch) as statements:
            await _read(route, reader, rows)
        count += 1
        # An empty list of a thing also checks that the thing exists; a very long one, of rows that
        # other tests left, estimates its total.
        is_estimated = b'"estimated":true' in response.content
        most = 2 if is_estimated or response.json().get("data") == [] else 1
        is_exception = route.path in _MORE_STATEMENTS
        if statements.of_orm or (statements.plain > most and not is_exception):
            problems.append(f"{route}: {statements}")
    assert not problems, "\n".join(problems)
    assert count > 80
