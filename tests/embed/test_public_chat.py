"""Chat from a web site: the key, the origin, the session, the stream."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from app import settings as configuration
from app.domain.embed import keys
from app.kit.ids import new_id
from app.main import create_app
from tests.embed.test_keys import PATH as KEYS
from tests.embed.test_keys import make_key
from tests.model_server import ModelServer, Reply
from tests.ports import free_port
from tests.server import ROOT, Server
from tests.stores import Stores, wait_for
from tests.talk import Talker, events_in, names_of, talker, texts_of
from tests.world import Client, World

ORIGIN = "https://shop.example.com"
NO_CORS: dict[str, str] = {}


class Site(msgspec.Struct):
    """A web site that holds a key of an agent."""

    talk: Talker
    key: dict[str, Any]
    session: str

    @property
    def path(self) -> str:
        return f"/api/v1/public/agents/{self.talk.agent_id}"

    @property
    def api_key(self) -> str:
        found: str = self.key["api_key"]
        return found

    def headers(self, origin: str | None = None) -> dict[str, str]:
        own = {"authorization": f"Bearer {self.api_key}"}
        return own if origin is None else {**own, "origin": origin}

    def body(self, message: str = "Hi", **more: Any) -> dict[str, Any]:
        return {"session_id": self.session, "message": message, **more}

    async def ask(
        self, message: str = "Hi", *, origin: str | None = None, **more: Any
    ) -> httpx.Response:
        caller = self.talk.world.anonymous()
        return await caller.post(
            f"{self.path}/chat", self.body(message, **more), headers=self.headers(origin)
        )

    async def say(self, message: str = "Hi", **more: Any) -> dict[str, Any]:
        answer = await self.ask(message, **more)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


async def _site(talk: Talker, *domains: str) -> Site:
    key = await make_key(talk.client, talk.agent_id, allowed_domains=list(domains))
    return Site(talk, key, new_id("visit"))


@pytest.fixture
async def site(talk: Talker) -> Site:
    """With a key that is good from everywhere."""
    return await _site(talk)


@pytest.fixture
async def shop(talk: Talker) -> Site:
    """With a key for one host."""
    return await _site(talk, "shop.example.com")


class Latch:
    """Lets so many deltas of the scripted model pass, and the rest once it is opened."""

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._open = asyncio.Event()
        self.reached = asyncio.Event()

    async def wait(self) -> None:
        if self._first > 0:
            self._first -= 1
            return
        self.reached.set()
        await self._open.wait()

    def open(self) -> None:
        self._open.set()


async def _until(holds: Callable[[], Awaitable[bool]], seconds: float = 10) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not await holds():
        assert asyncio.get_running_loop().time() < deadline, "it did not come to hold in time"
        await asyncio.sleep(0.02)


def _cors(answer: httpx.Response) -> dict[str, str]:
    return {
        name: value for name, value in answer.headers.items() if name.startswith("access-control")
    }


def _error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


# The reply


async def test_a_reply_has_exactly_what_is_promised(site: Site) -> None:
    site.talk.script(Reply(texts=["The shop ", "opens at 9."]))
    answer = await site.ask("When does the shop open?")
    assert answer.status_code == 200
    reply = answer.json()
    assert set(reply) == {"session_id", "conversation_id", "assistant_reply", "sources"}
    assert set(reply["assistant_reply"]) == {"id", "role", "content", "created_at"}
    assert reply["session_id"] == site.session
    assert re.fullmatch(r"cnv_[0-9a-v]{26}", reply["conversation_id"])
    assert re.fullmatch(r"msg_[0-9a-z]{26}", reply["assistant_reply"]["id"])
    assert reply["assistant_reply"]["role"] == "assistant"
    assert reply["assistant_reply"]["content"] == "The shop opens at 9."
    at = datetime.fromisoformat(reply["assistant_reply"]["created_at"])
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=1)
    assert reply["sources"] == []


async def test_the_model_is_told_the_prompt_and_the_question(site: Site) -> None:
    await site.say("When?")
    [asked] = site.talk.asked
    assert asked["messages"] == [
        {"role": "system", "content": "You are a test."},
        {"role": "user", "content": "When?"},
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"context": {"role": "admin-of-the-shop"}},
        {"system_prompt": "admin-of-the-shop"},
        {"conversation_id": "cnv_other"},
        {"temperature": 0.0},
        {"user_id": "usr_x"},
    ],
)
async def test_a_visitor_decides_nothing_but_the_words(site: Site, more: dict[str, Any]) -> None:
    plain = await site.say("Hi")
    site.session = new_id("visit")
    given = await site.say("Hi", **more)
    assert site.talk.asked[0] == site.talk.asked[1]
    assert given["conversation_id"] not in {"cnv_other", plain["conversation_id"]}


@pytest.mark.parametrize(
    "text", ["x" * 32_000, "ü", "  Hi  ", "line\nline", "<script>alert(1)</script>", "\U0001f600"]
)
async def test_any_words_up_to_the_limit_reach_the_model(site: Site, text: str) -> None:
    await site.say(text)
    assert site.talk.asked[0]["messages"][-1]["content"] == text


@pytest.mark.parametrize(
    ("change", "field"),
    [
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
    ],
)
@pytest.mark.parametrize("way", ["chat", "chat/stream"])
async def test_a_wrong_field_is_named(
    site: Site, change: dict[str, Any], field: str, way: str
) -> None:
    caller = site.talk.world.anonymous()
    body = {**site.body(), **change}
    answer = await caller.post(f"{site.path}/{way}", body, headers=site.headers())
    assert _error(answer) == (422, "validation_error")
    assert set(answer.json()["error"]["details"]) == {field}
    assert site.talk.asked == []


@pytest.mark.parametrize("field", ["message", "session_id"])
async def test_a_missing_field_is_named(site: Site, field: str) -> None:
    body = site.body()
    del body[field]
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/chat", body, headers=site.headers())
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {field: "is required"}


@pytest.mark.parametrize("session", ["x", "s" * 128, "ünïcode", "a b", "'; --", "cnv_x"])
async def test_a_session_may_have_any_name_of_one_line(site: Site, session: str) -> None:
    site.session = session
    assert (await site.say())["session_id"] == session


async def test_a_body_that_cannot_be_read_is_refused(site: Site) -> None:
    caller = site.talk.world.anonymous()
    for content in (b"", b"{", b"[]", b'"x"', b'{"session_id": "\\ud800", "message": "x"}'):
        answer = await caller.http.post(
            f"{site.path}/chat", content=content, headers=site.headers()
        )
        assert _error(answer) == (422, "validation_error")


# The key


def _sent(way: str, key: str) -> dict[str, Any]:
    sent: dict[str, dict[str, Any]] = {
        "bearer": {"headers": {"authorization": f"Bearer {key}"}},
        "a small bearer": {"headers": {"authorization": f"bearer {key}"}},
        "a far bearer": {"headers": {"authorization": f"Bearer   {key}"}},
        "header": {"headers": {"x-api-key": key}},
        "query": {"params": {"api_key": key}},
    }
    return sent[way]


@pytest.mark.parametrize("way", ["bearer", "a small bearer", "a far bearer", "header", "query"])
async def test_the_key_can_be_sent_in_three_ways(site: Site, way: str) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/chat", site.body(), **_sent(way, site.api_key))
    assert answer.status_code == 200, answer.text


async def test_however_it_is_sent_a_key_means_the_same_session(site: Site) -> None:
    caller = site.talk.world.anonymous()
    found = set()
    for way in ("bearer", "header", "query"):
        answer = await caller.post(f"{site.path}/chat", site.body(), **_sent(way, site.api_key))
        found.add(answer.json()["conversation_id"])
    assert len(found) == 1


@pytest.mark.parametrize(
    ("bearer", "header", "query", "status"),
    [
        ("good", "bad", "bad", 200),
        ("bad", "good", "good", 401),
        (None, "good", "bad", 200),
        (None, "bad", "good", 401),
        ("good", None, "bad", 200),
        (None, "", "good", 200),
        (None, "", "", 401),
    ],
)
async def test_the_bearer_counts_first_then_the_header(
    site: Site, bearer: str | None, header: str | None, query: str | None, status: int
) -> None:
    known = {"good": site.api_key, "bad": "emb_" + "x" * 43, "": ""}
    headers = {}
    if bearer is not None:
        headers["authorization"] = f"Bearer {known[bearer]}"
    if header is not None:
        headers["x-api-key"] = known[header]
    params = {"api_key": known[query]} if query is not None else {}
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/chat", site.body(), headers=headers, params=params)
    assert answer.status_code == status


@pytest.mark.parametrize("way", ["header", "query"])
async def test_a_sign_in_beside_the_key_does_not_matter(site: Site, way: str) -> None:
    answer = await site.talk.client.post(
        f"{site.path}/chat", site.body(), **_sent(way, site.api_key)
    )
    assert answer.status_code == 200
    conversation = answer.json()["conversation_id"]
    found = await site.talk.client.get(f"/api/v1/conversations/{conversation}")
    assert (found.json()["source"], found.json()["user_id"]) == ("embed", None)


@pytest.mark.parametrize("way", ["chat", "chat/stream"])
async def test_without_a_key_the_ways_to_send_one_are_told(site: Site, way: str) -> None:
    answer = await site.talk.world.anonymous().post(f"{site.path}/{way}", site.body())
    assert _error(answer) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"
    for word in ("Bearer", "X-API-Key", "api_key"):
        assert word in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "guess",
    [
        "emb_",
        "emb_wrong",
        "emb_" + "A" * 43,
        "wrong",
        "Bearer",
        "%",
        "emb_%ff",
        "' OR 1=1 --",
        "x" * 5000,
    ],
)
@pytest.mark.parametrize("way", ["header", "query"])
async def test_a_wrong_key_is_refused(site: Site, guess: str, way: str) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/chat", site.body(), **_sent(way, guess))
    assert _error(answer) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert _cors(answer) == NO_CORS


@pytest.mark.parametrize("raw", ["%ff", "%ed%a0%80", "%f0%28%8c%28", "emb_%c3%bc", "%e2%82"])
async def test_a_key_of_broken_bytes_is_refused(site: Site, raw: str) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/chat?api_key={raw}", site.body())
    assert _error(answer) == (401, "unauthorized")


async def test_a_header_of_broken_bytes_is_refused(site: Site) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller.post(
        f"{site.path}/chat", site.body(), headers=[(b"x-api-key", b"emb_\xff\xfe")]
    )
    assert _error(answer) == (401, "unauthorized")


async def test_a_changed_key_is_refused(site: Site) -> None:
    key = site.api_key
    caller = site.talk.world.anonymous()
    for guess in (key.upper(), key[:-1], key + "x", key.removeprefix("emb_"), site.key["id"]):
        answer = await caller.post(f"{site.path}/chat", site.body(), **_sent("header", guess))
        assert answer.status_code == 401


@pytest.mark.parametrize("way", ["bearer", "header", "query"])
async def test_a_sign_in_is_no_key(site: Site, way: str) -> None:
    """Not even that of the agent's owner."""
    caller = site.talk.world.anonymous()
    for token in (site.talk.client.token, site.talk.client.refresh_token):
        sent = _sent(way, token or "")
        answer = await caller.post(f"{site.path}/chat", site.body(), **sent)
        assert _error(answer) == (401, "unauthorized")


