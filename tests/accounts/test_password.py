"""A person's password: changed by its owner, or reset by mail."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import httpx
import msgspec
import pyotp
import pytest
from sqlalchemy import select

from app.domain.mail import service as mail
from app.kit import clock
from app.services import Services
from db.models import MailMessage, User
from db.session import ALL_TENANTS
from tests.server import Server
from tests.stores import Stores
from tests.world import PASSWORD, Client, World

NEW = "Battery9Staple"
WRONG = "Wrong7Horse"
UNKNOWN = "nobody-was-mailed-this"
WEAK = ["", "Short7s", "lowercase7only", "UPPERCASE7ONLY", "NoNumberAtAll", "Aa1" + "x" * 126]
COMMON = ["Password1", "qWERTY123", "Passw0rd"]


async def _status(caller: Client, email: str, password: str) -> int:
    """The status of a sign-in with this password."""
    answer = await caller.post("/auth/login", {"email": email, "password": password})
    return answer.status_code


async def _session(world: World, email: str, password: str = PASSWORD) -> Client:
    body = {"email": email, "password": password}
    pair = (await world.anonymous().post("/auth/login", body)).json()
    client = Client(world.app, pair["access_token"], refresh_token=pair["refresh_token"])
    await client.get("/auth/me")
    return client


async def _refresh(caller: Client) -> int:
    answer = await caller.post("/auth/refresh", {"refresh_token": caller.refresh_token})
    return answer.status_code


async def _mails(services: Services, email: str) -> list[tuple[str, str]]:
    """Subject and text of the mails to this address, the oldest first."""
    statement = select(MailMessage).where(MailMessage.recipient == email).order_by(MailMessage.id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = list(await (await tx.session()).scalars(statement))
    return [
        (
            row.subject,
            services.keyring.open(
                row.body or b"", mail.seal_context(row.tenant_id, row.id)
            ).decode(),
        )
        for row in rows
    ]


async def _links(services: Services, email: str, page: str = "reset-password") -> list[str]:
    """The tokens of the links to a page that were mailed to this address, the oldest first."""
    texts = "\n".join(text for _, text in await _mails(services, email))
    return re.findall(rf"/{page}\?token=([\w-]+)", texts)


async def _events(services: Services, kind: str, user_id: str) -> list[dict[str, Any]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch(
            "SELECT data::text FROM event_log "
            "WHERE type = $1 AND data ->> 'user_id' = $2 ORDER BY id",
            f"system.user.{kind}",
            user_id,
        )
    return [msgspec.json.decode(row["data"]) for row in rows]


async def _with_mfa(user: Client) -> list[str]:
    """Turns MFA on for this user; the recovery codes."""
    setup = (await user.post("/api/v1/mfa/setup")).json()
    code = pyotp.TOTP(setup["secret"]).at(clock.now())
    answer = await user.post("/api/v1/mfa/enable", {"code": code})
    assert answer.status_code == 200, answer.text
    codes: list[str] = setup["recovery_codes"]
    return codes


async def _mfa_token(caller: Client, email: str, password: str = PASSWORD) -> str:
    body = {"email": email, "password": password}
    token: str = (await caller.post("/auth/login", body)).json()["mfa_token"]
    return token


async def _set(services: Services, user: Client, **values: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(User, user.user_id)
        for name, value in values.items():
            setattr(row, name, value)


# Change


async def _change(
    caller: Client, current: object = PASSWORD, new: object = NEW, **more: Any
) -> httpx.Response:
    body = {"current_password": current, "new_password": new}
    return await caller.post("/auth/change-password", body, **more)


async def test_changing_a_password_answers_with_a_message(developer: Client) -> None:
    answer = await _change(developer)
    assert (answer.status_code, set(answer.json())) == (200, {"message"})


async def test_after_a_change_only_the_new_password_signs_in(
    developer: Client, anonymous: Client
) -> None:
    await _change(developer)
    statuses = [await _status(anonymous, developer.email, word) for word in (NEW, PASSWORD)]
    assert statuses == [200, 401]


async def test_a_change_ends_the_other_sessions_at_once(world: World, developer: Client) -> None:
    others = [await _session(world, developer.email) for _ in range(2)]
    await _change(developer)
    assert [(await other.get("/auth/me")).status_code for other in others] == [401, 401]


async def test_a_change_ends_the_other_sessions_when_redis_has_forgotten_them(
    world: World, developer: Client, services: Services
) -> None:
    other = await _session(world, developer.email)
    await _change(developer)
    await services.redis.flushall()
    assert (await other.get("/auth/me")).status_code == 401


async def test_the_other_sessions_cannot_be_carried_on_after_a_change(
    world: World, developer: Client
) -> None:
    other = await _session(world, developer.email)
    await _change(developer)
    assert await _refresh(other) == 401


async def test_the_session_that_changes_the_password_lives_on(developer: Client) -> None:
    await _change(developer)
    assert (await developer.get("/auth/me")).status_code == 200


async def test_the_session_that_changes_the_password_can_be_carried_on(developer: Client) -> None:
    await _change(developer)
    assert await _refresh(developer) == 200


async def test_a_change_leaves_the_sessions_of_others_alone(
    world: World, developer: Client
) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    await _change(developer)
    assert (await colleague.get("/auth/me")).status_code == 200


async def test_a_password_is_not_changed_without_a_login(anonymous: Client) -> None:
    assert (await _change(anonymous)).status_code == 401


async def test_a_wrong_current_password_is_named(developer: Client) -> None:
    answer = await _change(developer, WRONG)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {"current_password"}


async def test_a_wrong_current_password_changes_nothing(
    world: World, developer: Client, anonymous: Client
) -> None:
    other = await _session(world, developer.email)
    await _change(developer, WRONG)
    assert (await other.get("/auth/me")).status_code == 200
    assert await _status(anonymous, developer.email, PASSWORD) == 200


async def test_five_wrong_current_passwords_and_one_must_wait(developer: Client) -> None:
    answers = [await _change(developer, WRONG) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [422] * 5 + [429]
    error = answers[-1].json()["error"]
    assert error["code"] == "rate_limited"
    assert 0 < error["details"]["retry_after"] <= 15
    assert answers[-1].headers["retry-after"] == str(error["details"]["retry_after"])


async def test_the_right_password_does_not_help_who_must_wait(
    developer: Client, anonymous: Client
) -> None:
    for _ in range(5):
        await _change(developer, WRONG)
    assert (await _change(developer)).status_code == 429
    assert await _status(anonymous, developer.email, PASSWORD) == 200


async def test_after_the_wait_the_right_password_is_taken(developer: Client) -> None:
    with clock.frozen(clock.now() - timedelta(seconds=15)):
        for _ in range(5):
            await _change(developer, WRONG)
    assert (await _change(developer)).status_code == 200


async def test_another_session_must_wait_for_the_guesses_of_the_first(
    world: World, developer: Client
) -> None:
    other = await _session(world, developer.email)
    for _ in range(5):
        await _change(developer, WRONG)
    assert (await _change(other)).status_code == 429


async def test_of_twenty_guesses_at_once_five_are_judged(developer: Client) -> None:
    answers = await asyncio.gather(*(_change(developer, WRONG) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [422] * 5 + [429] * 15


@pytest.mark.parametrize("new", [NEW, None])
async def test_a_right_guess_after_many_wrong_ones_at_once_learns_nothing(
    developer: Client, new: str | None
) -> None:
    """Nor does it by asking for the very password that it guesses, which is refused otherwise."""
    guesses = [*(f"Wrong{number}Horse" for number in range(30)), PASSWORD]
    answers = await asyncio.gather(*(_change(developer, word, new or word) for word in guesses))
    assert answers[-1].status_code == 429


async def test_guesses_at_the_current_password_do_not_keep_one_from_signing_in(
    developer: Client, anonymous: Client
) -> None:
    for _ in range(6):
        await _change(developer, WRONG)
    assert await _status(anonymous, developer.email, PASSWORD) == 200


async def test_a_right_password_clears_the_wrong_ones(developer: Client) -> None:
    for _ in range(4):
        await _change(developer, WRONG)
    await _change(developer)
    statuses = [(await _change(developer, WRONG)).status_code for _ in range(5)]
    assert statuses == [422] * 5


async def test_the_new_password_must_differ_from_the_current_one(developer: Client) -> None:
    answer = await _change(developer, PASSWORD, PASSWORD)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"new_password"}


async def test_a_password_written_with_other_keys_is_the_same(developer: Client) -> None:
    composed, apart = "Caf\u00e9Noir7", "Cafe\u0301Noir7"
    await _change(developer, PASSWORD, composed)
    answer = await _change(developer, composed, apart)
    assert set(answer.json()["error"]["details"]) == {"new_password"}


@pytest.mark.parametrize("new", [*WEAK, *COMMON])
async def test_a_weak_new_password_is_named(developer: Client, new: str) -> None:
    answer = await _change(developer, PASSWORD, new)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"new_password"}


async def test_a_weak_new_password_changes_nothing(
    world: World, developer: Client, anonymous: Client
) -> None:
    other = await _session(world, developer.email)
    await _change(developer, PASSWORD, "weak")
    assert (await other.get("/auth/me")).status_code == 200
    assert await _status(anonymous, developer.email, PASSWORD) == 200


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"current_password", "new_password"}),
        ({"current_password": PASSWORD}, {"new_password"}),
        ({"new_password": NEW}, {"current_password"}),
        (
            {"current_password": None, "new_password": 5},
            {"current_password", "new_password"},
        ),
        ({"current_password": "x" * 1025, "new_password": NEW}, {"current_password"}),
        ({"current_password": PASSWORD, "new_password": "x" * 1025}, {"new_password"}),
    ],
)
async def test_a_wrong_field_of_a_change_is_named(
    developer: Client, body: dict[str, Any], fields: set[str]
) -> None:
    answer = await developer.post("/auth/change-password", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == fields


async def test_nobody_changes_anothers_password(developer: Client, admin: Client) -> None:
    body = {
        "current_password": PASSWORD,
        "new_password": NEW,
        "user_id": developer.user_id,
        "id": developer.user_id,
        "email": developer.email,
    }
    await admin.post("/auth/change-password", body)
    assert await _status(developer, developer.email, PASSWORD) == 200


async def test_acting_in_another_tenant_super_admin_still_changes_its_own_password(
    super_admin: Client, admin: Client, anonymous: Client
) -> None:
    answer = await _change(super_admin, headers={"x-tenant-id": admin.tenant_id})
    assert answer.status_code == 200
    assert await _status(anonymous, super_admin.email, NEW) == 200


async def test_of_changes_at_once_one_is_made(developer: Client, anonymous: Client) -> None:
    new_passwords = [f"Battery{number}Staple" for number in range(5)]
    answers = await asyncio.gather(*(_change(developer, PASSWORD, new) for new in new_passwords))
    accepted = [
        new for new, answer in zip(new_passwords, answers, strict=True) if answer.status_code == 200
    ]
    works = [new for new in new_passwords if await _status(anonymous, developer.email, new) == 200]
    assert len(accepted) == 1
    assert works == accepted


async def test_a_change_voids_a_mailed_link(
    developer: Client, anonymous: Client, services: Services
) -> None:
    await _forgot(anonymous, developer.email)
    (token,) = await _links(services, developer.email)
    await _change(developer)
    answer = await _reset(anonymous, token, "Another3Word")
    assert answer.status_code == 422
    assert await _status(anonymous, developer.email, NEW) == 200


async def test_a_change_voids_a_sign_in_that_waits_for_its_code(
    developer: Client, anonymous: Client
) -> None:
    codes = await _with_mfa(developer)
    old = await _mfa_token(anonymous, developer.email)
    await _change(developer)
    new = await _mfa_token(anonymous, developer.email, NEW)
    statuses = [
        (
            await anonymous.post("/auth/mfa/verify", {"mfa_token": token, "code": codes[0]})
        ).status_code
        for token in (old, new)
    ]
    assert statuses == [401, 200]


async def test_mfa_stays_on_after_a_change(developer: Client, anonymous: Client) -> None:
    await _with_mfa(developer)
    await _change(developer)
    body = {"email": developer.email, "password": NEW}
    assert (await anonymous.post("/auth/login", body)).json()["mfa_required"] is True


async def test_a_change_is_told_in_the_log(developer: Client, services: Services) -> None:
    await _change(developer)
    assert await _events(services, "password_changed", developer.user_id) == [
        {"user_id": developer.user_id, "by": "change"}
    ]


async def test_the_guess_that_starts_a_wait_is_told_in_the_log(
    developer: Client, services: Services
) -> None:
    for _ in range(6):
        await _change(developer, WRONG)
    assert await _events(services, "sign_in_blocked", developer.user_id) == [
        {
            "user_id": developer.user_id,
            "ip_address": developer.address,
            "reason": "password",
        }
    ]


async def test_a_refused_change_is_not_told_as_a_change(
    developer: Client, services: Services
) -> None:
    await _change(developer, WRONG)
    assert await _events(services, "password_changed", developer.user_id) == []


async def test_the_owner_gets_a_notice_of_a_change(developer: Client, services: Services) -> None:
    await _change(developer)
    ((subject, text),) = await _mails(services, developer.email)
    assert subject == "Your account changed"
    assert "password" in text


@pytest.mark.parametrize("current", [PASSWORD, WRONG])
async def test_a_change_tells_no_password_in_its_answer(developer: Client, current: str) -> None:
    answer = await _change(developer, current)
    assert not [word for word in (PASSWORD, NEW, WRONG) if word in answer.text]


async def test_a_change_tells_no_password_in_mails_and_events(
    developer: Client, services: Services
) -> None:
    await _change(developer)
    events = str(await _events(services, "password_changed", developer.user_id))
    text = events + str(await _mails(services, developer.email))
    assert not [word for word in (PASSWORD, NEW) if word in text]


# Forgot


async def _forgot(caller: Client, email: object) -> httpx.Response:
    return await caller.post("/auth/forgot-password", {"email": email})


@pytest.mark.parametrize(
    "email", ["nobody@example.com", "nobody", "", " ", "@", "a b@c", "x" * 254, "'; --", "%"]
)
async def test_the_answer_is_the_same_for_every_address(
    anonymous: Client, developer: Client, email: str
) -> None:
    registered = await _forgot(anonymous, developer.email)
    other = await _forgot(anonymous, email)
    assert (registered.status_code, set(registered.json())) == (200, {"message"})
    assert (other.status_code, other.content) == (registered.status_code, registered.content)
    assert other.headers.keys() == registered.headers.keys()


async def test_the_answer_is_the_same_for_an_inactive_user(
    anonymous: Client, developer: Client, services: Services
) -> None:
    registered = await _forgot(anonymous, developer.email)
    await _set(services, developer, status="inactive")
    inactive = await _forgot(anonymous, developer.email)
    assert (inactive.status_code, inactive.content) == (registered.status_code, registered.content)


@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
async def test_who_is_known_gets_a_mail_with_a_link(
    anonymous: Client, developer: Client, services: Services, change: Any
) -> None:
    await _forgot(anonymous, change(developer.email))
    ((_, text),) = await _mails(services, developer.email)
    link = rf"^{re.escape(services.settings.public_url)}/reset-password\?token=[\w-]{{43}}$"
    assert re.search(link, text, re.MULTILINE)


async def test_an_unknown_address_gets_no_mail(anonymous: Client, services: Services) -> None:
    await _forgot(anonymous, "unknown.to.all@example.com")
    assert await _mails(services, "unknown.to.all@example.com") == []


async def test_an_inactive_user_gets_no_mail(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _set(services, developer, status="inactive")
    await _forgot(anonymous, developer.email)
    assert await _mails(services, developer.email) == []


async def test_part_of_an_address_gets_no_mail(
    anonymous: Client, developer: Client, services: Services
) -> None:
    for pattern in ("%", developer.email.replace("user", "%"), developer.email[:-1] + "_"):
        await _forgot(anonymous, pattern)
    assert await _mails(services, developer.email) == []


async def test_asking_for_a_mail_changes_nothing(anonymous: Client, developer: Client) -> None:
    await _forgot(anonymous, developer.email)
    assert (await developer.get("/auth/me")).status_code == 200
    assert await _status(anonymous, developer.email, PASSWORD) == 200


async def test_a_mail_that_was_asked_for_is_told_in_the_log(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _forgot(anonymous, developer.email)
    assert await _events(services, "password_reset_requested", developer.user_id) == [
        {"user_id": developer.user_id}
    ]


async def test_at_most_five_mails_go_to_an_address(
    world: World, developer: Client, services: Services
) -> None:
    """Whoever asks, and however they write it."""
    for change in (str.lower, str.upper, str.title) * 3:
        await _forgot(world.anonymous(), change(developer.email))
    assert len(await _mails(services, developer.email)) == 5


async def test_of_twenty_wishes_for_a_mail_at_once_five_are_met(
    world: World, developer: Client, services: Services
) -> None:
    await asyncio.gather(*(_forgot(world.anonymous(), developer.email) for _ in range(20)))
    assert len(await _mails(services, developer.email)) == 5


async def test_nobody_learns_that_no_more_mails_are_sent(
    anonymous: Client, developer: Client
) -> None:
    answers = [await _forgot(anonymous, developer.email) for _ in range(7)]
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (200, answers[0].content)
    }


async def test_after_fifteen_minutes_a_mail_is_sent_again(
    anonymous: Client, developer: Client, services: Services
) -> None:
    with clock.frozen(clock.now() - timedelta(minutes=15)):
        for _ in range(6):
            await _forgot(anonymous, developer.email)
    await _forgot(anonymous, developer.email)
    assert len(await _mails(services, developer.email)) == 6


async def test_mails_to_one_do_not_count_for_another(
    anonymous: Client, developer: Client, admin: Client, services: Services
) -> None:
    for _ in range(6):
        await _forgot(anonymous, developer.email)
    await _forgot(anonymous, admin.email)
    assert len(await _mails(services, admin.email)) == 1


async def test_a_wish_for_a_mail_does_not_block_signing_in(
    anonymous: Client, developer: Client
) -> None:
    for _ in range(7):
        await _forgot(anonymous, developer.email)
    assert await _status(anonymous, developer.email, PASSWORD) == 200


@pytest.mark.parametrize("body", [{}, {"email": None}, {"email": 5}, {"email": "x" * 255}])
async def test_what_is_no_text_is_named(anonymous: Client, body: dict[str, Any]) -> None:
    answer = await anonymous.post("/auth/forgot-password", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"email"}


@pytest.mark.parametrize("table", ["one_time_tokens", "mail_messages", "work", "event_log"])
async def test_the_token_of_a_link_is_nowhere_in_plain(
    anonymous: Client, developer: Client, services: Services, table: str
) -> None:
    await _forgot(anonymous, developer.email)
    (token,) = await _links(services, developer.email)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = [tuple(row) for row in await (await tx.raw()).fetch(f"SELECT * FROM {table}")]
    stored = b"\n".join(
        value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row
    )
    assert stored
    assert token.encode() not in stored


# Reset


async def _reset(caller: Client, token: object, new: object = NEW) -> httpx.Response:
    return await caller.post("/auth/reset-password", {"token": token, "new_password": new})


async def _link(services: Services, user: Client) -> str:
    """The token of a link that is mailed to this user now."""
    await _forgot(user, user.email)
    return (await _links(services, user.email))[-1]


async def test_a_reset_answers_with_a_message(
    anonymous: Client, developer: Client, services: Services
) -> None:
    answer = await _reset(anonymous, await _link(services, developer))
    assert (answer.status_code, set(answer.json())) == (200, {"message"})


async def test_after_a_reset_only_the_new_password_signs_in(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _reset(anonymous, await _link(services, developer))
    statuses = [await _status(anonymous, developer.email, word) for word in (NEW, PASSWORD)]
    assert statuses == [200, 401]


async def test_a_link_works_once(anonymous: Client, developer: Client, services: Services) -> None:
    token = await _link(services, developer)
    statuses = [(await _reset(anonymous, token, new)).status_code for new in (NEW, "Another3Word")]
    assert statuses == [200, 422]
    assert await _status(anonymous, developer.email, NEW) == 200


async def test_of_twenty_uses_of_a_link_at_once_one_succeeds(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _link(services, developer)
    new_passwords = [f"Battery{number}Staple" for number in range(20)]
    answers = await asyncio.gather(
        *(_reset(world.anonymous(), token, new) for new in new_passwords)
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 19
    won = new_passwords[[answer.status_code for answer in answers].index(200)]
    assert await _status(anonymous, developer.email, won) == 200


async def test_of_two_links_the_second_is_void_once_the_first_is_used(
    anonymous: Client, developer: Client, services: Services
) -> None:
    first, second = await _link(services, developer), await _link(services, developer)
    statuses = [
        (await _reset(anonymous, token, new)).status_code
        for token, new in ((first, NEW), (second, "Another3Word"))
    ]
    assert statuses == [200, 422]


async def test_a_second_link_does_not_void_the_first(
    anonymous: Client, developer: Client, services: Services
) -> None:
    """Whoever asks for mails in somebody's name must not keep them from using one."""
    first, _ = await _link(services, developer), await _link(services, developer)
    assert (await _reset(anonymous, first)).status_code == 200


