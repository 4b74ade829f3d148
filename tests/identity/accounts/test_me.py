"""The route that returns the caller."""

from datetime import datetime

from app.kit import clock
from tests.identity.accounts.api_calls import log_in
from tests.identity.accounts.values import USER_KEYS
from tests.world import Client


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
    assert (body["email_verified"], body["mfa_enabled"]) == (True, False)


async def test_a_user_who_never_signed_in_has_no_last_login(developer: Client) -> None:
    assert (await developer.get("/auth/me")).json()["last_login_at"] is None


async def test_the_time_of_the_last_sign_in_is_shown(anonymous: Client, developer: Client) -> None:
    await log_in(anonymous, developer.email)
    last_login_at = (await developer.get("/auth/me")).json()["last_login_at"]
    assert last_login_at.endswith("Z")
    assert abs((clock.now() - datetime.fromisoformat(last_login_at)).total_seconds()) < 60


async def test_me_shows_no_password(developer: Client) -> None:
    assert "argon2" not in (await developer.get("/auth/me")).text
