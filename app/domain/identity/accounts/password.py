"""Changing the own password, and resetting it by mail."""

import asyncio
from typing import Literal

from app.domain.platform.events import api as events
from app.kit import clock, email_addresses, trace
from app.kit.errors import Invalid
from app.kit.views import Done
from app.security import passwords, throttle
from app.security.principal import Principal
from app.security.throttle import Subject
from app.services import Services
from db.fast import Row
from db.session import ALL_TENANTS, Tx

from . import account_mails, one_time_tokens, queries, sessions
from .events import EmailVerified, PasswordChanged, PasswordResetRequested
from .schemas import ChangePassword, ResetPassword
from .sign_in import emit_sign_in_blocked, sign_in_subject, sign_in_subject_at
from .users import lock_own_user

# Longer than queueing a mail takes, so that the response time does not reveal an account.
_MIN_RESPONSE_SECONDS = 0.05


async def change_password(
    services: Services, principal: Principal, data: ChangePassword, address: str
) -> Done:
    """Changes the password and ends every other session.

    Wrong current passwords are throttled like sign-ins. While the user is blocked, a correct and a
    wrong password take the same work and get the same response.
    """
    _validate_new_password("new_password", data.new_password)
    subjects = [Subject(throttle.PASSWORD, principal.user_id)]
    async with services.db.tx(principal.tenant_id, autocommit=True) as tx:
        await throttle.refuse_blocked(tx, subjects)
        row = await queries.find_password_hash(tx, principal.tenant_id, principal.user_id)
    stored_hash = row["password_hash"] if row else None
    is_correct = await passwords.verify_password(stored_hash, data.current_password)
    new_hash = await passwords.hash_password(data.new_password)
    is_same = passwords.are_equal(data.new_password, data.current_password)
    async with services.db.tx(principal.tenant_id) as tx:
        user = await lock_own_user(tx, principal)
        is_correct = is_correct and user["password_hash"] == stored_hash
        attempt = await throttle.record_attempt(tx, subjects, succeeded=is_correct)
        if attempt.starts_block:
            await emit_sign_in_blocked(tx, user, address, "password")
        if attempt.passed and not is_same:
            await _store_password(
                tx, services, user, new_hash, by="change", keep=principal.session_id
            )
    if attempt.problem is not None:
        raise attempt.problem
    if not attempt.passed:
        raise Invalid.field("current_password", "is wrong")
    if is_same:
        raise Invalid.field("new_password", "must differ from the current password")
    return Done("The password is changed; all other sessions are ended")


async def request_reset(services: Services, email: str) -> Done:
    """Responds the same, after the same time, for known and unknown addresses."""
    minimum_time = asyncio.create_task(asyncio.sleep(_MIN_RESPONSE_SECONDS))
    async with services.db.tx(ALL_TENANTS) as tx:
        user = await queries.find_user_by_email(tx, email)
        subject = Subject(throttle.MAIL, user["id"] if user else email_addresses.comparable(email))
        attempt = await throttle.record_attempt(tx, [subject], succeeded=False)
        if user is not None and user["status"] == "active" and attempt.problem is None:
            requested = PasswordResetRequested(user["id"])
            event_id = await events.emit(tx, requested, tenant_id=user["tenant_id"])
            await account_mails.mail_password_reset(tx, services, user, event_id)
    await minimum_time
    return Done("If somebody has an account with this address, a mail is on its way to it")


async def reset_password(services: Services, data: ResetPassword, address: str) -> Done:
    """Sets the password, ends every session and marks the address as verified, since the token came
    by mail.
    """
    _validate_new_password("new_password", data.new_password)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        if await one_time_tokens.find_token(tx, one_time_tokens.RESET_PASSWORD, data.token) is None:
            raise one_time_tokens.invalid_token()
    new_hash = await passwords.hash_password(data.new_password)
    async with services.db.tx(ALL_TENANTS) as tx:
        user = await one_time_tokens.redeem_token(tx, one_time_tokens.RESET_PASSWORD, data.token)
        trace.current().actor_id = user["id"]
        await _store_password(tx, services, user, new_hash, by="mail", keep=None)
        subjects = [sign_in_subject(user["id"]), sign_in_subject_at(user["id"], address)]
        await throttle.clear_failures(tx, [*subjects, Subject(throttle.PASSWORD, user["id"])])
        if await queries.set_email_verified(tx, user["tenant_id"], user["id"], clock.now()):
            await events.emit(tx, EmailVerified(user["id"]), tenant_id=user["tenant_id"])
    return Done("The password is changed; sign in with it")


async def set_password(services: Services, email: str, password: str) -> bool:
    """For the operator, on the machine: sets a password, ends every session and forgives wrong
    attempts. The second factor stays. Returns False if nobody has this address.
    """
    _validate_new_password("password", password)
    new_hash = await passwords.hash_password(password)
    async with services.db.tx(ALL_TENANTS) as tx:
        user = await queries.find_user_by_email(tx, email)
        if user is None:
            return False
        await _store_password(tx, services, user, new_hash, by="operator", keep=None)
        subjects = [sign_in_subject(user["id"]), Subject(throttle.PASSWORD, user["id"])]
        await throttle.clear_failures(tx, subjects)
    return True


By = Literal["change", "mail", "operator"]


async def _store_password(
    tx: Tx, services: Services, user: Row, new_hash: str, *, by: By, keep: str | None
) -> None:
    tenant_id, user_id = user["tenant_id"], user["id"]
    await queries.set_password(tx, tenant_id, user_id, new_hash, clock.now())
    await sessions.end_all(tx, services.session_cache, tenant_id, user_id, keep=keep)
    await one_time_tokens.void_tokens(
        tx, tenant_id, user_id, one_time_tokens.RESET_PASSWORD, one_time_tokens.MFA
    )
    event_id = await events.emit(tx, PasswordChanged(user_id, by), tenant_id=tenant_id)
    await account_mails.mail_notice(tx, services, user, "password_changed", event_id)


def _validate_new_password(field: str, password: str) -> None:
    problem = passwords.find_problem(password)
    if problem:
        raise Invalid.field(field, problem)
