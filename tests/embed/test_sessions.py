"""Sessions of visitors: opened with a key, used with a token."""

from typing import Any

import httpx

from tests.embed.sites import ORIGIN, Site, error_of


async def open_session(
    site: Site, origin: str | None = ORIGIN, credential: str | None = None, **fields: Any
) -> httpx.Response:
    headers = {"authorization": f"Bearer {credential or site.api_key}"}
    if origin is not None:
        headers["origin"] = origin
    return await site.talk.world.anonymous().post(f"{site.path}/session", fields, headers=headers)


async def test_a_session_has_a_token_of_fifteen_minutes(shop: Site) -> None:
    answer = await open_session(shop)
    assert answer.status_code == 200, answer.text
    session = answer.json()
    assert set(session) == {"token", "session_id", "expires_in"}
    assert session["token"].startswith("vst_")
    assert session["session_id"].startswith("vis_")
    assert session["expires_in"] == 900
    assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_a_visitor_chats_with_the_token_and_finds_the_messages_again(shop: Site) -> None:
    session = (await open_session(shop)).json()
    headers = {"authorization": f"Bearer {session['token']}", "origin": ORIGIN}
    caller = shop.talk.world.anonymous()
    body = {"session_id": session["session_id"], "message": "Hi"}
    answer = await caller.post(f"{shop.path}/chat", body, headers=headers)
    assert answer.status_code == 200, answer.text
    state = await caller.get(f"{shop.path}/session", headers=headers)
    assert state.status_code == 200, state.text
    assert [message["role"] for message in state.json()["messages"]] == ["user", "assistant"]
    assert state.json()["agent"] == {"name": "Talker", "allow_voice": False}


async def test_a_token_is_refused_from_another_origin(site: Site) -> None:
    session = (await open_session(site)).json()
    headers = {"authorization": f"Bearer {session['token']}", "origin": "https://evil.example.net"}
    body = {"session_id": session["session_id"], "message": "Hi"}
    answer = await site.talk.world.anonymous().post(f"{site.path}/chat", body, headers=headers)
    assert error_of(answer) == (403, "session_mismatch")


async def test_a_token_is_refused_for_another_session(site: Site) -> None:
    first, second = [(await open_session(site)).json() for _ in range(2)]
    headers = {"authorization": f"Bearer {first['token']}", "origin": ORIGIN}
    body = {"session_id": second["session_id"], "message": "Hi"}
    answer = await site.talk.world.anonymous().post(f"{site.path}/chat", body, headers=headers)
    assert error_of(answer) == (403, "session_mismatch")
