"""Every route with an account whose e-mail address is not verified: it reaches itself only."""

import httpx
import pytest

from app.http.route_options import list_handlers, options_of
from tests.matrix.routes import list_routes
from tests.world import World

# What an account may do before its address is verified. All other routes that need a sign-in
# refuse it, without an option of theirs.
_OPEN = {
    "POST /auth/logout",
    "GET /auth/me",
    "GET /auth/sessions",
    "DELETE /auth/sessions/{session_id}",
    "POST /auth/change-password",
    "POST /auth/verify-email/resend",
    "GET /me/permissions",
    "GET /api/v1/profile",
    "PUT /api/v1/profile",
    "DELETE /api/v1/profile/avatar",
    "GET /api/v1/mfa/status",
    "POST /api/v1/mfa/setup",
    "POST /api/v1/mfa/enable",
    "POST /api/v1/mfa/disable",
    "POST /api/v1/mfa/verify",
    "GET /api/v1/mfa/devices",
    "DELETE /api/v1/mfa/devices/{device_id}",
    "POST /api/v1/mfa/recovery-codes",
    "GET /api/v1/notifications/preferences",
    "PUT /api/v1/notifications/preferences",
}
# Handlers that the document leaves out, and those that do the same.
_REPLACED = {"delete_invitation": "revoke_invitation"}


def _is_refused(answer: httpx.Response, role: str) -> bool:
    if answer.status_code != 403:
        return False
    error = answer.json()["error"]
    details = {"required": "email_verified", "your_role": role}
    return bool(error["code"] == "email_not_verified" and error["details"] == details)


@pytest.mark.parametrize("role", ["super_admin", "agent_user"])
async def test_an_unverified_account_reaches_its_own_account_only(
    product: World, role: str
) -> None:
    caller, open_routes = await product.user(role, is_verified=False), set()
    for route in list_routes(product.app):
        if not route.public and not _is_refused(await route.call(caller), role):
            open_routes.add(str(route))
            # The request may have ended the session.
            caller = await product.user(role, is_verified=False)
    assert open_routes == _OPEN


async def test_public_routes_answer_an_unverified_account_like_anybody(product: World) -> None:
    unverified, anonymous = await product.user(is_verified=False), product.anonymous()
    for route in list_routes(product.app):
        if route.public and route.method == "GET":
            answers = [(await route.call(client)).status_code for client in (unverified, anonymous)]
            assert answers[0] == answers[1], str(route)


def test_routes_outside_the_api_document_are_public(product: World) -> None:
    """The other tests of this folder see the routes of the document only. A route of an earlier
    release is open to the same callers as the one that took its place.
    """
    handlers = [handler for _, _, handler in list_handlers(product.app)]
    options = {handler.handler_name: options_of(handler) for handler in handlers}
    hidden = [
        handler
        for handler in handlers
        if not handler.include_in_schema and handler.http_methods != {"OPTIONS"}
    ]
    assert hidden
    private = {handler.handler_name for handler in hidden if not options_of(handler).public}
    assert private == _REPLACED.keys()
    for name, other in _REPLACED.items():
        assert options[name] == options[other]