async def test_a_basic_sign_in_is_no_key(site: Site) -> None:
    caller = site.talk.world.anonymous()
    headers = {"authorization": f"Basic {site.api_key}"}
    answer = await caller.post(f"{site.path}/chat", site.body(), headers=headers)
    assert _error(answer) == (401, "unauthorized")


async def test_a_key_in_the_body_is_no_key(site: Site) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/chat", site.body(api_key=site.api_key))
    assert _error(answer) == (401, "unauthorized")


async def test_a_key_is_for_its_own_agent(site: Site) -> None:
    other = await site.talk.agent()
    caller = site.talk.world.anonymous()
    for way in ("chat", "chat/stream"):
        path = f"/api/v1/public/agents/{other.agent_id}/{way}"
        answer = await caller.post(path, site.body(), headers=site.headers())
        assert _error(answer) == (404, "agent_not_found")
    assert other.asked == []


async def test_a_key_does_not_reach_into_another_tenant(
    site: Site, world: World, models: ModelServer
) -> None:
    stranger = await talker(world, models)
    path = f"/api/v1/public/agents/{stranger.agent_id}/chat"
    answer = await world.anonymous().post(path, site.body(), headers=site.headers())
    assert _error(answer) == (404, "agent_not_found")
    missing = await world.anonymous().post(
        "/api/v1/public/agents/agt_none/chat", site.body(), headers=site.headers()
    )
    assert _error(missing) == (404, "agent_not_found")


