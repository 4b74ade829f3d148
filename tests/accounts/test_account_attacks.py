"""Ways to get in, stay in or climb that were tried on the accounts area, and what stops each."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pyotp
import pytest

from app.domain.accounts import invitations, password
from app.kit import clock
from app.main import create_app
from app.security import passwords, throttle
from app.security.sessions import require_active_session
from app.services import Services
from db.session import ALL_TENANTS
from tests.stores import Stores
from tests.world import PASSWORD, Client, World

ADMINS_LOCK = 7210032
NEW = "Battery9Staple"


async def _value(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS) as tx:
        return await (await tx.raw()).fetchval(sql, *args)


async def _until(services: Services, sql: str) -> None:
    for _ in range(500):
        if await _value(services, sql):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(sql)


@asynccontextmanager
async def _before_it_gets_its_turn(
    services: Services, request: Any
) -> AsyncIterator[asyncio.Task[Any]]:
    """A request that is past the gate and waits, while something else happens."""
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("SELECT pg_advisory_xact_lock($1)", ADMINS_LOCK)
        task = asyncio.create_task(request)
        await _until(
            services,
            "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
        )
        yield task


async def _take_away(services: Services, client: Client, change: str) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute(f"UPDATE users SET {change} WHERE id = $1", client.user_id)
        await raw.execute("UPDATE sessions SET ended_at = now() WHERE user_id = $1", client.user_id)


# A request that was on its way


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        ("status = 'inactive'", ("POST", "/users/{}/reactivate", None)),
        ("role = 'viewer'", ("PUT", "/users/{}/role", {"role": "tenant_admin"})),
    ],
)
async def test_an_admin_cannot_undo_their_fall_with_a_request_on_its_way(
    services: Services, admin: Client, change: str, undo: tuple[str, str, Any]
) -> None:
    method, path, body = undo
    request = admin(method, path.format(admin.user_id), json=body)
    async with _before_it_gets_its_turn(services, request) as task:
        await _take_away(services, admin, change)
    assert (await task).status_code == 401
    column, value = re.findall(r"\w+", change)
    assert (
        await _value(services, f"SELECT {column} FROM users WHERE id = $1", admin.user_id) == value
    )


async def test_what_an_ended_session_began_is_not_finished(
    services: Services, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = (await developer.post("/api/v1/mfa/setup")).json()["secret"]
    refuse_blocked = throttle.refuse_blocked

    async def meanwhile(*args: Any) -> None:
        await refuse_blocked(*args)
        await _take_away(services, developer, "status = 'active'")

    monkeypatch.setattr(throttle, "refuse_blocked", meanwhile)
    answer = await developer.post("/api/v1/mfa/enable", {"code": pyotp.TOTP(seed).now()})
    assert answer.status_code == 401
    assert not await _value(
        services, "SELECT mfa_enabled FROM users WHERE id = $1", developer.user_id
    )


# MFA


async def _enable(client: Client, at: int = 0) -> dict[str, Any]:
    setup: dict[str, Any] = (await client.post("/api/v1/mfa/setup")).json()
    code = pyotp.TOTP(setup["secret"]).at(int(clock.epoch()) + at)
    answer = await client.post("/api/v1/mfa/enable", {"code": code})
    assert answer.status_code == 200, answer.text
    return setup


async def _second_session(world: World, client: Client) -> Client:
    answer = await world.anonymous().post(
        "/auth/login", {"email": client.email, "password": PASSWORD}
    )
    return Client(world.app, answer.json()["access_token"], user_id=client.user_id)


async def test_a_code_of_removed_devices_says_nothing_of_new_ones(
    world: World, admin: Client
) -> None:
    old = await world.user("viewer", admin.tenant_id)
    owner = await _second_session(world, old)
    await _enable(old)
    await admin.post(f"/api/v1/users/{old.user_id}/mfa/reset")
    await _enable(owner)
    answer = await old.post("/api/v1/mfa/recovery-codes")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "mfa_required")


@pytest.mark.parametrize("path", ["/api/v1/mfa/setup", "/api/v1/mfa/recovery-codes"])
async def test_no_key_replays_seeds_or_codes_to_another_session(
    world: World, developer: Client, path: str
) -> None:
    other = await _second_session(world, developer)
    await _enable(developer)
    key = {"idempotency-key": "setup-1"}
    assert (await developer.post(path, headers=key)).status_code == 200
    assert (await other.post(path, headers=key)).status_code == 403


async def test_an_account_has_no_more_than_ten_devices(developer: Client) -> None:
    for _ in range(10):
        await _enable(developer)
    answer = await developer.post("/api/v1/mfa/setup")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "too_many_devices")


# Guessing


async def test_a_guess_at_the_current_password_that_is_not_judged_learns_nothing(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"current_password": "Wrong7Horse", "new_password": NEW}
    for _ in range(5):
        await developer.post("/auth/change-password", wrong)
    _skip_the_early_look(monkeypatch)
    correct = {"current_password": PASSWORD, "new_password": PASSWORD}
    answers = [await developer.post("/auth/change-password", body) for body in (correct, wrong)]
    assert [answer.status_code for answer in answers] == [429, 429]


async def test_a_trip_of_the_password_throttle_is_in_the_audit(world: World, admin: Client) -> None:
    user = await world.user("viewer", admin.tenant_id)
    for _ in range(5):
        body = {"current_password": "Wrong7Horse", "new_password": NEW}
        await user.post("/auth/change-password", body)
    query = {"event_type": "system.user.sign_in_blocked"}
    entries = (await admin.get("/api/v1/event-log", params=query)).json()["data"]
    assert [entry["data"]["user_id"] for entry in entries] == [user.user_id]


@pytest.mark.parametrize("write", [str.upper, lambda text: f" {text} "])
async def test_however_an_address_is_written_its_failures_are_counted_together(
    anonymous: Client, developer: Client, write: Any
) -> None:
    for _ in range(5):
        body = {"email": developer.email, "password": "Wrong7Horse"}
        await anonymous.post("/auth/login", body)
    body = {"email": write(developer.email), "password": PASSWORD}
    assert (await anonymous.post("/auth/login", body)).status_code == 429


@pytest.mark.parametrize("odd", ["\u0130", "\u0131", "I\u0307"])
async def test_a_letter_that_only_looks_alike_is_another_address(
    anonymous: Client, odd: str
) -> None:
    """Were it the same to the database, its answer would tell who has an account."""
    email = f"viki.{anonymous.address}@example.com"
    await anonymous.post(
        "/auth/register",
        {"email": email, "password": NEW, "first_name": "V", "last_name": "K"},
    )
    for _ in range(5):
        await anonymous.post("/auth/login", {"email": email, "password": "Wrong7Horse"})
    body = {"email": email.replace("viki", f"v{odd}ki"), "password": NEW}
    assert (await anonymous.post("/auth/login", body)).status_code == 401


async def test_an_encoded_domain_signs_in_as_it_registered(anonymous: Client) -> None:
    email = f"ada.{anonymous.address}@xn--exmple-cua.com"
    body = {"email": email, "password": NEW, "first_name": "A", "last_name": "B"}
    await anonymous.post("/auth/register", body)
    answer = await anonymous.post("/auth/login", {"email": email, "password": NEW})
    assert answer.status_code == 200


async def _guess(client: Client, email: str, times: int = 5) -> None:
    for _ in range(times):
        await client.post("/auth/login", {"email": email, "password": "Wrong7Horse"})


async def test_a_stranger_does_not_lock_out_who_signs_in_from_their_usual_address(
    world: World, anonymous: Client, developer: Client
) -> None:
    login = {"email": developer.email, "password": PASSWORD}
    await anonymous.post("/auth/login", login)
    await _guess(world.anonymous(), developer.email)
    assert (await anonymous.post("/auth/login", login)).status_code == 200


async def test_guesses_from_a_usual_address_are_counted_too(
    anonymous: Client, developer: Client
) -> None:
    login = {"email": developer.email, "password": PASSWORD}
    await anonymous.post("/auth/login", login)
    await _guess(anonymous, developer.email)
    assert (await anonymous.post("/auth/login", login)).status_code == 429


async def test_strangers_at_many_addresses_are_counted_together(
    world: World, anonymous: Client, developer: Client
) -> None:
    for _ in range(5):
        await _guess(world.anonymous(), developer.email, times=1)
    login = {"email": developer.email, "password": PASSWORD}
    assert (await world.anonymous().post("/auth/login", login)).status_code == 429


async def test_a_sign_in_of_somebody_else_makes_an_address_usual_for_nobody(
    world: World, anonymous: Client, developer: Client
) -> None:
    other = await world.user("viewer", developer.tenant_id)
    await anonymous.post("/auth/login", {"email": other.email, "password": PASSWORD})
    await _guess(world.anonymous(), developer.email)
    login = {"email": developer.email, "password": PASSWORD}
    assert (await anonymous.post("/auth/login", login)).status_code == 429


# Who has an account


@pytest.fixture
async def closed(stores: Stores) -> AsyncIterator[Client]:
    app = create_app(msgspec.structs.replace(stores.settings, allow_signup=False))
    yield World(app).anonymous()
    await app.state.services.close()


async def test_a_made_up_invitation_does_not_tell_who_has_an_account(
    closed: Client, developer: Client
) -> None:
    body = {
        "password": NEW,
        "first_name": "A",
        "last_name": "B",
        "invitation_token": "made-up",
    }
    registered, unknown = [
        await closed.post("/auth/register", {**body, "email": email})
        for email in (developer.email, "nobody@example.com")
    ]
    assert registered.content == unknown.content


@pytest.mark.parametrize("owner", ["somebody", "nobody"])
async def test_asking_for_a_reset_takes_the_same_time_for_everybody(
    anonymous: Client, developer: Client, owner: str
) -> None:
    email = developer.email if owner == "somebody" else "nobody@example.com"
    started = time.perf_counter()
    await anonymous.post("/auth/forgot-password", {"email": email})
    assert time.perf_counter() - started >= password._MIN_RESPONSE_SECONDS


# Invitations


async def _invite(admin: Client, email: str) -> str:
    answer = await admin.post("/users/invite", {"email": email, "role": "tenant_admin"})
    token: str = answer.json()["invitation_token"]
    return token


async def _join(anonymous: Client, email: str, token: str) -> int:
    body = {
        "email": email,
        "password": NEW,
        "first_name": "A",
        "last_name": "B",
        "invitation_token": token,
    }
    return (await anonymous.post("/auth/register", body)).status_code


async def test_a_new_invitation_takes_the_place_of_the_one_before(
    admin: Client, anonymous: Client
) -> None:
    email = f"twice.{anonymous.address}@example.com"
    first, second = await _invite(admin, email), await _invite(admin, email)
    assert await _join(anonymous, email, first) == 422
    assert await _join(anonymous, email, second) == 201


async def test_who_was_deleted_does_not_come_back_with_another_invitation(
    world: World, admin: Client, anonymous: Client
) -> None:
    email = f"back.{anonymous.address}@example.com"
    elsewhere = await world.user("tenant_admin")
    spare = await _invite(elsewhere, email)
    assert await _join(anonymous, email, await _invite(admin, email)) == 201
    users = (await admin.get("/users", params={"search": email})).json()["users"]
    await admin.delete(f"/users/{users[0]['id']}")
    assert await _join(anonymous, email, spare) == 422


async def test_an_invitation_given_by_somebody_who_just_fell_is_not_made(
    services: Services, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    select_tenant = invitations._select_tenant

    async def meanwhile(*args: Any) -> str:
        tenant_id: str = await select_tenant(*args)
        await _take_away(services, admin, "role = 'viewer'")
        return tenant_id

    monkeypatch.setattr(invitations, "_select_tenant", meanwhile)
    body = {"email": f"late.{admin.address}@example.com", "role": "tenant_admin"}
    assert (await admin.post("/users/invite", body)).status_code == 401


# Work that strangers can cause


async def test_a_reset_with_a_made_up_token_costs_no_hash(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_password: str) -> str:
        raise AssertionError

    monkeypatch.setattr(passwords, "hash_password", never)
    answer = await anonymous.post("/auth/reset-password", {"token": "made-up", "new_password": NEW})
    assert answer.status_code == 422


async def test_who_comes_when_too_many_are_waiting_is_told_to_come_back(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "_QUEUE_LENGTH", 0)
    answer = await anonymous.post("/auth/login", {"email": "a@example.com", "password": "x"})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


async def test_a_sign_in_holds_no_connection_while_it_hashes(
    anonymous: Client, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = []

    async def look(_stored: str | None, _password: str) -> bool:
        connections.append(services.db.engine.pool.checkedout())  # type: ignore[attr-defined]
        return False

    monkeypatch.setattr(passwords, "verify_password", look)
    await anonymous.post("/auth/login", {"email": developer.email, "password": "x"})
    assert connections == [0]


async def test_a_picture_is_read_without_a_connection(
    anonymous: Client, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE users SET avatar_key = id, avatar_type = 'image/png' WHERE id = $1",
            developer.user_id,
        )
    connections = []

    async def look(_files: Any, _key: str) -> bytes:
        connections.append(services.db.engine.pool.checkedout())  # type: ignore[attr-defined]
        return b""

    monkeypatch.setattr(type(services.files), "read", look)
    await anonymous.get(f"/api/v1/avatars/{developer.user_id}")
    assert connections == [0]


async def test_who_waits_for_the_same_key_holds_no_connection(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request hangs; nineteen more with its key must not take the pool with them."""
    go, reached = asyncio.Event(), asyncio.Event()

    async def hang(*_args: Any) -> None:
        reached.set()
        await go.wait()

    monkeypatch.setattr(invitations, "require_active_session", hang)
    admin = await World(_app_of(developer)).user("tenant_admin")
    body = {"email": f"slow.{admin.address}@example.com", "role": "viewer"}
    key = {"idempotency-key": "slow"}
    calls = [asyncio.create_task(admin.post("/users/invite", body, headers=key)) for _ in range(30)]
    await reached.wait()
    async with asyncio.timeout(5):
        assert (await developer.get("/auth/me")).status_code == 200
    go.set()
    answers = await asyncio.gather(*calls)
    assert {answer.json()["id"] for answer in answers} == {answers[0].json()["id"]}


