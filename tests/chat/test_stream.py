"""POST /api/v1/agents/:id/chat/stream, over a real socket to a process of its own."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from typing import Any

import httpx
import pytest

from app.http import sse
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import until
from tests.model_server import Reply
from tests.server import Server
from tests.talk import Talker, events_in, names_of, texts_of
from tests.world import Client, World

GONE_SECONDS = 2.0


@asynccontextmanager
async def _remote(server: Server, who: Client) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {who.token}"} if who.token else {}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=server.url, headers=headers, timeout=30, limits=limits
    ) as made:
        yield made


async def _stream(
    server: Server, talk: Talker, message: str = "Hi", **more: Any
) -> list[tuple[str, Any]]:
    async with _remote(server, talk.client) as remote:
        body = {"message": message, **more}
        answer = await remote.post(f"{talk.path}/chat/stream", json=body)
    assert answer.status_code == 200, answer.text
    return events_in(answer.text)


@asynccontextmanager
async def _reading(
    server: Server, talk: Talker, **more: Any
) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
    """The events of a stream one by one. Leaving closes the connection."""
    async with (
        _remote(server, talk.client) as remote,
        remote.stream("POST", f"{talk.path}/chat/stream", json={"message": "Hi", **more}) as answer,
    ):
        assert answer.status_code == 200
        yield _events_of(answer)


async def _events_of(answer: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    rest = ""
    async for text in answer.aiter_text():
        *whole, rest = (rest + text).split("\n\n")
        for block in whole:
            for found in events_in(block + "\n\n"):
                yield found


async def _messages(talk: Talker, conversation_id: str) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"/api/v1/conversations/{conversation_id}/messages")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def _kept(talk: Talker, conversation_id: str, messages: int) -> list[dict[str, Any]]:
    """The messages, once there are so many; the web process keeps them a moment after the end."""
    async with asyncio.timeout(5):
        found = await _messages(talk, conversation_id)
        while len(found) < messages:
            await asyncio.sleep(0.01)
            found = await _messages(talk, conversation_id)
    return found


async def _free(talk: Talker, conversation_id: str, services: Services) -> None:
    """Wait for nobody to hold the conversation; the web process lets go of it by itself."""
    held = "SELECT turn_until IS NOT NULL FROM conversations WHERE id = $1"
    async with asyncio.timeout(5):
        while True:
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                if not await (await tx.raw()).fetchval(held, conversation_id):
                    break
            await asyncio.sleep(0.01)
    talk.script(Reply(texts=["Free"]))
    again = await talk.say("And now?", conversation_id=conversation_id)
    assert again["message"]["content"] == "Free"


def _first(events: list[tuple[str, Any]]) -> str:
    assert events[0][0] == "message_start"
    conversation_id: str = events[0][1]["conversation_id"]
    return conversation_id


class SilentModel:
    """Takes questions, says some bytes or none, and notes when the asker hangs up."""

    def __init__(self, said: bytes = b"") -> None:
        self.said = said
        self.open = 0
        self.asked = 0
        self.url = ""
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            self.asked += 1
            self.open += 1
            try:
                if self.said:
                    writer.write(
                        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + self.said
                    )
                    await writer.drain()
                await reader.read()
            finally:
                self.open -= 1
        writer.close()

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


def delta(text: str) -> bytes:
    chunk = {"choices": [{"delta": {"content": text}, "finish_reason": None}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


@pytest.fixture
async def silent() -> AsyncIterator[SilentModel]:
    made = SilentModel()
    await made.start()
    yield made
    await made.close()


async def on_silent(talk: Talker, silent: SilentModel, **fields: Any) -> Talker:
    """An agent of the same user whose model is the silent one."""
    key = {"provider": "silent", "name": "S", "api_key": "sk-silent-1", "base_url": silent.url}
    answer = await talk.client.post("/api/v1/api-keys", key)
    assert answer.status_code == 201, answer.text
    return await talk.agent(primary_model="silent/model", **fields)


# What a stream says


async def test_a_stream_says_start_deltas_and_stop_in_order(talk: Talker, server: Server) -> None:
    talk.script(Reply(texts=["The shop ", "opens", " at 9."], delay=0.05, usage=(40, 8)))
    events = await _stream(server, talk, "When does the shop open?")
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


async def test_a_stream_is_kept_like_any_other_turn(talk: Talker, server: Server) -> None:
    events = await _stream(server, talk)
    kept = await _messages(talk, _first(events))
    assert [(item["role"], item["content"], item["status"]) for item in kept] == [
        ("user", "Hi", "complete"),
        ("assistant", "Hello there", "complete"),
    ]
    assert kept[1]["id"] == events[0][1]["message_id"]


async def test_a_stream_goes_on_with_a_conversation(talk: Talker, server: Server) -> None:
    first = await talk.say("One")
    events = await _stream(
        server, talk, "Two", conversation_id=first["conversation_id"], context={"plan": "gold"}
    )
    assert _first(events) == first["conversation_id"]
    told = talk.asked[1]["messages"]
    assert '{"plan":"gold"}' in told[0]["content"]
    assert [item["content"] for item in told[1:]] == ["One", "Hello there", "Two"]
    assert talk.asked[1]["stream"] is True


async def test_the_answer_is_an_event_stream_that_no_proxy_keeps(
    talk: Talker, server: Server
) -> None:
    async with _remote(server, talk.client) as remote:
        answer = await remote.post(f"{talk.path}/chat/stream", json={"message": "Hi"})
    assert answer.headers["content-type"].split(";")[0] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-request-id"]
    assert answer.headers["x-correlation-id"]
    assert answer.headers["x-ratelimit-limit"]
    assert "content-length" not in answer.headers


async def test_each_event_is_one_name_and_one_line_of_json(talk: Talker, server: Server) -> None:
    said = ["two\nlines", "\r\n", "data: no\n\nevent: forged\ndata: {}\n\n", "ä🦜", "\t"]
    talk.script(Reply(texts=said))
    async with _remote(server, talk.client) as remote:
        answer = await remote.post(f"{talk.path}/chat/stream", json={"message": "Hi"})
    blocks = answer.content.decode().split("\n\n")
    assert blocks.pop() == ""
    for block in blocks:
        name, data = block.split("\n")
        assert name.startswith("event: ")
        assert json.loads(data.removeprefix("data: "))
    events = events_in(answer.text)
    assert names_of(events) == ["message_start", "content_delta", "message_stop"]
    assert texts_of(events) == "".join(said)


async def test_deltas_go_out_as_they_come(talk: Talker, server: Server) -> None:
    """Each is read while the model still waits to say the next."""
    steps = [asyncio.Event() for _ in range(3)]

    class Turns:
        def __init__(self) -> None:
            self._left = list(steps)

        async def wait(self) -> None:
            await self._left.pop(0).wait()

    talk.script(Reply(texts=["one", "two", "three"], hold=Turns()))
    async with asyncio.timeout(10), _reading(server, talk) as events:
        assert (await anext(events))[0] == "message_start"
        for step, word in zip(steps, ["one", "two", "three"], strict=True):
            step.set()
            assert await anext(events) == ("content_delta", {"delta": word})
        assert (await anext(events))[0] == "message_stop"


async def test_tool_calls_are_told_as_they_happen(talk: Talker, server: Server) -> None:
    helper = await talk.with_helper()
    helper.script(Reply(texts=["It opens at 9."], usage=(100, 10)))
    call = ("delegate_to_helper", {"task": "Find the hours"})
    talk.script(
        Reply(texts=["Let me ask."], calls=[call], usage=(5, 1)),
        Reply(texts=["At 9."], usage=(7, 2)),
    )
    events = await _stream(server, talk)
    assert [name for name, _ in groupby(name for name, _ in events)] == [
        "message_start",
        "content_delta",
        "tool_use",
        "tool_result",
        "content_delta",
        "message_stop",
    ]
    used, result = (data for name, data in events if name.startswith("tool_"))
    common = {"id": used["id"], "tool": "Helper", "tool_id": helper.agent_id, "parent_id": None}
    assert used == {**common, "input": {"task": "Find the hours"}}
    assert result.pop("execution_time_ms") >= 0
    assert result == {**common, "output": "It opens at 9.", "status": "completed"}
    assert texts_of(events) == "Let me ask.\n\nAt 9."
    assert events[-1][1]["usage"] == {
        "prompt_tokens": 112,
        "completion_tokens": 13,
        "total_tokens": 125,
    }
    kept = (await _messages(talk, _first(events)))[1]
    assert kept["content"] == texts_of(events)
    assert [item["id"] for item in kept["tool_calls"]] == [used["id"]]


async def test_a_call_that_fails_is_told_as_its_result(talk: Talker, server: Server) -> None:
    await talk.with_helper()
    talk.script(Reply(texts=[], calls=[("no_such", {"a": 1})]), Reply(texts=["Sorry"]))
    events = await _stream(server, talk)
    names = ["message_start", "tool_use", "tool_result", "content_delta", "message_stop"]
    assert [name for name, _ in events] == names
    assert events[1][1]["tool"] == events[2][1]["tool"] == "no_such"
    assert events[2][1]["status"] == "failed"
    assert events[2][1]["output"] == {"error": "there is no tool no_such"}


async def test_calls_side_by_side_each_have_a_use_and_a_result(
    talk: Talker, server: Server
) -> None:
    await talk.with_helper()
    calls = [("delegate_to_helper", {"task": str(number)}) for number in range(4)]
    talk.script(Reply(texts=[], calls=calls), Reply(texts=["Done"]))
    events = await _stream(server, talk)
    used = [data for name, data in events if name == "tool_use"]
    results = [data for name, data in events if name == "tool_result"]
    assert [data["input"]["task"] for data in used] == ["0", "1", "2", "3"]
    assert sorted(data["id"] for data in results) == sorted(data["id"] for data in used)


async def test_steps_within_a_sub_agent_name_the_call_that_they_belong_to(
    talk: Talker, server: Server
) -> None:
    helper = await talk.with_helper()
    deep = await helper.agent("Deep")
    await talk.client.post(f"{helper.path}/sub-agents/attach", {"agent_id": deep.agent_id})
    helper.script(Reply(texts=[], calls=[("delegate_to_deep", {"task": "dig"})]), Reply())
    talk.script(Reply(texts=[], calls=[("delegate_to_helper", {"task": "x"})]), Reply())
    events = await _stream(server, talk)
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


async def test_many_deltas_in_one_packet_are_all_told(
    talk: Talker, server: Server, silent: SilentModel
) -> None:
    said = b"".join(delta(f"{number} ") for number in range(500))
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    silent.said = said + end
    mine = await on_silent(talk, silent)
    events = await _stream(server, mine)
    assert texts_of(events) == "".join(f"{number} " for number in range(500))
    assert names_of(events) == ["message_start", "content_delta", "message_stop"]


async def test_a_model_that_answers_whole_is_streamed_all_the_same(
    talk: Talker, server: Server
) -> None:
    raw = b'{"choices": [{"message": {"content": "All at once"}, "finish_reason": "stop"}]}'
    talk.script(Reply(raw=raw))
    events = await _stream(server, talk)
    assert texts_of(events) == "All at once"
    assert events[-1][0] == "message_stop"


# Refusals before it begins


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "validation_error"),
        ({"message": " "}, 422, "validation_error"),
        ({"message": "Hi", "conversation_id": "cnv_none"}, 404, "conversation_not_found"),
    ],
)
async def test_what_is_refused_before_the_stream_is_a_plain_answer(
    talk: Talker, server: Server, body: Any, status: int, code: str
) -> None:
    async with _remote(server, talk.client) as remote:
        answer = await remote.post(f"{talk.path}/chat/stream", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]["code"] == code
    assert talk.asked == []


async def test_an_archived_agent_is_refused_before_the_stream(talk: Talker, server: Server) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    async with _remote(server, talk.client) as remote:
        answer = await remote.post(f"{talk.path}/chat/stream", json={"message": "Hi"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "agent_archived"


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("agent_user", 200)])
async def test_streaming_needs_the_permission_to_chat(
    talk: Talker, server: Server, world: World, role: str, status: int
) -> None:
    user = await world.user(role, talk.client.tenant_id)
    async with _remote(server, user) as remote:
        answer = await remote.post(f"{talk.path}/chat/stream", json={"message": "Hi"})
    assert answer.status_code == status


async def test_a_stream_needs_a_sign_in(talk: Talker, server: Server, anonymous: Client) -> None:
    async with _remote(server, anonymous) as remote:
        answer = await remote.post(f"{talk.path}/chat/stream", json={"message": "Hi"})
    assert answer.status_code == 401


async def test_a_second_stream_of_the_conversation_is_refused_until_the_first_ends(
    talk: Talker, server: Server
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    async with _remote(server, talk.client) as remote, _reading(server, talk) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        body = {"message": "Me too", "conversation_id": conversation_id}
        answer = await remote.post(f"{talk.path}/chat/stream", json=body)
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "conversation_busy"
        hold.set()
        assert [event async for event in events][-1][0] == "message_stop"
        assert (await remote.post(f"{talk.path}/chat/stream", json=body)).status_code == 200


# Failures within


@pytest.mark.parametrize(
    ("status", "reason"), [(400, "refused"), (429, "rate_limited"), (503, "unavailable")]
)
async def test_a_model_that_refuses_ends_the_stream_with_an_error(
    talk: Talker, server: Server, services: Services, status: int, reason: str
) -> None:
    talk.script(Reply(status=status, message="not today", headers={"Retry-After": "0"}))
    events = await _stream(server, talk)
    assert [name for name, _ in events] == ["message_start", "error"]
    error = events[1][1]
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == "provider_error"
    assert "not today" in error["message"]
    assert error["details"]["reason"] == reason
    conversation_id = _first(events)
    assert await _messages(talk, conversation_id) == []
    await _free(talk, conversation_id, services)


async def test_a_conversation_whose_first_turn_failed_counts_once_it_has_a_reply(
    talk: Talker, server: Server
) -> None:
    talk.script(Reply(status=400), Reply())
    conversation_id = _first(await _stream(server, talk))
    await talk.say("Again", conversation_id=conversation_id)
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_messages"] == 2
    assert stats["total_conversations"] == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(texts=["One ", "two ", "three"], drop_after=2), "broken"),
        (Reply(texts=["One ", "two ", "three"], error_after=2, message="I fell"), "refused"),
    ],
)
async def test_a_model_that_breaks_off_leaves_what_it_said(
    talk: Talker, server: Server, services: Services, reply: Reply, reason: str
) -> None:
    talk.script(reply)
    events = await _stream(server, talk)
    assert names_of(events) == ["message_start", "content_delta", "error"]
    assert events[-1][1]["code"] == "provider_error"
    assert events[-1][1]["details"]["reason"] == reason
    kept = await _messages(talk, _first(events))
    assert [(item["role"], item["content"], item["status"]) for item in kept] == [
        ("user", "Hi", "complete"),
        ("assistant", "One two ", "interrupted"),
    ]
    # Half an answer is not asked for again behind the reader's back.
    assert len(talk.asked) == 1
    await _free(talk, _first(events), services)


async def test_half_a_reply_is_part_of_what_the_model_is_shown_next(
    talk: Talker, server: Server
) -> None:
    talk.script(Reply(texts=["Half", "lost"], drop_after=1), Reply())
    conversation_id = _first(await _stream(server, talk))
    await talk.say("Go on", conversation_id=conversation_id)
    assert [item["content"] for item in talk.asked[1]["messages"][1:]] == ["Hi", "Half", "Go on"]


async def _paid(services: Services, talk: Talker) -> list[tuple[int, int, int]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch(
            "SELECT turns, prompt_tokens, completion_tokens FROM usage WHERE agent_id = $1",
            talk.agent_id,
        )
    return [tuple(row) for row in rows]


async def test_half_a_reply_is_paid_for(talk: Talker, server: Server, services: Services) -> None:
    talk.script(Reply(texts=["Half of it", "lost"], drop_after=1))
    await _stream(server, talk)
    [(turns, prompt_tokens, completion_tokens)] = await _paid(services, talk)
    assert turns == 1
    assert prompt_tokens > 0
    assert completion_tokens > 0


async def test_leaving_early_does_not_make_an_answer_free(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["word "] * 1000, delay=0.02))
    conversation_id = await _leave(server, talk, "content_delta")
    await _kept(talk, conversation_id, 2)
    [(turns, prompt_tokens, completion_tokens)] = await _paid(services, talk)
    assert turns == 1
    assert prompt_tokens > 0
    assert completion_tokens > 0


# Readers that go


async def _leave(server: Server, talk: Talker, until: str, **more: Any) -> str:
    """Read until the first event of that name, then hang up; which conversation it was."""
    async with _reading(server, talk, **more) as events:
        name, data = await anext(events)
        conversation_id: str = data["conversation_id"]
        while name != until:
            name, data = await anext(events)
    return conversation_id


async def test_a_reader_who_goes_ends_the_models_answer_and_keeps_what_was_said(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["word "] * 1000, delay=0.02))
    closed = talk.models.closed_early
    conversation_id = await _leave(server, talk, "content_delta")
    await until(lambda: talk.models.closed_early > closed, GONE_SECONDS)
    kept = await _kept(talk, conversation_id, 2)
    assert [item["status"] for item in kept] == ["complete", "interrupted"]
    said = kept[1]["content"]
    assert said
    assert said == "word " * (len(said) // 5)
    assert len(said) < 5 * 200
    events = await talk.client.get(
        "/api/v1/event-log", params={"event_type": "agent.chat.message", "per_page": 1}
    )
    assert events.json()["data"][0]["data"]["status"] == "interrupted"
    await _free(talk, conversation_id, services)


async def test_a_model_that_is_silent_in_the_middle_is_hung_up_on_when_the_reader_goes(
    talk: Talker, server: Server, silent: SilentModel, services: Services
) -> None:
    silent.said = delta("Well, ")
    mine = await on_silent(talk, silent)
    started = time.monotonic()
    conversation_id = await _leave(server, mine, "content_delta")
    assert silent.asked == 1
    await until(lambda: silent.open == 0, GONE_SECONDS)
    assert time.monotonic() - started < GONE_SECONDS + 1
    kept = await _kept(mine, conversation_id, 2)
    assert (kept[1]["content"], kept[1]["status"]) == ("Well, ", "interrupted")


async def test_a_reader_who_goes_before_the_first_word_leaves_nothing_behind(
    talk: Talker, server: Server, silent: SilentModel, services: Services
) -> None:
    mine = await on_silent(talk, silent)
    async with _reading(server, mine) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        await until(lambda: silent.open == 1)
    await until(lambda: silent.open == 0, GONE_SECONDS)
    assert silent.asked == 1
    await mine.client.put(mine.path, {"primary_model": f"scripted/{talk.model}"})
    mine.model = talk.model
    await _free(mine, conversation_id, services)
    # Only what was asked and answered afterwards.
    assert len(await _messages(mine, conversation_id)) == 2


async def test_a_reader_who_goes_ends_a_delegated_task_as_well(
    talk: Talker, server: Server, silent: SilentModel, services: Services
) -> None:
    helper = await on_silent(talk, silent, name="Helper")
    await talk.client.post(f"{talk.path}/sub-agents/attach", {"agent_id": helper.agent_id})
    talk.script(Reply(texts=["Asking."], calls=[("delegate_to_helper", {"task": "x"})]))
    async with _reading(server, talk) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        await until(lambda: silent.open == 1)
    await until(lambda: silent.open == 0, GONE_SECONDS)
    kept = await _kept(talk, conversation_id, 2)
    assert (kept[1]["content"], kept[1]["status"]) == ("Asking.", "interrupted")
    assert [(call["tool"], call["status"]) for call in kept[1]["tool_calls"]] == [
        ("Helper", "failed")
    ]
    await _free(talk, conversation_id, services)


async def test_a_reader_who_goes_while_the_model_is_asked_again_ends_that_too(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(status=503, headers={"Retry-After": "9"}))
    async with _reading(server, talk) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        await until(lambda: len(talk.asked) == 1)
    await _free(talk, conversation_id, services)
    assert len(talk.asked) == 2


async def test_fifty_readers_who_go_at_once_leave_no_conversation_held(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["word "] * 1000, delay=0.05))
    open_before = talk.models.open
    conversations = await asyncio.gather(
        *(_leave(server, talk, "content_delta") for _ in range(50))
    )
    await until(lambda: talk.models.open == open_before, 5)
    held = "SELECT count(*) FROM conversations WHERE id = ANY($1) AND turn_until IS NOT NULL"
    async with asyncio.timeout(5):
        while True:
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                if not await (await tx.raw()).fetchval(held, list(conversations)):
                    break
            await asyncio.sleep(0.01)
    for conversation_id in conversations:
        kept = await _kept(talk, conversation_id, 2)
        assert kept[1]["status"] == "interrupted"


# Many at once


async def test_fifty_streams_at_once_are_each_whole_and_their_own(
    talk: Talker, server: Server
) -> None:
    talk.script(Reply(texts=[f"{number} " for number in range(40)], delay=0.01))
    all_events = await asyncio.gather(
        *(_stream(server, talk, f"Question {number}") for number in range(50))
    )
    said = "".join(f"{number} " for number in range(40))
    for events in all_events:
        first, *deltas, last = (name for name, _ in events)
        assert (first, set(deltas), last) == ("message_start", {"content_delta"}, "message_stop")
        # What arrived in one piece, as it may on a busy machine, is passed on in one.
        assert len(deltas) <= 40
        assert texts_of(events) == said
    conversations = [_first(events) for events in all_events]
    assert len(set(conversations)) == 50
    for number, conversation_id in enumerate(conversations):
        kept = await _messages(talk, conversation_id)
        assert [item["content"] for item in kept] == [f"Question {number}", said]


# The stream itself


class _Wire:
    """Both ends of an ASGI connection: what was sent, and a reader that may go."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))
        if not message["more_body"]:
            # A server tells the end of the response like the end of the connection.
            self.gone.set()

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent)