@pytest.mark.parametrize("status", ["draft", "archived"])
@pytest.mark.parametrize("way", ["chat", "chat/stream"])
async def test_an_agent_that_is_not_published_is_not_there(
    site: Site, status: str, way: str
) -> None:
    await site.talk.client.put(site.talk.path, {"status": status})
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/{way}", site.body(), headers=site.headers())
    assert _error(answer) == (404, "agent_not_found")
    assert site.talk.asked == []


async def test_a_published_agent_is_there_again(site: Site) -> None:
    await site.talk.client.put(site.talk.path, {"status": "draft"})
    assert (await site.ask()).status_code == 404
    await site.talk.client.put(site.talk.path, {"status": "published"})
    assert (await site.ask()).status_code == 200


async def test_a_revoked_key_ends_its_sessions(site: Site) -> None:
    await site.say()
    await site.talk.client.delete(KEYS, params={"id": site.key["id"]})
    assert _error(await site.ask()) == (401, "unauthorized")


@pytest.mark.parametrize("way", ["chat", "chat/stream"])
async def test_a_model_without_a_key_is_no_business_of_visitors(
    world: World, models: ModelServer, way: str
) -> None:
    talk = await talker(world, models, primary_model="nowhere/at-all")
    site = await _site(talk, "shop.example.com")
    caller = world.anonymous()
    answer = await caller.post(f"{site.path}/{way}", site.body(), headers=site.headers(ORIGIN))
    assert _error(answer) == (503, "unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "nowhere" not in answer.text
    assert "at-all" not in answer.text


async def test_a_chat_costs_a_visitor_ten_units(site: Site) -> None:
    caller = site.talk.world.anonymous()
    left = []
    for _ in range(2):
        answer = await caller.post(f"{site.path}/chat", site.body(), headers=site.headers())
        left.append(int(answer.headers["x-ratelimit-remaining"]))
    assert left[0] - left[1] == 10


# The session


async def test_a_session_goes_on_with_its_history(site: Site) -> None:
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
    other = Site(site.talk, await make_key(site.talk.client, site.talk.agent_id), site.session)
    first, second = await site.say("First?"), await other.say("Second?")
    assert first["conversation_id"] != second["conversation_id"]
    assert len(site.talk.asked[1]["messages"]) == 2


async def test_sessions_are_told_apart_by_every_letter(site: Site) -> None:
    found = []
    for session in ("a", "A", "a ", " a", "aa"):
        site.session = session
        found.append((await site.say())["conversation_id"])
    assert len(set(found)) == 5


async def test_a_conversations_id_does_not_open_it_as_a_session(site: Site) -> None:
    mine = await site.say("Secret?")
    other = Site(
        site.talk, await make_key(site.talk.client, site.talk.agent_id), mine["conversation_id"]
    )
    answer = await other.say("What was said?", conversation_id=mine["conversation_id"])
    assert answer["conversation_id"] != mine["conversation_id"]
    assert len(site.talk.asked[1]["messages"]) == 2


async def test_a_users_conversation_is_not_opened_by_a_visitor(site: Site) -> None:
    console = await site.talk.say("Secret?")
    site.session = console["conversation_id"]
    answer = await site.say("What was said?", conversation_id=console["conversation_id"])
    assert answer["conversation_id"] != console["conversation_id"]
    assert len(site.talk.asked[1]["messages"]) == 2


async def test_a_visitors_conversation_is_not_continued_in_the_console(site: Site) -> None:
    mine = await site.say()
    answer = await site.talk.client.post(
        f"{site.talk.path}/chat",
        {"message": "Hi", "conversation_id": mine["conversation_id"]},
    )
    assert _error(answer) == (404, "conversation_not_found")


async def test_a_session_answers_one_question_at_a_time(shop: Site) -> None:
    latch = Latch()
    shop.talk.script(Reply(hold=latch), Reply(texts=["Second."]))
    running = asyncio.create_task(shop.say("First?", origin=ORIGIN))
    try:
        await asyncio.wait_for(latch.reached.wait(), 10)
        busy = await shop.ask("Second?", origin=ORIGIN)
        elsewhere = Site(shop.talk, shop.key, new_id("visit"))
        free = await elsewhere.ask("Third?", origin=ORIGIN)
    finally:
        latch.open()
    assert _error(busy) == (409, "conversation_busy")
    assert busy.headers["access-control-allow-origin"] == ORIGIN
    assert free.status_code == 200
    first = await running
    again = await shop.say("Second?", origin=ORIGIN)
    assert again["conversation_id"] == first["conversation_id"]


async def test_of_many_first_questions_at_once_one_is_answered(site: Site) -> None:
    latch = Latch()
    site.talk.script(Reply(hold=latch))
    running = [asyncio.create_task(site.ask(f"{number}?")) for number in range(5)]
    try:
        done, _ = await asyncio.wait(running, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 4:
            assert not latch._open.is_set()
            more, _ = await asyncio.wait(
                [task for task in running if task not in done],
                timeout=10,
                return_when=asyncio.FIRST_COMPLETED,
            )
            assert more
            done |= more
    finally:
        latch.open()
    answers = await asyncio.gather(*running)
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    assert len(site.talk.asked) == 1


async def test_a_failed_turn_frees_the_session(site: Site) -> None:
    site.talk.script(Reply(status=400), Reply(texts=["Now."]))
    assert _error(await site.ask("First?")) == (502, "provider_error")
    reply = await site.say("Second?")
    assert reply["assistant_reply"]["content"] == "Now."
    # What failed is no part of the history.
    assert [message["content"] for message in site.talk.asked[1]["messages"][1:]] == ["Second?"]


async def test_an_ended_session_opens_again(site: Site) -> None:
    mine = await site.say("First?")
    path = f"/api/v1/conversations/{mine['conversation_id']}"
    ended = await site.talk.client.post(f"{path}/end")
    assert ended.json()["status"] == "ended"
    again = await site.say("Second?")
    assert again["conversation_id"] == mine["conversation_id"]
    assert (await site.talk.client.get(path)).json()["status"] == "active"


async def test_a_deleted_session_begins_anew(site: Site) -> None:
    mine = await site.say("First?")
    path = f"/api/v1/conversations/{mine['conversation_id']}"
    assert (await site.talk.client.delete(path)).status_code == 204
    await site.say("Second?")
    assert [message["content"] for message in site.talk.asked[1]["messages"][1:]] == ["Second?"]


# Who reads it


async def test_those_with_the_permission_read_a_visitors_conversation(site: Site) -> None:
    mine = await site.say("When?")
    path = f"/api/v1/conversations/{mine['conversation_id']}"
    developer = await site.talk.world.user("agent_developer", site.talk.client.tenant_id)
    found = (await developer.get(path)).json()
    assert (found["source"], found["user_id"], found["message_count"]) == ("embed", None, 2)
    assert (found["agent_id"], found["title"]) == (site.talk.agent_id, "When?")
    messages = (await developer.get(f"{path}/messages")).json()["data"]
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "When?"),
        ("assistant", "Hello there"),
    ]
    listed = (await developer.get(f"{site.talk.path}/conversations")).json()["data"]
    assert [item["id"] for item in listed] == [mine["conversation_id"]]


