"""Tokens that work once: mailed to verify an address or reset a password, or for an MFA sign-in."""

from datetime import timedelta
from typing import Final

import msgspec

from app.kit import clock
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.security import tokens
from db.fast import Row
from db.session import Tx

from . import queries


class Purpose(msgspec.Struct, frozen=True):
    name: str
    lifetime: timedelta


VERIFY_EMAIL: Final = Purpose("verify_email", timedelta(days=3))
RESET_PASSWORD: Final = Purpose("reset_password", timedelta(hours=1))
MFA: Final = Purpose("mfa", timedelta(minutes=5))
MAX_TRIES = 5


async def create_token(tx: Tx, purpose: Purpose, tenant_id: str, user_id: str) -> str:
    token = tokens.new_secret()
    await queries.add_token(
        tx,
        tenant_id,
        new_id("ott"),
        user_id,
        purpose.name,
        tokens.hash_secret(token),
        clock.now() + purpose.lifetime,
    )
    return token


async def find_token(tx: Tx, purpose: Purpose, token: str) -> Row | None:
    """Returns id, tenant_id and user_id of a usable token, otherwise None."""
    token_hash = tokens.hash_secret(token)
    return await queries.find_token(tx, token_hash, purpose.name, clock.now(), MAX_TRIES)


async def count_try(tx: Tx, purpose: Purpose, token: str) -> bool:
    """Counts one try of the token; False when it is no longer usable."""
    token_hash = tokens.hash_secret(token)
    return bool(await queries.count_token_try(tx, token_hash, purpose.name, clock.now(), MAX_TRIES))


async def redeem_token(tx: Tx, purpose: Purpose, token: str) -> Row:
    """Uses the token and returns its user, who is locked before the token.

    Raises Invalid when the token is not usable or the user is not active.
    """
    row = await find_token(tx, purpose, token)
    if row is None:
        raise invalid_token()
    user = await queries.lock_user(tx, row["tenant_id"], row["user_id"])
    await use_token(tx, purpose, token)
    if user is None or user["status"] != "active":
        raise invalid_token()
    return user


async def use_token(tx: Tx, purpose: Purpose, token: str) -> None:
    """Marks the token as used. Raises Invalid when it is not usable."""
    row = await queries.use_token(tx, tokens.hash_secret(token), purpose.name, clock.now())
    if row is None:
        raise invalid_token()


def invalid_token() -> Invalid:
    return Invalid.field("token", "is not valid: unknown, used or expired; ask for a new one")


async def void_tokens(tx: Tx, tenant_id: str, user_id: str, *purposes: Purpose) -> None:
    names = tuple(purpose.name for purpose in purposes)
    await queries.void_tokens(tx, tenant_id, user_id, names, clock.now())
