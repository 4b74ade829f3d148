"""Coming in: registering, with an invitation or without, and verifying the e-mail address."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import msgspec
import pytest
from litestar import Litestar
from sqlalchemy import select

from app import bootstrap
from app.domain.mail import service as mail
from app.kit import clock
from app.kit.ids import new_id
from app.main import create_app
from app.services import Services
from db.models import MailMessage, User
from db.session import ALL_TENANTS
from tests.stores import Stores
from tests.world import PASSWORD, Client, World

KEYS = {"id", "email", "first_name", "last_name", "role", "email_verified", "message"}
ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
RULES = {
    "at least 8 characters",
    "at most 128 characters",
    "an uppercase letter",
    "a lowercase letter",
    "a number",
}


def _body(**fields: Any) -> dict[str, Any]:
    return {
        "email": f"{new_id('new')}@example.com",
        "password": PASSWORD,
        "first_name": "Ada",
        "last_name": "Lovelace",
        **fields,
    }


async def _register(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post("/auth/register", _body(**fields))
    assert answer.status_code == 201, answer.text
    account: dict[str, Any] = answer.json()
    return account


async def _login(caller: Client, email: str, password: str = PASSWORD) -> httpx.Response:
    return await caller.post("/auth/login", {"email": email, "password": password})


async def _signed_in(world: World, email: str) -> Client:
    answer = await _login(world.anonymous(), email)
    return Client(world.app, answer.json()["access_token"], email=email)


async def _row(services: Services, email: str) -> User | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        user: User | None = await (await tx.session()).scalar(
            select(User).where(User.email == email)
        )
    return user


async def _mails(services: Services, email: str) -> list[str]:
    """The texts of the mails to this address, the oldest first."""
    statement = select(MailMessage).where(MailMessage.recipient == email).order_by(MailMessage.id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = list(await (await tx.session()).scalars(statement))
    return [
        services.keyring.open(row.body or b"", mail.seal_context(row.tenant_id, row.id)).decode()
        for row in rows
    ]


async def _tokens(services: Services, email: str, page: str) -> list[str]:
    """The tokens in the links to one page that were mailed to this address, the oldest first."""
    return re.findall(rf"/{page}\?token=([\w-]+)", "\n".join(await _mails(services, email)))


async def _events(services: Services, kind: str, email_or_id: str) -> list[dict[str, Any]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch(
            "SELECT data::text FROM event_log WHERE type = $1 "
            "AND $2 IN (data ->> 'email', data ->> 'user_id') ORDER BY id",
            f"system.user.{kind}",
            email_or_id,
        )
    return [msgspec.json.decode(row["data"]) for row in rows]


async def _default_tenant(services: Services) -> str:
    async with services.db.tx(ALL_TENANTS) as tx:
        return await bootstrap.default_tenant(tx, "enterprise")


# Register


async def test_registering_answers_with_the_new_account(anonymous: Client) -> None:
    body = _body()
    answer = await anonymous.post("/auth/register", body)
    account = answer.json()
    assert answer.status_code == 201
    assert set(account) == KEYS
    assert account["id"].startswith("usr_")
    assert (account["email"], account["first_name"], account["last_name"]) == (
        body["email"],
        "Ada",
        "Lovelace",
    )
    assert (account["role"], account["email_verified"]) == ("agent_user", False)


async def test_who_registers_can_sign_in_at_once(anonymous: Client) -> None:
    account = await _register(anonymous)
    answer = await _login(anonymous, account["email"])
    assert answer.status_code == 200
    assert answer.json()["user"] == {
        "id": account["id"],
        "email": account["email"],
        "role": "agent_user",
    }


async def test_who_registers_without_an_invitation_joins_the_default_tenant(
    world: World, anonymous: Client, services: Services
) -> None:
    account = await _register(anonymous)
    me = await (await _signed_in(world, account["email"])).get("/auth/me")
    assert me.json()["tenant_id"] == await _default_tenant(services)


async def test_registering_opens_no_session(anonymous: Client, services: Services) -> None:
    account = await _register(anonymous)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        count = await raw.fetchval(
            "SELECT count(*) FROM sessions WHERE user_id = $1", account["id"]
        )
    assert count == 0


async def test_names_are_kept_without_the_space_around_them(anonymous: Client) -> None:
    account = await _register(anonymous, first_name=" Ada ", last_name="  King Noel ")
    assert (account["first_name"], account["last_name"]) == ("Ada", "King Noel")


async def test_the_password_is_stored_as_an_argon2id_hash(
    anonymous: Client, services: Services
) -> None:
    account = await _register(anonymous)
    user = await _row(services, account["email"])
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
    account = await _register(anonymous, **{field: value})
    assert getattr(await _row(services, account["email"]), field) != value


async def test_a_tenant_that_exists_cannot_be_joined_by_naming_it(
    anonymous: Client, admin: Client, services: Services
) -> None:
    account = await _register(anonymous, tenant_id=admin.tenant_id)
    user = await _row(services, account["email"])
    assert user is not None
    assert user.tenant_id == await _default_tenant(services)


async def test_the_header_for_tenants_does_not_say_where_to_join(
    anonymous: Client, admin: Client, services: Services
) -> None:
    body = _body()
    await anonymous.post("/auth/register", body, headers={"x-tenant-id": admin.tenant_id})
    user = await _row(services, body["email"])
    assert user is not None
    assert user.tenant_id == await _default_tenant(services)


async def test_somebody_who_is_signed_in_elsewhere_can_register_another_account(
    developer: Client, services: Services
) -> None:
    account = await _register(developer)
    user = await _row(services, account["email"])
    assert user is not None
    assert user.tenant_id == await _default_tenant(services)


@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
async def test_an_address_registers_once_whatever_its_case(anonymous: Client, change: Any) -> None:
    account = await _register(anonymous)
    answer = await anonymous.post("/auth/register", _body(email=change(account["email"])))
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"


async def test_registering_again_leaves_the_password_as_it_was(anonymous: Client) -> None:
    account = await _register(anonymous)
    await anonymous.post("/auth/register", _body(email=account["email"], password="Another7Horse"))
    statuses = [
        (await _login(anonymous, account["email"], password)).status_code
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
                "/auth/register", _body(email=spellings[number % len(spellings)](email))
            )
            for number in range(20)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 19


async def test_of_twenty_registrations_at_once_one_mails(world: World, services: Services) -> None:
    body = _body()
    await asyncio.gather(*(world.anonymous().post("/auth/register", body) for _ in range(20)))
    assert len(await _mails(services, body["email"])) == 1


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
    answer = await anonymous.post("/auth/register", _body(email="nobody", password="weak"))
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
    answer = await anonymous.post("/auth/register", _body(email=email))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"email"}


@pytest.mark.parametrize("field", ["first_name", "last_name"])
@pytest.mark.parametrize(
    "value", ["", " ", "\t\n", "Ada\nBcc: x", "Ada\x1b[31m", "x" * 101, None, 5, ["Ada"]]
)
async def test_what_is_no_name_does_not_register(
    anonymous: Client, field: str, value: object
) -> None:
    answer = await anonymous.post("/auth/register", _body(**{field: value}))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}


async def test_a_name_may_have_a_hundred_characters_of_any_script(anonymous: Client) -> None:
    account = await _register(anonymous, first_name="名" * 100, last_name="O'Brien-Ünal")
    assert (account["first_name"], account["last_name"]) == ("名" * 100, "O'Brien-Ünal")


@pytest.mark.parametrize("wrong", [{"password": "weak"}, {"first_name": ""}])
async def test_a_refused_registration_leaves_nothing_behind(
    anonymous: Client, services: Services, wrong: dict[str, Any]
) -> None:
    body = _body(**wrong)
    await anonymous.post("/auth/register", body)
    stored = await _row(services, body["email"]), await _mails(services, body["email"])
    assert stored == (None, [])


async def test_a_repeated_registration_with_one_key_gives_the_first_answer_again(
    anonymous: Client,
) -> None:
    body, headers = _body(), {"idempotency-key": new_id("key")}
    answers = [await anonymous.post("/auth/register", body, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].content == answers[1].content


async def test_a_repeated_registration_with_one_key_mails_once(
    anonymous: Client, services: Services
) -> None:
    body, headers = _body(), {"idempotency-key": new_id("key")}
    for _ in range(2):
        await anonymous.post("/auth/register", body, headers=headers)
    assert len(await _mails(services, body["email"])) == 1


async def test_one_key_does_not_register_somebody_else(anonymous: Client) -> None:
    headers = {"idempotency-key": new_id("key")}
    await anonymous.post("/auth/register", _body(), headers=headers)
    answer = await anonymous.post("/auth/register", _body(), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "idempotency_mismatch"


async def test_a_failed_registration_does_not_use_up_its_key(anonymous: Client) -> None:
    body, headers = _body(), {"idempotency-key": new_id("key")}
    weak = {**body, "password": "weak"}
    await anonymous.post("/auth/register", weak, headers=headers)
    answer = await anonymous.post("/auth/register", body, headers=headers)
    assert answer.status_code == 201


# What a registration leaves behind


async def test_a_mail_with_a_link_to_verify_goes_to_the_new_address(
    anonymous: Client, services: Services
) -> None:
    account = await _register(anonymous)
    (text,) = await _mails(services, account["email"])
    link = rf"^{re.escape(services.settings.public_url)}/verify-email\?token=[\w-]{{43}}$"
    assert re.search(link, text, re.MULTILINE)


async def test_the_mail_is_accepted_work_caused_by_the_registration(
    anonymous: Client, services: Services
) -> None:
    account = await _register(anonymous)
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
    body, headers = _body(password="Unheard7Of"), {"idempotency-key": new_id("key")}
    await anonymous.post("/auth/register", body, headers=headers)
    (token,) = await _tokens(services, body["email"], "verify-email")
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = [tuple(row) for row in await (await tx.raw()).fetch(f"SELECT * FROM {table}")]
    assert rows
    assert not [row for row in rows if _tells(row, token) or _tells(row, "Unheard7Of")]


def _tells(row: tuple[object, ...], secret: str) -> bool:
    as_bytes = b"\n".join(
        value if isinstance(value, bytes) else str(value).encode() for value in row
    )
    return secret.encode() in as_bytes or secret.encode().hex().encode() in as_bytes


async def test_a_registration_is_told_without_secrets(
    anonymous: Client, services: Services
) -> None:
    account = await _register(anonymous)
    assert await _events(services, "registered", account["email"]) == [
        {
            "user_id": account["id"],
            "email": account["email"],
            "role": "agent_user",
            "invited": False,
        }
    ]


async def test_the_answer_shows_neither_password_nor_hash(anonymous: Client) -> None:
    answer = await anonymous.post("/auth/register", _body())
    assert PASSWORD not in answer.text
    assert "argon2" not in answer.text


# Passwords


@pytest.mark.parametrize(
    ("password", "rules"),
    [
        ("Short7s", {"at least 8 characters"}),
        ("Aa1" + "x" * 126, {"at most 128 characters"}),
        ("lowercase7only", {"an uppercase letter"}),
        ("UPPERCASE7ONLY", {"a lowercase letter"}),
        ("NoNumberAtAll", {"a number"}),
        ("Äö7üßéà", {"at least 8 characters"}),
        ("!!!!!!!!", {"an uppercase letter", "a lowercase letter", "a number"}),
        ("12345678", {"an uppercase letter", "a lowercase letter"}),
        ("", RULES - {"at most 128 characters"}),
        ("abc", RULES - {"at most 128 characters", "a lowercase letter"}),
        ("x" * 129, {"at most 128 characters", "an uppercase letter", "a number"}),
        (
            " " * 1024,
            {"at most 128 characters", "an uppercase letter", "a lowercase letter", "a number"},
        ),
    ],
)
async def test_every_rule_that_a_password_breaks_is_named(
    anonymous: Client, password: str, rules: set[str]
) -> None:
    answer = await anonymous.post("/auth/register", _body(password=password))
    assert answer.status_code == 422
    details = answer.json()["error"]["details"]
    assert set(details) == {"password"}
    assert {rule for rule in RULES if rule in details["password"]} == rules


@pytest.mark.parametrize(
    "password",
    ["Password1", "pASSWORD1", "PassWord1", "Qwerty123", "qWERTY123", "Passw0rd", "pASSW0RD"],
)
async def test_a_common_password_is_refused_in_any_case(anonymous: Client, password: str) -> None:
    answer = await anonymous.post("/auth/register", _body(password=password))
    assert answer.status_code == 422
    assert "common" in answer.json()["error"]["details"]["password"]


@pytest.mark.parametrize("password", [5, None, [], "x" * 1025])
async def test_what_is_no_password_is_named(anonymous: Client, password: object) -> None:
    answer = await anonymous.post("/auth/register", _body(password=password))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"password"}


@pytest.mark.parametrize(
    "password",
    [
        "Eight7ch",
        "Aa1" + "x" * 125,
        "Aa1" + "é" * 125,
        "Żółć7Gęślą",
        "Pass word with 1 space",
        " Aa345678 ",
        "Aa1🐎🔋📎🐴🐎",
        "Aa1'\"\\;--%_${}<>",
    ],
)
async def test_a_password_that_keeps_the_rules_signs_in(anonymous: Client, password: str) -> None:
    account = await _register(anonymous, password=password)
    assert (await _login(anonymous, account["email"], password)).status_code == 200


@pytest.mark.parametrize("tried", ["Aa1" + "x" * 124, "Aa1" + "x" * 124 + "y"])
async def test_the_longest_password_counts_to_its_last_character(
    anonymous: Client, tried: str
) -> None:
    account = await _register(anonymous, password="Aa1" + "x" * 125)
    assert (await _login(anonymous, account["email"], tried)).status_code == 401


async def test_space_around_a_password_is_part_of_it(anonymous: Client) -> None:
    account = await _register(anonymous, password=" Aa345678 ")
    assert (await _login(anonymous, account["email"], "Aa345678")).status_code == 401


async def test_a_password_is_the_same_however_a_keyboard_writes_its_accents(
    anonymous: Client,
) -> None:
    account = await _register(anonymous, password="Caf\u00e9Noir7")
    assert (await _login(anonymous, account["email"], "Cafe\u0301Noir7")).status_code == 200


# An instance without open registration


@pytest.fixture
async def closed(stores: Stores, app: Litestar) -> AsyncIterator[Client]:
    closed_app = create_app(msgspec.structs.replace(stores.settings, allow_signup=False))
    yield Client(closed_app)
    await closed_app.state.services.close()


async def test_nobody_registers_where_registration_is_closed(
    closed: Client, services: Services
) -> None:
    body = _body()
    answer = await closed.post("/auth/register", body)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "signup_closed"
    assert await _row(services, body["email"]) is None


async def test_an_invitation_opens_a_closed_instance(closed: Client, admin: Client) -> None:
    invitation = await _invite(admin)
    answer = await closed.post("/auth/register", _with(invitation))
    assert answer.status_code == 201


@pytest.mark.parametrize("token", ["unknown", "", None])
async def test_a_wrong_invitation_does_not_open_a_closed_instance(
    closed: Client, services: Services, token: str | None
) -> None:
    body = _body(invitation_token=token)
    answer = await closed.post("/auth/register", body)
    assert answer.status_code == 422
    assert await _row(services, body["email"]) is None


# By invitation


async def _invite(inviter: Client, role: str = "viewer", **fields: Any) -> dict[str, Any]:
    body = {"email": f"{new_id('guest')}@example.com", "role": role, **fields}
    answer = await inviter.post("/users/invite", body)
    assert answer.status_code == 201, answer.text
    invitation: dict[str, Any] = answer.json()
    return invitation


def _with(invitation: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The registration of who was invited."""
    required = {"email": invitation["email"], "invitation_token": invitation["invitation_token"]}
    return _body(**{**required, **fields})


