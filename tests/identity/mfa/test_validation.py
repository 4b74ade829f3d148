"""Request bodies with a code."""

import pytest

from tests.identity.mfa.api_calls import API, EACH_ROUTE, set_up, verify_code
from tests.identity.mfa.assertions import assert_code_refused, read_error
from tests.identity.mfa.authenticators import MfaUser
from tests.world import Client

pytestmark = pytest.mark.usefixtures("frozen_clock")


_INVALID_BODIES: list[object] = [
    {},
    {"code": None},
    {"code": ""},
    {"code": 123456},
    {"code": True},
    {"code": ["123456"]},
    {"code": {"code": "123456"}},
    {"code": "1" * 33},
    {"code": "1" * 100_000},
]


@EACH_ROUTE
async def test_a_malformed_code_is_refused(
    developer: Client, route: str, subtests: pytest.Subtests
) -> None:
    for body in _INVALID_BODIES:
        with subtests.test(body=body):
            assert_code_refused(await developer.post(f"{API}/{route}", body))


@EACH_ROUTE
async def test_a_body_that_is_no_object_is_refused(
    developer: Client, route: str, subtests: pytest.Subtests
) -> None:
    for body in (b"", b"null", b"[]", b'"123456"', b"{", b"\xff"):
        with subtests.test(body=body):
            headers = {"content-type": "application/json"}
            answer = await developer("POST", f"{API}/{route}", content=body, headers=headers)
            assert read_error(answer) == (422, "validation_error")


@EACH_ROUTE
async def test_a_refused_body_does_not_count_as_a_wrong_code(mfa_user: MfaUser, route: str) -> None:
    await set_up(mfa_user.client)
    for _ in range(6):
        await mfa_user.client.post(f"{API}/{route}", {"code": None})
    assert await verify_code(mfa_user.client, mfa_user.authenticator.next_code())
