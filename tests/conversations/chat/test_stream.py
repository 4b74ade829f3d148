"""Streamed chat: its events, and refusals before it starts."""

import asyncio
import json
from itertools import groupby

import pytest

from tests.agents.llm.answers import StepHold
from tests.conversations.chat.conversation_helpers import list_messages
from tests.conversations.chat.delegation_scripts import add_sub_agent
from tests.conversations.chat.stream_helpers import (
    SilentModel,
    connect,
    conversation_of,
    create_silent_agent,
    encode_delta,
    open_stream,
    post_stream,
    stream_chat,
)
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, events_in, names_of, talker, texts_of
from tests.server import Server
from tests.world import Client, World


async def test_a_stream_has_start_deltas_and_stop_in_order(talk: Talker, server: Server) -> None:
    hold = StepHold()
    talk.script(Reply(texts=["The shop ", "opens", " at 9."], hold=hold, usage=(40, 8)))
    events = []
    async with open_stream(server, talk) as stream:
        async for event in stream:
            events.append(event)
            hold.release()
    start, *deltas, stop = events
    assert start[0] == "message_start"
    assert set(start[1]) == {"conversation_id", "message_id"}
    assert start[1]["conversation_id"].startswith("cnv_")
    assert start[1]["message_id"].startswith("msg_")
    assert deltas == [
        ("content_delta", {"delta": "The shop "}),
        ("content_delta", {"delta": "opens"}),
        ("content_delta", {"delta": " at 9."}),
    ]
    assert stop[0] == "message_stop"
    assert stop[1]["usage"] == {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}
    assert stop[1]["message_id"] == start[1]["message_id"]
    assert stop[1]["sources"] == []


async def test_a_streamed_turn_is_stored(talk: Talker, server: Server) -> None:
    events = await stream_chat(server, talk)
    messages = await list_messages(talk, conversation_of(events))
    assert [(item["role"], item["content"], item["status"]) for item in messages] == [
        ("user", "Hi", "complete"),
        ("assistant", "Hello there", "complete"),
    ]
    assert messages[1]["id"] == events[0][1]["message_id"]


async def test_a_stream_continues_a_conversation(talk: Talker, server: Server) -> None:
    first = await talk.say("One")
    events = await stream_chat(
        server, talk, "Two", conversation_id=first["conversation_id"], context={"plan": "gold"}
    )
    assert conversation_of(events) == first["conversation_id"]
    messages = talk.asked[1]["messages"]
    assert '{"plan":"gold"}' in messages[0]["content"]
    assert [item["content"] for item in messages[1:]] == ["One", "Hello there", "Two"]
    assert talk.asked[1]["stream"] is True


async def test_the_answer_is_an_event_stream_that_no_proxy_buffers(
    talk: Talker, server: Server
) -> None:
    answer = await post_stream(server, talk, {"message": "Hi"})
    assert answer.headers["content-type"].split(";")[0] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-request-id"]
    assert answer.headers["x-correlation-id"]
    assert answer.headers["x-ratelimit-limit"]
    assert "content-length" not in answer.headers


async def test_each_event_is_one_name_and_one_line_of_json(talk: Talker, server: Server) -> None:
    texts = ["two\nlines", "\r\n", "data: no\n\nevent: forged\ndata: {}\n\n", "ä🦜", "\t"]
    talk.script(Reply(texts=texts))
    answer = await post_stream(server, talk, {"message": "Hi"})
    blocks = answer.content.decode().split("\n\n")
    assert blocks.pop() == ""
    for block in blocks:
        name, data = block.split("\n")
        assert name.startswith("event: ")
        assert json.loads(data.removeprefix("data: "))
    events = events_in(answer.text)
    assert names_of(events) == ["message_start", "content_delta", "message_stop"]
    assert texts_of(events) == "".join(texts)


async def test_deltas_are_sent_as_they_arrive(talk: Talker, server: Server) -> None:
    """Each delta is read before the model sends the next one."""
    hold = StepHold()
    talk.script(Reply(texts=["one", "two", "three"], hold=hold))
    async with asyncio.timeout(10), open_stream(server, talk) as events:
        assert (await anext(events))[0] == "message_start"
        for word in ("one", "two", "three"):
            hold.release()
            assert await anext(events) == ("content_delta", {"delta": word})
        assert (await anext(events))[0] == "message_stop"


async def test_a_stream_has_tool_calls_and_their_results(talk: Talker, server: Server) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(texts=["It opens at 9."], usage=(100, 10)))
    call = ("delegate_to_helper", {"task": "Find the hours"})
    talk.script(
        Reply(texts=["Let me ask."], calls=[call], usage=(5, 1)),
        Reply(texts=["At 9."], usage=(7, 2)),
    )
    events = await stream_chat(server, talk)
    assert [name for name, _ in groupby(name for name, _ in events)] == [
        "message_start",
        "content_delta",
        "tool_use",
        "tool_result",
        "content_delta",
        "message_stop",
    ]
    use, result = (data for name, data in events if name.startswith("tool_"))
    common = {"id": use["id"], "tool": "Helper", "tool_id": helper.agent_id, "parent_id": None}
    assert use == {**common, "input": {"task": "Find the hours"}}
    assert result.pop("execution_time_ms") >= 0
    assert result == {**common, "output": "It opens at 9.", "status": "completed"}
    assert texts_of(events) == "Let me ask.\n\nAt 9."
    assert events[-1][1]["usage"] == {
        "prompt_tokens": 112,
        "completion_tokens": 13,
        "total_tokens": 125,
    }
    message = (await list_messages(talk, conversation_of(events)))[1]
    assert message["content"] == texts_of(events)
    assert [item["id"] for item in message["tool_calls"]] == [use["id"]]


