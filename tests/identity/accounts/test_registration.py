"""Registration without an invitation."""

import asyncio
import re
from typing import Any

import pytest

from app import bootstrap
from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.identity.accounts.api_calls import (
    get_login_status,
    log_in,
    register,
    registration_body,
    sign_in_client,
)
from tests.identity.accounts.records import (
    contains_secret,
    fetch_rows,
    fetch_value,
    find_user_by_email,
    read_events,
    read_mail_texts,
    read_mailed_tokens,
)
from tests.identity.accounts.values import INVALID_EMAILS, REGISTERED_KEYS
from tests.world import PASSWORD, Client, World


async def _find_default_tenant(services: Services) -> str:
    async with services.db.tx(ALL_TENANTS) as tx:
        return await bootstrap.ensure_default_tenant(tx, "enterprise")


# Register


async def test_a_registration_returns_the_new_account(anonymous: Client) -> None:
    body = registration_body()
    answer = await anonymous.post("/auth/register", body)
    account = answer.json()
    assert answer.status_code == 201
    assert set(account) == REGISTERED_KEYS
    assert account["id"].startswith("usr_")
    assert (account["email"], account["first_name"], account["last_name"]) == (
        body["email"],
        "Ada",
        "Lovelace",
    )
    assert (account["role"], account["email_verified"]) == ("agent_user", False)


async def test_a_new_user_can_sign_in_at_once(anonymous: Client) -> None:
    account = await register(anonymous)
    answer = await log_in(anonymous, account["email"])
    assert answer.status_code == 200
    assert answer.json()["user"] == {
        "id": account["id"],
        "email": account["email"],
        "role": "agent_user",
    }


