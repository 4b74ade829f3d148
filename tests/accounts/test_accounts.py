"""Signing in, who am I, inviting."""

import asyncio
import re
from datetime import datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

from app.domain.mail import service as mail
from app.kit import clock
from app.kit.ids import new_id
from app.main import create_app
from app.security import tokens
from app.services import Services
from db.models import Invitation, MailMessage, Session, User
from db.session import ALL_TENANTS
from tests.stores import Stores
from tests.world import PASSWORD, Client, World

USER_KEYS = {
    "id",
    "email",
    "first_name",
    "last_name",
    "role",
    "tenant_id",
    "email_verified",
    "mfa_enabled",
    "status",
    "last_login_at",
    "created_at",
    "updated_at",
}
INVITATION_KEYS = {"id", "email", "role", "tenant_id", "invitation_token", "expires_at"}
ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]


async def _login(anonymous: Client, email: str, password: str = PASSWORD) -> httpx.Response:
    return await anonymous.post("/auth/login", {"email": email, "password": password})


async def _count(services: Services, sql: str, *args: object) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count: int = await (await tx.raw()).fetchval(sql, *args)
    return count


async def _deactivate(services: Services, client: Client) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        (await (await tx.session()).get_one(User, client.user_id)).status = "inactive"


# Login


async def test_signing_in_gives_both_tokens_and_the_user(
    anonymous: Client, developer: Client
) -> None:
    answer = await _login(anonymous, developer.email)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"access_token", "refresh_token", "token_type", "expires_in", "user"}
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 900)
    assert body["user"] == {
        "id": developer.user_id,
        "email": developer.email,
        "role": "agent_developer",
    }


@pytest.mark.parametrize("role", ROLES)
async def test_the_access_token_opens_ones_own_account(
    world: World, anonymous: Client, role: str
) -> None:
    user = await world.user(role)
    token = (await _login(anonymous, user.email)).json()["access_token"]
    answer = await anonymous.get("/auth/me", headers={"authorization": f"Bearer {token}"})
    assert (answer.json()["id"], answer.json()["role"]) == (user.user_id, role)


async def test_the_refresh_token_is_no_access_token(anonymous: Client, developer: Client) -> None:
    token = (await _login(anonymous, developer.email)).json()["refresh_token"]
    answer = await anonymous.get("/auth/me", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == 401


async def test_the_refresh_token_holds_for_seven_days(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = (await _login(anonymous, developer.email)).json()["refresh_token"]
    remaining = services.tokens.verify(token, "refresh").exp - clock.epoch()
    assert 7 * 86400 - 60 < remaining <= 7 * 86400


async def test_every_sign_in_opens_a_session_of_its_own(
    anonymous: Client, developer: Client, services: Services
) -> None:
    answers = [(await _login(anonymous, developer.email)).json() for _ in range(2)]
    claims = [services.tokens.verify(answer["access_token"], "access") for answer in answers]
    assert claims[0].sid != claims[1].sid
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        rows = [await session.get_one(Session, claim.sid) for claim in claims]
    assert {row.user_id for row in rows} == {developer.user_id}


@pytest.mark.parametrize("change", [str.upper, str.title, str.lower])
async def test_the_case_of_the_email_does_not_matter(
    anonymous: Client, developer: Client, change: Any
) -> None:
    answer = await _login(anonymous, change(developer.email))
    assert answer.status_code == 200
    assert answer.json()["user"]["email"] == developer.email


async def test_the_case_of_the_password_matters(anonymous: Client, developer: Client) -> None:
    assert (await _login(anonymous, developer.email, PASSWORD.upper())).status_code == 401


async def test_a_wrong_password_is_401(anonymous: Client, developer: Client) -> None:
    answer = await _login(anonymous, developer.email, "Wrong7Horse")
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"


async def test_a_wrong_password_and_an_unknown_email_get_the_very_same_answer(
    anonymous: Client, developer: Client
) -> None:
    wrong = await _login(anonymous, developer.email, "Wrong7Horse")
    unknown = await _login(anonymous, "nobody@example.com", "Wrong7Horse")
    assert (wrong.status_code, wrong.content) == (unknown.status_code, unknown.content)


async def test_a_wrong_password_and_an_unknown_email_get_the_same_headers(
    anonymous: Client, developer: Client
) -> None:
    wrong = await _login(anonymous, developer.email, "Wrong7Horse")
    unknown = await _login(anonymous, "nobody@example.com", "Wrong7Horse")
    assert wrong.headers.keys() == unknown.headers.keys()


async def test_an_inactive_user_cannot_sign_in(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _deactivate(services, developer)
    assert (await _login(anonymous, developer.email)).status_code == 401


async def test_an_inactive_user_gets_the_answer_of_a_wrong_password(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await _deactivate(services, developer)
    answers = [await _login(anonymous, developer.email, word) for word in (PASSWORD, "Wrong7X")]
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize("email", ["%@example.com", "' OR 1=1 --", "", "*"])
async def test_an_email_is_no_pattern(anonymous: Client, developer: Client, email: str) -> None:
    assert (await _login(anonymous, email)).status_code == 401


async def test_a_failed_sign_in_leaves_nothing_behind(
    anonymous: Client, developer: Client, services: Services
) -> None:
    sql = "SELECT count(*) FROM sessions WHERE user_id = $1"
    before = await _count(services, sql, developer.user_id)
    await _login(anonymous, developer.email, "Wrong7Horse")
    assert await _count(services, sql, developer.user_id) == before


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"email", "password"}),
        ({"email": "a@b.example"}, {"password"}),
        ({"email": 5, "password": []}, {"email", "password"}),
        ({"email": None, "password": "x"}, {"email"}),
        ({"email": "x" * 255, "password": "x"}, {"email"}),
        ({"email": "a@b.example", "password": "x" * 1025}, {"password"}),
    ],
)
async def test_a_wrong_field_of_a_sign_in_is_named(
    anonymous: Client, body: dict[str, Any], fields: set[str]
) -> None:
    answer = await anonymous.post("/auth/login", body)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == fields


