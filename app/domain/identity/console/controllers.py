from typing import Annotated, Any, Final, Literal

from litestar import Controller, Response, delete, post
from litestar.datastructures import Cookie
from litestar.params import HeaderParameter, JSONBody

from app.domain.identity.accounts.schemas import Login, MfaRequired, MfaVerify
from app.http.dependencies import Address, ClientInfo, HttpRequest, Services
from app.security.tokens import REFRESH_SECONDS
from app.settings import Settings

from . import service
from .errors import CrossSiteRequest
from .schemas import ConsoleSession
from .service import NewSession

# Browsers ask before they send a header of ours to another site, and are never allowed to send the
# cookie with it. So a request with this header comes from a page of this instance.
FromConsole = Annotated[
    Literal["1"] | None,
    HeaderParameter(
        name="X-Parley-Console", description="`1`; without it, the request is refused with 403"
    ),
]
_NAME: Final = "parley_session"


class ConsoleSessionController(Controller):
    path = "/auth/console/session"
    tags = ["Auth"]
    opt = {"public": True}

    @post(
        summary="Sign in to the console",
        status_code=200,
        errors=(401, 403),
        idempotent=False,
    )
    async def sign_in_to_console(
        self,
        services: Services,
        client: ClientInfo,
        data: JSONBody[Login],
        from_console: FromConsole = None,
    ) -> Response[ConsoleSession | MfaRequired]:
        """Like `POST /auth/login`, for a page of this instance: the refresh token becomes a cookie
        that scripts cannot read and that other sites cannot send.
        """
        _require_console(from_console)
        session = await service.sign_in(services, data, client)
        if isinstance(session, MfaRequired):
            return Response(session)
        return _respond(services.settings, session)

    @post(
        "/mfa",
        summary="Sign in to the console with a code",
        status_code=200,
        errors=(401, 403),
        idempotent=False,
    )
    async def sign_in_to_console_with_mfa(
        self,
        services: Services,
        client: ClientInfo,
        data: JSONBody[MfaVerify],
        from_console: FromConsole = None,
    ) -> Response[ConsoleSession]:
        """Like `POST /auth/mfa/verify`."""
        _require_console(from_console)
        session = await service.sign_in_with_mfa(services, data, client)
        return _respond(services.settings, session)

    @post(
        "/refresh",
        summary="Refresh the console's session",
        status_code=200,
        errors=(401, 403),
        idempotent=False,
    )
    async def refresh_console_session(
        self,
        request: HttpRequest,
        services: Services,
        address: Address,
        from_console: FromConsole = None,
    ) -> Response[ConsoleSession]:
        """Like `POST /auth/refresh`, with the token of the cookie."""
        _require_console(from_console)
        token = request.cookies.get(_cookie_name(services.settings))
        return _respond(services.settings, await service.refresh(services, token, address))

    @delete(summary="Sign out of the console", status_code=204, errors=(403,))
    async def sign_out_of_console(
        self, request: HttpRequest, services: Services, from_console: FromConsole = None
    ) -> Response[None]:
        """Ends the session of the cookie, and removes the cookie. Needs no access token."""
        _require_console(from_console)
        settings = services.settings
        await service.sign_out(services, request.cookies.get(_cookie_name(settings)))
        return Response(None, status_code=204, cookies=[_cookie(settings, "", 0)])


def _require_console(header: str | None) -> None:
    if header is None:
        raise CrossSiteRequest(
            "Send the header 'X-Parley-Console: 1', as only pages of this instance can"
        )


def _respond(settings: Settings, session: NewSession) -> Response[Any]:
    answer, refresh_token = session
    cookie = _cookie(settings, refresh_token, REFRESH_SECONDS)
    return Response(answer, cookies=[cookie], headers={"cache-control": "no-store"})


def _is_https(settings: Settings) -> bool:
    return settings.public_url.startswith("https:")


def _cookie_name(settings: Settings) -> str:
    """The prefix makes browsers refuse such a cookie from another host or over plain HTTP."""
    return f"__Host-{_NAME}" if _is_https(settings) else _NAME


def _cookie(settings: Settings, value: str, seconds: int) -> Cookie:
    return Cookie(
        key=_cookie_name(settings),
        value=value,
        path="/",
        max_age=seconds,
        httponly=True,
        secure=_is_https(settings),
        samesite="strict",
    )
