"""Models that read answers in messages: what they are asked, and what becomes of their answers."""

import asyncio
import itertools
import json
from typing import Any

import msgspec
import pytest

from app.domain.forms.conversation import extraction
from app.services import Services
from tests.assertions import until
from tests.database import run_sql
from tests.forms.api import EMAIL, FILE, TEXT, TOPIC, create_form, get_submission
from tests.forms.conversation.chat import GUESTS, MAIL, Chat, reply_of, start
from tests.http_clients import open_client
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import PROVIDER, give_key
from tests.server import Server
from tests.world import Client, World

SENTENCE = "well, people around here mostly call me Ada, and there will be three of us"
_number = itertools.count(1)


class Reader(msgspec.Struct):
    """The author of a form with a scripted model, and a visitor."""

    author: Client
    models: ModelServer
    model: str
    chat: Chat

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.models.asked(self.model)

    def script(self, answer: Any) -> None:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.models.script(self.model, Reply(texts=[text]))

    async def collect(self) -> Any:
        return (await self.chat.get())["collected_data"]


@pytest.fixture
async def reader(world: World, models: ModelServer) -> Reader:
    author = await world.user("tenant_admin")
    await give_key(author, models)
    return await _create_reader(world, author, models)


async def _create_reader(
    world: World, author: Client, models: ModelServer, *fields: dict[str, Any]
) -> Reader:
    model = f"form-model-{next(_number)}"
    settings = {"conversation": {"model": f"{PROVIDER}/{model}"}}
    fields = fields or (TEXT, EMAIL, TOPIC, GUESTS, FILE)
    form = await create_form(author, *fields, settings=settings)
    return Reader(author, models, model, await start(world.anonymous(), form))


