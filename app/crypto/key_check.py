"""Detects root keys that differ from those of the other processes, by a sealed check value for each
key in the database.

Without it, a process with a wrong key under a known name would seal secrets that no other process
can open.
"""

from collections.abc import Iterable

import asyncpg

from app.crypto.keyring import CannotOpen, KeyProblem, Keyring, SealContext, kid_of
from db import key_checks

_TEXT = b"parley"
_CONTEXT = SealContext(tenant="", table="instance_state", record="key_check", field="value")


def find_problem(
    check_values: Iterable[bytes], keyring: Keyring, *, allow_missing: bool = False
) -> str | None:
    """Returns what is wrong with the root keys for these check values, or None."""
    for value in check_values:
        kid = kid_of(value)
        try:
            keyring.open(value, _CONTEXT)
        except CannotOpen:
            if kid in keyring.kids:
                return (
                    f"root key {kid!r} is not the key of that name that sealed the secrets of this "
                    "database: set the key that the other processes have"
                )
            if not allow_missing:
                return (
                    f"root key {kid!r} is not configured, but secrets of this database may need "
                    "it: add it, or run `parley keys rotate`, which removes the need"
                )
    return None


async def check(raw: asyncpg.Connection, keyring: Keyring, *, allow_missing: bool = False) -> None:
    """Raises KeyProblem. Stores a check value for the active key if there is none."""
    values = await verify(raw, keyring, allow_missing=allow_missing)
    own_value = keyring.seal(_TEXT, _CONTEXT)
    if kid_of(own_value) not in map(kid_of, values):
        await key_checks.add(raw, kid_of(own_value), own_value)
        # Another process may have stored one for another key of that name.
        await verify(raw, keyring, allow_missing=allow_missing)


async def verify(
    raw: asyncpg.Connection, keyring: Keyring, *, allow_missing: bool = False
) -> list[bytes]:
    """Raises KeyProblem; returns the check values. Unlike `check`, it changes nothing."""
    values = await key_checks.read(raw)
    problem = find_problem(values, keyring, allow_missing=allow_missing)
    if problem is not None:
        raise KeyProblem(problem)
    return values


async def forget_other_keys(raw: asyncpg.Connection, keyring: Keyring) -> None:
    """Lets processes start without the other keys; to be called when they seal nothing."""
    own_value = keyring.seal(_TEXT, _CONTEXT)
    await key_checks.replace(raw, kid_of(own_value), own_value)