@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_others_do_not_read_a_visitors_conversation(site: Site, role: str) -> None:
    mine = await site.say()
    caller = await site.talk.world.user(role, site.talk.client.tenant_id)
    path = f"/api/v1/conversations/{mine['conversation_id']}"
    for answer in (
        await caller.get(path),
        await caller.get(f"{path}/messages"),
        await caller.post(f"{path}/end"),
        await caller.delete(path),
    ):
        assert _error(answer) == (404, "conversation_not_found")
    listed = await caller.get(f"{site.talk.path}/conversations")
    assert listed.json()["data"] == []


async def test_another_tenant_does_not_read_a_visitors_conversation(
    site: Site, admin: Client
) -> None:
    mine = await site.say()
    answer = await admin.get(f"/api/v1/conversations/{mine['conversation_id']}")
    assert _error(answer) == (404, "conversation_not_found")


async def test_a_conversation_outlives_its_key(site: Site) -> None:
    mine = await site.say("When?")
    await site.talk.client.delete(KEYS, params={"id": site.key["id"]})
    path = f"/api/v1/conversations/{mine['conversation_id']}/messages"
    messages = (await site.talk.client.get(path)).json()["data"]
    assert [message["content"] for message in messages] == ["When?", "Hello there"]


async def test_a_visitors_turns_are_in_the_figures_and_the_log(site: Site) -> None:
    site.talk.script(Reply(usage=(40, 8)))
    await site.say("First?")
    await site.say("Second?")
    stats = (await site.talk.client.get(f"{site.talk.path}/stats")).json()
    assert stats["total_conversations"] == 1
    assert stats["total_messages"] == 4
    assert stats["total_tokens_used"] == 96
    log = (await site.talk.client.get(f"{site.talk.path}/logs")).json()["data"]
    said = [entry["content"] for entry in reversed(log) if entry["type"] == "message"]
    assert said == ["First?", "Hello there", "Second?", "Hello there"]


async def test_a_visitors_turns_are_told_in_the_event_log(site: Site) -> None:
    mine = await site.say("First?")
    await site.say("Second?")
    log = (await site.talk.client.get("/api/v1/event-log", params={"per_page": 100})).json()["data"]
    chat = [entry for entry in reversed(log) if entry["type"].startswith("agent.chat")]
    assert [entry["type"] for entry in chat] == ["agent.chat.started"] + ["agent.chat.message"] * 4
    assert chat[0]["data"] == {
        "agent_id": site.talk.agent_id,
        "conversation_id": mine["conversation_id"],
        "user_id": None,
        "source": "embed",
    }


# Origins


async def _answers(site: Site, origin: str | None) -> list[httpx.Response]:
    """Of every endpoint that the key opens."""
    caller = site.talk.world.anonymous()
    headers = site.headers(origin)
    completion = {"model": site.talk.agent_id, "messages": [{"role": "user", "content": "Hi"}]}
    return [
        await caller.post(f"{site.path}/chat", site.body(), headers=headers),
        await caller.post(f"{site.path}/chat/stream", site.body(), headers=headers),
        await caller.get(f"{site.path}/embed", headers=headers),
        await caller.post("/v1/chat/completions", completion, headers=headers),
        await caller.get("/v1/models", headers=headers),
    ]


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "https://evil.com",
        "https://evilshop.example.com",
        "https://shop.example.com.evil.com",
        "https://a.shop.example.com",
        "https://example.com",
        "https://user@shop.example.com",
        "https://shop.example.com/",
        "https://SHOP.example.com",
        "shop.example.com",
        "*",
        "",
    ],
)
async def test_a_foreign_origin_is_refused_everywhere(shop: Site, origin: str | None) -> None:
    for answer in await _answers(shop, origin):
        assert _error(answer) == (403, "origin_not_allowed")
        assert _cors(answer) == NO_CORS
        assert shop.api_key not in answer.text
    assert shop.talk.asked == []


async def test_a_refused_origin_leaves_nothing_behind(shop: Site) -> None:
    await shop.ask("Hi", origin="https://evil.com")
    listed = await shop.talk.client.get(f"{shop.talk.path}/conversations")
    assert listed.json()["data"] == []


async def test_an_allowed_origin_is_let_in_everywhere(shop: Site) -> None:
    for answer in await _answers(shop, ORIGIN):
        assert answer.status_code == 200, answer.text
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert "origin" in answer.headers["vary"].lower()
        # The key is the proof, never a cookie.
        assert "access-control-allow-credentials" not in answer.headers


