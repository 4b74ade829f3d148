"""Signing in, with and without MFA, staying signed in, signing out.

What must be kept although the answer is a refusal (a counted failure, the end of a replayed
session) is committed here, in a transaction of its own, before the refusal is raised.
"""

import msgspec

from app.domain.accounts import one_time, queries, sessions
from app.domain.accounts.events import SessionRevoked, SignInBlocked, UserSignedIn, UserSignedOut
from app.domain.accounts.schemas import (
    Login,
    MfaRequired,
    MfaVerify,
    SignedIn,
    SignedInUser,
    TokenPair,
    UserView,
)
from app.domain.accounts.sessions import Ended
from app.domain.events import service as events
from app.domain.mfa import codes
from app.domain.mfa.codes import Owner
from app.http.errors import Unauthorized
from app.kit import emails, trace
from app.parts import Parts
from app.security import passwords, throttle
from app.security.principal import Principal
from app.security.throttle import Subject
from app.security.tokens import Claims, TokenInvalid
from db.fast import Row
from db.session import ALL_TENANTS, Tx

_WRONG = "The e-mail or the password is wrong"
_WRONG_CODE = "The code is wrong or was used before"
_NO_TOKEN = "The mfa_token is not valid: unknown, used up or older than 5 minutes; sign in again"  # noqa: S105


async def sign_in(parts: Parts, data: Login, address: str) -> SignedIn | MfaRequired:
    """The same answer, after the same work, for a wrong password and an unknown e-mail."""
    async with parts.db.tx(ALL_TENANTS, read_only=True) as tx:
        found = await queries.by_email(tx, data.email, address)
        subjects = [
            _account(data.email, found, address),
            Subject(throttle.SIGN_IN_ADDRESS, address),
        ]
        await throttle.refuse_blocked(tx, subjects)
    stored = found["password_hash"] if found else None
    right = await passwords.verify_password(stored, data.password)
    async with parts.db.tx(ALL_TENANTS) as tx:
        user = await _unchanged(tx, found) if right else None
        judgement = await throttle.judge(tx, subjects, right=user is not None)
        if judgement.tripped and found is not None:
            await _tell_blocked(tx, found, address, "password")
        answer: SignedIn | MfaRequired | None = None
        if judgement.passed and user is not None:
            answer = await _enter(tx, parts, user, address)
    if answer is None:
        raise judgement.problem or Unauthorized(_WRONG)
    return answer


def _account(email: str, found: Row | None, address: str) -> Subject:
    """Who is counted: the user, however the e-mail was written, or an e-mail that nobody has. Where
    a user has signed in from before, they are counted apart, so that no stranger locks them out.
    """
    if found is None:
        return Subject(throttle.SIGN_IN, emails.comparable(email))
    return known_at(found["id"], address) if found["familiar"] else anywhere(found["id"])


def anywhere(user_id: str) -> Subject:
    return Subject(throttle.SIGN_IN, user_id)


def known_at(user_id: str, address: str) -> Subject:
    return Subject(throttle.SIGN_IN, f"{user_id} {address}")


async def _unchanged(tx: Tx, found: Row | None) -> Row | None:
    """The user, locked, if the password that was verified is still theirs and they are active."""
    if found is None:
        return None
    user = await queries.lock_user(tx, found["tenant_id"], found["id"])
    if user is None or user["status"] != "active":
        return None
    return user if user["password_hash"] == found["password_hash"] else None


async def _enter(tx: Tx, parts: Parts, user: Row, address: str) -> SignedIn | MfaRequired:
    trace.current().actor_id = user["id"]
    if user["mfa_enabled"]:
        token = await one_time.make(tx, one_time.MFA, user["tenant_id"], user["id"])
        return MfaRequired(
            mfa_token=token,
            message="Send this token and a code to POST /auth/mfa/verify within 5 minutes",
        )
    tokens = await _begin(tx, parts, user, address, mfa=False)
    who = SignedInUser(user["id"], user["email"], user["role"])
    return SignedIn(**msgspec.structs.asdict(tokens), user=who)