@pytest.mark.parametrize(
    ("field", "value"),
    [("role", "super_admin"), ("tenant_id", "ten_other"), ("id", "usr_other"), ("status", "x")],
)
async def test_no_other_field_of_a_sign_in_has_any_effect(
    anonymous: Client, developer: Client, field: str, value: str
) -> None:
    body = {"email": developer.email, "password": PASSWORD, field: value, "user": {field: value}}
    token = (await anonymous.post("/auth/login", body)).json()["access_token"]
    me = await anonymous.get("/auth/me", headers={"authorization": f"Bearer {token}"})
    assert me.json()[field] == (await developer.get("/auth/me")).json()[field]


async def test_a_sign_in_is_told_in_the_log(world: World, anonymous: Client, admin: Client) -> None:
    user = await world.user("viewer", admin.tenant_id)
    await _login(anonymous, user.email)
    entry = (await admin.get("/api/v1/event-log")).json()["data"][0]
    assert entry["type"] == "system.user.signed_in"
    assert entry["data"] == {
        "user_id": user.user_id,
        "ip_address": anonymous.address,
        "mfa": False,
    }


async def test_a_password_is_told_nowhere(
    anonymous: Client, developer: Client, services: Services, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = [await _login(anonymous, developer.email, word) for word in (PASSWORD, "Wrong7Horse")]
    output = capfd.readouterr()
    text = output.out + output.err + "".join(answer.text for answer in answers)
    assert PASSWORD not in text
    assert "Wrong7Horse" not in text


# Who am I


async def test_me_is_the_whole_user(developer: Client) -> None:
    answer = await developer.get("/auth/me")
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == USER_KEYS
    assert (body["id"], body["email"], body["tenant_id"]) == (
        developer.user_id,
        developer.email,
        developer.tenant_id,
    )
    assert (body["role"], body["status"]) == ("agent_developer", "active")
    assert (body["email_verified"], body["mfa_enabled"]) == (False, False)


async def test_who_has_never_signed_in_has_no_time_of_it(developer: Client) -> None:
    assert (await developer.get("/auth/me")).json()["last_login_at"] is None


async def test_the_time_of_the_last_sign_in_is_kept(anonymous: Client, developer: Client) -> None:
    await _login(anonymous, developer.email)
    last_login_at = (await developer.get("/auth/me")).json()["last_login_at"]
    assert last_login_at.endswith("Z")
    assert abs((clock.now() - datetime.fromisoformat(last_login_at)).total_seconds()) < 60


async def test_me_shows_no_password(developer: Client) -> None:
    assert "argon2" not in (await developer.get("/auth/me")).text


# Invite


def _body(**fields: Any) -> dict[str, Any]:
    return {"email": f"{new_id('mail')}@example.com", "role": "viewer", **fields}


async def _invite(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post("/users/invite", _body(**fields))
    assert answer.status_code == 201, answer.text
    invitation: dict[str, Any] = answer.json()
    return invitation


async def test_an_invitation_is_shown_with_its_token(admin: Client) -> None:
    body = _body()
    answer = await admin.post("/users/invite", body)
    invitation = answer.json()
    assert answer.status_code == 201
    assert set(invitation) == INVITATION_KEYS
    assert (invitation["email"], invitation["role"]) == (body["email"], "viewer")
    assert invitation["tenant_id"] == admin.tenant_id
    assert re.fullmatch(r"[\w-]{43}", invitation["invitation_token"])


async def test_an_invitation_holds_for_seven_days(admin: Client) -> None:
    invitation = await _invite(admin)
    assert invitation["expires_at"].endswith("Z")
    remaining = datetime.fromisoformat(invitation["expires_at"]) - clock.now()
    assert timedelta(days=6, hours=23) < remaining <= timedelta(days=7)


async def test_every_invitation_has_a_token_of_its_own(admin: Client) -> None:
    invitation_tokens = [(await _invite(admin))["invitation_token"] for _ in range(3)]
    assert len(set(invitation_tokens)) == 3


@pytest.mark.parametrize("role", ROLES)
async def test_super_admin_invites_any_role(super_admin: Client, role: str) -> None:
    assert (await _invite(super_admin, role=role))["role"] == role


@pytest.mark.parametrize("role", ROLES[1:])
async def test_a_tenant_admin_invites_up_to_its_own_role(admin: Client, role: str) -> None:
    assert (await _invite(admin, role=role))["role"] == role


async def test_nobody_invites_above_their_own_role(admin: Client) -> None:
    answer = await admin.post("/users/invite", _body(role="super_admin"))
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden"
    assert answer.json()["error"]["details"]["your_role"] == "tenant_admin"


@pytest.mark.parametrize("role", ["agent_developer", "agent_user", "viewer"])
async def test_who_is_no_admin_invites_nobody(world: World, role: str) -> None:
    answer = await (await world.user(role)).post("/users/invite", _body())
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": "admin:users", "your_role": role}


async def test_a_refused_invitation_leaves_nothing_behind(
    admin: Client, services: Services
) -> None:
    body = _body(role="super_admin")
    await admin.post("/users/invite", body)
    sql = "SELECT count(*) FROM invitations WHERE email = $1"
    assert await _count(services, sql, body["email"]) == 0


async def test_super_admin_names_the_tenant(super_admin: Client, admin: Client) -> None:
    invitation = await _invite(super_admin, tenant_id=admin.tenant_id)
    assert invitation["tenant_id"] == admin.tenant_id


async def test_a_tenant_that_does_not_exist_is_404(super_admin: Client) -> None:
    answer = await super_admin.post("/users/invite", _body(tenant_id="ten_nothing"))
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "tenant_not_found"


@pytest.mark.parametrize("tenant", ["another", "ten_nothing"])
async def test_a_tenant_admin_invites_to_its_own_tenant_whatever_it_names(
    world: World, admin: Client, tenant: str
) -> None:
    tenant_id = await world.tenant() if tenant == "another" else tenant
    assert (await _invite(admin, tenant_id=tenant_id))["tenant_id"] == admin.tenant_id


@pytest.mark.parametrize("field", ["id", "invitation_token", "expires_at", "token_hash"])
async def test_no_other_field_of_an_invitation_can_be_set(admin: Client, field: str) -> None:
    invitation = await _invite(admin, **{field: "2099-01-01T00:00:00Z"})
    assert invitation.get(field) != "2099-01-01T00:00:00Z"


@pytest.mark.parametrize("change", [str.lower, str.upper])
async def test_who_has_an_account_cannot_be_invited(
    admin: Client, developer: Client, change: Any
) -> None:
    """An account of any tenant: an e-mail has one account on the whole instance."""
    answer = await admin.post("/users/invite", _body(email=change(developer.email)))
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"


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
        "\na@example.com",
        "a@example.com\r\nBcc: b@example.com",
        "a@example.com, b@example.com",
        "<a@example.com>",
        "x" * 65 + "@example.com",
        "a@" + "x" * 250 + ".com",
        5,
        None,
    ],
)
async def test_what_is_no_email_is_not_invited(admin: Client, email: object) -> None:
    answer = await admin.post("/users/invite", _body(email=email))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"email"}


