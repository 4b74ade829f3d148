"""Tokens for one use: mailed to verify or reset, or the first half of a sign-in with MFA."""

from datetime import timedelta
from typing import Final

import msgspec

from app.domain.accounts import queries
from app.kit import clock
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.security import tokens
from db.fast import Row
from db.session import Tx


class Purpose(msgspec.Struct, frozen=True):
    name: str
    lifetime: timedelta


VERIFY_EMAIL: Final = Purpose("verify_email", timedelta(days=3))
RESET_PASSWORD: Final = Purpose("reset_password", timedelta(hours=1))
MFA: Final = Purpose("mfa", timedelta(minutes=5))
MAX_TRIES = 5


async def make(tx: Tx, purpose: Purpose, tenant_id: str, user_id: str) -> str:
    token = tokens.new_secret()
    await queries.add_token(
        tx,
        tenant_id,
        new_id("ott"),
        user_id,
        purpose.name,
        tokens.secret_hash(token),
        clock.now() + purpose.lifetime,
    )
    return token


async def owner(tx: Tx, purpose: Purpose, token: str) -> Row | None:
    """Whose token it is, as long as it can be used."""
    hashed = tokens.secret_hash(token)
    return await queries.read_token(tx, hashed, purpose.name, clock.now(), MAX_TRIES)


async def count_try(tx: Tx, purpose: Purpose, token: str) -> bool:
    hashed = tokens.secret_hash(token)
    return bool(await queries.try_token(tx, hashed, purpose.name, clock.now(), MAX_TRIES))


async def user_of(tx: Tx, purpose: Purpose, token: str) -> Row:
    """The user whose token it is, locked before the token, which is used up."""
    found = await owner(tx, purpose, token)
    if found is None:
        raise useless()
    user = await queries.lock_user(tx, found["tenant_id"], found["user_id"])
    await use(tx, purpose, token)
    if user is None or user["status"] != "active":
        raise useless()
    return user


async def use(tx: Tx, purpose: Purpose, token: str) -> None:
    """From now on it is nobody's."""
    found = await queries.use_token(tx, tokens.secret_hash(token), purpose.name, clock.now())
    if found is None:
        raise useless()


def useless() -> Invalid:
    return Invalid.field("token", "is not valid: unknown, used or expired; ask for a new one")


async def void(tx: Tx, tenant_id: str, user_id: str, *purposes: Purpose) -> None:
    names = tuple(purpose.name for purpose in purposes)
    await queries.void_tokens(tx, tenant_id, user_id, names, clock.now())