async def test_a_user_without_an_invitation_joins_the_default_tenant(
    world: World, anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    me = await (await sign_in_client(world, account["email"])).get("/auth/me")
    assert me.json()["tenant_id"] == await _find_default_tenant(services)


async def test_a_registration_opens_no_session(anonymous: Client, services: Services) -> None:
    account = await register(anonymous)
    sql = "SELECT count(*) FROM sessions WHERE user_id = $1"
    assert await fetch_value(services, sql, account["id"]) == 0


async def test_names_are_stored_without_surrounding_spaces(anonymous: Client) -> None:
    account = await register(anonymous, first_name=" Ada ", last_name="  King Noel ")
    assert (account["first_name"], account["last_name"]) == ("Ada", "King Noel")


async def test_the_password_is_stored_as_an_argon2id_hash(
    anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    user = await find_user_by_email(services, account["email"])
    assert user is not None
    assert user.password_hash.startswith("$argon2id$")


_CASES: list[tuple[str, object]] = [
    ("role", "super_admin"),
    ("tenant_id", "ten_other"),
    ("email_verified", True),
    ("id", "usr_mine"),
    ("status", "inactive"),
    ("mfa_enabled", True),
    ("password_hash", "$argon2id$v=19$mine"),
    ("timezone", "Europe/London"),
    ("avatar_key", "mine"),
    ("last_login_at", "2000-01-01T00:00:00Z"),
]


async def test_no_other_field_of_a_registration_has_any_effect(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    """What the answer shows is ignored, anything else is refused."""
    for field, value in _CASES:
        with subtests.test(field=field, value=value):
            body = {**registration_body(), field: value}
            await world.anonymous().post("/auth/register", body)
            user = await find_user_by_email(services, body["email"])
            assert user is None or getattr(user, field) != value


async def test_the_tenant_header_of_a_registration_does_not_select_the_tenant(
    anonymous: Client, admin: Client, services: Services
) -> None:
    body = registration_body()
    await anonymous.post("/auth/register", body, headers={"x-tenant-id": admin.tenant_id})
    user = await find_user_by_email(services, body["email"])
    assert user is not None
    assert user.tenant_id == await _find_default_tenant(services)


async def test_a_signed_in_user_can_register_another_account(
    developer: Client, services: Services
) -> None:
    account = await register(developer)
    user = await find_user_by_email(services, account["email"])
    assert user is not None
    assert user.tenant_id == await _find_default_tenant(services)


async def test_an_email_can_register_once_in_any_case(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [str.lower, str.upper, str.title]
    for change in cases:
        anonymous = world.anonymous()
        with subtests.test(change=change):
            account = await register(anonymous)
            answer = await anonymous.post(
                "/auth/register", registration_body(email=change(account["email"]))
            )
            assert answer.status_code == 409
            assert answer.json()["error"]["code"] == "conflict"


async def test_a_second_registration_does_not_change_the_password(anonymous: Client) -> None:
    account = await register(anonymous)
    await anonymous.post(
        "/auth/register", registration_body(email=account["email"], password="Another7Horse")
    )
    statuses = [
        await get_login_status(anonymous, account["email"], password)
        for password in (PASSWORD, "Another7Horse")
    ]
    assert statuses == [200, 401]


async def test_of_twenty_registrations_of_one_email_at_once_one_succeeds(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, ...]] = [(str.lower,), (str.lower, str.upper)]
    for spellings in cases:
        with subtests.test(spellings=spellings):
            email = f"{new_id('crowd')}@example.com"
            answers = await asyncio.gather(
                *(
                    world.anonymous().post(
                        "/auth/register",
                        registration_body(email=spellings[number % len(spellings)](email)),
                    )
                    for number in range(20)
                )
            )
            assert sorted(answer.status_code for answer in answers) == [201] + [409] * 19


async def test_of_twenty_registrations_of_one_email_at_once_one_sends_a_mail(
    world: World, services: Services
) -> None:
    body = registration_body()
    await asyncio.gather(*(world.anonymous().post("/auth/register", body) for _ in range(20)))
    assert len(await read_mail_texts(services, body["email"])) == 1


async def test_all_missing_fields_of_a_registration_are_reported(anonymous: Client) -> None:
    answer = await anonymous.post("/auth/register", {})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert answer.json()["error"]["details"] == dict.fromkeys(
        ("email", "password", "first_name", "last_name"), "is required"
    )


async def test_all_invalid_fields_of_a_registration_are_reported(anonymous: Client) -> None:
    body: dict[str, Any] = {"email": 5, "password": None, "first_name": " ", "last_name": []}
    answer = await anonymous.post("/auth/register", body)
    assert set(answer.json()["error"]["details"]) == set(body)


async def test_an_invalid_email_and_a_weak_password_are_both_reported(anonymous: Client) -> None:
    answer = await anonymous.post(
        "/auth/register", registration_body(email="nobody", password="weak")
    )
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"email", "password"}


async def test_an_invalid_email_does_not_register(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    for email in INVALID_EMAILS:
        with subtests.test(email=email):
            answer = await anonymous.post("/auth/register", registration_body(email=email))
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"email"}


_INVALID_VALUES: list[object] = [
    "",
    " ",
    "\t\n",
    "Ada\nBcc: x",
    "Ada\x1b[31m",
    "x" * 101,
    None,
    5,
    ["Ada"],
]


async def test_an_invalid_name_does_not_register(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    for field in ("first_name", "last_name"):
        for value in _INVALID_VALUES:
            with subtests.test(field=field, value=value):
                answer = await anonymous.post("/auth/register", registration_body(**{field: value}))
                assert answer.status_code == 422
                assert set(answer.json()["error"]["details"]) == {field}


async def test_a_name_may_have_a_hundred_characters_of_any_script(anonymous: Client) -> None:
    account = await register(anonymous, first_name="名" * 100, last_name="O'Brien-Ünal")
    assert (account["first_name"], account["last_name"]) == ("名" * 100, "O'Brien-Ünal")


async def test_a_refused_registration_stores_neither_user_nor_mail(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [{"password": "weak"}, {"first_name": ""}]
    for changes in cases:
        anonymous = world.anonymous()
        with subtests.test(changes=changes):
            body = registration_body(**changes)
            await anonymous.post("/auth/register", body)
            stored = (
                await find_user_by_email(services, body["email"]),
                await read_mail_texts(services, body["email"]),
            )
            assert stored == (None, [])


async def test_a_registration_repeated_with_one_key_returns_the_first_answer(
    anonymous: Client,
) -> None:
    body, headers = registration_body(), {"idempotency-key": new_id("key")}
    answers = [await anonymous.post("/auth/register", body, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].content == answers[1].content


async def test_a_registration_repeated_with_one_key_sends_one_mail(
    anonymous: Client, services: Services
) -> None:
    body, headers = registration_body(), {"idempotency-key": new_id("key")}
    for _ in range(2):
        await anonymous.post("/auth/register", body, headers=headers)
    assert len(await read_mail_texts(services, body["email"])) == 1


async def test_a_key_cannot_be_used_for_another_registration(anonymous: Client) -> None:
    headers = {"idempotency-key": new_id("key")}
    await anonymous.post("/auth/register", registration_body(), headers=headers)
    answer = await anonymous.post("/auth/register", registration_body(), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "idempotency_mismatch"


async def test_a_failed_registration_does_not_use_up_its_key(anonymous: Client) -> None:
    body, headers = registration_body(), {"idempotency-key": new_id("key")}
    weak = {**body, "password": "weak"}
    await anonymous.post("/auth/register", weak, headers=headers)
    answer = await anonymous.post("/auth/register", body, headers=headers)
    assert answer.status_code == 201


# Stored data of a registration


async def test_the_new_user_gets_a_mail_with_a_verification_link(
    anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    (text,) = await read_mail_texts(services, account["email"])
    link = rf"^{re.escape(services.settings.public_url)}/verify-email\?token=[\w-]{{43}}$"
    assert re.search(link, text, re.MULTILINE)


async def test_the_work_of_mailing_is_caused_by_the_registration(
    anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    sql = (
        "SELECT w.kind, w.state, e.type FROM work w "
        "JOIN mail_messages m ON m.id = w.ref_id JOIN event_log e ON e.id = w.cause_event_id "
        "WHERE m.recipient = $1"
    )
    assert await fetch_rows(services, sql, account["email"]) == [
        ("mail.send", "pending", "system.user.registered")
    ]


async def test_neither_token_nor_password_is_stored_in_plain_text(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "users",
        "one_time_tokens",
        "mail_messages",
        "work",
        "event_log",
        "idempotency_keys",
    ]
    for table in cases:
        anonymous = world.anonymous()
        with subtests.test(table=table):
            body, headers = (
                registration_body(password="Unheard7Of"),
                {"idempotency-key": new_id("key")},
            )
            await anonymous.post("/auth/register", body, headers=headers)
            (token,) = await read_mailed_tokens(services, body["email"], "verify-email")
            rows = await fetch_rows(services, f"SELECT * FROM {table}")
            assert rows
            assert not [
                row
                for row in rows
                if contains_secret(row, token) or contains_secret(row, "Unheard7Of")
            ]


async def test_a_registration_is_in_the_event_log_without_secrets(
    anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    assert await read_events(services, "registered", account["email"]) == [
        {
            "user_id": account["id"],
            "email": account["email"],
            "role": "agent_user",
            "invited": False,
        }
    ]


async def test_the_answer_contains_neither_password_nor_hash(anonymous: Client) -> None:
    answer = await anonymous.post("/auth/register", registration_body())
    assert PASSWORD not in answer.text
    assert "argon2" not in answer.text
