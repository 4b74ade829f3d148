"""Signature verification of every scheme, over the raw bytes."""

import hmac
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.automation.incoming import verification
from app.domain.automation.incoming.verification import RawRequest
from app.services import Services
from tests.automation.incoming.signed_requests import (
    BODY,
    assert_rejected,
    create_signed_webhook,
    send_signed_payload,
)
from tests.automation.incoming.signers import (
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
from tests.automation.incoming.sql import list_bodies
from tests.world import Client, World

COMPACT_BODY = b'{"order":4711,"note":"\xc3\xbc"}'


async def test_a_signed_payload_is_accepted(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for scheme in SIGNERS:
        with subtests.test(scheme=scheme):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, scheme)
            answer = await send_signed_payload(
                anonymous, webhook, SIGNERS[scheme](SECRET, BODY, NOW)
            )
            assert answer.status_code == 202, answer.text
            assert await list_bodies(services, webhook) == [BODY]


_SIGNED_BODIES: list[bytes] = [b"null", b" [1, 2]\r\n", b'"\\u0000"', b'"' + b"x" * 200_000 + b'"']


async def test_any_signed_json_is_accepted(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for scheme in SIGNERS:
        developer = await world.user()
        webhook = await create_signed_webhook(developer, scheme)
        for body in _SIGNED_BODIES:
            with subtests.test(scheme=scheme, body=body):
                answer = await send_signed_payload(
                    anonymous, webhook, SIGNERS[scheme](SECRET, body, NOW), body
                )
                assert answer.status_code == 202, answer.text


async def test_other_bytes_of_the_same_json_are_rejected(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for scheme in SIGNERS:
        developer = await world.user()
        webhook = await create_signed_webhook(developer, scheme)
        for body in (COMPACT_BODY, BODY + b"\n", BODY + b" ", b" " + BODY, b"{}"):
            with subtests.test(scheme=scheme, body=body):
                headers = SIGNERS[scheme](SECRET, BODY, NOW)
                await assert_rejected(developer, anonymous, services, webhook, headers, body)


async def test_a_wrong_secret_is_rejected(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for scheme in SIGNERS:
        with subtests.test(scheme=scheme):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, scheme)
            headers = SIGNERS[scheme](OTHER, BODY, NOW)
            await assert_rejected(developer, anonymous, services, webhook, headers, BODY)


async def test_each_missing_or_empty_header_is_rejected(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for scheme in SIGNERS:
        with subtests.test(scheme=scheme):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, scheme)
            signed = SIGNERS[scheme](SECRET, BODY, NOW)
            for name in signed:
                without = {key: value for key, value in signed.items() if key != name}
                for headers in (without, {**signed, name: ""}):
                    await assert_rejected(developer, anonymous, services, webhook, headers, BODY)


async def test_a_signature_of_another_scheme_is_rejected(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for scheme in SIGNERS:
        with subtests.test(scheme=scheme):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, scheme)
            others = [sign for name, sign in SIGNERS.items() if name != scheme]
            headers = {k: v for sign in others for k, v in sign(SECRET, BODY, NOW).items()}
            await assert_rejected(developer, anonymous, services, webhook, headers, BODY)


_OUTDATED: list[datetime] = [EARLY - SECOND, LATE + SECOND, datetime(2001, 1, 1, tzinfo=NOW.tzinfo)]


async def test_a_timestamp_out_of_tolerance_is_rejected(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for scheme in TIMED:
        with subtests.test(scheme=scheme):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, scheme)
            for at in _OUTDATED:
                with subtests.test(at=at):
                    headers = SIGNERS[scheme](SECRET, BODY, at)
                    await assert_rejected(developer, anonymous, services, webhook, headers, BODY)


async def test_a_timestamp_may_differ_by_300_seconds(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for scheme in TIMED:
        with subtests.test(scheme=scheme):
            developer = await world.user()
            webhook = await create_signed_webhook(developer, scheme)
            for at in (EARLY, LATE):
                with subtests.test(at=at):
                    answer = await send_signed_payload(
                        anonymous, webhook, SIGNERS[scheme](SECRET, BODY, at)
                    )
                    assert answer.status_code == 202, answer.text


INVALID_VALUES = [
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


async def test_an_invalid_header_value_is_rejected(
    world: World, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for scheme in SIGNERS:
        developer = await world.user()
        webhook = await create_signed_webhook(developer, scheme)
        for value in INVALID_VALUES:
            with subtests.test(scheme=scheme, value=value):
                signed = SIGNERS[scheme](SECRET, BODY, NOW)
                for name in signed:
                    headers: dict[str, str | bytes] = {**signed, name: value}
                    await assert_rejected(developer, anonymous, services, webhook, headers, BODY)


HEADER_NAMES = sorted(
    {name.lower() for sign in SIGNERS.values() for name in sign(SECRET, b"", NOW)}
)
# Header values are Latin-1: every byte is a character.
HEADER_VALUES = st.binary(max_size=80).map(lambda raw: raw.decode("latin-1"))


@settings(max_examples=300, deadline=None)
@given(
    headers=st.dictionaries(st.sampled_from(HEADER_NAMES), HEADER_VALUES),
    body=st.binary(max_size=50),
    scheme=st.sampled_from(sorted(SIGNERS)),
)
def test_random_headers_are_never_genuine(headers: Headers, body: bytes, scheme: str) -> None:
    assert verification.is_genuine(scheme, SECRET, None, RawRequest(headers, body)) is False


async def test_signatures_are_compared_in_constant_time(
    world: World, anonymous: Client, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    lengths: list[int] = []
    compare_digest = hmac.compare_digest

    def record_comparison(first: Any, second: Any) -> bool:
        lengths.append(len(first))
        return compare_digest(first, second)

    monkeypatch.setattr(hmac, "compare_digest", record_comparison)
    for scheme in SIGNERS:
        with subtests.test(scheme=scheme):
            webhook = await create_signed_webhook(await world.user(), scheme)
            lengths.clear()
            assert (
                await send_signed_payload(anonymous, webhook, SIGNERS[scheme](OTHER, BODY, NOW))
            ).status_code == 401
            assert lengths