@pytest.mark.parametrize(
    "email", ["a@localhost", "first.last+tag@sub.example.com", "o'brien@example.com"]
)
async def test_unusual_emails_are_invited(admin: Client, email: str) -> None:
    assert (await _invite(admin, email=email))["email"] == email


@pytest.mark.parametrize(
    "email",
    [
        "a..b@example.com",
        ".a@example.com",
        "a@example..com",
        "\xfc@example.com",
        "a@ex\xe4mple.com",
        "a\x01@example.com",
    ],
)
async def test_who_can_be_invited_can_be_written_to(
    admin: Client, services: Services, email: str
) -> None:
    """Either the address is refused at once, or the worker can compose a mail to it."""
    answer = await admin.post("/users/invite", _body(email=email))
    assert answer.status_code == 422 or mail.compose(services.settings, "mal_x", email, "s", "t")


@pytest.mark.parametrize("role", ["owner", "", "SUPER_ADMIN", None, 1])
async def test_an_unknown_role_is_named(admin: Client, role: object) -> None:
    answer = await admin.post("/users/invite", _body(role=role))
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"role"}


async def test_missing_fields_are_all_named(admin: Client) -> None:
    answer = await admin.post("/users/invite", {})
    assert answer.json()["error"]["details"] == {"email": "is required", "role": "is required"}