@pytest.mark.parametrize("role", ROLES)
async def test_an_invitation_gives_its_role(
    super_admin: Client, anonymous: Client, role: str
) -> None:
    account = (
        await anonymous.post("/auth/register", _with(await _invite(super_admin, role=role)))
    ).json()
    assert set(account) == KEYS
    assert (account["role"], account["email_verified"]) == (role, True)


async def test_an_invitation_leads_to_its_tenant(
    world: World, admin: Client, anonymous: Client
) -> None:
    invitation = await _invite(admin)
    await anonymous.post("/auth/register", _with(invitation))
    me = (await (await _signed_in(world, invitation["email"])).get("/auth/me")).json()
    assert (me["tenant_id"], me["email_verified"]) == (admin.tenant_id, True)


async def test_super_admins_invitation_leads_to_the_tenant_that_it_names(
    super_admin: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    invitation = await _invite(super_admin, tenant_id=admin.tenant_id)
    await anonymous.post("/auth/register", _with(invitation))
    user = await _row(services, invitation["email"])
    assert user is not None
    assert user.tenant_id == admin.tenant_id


@pytest.mark.parametrize(
    ("field", "value"), [("role", "super_admin"), ("tenant_id", "ten_other"), ("status", "x")]
)
async def test_who_is_invited_cannot_choose_more(
    admin: Client, anonymous: Client, services: Services, field: str, value: str
) -> None:
    invitation = await _invite(admin)
    answer = await anonymous.post("/auth/register", _with(invitation, **{field: value}))
    assert answer.status_code == 201
    assert getattr(await _row(services, invitation["email"]), field) != value


async def test_who_is_invited_need_not_verify_the_address(
    admin: Client, anonymous: Client, services: Services
) -> None:
    invitation = await _invite(admin)
    await anonymous.post("/auth/register", _with(invitation))
    (only,) = await _mails(services, invitation["email"])
    assert "/verify-email" not in only


async def test_a_registration_by_invitation_is_told_in_its_tenants_log(
    admin: Client, anonymous: Client
) -> None:
    invitation = await _invite(admin, role="agent_user")
    account = (await anonymous.post("/auth/register", _with(invitation))).json()
    entry = (await admin.get("/api/v1/event-log")).json()["data"][0]
    assert entry["type"] == "system.user.registered"
    assert entry["data"] == {
        "user_id": account["id"],
        "email": invitation["email"],
        "role": "agent_user",
        "invited": True,
    }


async def test_the_case_of_an_invited_address_does_not_matter(
    admin: Client, anonymous: Client
) -> None:
    invitation = await _invite(admin)
    body = _with(invitation, email=invitation["email"].upper())
    assert (await anonymous.post("/auth/register", body)).status_code == 201


async def test_an_invitation_works_once(
    admin: Client, anonymous: Client, services: Services
) -> None:
    """Not even for the same person, once their account is gone."""
    invitation = await _invite(admin)
    account = (await anonymous.post("/auth/register", _with(invitation))).json()
    await admin.delete(f"/users/{account['id']}")
    answer = await anonymous.post("/auth/register", _with(invitation))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"invitation_token"}
    assert await _row(services, invitation["email"]) is None


