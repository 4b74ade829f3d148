"""Multi-factor authentication: setting up, enabling, showing codes, devices, recovery, reset."""

import asyncio
import base64
import io
import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pyotp
import pytest
import segno
from PIL import Image

from app.domain.mail import service as mail
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import MailMessage
from db.session import ALL_TENANTS
from tests.server import Server
from tests.stores import Stores
from tests.world import PASSWORD, Client, World

API = "/api/v1/mfa"
OFF = {"enabled": False, "method": "totp", "devices_count": 0, "recovery_codes_remaining": 0}
STEP = 30


class Hand:
    """Holds the clock in the middle of a step some minutes ago, and moves it."""

    def __init__(self, held: ExitStack) -> None:
        self._held = held
        self._at = datetime.fromtimestamp((time.time() // STEP - 16) * STEP + STEP / 2, UTC)
        self.forward(0)

    def forward(self, seconds: float = STEP) -> None:
        self._at += timedelta(seconds=seconds)
        self._held.enter_context(clock.frozen(self._at))


class Phone:
    """An authenticator app with one secret."""

    def __init__(self, hand: Hand, secret: str) -> None:
        self._hand = hand
        self._totp = pyotp.TOTP(secret)
        self.secret = secret

    def code(self, steps: int = 0) -> str:
        """What it shows now, or shows so many steps later."""
        return self._totp.at(int(clock.epoch()), steps)

    def fresh(self) -> str:
        """A code that it has not shown before."""
        self._hand.forward()
        return self.code()


class Owner:
    """Somebody signed in whose MFA is on."""

    def __init__(self, client: Client, phone: Phone, recovery: list[str]) -> None:
        self.client = client
        self.phone = phone
        self.recovery = recovery


@pytest.fixture(autouse=True)
def hand() -> Iterator[Hand]:
    with ExitStack() as held:
        yield Hand(held)


@pytest.fixture
async def owner(developer: Client, hand: Hand) -> Owner:
    return await _on(developer, hand)


@pytest.fixture
async def early(world: World, developer: Client, hand: Hand) -> tuple[Owner, Client]:
    """Somebody whose MFA is on, and another session of theirs that was opened before."""
    other = await _session(world, developer)
    return await _on(developer, hand), other


async def _set_up(client: Client, **more: Any) -> dict[str, Any]:
    answer = await client.post(f"{API}/setup", **more)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _enable(client: Client, code: str, **more: Any) -> httpx.Response:
    return await client.post(f"{API}/enable", {"code": code, **more})


async def _on(client: Client, hand: Hand, **more: Any) -> Owner:
    """Turns MFA on, or adds a device; the code of the next step is free."""
    made = await _set_up(client)
    phone = Phone(hand, made["secret"])
    answer = await _enable(client, phone.fresh(), **more)
    assert answer.status_code == 200, answer.text
    return Owner(client, phone, made["recovery_codes"])


async def _disable(client: Client, code: str) -> httpx.Response:
    return await client.post(f"{API}/disable", {"code": code})


async def _verify(client: Client, code: str) -> bool:
    answer = await client.post(f"{API}/verify", {"code": code})
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"valid"}
    valid: bool = answer.json()["valid"]
    return valid


async def _status(client: Client, **more: Any) -> dict[str, Any]:
    answer = await client.get(f"{API}/status", **more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _devices(client: Client) -> list[dict[str, Any]]:
    answer = await client.get(f"{API}/devices")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"devices"}
    found: list[dict[str, Any]] = answer.json()["devices"]
    return found


async def _delete(client: Client, device_id: str) -> httpx.Response:
    return await client.delete(f"{API}/devices/{device_id}")


async def _login(world: World, email: str) -> dict[str, Any]:
    answer = await world.anonymous().post("/auth/login", {"email": email, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def _session(world: World, client: Client) -> Client:
    """Another session of somebody whose MFA is off."""
    token = (await _login(world, client.email))["access_token"]
    return Client(world.app, token, user_id=client.user_id, email=client.email)


async def _sign_in(world: World, email: str, code: str) -> httpx.Response:
    token = (await _login(world, email))["mfa_token"]
    return await world.anonymous().post("/auth/mfa/verify", {"mfa_token": token, "code": code})


async def _reset(admin: Client, user_id: str) -> httpx.Response:
    return await admin.post(f"/api/v1/users/{user_id}/mfa/reset")


def _wrong(*phones: Phone) -> str:
    """A code that none of them shows at about this time."""
    shown = {phone.code(steps) for phone in phones for steps in range(-3, 4)}
    return next(code for code in ("000000", "111111", *_MORE) if code not in shown)


_MORE = [f"{number:06}" for number in range(1, 100)]


def _problem(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def _rows(services: Services, sql: str, *args: object) -> list[tuple[Any, ...]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return [tuple(row) for row in await (await tx.raw()).fetch(sql, *args)]


async def _left(services: Services, client: Client) -> int:
    """How many rows about MFA the user has."""
    sql = """
    SELECT (SELECT count(*) FROM mfa_devices WHERE user_id = $1)
         + (SELECT count(*) FROM recovery_codes WHERE user_id = $1)
    """
    count: int = (await _rows(services, sql, client.user_id))[0][0]
    return count


async def _told(services: Services, client: Client, name: str) -> list[dict[str, Any]]:
    sql = "SELECT data::text FROM event_log WHERE tenant_id = $1 AND type = $2 ORDER BY id"
    rows = await _rows(services, sql, client.tenant_id, f"system.user.{name}")
    return [json.loads(row[0]) for row in rows]


async def _mails(services: Services, client: Client) -> list[str]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        session, raw = await tx.session(), await tx.raw()
        ids = await raw.fetch(
            "SELECT id FROM mail_messages WHERE recipient = $1 ORDER BY id", client.email
        )
        found = [await session.get_one(MailMessage, row["id"]) for row in ids]
    return [
        services.keyring.open(row.body or b"", mail.seal_context(row.tenant_id, row.id)).decode()
        for row in found
    ]


# Status


async def test_without_mfa_the_status_says_off(developer: Client) -> None:
    assert await _status(developer) == OFF


async def test_a_set_up_alone_leaves_the_status_off(developer: Client) -> None:
    await _set_up(developer)
    assert await _status(developer) == OFF


async def test_with_mfa_the_status_counts_devices_and_codes(owner: Owner) -> None:
    assert await _status(owner.client) == {
        "enabled": True,
        "method": "totp",
        "devices_count": 1,
        "recovery_codes_remaining": 10,
    }


async def test_a_second_device_is_counted(owner: Owner, hand: Hand) -> None:
    await _on(owner.client, hand)
    assert (await _status(owner.client))["devices_count"] == 2


async def test_a_second_device_that_is_only_set_up_is_not_counted(owner: Owner) -> None:
    before = await _status(owner.client)
    await _set_up(owner.client)
    assert await _status(owner.client) == before


async def test_a_used_recovery_code_is_no_longer_counted(owner: Owner) -> None:
    await _verify(owner.client, owner.recovery[0])
    assert (await _status(owner.client))["recovery_codes_remaining"] == 9


async def test_the_status_is_off_again_once_mfa_is_turned_off(owner: Owner) -> None:
    await _disable(owner.client, owner.phone.fresh())
    assert await _status(owner.client) == OFF


async def test_ones_status_says_nothing_of_others(owner: Owner, world: World) -> None:
    colleague = await world.user("agent_developer", owner.client.tenant_id)
    assert await _status(colleague) == OFF


# Set-up


async def test_a_set_up_gives_secret_picture_address_and_codes(developer: Client) -> None:
    made = await _set_up(developer)
    assert set(made) == {"secret", "qr_code_url", "otpauth_url", "recovery_codes"}


async def test_the_secret_is_base32_of_at_least_160_bits(developer: Client) -> None:
    secret = (await _set_up(developer))["secret"]
    assert re.fullmatch("[A-Z2-7]+", secret)
    assert len(base64.b32decode(secret)) >= 20


async def test_an_authenticator_with_the_secret_shows_the_right_codes(developer: Client) -> None:
    secret = (await _set_up(developer))["secret"]
    code = pyotp.TOTP(secret).at(clock.now())
    assert (await _enable(developer, code)).status_code == 200


async def test_the_address_names_secret_issuer_and_email(developer: Client) -> None:
    made = await _set_up(developer)
    read = pyotp.parse_uri(made["otpauth_url"])
    assert isinstance(read, pyotp.TOTP)
    assert (read.secret, read.issuer, read.name) == (made["secret"], "Parley", developer.email)


async def test_the_address_asks_for_six_digits_each_half_minute(developer: Client) -> None:
    read = pyotp.parse_uri((await _set_up(developer))["otpauth_url"])
    assert isinstance(read, pyotp.TOTP)
    assert (read.digits, read.interval) == (6, STEP)


def _picture(url: str) -> Image.Image:
    head, _, body = url.partition(",")
    assert head == "data:image/png;base64"
    image = Image.open(io.BytesIO(base64.b64decode(body, validate=True)))
    image.load()
    return image


async def test_the_picture_is_a_png_in_a_data_url(developer: Client) -> None:
    image = _picture((await _set_up(developer))["qr_code_url"])
    assert (image.format, image.width) == ("PNG", image.height)


async def test_the_picture_shows_the_address(developer: Client) -> None:
    made = await _set_up(developer)
    drawn = [
        [
            [bool(module) for module in row]
            for row in segno.make_qr(made["otpauth_url"], error).matrix
        ]
        for error in "LMQH"
    ]
    shown = _picture(made["qr_code_url"]).convert("L")
    assert any(_modules(shown, len(wanted)) == wanted for wanted in drawn)


def _modules(image: Image.Image, count: int) -> list[list[bool]]:
    """What is dark, in a square of `count` modules a side without the border around it."""
    inner = image.crop(image.point(lambda value: 255 - value).getbbox())
    spots = [int((number + 0.5) * inner.width / count) for number in range(count)]
    return [[inner.getpixel((x, y)) == 0 for x in spots] for y in spots]


async def test_there_are_ten_different_recovery_codes_of_ten_characters(developer: Client) -> None:
    made = (await _set_up(developer))["recovery_codes"]
    assert len(made) == len(set(made)) == 10
    assert all(re.fullmatch("[A-Za-z0-9]{10}", code) for code in made)


async def test_two_set_ups_share_no_secret_and_no_code(developer: Client) -> None:
    first, second = await _set_up(developer), await _set_up(developer)
    assert first["secret"] != second["secret"]
    assert not set(first["recovery_codes"]) & set(second["recovery_codes"])


async def test_a_set_up_alone_does_not_change_signing_in(world: World, developer: Client) -> None:
    await _set_up(developer)
    assert "access_token" in await _login(world, developer.email)


async def test_a_set_up_alone_does_not_change_the_user(developer: Client) -> None:
    await _set_up(developer)
    assert (await developer.get("/auth/me")).json()["mfa_enabled"] is False


async def test_a_set_up_alone_lists_no_device(developer: Client) -> None:
    await _set_up(developer)
    assert await _devices(developer) == []


async def test_codes_of_a_set_up_alone_are_not_valid(developer: Client, hand: Hand) -> None:
    made = await _set_up(developer)
    assert not await _verify(developer, Phone(hand, made["secret"]).fresh())
    assert not await _verify(developer, made["recovery_codes"][0])


async def test_a_new_set_up_takes_the_place_of_the_pending_one(
    developer: Client, hand: Hand
) -> None:
    await _set_up(developer)
    second = await _set_up(developer)
    phone = Phone(hand, second["secret"])
    assert (await _enable(developer, phone.fresh())).status_code == 200
    assert (await _status(developer))["devices_count"] == 1


async def test_of_two_set_ups_only_the_codes_of_the_second_hold(
    developer: Client, hand: Hand
) -> None:
    first = await _set_up(developer)
    await _on(developer, hand)
    assert not await _verify(developer, first["recovery_codes"][0])


@pytest.mark.parametrize("route", ["setup", "recovery-codes"])
async def test_what_is_shown_once_is_not_given_again_for_an_idempotency_key(
    owner: Owner, route: str
) -> None:
    headers = {"idempotency-key": new_id("key")}
    made = [
        (await owner.client.post(f"{API}/{route}", headers=headers)).json()["recovery_codes"]
        for _ in range(2)
    ]
    assert not set(made[0]) & set(made[1])


# Enabling


async def test_enabling_must_follow_a_set_up(developer: Client) -> None:
    assert _problem(await _enable(developer, "123456")) == (409, "mfa_not_set_up")


async def test_a_set_up_is_enabled_once(owner: Owner) -> None:
    answer = await _enable(owner.client, owner.phone.fresh())
    assert _problem(answer) == (409, "mfa_not_set_up")


async def test_enabling_tells_how_many_codes_there_are(developer: Client, hand: Hand) -> None:
    phone = Phone(hand, (await _set_up(developer))["secret"])
    answer = (await _enable(developer, phone.fresh())).json()
    assert set(answer) == {"message", "recovery_codes_count"}
    assert answer["message"]
    assert answer["recovery_codes_count"] == 10


async def test_enabling_shows_on_the_user(owner: Owner) -> None:
    assert (await owner.client.get("/auth/me")).json()["mfa_enabled"] is True


async def test_once_enabled_a_password_alone_does_not_sign_in(world: World, owner: Owner) -> None:
    told = await _login(world, owner.client.email)
    assert set(told) == {"mfa_required", "mfa_token", "message"}
    assert told["mfa_required"] is True


async def test_once_enabled_a_password_and_a_code_sign_in(world: World, owner: Owner) -> None:
    answer = await _sign_in(world, owner.client.email, owner.phone.fresh())
    assert answer.status_code == 200
    assert set(answer.json()) == {"access_token", "refresh_token", "token_type", "expires_in"}


async def _refused_field(answer: httpx.Response) -> None:
    assert _problem(answer) == (422, "validation_error")
    assert set(answer.json()["error"]["details"]) == {"code"}


async def test_a_wrong_code_does_not_enable(developer: Client, hand: Hand) -> None:
    phone = Phone(hand, (await _set_up(developer))["secret"])
    await _refused_field(await _enable(developer, _wrong(phone)))
    assert await _status(developer) == OFF


async def test_after_a_wrong_code_the_right_one_still_enables(
    developer: Client, hand: Hand
) -> None:
    phone = Phone(hand, (await _set_up(developer))["secret"])
    await _enable(developer, _wrong(phone))
    assert (await _enable(developer, phone.code())).status_code == 200


async def test_a_code_of_an_earlier_set_up_does_not_enable(developer: Client, hand: Hand) -> None:
    first = Phone(hand, (await _set_up(developer))["secret"])
    await _set_up(developer)
    await _refused_field(await _enable(developer, first.code()))


async def test_a_recovery_code_does_not_enable(developer: Client) -> None:
    made = await _set_up(developer)
    await _refused_field(await _enable(developer, made["recovery_codes"][0]))


async def test_a_recovery_code_shown_when_enabling_is_not_used_up(
    developer: Client, hand: Hand
) -> None:
    made = await _set_up(developer)
    await _enable(developer, made["recovery_codes"][0])
    await _enable(developer, Phone(hand, made["secret"]).fresh())
    assert await _verify(developer, made["recovery_codes"][0])


async def test_a_recovery_code_of_the_first_device_does_not_enable_a_second(owner: Owner) -> None:
    await _set_up(owner.client)
    await _refused_field(await _enable(owner.client, owner.recovery[0]))
    assert (await _status(owner.client))["recovery_codes_remaining"] == 10


@pytest.mark.parametrize("used", [True, False], ids=["used", "fresh"])
async def test_a_code_of_the_first_device_does_not_enable_a_second(
    owner: Owner, *, used: bool
) -> None:
    await _set_up(owner.client)
    code = owner.phone.code() if used else owner.phone.fresh()
    await _refused_field(await _enable(owner.client, code))


@pytest.mark.parametrize("steps", [-1, 0, 1])
async def test_a_code_of_a_neighbouring_step_is_accepted(
    developer: Client, hand: Hand, steps: int
) -> None:
    phone = Phone(hand, (await _set_up(developer))["secret"])
    assert (await _enable(developer, phone.code(steps))).status_code == 200


@pytest.mark.parametrize("steps", [-3, -2, 2, 3])
async def test_a_code_of_a_step_further_away_is_refused(
    developer: Client, hand: Hand, steps: int
) -> None:
    phone = Phone(hand, (await _set_up(developer))["secret"])
    await _refused_field(await _enable(developer, phone.code(steps)))


@pytest.mark.parametrize(
    ("from_middle", "expected"),
    [(-46, 422), (-44, 200), (44, 200), (46, 422)],
)
async def test_a_code_holds_from_one_step_before_its_own_to_one_after(
    developer: Client, hand: Hand, from_middle: int, expected: int
) -> None:
    phone = Phone(hand, (await _set_up(developer))["secret"])
    code = phone.code()
    hand.forward(from_middle)
    assert (await _enable(developer, code)).status_code == expected


async def test_the_code_that_enabled_does_not_sign_in(world: World, owner: Owner) -> None:
    answer = await _sign_in(world, owner.client.email, owner.phone.code())
    assert _problem(answer) == (401, "unauthorized")


async def test_enabling_leaves_other_sessions_signed_in(early: tuple[Owner, Client]) -> None:
    assert (await early[1].get("/auth/me")).status_code == 200


# Turning it off


@pytest.mark.parametrize("by", ["code", "recovery code"])
async def test_a_code_turns_mfa_off(owner: Owner, by: str) -> None:
    code = owner.phone.fresh() if by == "code" else owner.recovery[3]
    answer = await _disable(owner.client, code)
    assert answer.status_code == 200
    assert set(answer.json()) == {"message"}
    assert await _status(owner.client) == OFF


async def test_any_device_s_code_turns_mfa_off(owner: Owner, hand: Hand) -> None:
    await _on(owner.client, hand)
    assert (await _disable(owner.client, owner.phone.fresh())).status_code == 200
    assert await _status(owner.client) == OFF


async def test_a_session_from_before_turns_mfa_off_with_a_code(
    early: tuple[Owner, Client],
) -> None:
    owner, other = early
    assert (await _disable(other, owner.phone.fresh())).status_code == 200


async def test_a_wrong_code_does_not_turn_mfa_off(owner: Owner) -> None:
    before = await _status(owner.client)
    await _refused_field(await _disable(owner.client, _wrong(owner.phone)))
    assert await _status(owner.client) == before


async def test_a_used_code_does_not_turn_mfa_off(owner: Owner) -> None:
    await _refused_field(await _disable(owner.client, owner.phone.code()))


async def test_a_used_recovery_code_does_not_turn_mfa_off(owner: Owner) -> None:
    await _verify(owner.client, owner.recovery[0])
    await _refused_field(await _disable(owner.client, owner.recovery[0]))


async def test_a_code_of_a_device_that_is_only_set_up_does_not_turn_mfa_off(
    owner: Owner, hand: Hand
) -> None:
    pending = Phone(hand, (await _set_up(owner.client))["secret"])
    await _refused_field(await _disable(owner.client, pending.fresh()))


async def test_what_is_off_cannot_be_turned_off(developer: Client) -> None:
    assert _problem(await _disable(developer, "123456")) == (409, "mfa_not_enabled")


async def test_what_is_only_set_up_cannot_be_turned_off(developer: Client, hand: Hand) -> None:
    phone = Phone(hand, (await _set_up(developer))["secret"])
    assert _problem(await _disable(developer, phone.fresh())) == (409, "mfa_not_enabled")


async def test_what_was_turned_off_cannot_be_turned_off_again(owner: Owner) -> None:
    await _disable(owner.client, owner.phone.fresh())
    answer = await _disable(owner.client, owner.phone.fresh())
    assert _problem(answer) == (409, "mfa_not_enabled")


async def test_turning_off_leaves_no_device_and_no_code(owner: Owner, services: Services) -> None:
    await _set_up(owner.client)
    await _disable(owner.client, owner.phone.fresh())
    assert await _devices(owner.client) == []
    assert await _left(services, owner.client) == 0


async def test_turning_off_ends_what_is_only_set_up(owner: Owner, hand: Hand) -> None:
    pending = Phone(hand, (await _set_up(owner.client))["secret"])
    await _disable(owner.client, owner.phone.fresh())
    assert _problem(await _enable(owner.client, pending.code())) == (409, "mfa_not_set_up")


async def test_once_turned_off_a_password_signs_in(world: World, owner: Owner) -> None:
    await _disable(owner.client, owner.phone.fresh())
    assert "access_token" in await _login(world, owner.client.email)


async def test_once_turned_off_the_user_shows_it(owner: Owner) -> None:
    await _disable(owner.client, owner.phone.fresh())
    assert (await owner.client.get("/auth/me")).json()["mfa_enabled"] is False


async def test_half_a_sign_in_from_before_does_not_survive_turning_off(
    world: World, owner: Owner
) -> None:
    token = (await _login(world, owner.client.email))["mfa_token"]
    await _disable(owner.client, owner.phone.fresh())
    body = {"mfa_token": token, "code": owner.phone.fresh()}
    assert (await world.anonymous().post("/auth/mfa/verify", body)).status_code == 401


async def test_nothing_of_an_earlier_time_works_once_mfa_is_on_again(
    owner: Owner, hand: Hand
) -> None:
    await _disable(owner.client, owner.phone.fresh())
    await _on(owner.client, hand)
    assert not await _verify(owner.client, owner.phone.fresh())
    assert not await _verify(owner.client, owner.recovery[0])


# Showing a code


async def test_a_right_code_is_valid(owner: Owner) -> None:
    assert await _verify(owner.client, owner.phone.fresh())


async def test_a_code_is_valid_once(owner: Owner) -> None:
    code = owner.phone.fresh()
    assert [await _verify(owner.client, code) for _ in range(2)] == [True, False]


async def test_the_code_that_enabled_is_not_valid_again(owner: Owner) -> None:
    assert not await _verify(owner.client, owner.phone.code())


async def test_a_code_is_valid_once_although_its_step_lies_behind(owner: Owner, hand: Hand) -> None:
    code = owner.phone.fresh()
    await _verify(owner.client, code)
    hand.forward()
    assert not await _verify(owner.client, code)


async def test_codes_of_three_neighbouring_steps_are_valid_in_any_order(
    owner: Owner, hand: Hand
) -> None:
    hand.forward(3 * STEP)
    codes = [owner.phone.code(steps) for steps in (1, -1, 0)]
    assert [await _verify(owner.client, code) for code in codes] == [True] * 3


@pytest.mark.parametrize(
    "code",
    ["abc", "12345", "1234567", "ABCDEFGHJK", "x" * 32, " ", "-", "\u0661" * 6, "12345\u00b2"],
)
async def test_a_wrong_code_is_answered_and_no_error(owner: Owner, code: str) -> None:
    assert not await _verify(owner.client, code)


async def test_a_code_of_another_step_is_not_valid(owner: Owner, hand: Hand) -> None:
    hand.forward(5 * STEP)
    assert not await _verify(owner.client, owner.phone.code(-2))
    assert not await _verify(owner.client, owner.phone.code(2))


async def test_a_recovery_code_is_valid_once(owner: Owner) -> None:
    code = owner.recovery[5]
    assert [await _verify(owner.client, code) for _ in range(2)] == [True, False]


async def test_all_ten_recovery_codes_are_valid(owner: Owner) -> None:
    assert [await _verify(owner.client, code) for code in owner.recovery] == [True] * 10
    assert (await _status(owner.client))["recovery_codes_remaining"] == 0


@pytest.mark.parametrize("kind", ["code", "recovery code"])
async def test_a_code_may_be_written_in_groups(owner: Owner, kind: str) -> None:
    code = owner.phone.fresh() if kind == "code" else owner.recovery[0].lower()
    half = len(code) // 2
    separator = " " if kind == "code" else "-"
    assert await _verify(owner.client, f"{code[:half]}{separator}{code[half:]}")


async def test_without_mfa_no_code_is_valid(developer: Client) -> None:
    assert not await _verify(developer, "123456")


async def test_another_user_s_codes_are_not_valid(owner: Owner, world: World, hand: Hand) -> None:
    colleague = await world.user("agent_developer", owner.client.tenant_id)
    await _on(colleague, hand)
    assert not await _verify(colleague, owner.phone.fresh())
    assert not await _verify(colleague, owner.recovery[0])
    assert await _verify(owner.client, owner.recovery[0])


async def test_verifying_again_with_one_idempotency_key_does_not_repeat_the_answer(
    owner: Owner,
) -> None:
    body, headers = {"code": owner.phone.fresh()}, {"idempotency-key": new_id("key")}
    answers = [await owner.client.post(f"{API}/verify", body, headers=headers) for _ in range(2)]
    assert [answer.json()["valid"] for answer in answers] == [True, False]


async def test_a_code_that_was_verified_does_not_sign_in(world: World, owner: Owner) -> None:
    code = owner.phone.fresh()
    await _verify(owner.client, code)
    assert (await _sign_in(world, owner.client.email, code)).status_code == 401


async def test_a_code_that_signed_in_does_not_verify(world: World, owner: Owner) -> None:
    code = owner.phone.fresh()
    await _sign_in(world, owner.client.email, code)
    assert not await _verify(owner.client, code)


async def test_a_recovery_code_signs_in_once(world: World, owner: Owner) -> None:
    answers = [await _sign_in(world, owner.client.email, owner.recovery[0]) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 401]


async def test_a_recovery_code_that_signed_in_is_used_up(world: World, owner: Owner) -> None:
    await _sign_in(world, owner.client.email, owner.recovery[0])
    assert (await _status(owner.client))["recovery_codes_remaining"] == 9


# Devices


async def test_a_device_is_listed_with_its_fields(developer: Client, hand: Hand) -> None:
    await _on(developer, hand, name="My phone")
    (device,) = await _devices(developer)
    assert set(device) == {"id", "name", "type", "created_at", "last_used_at"}
    assert (device["name"], device["type"]) == ("My phone", "totp")
    assert device["created_at"].endswith("Z")


async def test_the_last_use_of_a_device_is_told(owner: Owner, hand: Hand) -> None:
    hand.forward(2 * STEP)
    await _verify(owner.client, owner.phone.fresh())
    (device,) = await _devices(owner.client)
    assert datetime.fromisoformat(device["last_used_at"]) == clock.now()


async def test_a_wrong_code_is_no_use_of_a_device(owner: Owner, hand: Hand) -> None:
    before = await _devices(owner.client)
    hand.forward(2 * STEP)
    await _verify(owner.client, _wrong(owner.phone))
    assert await _devices(owner.client) == before


async def test_the_use_of_one_device_is_no_use_of_another(owner: Owner, hand: Hand) -> None:
    second = await _on(owner.client, hand)
    before = await _devices(owner.client)
    await _verify(owner.client, second.phone.fresh())
    after = await _devices(owner.client)
    assert (after[0], after[1]["id"]) == (before[0], before[1]["id"])
    assert after[1]["last_used_at"] > before[1]["last_used_at"]


async def test_a_device_without_a_name_is_given_one(owner: Owner) -> None:
    assert (await _devices(owner.client))[0]["name"]


async def test_devices_have_the_names_given_when_they_were_enabled(
    developer: Client, hand: Hand
) -> None:
    for name in ("Phone", "  Tablet "):
        await _on(developer, hand, name=name)
    assert [device["name"] for device in await _devices(developer)] == ["Phone", "Tablet"]


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "x" * 101, None, 5])
async def test_a_wrong_name_is_named(developer: Client, hand: Hand, name: object) -> None:
    phone = Phone(hand, (await _set_up(developer))["secret"])
    answer = await _enable(developer, phone.code(), name=name)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"name"}


async def test_each_device_signs_in(world: World, owner: Owner, hand: Hand) -> None:
    second = await _on(owner.client, hand)
    for phone in (owner.phone, second.phone):
        answer = await _sign_in(world, owner.client.email, phone.fresh())
        assert answer.status_code == 200


async def test_devices_do_not_share_the_steps_that_were_used(owner: Owner, hand: Hand) -> None:
    second = await _on(owner.client, hand)
    hand.forward()
    assert await _verify(owner.client, owner.phone.code())
    assert await _verify(owner.client, second.phone.code())


async def test_earlier_recovery_codes_hold_until_another_device_is_enabled(owner: Owner) -> None:
    pending = await _set_up(owner.client)
    assert await _verify(owner.client, owner.recovery[0])
    assert not await _verify(owner.client, pending["recovery_codes"][0])


async def test_enabling_another_device_replaces_the_recovery_codes(
    owner: Owner, hand: Hand
) -> None:
    second = await _on(owner.client, hand)
    assert not await _verify(owner.client, owner.recovery[0])
    assert await _verify(owner.client, second.recovery[0])


async def test_after_another_device_there_are_ten_codes_again(owner: Owner, hand: Hand) -> None:
    await _verify(owner.client, owner.recovery[0])
    await _on(owner.client, hand)
    assert (await _status(owner.client))["recovery_codes_remaining"] == 10


async def test_ones_own_devices_are_listed_only(owner: Owner, world: World) -> None:
    colleague = await world.user("agent_developer", owner.client.tenant_id)
    assert await _devices(colleague) == []


async def test_in_the_place_of_a_removed_device_another_can_be_added(
    owner: Owner, hand: Hand
) -> None:
    for _ in range(9):
        await _on(owner.client, hand)
    await _delete(owner.client, (await _devices(owner.client))[0]["id"])
    await _on(owner.client, hand)
    assert (await _status(owner.client))["devices_count"] == 10


# Removing a device


@pytest.mark.parametrize("device_id", ["dev_nothing", "x", "%20", "0" * 300])
async def test_an_unknown_device_is_404(owner: Owner, device_id: str) -> None:
    assert _problem(await _delete(owner.client, device_id)) == (404, "device_not_found")


async def test_without_mfa_there_is_no_device_to_remove(developer: Client) -> None:
    assert _problem(await _delete(developer, "dev_nothing")) == (404, "device_not_found")


@pytest.mark.parametrize("where", ["same tenant", "another tenant"])
async def test_another_user_s_device_is_404_and_stays(
    owner: Owner, world: World, hand: Hand, where: str
) -> None:
    tenant_id = owner.client.tenant_id if where == "same tenant" else None
    other = await _on(await world.user("tenant_admin", tenant_id), hand)
    (device,) = await _devices(owner.client)
    answer = await _delete(other.client, device["id"])
    assert _problem(answer) == (404, "device_not_found")
    assert await _devices(owner.client) == [device]


async def test_removing_a_device_is_answered_with_a_message(owner: Owner, hand: Hand) -> None:
    await _on(owner.client, hand)
    first, _ = await _devices(owner.client)
    answer = await _delete(owner.client, first["id"])
    assert answer.status_code == 200
    assert set(answer.json()) == {"message"}


async def test_removing_one_of_two_devices_keeps_mfa_on(owner: Owner, hand: Hand) -> None:
    await _on(owner.client, hand)
    first, second = await _devices(owner.client)
    await _delete(owner.client, first["id"])
    assert await _devices(owner.client) == [second]
    assert await _status(owner.client) == {
        "enabled": True,
        "method": "totp",
        "devices_count": 1,
        "recovery_codes_remaining": 10,
    }


async def test_a_removed_device_signs_in_no_longer(world: World, owner: Owner, hand: Hand) -> None:
    second = await _on(owner.client, hand)
    first, _ = await _devices(owner.client)
    await _delete(owner.client, first["id"])
    answers = [
        await _sign_in(world, owner.client.email, phone.fresh())
        for phone in (owner.phone, second.phone)
    ]
    assert [answer.status_code for answer in answers] == [401, 200]


async def test_removing_one_of_two_devices_leaves_the_recovery_codes(
    owner: Owner, hand: Hand
) -> None:
    second = await _on(owner.client, hand)
    for device in (await _devices(owner.client))[1:]:
        await _delete(owner.client, device["id"])
    assert await _verify(owner.client, second.recovery[0])


async def test_removing_the_last_device_turns_mfa_off(owner: Owner, world: World) -> None:
    (device,) = await _devices(owner.client)
    assert (await _delete(owner.client, device["id"])).status_code == 200
    assert await _status(owner.client) == OFF
    assert "access_token" in await _login(world, owner.client.email)


async def test_removing_the_last_device_leaves_no_code(owner: Owner, services: Services) -> None:
    (device,) = await _devices(owner.client)
    await _delete(owner.client, device["id"])
    assert await _left(services, owner.client) == 0


async def test_a_device_is_removed_once(owner: Owner, hand: Hand) -> None:
    await _on(owner.client, hand)
    first, _ = await _devices(owner.client)
    answers = [await _delete(owner.client, first["id"]) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 404]


# New recovery codes


async def _regenerate(client: Client) -> httpx.Response:
    return await client.post(f"{API}/recovery-codes")


async def test_ten_new_recovery_codes_are_given(owner: Owner) -> None:
    answer = await _regenerate(owner.client)
    made = answer.json()
    assert answer.status_code == 200
    assert set(made) == {"recovery_codes", "message"}
    assert len(set(made["recovery_codes"]) - set(owner.recovery)) == 10
    assert all(re.fullmatch("[A-Za-z0-9]{10}", code) for code in made["recovery_codes"])


async def test_all_new_recovery_codes_work(owner: Owner) -> None:
    made = (await _regenerate(owner.client)).json()["recovery_codes"]
    assert [await _verify(owner.client, code) for code in made] == [True] * 10


async def test_all_earlier_recovery_codes_are_dead(owner: Owner) -> None:
    await _regenerate(owner.client)
    for code in owner.recovery:
        assert not await _verify(owner.client, code)
        # A right code in between, so that the wrong ones are judged and not merely held off.
        assert await _verify(owner.client, owner.phone.fresh())


async def test_new_recovery_codes_are_counted_anew(owner: Owner) -> None:
    await _verify(owner.client, owner.recovery[0])
    await _regenerate(owner.client)
    assert (await _status(owner.client))["recovery_codes_remaining"] == 10


async def test_new_recovery_codes_leave_the_devices(owner: Owner) -> None:
    before = await _devices(owner.client)
    await _regenerate(owner.client)
    assert await _devices(owner.client) == before


@pytest.mark.parametrize("state", ["off", "set up"])
async def test_without_mfa_there_are_no_new_recovery_codes(developer: Client, state: str) -> None:
    if state == "set up":
        await _set_up(developer)
    assert _problem(await _regenerate(developer)) == (409, "mfa_not_enabled")


# Sessions that have not shown a code


async def _weaken(client: Client, what: str, device_id: str) -> httpx.Response:
    match what:
        case "set up":
            return await client.post(f"{API}/setup")
        case "remove":
            return await _delete(client, device_id)
        case _:
            return await _regenerate(client)


WEAKENING = pytest.mark.parametrize("what", ["set up", "remove", "recovery codes"])


@WEAKENING
async def test_a_session_from_before_must_show_a_code_first(
    early: tuple[Owner, Client], what: str
) -> None:
    owner, other = early
    (device,) = await _devices(owner.client)
    answer = await _weaken(other, what, device["id"])
    assert _problem(answer) == (403, "mfa_required")
    assert answer.json()["error"]["details"] == {
        "required": "mfa",
        "your_role": "agent_developer",
    }


@WEAKENING
async def test_what_a_session_without_a_code_asks_for_is_not_done(
    early: tuple[Owner, Client], services: Services, what: str
) -> None:
    owner, other = early
    (device,) = await _devices(owner.client)
    before = await _left(services, other)
    await _weaken(other, what, device["id"])
    assert await _left(services, other) == before
    assert await _verify(owner.client, owner.recovery[0])


@WEAKENING
@pytest.mark.parametrize("kind", ["code", "recovery code"])
async def test_a_session_from_before_that_shows_a_code_is_let_through(
    early: tuple[Owner, Client], what: str, kind: str
) -> None:
    owner, other = early
    (device,) = await _devices(owner.client)
    assert await _verify(other, owner.phone.fresh() if kind == "code" else owner.recovery[0])
    assert (await _weaken(other, what, device["id"])).status_code == 200


@WEAKENING
async def test_a_wrong_code_does_not_let_a_session_through(
    early: tuple[Owner, Client], what: str
) -> None:
    owner, other = early
    (device,) = await _devices(owner.client)
    await _verify(other, _wrong(owner.phone))
    assert _problem(await _weaken(other, what, device["id"])) == (403, "mfa_required")


@WEAKENING
async def test_a_code_shown_by_one_session_does_not_let_another_through(
    early: tuple[Owner, Client], what: str
) -> None:
    owner, other = early
    (device,) = await _devices(owner.client)
    await _verify(owner.client, owner.phone.fresh())
    assert _problem(await _weaken(other, what, device["id"])) == (403, "mfa_required")


@WEAKENING
async def test_a_session_opened_with_a_code_is_let_through(
    world: World, owner: Owner, what: str
) -> None:
    (device,) = await _devices(owner.client)
    token = (await _sign_in(world, owner.client.email, owner.phone.fresh())).json()["access_token"]
    assert (await _weaken(Client(world.app, token), what, device["id"])).status_code == 200


async def test_a_refreshed_session_has_still_shown_its_code(world: World, owner: Owner) -> None:
    body = {"refresh_token": owner.client.refresh_token}
    pair = (await world.anonymous().post("/auth/refresh", body)).json()
    fresh = Client(world.app, pair["access_token"])
    assert (await _regenerate(fresh)).status_code == 200


@pytest.mark.parametrize("how", ["disable", "last device"])
async def test_a_code_shown_before_mfa_was_turned_off_lets_no_session_through_later(
    world: World, owner: Owner, hand: Hand, how: str
) -> None:
    old = owner.client
    if how == "disable":
        await _disable(old, owner.phone.fresh())
    else:
        await _delete(old, (await _devices(old))[0]["id"])
    await _on(await _session(world, old), hand)
    assert _problem(await _regenerate(old)) == (403, "mfa_required")


async def test_a_session_that_has_not_shown_a_code_still_sees_its_devices(
    early: tuple[Owner, Client],
) -> None:
    owner, other = early
    assert await _devices(other) == await _devices(owner.client)


# Reset by an administrator


@pytest.fixture
async def lost(owner: Owner, world: World) -> tuple[Owner, Client]:
    """Somebody who lost their phone, and an administrator of their tenant."""
    return owner, await world.user("tenant_admin", owner.client.tenant_id)


async def test_an_administrator_resets_mfa(lost: tuple[Owner, Client]) -> None:
    owner, admin = lost
    answer = await _reset(admin, owner.client.user_id)
    told = answer.json()
    assert answer.status_code == 200
    assert set(told) == {"id", "mfa_enabled", "message"}
    assert (told["id"], told["mfa_enabled"]) == (owner.client.user_id, False)
    assert told["message"]


async def test_after_a_reset_the_status_is_off(
    lost: tuple[Owner, Client], services: Services
) -> None:
    owner, admin = lost
    await _reset(admin, owner.client.user_id)
    assert await _status(owner.client) == OFF
    assert await _left(services, owner.client) == 0


async def test_after_a_reset_a_password_signs_in(world: World, lost: tuple[Owner, Client]) -> None:
    owner, admin = lost
    await _reset(admin, owner.client.user_id)
    assert "access_token" in await _login(world, owner.client.email)


async def test_half_a_sign_in_from_before_does_not_survive_a_reset(
    world: World, lost: tuple[Owner, Client]
) -> None:
    owner, admin = lost
    token = (await _login(world, owner.client.email))["mfa_token"]
    await _reset(admin, owner.client.user_id)
    body = {"mfa_token": token, "code": owner.phone.fresh()}
    assert (await world.anonymous().post("/auth/mfa/verify", body)).status_code == 401


async def test_after_a_reset_the_user_must_set_up_again(
    lost: tuple[Owner, Client], hand: Hand
) -> None:
    owner, admin = lost
    pending = Phone(hand, (await _set_up(owner.client))["secret"])
    await _reset(admin, owner.client.user_id)
    assert _problem(await _enable(owner.client, pending.fresh())) == (409, "mfa_not_set_up")


async def test_after_a_reset_mfa_can_be_enabled_again(
    lost: tuple[Owner, Client], hand: Hand
) -> None:
    owner, admin = lost
    await _reset(admin, owner.client.user_id)
    await _on(owner.client, hand)
    assert (await _status(owner.client))["enabled"] is True


async def test_a_reset_is_the_same_once_more(lost: tuple[Owner, Client]) -> None:
    owner, admin = lost
    answers = [await _reset(admin, owner.client.user_id) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


async def test_who_has_no_mfa_can_be_reset(admin: Client, world: World) -> None:
    user = await world.user("viewer", admin.tenant_id)
    answer = await _reset(admin, user.user_id)
    assert (answer.status_code, answer.json()["mfa_enabled"]) == (200, False)


async def test_a_reset_touches_nobody_else(lost: tuple[Owner, Client], hand: Hand) -> None:
    owner, admin = lost
    await _on(admin, hand)
    await _reset(admin, owner.client.user_id)
    assert (await _status(admin))["enabled"] is True


@pytest.mark.parametrize("role", ["agent_developer", "agent_user", "viewer"])
async def test_who_is_no_admin_resets_nobody(owner: Owner, world: World, role: str) -> None:
    caller = await world.user(role, owner.client.tenant_id)
    answer = await _reset(caller, owner.client.user_id)
    assert _problem(answer) == (403, "forbidden")
    assert answer.json()["error"]["details"] == {"required": "admin:users", "your_role": role}
    assert (await _status(owner.client))["enabled"] is True


async def test_who_is_no_admin_does_not_even_reset_themselves(owner: Owner) -> None:
    assert (await _reset(owner.client, owner.client.user_id)).status_code == 403


async def test_a_tenant_admin_finds_nobody_of_another_tenant(owner: Owner, admin: Client) -> None:
    answer = await _reset(admin, owner.client.user_id)
    assert _problem(answer) == (404, "user_not_found")
    assert (await _status(owner.client))["enabled"] is True


async def test_somebody_unknown_cannot_be_reset(admin: Client) -> None:
    assert _problem(await _reset(admin, "usr_nothing")) == (404, "user_not_found")


async def test_a_super_admin_resets_somebody_of_any_tenant(
    owner: Owner, super_admin: Client
) -> None:
    assert (await _reset(super_admin, owner.client.user_id)).status_code == 200
    assert await _status(owner.client) == OFF


async def test_a_super_admin_narrowed_to_a_tenant_finds_nobody_of_another(
    owner: Owner, super_admin: Client, world: World
) -> None:
    headers = {"x-tenant-id": await world.tenant()}
    path = f"/api/v1/users/{owner.client.user_id}/mfa/reset"
    answer = await super_admin.post(path, headers=headers)
    assert _problem(answer) == (404, "user_not_found")


async def test_nobody_resets_somebody_above_them(world: World, admin: Client, hand: Hand) -> None:
    above = await _on(await world.user("super_admin", admin.tenant_id), hand)
    answer = await _reset(admin, above.client.user_id)
    assert _problem(answer) == (403, "forbidden")
    assert answer.json()["error"]["details"]["your_role"] == "tenant_admin"
    assert (await _status(above.client))["enabled"] is True


async def test_an_administrator_resets_another_of_the_same_role(
    world: World, admin: Client, hand: Hand
) -> None:
    equal = await _on(await world.user("tenant_admin", admin.tenant_id), hand)
    assert (await _reset(admin, equal.client.user_id)).status_code == 200


async def test_a_reset_of_oneself_needs_a_code(world: World, admin: Client, hand: Hand) -> None:
    other = await _session(world, admin)
    await _on(admin, hand)
    answer = await _reset(other, admin.user_id)
    assert _problem(answer) == (403, "mfa_required")
    assert (await _status(admin))["enabled"] is True


async def test_a_session_that_has_shown_a_code_resets_itself(
    world: World, admin: Client, hand: Hand
) -> None:
    other = await _session(world, admin)
    owner = await _on(admin, hand)
    await _verify(other, owner.phone.fresh())
    assert (await _reset(other, admin.user_id)).status_code == 200
    assert await _status(admin) == OFF


# Guessing


async def _guess(client: Client, route: str, code: str) -> httpx.Response:
    return await client.post(f"{API}/{route}", {"code": code})


@pytest.fixture
async def blocked(owner: Owner, hand: Hand) -> tuple[Owner, Phone]:
    """Five wrong codes at three places, and a second device that is only set up."""
    pending = Phone(hand, (await _set_up(owner.client))["secret"])
    wrong = _wrong(owner.phone, pending)
    answers = [
        await _guess(owner.client, route, wrong)
        for route in ("enable", "disable", "verify", "disable", "enable")
    ]
    assert [answer.status_code for answer in answers] == [422, 422, 200, 422, 422]
    return owner, pending


ROUTES = pytest.mark.parametrize("route", ["enable", "disable", "verify"])


def _right(blocked: tuple[Owner, Phone], route: str) -> str:
    owner, pending = blocked
    return (pending if route == "enable" else owner.phone).code(1)


@ROUTES
async def test_after_five_wrong_codes_even_the_right_one_must_wait(
    blocked: tuple[Owner, Phone], route: str
) -> None:
    answer = await _guess(blocked[0].client, route, _right(blocked, route))
    assert _problem(answer) == (429, "rate_limited")


@ROUTES
async def test_a_refusal_says_in_three_places_how_long_to_wait(
    blocked: tuple[Owner, Phone], route: str
) -> None:
    answer = await _guess(blocked[0].client, route, "123456")
    error = answer.json()["error"]
    assert error["details"] == {"limit": 5, "window": 86400, "retry_after": 15}
    assert "15 seconds" in error["message"]
    assert answer.headers["retry-after"] == "15"


@ROUTES
async def test_after_waiting_the_right_code_works(
    blocked: tuple[Owner, Phone], hand: Hand, route: str
) -> None:
    hand.forward(15)
    answer = await _guess(blocked[0].client, route, _right(blocked, route))
    assert answer.status_code == 200
    assert answer.json().get("valid", True)


@ROUTES
async def test_a_code_that_was_refused_for_waiting_is_not_used_up(
    blocked: tuple[Owner, Phone], hand: Hand, route: str
) -> None:
    code = _right(blocked, route)
    await _guess(blocked[0].client, route, code)
    hand.forward(15)
    answer = await _guess(blocked[0].client, route, code)
    assert answer.status_code == 200
    assert answer.json().get("valid", True)


async def test_a_recovery_code_must_wait_too(blocked: tuple[Owner, Phone]) -> None:
    owner, _ = blocked
    answer = await _guess(owner.client, "verify", owner.recovery[0])
    assert answer.status_code == 429
    assert (await _status(owner.client))["recovery_codes_remaining"] == 10


async def test_while_codes_must_wait_a_password_is_still_taken_and_its_code_is_not(
    world: World, blocked: tuple[Owner, Phone]
) -> None:
    owner, _ = blocked
    answer = await _sign_in(world, owner.client.email, owner.phone.code(1))
    assert _problem(answer) == (429, "rate_limited")


async def test_wrong_codes_at_a_sign_in_count_as_well(world: World, owner: Owner) -> None:
    wrong = _wrong(owner.phone)
    for _ in range(3):
        await _sign_in(world, owner.client.email, wrong)
    for _ in range(2):
        await _verify(owner.client, wrong)
    assert (await _guess(owner.client, "verify", owner.phone.code(1))).status_code == 429


async def test_a_wrong_code_after_the_wait_makes_the_next_one_longer(
    blocked: tuple[Owner, Phone], hand: Hand
) -> None:
    owner, pending = blocked
    hand.forward(15)
    await _verify(owner.client, _wrong(owner.phone, pending))
    answer = await _guess(owner.client, "verify", owner.phone.code(1))
    assert answer.json()["error"]["details"]["retry_after"] == 30


async def test_a_right_code_clears_the_count(owner: Owner) -> None:
    for _ in range(2):
        for _ in range(4):
            assert not await _verify(owner.client, _wrong(owner.phone))
        assert await _verify(owner.client, owner.phone.fresh())


async def test_one_user_s_guesses_are_not_another_s(
    blocked: tuple[Owner, Phone], world: World, hand: Hand
) -> None:
    colleague = await world.user("agent_developer", blocked[0].client.tenant_id)
    other = await _on(colleague, hand)
    assert await _verify(other.client, other.phone.fresh())


async def test_guesses_from_several_sessions_are_counted_together(
    early: tuple[Owner, Client],
) -> None:
    owner, other = early
    for client in (owner.client, other, owner.client, other, owner.client):
        await _verify(client, _wrong(owner.phone))
    assert (await _guess(other, "verify", owner.phone.code(1))).status_code == 429


async def test_the_wait_is_told_in_the_log_once(
    blocked: tuple[Owner, Phone], services: Services
) -> None:
    owner, _ = blocked
    await _guess(owner.client, "verify", "123456")
    assert await _told(services, owner.client, "sign_in_blocked") == [
        {"user_id": owner.client.user_id, "ip_address": owner.client.address, "reason": "code"}
    ]


# At once


@pytest.mark.parametrize("kind", ["code", "recovery code"])
async def test_of_fifty_uses_of_one_code_at_once_one_is_valid(owner: Owner, kind: str) -> None:
    code = owner.phone.fresh() if kind == "code" else owner.recovery[0]
    answers = await asyncio.gather(*(_guess(owner.client, "verify", code) for _ in range(50)))
    assert {answer.status_code for answer in answers} <= {200, 429}
    valid = [answer for answer in answers if answer.json().get("valid")]
    assert len(valid) == 1


async def test_a_recovery_code_used_fifty_times_at_once_is_told_once(
    owner: Owner, services: Services
) -> None:
    code = owner.recovery[0]
    await asyncio.gather(*(_guess(owner.client, "verify", code) for _ in range(50)))
    assert len(await _told(services, owner.client, "recovery_code_used")) == 1
    assert (await _status(owner.client))["recovery_codes_remaining"] == 9


async def test_of_fifty_wrong_guesses_at_once_five_are_judged(owner: Owner) -> None:
    wrong = _wrong(owner.phone)
    answers = await asyncio.gather(*(_guess(owner.client, "verify", wrong) for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [429] * 45


async def test_of_two_ways_to_use_one_code_at_once_one_succeeds(world: World, owner: Owner) -> None:
    token = (await _login(world, owner.client.email))["mfa_token"]
    code = owner.phone.fresh()
    signed_in, verified = await asyncio.gather(
        world.anonymous().post("/auth/mfa/verify", {"mfa_token": token, "code": code}),
        _verify(owner.client, code),
    )
    assert (signed_in.status_code, verified) in {(200, False), (401, True)}


async def test_two_enables_at_once_leave_one_device_with_ten_codes(
    developer: Client, hand: Hand
) -> None:
    made = await _set_up(developer)
    phone = Phone(hand, made["secret"])
    answers = await asyncio.gather(*(_enable(developer, phone.code(steps)) for steps in (0, -1)))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert await _status(developer) == {
        "enabled": True,
        "method": "totp",
        "devices_count": 1,
        "recovery_codes_remaining": 10,
    }
    assert [await _verify(developer, code) for code in made["recovery_codes"]] == [True] * 10


async def test_two_enables_at_once_are_told_and_mailed_once(
    developer: Client, hand: Hand, services: Services
) -> None:
    phone = Phone(hand, (await _set_up(developer))["secret"])
    await asyncio.gather(*(_enable(developer, phone.code(steps)) for steps in (0, -1)))
    assert len(await _told(services, developer, "mfa_enabled")) == 1
    assert len(await _mails(services, developer)) == 1


async def test_two_set_ups_at_once_leave_one_of_them(
    developer: Client, hand: Hand, services: Services
) -> None:
    made = await asyncio.gather(_set_up(developer), _set_up(developer))
    phones = [Phone(hand, one["secret"]) for one in made]
    enabled = []
    for phone, one in zip(phones, made, strict=True):
        if (await _enable(developer, phone.code())).status_code == 200:
            enabled.append(one)
    assert len(enabled) == 1
    # One device, and its ten codes.
    assert await _left(services, developer) == 11
    assert await _verify(developer, enabled[0]["recovery_codes"][0])


async def test_removing_the_last_two_devices_at_once_turns_mfa_off(
    owner: Owner, hand: Hand, services: Services
) -> None:
    await _on(owner.client, hand)
    devices = await _devices(owner.client)
    answers = await asyncio.gather(*(_delete(owner.client, device["id"]) for device in devices))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert await _status(owner.client) == OFF
    assert await _left(services, owner.client) == 0
    assert len(await _told(services, owner.client, "mfa_disabled")) == 1


async def test_removing_one_device_twice_at_once_removes_it_alone(owner: Owner, hand: Hand) -> None:
    await _on(owner.client, hand)
    first, second = await _devices(owner.client)
    answers = await asyncio.gather(*(_delete(owner.client, first["id"]) for _ in range(2)))
    assert sorted(answer.status_code for answer in answers) == [200, 404]
    assert await _devices(owner.client) == [second]


async def test_two_new_sets_at_once_leave_one_of_them(owner: Owner) -> None:
    answers = await asyncio.gather(*(_regenerate(owner.client) for _ in range(2)))
    assert (await _status(owner.client))["recovery_codes_remaining"] == 10
    valid = [await _verify(owner.client, answer.json()["recovery_codes"][0]) for answer in answers]
    assert sorted(valid) == [False, True]


# At rest


def _forms(secret: str) -> set[str]:
    """How a secret would look in a row shown as text."""
    forms = {secret, secret.lower(), secret.encode().hex()}
    if re.fullmatch("[A-Z2-7]{32}", secret):
        forms.add(base64.b32decode(secret).hex())
    return forms


@pytest.mark.parametrize(
    "table",
    ["mfa_devices", "recovery_codes", "event_log", "mail_messages", "work"],
)
async def test_no_secret_and_no_code_is_in_the_database_in_plain(
    owner: Owner, hand: Hand, services: Services, table: str
) -> None:
    """At every stage: enabled, used, replaced, and only set up."""
    pending = await _set_up(owner.client)
    await _verify(owner.client, owner.recovery[0])
    replaced = await _regenerate(owner.client)
    secrets = [
        owner.phone.secret,
        pending["secret"],
        *owner.recovery,
        *pending["recovery_codes"],
        *replaced.json()["recovery_codes"],
    ]
    forms = {form for secret in secrets for form in _forms(secret)}
    rows = [row[0] for row in await _rows(services, f"SELECT t::text FROM {table} AS t")]
    assert rows
    assert not [row for row in rows if any(form in row for form in forms)]


async def test_no_secret_and_no_code_is_in_redis(owner: Owner, services: Services) -> None:
    dumps = [await services.redis.dump(key) for key in await services.redis.keys("*")]
    assert dumps
    secrets = [secret.encode() for secret in (owner.phone.secret, *owner.recovery)]
    assert not [dump for dump in dumps if dump and any(secret in dump for secret in secrets)]


async def test_no_secret_and_no_code_is_mailed(owner: Owner, services: Services) -> None:
    await _verify(owner.client, owner.recovery[0])
    await _disable(owner.client, owner.phone.fresh())
    texts = await _mails(services, owner.client)
    assert texts
    assert not [text for text in texts for secret in _secrets(owner) if secret in text]


def _secrets(owner: Owner) -> list[str]:
    return [owner.phone.secret, *owner.recovery]


async def test_no_secret_and_no_code_is_given_again(owner: Owner) -> None:
    answers = [
        await owner.client.get(path) for path in (f"{API}/status", f"{API}/devices", "/auth/me")
    ]
    assert not [one for one in answers for secret in _secrets(owner) if secret in one.text]


async def test_no_secret_and_no_code_is_logged(
    developer: Client, stores: Stores, hand: Hand, capfd: pytest.CaptureFixture[str]
) -> None:
    """A web process that logs all it can; what it writes is read from its standard error."""
    server = Server(msgspec.structs.replace(stores.settings, log_level="debug"))
    headers = {"authorization": f"Bearer {developer.token}"}
    try:
        await asyncio.to_thread(server.wait)
        async with httpx.AsyncClient(base_url=server.url + API, headers=headers) as http:
            made = (await http.post("/setup")).json()
            shown = [
                pyotp.TOTP(made["secret"]).at(int(time.time())),
                made["recovery_codes"][0],
                "WRONGCODE1",
                made["recovery_codes"][1],
            ]
            for route, code in zip(("enable", "verify", "verify", "disable"), shown, strict=True):
                assert (await http.post(f"/{route}", json={"code": code})).status_code == 200
    finally:
        await asyncio.to_thread(server.close)
    told = capfd.readouterr()
    # Without the fractions of seconds: six digits, as a code has.
    lines = re.sub(r"\.\d+Z", "Z", told.out + told.err)
    assert f"{API}/enable" in lines
    secrets = [made["secret"], *made["recovery_codes"], *shown]
    assert not [secret for secret in secrets if secret in lines]


# What is told, and what is mailed


async def test_enabling_is_told_once(owner: Owner, services: Services) -> None:
    (device,) = await _devices(owner.client)
    assert await _told(services, owner.client, "mfa_enabled") == [
        {"user_id": owner.client.user_id, "device_id": device["id"]}
    ]


async def test_the_first_device_is_not_told_as_another_one(
    owner: Owner, services: Services
) -> None:
    assert await _told(services, owner.client, "mfa_device_added") == []


async def test_another_device_is_told_once(owner: Owner, hand: Hand, services: Services) -> None:
    await _on(owner.client, hand)
    _, second = await _devices(owner.client)
    assert await _told(services, owner.client, "mfa_device_added") == [
        {"user_id": owner.client.user_id, "device_id": second["id"]}
    ]
    assert len(await _told(services, owner.client, "mfa_enabled")) == 1


async def test_removing_a_device_is_told_once(owner: Owner, hand: Hand, services: Services) -> None:
    await _on(owner.client, hand)
    first, _ = await _devices(owner.client)
    await _delete(owner.client, first["id"])
    assert await _told(services, owner.client, "mfa_device_removed") == [
        {"user_id": owner.client.user_id, "device_id": first["id"]}
    ]
    assert await _told(services, owner.client, "mfa_disabled") == []


async def test_removing_the_last_device_is_told_as_turning_off_too(
    owner: Owner, services: Services
) -> None:
    (device,) = await _devices(owner.client)
    await _delete(owner.client, device["id"])
    assert len(await _told(services, owner.client, "mfa_device_removed")) == 1
    assert await _told(services, owner.client, "mfa_disabled") == [
        {"user_id": owner.client.user_id}
    ]


async def test_turning_off_is_told_once(owner: Owner, services: Services) -> None:
    await _disable(owner.client, owner.phone.fresh())
    assert await _told(services, owner.client, "mfa_disabled") == [
        {"user_id": owner.client.user_id}
    ]


async def test_a_reset_is_told_once(lost: tuple[Owner, Client], services: Services) -> None:
    owner, admin = lost
    for _ in range(2):
        await _reset(admin, owner.client.user_id)
    assert await _told(services, owner.client, "mfa_reset") == [{"user_id": owner.client.user_id}]


async def test_the_reset_by_a_super_admin_is_told_in_the_user_s_tenant(
    owner: Owner, super_admin: Client, services: Services
) -> None:
    await _reset(super_admin, owner.client.user_id)
    assert len(await _told(services, owner.client, "mfa_reset")) == 1
    assert await _told(services, super_admin, "mfa_reset") == []


@pytest.mark.parametrize("where", ["verify", "sign in", "disable"])
async def test_the_use_of_a_recovery_code_is_told_once(
    world: World, owner: Owner, services: Services, where: str
) -> None:
    code = owner.recovery[0]
    match where:
        case "verify":
            await _verify(owner.client, code)
        case "sign in":
            await _sign_in(world, owner.client.email, code)
        case _:
            await _disable(owner.client, code)
    assert await _told(services, owner.client, "recovery_code_used") == [
        {"user_id": owner.client.user_id}
    ]


async def test_new_recovery_codes_are_told_once(owner: Owner, services: Services) -> None:
    await _regenerate(owner.client)
    assert await _told(services, owner.client, "recovery_codes_replaced") == [
        {"user_id": owner.client.user_id}
    ]


async def test_what_is_refused_is_not_told(early: tuple[Owner, Client], services: Services) -> None:
    owner, other = early
    sql = "SELECT count(*) FROM event_log WHERE tenant_id = $1"
    before = await _rows(services, sql, owner.client.tenant_id)
    (device,) = await _devices(other)
    await _disable(other, _wrong(owner.phone))
    await _delete(other, device["id"])
    await _regenerate(other)
    assert await _rows(services, sql, owner.client.tenant_id) == before


async def test_a_set_up_alone_is_neither_told_nor_mailed(
    developer: Client, services: Services
) -> None:
    await _set_up(developer)
    sql = "SELECT type FROM event_log WHERE tenant_id = $1"
    assert await _rows(services, sql, developer.tenant_id) == []
    assert await _mails(services, developer) == []


async def test_the_owner_gets_a_mail_when_a_device_is_enabled(
    owner: Owner, services: Services
) -> None:
    (text,) = await _mails(services, owner.client)
    assert "An authenticator was added." in text


async def test_the_owner_gets_a_mail_for_another_device(
    owner: Owner, hand: Hand, services: Services
) -> None:
    await _on(owner.client, hand)
    assert len(await _mails(services, owner.client)) == 2


async def test_the_owner_gets_a_mail_when_mfa_is_turned_off(
    owner: Owner, services: Services
) -> None:
    await _disable(owner.client, owner.phone.fresh())
    (text,) = (await _mails(services, owner.client))[1:]
    assert "Multi-factor authentication was turned off." in text


async def test_the_owner_gets_a_mail_when_a_device_is_removed(
    owner: Owner, hand: Hand, services: Services
) -> None:
    await _on(owner.client, hand)
    await _delete(owner.client, (await _devices(owner.client))[0]["id"])
    (text,) = (await _mails(services, owner.client))[2:]
    assert "An authenticator was removed." in text


async def test_the_owner_is_mailed_that_the_last_device_took_mfa_along(
    owner: Owner, services: Services
) -> None:
    await _delete(owner.client, (await _devices(owner.client))[0]["id"])
    texts = (await _mails(services, owner.client))[1:]
    assert any("Multi-factor authentication was turned off." in text for text in texts)


async def test_the_owner_gets_a_mail_when_recovery_codes_are_replaced(
    owner: Owner, services: Services
) -> None:
    await _regenerate(owner.client)
    (text,) = (await _mails(services, owner.client))[1:]
    assert "New recovery codes were made." in text


async def test_the_owner_gets_one_mail_when_mfa_is_reset(
    lost: tuple[Owner, Client], services: Services
) -> None:
    owner, admin = lost
    for _ in range(2):
        await _reset(admin, owner.client.user_id)
    (text,) = (await _mails(services, owner.client))[1:]
    assert "An administrator removed your authenticators." in text


async def test_the_work_of_mailing_is_accepted_with_the_change(
    owner: Owner, services: Services
) -> None:
    """Device, event, mail and its work are one transaction."""
    sql = """
    SELECT xmin::text FROM mfa_devices WHERE user_id = $1
    UNION ALL SELECT xmin::text FROM event_log WHERE data ->> 'user_id' = $1
    UNION ALL SELECT xmin::text FROM mail_messages WHERE recipient = $2
    UNION ALL SELECT w.xmin::text FROM work AS w JOIN mail_messages AS m ON m.id = w.ref_id
              WHERE m.recipient = $2
    """
    rows = await _rows(services, sql, owner.client.user_id, owner.client.email)
    assert (len(rows), len(set(rows))) == (4, 1)


# Acting in another tenant


async def test_a_super_admin_acting_elsewhere_changes_their_own_mfa(
    super_admin: Client, world: World, hand: Hand, services: Services
) -> None:
    elsewhere = await world.tenant()
    super_admin.http.headers["x-tenant-id"] = elsewhere
    owner = await _on(super_admin, hand)
    assert await _verify(super_admin, owner.phone.fresh())
    assert (await _regenerate(super_admin)).status_code == 200
    sql = "SELECT DISTINCT tenant_id FROM {} WHERE user_id = $1"
    for table in ("mfa_devices", "recovery_codes"):
        rows = await _rows(services, sql.format(table), super_admin.user_id)
        assert rows == [(super_admin.tenant_id,)]


async def test_a_super_admin_acting_elsewhere_sees_their_own_mfa(
    super_admin: Client, world: World, hand: Hand
) -> None:
    await _on(super_admin, hand)
    headers = {"x-tenant-id": await world.tenant()}
    assert await _status(super_admin, headers=headers) == await _status(super_admin)
    listed = await super_admin.get(f"{API}/devices", headers=headers)
    assert listed.json()["devices"] == await _devices(super_admin)


@pytest.mark.parametrize("how", ["disable", "last device"])
async def test_a_super_admin_acting_elsewhere_turns_their_own_mfa_off(
    super_admin: Client, world: World, hand: Hand, how: str
) -> None:
    owner = await _on(super_admin, hand)
    (device,) = await _devices(super_admin)
    super_admin.http.headers["x-tenant-id"] = await world.tenant()
    if how == "disable":
        answer = await _disable(super_admin, owner.phone.fresh())
    else:
        answer = await _delete(super_admin, device["id"])
    assert answer.status_code == 200
    del super_admin.http.headers["x-tenant-id"]
    assert await _status(super_admin) == OFF


async def test_what_a_super_admin_does_elsewhere_with_their_own_mfa_is_told_at_home(
    super_admin: Client, world: World, hand: Hand, services: Services
) -> None:
    elsewhere = await world.tenant()
    super_admin.http.headers["x-tenant-id"] = elsewhere
    await _on(super_admin, hand)
    assert len(await _told(services, super_admin, "mfa_enabled")) == 1
    sql = "SELECT 1 FROM event_log WHERE tenant_id = $1"
    assert await _rows(services, sql, elsewhere) == []


# Bodies


@ROUTES
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"code": None},
        {"code": ""},
        {"code": 123456},
        {"code": True},
        {"code": ["123456"]},
        {"code": {"code": "123456"}},
        {"code": "1" * 33},
        {"code": "1" * 100_000},
        {"Code": "123456"},
    ],
    ids=[
        "missing",
        "null",
        "empty",
        "number",
        "boolean",
        "list",
        "object",
        "long",
        "very long",
        "other case",
    ],
)
async def test_a_code_that_is_none_is_named(developer: Client, route: str, body: object) -> None:
    await _refused_field(await developer.post(f"{API}/{route}", body))


@ROUTES
@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"123456"', b"{", b"\xff"])
async def test_a_body_that_is_no_object_is_refused(
    developer: Client, route: str, body: bytes
) -> None:
    headers = {"content-type": "application/json"}
    answer = await developer("POST", f"{API}/{route}", content=body, headers=headers)
    assert _problem(answer) == (422, "validation_error")


@ROUTES
async def test_a_body_that_is_refused_is_no_guess(owner: Owner, route: str) -> None:
    await _set_up(owner.client)
    for _ in range(6):
        await owner.client.post(f"{API}/{route}", {"code": None})
    assert await _verify(owner.client, owner.phone.fresh())