async def test_a_reset_ends_all_sessions_at_once(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    other = await _session(world, developer.email)
    await _reset(anonymous, await _link(services, developer))
    statuses = [(await client.get("/auth/me")).status_code for client in (developer, other)]
    assert statuses == [401, 401]


async def test_no_session_can_be_carried_on_after_a_reset(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _reset(anonymous, await _link(services, developer))
    assert await _refresh(developer) == 401


async def test_a_session_does_not_outlive_the_reset_that_it_sent(
    developer: Client, services: Services
) -> None:
    await _reset(developer, await _link(services, developer))
    assert (await developer.get("/auth/me")).status_code == 401


async def test_somebody_elses_session_does_not_stand_in_the_way_of_a_reset(
    developer: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    await _reset(admin, await _link(services, developer))
    assert (await admin.get("/auth/me")).status_code == 200
    assert await _status(anonymous, developer.email, NEW) == 200


async def test_a_reset_verifies_the_address(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    await _reset(anonymous, await _link(services, developer))
    me = (await (await _session(world, developer.email, NEW)).get("/auth/me")).json()
    assert me["email_verified"] is True


@pytest.mark.parametrize(("verified", "event_count"), [(False, 1), (True, 0)])
async def test_the_verification_by_a_reset_is_told_where_it_is_new(
    anonymous: Client, developer: Client, services: Services, *, verified: bool, event_count: int
) -> None:
    await _set(services, developer, email_verified=verified)
    await _reset(anonymous, await _link(services, developer))
    assert len(await _events(services, "email_verified", developer.user_id)) == event_count


async def test_a_reset_clears_the_wait_of_the_sign_in(
    anonymous: Client, developer: Client, services: Services
) -> None:
    for _ in range(5):
        await _status(anonymous, developer.email, WRONG)
    before = await _status(anonymous, developer.email, PASSWORD)
    await _reset(anonymous, await _link(services, developer))
    assert (before, await _status(anonymous, developer.email, NEW)) == (429, 200)


async def test_a_reset_clears_the_wait_of_a_change(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    for _ in range(5):
        await _change(developer, WRONG)
    await _reset(anonymous, await _link(services, developer))
    back = await _session(world, developer.email, NEW)
    assert (await _change(back, NEW, "Another3Word")).status_code == 200


@pytest.mark.parametrize("new", [*WEAK, *COMMON])
async def test_a_weak_password_of_a_reset_is_named(
    anonymous: Client, developer: Client, services: Services, new: str
) -> None:
    answer = await _reset(anonymous, await _link(services, developer), new)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"new_password"}


async def test_a_weak_password_does_not_use_up_the_link(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _link(services, developer)
    await _reset(anonymous, token, "weak")
    assert (await _reset(anonymous, token)).status_code == 200


async def test_a_link_ends_after_an_hour(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _link(services, developer)
    with clock.frozen(clock.now() + timedelta(hours=1)):
        answer = await _reset(anonymous, token)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token"}
    assert await _status(anonymous, developer.email, PASSWORD) == 200


async def test_a_link_holds_for_nearly_an_hour(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _link(services, developer)
    with clock.frozen(clock.now() + timedelta(minutes=59)):
        answer = await _reset(anonymous, token)
    assert answer.status_code == 200


@pytest.mark.parametrize("token", ["unknown", "", " ", None, 5, [], "x" * 4096, "x" * 4097])
async def test_what_is_no_token_resets_nothing(anonymous: Client, token: object) -> None:
    answer = await _reset(anonymous, token)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token"}


async def test_missing_fields_of_a_reset_are_all_named(anonymous: Client) -> None:
    answer = await anonymous.post("/auth/reset-password", {})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token", "new_password"}


async def test_the_token_to_verify_an_address_resets_nothing(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await developer.post("/auth/verify-email/resend")
    (token,) = await _links(services, developer.email, "verify-email")
    answer = await _reset(anonymous, token)
    assert answer.status_code == 422
    assert await _status(anonymous, developer.email, PASSWORD) == 200


async def test_a_wrong_try_to_reset_does_not_use_up_the_token_of_another_purpose(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await developer.post("/auth/verify-email/resend")
    (token,) = await _links(services, developer.email, "verify-email")
    await _reset(anonymous, token)
    assert (await anonymous.post("/auth/verify-email", {"token": token})).status_code == 200


async def test_a_sign_in_that_waits_for_its_code_resets_nothing(
    anonymous: Client, developer: Client
) -> None:
    await _with_mfa(developer)
    answer = await _reset(anonymous, await _mfa_token(anonymous, developer.email))
    assert answer.status_code == 422


async def test_an_inactive_user_resets_nothing(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _link(services, developer)
    await _set(services, developer, status="inactive")
    answer = await _reset(anonymous, token)
    await _set(services, developer, status="active")
    assert answer.status_code == 422
    assert await _status(anonymous, developer.email, PASSWORD) == 200


async def test_a_deactivated_users_link_stays_void_when_they_come_back(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    admin = await world.user("tenant_admin", developer.tenant_id)
    token = await _link(services, developer)
    await admin.post(f"/users/{developer.user_id}/deactivate")
    await admin.post(f"/users/{developer.user_id}/reactivate")
    assert (await _reset(anonymous, token)).status_code == 422


async def test_mfa_stays_on_after_a_reset(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _with_mfa(developer)
    await _reset(anonymous, await _link(services, developer))
    body = {"email": developer.email, "password": NEW}
    assert (await anonymous.post("/auth/login", body)).json()["mfa_required"] is True


async def test_a_reset_voids_a_sign_in_that_waits_for_its_code(
    anonymous: Client, developer: Client, services: Services
) -> None:
    codes = await _with_mfa(developer)
    old = await _mfa_token(anonymous, developer.email)
    await _reset(anonymous, await _link(services, developer))
    new = await _mfa_token(anonymous, developer.email, NEW)
    statuses = [
        (
            await anonymous.post("/auth/mfa/verify", {"mfa_token": token, "code": codes[0]})
        ).status_code
        for token in (old, new)
    ]
    assert statuses == [401, 200]


async def test_a_reset_is_told_in_the_log(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _reset(anonymous, await _link(services, developer))
    assert await _events(services, "password_changed", developer.user_id) == [
        {"user_id": developer.user_id, "by": "mail"}
    ]


async def test_the_owner_gets_a_notice_of_a_reset(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _reset(anonymous, await _link(services, developer))
    subjects = [subject for subject, _ in await _mails(services, developer.email)]
    assert subjects == ["Reset your password", "Your account changed"]


async def test_a_reset_tells_no_password_in_mails_and_events(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _reset(anonymous, await _link(services, developer))
    events = str(await _events(services, "password_changed", developer.user_id))
    assert NEW not in events + str(await _mails(services, developer.email))


# The logs


async def test_a_web_process_writes_no_password_and_no_token_to_its_log(
    stores: Stores, developer: Client, services: Services, capfd: pytest.CaptureFixture[str]
) -> None:
    server = Server(msgspec.structs.replace(stores.settings, log_level="debug"))
    try:
        server.wait()
        async with httpx.AsyncClient(base_url=server.url) as web:
            token = await _use_every_way(web, developer, services)
    finally:
        server.close()
    log = "".join(capfd.readouterr())
    assert "/auth/change-password" in log
    assert "/auth/reset-password" in log
    assert not [word for word in (PASSWORD, NEW, WRONG, token, UNKNOWN) if word in log]


async def _use_every_way(web: httpx.AsyncClient, user: Client, services: Services) -> str:
    """Changes and resets, refused and made; the token of the link that was used."""
    headers = {"authorization": f"Bearer {user.token}"}
    for current in (WRONG, PASSWORD):
        body = {"current_password": current, "new_password": NEW}
        await web.post("/auth/change-password", json=body, headers=headers)
    await web.post("/auth/forgot-password", json={"email": user.email})
    (token,) = await _links(services, user.email)
    for reset_token in (UNKNOWN, token):
        await web.post("/auth/reset-password", json={"token": reset_token, "new_password": NEW})
    return token
