"""Registration without an invitation."""

import asyncio
import re
from typing import Any

import pytest

from app import bootstrap
from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.accounts.api_calls import log_in, register, registration_body, sign_in_client
from tests.accounts.records import (
    contains_secret,
    find_user_by_email,
    read_events,
    read_mail_texts,
    read_mailed_tokens,
)
from tests.accounts.values import REGISTERED_KEYS
from tests.world import PASSWORD, Client, World


async def _find_default_tenant(services: Services) -> str:
    async with services.db.tx(ALL_TENANTS) as tx:
        return await bootstrap.ensure_default_tenant(tx, "enterprise")


# Register


async def test_registering_answers_with_the_new_account(anonymous: Client) -> None:
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


async def test_who_registers_can_sign_in_at_once(anonymous: Client) -> None:
    account = await register(anonymous)
    answer = await log_in(anonymous, account["email"])
    assert answer.status_code == 200
    assert answer.json()["user"] == {
        "id": account["id"],
        "email": account["email"],
        "role": "agent_user",
    }


async def test_who_registers_without_an_invitation_joins_the_default_tenant(
    world: World, anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    me = await (await sign_in_client(world, account["email"])).get("/auth/me")
    assert me.json()["tenant_id"] == await _find_default_tenant(services)


async def test_registering_opens_no_session(anonymous: Client, services: Services) -> None:
    account = await register(anonymous)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        count = await raw.fetchval(
            "SELECT count(*) FROM sessions WHERE user_id = $1", account["id"]
        )
    assert count == 0


async def test_names_are_kept_without_the_space_around_them(anonymous: Client) -> None:
    account = await register(anonymous, first_name=" Ada ", last_name="  King Noel ")
    assert (account["first_name"], account["last_name"]) == ("Ada", "King Noel")


async def test_the_password_is_stored_as_an_argon2id_hash(
    anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    user = await find_user_by_email(services, account["email"])
    assert user is not None
    assert user.password_hash.startswith("$argon2id$")


@pytest.mark.parametrize(
    ("field", "value"),
    [
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
    ],
)
async def test_no_other_field_of_a_registration_has_any_effect(
    anonymous: Client, services: Services, field: str, value: object
) -> None:
    account = await register(anonymous, **{field: value})
    assert getattr(await find_user_by_email(services, account["email"]), field) != value


async def test_a_tenant_that_exists_cannot_be_joined_by_naming_it(
    anonymous: Client, admin: Client, services: Services
) -> None:
    account = await register(anonymous, tenant_id=admin.tenant_id)
    user = await find_user_by_email(services, account["email"])
    assert user is not None
    assert user.tenant_id == await _find_default_tenant(services)


async def test_the_header_for_tenants_does_not_say_where_to_join(
    anonymous: Client, admin: Client, services: Services
) -> None:
    body = registration_body()
    await anonymous.post("/auth/register", body, headers={"x-tenant-id": admin.tenant_id})
    user = await find_user_by_email(services, body["email"])
    assert user is not None
    assert user.tenant_id == await _find_default_tenant(services)


async def test_somebody_who_is_signed_in_elsewhere_can_register_another_account(
    developer: Client, services: Services
) -> None:
    account = await register(developer)
    user = await find_user_by_email(services, account["email"])
    assert user is not None
    assert user.tenant_id == await _find_default_tenant(services)


@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
async def test_an_address_registers_once_whatever_its_case(anonymous: Client, change: Any) -> None:
    account = await register(anonymous)
    answer = await anonymous.post(
        "/auth/register", registration_body(email=change(account["email"]))
    )
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"


async def test_registering_again_leaves_the_password_as_it_was(anonymous: Client) -> None:
    account = await register(anonymous)
    await anonymous.post(
        "/auth/register", registration_body(email=account["email"], password="Another7Horse")
    )
    statuses = [
        (await log_in(anonymous, account["email"], password)).status_code
        for password in (PASSWORD, "Another7Horse")
    ]
    assert statuses == [200, 401]


@pytest.mark.parametrize("spellings", [(str.lower,), (str.lower, str.upper)])
async def test_of_twenty_registrations_of_one_address_at_once_one_succeeds(
    world: World, spellings: tuple[Any, ...]
) -> None:
    email = f"{new_id('crowd')}@example.com"
    answers = await asyncio.gather(
        *(
            world.anonymous().post(
                "/auth/register", registration_body(email=spellings[number % len(spellings)](email))
            )
            for number in range(20)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 19


async def test_of_twenty_registrations_at_once_one_mails(world: World, services: Services) -> None:
    body = registration_body()
    await asyncio.gather(*(world.anonymous().post("/auth/register", body) for _ in range(20)))
    assert len(await read_mail_texts(services, body["email"])) == 1


async def test_missing_fields_of_a_registration_are_all_named(anonymous: Client) -> None:
    answer = await anonymous.post("/auth/register", {})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert answer.json()["error"]["details"] == dict.fromkeys(
        ("email", "password", "first_name", "last_name"), "is required"
    )


async def test_wrong_fields_of_a_registration_are_all_named(anonymous: Client) -> None:
    body: dict[str, Any] = {"email": 5, "password": None, "first_name": " ", "last_name": []}
    answer = await anonymous.post("/auth/register", body)
    assert set(answer.json()["error"]["details"]) == set(body)


async def test_a_wrong_address_and_a_weak_password_are_both_named(anonymous: Client) -> None:
    answer = await anonymous.post(
        "/auth/register", registration_body(email="nobody", password="weak")
    )
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"email", "password"}


@pytest.mark.parametrize(
    "email",
    [
        "",
        "nobody",
        "@example.com",
        "a@",
        "a@b@example.com",
        "a b@example.com",
        "a@exam ple.com",
        "a@example.com\n",
        "a@example.com\r\nBcc: b@example.com",
        "a@example.com, b@example.com",
        "<a@example.com>",
        "a..b@example.com",
        "x" * 65 + "@example.com",
        "a@" + "x" * 250 + ".com",
        5,
        None,
        ["a@example.com"],
    ],
)
async def test_what_is_no_email_does_not_register(anonymous: Client, email: object) -> None:
    answer = await anonymous.post("/auth/register", registration_body(email=email))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"email"}


@pytest.mark.parametrize("field", ["first_name", "last_name"])
@pytest.mark.parametrize(
    "value", ["", " ", "\t\n", "Ada\nBcc: x", "Ada\x1b[31m", "x" * 101, None, 5, ["Ada"]]
)
async def test_what_is_no_name_does_not_register(
    anonymous: Client, field: str, value: object
) -> None:
    answer = await anonymous.post("/auth/register", registration_body(**{field: value}))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}


async def test_a_name_may_have_a_hundred_characters_of_any_script(anonymous: Client) -> None:
    account = await register(anonymous, first_name="名" * 100, last_name="O'Brien-Ünal")
    assert (account["first_name"], account["last_name"]) == ("名" * 100, "O'Brien-Ünal")


@pytest.mark.parametrize("wrong", [{"password": "weak"}, {"first_name": ""}])
async def test_a_refused_registration_leaves_nothing_behind(
    anonymous: Client, services: Services, wrong: dict[str, Any]
) -> None:
    body = registration_body(**wrong)
    await anonymous.post("/auth/register", body)
    stored = (
        await find_user_by_email(services, body["email"]),
        await read_mail_texts(services, body["email"]),
    )
    assert stored == (None, [])


async def test_a_repeated_registration_with_one_key_gives_the_first_answer_again(
    anonymous: Client,
) -> None:
    body, headers = registration_body(), {"idempotency-key": new_id("key")}
    answers = [await anonymous.post("/auth/register", body, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].content == answers[1].content


async def test_a_repeated_registration_with_one_key_mails_once(
    anonymous: Client, services: Services
) -> None:
    body, headers = registration_body(), {"idempotency-key": new_id("key")}
    for _ in range(2):
        await anonymous.post("/auth/register", body, headers=headers)
    assert len(await read_mail_texts(services, body["email"])) == 1


async def test_one_key_does_not_register_somebody_else(anonymous: Client) -> None:
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


async def test_a_mail_with_a_link_to_verify_goes_to_the_new_address(
    anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    (text,) = await read_mail_texts(services, account["email"])
    link = rf"^{re.escape(services.settings.public_url)}/verify-email\?token=[\w-]{{43}}$"
    assert re.search(link, text, re.MULTILINE)


async def test_the_mail_is_accepted_work_caused_by_the_registration(
    anonymous: Client, services: Services
) -> None:
    account = await register(anonymous)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await (await tx.raw()).fetchrow(
            "SELECT w.kind, w.state, e.type FROM work w "
            "JOIN mail_messages m ON m.id = w.ref_id JOIN event_log e ON e.id = w.cause_event_id "
            "WHERE m.recipient = $1",
            account["email"],
        )
    assert tuple(row) == ("mail.send", "pending", "system.user.registered")


@pytest.mark.parametrize(
    "table",
    ["users", "one_time_tokens", "mail_messages", "work", "event_log", "idempotency_keys"],
)
async def test_neither_token_nor_password_is_anywhere_in_plain(
    anonymous: Client, services: Services, table: str
) -> None:
    body, headers = registration_body(password="Unheard7Of"), {"idempotency-key": new_id("key")}
    await anonymous.post("/auth/register", body, headers=headers)
    (token,) = await read_mailed_tokens(services, body["email"], "verify-email")
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = [tuple(row) for row in await (await tx.raw()).fetch(f"SELECT * FROM {table}")]
    assert rows
    assert not [
        row for row in rows if contains_secret(row, token) or contains_secret(row, "Unheard7Of")
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


async def test_the_answer_shows_neither_password_nor_hash(anonymous: Client) -> None:
    answer = await anonymous.post("/auth/register", registration_body())
    assert PASSWORD not in answer.text
    assert "argon2" not in answer.text
