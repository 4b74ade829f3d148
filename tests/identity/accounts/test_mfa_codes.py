"""Codes work once, and guessed codes are throttled separately from guessed passwords."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from app.domain.identity.mfa import codes
from app.kit import clock
from app.security import throttle
from app.services import Services
from tests.identity.accounts.api_calls import log_in
from tests.identity.accounts.mfa_users import (
    MfaUser,
    create_mfa_tokens,
    guess_codes,
    request_mfa_token,
    verify_code,
)
from tests.identity.accounts.records import add_seconds
from tests.identity.accounts.throttling import count_failures, guess_passwords
from tests.identity.accounts.values import PAIR_KEYS
from tests.world import Client, World

# A code works once


async def _sign_in_twice(caller: Client, mfa_user: MfaUser, code: str) -> list[int]:
    statuses = []
    for _ in range(2):
        token = await request_mfa_token(caller, mfa_user.user.email)
        statuses.append((await verify_code(caller, token, code)).status_code)
    return statuses


async def test_a_code_works_once(anonymous: Client, mfa_user: MfaUser) -> None:
    code = mfa_user.code()
    assert await _sign_in_twice(anonymous, mfa_user, code) == [200, 401]


async def test_a_recovery_code_signs_in(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    answer = await verify_code(anonymous, token, mfa_user.recovery_codes[3])
    assert (answer.status_code, set(answer.json())) == (200, PAIR_KEYS)


async def test_a_recovery_code_signs_in_once(anonymous: Client, mfa_user: MfaUser) -> None:
    code = mfa_user.recovery_codes[3]
    assert await _sign_in_twice(anonymous, mfa_user, code) == [200, 401]


async def test_the_other_recovery_codes_still_sign_in(anonymous: Client, mfa_user: MfaUser) -> None:
    for code in mfa_user.recovery_codes[:2]:
        token = await request_mfa_token(anonymous, mfa_user.user.email)
        assert (await verify_code(anonymous, token, code)).status_code == 200


async def _verify_codes_at_once(
    caller: Client, attempts: Sequence[tuple[str, str]]
) -> Counter[int]:
    with clock.frozen(clock.now()):
        answers = await asyncio.gather(
            *(verify_code(caller, token, code) for token, code in attempts)
        )
    return Counter(answer.status_code for answer in answers)


async def test_of_fifty_uses_of_a_code_at_once_one_signs_in(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    mfa_tokens, code = await create_mfa_tokens(services, mfa_user, 50), mfa_user.code()
    statuses = await _verify_codes_at_once(anonymous, [(token, code) for token in mfa_tokens])
    assert statuses[200] == 1
    assert set(statuses) == {200, 401, 429}


async def test_of_fifty_uses_of_a_recovery_code_at_once_one_signs_in(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    mfa_tokens, code = await create_mfa_tokens(services, mfa_user, 50), mfa_user.recovery_codes[0]
    statuses = await _verify_codes_at_once(anonymous, [(token, code) for token in mfa_tokens])
    assert statuses[200] == 1


async def test_of_fifty_uses_of_an_mfa_token_at_once_one_signs_in(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    token, code = await request_mfa_token(anonymous, mfa_user.user.email), mfa_user.code()
    assert await _verify_codes_at_once(anonymous, [(token, code)] * 50) == {200: 1, 401: 49}


async def test_ten_recovery_codes_at_once_for_one_mfa_token_use_up_one(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    await _verify_codes_at_once(anonymous, [(token, code) for code in mfa_user.recovery_codes])
    status = (await mfa_user.user.get("/api/v1/mfa/status")).json()
    assert status["recovery_codes_remaining"] == 9


async def test_of_fifty_wrong_codes_at_once_five_are_recorded(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    mfa_tokens, code = await create_mfa_tokens(services, mfa_user, 50), mfa_user.wrong_code()
    statuses = await _verify_codes_at_once(anonymous, [(token, code) for token in mfa_tokens])
    assert statuses == {401: 5, 429: 45}


# Throttling of codes, separate from passwords


async def test_five_wrong_codes_over_several_mfa_tokens_start_a_block(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    mfa_tokens = await create_mfa_tokens(services, mfa_user, 6)
    statuses = [(await guess_codes(anonymous, mfa_user, token, 1))[0] for token in mfa_tokens]
    assert statuses == [401] * 5 + [429]


async def test_a_block_refuses_the_right_code_too(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    with clock.frozen(clock.now()):
        await count_failures(services, throttle.CODE, mfa_user.user.user_id, 5)
        token = await request_mfa_token(anonymous, mfa_user.user.email)
        answer = await verify_code(anonymous, token, mfa_user.code())
    assert answer.status_code == 429
    assert answer.json()["error"]["details"] == {"limit": 5, "window": 86400, "retry_after": 15}
    assert answer.headers["retry-after"] == "15"


async def test_a_right_code_refused_by_a_block_is_not_used_up(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    now = clock.now()
    with clock.frozen(now):
        await count_failures(services, throttle.CODE, mfa_user.user.user_id, 5)
        token = await request_mfa_token(anonymous, mfa_user.user.email)
        code = mfa_user.code()
        await verify_code(anonymous, token, code)
    with clock.frozen(add_seconds(now, 15)):
        assert (await verify_code(anonymous, token, code)).status_code == 200


async def test_a_recovery_code_checked_after_five_wrong_codes_is_not_used_up(
    anonymous: Client, mfa_user: MfaUser, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request passed the first check before the wrong codes started the block."""
    match_code = codes.match_code

    async def match_after_failures(*args: Any) -> Any:
        await count_failures(services, throttle.CODE, mfa_user.user.user_id, 5)
        return await match_code(*args)

    monkeypatch.setattr(codes, "match_code", match_after_failures)
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    answer = await verify_code(anonymous, token, mfa_user.recovery_codes[0])
    status = (await mfa_user.user.get("/api/v1/mfa/status")).json()
    assert (answer.status_code, status["recovery_codes_remaining"]) == (429, 10)