# What an invitation leaves behind


async def test_the_token_is_stored_hashed(admin: Client, services: Services) -> None:
    invitation = await _invite(admin)
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(Invitation, invitation["id"])
    assert row.token_hash == tokens.hash_secret(invitation["invitation_token"])


@pytest.mark.parametrize(
    "table", ["invitations", "mail_messages", "work", "event_log", "idempotency_keys"]
)
async def test_the_token_is_nowhere_in_plain(admin: Client, services: Services, table: str) -> None:
    body, headers = _body(), {"idempotency-key": new_id("key")}
    token: str = (await admin.post("/users/invite", body, headers=headers)).json()[
        "invitation_token"
    ]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = [tuple(row) for row in await (await tx.raw()).fetch(f"SELECT * FROM {table}")]
    assert rows
    assert not [row for row in rows if _tells(row, token)]


def _tells(row: tuple[object, ...], secret: str) -> bool:
    as_bytes = b"\n".join(
        value if isinstance(value, bytes) else str(value).encode() for value in row
    )
    return secret.encode() in as_bytes or secret.encode().hex().encode() in as_bytes


async def test_the_token_is_nowhere_in_redis(admin: Client, services: Services) -> None:
    token = (await _invite(admin))["invitation_token"].encode()
    dumps = [await services.redis.dump(key) for key in await services.redis.keys("*")]
    assert dumps
    assert not [dump for dump in dumps if dump and token in dump]


async def _mail_to(services: Services, email: str) -> MailMessage:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        mail_id = await (await tx.raw()).fetchval(
            "SELECT id FROM mail_messages WHERE recipient = $1", email
        )
        return await (await tx.session()).get_one(MailMessage, mail_id)


async def test_the_mail_holds_a_link_with_the_token(admin: Client, services: Services) -> None:
    invitation = await _invite(admin)
    message = await _mail_to(services, invitation["email"])
    place = mail.seal_context(message.tenant_id, message.id)
    text = services.keyring.open(message.body or b"", place).decode()
    assert f"?token={invitation['invitation_token']}" in text


async def test_the_work_of_mailing_is_accepted_with_the_invitation(
    admin: Client, services: Services
) -> None:
    invitation = await _invite(admin)
    message = await _mail_to(services, invitation["email"])
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await (await tx.raw()).fetchrow(
            "SELECT kind, state, tenant_id FROM work WHERE ref_id = $1", message.id
        )
    assert tuple(row) == ("mail.send", "pending", admin.tenant_id)


async def test_all_that_an_invitation_writes_is_one_transaction(
    admin: Client, services: Services
) -> None:
    invitation = await _invite(admin)
    message = await _mail_to(services, invitation["email"])
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch(
            """
            SELECT xmin::text FROM invitations WHERE id = $1
            UNION ALL SELECT xmin::text FROM mail_messages WHERE id = $2
            UNION ALL SELECT xmin::text FROM work WHERE ref_id = $2
            UNION ALL SELECT xmin::text FROM event_log WHERE data ->> 'invitation_id' = $1
            """,
            invitation["id"],
            message.id,
        )
    assert len(rows) == 4
    assert len({row["xmin"] for row in rows}) == 1


async def test_an_invitation_is_told_in_the_log(admin: Client) -> None:
    invitation = await _invite(admin, role="agent_user")
    entry = (await admin.get("/api/v1/event-log")).json()["data"][0]
    assert entry["type"] == "system.user.invited"
    assert entry["data"] == {
        "invitation_id": invitation["id"],
        "email": invitation["email"],
        "role": "agent_user",
    }


async def test_a_repeated_request_with_one_key_invites_once(
    admin: Client, services: Services
) -> None:
    body, headers = _body(), {"idempotency-key": new_id("key")}
    answers = [await admin.post("/users/invite", body, headers=headers) for _ in range(2)]
    assert answers[0].content == answers[1].content
    sql = "SELECT count(*) FROM mail_messages WHERE recipient = $1"
    assert await _count(services, sql, body["email"]) == 1


async def test_more_invitations_at_once_than_connections_all_get_through(
    stores: Stores, world: World
) -> None:
    """A request that holds one connection never waits for a second one."""
    admin = await world.user("tenant_admin")
    app = create_app(msgspec.structs.replace(stores.settings, pool_size=2))
    caller = Client(app, admin.token)
    answers = await asyncio.gather(
        *(
            caller.post(
                "/users/invite",
                {"email": f"crowd{number}.{new_id('x')}@example.com", "role": "viewer"},
                headers={"idempotency-key": f"crowd-{number}"},
            )
            for number in range(24)
        )
    )
    assert {answer.status_code for answer in answers} == {201}
    await app.state.services.close()