async def test_a_site_can_read_the_headers_that_help_it(shop: Site) -> None:
    answer = await shop.ask(origin=ORIGIN)
    told = answer.headers["access-control-expose-headers"].lower()
    assert {"retry-after", "x-request-id"} <= {name.strip() for name in told.split(",")}


async def test_without_domains_every_origin_is_welcome(site: Site) -> None:
    for origin in ("https://any.where", "http://localhost:3000", "null"):
        for answer in await _answers(site, origin):
            assert answer.status_code == 200, answer.text
            assert answer.headers["access-control-allow-origin"] == origin


async def test_without_an_origin_there_is_nothing_to_allow(site: Site) -> None:
    for answer in await _answers(site, None):
        assert answer.status_code == 200, answer.text
        assert _cors(answer) == NO_CORS


@pytest.mark.parametrize("origin", ["https://any.where", "null", None])
async def test_a_star_lets_everybody_in(talk: Talker, origin: str | None) -> None:
    site = await _site(talk, "*")
    for answer in await _answers(site, origin):
        assert answer.status_code == 200, answer.text
        assert answer.headers.get("access-control-allow-origin") == origin


@pytest.mark.parametrize(
    ("domains", "origin", "status"),
    [
        (["*.example.com"], "https://a.example.com", 200),
        (["*.example.com"], "https://example.com", 403),
        (["https://example.com:8443"], "https://example.com:8443", 200),
        (["https://example.com:8443"], "https://example.com", 403),
        (["https://example.com"], "http://example.com", 403),
        (["a.com", "b.com"], "https://b.com", 200),
        (["münchen.de"], "https://xn--mnchen-3ya.de", 200),
    ],
)
async def test_entries_are_obeyed_as_they_are_written(
    talk: Talker, domains: list[str], origin: str, status: int
) -> None:
    site = await _site(talk, *domains)
    answer = await site.ask(origin=origin)
    assert answer.status_code == status
    assert answer.headers.get("access-control-allow-origin") == (origin if status == 200 else None)


@pytest.mark.parametrize(
    "given",
    [
        ["https://evil.com", ORIGIN],
        pytest.param([ORIGIN, "https://evil.com"]),
    ],
)
async def test_two_origins_are_none(shop: Site, given: list[str]) -> None:
    headers = [*shop.headers().items(), *(("origin", origin) for origin in given)]
    caller = shop.talk.world.anonymous()
    answer = await caller.post(f"{shop.path}/chat", shop.body(), headers=headers)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "origin_not_allowed"
    assert _cors(answer) == NO_CORS


async def test_the_refusal_does_not_repeat_a_long_origin(shop: Site) -> None:
    answer = await shop.ask(origin="https://" + "x" * 5000)
    assert _error(answer) == (403, "origin_not_allowed")
    assert len(answer.json()["error"]["message"]) < 400


async def test_an_allowed_site_can_read_that_the_agent_is_not_there(shop: Site) -> None:
    await shop.talk.client.put(shop.talk.path, {"status": "draft"})
    for answer in (await _answers(shop, ORIGIN))[:4]:
        assert _error(answer) == (404, "agent_not_found")
        assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_an_allowed_site_can_read_that_the_model_failed(shop: Site) -> None:
    shop.talk.script(Reply(status=400))
    answer = await shop.ask(origin=ORIGIN)
    assert _error(answer) == (502, "provider_error")
    assert answer.headers["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize("message", ["", "x" * 32_001])
async def test_an_allowed_site_can_read_what_is_wrong_with_a_message(
    shop: Site, message: str
) -> None:
    answer = await shop.ask(message, origin=ORIGIN)
    assert answer.status_code == 422
    assert answer.headers.get("access-control-allow-origin") == ORIGIN


async def test_a_stranger_is_not_told_what_is_wrong_with_a_message(site: Site) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller.post(f"{site.path}/chat", {}, **_sent("header", "emb_wrong"))
    assert _error(answer) == (401, "unauthorized")


@pytest.fixture
async def strict(stores: Stores, world: World) -> AsyncIterator[Client]:
    """A caller of an instance that takes one request a minute from an address."""
    settings = msgspec.structs.replace(stores.settings, anonymous_per_minute=1)
    made = create_app(settings)
    yield Client(made)
    await made.state.services.close()


async def test_a_visitor_who_asks_too_often_is_refused(strict: Client, site: Site) -> None:
    path = f"{site.path}/chat"
    first = await strict.post(path, site.body(), headers=site.headers())
    second = await strict.post(path, site.body(), headers=site.headers())
    assert first.status_code == 200
    assert _error(second) == (429, "rate_limited")
    assert int(second.headers["retry-after"]) > 0
    assert len(site.talk.asked) == 1


async def test_an_allowed_site_can_read_that_it_asked_too_often(strict: Client, shop: Site) -> None:
    path, headers = f"{shop.path}/chat", shop.headers(ORIGIN)
    await strict.post(path, shop.body(), headers=headers)
    answer = await strict.post(path, shop.body(), headers=headers)
    assert answer.status_code == 429
    assert answer.headers.get("access-control-allow-origin") == ORIGIN


async def test_the_consoles_answers_are_for_no_other_site(shop: Site) -> None:
    headers = {"origin": ORIGIN}
    answer = await shop.talk.client.get(shop.talk.path, headers=headers)
    assert answer.status_code == 200
    assert _cors(answer) == NO_CORS


async def test_an_allowed_answer_does_not_open_the_next_one(shop: Site) -> None:
    """One caller, one connection, another origin."""
    caller = shop.talk.world.anonymous()
    path, body = f"{shop.path}/chat", shop.body()
    allowed = await caller.post(path, body, headers=shop.headers(ORIGIN))
    refused = await caller.post(path, body, headers=shop.headers("https://evil.com"))
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert _cors(refused) == NO_CORS


# Preflight

_ASKS = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
}


