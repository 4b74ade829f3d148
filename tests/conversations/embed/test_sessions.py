"""Sessions of visitors: opened with a key, used and renewed with a token."""

from datetime import timedelta
from typing import Any

import pytest

from app.kit import clock
from tests.conversations.embed.sites import ORIGIN, Site, error_of
from tests.conversations.embed.visits import (
    KNOWN_SESSION,
    TOKEN_ONLY_ROUTES,
    TOKEN_ROUTES,
    claims_in,
    open_session,
    visit,
)
from tests.database import run_sql
from tests.scripted_agents import Talker
from tests.world import Client


async def test_a_session_has_a_token_of_fifteen_minutes(shop: Site) -> None:
    answer = await open_session(shop)
    assert answer.status_code == 200, answer.text
    session = answer.json()
    assert set(session) == {"token", "session_id", "expires_in"}
    assert session["token"].startswith("vst_")
    assert session["session_id"].startswith("vis_")
    assert session["expires_in"] == 900
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["cache-control"] == "no-store"


async def test_no_two_sessions_are_the_same(site: Site) -> None:
    sessions = {(await visit(site)).session_id for _ in range(5)}
    assert len(sessions) == 5


async def test_a_visitor_chats_with_the_token_and_finds_the_messages_again(shop: Site) -> None:
    visitor = await visit(shop)
    reply = await visitor.say("When do you open?")
    assert reply["session_id"] == visitor.session_id
    state = await visitor.load()
    assert set(state) == {"session_id", "agent", "visitor_name", "messages", "has_earlier"}
    assert state["session_id"] == visitor.session_id
    assert state["agent"] == {
        "name": "Talker",
        "allow_voice": False,
        "allow_feedback": True,
        "allow_attachments": False,
    }
    assert state["visitor_name"] is None
    assert [(message["role"], message["content"]) for message in state["messages"]] == [
        ("user", "When do you open?"),
        ("assistant", "Hello there"),
    ]
    assert set(state["messages"][0]) == {
        "id",
        "role",
        "content",
        "status",
        "sources",
        "feedback",
        "created_at",
        "error",
        "attachments",
    }


async def test_a_session_without_messages_is_empty(shop: Site) -> None:
    assert (await (await visit(shop)).load())["messages"] == []


async def test_an_earlier_session_goes_on_with_its_id(shop: Site) -> None:
    earlier = await visit(shop)
    await earlier.say("Hi")
    later = await visit(shop, session_id=earlier.session_id)
    assert later.session_id == earlier.session_id
    assert len((await later.load())["messages"]) == 2
    await later.say("Again")
    assert [message["content"] for message in shop.talk.asked[1]["messages"][1:]] == [
        "Hi",
        "Hello there",
        "Again",
    ]


async def test_the_key_and_the_token_share_a_session(site: Site) -> None:
    visitor = await visit(site)
    await visitor.say("With the token")
    await site.say("With the key", session_id=visitor.session_id)
    assert len((await visitor.load())["messages"]) == 4


async def test_a_renewed_token_is_for_the_same_session_and_lasts_longer(shop: Site) -> None:
    start = clock.now()
    with clock.frozen(start):
        visitor = await visit(shop)
    with clock.frozen(start + timedelta(seconds=899)):
        for fields in ({}, {"session_id": visitor.session_id}):
            answer = await visitor.renew(**fields)
            assert answer.status_code == 200, answer.text
            renewed = answer.json()
            assert renewed["session_id"] == visitor.session_id
            before, after = claims_in(visitor.token), claims_in(renewed["token"])
            assert after["exp"] == before["exp"] + 899
            assert {**after, "exp": 0} == {**before, "exp": 0}


async def test_a_token_cannot_be_renewed_to_another_session(shop: Site) -> None:
    visitor = await visit(shop)
    answer = await visitor.renew(session_id=KNOWN_SESSION)
    assert error_of(answer) == (403, "session_mismatch")


