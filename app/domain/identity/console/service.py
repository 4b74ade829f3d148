"""Sessions of the console, whose refresh tokens are in a cookie."""

from app.domain.identity.accounts import api as accounts
from app.domain.identity.accounts.schemas import (
    Login,
    MfaRequired,
    MfaVerify,
    TokenPair,
)
from app.domain.identity.mfa import api as mfa
from app.domain.identity.profile import api as profile
from app.domain.identity.roles import api as roles
from app.kit.errors import Unauthorized
from app.security.principal import ClientInfo
from app.services import Services

from .schemas import ConsoleSession

NewSession = tuple[ConsoleSession, str]


async def sign_in(services: Services, data: Login, client: ClientInfo) -> NewSession | MfaRequired:
    """Returns the session and its refresh token, or what the second step needs."""
    tokens = await accounts.sign_in(services, data, client)
    if isinstance(tokens, MfaRequired):
        return tokens
    return await _describe(services, tokens)


async def sign_in_with_mfa(services: Services, data: MfaVerify, client: ClientInfo) -> NewSession:
    return await _describe(services, await mfa.verify_mfa(services, data, client))


async def refresh(services: Services, token: str | None, address: str) -> NewSession:
    if not token:
        raise Unauthorized("This browser is not signed in to the console")
    return await _describe(services, await accounts.refresh(services, token, address))


async def sign_out(services: Services, token: str | None) -> None:
    """Ends the session of the cookie, if there is one."""
    if token:
        await accounts.sign_out_by_token(services, token)


async def _describe(services: Services, tokens: TokenPair) -> NewSession:
    claims = services.tokens.verify(tokens.access_token, "access")
    async with services.db.tx(claims.tid, autocommit=True) as tx:
        row = await accounts.find_profile(tx, claims.tid, claims.sub)
        permissions = await roles.list_granted(tx, claims.role)
    if row is None:
        raise Unauthorized("This user no longer exists")
    session = ConsoleSession(
        access_token=tokens.access_token,
        expires_in=tokens.expires_in,
        user=profile.build_view(services, row),
        permissions=sorted(permissions),
    )
    return session, tokens.refresh_token
