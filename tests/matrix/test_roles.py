"""Every route with every role: only roles with its permission pass."""

from app.areas import AREAS
from app.security.permissions import ROLES
from tests.lengths import IS_LONG
from tests.matrix.routes import Route, list_routes
from tests.world import World

_REFUSED_STATUSES = {401, 403}
_SERVER_ERROR = 500


def has_permission(route: Route, role: str) -> bool:
    return route.permission in {None, *AREAS.default_grants[role]}


def _list_roles(route: Route) -> list[str]:
    """Returns all roles in the long run, else those at the border: the last role that has the
    permission, in the order of their rights, and the first one that has not.
    """
    if IS_LONG:
        return list(ROLES)
    passing = [role for role in ROLES if has_permission(route, role)]
    refused = [role for role in ROLES if role not in passing]
    return [*passing[-1:], *refused[:1]]


async def _find_problem(route: Route, role: str, world: World) -> str | None:
    answer = await route.call(await world.user(role))
    if answer.status_code >= _SERVER_ERROR:
        return f"{route} as {role}: {answer.status_code}"
    if route.public:
        return None
    if not has_permission(route, role):
        details = {"required": route.permission, "your_role": role}
        is_refused = answer.status_code == 403 and answer.json()["error"].get("details") == details
        return None if is_refused else f"{route} as {role}: {answer.status_code} {answer.text}"
    if answer.status_code in _REFUSED_STATUSES:
        return f"{route} as {role}: {answer.status_code} {answer.text}"
    return None


async def test_a_role_passes_exactly_the_routes_of_its_permissions(product: World) -> None:
    routes = list_routes(product.app)
    requests = [(route, role) for route in routes for role in _list_roles(route)]
    assert {role for _, role in requests} >= set(ROLES) - {"super_admin"}
    problems = [await _find_problem(route, role, product) for route, role in requests]
    assert [problem for problem in problems if problem] == []


async def test_routes_that_are_not_public_need_a_login(product: World) -> None:
    anonymous = product.anonymous()
    answers = {
        str(route): (await route.call(anonymous)).status_code
        for route in list_routes(product.app)
        if not route.public
    }
    assert len(answers) > 10
    assert {name for name, status in answers.items() if status != 401} == set()


async def test_public_routes_never_fail_with_a_server_error(product: World) -> None:
    anonymous = product.anonymous()
    answers = {
        str(route): (await route.call(anonymous)).status_code
        for route in list_routes(product.app)
        if route.public
    }
    assert {name for name, status in answers.items() if status >= _SERVER_ERROR} == set()
