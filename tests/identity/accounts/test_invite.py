"""Inviting users."""

import asyncio
import re
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from app.domain.platform.mail import api as mail
from app.kit import clock
from app.kit.ids import new_id
from app.main import create_app
from app.security import tokens
from app.services import Services
from tests.identity.accounts.api_calls import invitation_body, invite
from tests.identity.accounts.records import (
    contains_secret,
    fetch_rows,
    fetch_value,
    read_mail_texts,
)
from tests.identity.accounts.values import (
    INVALID_EMAILS,
    NON_ADMIN_ROLES,
    ROLES,
    ROLES_BELOW_SUPER_ADMIN,
)
from tests.stores import Stores
from tests.world import Client, World

INVITATION_KEYS = {"id", "email", "role", "tenant_id", "invitation_token", "expires_at"}


# Invite


async def test_an_invitation_is_shown_with_its_token(admin: Client) -> None:
    body = invitation_body()
    answer = await admin.post("/users/invite", body)
    invitation = answer.json()
    assert answer.status_code == 201
    assert set(invitation) == INVITATION_KEYS
    assert (invitation["email"], invitation["role"]) == (body["email"], "viewer")
    assert invitation["tenant_id"] == admin.tenant_id
    assert re.fullmatch(r"[\w-]{43}", invitation["invitation_token"])


async def test_an_invitation_is_valid_for_seven_days(admin: Client) -> None:
    invitation = await invite(admin)
    assert invitation["expires_at"].endswith("Z")
    remaining = datetime.fromisoformat(invitation["expires_at"]) - clock.now()
    assert timedelta(days=6, hours=23) < remaining <= timedelta(days=7)


async def test_every_invitation_has_a_token_of_its_own(admin: Client) -> None:
    invitation_tokens = [(await invite(admin))["invitation_token"] for _ in range(3)]
    assert len(set(invitation_tokens)) == 3


async def test_super_admin_invites_any_role(world: World, subtests: pytest.Subtests) -> None:
    for role in ROLES:
        super_admin = await world.user("super_admin")
        with subtests.test(role=role):
            assert (await invite(super_admin, role=role))["role"] == role


async def test_a_tenant_admin_invites_up_to_its_own_role(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ROLES_BELOW_SUPER_ADMIN:
        admin = await world.user("tenant_admin")
        with subtests.test(role=role):
            assert (await invite(admin, role=role))["role"] == role


async def test_nobody_invites_above_their_own_role(admin: Client) -> None:
    answer = await admin.post("/users/invite", invitation_body(role="super_admin"))
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden"
    assert answer.json()["error"]["details"]["your_role"] == "tenant_admin"


async def test_other_roles_cannot_invite(world: World, subtests: pytest.Subtests) -> None:
    for role in NON_ADMIN_ROLES:
        with subtests.test(role=role):
            answer = await (await world.user(role)).post("/users/invite", invitation_body())
            assert answer.status_code == 403
            assert answer.json()["error"]["details"] == {
                "required": "admin:users",
                "your_role": role,
            }


async def test_a_refused_invitation_is_not_stored(admin: Client, services: Services) -> None:
    body = invitation_body(role="super_admin")
    await admin.post("/users/invite", body)
    sql = "SELECT count(*) FROM invitations WHERE email = $1"
    assert await fetch_value(services, sql, body["email"]) == 0


async def test_one_mailbox_gets_few_invitations_of_a_tenant(
    admin: Client, super_admin: Client
) -> None:
    local_part = new_id("mail")

    async def send_invitation(inviter: Client, number: int) -> int:
        body = invitation_body(email=f"{local_part}+{number}@example.com")
        return (await inviter.post("/users/invite", body)).status_code

    assert [await send_invitation(admin, number) for number in range(6)] == [201] * 5 + [429]
    assert await send_invitation(super_admin, 6) == 201


async def test_super_admin_selects_the_tenant(super_admin: Client, admin: Client) -> None:
    invitation = await invite(super_admin, tenant_id=admin.tenant_id)
    assert invitation["tenant_id"] == admin.tenant_id


async def test_a_tenant_that_does_not_exist_is_404(super_admin: Client) -> None:
    answer = await super_admin.post("/users/invite", invitation_body(tenant_id="ten_nothing"))
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "tenant_not_found"


async def test_a_tenant_admin_invites_to_its_own_tenant_only(
    world: World, subtests: pytest.Subtests
) -> None:
    for tenant in ("another", "unknown"):
        admin = await world.user("tenant_admin")
        with subtests.test(tenant=tenant):
            tenant_id = await world.tenant() if tenant == "another" else "ten_nothing"
            assert (await invite(admin, tenant_id=tenant_id))["tenant_id"] == admin.tenant_id


async def test_no_other_field_of_an_invitation_can_be_set(
    world: World, subtests: pytest.Subtests
) -> None:
    for field in ("id", "invitation_token", "expires_at"):
        admin = await world.user("tenant_admin")
        with subtests.test(field=field):
            fields: dict[str, Any] = {field: "2099-01-01T00:00:00Z"}
            invitation = await invite(admin, **fields)
            assert invitation.get(field) != "2099-01-01T00:00:00Z"


async def test_an_email_with_an_account_cannot_be_invited(
    admin: Client, developer: Client, subtests: pytest.Subtests
) -> None:
    """An e-mail has one account in the whole instance, in any tenant."""
    cases: list[Any] = [str.lower, str.upper]
    for change in cases:
        with subtests.test(change=change):
            answer = await admin.post(
                "/users/invite", invitation_body(email=change(developer.email))
            )
            assert answer.status_code == 409
            assert answer.json()["error"]["code"] == "conflict"


async def test_an_invalid_email_is_not_invited(admin: Client, subtests: pytest.Subtests) -> None:
    for email in INVALID_EMAILS:
        with subtests.test(email=email):
            answer = await admin.post("/users/invite", invitation_body(email=email))
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"email"}


