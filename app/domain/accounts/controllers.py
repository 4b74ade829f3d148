from typing import Any

from litestar import Controller, Request, get, post
from litestar.params import JSONBody

from app.domain.accounts import service
from app.domain.accounts.schemas import InvitationView, Invite, Login, SignedIn, UserView
from app.http.given import Parts, Principal, Tx
from app.security.principal import caller_of


class AuthController(Controller):
    path = "/auth"
    tags = ["Auth"]  # noqa: RUF012  # litestar's own type

    @post(
        "/login", summary="Sign in", status_code=200, public=True, errors=(401,), idempotent=False
    )
    async def login(
        self, request: Request[Any, Any, Any], tx: Tx, parts: Parts, data: JSONBody[Login]
    ) -> SignedIn:
        return await service.sign_in(tx, parts, data, caller_of(request).address)

    @get("/me", summary="Who am I")
    async def me(self, tx: Tx, principal: Principal) -> UserView:
        return await service.me(tx, principal)


class UserController(Controller):
    path = "/users"
    tags = ["Users"]  # noqa: RUF012

    @post("/invite", summary="Invite somebody", needs="admin:users")
    async def invite(
        self, tx: Tx, parts: Parts, principal: Principal, data: JSONBody[Invite]
    ) -> InvitationView:
        """Mails the token and shows it once. Nobody can invite above their own role."""
        return await service.invite(tx, parts, principal, data)