async def test_a_silent_stream_says_a_comment_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.02)
    go_on, connection = asyncio.Event(), _Wire()

    async def source() -> AsyncGenerator[bytes, None]:
        yield sse.event("one", b"1")
        await go_on.wait()
        yield sse.event("two", b"2")

    sending = asyncio.create_task(
        sse._Stream(source()).send_body(connection.send, connection.receive)
    )
    comment = b": still here\n\n"
    await until(lambda: connection.body.count(comment) >= 3)
    go_on.set()
    await asyncio.wait_for(sending, 5)
    assert connection.body.startswith(b"event: one\ndata: 1\n\n" + comment)
    assert connection.body.endswith(b"event: two\ndata: 2\n\n")
    assert [message["more_body"] for message in connection.sent[:-1]] == [True] * (
        len(connection.sent) - 1
    )
    assert connection.sent[-1]["more_body"] is False
    # Comments are nothing to whoever reads events.
    assert [name for name, _ in events_in(connection.body.decode())] == ["one", "two"]


async def test_a_stream_that_speaks_says_no_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 5.0)
    connection = _Wire()

    async def source() -> AsyncGenerator[bytes, None]:
        for number in range(10):
            yield sse.event("n", b"%d" % number)
            await asyncio.sleep(0.001)

    await sse._Stream(source()).send_body(connection.send, connection.receive)
    assert b": still here" not in connection.body
    assert len(events_in(connection.body.decode())) == 10


