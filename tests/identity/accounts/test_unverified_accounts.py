"""Sessions of an account whose e-mail address is not verified yet, and their verification."""

from app.main import create_app
from app.security.sessions import UNVERIFIED, session_key
from app.services import Services
from tests.identity.accounts.api_calls import begin_session, get_own_status, invite, register
from tests.identity.accounts.records import read_mailed_tokens
from tests.stores import Stores
from tests.world import Client, World

_CLOSED = "/api/v1/agents"


async def _register(world: World, services: Services) -> tuple[str, str]:
    """Returns the e-mail of a new user and the mailed token."""
    email = (await register(world.anonymous()))["email"]
    (token,) = await read_mailed_tokens(services, email, "verify-email")
    return email, token


async def _verify(world: World, token: str) -> None:
    answer = await world.anonymous().post("/auth/verify-email", {"token": token})
    assert answer.status_code == 200


async def _get_status(client: Client) -> int:
    return (await client.get(_CLOSED)).status_code


async def test_a_verification_opens_all_sessions_at_once(world: World, services: Services) -> None:
    email, token = await _register(world, services)
    sessions = [await begin_session(world, email) for _ in range(2)]
    before = [await _get_status(session) for session in sessions]
    await _verify(world, token)
    assert (before, [await _get_status(session) for session in sessions]) == ([403] * 2, [200] * 2)


async def test_a_refusal_says_how_to_verify_the_address(world: World) -> None:
    user = await world.user("agent_user", is_verified=False)
    error = (await user.get(_CLOSED)).json()["error"]
    assert error["code"] == "email_not_verified"
    assert "POST /auth/verify-email/resend" in error["message"]


async def test_a_verification_revives_no_ended_session(world: World, services: Services) -> None:
    """Not even one that ended while the verification was committed."""
    email, token = await _register(world, services)
    session = await begin_session(world, email)
    me = (await session.get("/auth/sessions")).json()["data"][0]["id"]
    await session.post("/auth/logout")
    await services.session_cache.verify_sessions([me])
    await _verify(world, token)
    assert await get_own_status(session) == 401


async def test_a_slow_reader_does_not_close_a_verified_session(
    world: World, services: Services
) -> None:
    """It read the session before the verification, and caches it afterwards."""
    user = await world.user(is_verified=False)
    await services.session_cache.verify_sessions([user.session_id])
    await services.redis.set(session_key(user.session_id), UNVERIFIED, nx=True, ex=60)
    assert await _get_status(user) == 200


async def test_an_invited_user_is_not_restricted(
    world: World, admin: Client, anonymous: Client
) -> None:
    invitation = await invite(admin, "agent_user")
    body = {"email": invitation["email"], "invitation_token": invitation["invitation_token"]}
    await register(anonymous, **body)
    assert await _get_status(await begin_session(world, invitation["email"])) == 200


async def test_requests_of_an_unverified_account_are_not_charged_to_its_tenant(
    world: World,
) -> None:
    tenant = await world.tenant(limits={"requests_per_minute": 3, "burst_multiplier": 1})
    stranger = await world.user("agent_user", tenant, is_verified=False)
    member = await world.user("agent_user", tenant)
    assert {await _get_status(stranger) for _ in range(5)} == {403}
    assert [await _get_status(member) for _ in range(4)] == [200, 200, 200, 429]


async def test_an_unverified_account_is_refused_without_redis(world: World, stores: Stores) -> None:
    user = await world.user(is_verified=False)
    app = create_app(stores.settings)
    caller = Client(app, user.token)
    stores.stop_redis()
    try:
        assert (await _get_status(caller), await get_own_status(caller)) == (403, 200)
    finally:
        stores.start_redis()
    await app.state.services.close()
