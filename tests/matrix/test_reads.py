"""Every GET with ids of its own tenant: one statement of plain SQL, and no ORM session."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import product as cartesian_product

import asyncpg
import msgspec
import pytest

from db.session import Tx
from tests.database import run_sql
from tests.matrix import seeds
from tests.matrix.routes import Route, list_routes
from tests.matrix.seeds import VALID_VALUES, Rows, list_values
from tests.world import Client, World

# How many statements a read needs that is not one statement. Statistics and traces gather from
# several areas; the deliveries of a subscription first find its endpoint, rows the columns of
# their table, a submission the workflow that it started, and what belongs to a form the form.
_STATEMENTS = {
    "/api/v1/agents/{agent_id}/stats": 2,
    "/api/v1/agents/{agent_id}/status": 2,
    "/api/v1/data-tables/{table_id}/rows": 2,
    "/api/v1/event-log/trace/{correlation_id}": 9,
    "/api/v1/event-subscriptions/{subscription_id}/executions": 2,
    "/api/v1/event-subscriptions/{subscription_id}/executions/{delivery_id}": 2,
    "/api/v1/forms/{form_id}/analytics": 5,
    "/api/v1/forms/{form_id}/submissions/{submission_id}": 2,
    "/api/v1/public/forms/{slug}/conversations/{conversation_id}": 2,
    "/api/v1/public/forms/{slug}/conversations/{conversation_id}/messages": 3,
    "/api/v1/usage": 3,
    "/api/v1/usage/limits": 3,
    "/api/v1/workflows/{workflow_id}/versions/{version}/diff/{other}": 2,
    "/v1/tools/{tool_id}/stats": 3,
}
# Not rows as JSON; a read that is recorded in the audit log; those whose id is in a header; and
# what the reader has said.
_NOT_READS = {
    "/api/v1/notification-channels/{channel_id}/reveal",
    "/api/v1/notifications/stream",
    "/api/v1/event-log/stream",
    "/api/v1/agents/{agent_id}/documents/{document_id}/content",
    "/api/v1/avatars/{key}",
    "/api/v1/conversations/export",
    "/api/v1/files/{file_id}/content",
    "/api/v1/data-tables/{table_id}/export",
    "/api/v1/forms/{form_id}/files/{file_id}",
    "/api/v1/forms/{form_id}/submissions.csv",
    "/api/v1/public/agents/{agent_id}/conversations",
    "/api/v1/public/agents/{agent_id}/session",
    "/api/v1/public/forms/{slug}/drafts",
    "/v1/credentials/{credential_id}/reveal",
    "/v1/responses/{response_id}",
}
_OF_SUPER_ADMIN = {"/api/v1/tenants", "/api/v1/tenants/{tenant_id}"}

_SET_SUBSCRIPTION = "UPDATE webhooks SET subscription_id = $2 WHERE tenant_id = $1"
_NOT_FOUND = "not found"


class Statements(msgspec.Struct):
    plain: int = 0
    of_orm: int = 0


@pytest.fixture(scope="module")
async def rows(product: World) -> AsyncIterator[Rows]:
    tenant_id = await product.tenant()
    rows = await seeds.insert_rows(product.services, tenant_id)
    for statement in VALID_VALUES:
        await run_sql(product.services, statement, tenant_id)
    yield rows
    await seeds.delete_rows(product.services, tenant_id)


# Set in the context of the request. A worker of another test may run statements meanwhile.
_counted: ContextVar[bool] = ContextVar("counted", default=False)


@contextmanager
def _count_statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[Statements]:
    statements = Statements()
    session = Tx.session

    def count_plain(method: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        @wraps(method)
        async def count(connection: object, sql: str, *args: object, **options: object) -> object:
            statements.plain += _counted.get()
            return await method(connection, sql, *args, **options)

        return count

    async def count_of_orm(tx: Tx) -> object:
        statements.of_orm += _counted.get()
        return await session(tx)

    with monkeypatch.context() as patched:
        for name in ("fetch", "fetchrow", "fetchval", "execute", "executemany"):
            patched.setattr(
                asyncpg.Connection, name, count_plain(getattr(asyncpg.Connection, name))
            )
        patched.setattr(Tx, "session", count_of_orm)
        token = _counted.set(True)
        yield statements
        _counted.reset(token)


async def _find_values(route: Route, reader: Client, rows: Rows) -> dict[str, str] | None:
    """Returns ids of rows that the route finds."""
    choices = [list_values(name, rows) for name in route.parameters]
    for combination in cartesian_product(*choices):
        values = dict(zip(route.parameters, combination, strict=True))
        if (await route.call(reader, values)).status_code == 200:
            return values
    return None


async def _find_problem(
    route: Route, reader: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Returns what is wrong with a read; "" if nothing is."""
    # This also leaves the session in the cache.
    values = await _find_values(route, reader, rows)
    if values is None:
        return _NOT_FOUND
    problem = await _count_too_many(route, reader, values, monkeypatch)
    # On a busy machine, the session may have left the cache meanwhile; now it is there again.
    return problem and await _count_too_many(route, reader, values, monkeypatch)


async def _count_too_many(
    route: Route, reader: Client, values: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> str:
    with _count_statements(monkeypatch) as statements:
        response = await route.call(reader, values)
    most = _STATEMENTS.get(route.path, 1)
    if b'"estimated":true' in response.content or b'"data":[]' in response.content:
        # A very long list, of rows that other tests left, estimates its total; an empty list of a
        # thing also checks that the thing exists.
        most += 1
    return f"{statements}" if statements.of_orm or statements.plain > most else ""


@pytest.mark.parametrize("role", ["tenant_admin", "super_admin"])
async def test_a_read_is_one_statement_without_the_orm(
    product: World, rows: Rows, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    tenant_id = rows["tenants"]["id"]
    reader = await product.user(role, tenant_id)
    exceptions = _NOT_READS if role == "super_admin" else _NOT_READS | _OF_SUPER_ADMIN
    routes = [
        route
        for route in list_routes(product.app)
        if route.method == "GET" and route.path not in exceptions
    ]
    assert len(routes) > 50
    problems = dict.fromkeys(routes, _NOT_FOUND)
    # The row in `webhooks` is first the address of a subscription, then a webhook.
    for subscription_id in (rows["webhooks"]["subscription_id"], None):
        await run_sql(product.services, _SET_SUBSCRIPTION, tenant_id, subscription_id)
        for route in [route for route, problem in problems.items() if problem == _NOT_FOUND]:
            problems[route] = await _find_problem(route, reader, rows, monkeypatch)
    assert [f"{route}: {problem}" for route, problem in problems.items() if problem] == []
