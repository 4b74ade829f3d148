"""A frozen clock, authenticator apps and users with MFA."""

import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pyotp

from app.kit import clock
from tests.world import Client

STEP_SECONDS = 30
_CANDIDATE_CODES = ("000000", "111111", *(f"{number:06}" for number in range(1, 100)))


class FrozenClock:
    """Freezes the clock in the middle of a step some minutes ago, and advances it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._at = datetime.fromtimestamp(
            (time.time() // STEP_SECONDS - 16) * STEP_SECONDS + STEP_SECONDS / 2, UTC
        )
        self.advance(0)

    def advance(self, seconds: float = STEP_SECONDS) -> None:
        self._at += timedelta(seconds=seconds)
        self._stack.enter_context(clock.frozen(self._at))


class Authenticator:
    """An authenticator app with one secret."""

    def __init__(self, frozen_clock: FrozenClock, secret: str) -> None:
        self._clock = frozen_clock
        self._totp = pyotp.TOTP(secret)
        self.secret = secret

    def code(self, steps: int = 0) -> str:
        """Returns the code of the current step, or of a step before or after it."""
        return self._totp.at(int(clock.epoch()), steps)

    def next_code(self) -> str:
        """Advances the clock by one step and returns the code of that step."""
        self._clock.advance()
        return self.code()


class MfaUser:
    """A signed-in user with MFA enabled."""

    def __init__(
        self, client: Client, authenticator: Authenticator, recovery_codes: list[str]
    ) -> None:
        self.client = client
        self.authenticator = authenticator
        self.recovery_codes = recovery_codes


def find_wrong_code(*authenticators: Authenticator) -> str:
    """Returns a code that is valid for none of them around the current step."""
    valid_codes = {
        authenticator.code(steps) for authenticator in authenticators for steps in range(-3, 4)
    }
    return next(code for code in _CANDIDATE_CODES if code not in valid_codes)
