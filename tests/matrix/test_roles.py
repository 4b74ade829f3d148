"""Every route with every role: who lacks the permission is told so, who has it gets past it."""

import pytest

from app.areas import AREAS
from app.security.permissions import ROLES
from tests.matrix.routes import Route, routes_of
from tests.world import World

_REFUSED = {401, 403}
_BROKEN = 500


async def _wrong(route: Route, role: str, world: World) -> str | None:
    answer = await route.call(await world.user(role))
    if answer.status_code >= _BROKEN:
        return f"{route} as {role}: {answer.status_code}"
    if route.public:
        return None
    if route.permission is not None and route.permission not in AREAS.default_grants[role]:
        details = {"required": route.permission, "your_role": role}
        refused = answer.status_code == 403 and answer.json()["error"].get("details") == details
        return None if refused else f"{route} as {role}: {answer.status_code} {answer.text}"
    if answer.status_code in _REFUSED:
        return f"{route} as {role}: {answer.status_code} {answer.text}"
    return None


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_gets_where_its_permissions_lead_and_nowhere_else(
    product: World, role: str
) -> None:
    found = [await _wrong(route, role, product) for route in routes_of(product.app)]
    assert [problem for problem in found if problem] == []


async def test_nobody_gets_past_a_login_without_one(product: World) -> None:
    anonymous = product.anonymous()
    answers = {
        str(route): (await route.call(anonymous)).status_code
        for route in routes_of(product.app)
        if not route.public
    }
    assert len(answers) > 10
    assert {name for name, status in answers.items() if status != 401} == set()


async def test_what_is_public_never_breaks(product: World) -> None:
    anonymous = product.anonymous()
    answers = {
        str(route): (await route.call(anonymous)).status_code
        for route in routes_of(product.app)
        if route.public
    }
    assert {name for name, status in answers.items() if status >= _BROKEN} == set()