async def test_of_twenty_uses_of_an_invitation_at_once_one_succeeds(
    world: World, admin: Client
) -> None:
    invitation = await _invite(admin)
    answers = await asyncio.gather(
        *(world.anonymous().post("/auth/register", _with(invitation)) for _ in range(20))
    )
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(201) == 1
    assert set(statuses) <= {201, 409, 422}


async def test_an_invitation_is_for_its_address_only(
    admin: Client, anonymous: Client, services: Services
) -> None:
    body = _body(invitation_token=(await _invite(admin))["invitation_token"])
    answer = await anonymous.post("/auth/register", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"invitation_token"}
    assert await _row(services, body["email"]) is None


async def test_an_invitation_ends_after_seven_days(
    admin: Client, anonymous: Client, services: Services
) -> None:
    invitation = await _invite(admin)
    with clock.frozen(clock.now() + timedelta(days=7)):
        answer = await anonymous.post("/auth/register", _with(invitation))
    assert answer.status_code == 422
    assert await _row(services, invitation["email"]) is None


async def test_an_invitation_holds_until_the_seventh_day(admin: Client, anonymous: Client) -> None:
    invitation = await _invite(admin)
    with clock.frozen(clock.now() + timedelta(days=6, hours=23)):
        answer = await anonymous.post("/auth/register", _with(invitation))
    assert answer.status_code == 201