def _preflight_says_yes(answer: httpx.Response, origin: str) -> None:
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == origin
    methods = answer.headers["access-control-allow-methods"]
    assert "POST" in {method.strip() for method in methods.split(",")}
    allowed = {
        name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")
    }
    assert {"authorization", "content-type", "x-api-key"} <= allowed
    assert int(answer.headers["access-control-max-age"]) > 0
    assert "origin" in answer.headers["vary"].lower()
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("way", ["chat", "chat/stream", "embed"])
async def test_a_preflight_of_an_allowed_origin_is_answered(shop: Site, way: str) -> None:
    caller = shop.talk.world.anonymous()
    headers = {"origin": ORIGIN, **_ASKS}
    answer = await caller("OPTIONS", f"{shop.path}/{way}", headers=headers)
    _preflight_says_yes(answer, ORIGIN)


@pytest.mark.parametrize("way", ["chat", "chat/stream", "embed"])
@pytest.mark.parametrize("origin", [None, "null", "https://evil.com", "https://x.shop.example.com"])
async def test_a_preflight_of_another_origin_is_refused(
    shop: Site, way: str, origin: str | None
) -> None:
    caller = shop.talk.world.anonymous()
    headers = {**_ASKS} if origin is None else {"origin": origin, **_ASKS}
    answer = await caller("OPTIONS", f"{shop.path}/{way}", headers=headers)
    assert _error(answer) == (403, "origin_not_allowed")
    assert _cors(answer) == NO_CORS


async def test_a_preflight_asks_for_any_key_of_the_agent(shop: Site) -> None:
    await make_key(shop.talk.client, shop.talk.agent_id, allowed_domains=["*.other.com"])
    caller = shop.talk.world.anonymous()
    for origin in (ORIGIN, "https://a.other.com"):
        headers = {"origin": origin, **_ASKS}
        _preflight_says_yes(await caller("OPTIONS", f"{shop.path}/chat", headers=headers), origin)


async def test_a_preflight_does_not_count_another_agents_keys(shop: Site) -> None:
    other = await shop.talk.agent()
    await make_key(shop.talk.client, other.agent_id)
    caller = shop.talk.world.anonymous()
    headers = {"origin": "https://evil.com", **_ASKS}
    answer = await caller("OPTIONS", f"{shop.path}/chat", headers=headers)
    assert _error(answer) == (403, "origin_not_allowed")


async def test_a_preflight_for_an_agent_without_keys_is_refused(talk: Talker) -> None:
    caller = talk.world.anonymous()
    headers = {"origin": ORIGIN, **_ASKS}
    for agent_id in (talk.agent_id, "agt_none"):
        path = f"/api/v1/public/agents/{agent_id}/chat"
        answer = await caller("OPTIONS", path, headers=headers)
        assert _error(answer) == (403, "origin_not_allowed")


async def test_after_the_last_key_is_revoked_a_preflight_is_refused(shop: Site) -> None:
    await shop.talk.client.delete(KEYS, params={"id": shop.key["id"]})
    caller = shop.talk.world.anonymous()
    headers = {"origin": ORIGIN, **_ASKS}
    answer = await caller("OPTIONS", f"{shop.path}/chat", headers=headers)
    assert _error(answer) == (403, "origin_not_allowed")


async def test_a_preflight_needs_no_sign_in_and_tells_no_secret(shop: Site) -> None:
    caller = shop.talk.world.anonymous()
    headers = {"origin": "https://evil.com", **_ASKS}
    answer = await caller("OPTIONS", f"{shop.path}/chat", headers=headers)
    assert "shop.example.com" not in answer.text
    assert shop.talk.agent_id not in answer.text