def test_comments_come_every_ten_seconds() -> None:
    assert sse.KEEP_ALIVE_SECONDS == 10


async def test_a_source_is_begun_and_ended_although_the_reader_has_gone_already() -> None:
    """What was never begun would not free its conversation at its end."""
    connection, ended = _Wire(), asyncio.Event()
    connection.gone.set()

    async def source() -> AsyncGenerator[bytes, None]:
        try:
            yield sse.event("one", b"1")
            await asyncio.Event().wait()
        finally:
            ended.set()

    stream = sse._Stream(source())
    await asyncio.wait_for(stream.send_body(connection.send, connection.receive), 1)
    assert ended.is_set()


@pytest.mark.parametrize("how", ["the source is cancelled", "sending fails"])
async def test_a_response_whose_source_broke_off_is_over(how: str) -> None:
    connection = _Wire()

    async def source() -> AsyncGenerator[bytes, None]:
        yield sse.event("one", b"1")
        if how == "the source is cancelled":
            raise asyncio.CancelledError
        yield sse.event("two", b"2")

    async def send(message: Any) -> None:
        if how == "sending fails" and connection.sent:
            raise OSError("broken pipe")
        await connection.send(message)

    await asyncio.wait_for(sse._Stream(source()).send_body(send, connection.receive), 2)
    assert connection.body == b"event: one\ndata: 1\n\n"


async def test_a_source_is_ended_where_it_stands_when_the_reader_goes() -> None:
    connection, ended = _Wire(), asyncio.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        try:
            yield sse.event("one", b"1")
            await asyncio.Event().wait()
        finally:
            ended.set()

    sending = asyncio.create_task(
        sse._Stream(source()).send_body(connection.send, connection.receive)
    )
    await until(lambda: bool(connection.sent))
    connection.gone.set()
    await asyncio.wait_for(sending, 1)
    assert ended.is_set()


async def test_a_source_that_raises_ends_the_stream() -> None:
    connection = _Wire()

    async def source() -> AsyncGenerator[bytes, None]:
        yield sse.event("one", b"1")
        raise RuntimeError("broken")

    await asyncio.wait_for(sse._Stream(source()).send_body(connection.send, connection.receive), 1)
    assert events_in(connection.body.decode()) == [("one", 1)]
    assert connection.sent[-1]["more_body"] is False
