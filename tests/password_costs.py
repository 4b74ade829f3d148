"""The cost of password hashes: the lowest one for tests, and the one of production."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from argon2 import PasswordHasher

from app.security import passwords

_FULL = {name: getattr(passwords, name) for name in ("_hasher", "_DUMMY_HASH", "_CODE_MEMORY_KIB")}
_LOWEST_MEMORY_KIB = 8


@contextmanager
def lowest_cost() -> Iterator[None]:
    hasher = PasswordHasher(time_cost=1, memory_cost=_LOWEST_MEMORY_KIB, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", hasher)
        patch.setattr(passwords, "_DUMMY_HASH", hasher.hash("nobody has this password"))
        patch.setattr(passwords, "_CODE_MEMORY_KIB", _LOWEST_MEMORY_KIB)
        yield


@contextmanager
def full_cost() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _FULL.items():
            patch.setattr(passwords, name, value)
        yield
