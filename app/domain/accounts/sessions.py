"""Sessions: opened by a sign-in, carried on by refresh tokens, ended for one or for all."""

from datetime import timedelta
from functools import partial
from typing import Final

import msgspec

from app.domain.accounts import queries
from app.domain.accounts.errors import CodeNeeded
from app.domain.accounts.schemas import TokenPair
from app.kit import clock
from app.kit.ids import new_id
from app.security import tokens
from app.security.principal import Principal
from app.security.sessions import SessionCache
from app.security.tokens import Claims, Tokens
from app.services import Services
from db.fast import Row
from db.models import Session
from db.session import Tx

GRACE_SECONDS: Final = 10
_KEPT = 50


class Spent(msgspec.Struct):
    """A refresh token that was used, and what it was exchanged for."""

    jti: str
    at: float
    access_jti: str
    refresh_jti: str


class Ended(msgspec.Struct, frozen=True):
    """Why there is no new pair; `replayed` when that is what ended the session just now."""

    reason: str
    replayed: bool = False


async def begin(
    tx: Tx, services: Services, user: Row, address: str, *, code_shown: bool
) -> TokenPair:
    now = clock.now()
    opened = Session(
        id=new_id("ses"),
        user_id=user["id"],
        tenant_id=user["tenant_id"],
        refresh_jti=new_id("jti"),
        expires_at=now + timedelta(seconds=tokens.REFRESH_SECONDS),
        code_shown_at=now if code_shown else None,
        ip_address=address,
    )
    (await tx.session()).add(opened)
    await queries.set_signed_in(tx, user["tenant_id"], user["id"], now)
    return pair(services.tokens, user, opened.id, new_id("jti"), opened.refresh_jti)


def pair(
    issuer: Tokens,
    user: Row,
    session_id: str,
    access_jti: str,
    refresh_jti: str,
    at: float | None = None,
) -> TokenPair:
    claims = {
        "sub": user["id"],
        "tid": user["tenant_id"],
        "role": user["role"],
        "sid": session_id,
    }
    return TokenPair(
        access_token=issuer.issue("access", tokens.ACCESS_SECONDS, at, jti=access_jti, **claims),
        refresh_token=issuer.issue(
            "refresh", tokens.REFRESH_SECONDS, at, jti=refresh_jti, **claims
        ),
        expires_in=tokens.ACCESS_SECONDS,
    )


async def rotate(tx: Tx, services: Services, claims: Claims) -> TokenPair | Ended:
    """A new pair for a refresh token. Used once more within the grace it gives the very same pair
    (two tabs, a lost answer); later it ends the session: somebody else has a copy.
    """
    now, at = clock.now(), clock.epoch()
    user = await queries.lock_user(tx, claims.tid, claims.sub, to_change=False)
    session = await queries.lock_session(tx, claims.tid, claims.sid, claims.sub)
    if user is None or session is None or session["ended_at"] or session["expires_at"] <= now:
        return Ended("This session has ended; sign in again")
    if user["status"] != "active":
        return Ended("This user is inactive; ask an administrator")
    recent = [
        item
        for item in msgspec.json.decode(session["spent"], type=list[Spent])
        if at - item.at <= GRACE_SECONDS
    ]
    for item in recent:
        if item.jti == claims.jti:
            ids = (session["id"], item.access_jti, item.refresh_jti)
            return pair(services.tokens, user, *ids, item.at)
    if claims.jti != session["refresh_jti"]:
        await end(tx, services.session_cache, claims.tid, claims.sid)
        return Ended(
            "This token was used before; the session is ended, sign in again", replayed=True
        )
    spent = Spent(claims.jti, at, new_id("jti"), new_id("jti"))
    await queries.rotate_session(
        tx,
        claims.tid,
        claims.sid,
        refresh_jti=spent.refresh_jti,
        expires_at=now + timedelta(seconds=tokens.REFRESH_SECONDS),
        spent=[*recent, spent][-_KEPT:],
        at=now,
    )
    return pair(services.tokens, user, claims.sid, spent.access_jti, spent.refresh_jti, at)


async def end(tx: Tx, copies: SessionCache, tenant_id: str, session_id: str) -> None:
    await queries.end_session(tx, tenant_id, session_id, clock.now())
    tx.after_commit.append(partial(copies.end_sessions, [session_id]))


async def end_all(
    tx: Tx, copies: SessionCache, tenant_id: str, user_id: str, *, keep: str | None = None
) -> None:
    """The caller holds the user's row, so that no session is opened meanwhile."""
    ended = await queries.end_sessions(tx, tenant_id, user_id, clock.now(), keep)
    if ended:
        tx.after_commit.append(partial(copies.end_sessions, ended))


async def mark_code_shown(tx: Tx, principal: Principal) -> None:
    await queries.mark_code_shown(tx, principal.tenant_id, principal.session_id, clock.now())


async def forget_code_shown(tx: Tx, tenant_id: str, user_id: str) -> None:
    """With the devices goes what was shown of them: it says nothing of devices yet to come."""
    await queries.forget_code_shown(tx, tenant_id, user_id)


async def require_code_shown(tx: Tx, principal: Principal) -> None:
    """For what would weaken MFA: a stolen session from before it was enabled must not do so."""
    if not await queries.code_shown(tx, principal.tenant_id, principal.session_id):
        raise CodeNeeded(
            "Show a code first: send it to POST /api/v1/mfa/verify, then try again",
            details={"required": "mfa", "your_role": principal.role},
        )
