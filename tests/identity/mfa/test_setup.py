"""POST /api/v1/mfa/setup: secret, QR code and recovery codes."""

import base64
import io
import re

import pyotp
import pytest
import segno
from PIL import Image

from app.kit import clock
from app.kit.ids import new_id
from tests.identity.mfa.api_calls import (
    API,
    create_mfa_user,
    enable,
    get_status,
    list_devices,
    log_in,
    set_up,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.authenticators import STEP_SECONDS, Authenticator, FrozenClock
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_a_set_up_returns_secret_qr_code_url_and_recovery_codes(developer: Client) -> None:
    setup = await set_up(developer)
    assert set(setup) == {"secret", "qr_code_url", "otpauth_url", "recovery_codes"}


async def test_the_secret_is_base32_of_at_least_160_bits(developer: Client) -> None:
    secret = (await set_up(developer))["secret"]
    assert re.fullmatch("[A-Z2-7]+", secret)
    assert len(base64.b32decode(secret)) >= 20


async def test_an_authenticator_with_the_secret_shows_the_right_codes(developer: Client) -> None:
    secret = (await set_up(developer))["secret"]
    code = pyotp.TOTP(secret).at(clock.now())
    assert (await enable(developer, code)).status_code == 200


async def test_the_otpauth_url_has_secret_issuer_and_email(developer: Client) -> None:
    setup = await set_up(developer)
    totp = pyotp.parse_uri(setup["otpauth_url"])
    assert isinstance(totp, pyotp.TOTP)
    assert (totp.secret, totp.issuer, totp.name) == (setup["secret"], "Parley", developer.email)


async def test_the_otpauth_url_has_six_digits_and_steps_of_30_seconds(developer: Client) -> None:
    totp = pyotp.parse_uri((await set_up(developer))["otpauth_url"])
    assert isinstance(totp, pyotp.TOTP)
    assert (totp.digits, totp.interval) == (6, STEP_SECONDS)


def _decode_qr_code(url: str) -> Image.Image:
    head, _, body = url.partition(",")
    assert head == "data:image/png;base64"
    image = Image.open(io.BytesIO(base64.b64decode(body, validate=True)))
    image.load()
    return image


async def test_the_qr_code_is_a_png_in_a_data_url(developer: Client) -> None:
    image = _decode_qr_code((await set_up(developer))["qr_code_url"])
    assert (image.format, image.width) == ("PNG", image.height)


async def test_the_qr_code_encodes_the_otpauth_url(developer: Client) -> None:
    setup = await set_up(developer)
    matrices = [
        [
            [bool(module) for module in row]
            for row in segno.make_qr(setup["otpauth_url"], error).matrix
        ]
        for error in "LMQH"
    ]
    image = _decode_qr_code(setup["qr_code_url"]).convert("L")
    assert any(_read_modules(image, len(matrix)) == matrix for matrix in matrices)


def _read_modules(image: Image.Image, count: int) -> list[list[bool]]:
    """Returns which modules are dark, in a square of `count` modules a side without border."""
    inner = image.crop(image.point(lambda value: 255 - value).getbbox())
    centers = [int((number + 0.5) * inner.width / count) for number in range(count)]
    return [[inner.getpixel((x, y)) == 0 for x in centers] for y in centers]


async def test_there_are_ten_different_recovery_codes_of_ten_characters(developer: Client) -> None:
    recovery_codes = (await set_up(developer))["recovery_codes"]
    assert len(recovery_codes) == len(set(recovery_codes)) == 10
    assert all(re.fullmatch("[A-Za-z0-9]{10}", code) for code in recovery_codes)


async def test_two_set_ups_share_no_secret_and_no_code(developer: Client) -> None:
    first, second = await set_up(developer), await set_up(developer)
    assert first["secret"] != second["secret"]
    assert not set(first["recovery_codes"]) & set(second["recovery_codes"])


async def test_a_set_up_alone_does_not_change_signing_in(world: World, developer: Client) -> None:
    await set_up(developer)
    assert "access_token" in await log_in(world, developer.email)


async def test_a_set_up_alone_does_not_change_the_user(developer: Client) -> None:
    await set_up(developer)
    assert (await developer.get("/auth/me")).json()["mfa_enabled"] is False


async def test_a_set_up_alone_lists_no_device(developer: Client) -> None:
    await set_up(developer)
    assert await list_devices(developer) == []


async def test_codes_of_a_set_up_alone_are_not_valid(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    setup = await set_up(developer)
    assert not await verify_code(
        developer, Authenticator(frozen_clock, setup["secret"]).next_code()
    )
    assert not await verify_code(developer, setup["recovery_codes"][0])


async def test_a_new_set_up_replaces_the_pending_one(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    await set_up(developer)
    second = await set_up(developer)
    authenticator = Authenticator(frozen_clock, second["secret"])
    assert (await enable(developer, authenticator.next_code())).status_code == 200
    assert (await get_status(developer))["devices_count"] == 1


async def test_recovery_codes_of_a_replaced_set_up_are_not_valid(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    first = await set_up(developer)
    await turn_on_mfa(developer, frozen_clock)
    assert not await verify_code(developer, first["recovery_codes"][0])


async def test_an_idempotency_key_does_not_return_the_same_recovery_codes_again(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    for route in ("setup", "recovery-codes"):
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(route=route):
            headers = {"idempotency-key": new_id("key")}
            code_lists = [
                (await mfa_user.client.post(f"{API}/{route}", headers=headers)).json()[
                    "recovery_codes"
                ]
                for _ in range(2)
            ]
            assert not set(code_lists[0]) & set(code_lists[1])
