"""Every route that takes a body, with large ones that are wrong: the answers are short, and no
other request waits for them.
"""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.loop.steps import StepTimer, is_short, watched_tasks
from tests.matrix import seeds
from tests.matrix.large_bodies import list_bodies
from tests.matrix.routes import Route, list_routes
from tests.matrix.seeds import Rows, list_values
from tests.world import Client, World

MAX_ANSWER_BYTES = 40_000
JSON = {"content-type": "application/json"}


async def _send(
    client: Client, route: Route, values: dict[str, str], body: bytes
) -> tuple[httpx.Response, float]:
    timer = StepTimer()
    with watched_tasks():
        answer = await timer.run(
            client(route.method, route.fill_path(values), content=body, headers=JSON)
        )
    return answer, timer.longest[1]


async def _find_problems(
    world: World, route: Route, tenant_id: str, rows: Rows
) -> AsyncIterator[str]:
    values = {name: list_values(name, rows)[0] for name in route.parameters}
    for name, body in list_bodies(route):
        for _ in range(3):
            client = (
                world.anonymous() if route.public else await world.user("super_admin", tenant_id)
            )
            answer, held = await _send(client, route, values, body)
            if is_short(held):
                break
        else:
            yield f"{route}: {name}: {held:.3f} s"
        if len(answer.content) > MAX_ANSWER_BYTES:
            yield f"{route}: {name}: {answer.status_code} with {len(answer.content)} bytes"
        if not route.public and answer.status_code in {401, 403, 429}:
            yield f"{route}: {name}: {answer.status_code} before the body was read"


async def test_a_large_wrong_body_holds_nobody_up(
    product: World, subtests: pytest.Subtests
) -> None:
    tenant_id = await product.tenant()
    rows = await seeds.insert_rows(product.services, tenant_id)
    routes = [route for route in list_routes(product.app) if route.body and not route.files]
    assert len(routes) > 50
    for route in routes:
        with subtests.test(str(route)):
            problems = [item async for item in _find_problems(product, route, tenant_id, rows)]
            assert problems == []
    await seeds.delete_rows(product.services, tenant_id)