async def test_an_expired_token_is_refused_and_the_page_can_read_why(
    shop: Site, subtests: pytest.Subtests
) -> None:
    start = clock.now()
    with clock.frozen(start):
        visitor = await visit(shop)
    with clock.frozen(start + timedelta(seconds=900)):
        for route in TOKEN_ROUTES:
            with subtests.test(route=route):
                answer = await visitor.call(route)
                assert error_of(answer) == (401, "unauthorized")
                assert "expired" in answer.json()["error"]["message"]
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_wrong_bodies_open_no_session(shop: Site, subtests: pytest.Subtests) -> None:
    wrong: list[tuple[str, Any]] = [
        ("session_id", ""),
        ("session_id", "mine"),
        ("session_id", "usr_" + "a" * 32),
        ("session_id", KNOWN_SESSION + "\n"),
        ("session_id", KNOWN_SESSION + "a"),
        ("session_id", 7),
        ("user_token", ""),
        ("user_token", 7),
        ("user_token", "x" * 8193),
    ]
    for field, value in wrong:
        with subtests.test(field=field, value=value):
            answer = await open_session(shop, **{field: value})
            assert error_of(answer) == (422, "validation_error")
            assert set(answer.json()["error"]["details"]) == {field}
            assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_the_key_alone_does_not_show_a_session(shop: Site) -> None:
    answer = await shop.talk.world.anonymous().get(
        f"{shop.path}/session", headers=shop.headers(ORIGIN)
    )
    assert error_of(answer) == (401, "session_token_required")


async def test_an_agent_that_is_not_published_opens_no_session(shop: Site) -> None:
    await shop.talk.client.put(shop.talk.path, {"status": "draft"})
    assert error_of(await open_session(shop)) == (404, "agent_not_found")


async def test_a_program_without_an_origin_opens_a_session_where_every_site_may(
    site: Site, shop: Site
) -> None:
    visitor = await visit(site, None)
    assert claims_in(visitor.token)["origin"] == ""
    assert (await visitor.call()).status_code == 200
    assert error_of(await open_session(shop, None)) == (403, "origin_not_allowed")


async def test_opening_a_session_stores_no_conversation(shop: Site) -> None:
    await visit(shop)
    page = await shop.talk.client.get(f"{shop.talk.path}/conversations")
    assert page.json()["data"] == []


async def test_a_visitor_sees_the_newest_hundred_messages(talk: Talker, site: Site) -> None:
    visitor = await visit(site)
    conversation_id = (await visitor.say("First"))["conversation_id"]
    sql = """
        INSERT INTO conversation_entries
            (tenant_id, agent_id, conversation_id, id, type, role, content)
        SELECT tenant_id, agent_id, id, id || n, 'message', 'user', 'number ' || n
        FROM conversations, generate_series(1, 120) n WHERE id = $1 ORDER BY n
    """
    await run_sql(talk.world.services, sql, conversation_id)
    contents = [message["content"] for message in (await visitor.load())["messages"]]
    assert contents == [f"number {number}" for number in range(21, 121)]


async def test_the_routes_that_take_visitor_tokens_are_documented(anonymous: Client) -> None:
    document = (await anonymous.get("/openapi.json")).json()
    with_tokens = {
        f"{method.upper()} {path.partition('{agent_id}/')[2]}": operation["security"]
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if {"visitor_token": []} in operation.get("security", [])
    }
    assert set(with_tokens) == set(TOKEN_ROUTES)
    for route in TOKEN_ONLY_ROUTES:
        assert with_tokens.pop(route) == [{"visitor_token": []}]
    assert all({"embed_key": []} in schemes for schemes in with_tokens.values())


async def test_a_site_may_choose_ids_that_look_like_those_of_its_customers(site: Site) -> None:
    for session_id in ("usr_42", "usr_" + "z" * 32, "usr_" + "a" * 33):
        await site.say(session_id=session_id)