async def test_the_model_is_asked_for_json_of_the_fields(reader: Reader) -> None:
    reader.script({"name": "Ada", "guests": 3})
    turn = await reader.chat.say(SENTENCE)
    assert await reader.collect() == {"name": "Ada", "guests": 3}
    assert "I noted “How many guests?”: 3." in reply_of(turn)
    (request,) = reader.requests
    output = request["response_format"]
    assert output["type"] == "json_schema"
    schema = output["json_schema"]["schema"]
    # A file cannot be read in a message.
    assert list(schema["properties"]) == ["name", "email", "topic", "guests"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["topic"] == {
        "anyOf": [{"type": "string", "enum": ["sales", "help"]}, {"type": "null"}]
    }
    system, user = request["messages"]
    assert user == {"role": "user", "content": SENTENCE}
    assert "- guests: How many guests? (a number from 1 to 9)" in system["content"]
    assert "asked for name" in system["content"]


async def test_short_answers_are_read_without_the_model(reader: Reader) -> None:
    turn = await reader.chat.say("Ada", MAIL, "sales", "3", "skip")
    assert turn["form_completed"] is True
    assert reader.requests == []


# What a model says, and what is left of it.
_ANSWERS: list[tuple[str, Any, dict[str, Any]]] = [
    ("valid", {"name": "Ada", "email": MAIL, "topic": "help"}, {"email": MAIL, "topic": "help"}),
    ("null", {"name": "Ada", "email": None}, {}),
    ("unknown option", {"name": "Ada", "topic": "other"}, {}),
    ("label for value", {"name": "Ada", "topic": "Help"}, {}),
    ("out of range", {"name": "Ada", "guests": 10}, {}),
    ("wrong type", {"name": "Ada", "guests": "3", "email": 5}, {}),
    ("unknown field", {"name": "Ada", "admin": True, "form_id": "x"}, {}),
    ("file", {"name": "Ada", "file": "fil_forged"}, {}),
    ("nested", {"name": "Ada", "email": {"value": MAIL}, "topic": ["help"]}, {}),
    ("other keys", {"name": "Ada", "": 1, "name ": "Eve"}, {}),
]


async def test_answers_of_the_model_are_checked_like_all_others(
    reader: Reader, world: World, subtests: pytest.Subtests
) -> None:
    for name, answer, expected in _ANSWERS:
        with subtests.test(name):
            one = await _create_reader(world, reader.author, reader.models)
            one.script(answer)
            await one.chat.say(SENTENCE)
            assert await one.collect() == {"name": "Ada", **expected}
            assert len(one.requests) == 1


_GARBAGE = {
    "no JSON": "I think that it is Ada.",
    "half": '{"name": "Ad',
    "list": [{"name": "Eve"}],
    "text": '"Ada"',
    "number": "5",
    "empty": "",
    "deep": "[" * 5000,
    "wrong Unicode": '{"name": "\\ud800"}',
    "NUL": {"name": "Eve\0"},
    "long": {"name": "x" * 5000},
}


async def test_a_message_is_read_without_a_model_that_says_nonsense(
    reader: Reader, world: World, subtests: pytest.Subtests
) -> None:
    for name, answer in _GARBAGE.items():
        with subtests.test(name):
            one = await _create_reader(world, reader.author, reader.models)
            one.script(answer)
            await one.chat.say(f"people around here know me by {MAIL}")
            assert (await one.collect())["email"] == MAIL
            assert len(one.requests) == 1


async def test_a_message_is_read_without_a_model_that_fails(
    reader: Reader, subtests: pytest.Subtests
) -> None:
    chat = reader.chat
    for number, reply in enumerate((Reply(status=400), Reply(status=401), Reply(raw=b"<html>"))):
        with subtests.test(str(number)):
            reader.models.script(reader.model, reply)
            await chat.say(f"my full name is Ada number {number}")
            assert await reader.collect() == {"name": f"Ada number {number}"}


async def test_a_message_is_read_without_a_model_that_is_slow(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "_TIMEOUT_SECONDS", 0.05)
    hold = asyncio.Event()
    reader.models.script(reader.model, Reply(hold=hold))
    try:
        await reader.chat.say("my full name is Ada Lovelace")
    finally:
        hold.set()
    assert await reader.collect() == {"name": "Ada Lovelace"}


async def test_a_message_is_read_without_a_model_that_is_not_configured(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for model in ["other/x", "gpt-4o", "claude-x", "a b", "//", "local/unknown"]:
        with subtests.test(model=model):
            settings = {"conversation": {"model": model}}
            form = await create_form(developer, TEXT, EMAIL, settings=settings)
            chat = await start(anonymous, form)
            await chat.say("my full name is Ada Lovelace")
            assert (await chat.get())["collected_data"] == {"name": "Ada Lovelace"}


async def test_no_model_is_asked_for_a_form_without_one(
    reader: Reader, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise AssertionError("a model was asked")

    monkeypatch.setattr(extraction, "extract", fail)
    settings = {"conversation": {"model": "none"}}
    chat = await start(anonymous, await create_form(reader.author, TEXT, EMAIL, settings=settings))
    await chat.say("my full name is Ada Lovelace", "I do not have such a thing")
    assert (await chat.get())["collected_data"] == {"name": "Ada Lovelace"}


async def test_the_usage_of_a_call_is_stored(reader: Reader, services: Services) -> None:
    reader.script({"name": "Ada"})
    await reader.chat.say(SENTENCE)
    sql = """SELECT source, model, agent_id, prompt_tokens, completion_tokens
             FROM usage WHERE tenant_id = $1"""
    assert await run_sql(services, sql, reader.author.tenant_id) == [
        {
            "source": "form",
            "model": f"{PROVIDER}/{reader.model}",
            "agent_id": reader.chat.form["id"],
            "prompt_tokens": 11,
            "completion_tokens": 7,
        }
    ]


async def test_an_answer_is_not_changed_by_what_a_model_invents(reader: Reader) -> None:
    reader.script({"name": "Eve", "email": MAIL})
    await reader.chat.say("Ada", "please write to the address that you know already")
    assert await reader.collect() == {"name": "Ada", "email": MAIL}


async def test_a_correction_that_a_model_reads_changes_an_answer(reader: Reader) -> None:
    reader.script({"name": "Ada Byron", "email": None})
    await reader.chat.say("Ada", "oh sorry, in my passport it says Ada Byron")
    assert await reader.collect() == {"name": "Ada Byron"}


async def test_a_form_that_a_model_fills_in_is_submitted(reader: Reader, world: World) -> None:
    one = await _create_reader(world, reader.author, reader.models, TEXT, TOPIC, GUESTS)
    one.script({"name": "Ada", "topic": "help", "guests": 3})
    turn = await one.chat.say(SENTENCE)
    stored = await get_submission(reader.author, one.chat.form, turn["submission_id"])
    assert stored["data"] == {"name": "Ada", "topic": "help", "guests": 3}


async def test_half_a_character_in_the_text_of_a_model_is_no_failure(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some libraries of providers return texts that cannot be encoded."""

    async def ask(*_: Any) -> str:
        return '{"name": "\ud800"}'

    monkeypatch.setattr(extraction, "_ask", ask)
    await reader.chat.say("my full name is Ada Lovelace")
    assert await reader.collect() == {"name": "Ada Lovelace"}


async def test_a_visitor_who_leaves_ends_the_call_of_the_model(
    reader: Reader, server: Server, subtests: pytest.Subtests
) -> None:
    for path in ("messages", "messages/stream"):
        with subtests.test(path):
            await _leave(reader, server, path)
    # The message is not stored: its sender got no answer and sends it again.
    assert len(await reader.chat.list_messages()) == 1
    reader.script({"name": "Ada"})
    assert (await reader.chat.say(SENTENCE))["fields_completed"] == 1


async def _leave(reader: Reader, server: Server, path: str) -> None:
    """Leaves while the model is reading, and waits for the end of the model's call."""
    hold, asked, closed = asyncio.Event(), len(reader.requests), reader.models.closed_early
    reader.models.script(reader.model, Reply(hold=hold))
    async with open_client(base_url=server.url) as client:
        sending = asyncio.create_task(
            client.post(f"{reader.chat.path}/{path}", json={"content": SENTENCE})
        )
        await until(lambda: len(reader.requests) > asked)
        sending.cancel()
        await asyncio.wait([sending])
    try:
        await until(lambda: reader.models.closed_early > closed, 2)
    finally:
        hold.set()
