"""Chat from a web site over a real socket."""

import asyncio

from tests.conversations.embed.sites import (
    NO_CORS,
    ORIGIN,
    PREFLIGHT_HEADERS,
    Latch,
    Site,
    assert_preflight_allowed,
    connect,
    cors_headers,
    error_of,
    stream_chat,
)
from tests.model_server import Reply
from tests.scripted_agents import events_in, names_of, texts_of
from tests.server import Server


async def test_a_preflight_and_its_request_work_over_a_socket(server: Server, shop: Site) -> None:
    async with connect(server) as client:
        path = f"{shop.path}/chat"
        headers = {"origin": ORIGIN, **PREFLIGHT_HEADERS}
        assert_preflight_allowed(await client.options(path, headers=headers), ORIGIN)
        answer = await client.post(path, json=shop.body(), headers=shop.headers(ORIGIN))
        assert answer.status_code == 200, answer.text
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        refused = await client.options(path, headers={**headers, "origin": "https://evil.com"})
        assert error_of(refused) == (403, "origin_not_allowed")
        assert cors_headers(refused) == NO_CORS
        foreign_headers = shop.headers("https://evil.com")
        answer = await client.post(path, json=shop.body(), headers=foreign_headers)
        assert error_of(answer) == (403, "origin_not_allowed")
        assert cors_headers(answer) == NO_CORS


async def test_a_stream_sends_the_reply_in_order(server: Server, shop: Site) -> None:
    shop.talk.script(Reply(texts=["The ", "shop ", "opens."], usage=(40, 8)))
    answer, events = await stream_chat(server, shop, origin=ORIGIN)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["cache-control"] == "no-store"
    assert names_of(events) == ["message_start", "content_delta", "message_stop"]
    assert texts_of(events) == "The shop opens."
    start, stop = events[0][1], events[-1][1]
    assert set(start) == {"conversation_id", "message_id"}
    assert stop["message_id"] == start["message_id"]
    assert stop["usage"] == {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}


async def test_stream_and_chat_are_one_session(server: Server, site: Site) -> None:
    site.talk.script(Reply(texts=["One."]), Reply(texts=["Two."]))
    _, events = await stream_chat(server, site, "First?")
    second = await site.say("Second?")
    assert second["conversation_id"] == events[0][1]["conversation_id"]
    assert [message["content"] for message in site.talk.asked[1]["messages"][1:]] == [
        "First?",
        "One.",
        "Second?",
    ]


async def test_text_arrives_before_the_reply_is_complete(server: Server, site: Site) -> None:
    latch = Latch(first=1)
    site.talk.script(Reply(texts=["Early", " late"], hold=latch))
    try:
        async with (
            connect(server) as client,
            client.stream(
                "POST", f"{site.path}/chat/stream", json=site.body(), headers=site.headers()
            ) as answer,
        ):
            received = ""
            async for text in answer.aiter_text():
                received += text
                if "Early" in received:
                    latch.open()
    finally:
        latch.open()
    assert texts_of(events_in(received)) == "Early late"


async def test_a_refused_stream_is_a_json_answer(server: Server, shop: Site) -> None:
    answer, _ = await stream_chat(server, shop, origin="https://evil.com")
    assert error_of(answer) == (403, "origin_not_allowed")
    assert answer.headers["content-type"].startswith("application/json")
    shop.key = {**shop.key, "api_key": "emb_wrong"}
    answer, _ = await stream_chat(server, shop, origin=ORIGIN)
    assert error_of(answer) == (401, "unauthorized")


async def test_a_stream_of_a_busy_session_is_refused_with_a_json_answer(
    server: Server, site: Site
) -> None:
    latch = Latch()
    site.talk.script(Reply(hold=latch))
    turn = asyncio.create_task(site.say("First?"))
    try:
        await asyncio.wait_for(latch.reached.wait(), 10)
        answer, _ = await stream_chat(server, site, "Second?")
    finally:
        latch.open()
    assert error_of(answer) == (409, "conversation_busy")
    await turn


async def test_a_model_that_refuses_decides_the_status_of_the_stream(
    server: Server, site: Site
) -> None:
    site.talk.script(Reply(status=400, message="no such thing"))
    answer, _ = await stream_chat(server, site)
    assert error_of(answer) == (502, "provider_error")
    # Another answer can take the place of the failed one.
    assert set(answer.json()["error"]["details"]) == {"message_id"}
    assert site.api_key not in answer.text
    assert "sk-scripted" not in answer.text


async def test_a_failure_in_the_middle_stores_the_text_before_it(
    server: Server, site: Site
) -> None:
    site.talk.script(Reply(texts=["Half", " lost"], error_after=1), Reply(texts=["Whole."]))
    _, events = await stream_chat(server, site, "First?")
    assert [name for name, _ in events] == ["message_start", "content_delta", "error"]
    path = f"/api/v1/conversations/{events[0][1]['conversation_id']}/messages"
    messages = (await site.talk.client.get(path)).json()["data"]
    assert [(entry["content"], entry["status"]) for entry in messages] == [
        ("First?", "complete"),
        ("Half", "failed"),
    ]
    assert (await site.say("Second?"))["assistant_reply"]["content"] == "Whole."


async def test_a_disconnect_ends_the_turn_and_stores_the_partial_answer(
    server: Server, site: Site
) -> None:
    latch = Latch(first=1)
    site.talk.script(Reply(texts=["Half", " lost"], hold=latch), Reply(texts=["Whole."]))
    received = ""
    try:
        async with (
            connect(server) as client,
            client.stream(
                "POST", f"{site.path}/chat/stream", json=site.body("First?"), headers=site.headers()
            ) as answer,
        ):
            async for text in answer.aiter_text():
                received += text
                if "Half" in received:
                    break
        conversation = events_in(received)[0][1]["conversation_id"]
        path = f"/api/v1/conversations/{conversation}/messages"

        async with asyncio.timeout(10):
            while not (messages := (await site.talk.client.get(path)).json()["data"]):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert [(entry["content"], entry["status"]) for entry in messages] == [
            ("First?", "complete"),
            ("Half", "interrupted"),
        ]
    finally:
        latch.open()
    # The session is free, and the model receives its partial answer.
    assert (await site.say("Second?"))["conversation_id"] == conversation
    assert [message["content"] for message in site.talk.asked[1]["messages"][1:]] == [
        "First?",
        "Half",
        "Second?",
    ]