def _app_of(client: Client) -> Any:
    return client.http._transport.app  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["Ada\r\nBcc: x@example.com", "\t", "\u0000", "a\x7f"])
async def test_a_name_is_one_line(anonymous: Client, name: str) -> None:
    body = {
        "email": "line@example.com",
        "password": NEW,
        "first_name": name,
        "last_name": "B",
    }
    assert (await anonymous.post("/auth/register", body)).status_code == 422


# What is not judged


def _skip_the_early_look(monkeypatch: pytest.MonkeyPatch) -> None:
    async def already_past(*_args: Any) -> None:
        return

    monkeypatch.setattr(throttle, "refuse_blocked", already_past)


async def test_a_code_that_is_not_judged_is_not_used_up(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovery = (await _enable(developer))["recovery_codes"]
    for _ in range(5):
        await developer.post("/api/v1/mfa/verify", {"code": "000000"})
    _skip_the_early_look(monkeypatch)
    answer = await developer.post("/api/v1/mfa/verify", {"code": recovery[0]})
    assert answer.status_code == 429
    status = (await developer.get("/api/v1/mfa/status")).json()
    assert status["recovery_codes_remaining"] == 10


async def test_a_code_at_sign_in_that_is_not_judged_is_not_used_up(
    anonymous: Client, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovery = (await _enable(developer))["recovery_codes"]
    for _ in range(5):
        await developer.post("/api/v1/mfa/verify", {"code": "000000"})
    login = {"email": developer.email, "password": PASSWORD}
    token = (await anonymous.post("/auth/login", login)).json()["mfa_token"]
    _skip_the_early_look(monkeypatch)
    answer = await anonymous.post("/auth/mfa/verify", {"mfa_token": token, "code": recovery[0]})
    assert answer.status_code == 429
    status = (await developer.get("/api/v1/mfa/status")).json()
    assert status["recovery_codes_remaining"] == 10


async def test_an_invitation_made_while_its_giver_falls_does_not_outlive_the_fall(
    world: World,
    services: Services,
    admin: Client,
    anonymous: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The demotion waits for the invitation, and then voids it."""
    falling = await world.user("tenant_admin", admin.tenant_id)
    stands = require_active_session
    demotion: list[asyncio.Task[Any]] = []

    async def meanwhile(*args: Any) -> None:
        await stands(*args)
        request = admin.put(f"/users/{falling.user_id}/role", {"role": "viewer"})
        demotion.append(asyncio.create_task(request))
        await _until(services, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")

    monkeypatch.setattr(invitations, "require_active_session", meanwhile)
    email = f"outlive.{anonymous.address}@example.com"
    token = await _invite(falling, email)
    assert (await demotion[0]).status_code == 200
    assert await _join(anonymous, email, token) == 422


async def test_a_set_up_from_before_mfa_is_not_confirmed_without_a_code(
    world: World, developer: Client, services: Services
) -> None:
    thief = await _second_session(world, developer)
    seed = (await thief.post("/api/v1/mfa/setup")).json()["secret"]
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE users SET mfa_enabled = true WHERE id = $1", developer.user_id
        )
    answer = await thief.post("/api/v1/mfa/enable", {"code": pyotp.TOTP(seed).now()})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "mfa_required")