@pytest.mark.parametrize("token", ["unknown", "", " ", None, 5, [], "x" * 4096, "x" * 4097])
async def test_what_is_no_invitation_does_not_register(
    anonymous: Client, services: Services, token: object
) -> None:
    body = _body(invitation_token=token)
    answer = await anonymous.post("/auth/register", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"invitation_token"}
    assert await _row(services, body["email"]) is None


@pytest.mark.parametrize(
    "change",
    [str.swapcase, lambda token: token[:-1], lambda token: f"{token} ", lambda token: f" {token}"],
)
async def test_an_invitation_is_taken_only_as_it_was_given(
    admin: Client, anonymous: Client, change: Any
) -> None:
    invitation = await _invite(admin)
    body = _with(invitation, invitation_token=change(invitation["invitation_token"]))
    assert (await anonymous.post("/auth/register", body)).status_code == 422


async def test_the_token_of_a_verification_is_no_invitation(
    anonymous: Client, services: Services
) -> None:
    account = await _register(anonymous)
    (token,) = await _tokens(services, account["email"], "verify-email")
    answer = await anonymous.post("/auth/register", _body(invitation_token=token))
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "wrong",
    [
        {"password": "weak"},
        {"first_name": ""},
        {"email": "somebody.else@example.com"},
        {"email": "nobody"},
    ],
)
async def test_a_failed_try_does_not_use_up_the_invitation(
    admin: Client, anonymous: Client, wrong: dict[str, Any]
) -> None:
    invitation = await _invite(admin)
    failed = await anonymous.post("/auth/register", _with(invitation, **wrong))
    answer = await anonymous.post("/auth/register", _with(invitation))
    assert (failed.status_code, answer.status_code) == (422, 201)


