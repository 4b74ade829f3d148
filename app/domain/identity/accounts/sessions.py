"""Sessions of users: begin, rotate the refresh token, end one or all."""

from datetime import timedelta
from functools import partial
from typing import Final

import msgspec

from app.kit import clock
from app.kit.ids import new_id
from app.security import tokens
from app.security.principal import ClientInfo, Principal
from app.security.sessions import SessionCache
from app.security.tokens import Claims, Tokens
from app.services import Services
from db.fast import Row
from db.models import Session
from db.session import Tx

from . import queries
from .errors import MfaCodeRequired
from .schemas import TokenPair
from .user_agents import clean_user_agent

GRACE_SECONDS: Final = 10
_MAX_SPENT_TOKENS = 50


class SpentToken(msgspec.Struct):
    """A used refresh token and the ids of the pair it was exchanged for. Stored as JSON."""

    jti: str
    at: float
    access_jti: str
    refresh_jti: str


class SessionEnded(msgspec.Struct, frozen=True):
    """Why a refresh is refused; `replayed` when this replay ended the session."""

    reason: str
    replayed: bool = False


async def begin(
    tx: Tx, services: Services, user: Row, client: ClientInfo, *, code_shown: bool
) -> TokenPair:
    now = clock.now()
    session = Session(
        id=new_id("ses"),
        user_id=user["id"],
        tenant_id=user["tenant_id"],
        refresh_jti=new_id("jti"),
        expires_at=now + timedelta(seconds=tokens.REFRESH_SECONDS),
        code_shown_at=now if code_shown else None,
        ip_address=client.address,
        user_agent=clean_user_agent(client.user_agent),
        created_at=now,
        last_seen_at=now,
    )
    (await tx.session()).add(session)
    await queries.set_last_login(tx, user["tenant_id"], user["id"], now)
    return issue_token_pair(services.tokens, user, session.id, new_id("jti"), session.refresh_jti)


def issue_token_pair(
    issuer: Tokens,
    user: Row,
    session_id: str,
    access_jti: str,
    refresh_jti: str,
    issued_at: float | None = None,
) -> TokenPair:
    claims = {
        "sub": user["id"],
        "tid": user["tenant_id"],
        "role": user["role"],
        "sid": session_id,
    }
    return TokenPair(
        access_token=issuer.issue(
            "access", tokens.ACCESS_SECONDS, issued_at, jti=access_jti, **claims
        ),
        refresh_token=issuer.issue(
            "refresh", tokens.REFRESH_SECONDS, issued_at, jti=refresh_jti, **claims
        ),
        expires_in=tokens.ACCESS_SECONDS,
    )


async def rotate(tx: Tx, services: Services, claims: Claims) -> TokenPair | SessionEnded:
    """Exchanges a refresh token for a new pair.

    A token used again within GRACE_SECONDS gives the same pair (two tabs, a lost response). A later
    replay means that the token was copied, and ends the session.
    """
    now, at = clock.now(), clock.epoch()
    user = await queries.lock_user(tx, claims.tid, claims.sub, to_change=False)
    session = await queries.lock_session(tx, claims.tid, claims.sid, claims.sub)
    if user is None or session is None or session["ended_at"] or session["expires_at"] <= now:
        return SessionEnded("This session has ended; sign in again")
    if user["status"] != "active":
        return SessionEnded("This user is inactive; ask an administrator")
    recent = [
        item
        for item in msgspec.json.decode(session["spent"], type=list[SpentToken])
        if at - item.at <= GRACE_SECONDS
    ]
    for item in recent:
        if item.jti == claims.jti:
            ids = (session["id"], item.access_jti, item.refresh_jti)
            return issue_token_pair(services.tokens, user, *ids, item.at)
    if claims.jti != session["refresh_jti"]:
        await end(tx, services.session_cache, claims.tid, claims.sid)
        return SessionEnded(
            "This token was used before; the session is ended, sign in again", replayed=True
        )
    spent = SpentToken(claims.jti, at, new_id("jti"), new_id("jti"))
    await queries.rotate_session(
        tx,
        claims.tid,
        claims.sid,
        refresh_jti=spent.refresh_jti,
        expires_at=now + timedelta(seconds=tokens.REFRESH_SECONDS),
        spent=[*recent, spent][-_MAX_SPENT_TOKENS:],
        at=now,
    )
    return issue_token_pair(
        services.tokens, user, claims.sid, spent.access_jti, spent.refresh_jti, at
    )


async def end(tx: Tx, cache: SessionCache, tenant_id: str, session_id: str) -> None:
    await queries.end_session(tx, tenant_id, session_id, clock.now())
    tx.after_commit.append(partial(cache.end_sessions, [session_id]))


async def end_all(
    tx: Tx, cache: SessionCache, tenant_id: str, user_id: str, *, keep: str | None = None
) -> None:
    """Ends all sessions but `keep`. The caller holds the lock on the user's row, so that no new
    session begins meanwhile.
    """
    session_ids = await queries.end_sessions(tx, tenant_id, user_id, clock.now(), keep)
    if session_ids:
        tx.after_commit.append(partial(cache.end_sessions, session_ids))


async def verify_all(tx: Tx, cache: SessionCache, tenant_id: str, user_id: str) -> None:
    """Opens all routes to the sessions of a user whose e-mail address is now verified. The caller
    holds the lock on the user's row.
    """
    session_ids = await queries.list_open_sessions(tx, tenant_id, user_id)
    if session_ids:
        tx.after_commit.append(partial(cache.verify_sessions, session_ids))


async def mark_code_shown(tx: Tx, principal: Principal) -> None:
    await queries.mark_code_shown(tx, principal.tenant_id, principal.session_id, clock.now())


async def forget_code_shown(tx: Tx, tenant_id: str, user_id: str) -> None:
    """Called when the devices are removed: an old code proves nothing about new devices."""
    await queries.forget_code_shown(tx, tenant_id, user_id)


async def require_code_shown(tx: Tx, principal: Principal) -> None:
    """Guards actions that weaken MFA. Raises MfaCodeRequired unless this session has shown a code:
    a session stolen before MFA was enabled must not disable it.
    """
    if not await queries.is_code_shown(tx, principal.tenant_id, principal.session_id):
        raise MfaCodeRequired(
            "Verify a code first: send it to POST /api/v1/mfa/verify, then try again",
            details={"required": "mfa", "your_role": principal.role},
        )
