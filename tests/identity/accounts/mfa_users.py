"""Users with MFA, and the second step of their sign-in."""

import httpx
import msgspec
import pyotp

from app.domain.identity.accounts import one_time_tokens
from app.kit import clock
from app.services import Services
from db.session import ALL_TENANTS
from tests.identity.accounts.api_calls import log_in
from tests.identity.accounts.records import add_seconds
from tests.world import PASSWORD, Client


class MfaUser(msgspec.Struct):
    """A user with MFA, the seed of their authenticator, and their recovery codes."""

    user: Client
    seed: str
    recovery_codes: list[str]

    def code(self) -> str:
        """Returns the authenticator's current code."""
        return pyotp.TOTP(self.seed).at(int(clock.epoch()))

    def wrong_code(self) -> str:
        """Returns six digits that are not a code of any time near now."""
        near = {pyotp.TOTP(self.seed).at(int(clock.epoch()), offset) for offset in range(-3, 4)}
        return next(code for code in (f"{number:06}" for number in range(10)) if code not in near)


async def enable_mfa(user: Client) -> list[str]:
    """Enables MFA for this user; returns the recovery codes."""
    return (await _set_up_mfa(user)).recovery_codes


async def create_mfa_user(user: Client) -> MfaUser:
    # Enabled two minutes ago, so that the current code is not used yet.
    with clock.frozen(add_seconds(clock.now(), -120)):
        return await _set_up_mfa(user)


async def _set_up_mfa(user: Client) -> MfaUser:
    setup = (await user.post("/api/v1/mfa/setup")).json()
    mfa_user = MfaUser(user, setup["secret"], setup["recovery_codes"])
    answer = await user.post("/api/v1/mfa/enable", {"code": mfa_user.code()})
    assert answer.status_code == 200, answer.text
    return mfa_user


async def request_mfa_token(caller: Client, email: str, password: str = PASSWORD) -> str:
    answer = await log_in(caller, email, password)
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["mfa_token"]
    return token


async def create_mfa_tokens(services: Services, mfa_user: MfaUser, number: int) -> list[str]:
    """Creates tokens for the second step of a sign-in, without the work of hashing."""
    user = mfa_user.user
    async with services.db.tx(ALL_TENANTS) as tx:
        return [
            await one_time_tokens.create_token(
                tx, one_time_tokens.MFA, user.tenant_id, user.user_id
            )
            for _ in range(number)
        ]


async def verify_code(caller: Client, token: object, code: object) -> httpx.Response:
    return await caller.post("/auth/mfa/verify", {"mfa_token": token, "code": code})


async def guess_codes(caller: Client, mfa_user: MfaUser, token: str, times: int) -> list[int]:
    wrong = mfa_user.wrong_code()
    return [(await verify_code(caller, token, wrong)).status_code for _ in range(times)]
