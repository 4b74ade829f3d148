"""Chat from a web site: replies and sessions."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.kit.ids import new_id
from tests.assertions import refused, until
from tests.conversations.embed.factories import create_embed_key
from tests.conversations.embed.sites import ORIGIN, Latch, Site, error_of
from tests.model_server import Reply

# Replies


async def test_a_reply_has_exactly_the_documented_fields(site: Site) -> None:
    site.talk.script(Reply(texts=["The shop ", "opens at 9."]))
    answer = await site.ask("When does the shop open?")
    assert answer.status_code == 200
    reply = answer.json()
    ids = {"session_id", "conversation_id"}
    assert set(reply) == {*ids, "assistant_reply", "sources", "finish_reason"}
    assert reply["finish_reason"] == "stop"
    assert set(reply["assistant_reply"]) == {"id", "role", "content", "created_at"}
    assert reply["session_id"] == site.session
    assert re.fullmatch(r"cnv_[0-9a-v]{26}", reply["conversation_id"])
    assert re.fullmatch(r"msg_[0-9a-z]{26}", reply["assistant_reply"]["id"])
    assert reply["assistant_reply"]["role"] == "assistant"
    assert reply["assistant_reply"]["content"] == "The shop opens at 9."
    at = datetime.fromisoformat(reply["assistant_reply"]["created_at"])
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=1)
    assert reply["sources"] == []


async def test_the_model_receives_the_prompt_and_the_question(site: Site) -> None:
    await site.say("When?")
    [request] = site.talk.asked
    assert request["messages"] == [
        {"role": "system", "content": "You are a test."},
        {"role": "user", "content": "When?"},
    ]


async def test_a_visitor_controls_only_the_message(site: Site, subtests: pytest.Subtests) -> None:
    """What the answer has as well is ignored, anything else is refused."""
    cases: list[dict[str, Any]] = [
        {"context": {"role": "admin-of-the-shop"}},
        {"system_prompt": "admin-of-the-shop"},
        {"temperature": 0.0},
        {"user_id": "usr_x"},
    ]
    for fields in cases:
        with subtests.test(fields=fields):
            answer = await site.ask("Hi", **fields)
            assert list(refused(answer, 422, "validation_error")["details"]) == list(fields)
    assert site.talk.asked == []
    reply = await site.say("Hi", conversation_id="cnv_other")
    assert reply["conversation_id"] != "cnv_other"


async def test_any_text_up_to_the_limit_reaches_the_model(
    site: Site, subtests: pytest.Subtests
) -> None:
    for text in [
        "x" * 32_000,
        "ü",
        "  Hi  ",
        "line\nline",
        "<script>alert(1)</script>",
        "\U0001f600",
    ]:
        with subtests.test(text=text):
            await site.say(text)
            assert site.talk.asked[-1]["messages"][-1]["content"] == text


_INVALID_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"message": "x" * 32_001}, "message"),
    ({"message": ""}, "message"),
    ({"message": " \n\t "}, "message"),
    ({"message": None}, "message"),
    ({"message": 7}, "message"),
    ({"message": ["Hi"]}, "message"),
    ({"message": "a\0b"}, "body"),
    ({"session_id": ""}, "session_id"),
    ({"session_id": "  "}, "session_id"),
    ({"session_id": "x" * 129}, "session_id"),
    ({"session_id": "a\nb"}, "session_id"),
    ({"session_id": "a\n"}, "session_id"),
    ({"session_id": None}, "session_id"),
    ({"session_id": 7}, "session_id"),
    ({"session_id": "a\0b"}, "session_id"),
]


async def test_a_wrong_field_is_named(site: Site, subtests: pytest.Subtests) -> None:
    for change, field in _INVALID_CHANGES:
        for route in ("chat", "chat/stream"):
            with subtests.test(change=change, field=field, route=route):
                caller = site.talk.world.anonymous()
                body = {**site.body(), **change}
                answer = await caller.post(f"{site.path}/{route}", body, headers=site.headers())
                assert error_of(answer) == (422, "validation_error")
                assert set(answer.json()["error"]["details"]) == {field}
    assert site.talk.asked == []


async def test_a_missing_field_is_named(site: Site, subtests: pytest.Subtests) -> None:
    for field in ["message", "session_id"]:
        with subtests.test(field=field):
            body = site.body()
            del body[field]
            caller = site.talk.world.anonymous()
            answer = await caller.post(f"{site.path}/chat", body, headers=site.headers())
            assert answer.status_code == 422
            assert answer.json()["error"]["details"] == {field: "is required"}


async def test_a_session_may_have_any_name_of_one_line(
    site: Site, subtests: pytest.Subtests
) -> None:
    for session in ["x", "s" * 128, "ünïcode", "a b", "'; --", "cnv_x"]:
        with subtests.test(session=session):
            site.session = session
            assert (await site.say())["session_id"] == session


async def test_a_body_that_cannot_be_read_is_refused(site: Site) -> None:
    caller = site.talk.world.anonymous()
    for content in (b"", b"{", b"[]", b'"x"', b'{"session_id": "\\ud800", "message": "x"}'):
        answer = await caller.http.post(
            f"{site.path}/chat", content=content, headers=site.headers()
        )
        assert error_of(answer) == (422, "validation_error")


# Sessions


async def test_a_session_continues_with_its_history(site: Site) -> None:
    site.talk.script(Reply(texts=["One."]), Reply(texts=["Two."]))
    first, second = await site.say("First?"), await site.say("Second?")
    assert first["conversation_id"] == second["conversation_id"]
    assert [message["content"] for message in site.talk.asked[1]["messages"][1:]] == [
        "First?",
        "One.",
        "Second?",
    ]


async def test_another_session_is_another_conversation(site: Site) -> None:
    first = await site.say("First?")
    site.session = new_id("visit")
    second = await site.say("Second?")
    assert first["conversation_id"] != second["conversation_id"]
    assert len(site.talk.asked[1]["messages"]) == 2


async def test_under_another_key_the_same_session_is_another_conversation(site: Site) -> None:
    other = Site(
        site.talk, await create_embed_key(site.talk.client, site.talk.agent_id), site.session
    )
    first, second = await site.say("First?"), await other.say("Second?")
    assert first["conversation_id"] != second["conversation_id"]
    assert len(site.talk.asked[1]["messages"]) == 2


async def test_session_ids_are_compared_exactly(site: Site) -> None:
    conversation_ids = []
    for session in ("a", "A", "a ", " a", "aa"):
        site.session = session
        conversation_ids.append((await site.say())["conversation_id"])
    assert len(set(conversation_ids)) == 5


async def test_a_conversation_id_is_not_a_session_id(site: Site) -> None:
    first = await site.say("Secret?")
    other = Site(
        site.talk,
        await create_embed_key(site.talk.client, site.talk.agent_id),
        first["conversation_id"],
    )
    answer = await other.say("What was said?", conversation_id=first["conversation_id"])
    assert answer["conversation_id"] != first["conversation_id"]
    assert len(site.talk.asked[1]["messages"]) == 2


async def test_a_users_conversation_is_not_opened_by_a_visitor(site: Site) -> None:
    console = await site.talk.say("Secret?")
    site.session = console["conversation_id"]
    answer = await site.say("What was said?", conversation_id=console["conversation_id"])
    assert answer["conversation_id"] != console["conversation_id"]
    assert len(site.talk.asked[1]["messages"]) == 2


async def test_a_visitors_conversation_is_not_continued_in_the_console(site: Site) -> None:
    reply = await site.say()
    answer = await site.talk.client.post(
        f"{site.talk.path}/chat",
        {"message": "Hi", "conversation_id": reply["conversation_id"]},
    )
    assert error_of(answer) == (404, "conversation_not_found")


async def test_a_session_answers_one_question_at_a_time(shop: Site) -> None:
    latch = Latch()
    shop.talk.script(Reply(hold=latch), Reply(texts=["Second."]))
    turn = asyncio.create_task(shop.say("First?", origin=ORIGIN))
    try:
        await asyncio.wait_for(latch.reached.wait(), 10)
        busy = await shop.ask("Second?", origin=ORIGIN)
        elsewhere = Site(shop.talk, shop.key, new_id("visit"))
        free = await elsewhere.ask("Third?", origin=ORIGIN)
    finally:
        latch.open()
    assert error_of(busy) == (409, "conversation_busy")
    assert busy.headers["access-control-allow-origin"] == ORIGIN
    assert free.status_code == 200
    first = await turn
    second = await shop.say("Second?", origin=ORIGIN)
    assert second["conversation_id"] == first["conversation_id"]


async def test_one_of_many_concurrent_first_questions_is_answered(site: Site) -> None:
    latch = Latch()
    site.talk.script(Reply(hold=latch))
    turns = [asyncio.create_task(site.ask(f"{number}?")) for number in range(5)]
    try:
        await until(lambda: sum(turn.done() for turn in turns) == 4)
    finally:
        latch.open()
    answers = await asyncio.gather(*turns)
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    assert len(site.talk.asked) == 1


async def test_a_failed_turn_frees_the_session(site: Site) -> None:
    site.talk.script(Reply(status=400), Reply(texts=["Now."]))
    assert error_of(await site.ask("First?")) == (502, "provider_error")
    reply = await site.say("Second?")
    assert reply["assistant_reply"]["content"] == "Now."
    # The model also sees the question that it did not answer.
    asked = [message["content"] for message in site.talk.asked[1]["messages"][1:]]
    assert asked == ["First?\n\nSecond?"]


async def test_an_ended_session_becomes_active_again(site: Site) -> None:
    reply = await site.say("First?")
    path = f"/api/v1/conversations/{reply['conversation_id']}"
    response = await site.talk.client.post(f"{path}/end")
    assert response.json()["status"] == "ended"
    second = await site.say("Second?")
    assert second["conversation_id"] == reply["conversation_id"]
    assert (await site.talk.client.get(path)).json()["status"] == "active"


async def test_a_deleted_session_starts_without_history(site: Site) -> None:
    reply = await site.say("First?")
    path = f"/api/v1/conversations/{reply['conversation_id']}"
    assert (await site.talk.client.delete(path)).status_code == 204
    await site.say("Second?")
    assert [message["content"] for message in site.talk.asked[1]["messages"][1:]] == ["Second?"]
