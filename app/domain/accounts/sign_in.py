"""Signing in with a password, staying signed in, signing out.

What must be kept although the answer is a refusal (a counted failure, the end of a replayed
session) is committed here, in a transaction of its own, before the refusal is raised.
"""

import msgspec

from app import email_addresses
from app.domain.accounts import one_time, queries, sessions
from app.domain.accounts.events import SessionRevoked, SignInBlocked, UserSignedIn, UserSignedOut
from app.domain.accounts.schemas import (
    Login,
    MfaRequired,
    SignedIn,
    SignedInUser,
    TokenPair,
    UserView,
)
from app.domain.accounts.sessions import Ended
from app.domain.events import service as events
from app.kit import trace
from app.kit.errors import Unauthorized
from app.security import passwords, throttle
from app.security.principal import Principal
from app.security.throttle import Subject
from app.security.tokens import Claims, TokenInvalid
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS, Tx

_WRONG = "The e-mail or the password is wrong"


async def sign_in(services: Services, data: Login, address: str) -> SignedIn | MfaRequired:
    """The same answer, after the same work, for a wrong password and an unknown e-mail."""
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        found = await queries.by_email(tx, data.email, address)
        subjects = [
            _account(data.email, found, address),
            Subject(throttle.SIGN_IN_ADDRESS, address),
        ]
        await throttle.refuse_blocked(tx, subjects)
    stored = found["password_hash"] if found else None
    right = await passwords.verify_password(stored, data.password)
    async with services.db.tx(ALL_TENANTS) as tx:
        user = await _unchanged(tx, found) if right else None
        judgement = await throttle.judge(tx, subjects, right=user is not None)
        if judgement.tripped and found is not None:
            await emit_blocked(tx, found, address, "password")
        answer: SignedIn | MfaRequired | None = None
        if judgement.passed and user is not None:
            answer = await _enter(tx, services, user, address)
    if answer is None:
        raise judgement.problem or Unauthorized(_WRONG)
    return answer


def _account(email: str, found: Row | None, address: str) -> Subject:
    """Who is counted: the user, however the e-mail was written, or an e-mail that nobody has. Where
    a user has signed in from before, they are counted apart, so that no stranger locks them out.
    """
    if found is None:
        return Subject(throttle.SIGN_IN, email_addresses.comparable(email))
    return count_at(found["id"], address) if found["familiar"] else count_everywhere(found["id"])


def count_everywhere(user_id: str) -> Subject:
    return Subject(throttle.SIGN_IN, user_id)


def count_at(user_id: str, address: str) -> Subject:
    return Subject(throttle.SIGN_IN, f"{user_id} {address}")


async def _unchanged(tx: Tx, found: Row | None) -> Row | None:
    """The user, locked, if the password that was verified is still theirs and they are active."""
    if found is None:
        return None
    user = await queries.lock_user(tx, found["tenant_id"], found["id"])
    if user is None or user["status"] != "active":
        return None
    return user if user["password_hash"] == found["password_hash"] else None


async def _enter(tx: Tx, services: Services, user: Row, address: str) -> SignedIn | MfaRequired:
    trace.current().actor_id = user["id"]
    if user["mfa_enabled"]:
        token = await one_time.make(tx, one_time.MFA, user["tenant_id"], user["id"])
        return MfaRequired(
            mfa_token=token,
            message="Send this token and a code to POST /auth/mfa/verify within 5 minutes",
        )
    tokens = await begin_session(tx, services, user, address, mfa=False)
    who = SignedInUser(user["id"], user["email"], user["role"])
    return SignedIn(**msgspec.structs.asdict(tokens), user=who)


async def begin_session(
    tx: Tx, services: Services, user: Row, address: str, *, mfa: bool
) -> TokenPair:
    tokens = await sessions.begin(tx, services, user, address, code_shown=mfa)
    await events.emit(tx, UserSignedIn(user["id"], address, mfa), tenant_id=user["tenant_id"])
    return tokens


async def emit_blocked(tx: Tx, user: Row, address: str, reason: str) -> None:
    blocked = SignInBlocked(user["id"], address, reason)
    await events.emit(tx, blocked, tenant_id=user["tenant_id"])


async def refresh(services: Services, token: str, address: str) -> TokenPair:
    try:
        claims = services.tokens.verify(token, "refresh")
    except TokenInvalid as problem:
        raise Unauthorized(str(problem)) from None
    async with services.db.tx(claims.tid) as tx:
        outcome = await sessions.rotate(tx, services, claims)
        if isinstance(outcome, Ended) and outcome.replayed:
            await _emit_replayed(tx, claims, address)
    if isinstance(outcome, Ended):
        raise Unauthorized(outcome.reason)
    return outcome


async def _emit_replayed(tx: Tx, claims: Claims, address: str) -> None:
    revoked = SessionRevoked(claims.sub, claims.sid, address)
    await events.emit(tx, revoked, tenant_id=claims.tid)


async def sign_out(tx: Tx, services: Services, principal: Principal) -> None:
    await sessions.end(tx, services.session_cache, principal.tenant_id, principal.session_id)
    await events.emit(tx, UserSignedOut(principal.user_id), tenant_id=principal.tenant_id)


async def me(tx: Tx, principal: Principal) -> UserView:
    """Oneself, also while acting in another tenant."""
    row = await queries.by_id(tx, principal.tenant_id, principal.user_id)
    if row is None:
        raise Unauthorized("This user no longer exists")
    return UserView(**row)
