"""Every route with a field in its body that nobody knows, such as a misspelt one."""

from app.security.permissions import ROLES
from tests.matrix.routes import Route, list_routes
from tests.matrix.test_roles import has_permission
from tests.world import World

_MISSPELT = "nmae_of_the_thing"
# They take what clients of another service send.
_OPEN_PATHS = {"/v1/audio/speech", "/v1/chat/completions", "/v1/embeddings", "/v1/responses"}
# Their bodies belong to the senders.
_FOREIGN_PATHS = {"/webhooks/in/{slug}"}


async def _find_problem(route: Route, world: World) -> str | None:
    role = next(role for role in ROLES if has_permission(route, role))
    answer = await route.call(await world.user(role), body={_MISSPELT: 1})
    if answer.status_code == 401 and route.public:
        # For holders of a key or a token of another kind.
        return None
    is_refused = answer.status_code == 422 and _MISSPELT in answer.json()["error"]["details"]
    if is_refused is (route.path in _OPEN_PATHS):
        return f"{route}: {answer.status_code} {answer.text}"
    return None


async def test_every_route_refuses_a_field_that_it_does_not_know(product: World) -> None:
    routes = [
        route
        for route in list_routes(product.app)
        if isinstance(route.body, dict) and not route.files and route.path not in _FOREIGN_PATHS
    ]
    assert len(routes) > 60
    problems = [await _find_problem(route, product) for route in routes]
    assert [problem for problem in problems if problem] == []
