"""Signing in with a password, refreshing tokens, signing out.

Changes that must persist although the request is refused (a counted failure, the end of a replayed
session) are committed here in their own transaction before the error is raised.
"""

import msgspec

from app.domain.platform.events import api as events
from app.kit import email_addresses, trace
from app.kit.errors import Unauthorized
from app.security import passwords, throttle
from app.security.errors import TokenInvalid
from app.security.principal import ClientInfo, Principal
from app.security.throttle import Subject
from app.security.tokens import Claims
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS, Tx

from . import one_time_tokens, queries, sessions
from .events import SessionRevoked, SignInBlocked, UserSignedIn, UserSignedOut
from .schemas import Login, MfaRequired, SignedIn, SignedInUser, TokenPair, UserView
from .sessions import SessionEnded

_WRONG_CREDENTIALS = "The e-mail or the password is wrong"


async def sign_in(services: Services, data: Login, client: ClientInfo) -> SignedIn | MfaRequired:
    """Responds the same, after the same work, to a wrong password and an unknown e-mail."""
    address = client.network
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await queries.find_user_by_email(tx, data.email, address)
        subjects = [
            _account_subject(data.email, row, address),
            Subject(throttle.SIGN_IN_ADDRESS, address),
        ]
        await throttle.refuse_blocked(tx, subjects)
    stored_hash = row["password_hash"] if row else None
    is_correct = await passwords.verify_password(stored_hash, data.password)
    async with services.db.tx(ALL_TENANTS) as tx:
        user = await _lock_unchanged_user(tx, row) if is_correct else None
        attempt = await throttle.record_attempt(tx, subjects, succeeded=user is not None)
        if attempt.starts_block and row is not None:
            await emit_sign_in_blocked(tx, row, address, "password")
        response: SignedIn | MfaRequired | None = None
        if attempt.passed and user is not None:
            response = await _complete_sign_in(tx, services, user, client)
    if response is None:
        raise attempt.problem or Unauthorized(_WRONG_CREDENTIALS)
    return response


def _account_subject(email: str, row: Row | None, address: str) -> Subject:
    """Returns the throttle subject: the user, or the e-mail when no user has it.

    A user at a familiar network address is counted separately, so that nobody else's failures lock
    them out there.
    """
    if row is None:
        return Subject(throttle.SIGN_IN, email_addresses.comparable(email))
    return sign_in_subject_at(row["id"], address) if row["familiar"] else sign_in_subject(row["id"])


def sign_in_subject(user_id: str) -> Subject:
    return Subject(throttle.SIGN_IN, user_id)


def sign_in_subject_at(user_id: str, address: str) -> Subject:
    return Subject(throttle.SIGN_IN, f"{user_id} {address}")


async def _lock_unchanged_user(tx: Tx, row: Row | None) -> Row | None:
    """Locks the user. None when inactive, or when the verified password was changed meanwhile."""
    if row is None:
        return None
    user = await queries.lock_user(tx, row["tenant_id"], row["id"])
    if user is None or user["status"] != "active":
        return None
    return user if user["password_hash"] == row["password_hash"] else None


async def _complete_sign_in(
    tx: Tx, services: Services, user: Row, client: ClientInfo
) -> SignedIn | MfaRequired:
    trace.current().actor_id = user["id"]
    if user["mfa_enabled"]:
        token = await one_time_tokens.create_token(
            tx, one_time_tokens.MFA, user["tenant_id"], user["id"]
        )
        return MfaRequired(
            mfa_token=token,
            message="Send this token and a code to POST /auth/mfa/verify within 5 minutes",
        )
    tokens = await begin_session(tx, services, user, client, mfa=False)
    signed_in_user = SignedInUser(user["id"], user["email"], user["role"])
    return SignedIn(**msgspec.structs.asdict(tokens), user=signed_in_user)


async def begin_session(
    tx: Tx, services: Services, user: Row, client: ClientInfo, *, mfa: bool
) -> TokenPair:
    tokens = await sessions.begin(tx, services, user, client, code_shown=mfa)
    signed_in = UserSignedIn(user["id"], client.address, mfa)
    await events.emit(tx, signed_in, tenant_id=user["tenant_id"])
    return tokens


async def emit_sign_in_blocked(tx: Tx, user: Row, address: str, reason: str) -> None:
    blocked = SignInBlocked(user["id"], address, reason)
    await events.emit(tx, blocked, tenant_id=user["tenant_id"])


async def refresh(services: Services, token: str, address: str) -> TokenPair:
    try:
        claims = services.tokens.verify(token, "refresh")
    except TokenInvalid as problem:
        raise Unauthorized(str(problem)) from None
    async with services.db.tx(claims.tid) as tx:
        outcome = await sessions.rotate(tx, services, claims)
        if isinstance(outcome, SessionEnded) and outcome.replayed:
            await _emit_session_revoked(tx, claims, address)
    if isinstance(outcome, SessionEnded):
        raise Unauthorized(outcome.reason)
    return outcome


async def _emit_session_revoked(tx: Tx, claims: Claims, address: str) -> None:
    revoked = SessionRevoked(claims.sub, claims.sid, address)
    await events.emit(tx, revoked, tenant_id=claims.tid)


async def sign_out(tx: Tx, services: Services, principal: Principal) -> None:
    await sessions.end(tx, services.session_cache, principal.tenant_id, principal.session_id)
    await events.emit(tx, UserSignedOut(principal.user_id), tenant_id=principal.tenant_id)


async def sign_out_by_token(services: Services, token: str) -> None:
    """Ends the session of a refresh token. One that is not valid any more has no session."""
    try:
        claims = services.tokens.verify(token, "refresh")
    except TokenInvalid:
        return
    async with services.db.tx(claims.tid) as tx:
        await sessions.end(tx, services.session_cache, claims.tid, claims.sid)
        await events.emit(tx, UserSignedOut(claims.sub), tenant_id=claims.tid)


async def get_me(tx: Tx, principal: Principal) -> UserView:
    """Returns the caller, also while they act in another tenant."""
    row = await queries.find_user_view(tx, principal.tenant_id, principal.user_id)
    if row is None:
        raise Unauthorized("This user no longer exists")
    return UserView(**row)
