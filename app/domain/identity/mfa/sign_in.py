"""The second step of signing in: a code of an authenticator, or a recovery code."""

from app.domain.identity.accounts import api as accounts
from app.domain.identity.accounts.schemas import MfaVerify, TokenPair
from app.kit import trace
from app.kit.errors import Unauthorized
from app.security import throttle
from app.security.principal import ClientInfo
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS, Tx

from . import codes
from .codes import Owner

_WRONG_CODE = "The code is wrong or was used before"
_INVALID_TOKEN = (
    "The mfa_token is not valid: unknown, used up or older than 5 minutes; sign in again"  # noqa: S105
)


async def verify_mfa(services: Services, data: MfaVerify, client: ClientInfo) -> TokenPair:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        token = await accounts.find_token(tx, accounts.MFA, data.mfa_token)
        if token is None:
            raise Unauthorized(_INVALID_TOKEN)
        owner = Owner(token["tenant_id"], token["user_id"])
        subjects = codes.list_throttle_subjects(owner, client.network)
        await throttle.refuse_blocked(tx, subjects)
        secrets = await codes.load_secrets(tx, services.keyring, owner)
    code_match = await codes.match_code(secrets, owner, data.code)
    pair = None
    async with services.db.tx(owner.tenant_id) as tx:
        user = await _lock_user(tx, owner, data.mfa_token)
        if user is not None:
            attempt = await codes.record_attempt(tx, user, owner, code_match, client.network)
            if attempt.passed:
                pair = await _begin_session(tx, services, user, data, client)
    if pair is None:
        raise Unauthorized(_INVALID_TOKEN if user is None else _WRONG_CODE)
    return pair


async def _lock_user(tx: Tx, owner: Owner, token: str) -> Row | None:
    """Locks the token's user and uses one try of the token. None when the token is not valid."""
    user = await accounts.lock_user(tx, owner.tenant_id, owner.user_id)
    if user is None or user["status"] != "active" or not user["mfa_enabled"]:
        return None
    return user if await accounts.count_try(tx, accounts.MFA, token) else None


async def _begin_session(
    tx: Tx, services: Services, user: Row, data: MfaVerify, client: ClientInfo
) -> TokenPair:
    trace.current().actor_id = user["id"]
    await accounts.use_token(tx, accounts.MFA, data.mfa_token)
    return await accounts.begin_session(tx, services, user, client, mfa=True)
