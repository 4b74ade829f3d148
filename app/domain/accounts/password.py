"""A person's password: changed by its owner, or reset by mail."""

import asyncio
from typing import Literal

from app import email_addresses
from app.domain.accounts import mails, one_time, queries, sessions
from app.domain.accounts.events import (
    EmailVerified,
    PasswordChanged,
    PasswordResetRequested,
    SignInBlocked,
)
from app.domain.accounts.schemas import ChangePassword, ResetPassword
from app.domain.accounts.sign_in import count_at, count_everywhere
from app.domain.accounts.users import lock_own
from app.domain.events import service as events
from app.http.responses import Done
from app.kit import clock, trace
from app.kit.errors import Invalid
from app.security import passwords, throttle
from app.security.principal import Principal
from app.security.throttle import Subject
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS, Tx

# More than a mail takes to be queued, so that the time does not tell who has an account.
_FORGOT_SECONDS = 0.05


async def change(
    services: Services, principal: Principal, data: ChangePassword, address: str
) -> Done:
    """Every other session ends. Guesses at the current password are counted like sign-ins, and a
    guess that is not judged learns nothing: the work is the same, right or wrong.
    """
    _check_new("new_password", data.new_password)
    subjects = [Subject(throttle.PASSWORD, principal.user_id)]
    async with services.db.tx(principal.tenant_id, autocommit=True) as tx:
        await throttle.refuse_blocked(tx, subjects)
        found = await queries.password_of(tx, principal.tenant_id, principal.user_id)
    stored = found["password_hash"] if found else None
    right = await passwords.verify_password(stored, data.current_password)
    hashed = await passwords.hash_password(data.new_password)
    same = passwords.same(data.new_password, data.current_password)
    async with services.db.tx(principal.tenant_id) as tx:
        user = await lock_own(tx, principal)
        right = right and user["password_hash"] == stored
        judgement = await throttle.judge(tx, subjects, right=right)
        if judgement.tripped:
            blocked = SignInBlocked(user["id"], address, "password")
            await events.emit(tx, blocked, tenant_id=user["tenant_id"])
        if judgement.passed and not same:
            await _store(tx, services, user, hashed, by="change", keep=principal.session_id)
    if judgement.problem is not None:
        raise judgement.problem
    if not judgement.passed:
        raise Invalid.field("current_password", "is wrong")
    if same:
        raise Invalid.field("new_password", "must differ from the current password")
    return Done("The password is changed; all other sessions are ended")


async def forgot(services: Services, email: str) -> Done:
    """The same answer for every address, after the same time."""
    enough = asyncio.create_task(asyncio.sleep(_FORGOT_SECONDS))
    async with services.db.tx(ALL_TENANTS) as tx:
        user = await queries.by_email(tx, email)
        subject = Subject(throttle.MAIL, user["id"] if user else email_addresses.comparable(email))
        judgement = await throttle.judge(tx, [subject], right=False)
        if user is not None and user["status"] == "active" and judgement.problem is None:
            requested = PasswordResetRequested(user["id"])
            event_id = await events.emit(tx, requested, tenant_id=user["tenant_id"])
            await mails.reset(tx, services, user, event_id)
    await enough
    return Done("If somebody has an account with this address, a mail is on its way to it")


async def reset(services: Services, data: ResetPassword, address: str) -> Done:
    """Ends every session; who could read the mail has shown that the address is theirs."""
    _check_new("new_password", data.new_password)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        if await one_time.owner(tx, one_time.RESET_PASSWORD, data.token) is None:
            raise one_time.useless()
    hashed = await passwords.hash_password(data.new_password)
    async with services.db.tx(ALL_TENANTS) as tx:
        user = await one_time.user_of(tx, one_time.RESET_PASSWORD, data.token)
        trace.current().actor_id = user["id"]
        await _store(tx, services, user, hashed, by="mail", keep=None)
        counted = [count_everywhere(user["id"]), count_at(user["id"], address)]
        await throttle.forget(tx, [*counted, Subject(throttle.PASSWORD, user["id"])])
        if await queries.set_verified(tx, user["tenant_id"], user["id"], clock.now()):
            await events.emit(tx, EmailVerified(user["id"]), tenant_id=user["tenant_id"])
    return Done("The password is changed; sign in with it")


By = Literal["change", "mail"]


async def _store(
    tx: Tx, services: Services, user: Row, hashed: str, *, by: By, keep: str | None
) -> None:
    tenant_id, user_id = user["tenant_id"], user["id"]
    await queries.set_password(tx, tenant_id, user_id, hashed, clock.now())
    await sessions.end_all(tx, services.session_cache, tenant_id, user_id, keep=keep)
    await one_time.void(tx, tenant_id, user_id, one_time.RESET_PASSWORD, one_time.MFA)
    event_id = await events.emit(tx, PasswordChanged(user_id, by), tenant_id=tenant_id)
    await mails.notice(tx, services, user, "The password of your account was changed.", event_id)


def _check_new(field: str, password: str) -> None:
    weak = passwords.problem_with(password)
    if weak:
        raise Invalid.field(field, weak)