async def test_unusual_emails_are_invited(world: World, subtests: pytest.Subtests) -> None:
    cases: list[str] = ["a@localhost", "first.last+tag@sub.example.com", "o'brien@example.com"]
    for email in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(email=email):
            assert (await invite(admin, email=email))["email"] == email


async def test_every_address_that_can_be_invited_can_be_mailed(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    """Either the address is refused at once, or the worker can compose a mail to it."""
    cases: list[str] = [
        "a..b@example.com",
        ".a@example.com",
        "a@example..com",
        "\xfc@example.com",
        "a@ex\xe4mple.com",
        "a\x01@example.com",
    ]
    for email in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(email=email):
            answer = await admin.post("/users/invite", invitation_body(email=email))
            assert answer.status_code in {201, 422}
            if answer.status_code == 201:
                content = mail.MailContent("s", "t", "h")
                assert mail.compose("parley@localhost", "mal_x", email, content, domain="localhost")


async def test_an_unknown_role_is_refused(admin: Client, subtests: pytest.Subtests) -> None:
    cases: list[object] = ["owner", "", "SUPER_ADMIN", None, 1]
    for role in cases:
        with subtests.test(role=role):
            answer = await admin.post("/users/invite", invitation_body(role=role))
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"role"}


async def test_all_missing_fields_are_reported(admin: Client) -> None:
    answer = await admin.post("/users/invite", {})
    assert answer.json()["error"]["details"] == {"email": "is required", "role": "is required"}


# Stored data of an invitation


async def test_the_token_is_stored_hashed(admin: Client, services: Services) -> None:
    invitation = await invite(admin)
    sql = "SELECT token_hash FROM invitations WHERE id = $1"
    token_hash = await fetch_value(services, sql, invitation["id"])
    assert token_hash == tokens.hash_secret(invitation["invitation_token"])


async def test_the_token_is_not_stored_in_plain_text(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["invitations", "mail_messages", "work", "event_log", "idempotency_keys"]
    for table in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(table=table):
            body, headers = invitation_body(), {"idempotency-key": new_id("key")}
            token: str = (await admin.post("/users/invite", body, headers=headers)).json()[
                "invitation_token"
            ]
            rows = await fetch_rows(services, f"SELECT * FROM {table}")
            assert rows
            assert not [row for row in rows if contains_secret(row, token)]


async def test_the_token_is_not_in_redis(admin: Client, services: Services) -> None:
    token = (await invite(admin))["invitation_token"].encode()
    dumps = [await services.redis.dump(key) for key in await services.redis.keys("*")]
    assert dumps
    assert not [dump for dump in dumps if dump and token in dump]


async def test_the_mail_contains_a_link_with_the_token(admin: Client, services: Services) -> None:
    invitation = await invite(admin)
    (text,) = await read_mail_texts(services, invitation["email"])
    assert f"?token={invitation['invitation_token']}" in text


async def test_an_invitation_accepts_the_work_of_mailing_it(
    admin: Client, services: Services
) -> None:
    invitation = await invite(admin)
    sql = (
        "SELECT w.kind, w.state, w.tenant_id FROM work AS w "
        "JOIN mail_messages AS m ON m.id = w.ref_id WHERE m.recipient = $1"
    )
    assert await fetch_rows(services, sql, invitation["email"]) == [
        ("mail.send", "pending", admin.tenant_id)
    ]


async def test_an_invitation_writes_all_its_rows_in_one_transaction(
    admin: Client, services: Services
) -> None:
    invitation = await invite(admin)
    sql = """
    SELECT xmin::text FROM invitations WHERE id = $1
    UNION ALL SELECT xmin::text FROM event_log WHERE data ->> 'invitation_id' = $1
    UNION ALL SELECT xmin::text FROM mail_messages WHERE recipient = $2
    UNION ALL SELECT w.xmin::text FROM work AS w JOIN mail_messages AS m ON m.id = w.ref_id
              WHERE m.recipient = $2
    """
    rows = await fetch_rows(services, sql, invitation["id"], invitation["email"])
    assert (len(rows), len(set(rows))) == (4, 1)


async def test_an_invitation_is_in_the_event_log(admin: Client) -> None:
    invitation = await invite(admin, role="agent_user")
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
    body, headers = invitation_body(), {"idempotency-key": new_id("key")}
    answers = [await admin.post("/users/invite", body, headers=headers) for _ in range(2)]
    assert answers[0].content == answers[1].content
    sql = "SELECT count(*) FROM mail_messages WHERE recipient = $1"
    assert await fetch_value(services, sql, body["email"]) == 1


async def test_more_concurrent_invitations_than_connections_all_succeed(
    stores: Stores, admin: Client
) -> None:
    """A request that holds one connection never waits for a second one."""
    app = create_app(msgspec.structs.replace(stores.settings, pool_size=2))
    caller = Client(app, admin.token)
    answers = await asyncio.gather(
        *(
            caller.post(
                "/users/invite",
                invitation_body(),
                headers={"idempotency-key": f"crowd-{number}"},
            )
            for number in range(24)
        )
    )
    assert {answer.status_code for answer in answers} == {201}
    await app.state.services.close()