async def test_a_failed_call_has_a_tool_result(talk: Talker, server: Server) -> None:
    await talk.with_helper()
    talk.script(Reply(texts=[], calls=[("no_such", {"a": 1})]), Reply(texts=["Sorry"]))
    events = await stream_chat(server, talk)
    names = ["message_start", "tool_use", "tool_result", "content_delta", "message_stop"]
    assert [name for name, _ in events] == names
    assert events[1][1]["tool"] == events[2][1]["tool"] == "no_such"
    assert events[2][1]["status"] == "failed"
    assert events[2][1]["output"] == {"error": "there is no tool no_such"}


async def test_parallel_calls_have_a_use_and_a_result_each(talk: Talker, server: Server) -> None:
    await talk.with_helper()
    calls = [("delegate_to_helper", {"task": str(number)}) for number in range(4)]
    talk.script(Reply(texts=[], calls=calls), Reply(texts=["Done"]))
    events = await stream_chat(server, talk)
    used = [data for name, data in events if name == "tool_use"]
    results = [data for name, data in events if name == "tool_result"]
    assert [data["input"]["task"] for data in used] == ["0", "1", "2", "3"]
    assert sorted(data["id"] for data in results) == sorted(data["id"] for data in used)


async def test_calls_of_a_sub_agent_have_the_id_of_their_parent_call(
    talk: Talker, server: Server
) -> None:
    helper = await talk.with_helper()
    await add_sub_agent(helper, "Deep")
    helper.script(Reply(texts=[], calls=[("delegate_to_deep", {"task": "dig"})]), Reply())
    talk.script(Reply(texts=[], calls=[("delegate_to_helper", {"task": "x"})]), Reply())
    events = await stream_chat(server, talk)
    used = [data for name, data in events if name == "tool_use"]
    assert [data["tool"] for data in used] == ["Helper", "Deep"]
    assert used[1]["parent_id"] == used[0]["id"]
    order = [(name, data["tool"]) for name, data in events if name.startswith("tool_")]
    assert order == [
        ("tool_use", "Helper"),
        ("tool_use", "Deep"),
        ("tool_result", "Deep"),
        ("tool_result", "Helper"),
    ]


async def test_many_deltas_in_one_packet_are_all_sent(
    talk: Talker, server: Server, silent_model: SilentModel
) -> None:
    deltas = b"".join(encode_delta(f"{number} ") for number in range(500))
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    silent_model.response = deltas + end
    agent = await create_silent_agent(talk, silent_model)
    events = await stream_chat(server, agent)
    assert texts_of(events) == "".join(f"{number} " for number in range(500))
    assert names_of(events) == ["message_start", "content_delta", "message_stop"]


async def test_a_whole_answer_of_the_model_is_streamed(talk: Talker, server: Server) -> None:
    raw = b'{"choices": [{"message": {"content": "All at once"}, "finish_reason": "stop"}]}'
    talk.script(Reply(raw=raw))
    events = await stream_chat(server, talk)
    assert texts_of(events) == "All at once"
    assert events[-1][0] == "message_stop"


async def test_a_refusal_before_the_stream_is_a_json_answer(
    world: World, models: ModelServer, server: Server, subtests: pytest.Subtests
) -> None:
    for body, status, code in (
        ({}, 422, "validation_error"),
        ({"message": " "}, 422, "validation_error"),
        ({"message": "Hi", "conversation_id": "cnv_none"}, 404, "conversation_not_found"),
    ):
        with subtests.test(body=body, status=status, code=code):
            talk = await talker(world, models)
            answer = await post_stream(server, talk, body)
            assert answer.status_code == status
            assert answer.headers["content-type"] == "application/json"
            assert answer.json()["error"]["code"] == code
            assert talk.asked == []


async def test_an_archived_agent_is_refused_before_the_stream(talk: Talker, server: Server) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    answer = await post_stream(server, talk, {"message": "Hi"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "agent_archived"


async def test_streaming_needs_the_permission_to_chat(
    models: ModelServer, server: Server, world: World, subtests: pytest.Subtests
) -> None:
    for role, status in (("viewer", 403), ("agent_user", 200)):
        with subtests.test(role=role, status=status):
            talk = await talker(world, models)
            user = await world.user(role, talk.client.tenant_id)
            answer = await post_stream(server, talk, {"message": "Hi"}, user)
            assert answer.status_code == status


async def test_a_stream_needs_a_sign_in(talk: Talker, server: Server, anonymous: Client) -> None:
    answer = await post_stream(server, talk, {"message": "Hi"}, anonymous)
    assert answer.status_code == 401


async def test_a_second_stream_of_the_conversation_is_refused_until_the_first_ends(
    talk: Talker, server: Server
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    async with connect(server, talk.client) as remote, open_stream(server, talk) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        body = {"message": "Me too", "conversation_id": conversation_id}
        answer = await remote.post(f"{talk.path}/chat/stream", json=body)
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "conversation_busy"
        hold.set()
        assert [event async for event in events][-1][0] == "message_stop"
        assert (await remote.post(f"{talk.path}/chat/stream", json=body)).status_code == 200