@pytest.mark.parametrize("origin", [ORIGIN, "https://nobody.example"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
async def test_a_preflight_of_the_openai_endpoints_tells_nothing_of_who_is_a_customer(
    shop: Site, path: str, origin: str
) -> None:
    headers = {"origin": origin, **_ASKS}
    _preflight_says_yes(await shop.talk.world.anonymous()("OPTIONS", path, headers=headers), origin)


@pytest.mark.parametrize("path", ["/api/v1/agents", "/api/v1/embed/api-keys", "/auth/login"])
async def test_the_console_has_no_preflight_for_anybody(site: Site, path: str) -> None:
    caller = site.talk.world.anonymous()
    answer = await caller("OPTIONS", path, headers={"origin": ORIGIN, **_ASKS})
    assert _cors(answer) == NO_CORS


# Over a real socket


@asynccontextmanager
async def _client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        yield client


async def _streamed(
    server: Server, site: Site, message: str = "Hi", origin: str | None = None
) -> tuple[httpx.Response, list[tuple[str, Any]]]:
    async with _client(server) as client:
        answer = await client.post(
            f"{site.path}/chat/stream", json=site.body(message), headers=site.headers(origin)
        )
    return answer, events_in(answer.text)


async def test_a_browsers_way_works_over_a_socket(server: Server, shop: Site) -> None:
    async with _client(server) as client:
        path = f"{shop.path}/chat"
        asked = {"origin": ORIGIN, **_ASKS}
        _preflight_says_yes(await client.options(path, headers=asked), ORIGIN)
        answer = await client.post(path, json=shop.body(), headers=shop.headers(ORIGIN))
        assert answer.status_code == 200, answer.text
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        refused = await client.options(path, headers={**asked, "origin": "https://evil.com"})
        assert _error(refused) == (403, "origin_not_allowed")
        assert _cors(refused) == NO_CORS
        from_there = shop.headers("https://evil.com")
        answer = await client.post(path, json=shop.body(), headers=from_there)
        assert _error(answer) == (403, "origin_not_allowed")
        assert _cors(answer) == NO_CORS


async def test_a_stream_tells_the_reply_in_order(server: Server, shop: Site) -> None:
    shop.talk.script(Reply(texts=["The ", "shop ", "opens."], usage=(40, 8)))
    answer, events = await _streamed(server, shop, origin=ORIGIN)
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
    _, events = await _streamed(server, site, "First?")
    second = await site.say("Second?")
    assert second["conversation_id"] == events[0][1]["conversation_id"]
    assert [message["content"] for message in site.talk.asked[1]["messages"][1:]] == [
        "First?",
        "One.",
        "Second?",
    ]


async def test_text_comes_before_the_reply_is_whole(server: Server, site: Site) -> None:
    latch = Latch(first=1)
    site.talk.script(Reply(texts=["Early", " late"], hold=latch))
    try:
        async with (
            _client(server) as client,
            client.stream(
                "POST", f"{site.path}/chat/stream", json=site.body(), headers=site.headers()
            ) as answer,
        ):
            seen = ""
            async for text in answer.aiter_text():
                seen += text
                if "Early" in seen:
                    latch.open()
    finally:
        latch.open()
    assert texts_of(events_in(seen)) == "Early late"


async def test_a_stream_that_is_refused_is_a_plain_answer(server: Server, shop: Site) -> None:
    answer, _ = await _streamed(server, shop, origin="https://evil.com")
    assert _error(answer) == (403, "origin_not_allowed")
    assert answer.headers["content-type"].startswith("application/json")
    shop.key = {**shop.key, "api_key": "emb_wrong"}
    answer, _ = await _streamed(server, shop, origin=ORIGIN)
    assert _error(answer) == (401, "unauthorized")


async def test_a_busy_session_refuses_a_stream_plainly(server: Server, site: Site) -> None:
    latch = Latch()
    site.talk.script(Reply(hold=latch))
    running = asyncio.create_task(site.say("First?"))
    try:
        await asyncio.wait_for(latch.reached.wait(), 10)
        answer, _ = await _streamed(server, site, "Second?")
    finally:
        latch.open()
    assert _error(answer) == (409, "conversation_busy")
    await running


async def test_a_failure_before_the_first_word_is_the_only_event_after_the_start(
    server: Server, site: Site
) -> None:
    site.talk.script(Reply(status=400, message="no such thing"))
    answer, events = await _streamed(server, site)
    assert answer.status_code == 200
    assert [name for name, _ in events] == ["message_start", "error"]
    assert events[-1][1]["code"] == "provider_error"
    assert site.api_key not in answer.text
    assert "sk-scripted" not in answer.text


async def test_a_failure_in_the_middle_keeps_what_was_said(server: Server, site: Site) -> None:
    site.talk.script(Reply(texts=["Half", " lost"], error_after=1), Reply(texts=["Whole."]))
    _, events = await _streamed(server, site, "First?")
    assert [name for name, _ in events] == ["message_start", "content_delta", "error"]
    path = f"/api/v1/conversations/{events[0][1]['conversation_id']}/messages"
    kept = (await site.talk.client.get(path)).json()["data"]
    assert [(entry["content"], entry["status"]) for entry in kept] == [
        ("First?", "complete"),
        ("Half", "interrupted"),
    ]
    assert (await site.say("Second?"))["assistant_reply"]["content"] == "Whole."


async def test_a_visitor_who_leaves_ends_the_turn_and_the_part_is_kept(
    server: Server, site: Site
) -> None:
    latch = Latch(first=1)
    site.talk.script(Reply(texts=["Half", " lost"], hold=latch), Reply(texts=["Whole."]))
    seen = ""
    try:
        async with (
            _client(server) as client,
            client.stream(
                "POST", f"{site.path}/chat/stream", json=site.body("First?"), headers=site.headers()
            ) as answer,
        ):
            async for text in answer.aiter_text():
                seen += text
                if "Half" in seen:
                    break
        conversation = events_in(seen)[0][1]["conversation_id"]
        path = f"/api/v1/conversations/{conversation}/messages"

        async def is_kept() -> bool:
            kept = (await site.talk.client.get(path)).json()["data"]
            return [(entry["content"], entry["status"]) for entry in kept] == [
                ("First?", "complete"),
                ("Half", "interrupted"),
            ]

        await _until(is_kept, 5)
    finally:
        latch.open()
    # The session is free, and its half answer is part of what the model is told.
    assert (await site.say("Second?"))["conversation_id"] == conversation
    assert [message["content"] for message in site.talk.asked[1]["messages"][1:]] == [
        "First?",
        "Half",
        "Second?",
    ]


# What the agent does behind the counter


async def _attach(parent: Talker, child: Talker, prompt: str = "Knows things") -> None:
    answer = await parent.client.post(
        f"{parent.path}/sub-agents/attach",
        {"agent_id": child.agent_id, "delegation_prompt": prompt},
    )
    assert answer.status_code in {200, 201}, answer.text


async def _with_helper(talk: Talker) -> Talker:
    """A sub-agent, and an agent that asks it once."""
    child = await talk.agent("Helper")
    await _attach(talk, child)
    child.script(Reply(texts=["The safe code is 4711"]))
    task = {"task": "Tell the safe code to mother"}
    talk.script(
        Reply(texts=[], calls=[("delegate_to_helper", task)]), Reply(texts=["I may not say."])
    )
    return child


async def test_what_tools_were_given_and_gave_stays_inside(server: Server, site: Site) -> None:
    child = await _with_helper(site.talk)
    answer, events = await _streamed(server, site)
    assert [name for name, _ in events] == [
        "message_start",
        "tool_use",
        "tool_result",
        "content_delta",
        "message_stop",
    ]
    use, result = events[1][1], events[2][1]
    assert (use["tool"], use["input"]) == ("Helper", {})
    assert (result["tool"], result["output"]) == ("Helper", None)
    assert use["tool_id"] is None
    assert result["tool_id"] is None
    for secret in ("4711", "mother", child.agent_id, "delegate_to"):
        assert secret not in answer.text
    assert texts_of(events) == "I may not say."


async def test_a_whole_reply_tells_nothing_of_tools(site: Site) -> None:
    child = await _with_helper(site.talk)
    answer = await site.ask()
    assert answer.json()["assistant_reply"]["content"] == "I may not say."
    for secret in ("4711", "mother", "Helper", child.agent_id, "tool"):
        assert secret not in answer.text


async def test_those_who_read_the_conversation_see_what_tools_did(site: Site) -> None:
    await _with_helper(site.talk)
    mine = await site.say()
    path = f"/api/v1/conversations/{mine['conversation_id']}/messages"
    [_, said] = (await site.talk.client.get(path)).json()["data"]
    [call] = said["tool_calls"]
    assert call["input"] == {"task": "Tell the safe code to mother"}
    assert call["output"] == "The safe code is 4711"


def _offered(asked: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in asked.get("tools", [])]


async def test_a_draft_sub_agent_is_not_offered_to_visitors(site: Site) -> None:
    await _attach(site.talk, await site.talk.agent("Ready"))
    await _attach(site.talk, await site.talk.agent("Unfinished", status="draft"))
    await site.say()
    assert _offered(site.talk.asked[0]) == ["delegate_to_ready"]
    await site.talk.say("Hi")
    assert _offered(site.talk.asked[1]) == ["delegate_to_ready", "delegate_to_unfinished"]


async def test_a_draft_below_a_published_sub_agent_is_not_offered_either(site: Site) -> None:
    middle = await site.talk.agent("Middle")
    await _attach(site.talk, middle)
    await _attach(middle, await site.talk.agent("Unfinished", status="draft"))
    site.talk.script(
        Reply(texts=[], calls=[("delegate_to_middle", {"task": "x"})]), Reply(texts=["Done."])
    )
    await site.say()
    assert _offered(middle.asked[0]) == []


async def test_a_draft_that_is_called_all_the_same_does_not_answer(site: Site) -> None:
    draft = await site.talk.agent("Unfinished", status="draft")
    await _attach(site.talk, draft)
    site.talk.script(
        Reply(texts=[], calls=[("delegate_to_unfinished", {"task": "x"})]), Reply(texts=["Done."])
    )
    assert (await site.say())["assistant_reply"]["content"] == "Done."
    assert draft.asked == []


# The key stays with its holder


async def test_the_key_is_in_no_log_that_can_be_read(site: Site) -> None:
    await site.say()
    site.talk.script(Reply(status=400))
    await site.ask()
    for path in ("/api/v1/event-log", f"{site.talk.path}/logs", f"{site.talk.path}/conversations"):
        answer = await site.talk.client.get(path, params={"per_page": 100})
        assert answer.json()["data"]
        assert site.api_key not in answer.text
        assert site.api_key[4:] not in answer.text


async def test_no_error_repeats_the_key(shop: Site) -> None:
    other = await shop.talk.agent()
    caller = shop.talk.world.anonymous()
    path = f"/api/v1/public/agents/{other.agent_id}/chat"
    answers = [
        await caller.post(path, shop.body(), headers=shop.headers(ORIGIN)),
        await shop.ask(origin="https://evil.com"),
        await shop.ask("", origin=ORIGIN),
        await caller.post(f"{shop.path}/chat", shop.body(), params={"api_key": shop.api_key + "x"}),
        await caller.post(f"{shop.path}/nothing", shop.body(), params={"api_key": shop.api_key}),
        await caller.get(f"{shop.path}/chat", params={"api_key": shop.api_key}),
    ]
    assert [answer.status_code for answer in answers] == [404, 403, 422, 401, 404, 405]
    for answer in answers:
        assert shop.api_key not in answer.text
        assert shop.api_key not in str(answer.headers)


@contextmanager
def _talkative(stores: Stores, log: Path) -> Iterator[str]:
    """A web process that logs all it can, to a file."""
    settings = msgspec.structs.replace(stores.settings, port=free_port(), log_level="debug")
    env = {**os.environ, **configuration.as_env(settings)}
    url = f"http://127.0.0.1:{settings.port}"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "app.cli", "serve"]
        process = subprocess.Popen(command, env=env, cwd=ROOT, stdout=out, stderr=out)

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/health/live").status_code == 200
        except httpx.TransportError:
            return False

    try:
        wait_for(answers, 60, "the web tier")
        yield url
    finally:
        process.terminate()
        process.wait(30)


async def test_a_key_in_the_query_is_not_in_the_processs_log(
    stores: Stores, site: Site, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    params, path = {"api_key": site.api_key}, f"{site.path}/chat"
    with _talkative(stores, log) as url:
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            assert (await client.post(path, json=site.body(), params=params)).status_code == 200
            site.talk.script(Reply(status=400))
            assert (await client.post(path, json=site.body(), params=params)).status_code == 502
            assert (await client.post(path, json={}, params=params)).status_code == 422
            assert (await client.get(path, params=params)).status_code == 405
            assert (await client.get("/none", params=params)).status_code == 404
    written = log.read_text()
    assert path in written
    assert site.api_key not in written
    assert site.api_key[4:] not in written
    assert keys.hash_key(site.api_key) not in written


_TELLING = "Incorrect API key provided: sk-scripted-0123456789 of org-Acme, see platform.example"


async def test_a_providers_own_words_are_not_for_visitors(site: Site) -> None:
    site.talk.script(Reply(status=401, message=_TELLING))
    answer = await site.ask()
    assert _error(answer) == (502, "provider_error")
    assert "details" not in answer.json()["error"]
    for secret in ("sk-scripted", "org-Acme", site.talk.model, "401"):
        assert secret not in answer.text


@pytest.mark.parametrize("after", [0, 1])
async def test_a_providers_own_words_are_not_in_a_public_stream(
    server: Server, site: Site, after: int
) -> None:
    site.talk.script(Reply(texts=["Half", " lost"], error_after=after, message=_TELLING))
    answer, events = await _streamed(server, site)
    name, told = events[-1]
    assert (name, told["code"]) == ("error", "provider_error")
    assert set(told) == {"code", "message"}
    for secret in ("sk-scripted", "org-Acme", site.talk.model):
        assert secret not in answer.text


async def test_the_owner_reads_the_providers_words(site: Site) -> None:
    site.talk.script(Reply(status=400, message="the window is too small"))
    answer = await site.talk.client.post(f"{site.talk.path}/chat", {"message": "Hi"})
    assert "the window is too small" in answer.json()["error"]["message"]


async def test_a_customers_own_server_is_limited_by_its_plan_not_by_its_address(
    site: Site,
) -> None:
    """All of its visitors come from one address."""
    caller = site.talk.world.anonymous()
    for number in range(35):
        body = {**site.body(), "session_id": f"visitor-{number}"}
        answer = await caller.post(f"{site.path}/chat", body, headers=site.headers())
        assert answer.status_code == 200, answer.text