async def _begin(tx: Tx, parts: Parts, user: Row, address: str, *, mfa: bool) -> TokenPair:
    tokens = await sessions.begin(tx, parts, user, address, code_shown=mfa)
    await events.emit(tx, UserSignedIn(user["id"], address, mfa), tenant_id=user["tenant_id"])
    return tokens


async def verify_mfa(parts: Parts, data: MfaVerify, address: str) -> TokenPair:
    """The second half of a sign-in: a code, or a recovery code."""
    async with parts.db.tx(ALL_TENANTS, read_only=True) as tx:
        token = await one_time.owner(tx, one_time.MFA, data.mfa_token)
        if token is None:
            raise Unauthorized(_NO_TOKEN)
        owner = Owner(token["tenant_id"], token["user_id"])
        subjects = codes.subjects(owner, address)
        await throttle.refuse_blocked(tx, subjects)
        devices = await codes.devices(tx, parts.keyring, owner)
    proof = await codes.find(devices, owner, data.code)
    answer = None
    async with parts.db.tx(owner.tenant_id) as tx:
        user = await _half_way(tx, owner, data.mfa_token)
        if user is not None:
            right = proof is not None and await codes.spend(tx, owner, proof)
            judgement = await throttle.judge(tx, subjects, right=right)
            if judgement.problem is not None:
                # Nothing is kept: what was not judged is not used up.
                raise judgement.problem
            if judgement.tripped:
                await _tell_blocked(tx, user, address, "code")
            answer = await _finish(tx, parts, user, data, address) if judgement.passed else None
    if answer is None:
        raise Unauthorized(_NO_TOKEN if user is None else _WRONG_CODE)
    return answer


async def _half_way(tx: Tx, owner: Owner, token: str) -> Row | None:
    """The user whose token this is, locked, and one try of the token's taken; or nobody."""
    user = await queries.lock_user(tx, owner.tenant_id, owner.user_id)
    if user is None or user["status"] != "active" or not user["mfa_enabled"]:
        return None
    return user if await one_time.count_try(tx, one_time.MFA, token) else None


async def _finish(tx: Tx, parts: Parts, user: Row, data: MfaVerify, address: str) -> TokenPair:
    trace.current().actor_id = user["id"]
    await one_time.use(tx, one_time.MFA, data.mfa_token)
    return await _begin(tx, parts, user, address, mfa=True)


async def _tell_blocked(tx: Tx, user: Row, address: str, reason: str) -> None:
    blocked = SignInBlocked(user["id"], address, reason)
    await events.emit(tx, blocked, tenant_id=user["tenant_id"])


async def refresh(parts: Parts, token: str, address: str) -> TokenPair:
    try:
        claims = parts.tokens.verify(token, "refresh")
    except TokenInvalid as problem:
        raise Unauthorized(str(problem)) from None
    async with parts.db.tx(claims.tid) as tx:
        outcome = await sessions.rotate(tx, parts, claims)
        if isinstance(outcome, Ended) and outcome.replayed:
            await _tell_replayed(tx, claims, address)
    if isinstance(outcome, Ended):
        raise Unauthorized(outcome.reason)
    return outcome


async def _tell_replayed(tx: Tx, claims: Claims, address: str) -> None:
    revoked = SessionRevoked(claims.sub, claims.sid, address)
    await events.emit(tx, revoked, tenant_id=claims.tid)


async def sign_out(tx: Tx, parts: Parts, principal: Principal) -> None:
    await sessions.end(tx, parts.copies, principal.tenant_id, principal.session_id)
    await events.emit(tx, UserSignedOut(principal.user_id), tenant_id=principal.tenant_id)


async def me(tx: Tx, principal: Principal) -> UserView:
    """Oneself, also while acting in another tenant."""
    row = await queries.by_id(tx, principal.tenant_id, principal.user_id)
    if row is None:
        raise Unauthorized("This user no longer exists")
    return UserView(**row)
