"""Signing in with a password."""

import statistics
import time
from typing import Any

import pytest
from litestar import Litestar

from app.kit import clock
from app.kit.ids import new_id
from app.security import passwords
from app.services import Services
from db.models import Session
from db.session import ALL_TENANTS
from tests.identity.accounts.api_calls import log_in
from tests.identity.accounts.records import execute, read_sessions, set_user
from tests.identity.accounts.values import ROLES, WRONG_PASSWORD
from tests.world import PASSWORD, Client, World

# Login


async def test_a_sign_in_returns_both_tokens_and_the_user(
    anonymous: Client, developer: Client
) -> None:
    answer = await log_in(anonymous, developer.email)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"access_token", "refresh_token", "token_type", "expires_in", "user"}
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 900)
    assert body["user"] == {
        "id": developer.user_id,
        "email": developer.email,
        "role": "agent_developer",
    }


async def test_the_access_token_is_accepted_for_every_role(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        anonymous = world.anonymous()
        with subtests.test(role=role):
            user = await world.user(role)
            token = (await log_in(anonymous, user.email)).json()["access_token"]
            answer = await anonymous.get("/auth/me", headers={"authorization": f"Bearer {token}"})
            assert (answer.json()["id"], answer.json()["role"]) == (user.user_id, role)


async def test_the_refresh_token_is_no_access_token(anonymous: Client, developer: Client) -> None:
    token = (await log_in(anonymous, developer.email)).json()["refresh_token"]
    answer = await anonymous.get("/auth/me", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == 401


async def test_the_refresh_token_is_valid_for_seven_days(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = (await log_in(anonymous, developer.email)).json()["refresh_token"]
    remaining = services.tokens.verify(token, "refresh").exp - clock.epoch()
    assert 7 * 86400 - 60 < remaining <= 7 * 86400


async def test_every_sign_in_opens_a_session_of_its_own(
    anonymous: Client, developer: Client, services: Services
) -> None:
    answers = [(await log_in(anonymous, developer.email)).json() for _ in range(2)]
    claims = [services.tokens.verify(answer["access_token"], "access") for answer in answers]
    assert claims[0].sid != claims[1].sid
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        rows = [await session.get_one(Session, claim.sid) for claim in claims]
    assert {row.user_id for row in rows} == {developer.user_id}


async def test_the_case_of_the_email_does_not_matter(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [str.upper, str.title, str.lower]
    for change in cases:
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(change=change):
            answer = await log_in(anonymous, change(developer.email))
            assert answer.status_code == 200
            assert answer.json()["user"]["email"] == developer.email


async def test_the_case_of_the_password_matters(anonymous: Client, developer: Client) -> None:
    assert (await log_in(anonymous, developer.email, PASSWORD.upper())).status_code == 401


async def test_a_wrong_password_is_401(anonymous: Client, developer: Client) -> None:
    answer = await log_in(anonymous, developer.email, WRONG_PASSWORD)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"


async def test_a_wrong_password_and_an_unknown_email_get_the_same_answer(
    anonymous: Client, developer: Client
) -> None:
    wrong = await log_in(anonymous, developer.email, WRONG_PASSWORD)
    unknown = await log_in(anonymous, "nobody@example.com", WRONG_PASSWORD)
    assert (wrong.status_code, wrong.content) == (unknown.status_code, unknown.content)


async def test_a_wrong_password_and_an_unknown_email_get_the_same_headers(
    anonymous: Client, developer: Client
) -> None:
    wrong = await log_in(anonymous, developer.email, WRONG_PASSWORD)
    unknown = await log_in(anonymous, "nobody@example.com", WRONG_PASSWORD)
    assert wrong.headers.keys() == unknown.headers.keys()


async def test_an_inactive_user_cannot_sign_in(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await set_user(services, developer, status="inactive")
    assert (await log_in(anonymous, developer.email)).status_code == 401


async def test_an_inactive_user_gets_the_answer_of_a_wrong_password(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await set_user(services, developer, status="inactive")
    right, wrong = [
        await log_in(anonymous, developer.email, password)
        for password in (PASSWORD, WRONG_PASSWORD)
    ]
    assert (right.status_code, right.content) == (wrong.status_code, wrong.content)


async def test_an_email_is_not_taken_as_a_pattern(
    anonymous: Client, developer: Client, subtests: pytest.Subtests
) -> None:
    for email in ("%@example.com", "' OR 1=1 --", "", "*"):
        with subtests.test(email=email):
            assert (await log_in(anonymous, email)).status_code == 401


async def test_a_failed_sign_in_opens_no_session(
    anonymous: Client, developer: Client, services: Services
) -> None:
    before = await read_sessions(services, developer)
    await log_in(anonymous, developer.email, WRONG_PASSWORD)
    assert await read_sessions(services, developer) == before


async def test_an_invalid_field_of_a_sign_in_is_refused(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {"email", "password"}),
        ({"email": "a@b.example"}, {"password"}),
        ({"email": 5, "password": []}, {"email", "password"}),
        ({"email": None, "password": "x"}, {"email"}),
        ({"email": "x" * 255, "password": "x"}, {"email"}),
        ({"email": "a@b.example", "password": "x" * 1025}, {"password"}),
    ]
    for body, fields in cases:
        with subtests.test(body=body, fields=fields):
            answer = await anonymous.post("/auth/login", body)
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"
            assert set(answer.json()["error"]["details"]) == fields


async def test_no_other_field_of_a_sign_in_has_any_effect(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("role", "super_admin"),
        ("tenant_id", "ten_other"),
        ("id", "usr_other"),
        ("status", "x"),
    ]
    for field, value in cases:
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(field=field, value=value):
            body: dict[str, Any] = {"email": developer.email, "password": PASSWORD}
            assert (await anonymous.post("/auth/login", {**body, field: value})).status_code == 422
            # Ignored, as a part of the answer.
            body["user"] = {field: value}
            token = (await anonymous.post("/auth/login", body)).json()["access_token"]
            me = await anonymous.get("/auth/me", headers={"authorization": f"Bearer {token}"})
            assert me.json()[field] == (await developer.get("/auth/me")).json()[field]


async def test_a_caller_with_a_session_can_sign_in(
    super_admin: Client, developer: Client, anonymous: Client
) -> None:
    for caller in (super_admin, developer, anonymous):
        answer = await log_in(caller, developer.email)
        assert answer.status_code == 200
        assert answer.json()["user"]["id"] == developer.user_id


async def test_a_sign_in_is_in_the_event_log(
    world: World, anonymous: Client, admin: Client
) -> None:
    user = await world.user("viewer", admin.tenant_id)
    await log_in(anonymous, user.email)
    entry = (await admin.get("/api/v1/event-log")).json()["data"][0]
    assert entry["type"] == "system.user.signed_in"
    assert entry["data"] == {
        "user_id": user.user_id,
        "ip_address": anonymous.address,
        "mfa": False,
    }


async def test_neither_answers_nor_output_contain_a_password(
    anonymous: Client, developer: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    attempts = (PASSWORD, WRONG_PASSWORD)
    answers = [await log_in(anonymous, developer.email, password) for password in attempts]
    output = capfd.readouterr()
    text = output.out + output.err + "".join(answer.text for answer in answers)
    assert not [password for password in attempts if password in text]


# Response times


async def _measure_milliseconds(caller: Client, email: str) -> float:
    started = time.perf_counter()
    assert (await log_in(caller, email, WRONG_PASSWORD)).status_code == 401
    return (time.perf_counter() - started) * 1000


def _median_difference(first: list[float], second: list[float]) -> float:
    return abs(statistics.median(first) - statistics.median(second))


@pytest.mark.usefixtures("full_password_cost")
async def test_a_wrong_password_and_an_unknown_email_take_the_same_time(app: Litestar) -> None:
    """The two are measured alternately, so that other load slows both, and repeatedly until the
    medians are stable.
    """
    world = World(app)  # hashes its users' password anew, at the full cost
    wrong: list[float] = []
    unknown: list[float] = []
    await _measure_milliseconds(world.anonymous(), f"{new_id('nobody')}@example.com")
    while len(wrong) < 15 or (len(wrong) < 60 and _median_difference(wrong, unknown) >= 10):
        user, caller = await world.user(), world.anonymous()
        wrong.append(await _measure_milliseconds(caller, user.email))
        unknown.append(await _measure_milliseconds(caller, f"{new_id('nobody')}@example.com"))
    assert _median_difference(wrong, unknown) < 10


# A user who is changed during the sign-in


def _change_user_after_verification(
    monkeypatch: pytest.MonkeyPatch, services: Services, user: Client, sql: str, *args: object
) -> None:
    """Changes the user after the password is verified and before the sign-in is completed."""
    verify_password = passwords.verify_password

    async def verify_and_change(stored: str | None, password: str) -> bool:
        is_correct = await verify_password(stored, password)
        await execute(services, sql, user.user_id, *args)
        return is_correct

    monkeypatch.setattr(passwords, "verify_password", verify_and_change)


USER_CHANGES = {
    "another password": "UPDATE users SET password_hash = 'another' WHERE id = $1",
    "deactivated": "UPDATE users SET status = 'inactive' WHERE id = $1",
    "deleted": "DELETE FROM users WHERE id = $1",
}


async def test_a_user_changed_during_the_sign_in_is_refused(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for change, sql in USER_CHANGES.items():
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(change=change), pytest.MonkeyPatch.context() as monkeypatch:
            _change_user_after_verification(monkeypatch, services, developer, sql)
            answer = await log_in(anonymous, developer.email)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


async def test_a_user_changed_during_the_sign_in_gets_no_session(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for change in ("another password", "deactivated"):
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(change=change), pytest.MonkeyPatch.context() as monkeypatch:
            before = await read_sessions(services, developer)
            _change_user_after_verification(monkeypatch, services, developer, USER_CHANGES[change])
            await log_in(anonymous, developer.email)
            assert await read_sessions(services, developer) == before


async def test_a_user_who_enables_mfa_during_the_sign_in_must_send_a_code(
    anonymous: Client, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "UPDATE users SET mfa_enabled = true WHERE id = $1"
    _change_user_after_verification(monkeypatch, services, developer, sql)
    assert (await log_in(anonymous, developer.email)).json()["mfa_required"] is True