async def test_fifty_wrong_codes_block_an_address(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    await count_failures(services, throttle.CODE_ADDRESS, anonymous.address, 50)
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 429


async def test_a_right_code_clears_the_count_of_codes(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    first, second = await create_mfa_tokens(services, mfa_user, 2)
    await guess_codes(anonymous, mfa_user, first, 4)
    await verify_code(anonymous, first, mfa_user.code())
    assert await guess_codes(anonymous, mfa_user, second, 4) == [401] * 4


async def test_a_right_password_does_not_clear_the_count_of_codes(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    await guess_codes(anonymous, mfa_user, token, 4)
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    assert await guess_codes(anonymous, mfa_user, token, 2) == [401, 429]


async def test_a_right_code_does_not_clear_the_count_of_passwords(
    world: World, anonymous: Client, mfa_user: MfaUser
) -> None:
    other_caller = world.anonymous()
    token = await request_mfa_token(other_caller, mfa_user.user.email)
    await guess_passwords(anonymous, mfa_user.user.email, 4)
    await verify_code(other_caller, token, mfa_user.code())
    assert await guess_passwords(anonymous, mfa_user.user.email, 2) == [401, 429]


async def test_wrong_codes_do_not_block_passwords(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    await guess_codes(anonymous, mfa_user, token, 5)
    assert (await log_in(anonymous, mfa_user.user.email)).status_code == 200


async def test_wrong_passwords_do_not_block_codes(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    assert await guess_passwords(anonymous, mfa_user.user.email, 6) == [401] * 5 + [429]
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 200


async def test_an_address_blocked_for_passwords_may_still_send_codes(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    await count_failures(services, throttle.SIGN_IN_ADDRESS, anonymous.address, 50)
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 200


async def test_an_address_blocked_for_codes_may_still_send_passwords(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    await count_failures(services, throttle.CODE_ADDRESS, anonymous.address, 50)
    assert (await log_in(anonymous, mfa_user.user.email)).status_code == 200