async def test_a_new_invitation_takes_the_place_of_the_old_one(
    admin: Client, anonymous: Client
) -> None:
    old = await _invite(admin)
    new = await _invite(admin, email=old["email"])
    statuses = [
        (await anonymous.post("/auth/register", _with(invitation))).status_code
        for invitation in (old, new)
    ]
    assert statuses == [422, 201]


async def test_who_has_joined_leaves_no_other_invitation_open(
    world: World, admin: Client, anonymous: Client
) -> None:
    """Not even once the account is gone: whoever finds the mail later has no way in."""
    other = await world.user("tenant_admin")
    first = await _invite(admin)
    second = await _invite(other, email=first["email"])
    account = (await anonymous.post("/auth/register", _with(first))).json()
    await admin.delete(f"/users/{account['id']}")
    assert (await anonymous.post("/auth/register", _with(second))).status_code == 422


async def _deactivate(actor: Client, user_id: str) -> httpx.Response:
    return await actor.post(f"/users/{user_id}/deactivate")


async def _delete(actor: Client, user_id: str) -> httpx.Response:
    return await actor.delete(f"/users/{user_id}")


async def _demote(actor: Client, user_id: str) -> httpx.Response:
    return await actor.put(f"/users/{user_id}/role", {"role": "viewer"})


