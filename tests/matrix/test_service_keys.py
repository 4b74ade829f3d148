"""Every route with service keys: they pass where their role does, but manage no accounts."""

from app.security.service_keys import WITHHELD
from tests.identity.service_keys.keys import create_program
from tests.matrix.routes import Route, list_routes
from tests.matrix.test_roles import has_permission
from tests.world import Client, World

_SERVER_ERROR = 500
# Programs have no account: "own" in the options of routes.
_ACCOUNT = {
    "/auth/logout",
    "/auth/me",
    "/auth/sessions",
    "/auth/sessions/{session_id}",
    "/auth/change-password",
    "/auth/verify-email/resend",
    "/me/permissions",
    "/api/v1/notifications/preferences",
}
_ACCOUNT_PREFIXES = ("/api/v1/profile", "/api/v1/mfa/")
# Open to keys for certain agents, whose other paths name an agent.
_CHECKED_PATHS = (
    "/api/v1/conversations",
    "/api/v1/conversations/export",
    "/v1/chat/completions",
    "/v1/models",
    "/v1/models/{model_id}",
    "/v1/responses",
    "/v1/responses/{response_id}",
    "/v1/responses/{response_id}/cancel",
)


def _required(route: Route) -> str | None:
    """What a key lacks for the route, whatever its role."""
    if route.path in _ACCOUNT or route.path.startswith(_ACCOUNT_PREFIXES):
        return "account"
    return route.permission if route.permission in WITHHELD else None


async def _find_problem(route: Route, program: Client, role: str) -> str | None:
    answer = await route.call(program)
    if answer.status_code >= _SERVER_ERROR:
        return f"{route}: {answer.status_code} {answer.text}"
    if route.public:
        return None
    required = _required(route)
    if required is None and not has_permission(route, role):
        required = route.permission
    if required is None:
        is_right = answer.status_code not in {401, 403}
    else:
        details = {"required": required, "your_role": role}
        is_right = answer.status_code == 403 and answer.json()["error"].get("details") == details
    return None if is_right else f"{route}: {answer.status_code} {answer.text}"


async def test_a_key_passes_where_its_role_does_except_for_accounts(product: World) -> None:
    operator = await product.user("super_admin")
    for role in ("super_admin", "agent_user"):
        program = await create_program(operator, role)
        routes = list_routes(product.app)
        problems = [await _find_problem(route, program, role) for route in routes]
        assert [problem for problem in problems if problem] == []


async def test_a_key_for_certain_agents_passes_routes_of_these_alone(product: World) -> None:
    admin = await product.user("tenant_admin")
    agent = {"name": "Agent", "primary_model": "local/smollm2", "system_prompt": "Help."}
    agent_id = (await admin.post("/api/v1/agents", agent)).json()["id"]
    program = await create_program(admin, "tenant_admin", agent_ids=[agent_id])
    passed = set()
    for route in list_routes(product.app):
        answer = await route.call(program)
        is_refused = answer.status_code == 403
        if not route.public and not is_refused:
            passed.add(route.path)
        if "agent_id" in route.parameters and _required(route) is None and not route.public:
            body = {"agent_id": agent_id} if "agent_id" in route.body_ids else None
            own = await route.call(program, {"agent_id": agent_id}, body=body)
            if route.method != "DELETE":
                assert own.status_code not in {401, 403}, f"{route}: {own.text}"
    assert passed <= set(_CHECKED_PATHS)
