"""Whether a payload comes from who it says: each scheme, over the raw bytes."""

import hmac
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.incoming import verification
from app.domain.incoming.verification import Received
from app.services import Services
from tests.incoming.factories import bodies
from tests.incoming.guarded import BODY, guarded, send_signed, shut_out
from tests.incoming.signers import (
    EARLY,
    LATE,
    NOW,
    OTHER,
    SECOND,
    SECRET,
    SIGNERS,
    TIMED,
    Headers,
)
from tests.world import Client

ALTERED = b'{"order":4711,"note":"\xc3\xbc"}'


schemes = pytest.mark.parametrize("scheme", list(SIGNERS))


@schemes
async def test_what_is_signed_is_taken(
    developer: Client, anonymous: Client, services: Services, scheme: str
) -> None:
    door = await guarded(developer, scheme)
    answer = await send_signed(anonymous, door, SIGNERS[scheme](SECRET, BODY, NOW))
    assert answer.status_code == 202, answer.text
    assert await bodies(services, door) == [BODY]


@schemes
@pytest.mark.parametrize(
    "body", [b"null", b" [1, 2]\r\n", b'"\\u0000"', b'"' + b"x" * 200_000 + b'"']
)
async def test_any_signed_json_is_taken(
    developer: Client, anonymous: Client, scheme: str, body: bytes
) -> None:
    door = await guarded(developer, scheme)
    answer = await send_signed(anonymous, door, SIGNERS[scheme](SECRET, body, NOW), body)
    assert answer.status_code == 202, answer.text


@schemes
@pytest.mark.parametrize("body", [ALTERED, BODY + b"\n", BODY + b" ", b" " + BODY, b"{}"])
async def test_other_bytes_are_refused_though_they_be_equal_as_json(
    developer: Client, anonymous: Client, services: Services, scheme: str, body: bytes
) -> None:
    door = await guarded(developer, scheme)
    signed = SIGNERS[scheme](SECRET, BODY, NOW)
    await shut_out(developer, anonymous, services, door, signed, body)


@schemes
async def test_a_wrong_secret_isshut_out(
    developer: Client, anonymous: Client, services: Services, scheme: str
) -> None:
    door = await guarded(developer, scheme)
    signed = SIGNERS[scheme](OTHER, BODY, NOW)
    await shut_out(developer, anonymous, services, door, signed, BODY)


@schemes
async def test_each_missing_or_empty_header_isshut_out(
    developer: Client, anonymous: Client, services: Services, scheme: str
) -> None:
    door = await guarded(developer, scheme)
    signed = SIGNERS[scheme](SECRET, BODY, NOW)
    for name in signed:
        without = {key: value for key, value in signed.items() if key != name}
        for headers in (without, {**signed, name: ""}):
            await shut_out(developer, anonymous, services, door, headers, BODY)


@schemes
async def test_a_signature_of_another_scheme_isshut_out(
    developer: Client, anonymous: Client, services: Services, scheme: str
) -> None:
    door = await guarded(developer, scheme)
    others = [sign for name, sign in SIGNERS.items() if name != scheme]
    headers = {k: v for sign in others for k, v in sign(SECRET, BODY, NOW).items()}
    await shut_out(developer, anonymous, services, door, headers, BODY)


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize(
    "at", [EARLY - SECOND, LATE + SECOND, datetime(2001, 1, 1, tzinfo=NOW.tzinfo)]
)
async def test_a_timestamp_of_another_time_isshut_out(
    developer: Client, anonymous: Client, services: Services, scheme: str, at: datetime
) -> None:
    door = await guarded(developer, scheme)
    signed = SIGNERS[scheme](SECRET, BODY, at)
    await shut_out(developer, anonymous, services, door, signed, BODY)


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize("at", [EARLY, LATE])
async def test_a_timestamp_may_differ_by_300_seconds(
    developer: Client, anonymous: Client, scheme: str, at: datetime
) -> None:
    door = await guarded(developer, scheme)
    answer = await send_signed(anonymous, door, SIGNERS[scheme](SECRET, BODY, at))
    assert answer.status_code == 202, answer.text


GARBAGE = [
    b"\xff\xfe\x80",
    b"\xc3\xbc",
    b"sha256=",
    b"sha256=" + b"\xe9" * 64,
    b"sha256=" + b"0" * 64,
    b"t=,v1=",
    b"t=1,t=2,v1==,,,=,v1",
    b"t=-1e9999,v1=x",
    b"v1,",
    b"v1 v1,, v1,=== v2,x",
    b"v0=",
    b"v0=" + b"z" * 5000,
    b"99999999999999999999999999",
    b"-1",
    b"1e9",
    b"NaN",
    b"0x10",
    "١٢٣".encode(),
    b"\t \t",
    b"," * 8000,
    b" ".join([b"v1,AAAA"] * 1000),
]


@schemes
@pytest.mark.parametrize("garbage", GARBAGE)
async def test_garbage_is_refused_and_breaks_nothing(
    developer: Client, anonymous: Client, services: Services, scheme: str, garbage: bytes
) -> None:
    door = await guarded(developer, scheme)
    signed = SIGNERS[scheme](SECRET, BODY, NOW)
    for name in signed:
        headers: dict[str, str | bytes] = {**signed, name: garbage}
        await shut_out(developer, anonymous, services, door, headers, BODY)


NAMES = sorted({name.lower() for sign in SIGNERS.values() for name in sign(SECRET, b"", NOW)})
# Whatever can stand in a header: each byte is a character of Latin-1.
VALUES = st.binary(max_size=80).map(lambda raw: raw.decode("latin-1"))


@settings(max_examples=300, deadline=None)
@given(
    headers=st.dictionaries(st.sampled_from(NAMES), VALUES),
    body=st.binary(max_size=50),
    scheme=st.sampled_from(sorted(SIGNERS)),
)
def test_nothing_that_is_made_up_is_genuine(headers: Headers, body: bytes, scheme: str) -> None:
    assert verification.is_genuine(scheme, SECRET, None, Received(headers, body)) is False


@schemes
async def test_signatures_are_compared_in_constant_time(
    developer: Client, anonymous: Client, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    real = hmac.compare_digest

    def noted(one: Any, other: Any) -> bool:
        compared.append(len(one))
        return real(one, other)

    door = await guarded(developer, scheme)
    monkeypatch.setattr(hmac, "compare_digest", noted)
    assert (
        await send_signed(anonymous, door, SIGNERS[scheme](OTHER, BODY, NOW))
    ).status_code == 401
    assert compared