@pytest.mark.parametrize("fall", [_deactivate, _delete, _demote])
async def test_an_invitation_is_void_once_its_inviter_has_fallen(
    super_admin: Client, admin: Client, anonymous: Client, services: Services, fall: Any
) -> None:
    invitation = await _invite(admin, role="tenant_admin")
    assert (await fall(super_admin, admin.user_id)).status_code == 200
    answer = await anonymous.post("/auth/register", _with(invitation))
    assert answer.status_code == 422
    assert await _row(services, invitation["email"]) is None


async def test_an_invitation_to_another_tenant_is_void_once_its_inviter_has_fallen(
    world: World, super_admin: Client, admin: Client, anonymous: Client
) -> None:
    inviter = await world.user("super_admin")
    invitation = await _invite(inviter, tenant_id=admin.tenant_id)
    await _deactivate(super_admin, inviter.user_id)
    assert (await anonymous.post("/auth/register", _with(invitation))).status_code == 422


async def test_an_invitation_stays_void_when_its_inviter_comes_back(
    super_admin: Client, admin: Client, anonymous: Client
) -> None:
    invitation = await _invite(admin)
    await _deactivate(super_admin, admin.user_id)
    await super_admin.post(f"/users/{admin.user_id}/reactivate")
    assert (await anonymous.post("/auth/register", _with(invitation))).status_code == 422


