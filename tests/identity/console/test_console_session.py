"""The console's session: the refresh token is in a cookie that scripts cannot read."""

import httpx
import msgspec
import pytest

from app.services import Services
from tests.changed_settings import changed_settings
from tests.identity.accounts.mfa_users import MfaUser
from tests.world import PASSWORD, Client

PATH = "/auth/console/session"


async def sign_in(console: httpx.AsyncClient, email: str) -> httpx.Response:
    return await console.post(PATH, json={"email": email, "password": PASSWORD})


async def get_me(console: httpx.AsyncClient, answer: httpx.Response) -> httpx.Response:
    token = answer.json()["access_token"]
    return await console.get("/auth/me", headers={"authorization": f"Bearer {token}"})


async def test_a_sign_in_answers_the_user_and_what_they_may_do(
    console: httpx.AsyncClient, user: Client
) -> None:
    answer = await sign_in(console, user.email)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"access_token", "token_type", "expires_in", "user", "permissions"}
    assert (await user.get("/api/v1/profile")).json() == body["user"]
    assert "agents:write" in body["permissions"]
    assert "admin:roles" not in body["permissions"]
    assert (await get_me(console, answer)).status_code == 200


async def test_the_cookie_is_for_this_site_and_no_script(
    console: httpx.AsyncClient, user: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for url, name in (
        ("http://parley.test", "parley_session"),
        ("https://parley.test", "__Host-parley_session"),
    ):
        with subtests.test(url=url), changed_settings(services, base_url=url):
            cookie = (await sign_in(console, user.email)).headers["set-cookie"]
            assert cookie.startswith(f"{name}=")
            attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
            assert {"httponly", "samesite=strict", "path=/", "max-age=604800"} <= attributes
            assert ("secure" in attributes) == url.startswith("https")


async def test_a_refresh_takes_the_token_of_the_cookie_and_replaces_it(
    console: httpx.AsyncClient, user: Client
) -> None:
    first = await sign_in(console, user.email)
    before = console.cookies["parley_session"]
    second = await console.post(f"{PATH}/refresh")
    assert second.status_code == 200
    assert console.cookies["parley_session"] != before
    assert second.json()["access_token"] != first.json()["access_token"]
    assert (await get_me(console, second)).status_code == 200


async def test_without_a_valid_cookie_a_refresh_is_refused(
    console: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    for cookie in (None, "", "not-a-token"):
        with subtests.test(cookie=cookie):
            headers = {} if cookie is None else {"cookie": f"parley_session={cookie}"}
            answer = await console.post(f"{PATH}/refresh", headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


async def test_a_sign_out_ends_the_session_and_removes_the_cookie(
    console: httpx.AsyncClient, user: Client
) -> None:
    session = await sign_in(console, user.email)
    cookie = console.cookies["parley_session"]
    answer = await console.delete(PATH)
    assert answer.status_code == 204
    assert "parley_session" not in console.cookies
    assert (await get_me(console, session)).status_code == 401
    headers = {"cookie": f"parley_session={cookie}"}
    assert (await console.post(f"{PATH}/refresh", headers=headers)).status_code == 401


async def test_a_sign_out_without_a_session_removes_the_cookie_all_the_same(
    console: httpx.AsyncClient,
) -> None:
    console.cookies.set("parley_session", "not-a-token", domain="parley.test")
    assert (await console.delete(PATH)).status_code == 204
    assert "parley_session" not in console.cookies


async def test_requests_without_the_header_of_the_console_are_refused(
    console: httpx.AsyncClient, user: Client, subtests: pytest.Subtests
) -> None:
    await sign_in(console, user.email)
    cookie = console.cookies["parley_session"]
    del console.headers["x-parley-console"]
    for method, path, body in (
        ("POST", PATH, {"email": user.email, "password": PASSWORD}),
        ("POST", f"{PATH}/mfa", {"mfa_token": "a", "code": "123456"}),
        ("POST", f"{PATH}/refresh", None),
        ("DELETE", PATH, None),
    ):
        with subtests.test(method=method, path=path):
            answer = await console.request(method, path, json=body)
            assert answer.status_code == 403
            assert answer.json()["error"]["code"] == "cross_site_request"
    assert console.cookies["parley_session"] == cookie


async def test_other_sites_may_not_send_the_header(console: httpx.AsyncClient) -> None:
    answer = await console.options(
        f"{PATH}/refresh",
        headers={
            "origin": "https://shop.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "x-parley-console",
        },
    )
    assert "access-control-allow-origin" not in answer.headers
    assert "access-control-allow-credentials" not in answer.headers


async def test_with_mfa_the_session_begins_with_the_code(
    console: httpx.AsyncClient, mfa_user: MfaUser
) -> None:
    first = await sign_in(console, mfa_user.user.email)
    assert first.json()["mfa_required"] is True
    assert "set-cookie" not in first.headers
    code = {"mfa_token": first.json()["mfa_token"], "code": mfa_user.code()}
    wrong = await console.post(f"{PATH}/mfa", json={**code, "code": mfa_user.wrong_code()})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    answer = await console.post(f"{PATH}/mfa", json=code)
    assert answer.status_code == 200
    assert answer.json()["user"]["mfa_enabled"] is True
    assert (await console.post(f"{PATH}/refresh")).status_code == 200


async def test_no_answer_contains_the_refresh_token(
    console: httpx.AsyncClient, user: Client
) -> None:
    answers = [await sign_in(console, user.email), await console.post(f"{PATH}/refresh")]
    for answer in answers:
        token = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
        assert token not in answer.text
        assert answer.headers["cache-control"] == "no-store"
        assert "refresh_token" not in msgspec.json.decode(answer.content)