async def test_the_fall_of_one_inviter_leaves_anothers_invitations_alone(
    world: World, super_admin: Client, admin: Client, anonymous: Client
) -> None:
    other = await world.user("tenant_admin", admin.tenant_id)
    invitation = await _invite(other)
    await _delete(super_admin, admin.user_id)
    assert (await anonymous.post("/auth/register", _with(invitation))).status_code == 201


# Verifying the address


async def _newcomer(world: World, services: Services) -> tuple[Client, str]:
    """Somebody who registered and signed in, and the token that was mailed to them."""
    account = await _register(world.anonymous())
    (token,) = await _tokens(services, account["email"], "verify-email")
    return await _signed_in(world, account["email"]), token


async def _verified(caller: Client) -> bool:
    is_verified: bool = (await caller.get("/auth/me")).json()["email_verified"]
    return is_verified


async def test_the_mailed_token_verifies_the_address(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, token = await _newcomer(world, services)
    answer = await anonymous.post("/auth/verify-email", {"token": token})
    assert (answer.status_code, set(answer.json())) == (200, {"message"})
    assert await _verified(newcomer)


async def test_somebody_elses_session_does_not_stand_in_the_way_of_verifying(
    world: World, developer: Client, services: Services
) -> None:
    newcomer, token = await _newcomer(world, services)
    await developer.post("/auth/verify-email", {"token": token})
    assert (await _verified(newcomer), await _verified(developer)) == (True, False)


async def test_a_verification_works_once(
    world: World, anonymous: Client, services: Services
) -> None:
    _, token = await _newcomer(world, services)
    statuses = [
        (await anonymous.post("/auth/verify-email", {"token": token})).status_code for _ in range(2)
    ]
    assert statuses == [200, 422]


async def test_of_twenty_verifications_at_once_one_succeeds(
    world: World, services: Services
) -> None:
    _, token = await _newcomer(world, services)
    answers = await asyncio.gather(
        *(world.anonymous().post("/auth/verify-email", {"token": token}) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 19


async def test_a_verification_is_told_once(
    world: World, anonymous: Client, services: Services
) -> None:
    """Also when two mails were sent and both links are followed."""
    newcomer, _ = await _newcomer(world, services)
    await newcomer.post("/auth/verify-email/resend")
    user_id = (await newcomer.get("/auth/me")).json()["id"]
    for token in await _tokens(services, newcomer.email, "verify-email"):
        await anonymous.post("/auth/verify-email", {"token": token})
    assert await _events(services, "email_verified", user_id) == [{"user_id": user_id}]


async def test_a_verification_ends_after_three_days(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, token = await _newcomer(world, services)
    with clock.frozen(clock.now() + timedelta(days=3)):
        answer = await anonymous.post("/auth/verify-email", {"token": token})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token"}
    assert not await _verified(newcomer)


async def test_a_verification_holds_until_the_third_day(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, token = await _newcomer(world, services)
    with clock.frozen(clock.now() + timedelta(days=2, hours=23)):
        await anonymous.post("/auth/verify-email", {"token": token})
    assert await _verified(newcomer)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"token": ""},
        {"token": " "},
        {"token": None},
        {"token": 5},
        {"token": []},
        {"token": "unknown"},
        {"token": "x" * 5000},
    ],
)
async def test_what_is_no_token_verifies_nobody(anonymous: Client, body: dict[str, Any]) -> None:
    answer = await anonymous.post("/auth/verify-email", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token"}


async def test_the_token_to_reset_a_password_verifies_nobody(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, _ = await _newcomer(world, services)
    await anonymous.post("/auth/forgot-password", {"email": newcomer.email})
    (token,) = await _tokens(services, newcomer.email, "reset-password")
    answer = await anonymous.post("/auth/verify-email", {"token": token})
    assert answer.status_code == 422
    assert not await _verified(newcomer)


async def test_a_wrong_try_to_verify_does_not_use_up_the_token_of_another_purpose(
    world: World, anonymous: Client, services: Services
) -> None:
    newcomer, _ = await _newcomer(world, services)
    await anonymous.post("/auth/forgot-password", {"email": newcomer.email})
    (token,) = await _tokens(services, newcomer.email, "reset-password")
    await anonymous.post("/auth/verify-email", {"token": token})
    body = {"token": token, "new_password": "Battery9Staple"}
    assert (await anonymous.post("/auth/reset-password", body)).status_code == 200


async def test_an_invitation_verifies_nobody(admin: Client, anonymous: Client) -> None:
    invitation = await _invite(admin)
    body = {"token": invitation["invitation_token"]}
    assert (await anonymous.post("/auth/verify-email", body)).status_code == 422


async def test_the_token_of_one_user_verifies_no_other(
    world: World, anonymous: Client, services: Services
) -> None:
    _, token = await _newcomer(world, services)
    other, _ = await _newcomer(world, services)
    await anonymous.post("/auth/verify-email", {"token": token})
    assert not await _verified(other)


# Mailing the verification again


async def test_the_verification_is_mailed_again_to_ones_own_address(
    developer: Client, services: Services
) -> None:
    answer = await developer.post("/auth/verify-email/resend")
    assert (answer.status_code, set(answer.json())) == (200, {"message"})
    assert len(await _tokens(services, developer.email, "verify-email")) == 1


async def test_the_token_that_was_mailed_again_verifies(
    developer: Client, anonymous: Client, services: Services
) -> None:
    await developer.post("/auth/verify-email/resend")
    (token,) = await _tokens(services, developer.email, "verify-email")
    await anonymous.post("/auth/verify-email", {"token": token})
    assert await _verified(developer)


async def test_a_verified_address_is_not_verified_again(
    developer: Client, services: Services
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        (await (await tx.session()).get_one(User, developer.user_id)).email_verified = True
    answer = await developer.post("/auth/verify-email/resend")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"
    assert await _mails(services, developer.email) == []


async def test_after_five_mails_one_must_wait(developer: Client) -> None:
    answers = [await developer.post("/auth/verify-email/resend") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    error = answers[-1].json()["error"]
    assert error["code"] == "rate_limited"
    assert 0 < error["details"]["retry_after"] <= 15 * 60
    assert answers[-1].headers["retry-after"] == str(error["details"]["retry_after"])


async def test_no_mail_goes_out_while_one_must_wait(developer: Client, services: Services) -> None:
    for _ in range(7):
        await developer.post("/auth/verify-email/resend")
    assert len(await _mails(services, developer.email)) == 5


async def test_of_twenty_wishes_for_a_mail_at_once_five_are_met(
    developer: Client, services: Services
) -> None:
    await asyncio.gather(*(developer.post("/auth/verify-email/resend") for _ in range(20)))
    assert len(await _mails(services, developer.email)) == 5


async def test_after_fifteen_minutes_the_verification_is_mailed_again(developer: Client) -> None:
    with clock.frozen(clock.now() - timedelta(minutes=15)):
        statuses = [
            (await developer.post("/auth/verify-email/resend")).status_code for _ in range(6)
        ]
    answer = await developer.post("/auth/verify-email/resend")
    assert (statuses[-1], answer.status_code) == (429, 200)


async def test_one_users_mails_do_not_count_for_another(world: World, developer: Client) -> None:
    for _ in range(5):
        await developer.post("/auth/verify-email/resend")
    other = await world.user("viewer", developer.tenant_id)
    assert (await other.post("/auth/verify-email/resend")).status_code == 200


async def test_acting_in_another_tenant_super_admin_still_verifies_its_own_address(
    super_admin: Client, admin: Client, services: Services
) -> None:
    headers = {"x-tenant-id": admin.tenant_id}
    await super_admin.post("/auth/verify-email/resend", headers=headers)
    assert len(await _mails(services, super_admin.email)) == 1


async def test_nobody_gets_a_verification_without_a_login(anonymous: Client) -> None:
    assert (await anonymous.post("/auth/verify-email/resend")).status_code == 401
