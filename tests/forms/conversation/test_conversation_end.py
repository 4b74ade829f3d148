"""Forms that are filled in by chat: the submission, conflicts, limits and the end of a
conversation.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.domain.agents.llm.protocol import Target
from app.domain.forms.conversation import conversations, extraction
from app.domain.forms.conversation.interpreting import Extract
from app.domain.forms.submissions import uploads
from app.kit import logs
from app.services import Services
from db.retention import delete_expired
from db.session import ALL_TENANTS
from tests.assertions import refused
from tests.database import run_sql
from tests.forms.api import (
    EMAIL,
    FILE,
    PATH,
    TEXT,
    create_form,
    get_submission,
    list_submissions,
    problems,
    submit,
    upload,
)
from tests.forms.conversation.chat import MAIL, Chat, send_start, start
from tests.forms.upkeep import RETENTION
from tests.platform.events.database import load_events
from tests.world import Client, World

SIGNATURE: dict[str, Any] = {"id": "sign", "type": "signature", "label": "Sign here"}


# The submission


async def test_the_last_answer_submits_the_form(
    developer: Client, anonymous: Client, services: Services
) -> None:
    settings = {"success_message": "See you soon."}
    form = await create_form(developer, TEXT, EMAIL, settings=settings)
    chat = await start(anonymous, form)
    answer = await chat.send("Ada")
    answer = await anonymous.post(
        f"{chat.path}/messages", {"content": MAIL}, headers={"referer": "https://example.com/a"}
    )
    turn = answer.json()["data"]
    assert turn["form_completed"] is True
    assert turn["assistant_message"]["content"] == "See you soon."
    assert "field_id" not in turn["assistant_message"]
    stored = await get_submission(developer, form, turn["submission_id"])
    assert stored["data"] == {"name": "Ada", "email": MAIL}
    assert stored["metadata"]["source"] == "conversation"
    assert stored["metadata"]["page_url"] == "https://example.com/a"
    assert stored["metadata"]["ip_address"] == anonymous.address
    sql = "SELECT conversation_id, completion_seconds FROM form_submissions WHERE id = $1"
    (row,) = await run_sql(services, sql, turn["submission_id"])
    assert row["conversation_id"] == chat.id
    assert 0 <= row["completion_seconds"] < 600
    view = await chat.get()
    assert (view["status"], view["submission_id"]) == ("completed", turn["submission_id"])
    assert (view["fields_completed"], view["fields_total"]) == (2, 2)
    (event,) = await load_events(services, developer.tenant_id, "form.submission.created")
    assert event["data"]["submission_id"] == turn["submission_id"]
    assert event["data"]["source"] == "conversation"


async def test_a_completed_conversation_takes_no_messages(
    developer: Client, anonymous: Client
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT))
    await chat.say("Ada")
    refused(await chat.send("Bob"), 409, "invalid_state")
    stream = await anonymous.post(f"{chat.path}/messages/stream", {"content": "Bob"})
    refused(stream, 409, "invalid_state")
    assert len(await chat.list_messages()) == 3
    assert len(await list_submissions(developer, chat.form)) == 1


async def test_a_form_without_a_submission_that_is_valid_is_not_submitted(
    developer: Client, anonymous: Client, services: Services
) -> None:
    """A file is deleted between its answer and the last one."""
    form = await create_form(developer, {**FILE, "required": True}, TEXT)
    chat = await start(anonymous, form)
    file_id = (await upload(anonymous, form, b"hello")).json()["data"]["file_id"]
    await chat.say(file_id)
    sql = "UPDATE form_uploads SET expires_at = now() - interval '1 second' WHERE file_id = $1"
    await run_sql(services, sql, file_id)
    await uploads.delete_expired(services)
    turn = await chat.say("Ada")
    assert (turn["form_completed"], turn["assistant_message"]["field_id"]) == (False, "file")
    again = (await upload(anonymous, form, b"again")).json()["data"]["file_id"]
    assert (await chat.say(again))["form_completed"] is True
    assert len(await list_submissions(developer, form)) == 1


async def test_a_file_is_kept_while_the_conversation_goes_on(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, FILE, TEXT)
    chat = await start(anonymous, form)
    file_id = (await upload(anonymous, form, b"hello")).json()["data"]["file_id"]
    await chat.say(file_id)
    sql = """SELECT expires_at > now() + interval '29 days' AS is_kept
             FROM form_uploads WHERE file_id = $1"""
    assert await run_sql(services, sql, file_id) == [{"is_kept": True}]


# Meanwhile


async def test_of_two_messages_at_the_same_time_one_is_refused(
    developer: Client, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT))
    barrier = asyncio.Barrier(2)
    take = conversations.take

    async def wait_and_take(turn: conversations.Turn) -> Any:
        await barrier.wait()
        return await take(turn)

    monkeypatch.setattr(conversations, "take", wait_and_take)
    sent = await asyncio.gather(chat.send("Ada"), chat.send("Bob"))
    answers = sorted(sent, key=lambda answer: answer.status_code)
    assert answers[0].status_code == 200
    refused(answers[1], 409, "message_conflict")
    (submission,) = await list_submissions(developer, chat.form)
    assert submission["id"] == answers[0].json()["data"]["submission_id"]
    assert len(await chat.list_messages()) == 3


async def test_no_answer_is_taken_for_a_form_that_was_withdrawn(
    developer: Client, anonymous: Client
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    await chat.say("Ada")
    await developer.post(f"{PATH}/{chat.form['id']}/unpublish")
    refused(await chat.send(MAIL), 409, "form_not_published")
    stream = await anonymous.post(f"{chat.path}/messages/stream", {"content": MAIL})
    refused(stream, 409, "form_not_published")
    refused(await anonymous.get(chat.path), 404, "form_not_found")
    await developer.post(f"{PATH}/{chat.form['id']}/publish")
    assert (await chat.say(MAIL))["form_completed"] is True


async def test_no_answer_is_taken_for_a_form_that_is_full(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL, settings={"max_submissions": 1})
    chat = await start(anonymous, form)
    await chat.say("Ada")
    await submit(anonymous, form, {"name": "Bob"})
    refused(await chat.send(MAIL), 409, "form_closed")
    assert (await chat.get())["status"] == "active"
    assert len(await chat.list_messages()) == 3


async def test_a_conversation_keeps_the_version_that_it_started_with(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    chat = await start(anonymous, form)
    other = {**TEXT, "id": "city", "label": "City"}
    answer = await developer.put(f"{PATH}/{form['id']}", {"fields": [other, EMAIL]})
    assert answer.json()["data"]["version"] == 2
    turn = await chat.say("Ada", MAIL)
    stored = await get_submission(developer, form, turn["submission_id"])
    assert (stored["version"], stored["data"]) == (1, {"name": "Ada", "email": MAIL})
    assert (await start(anonymous, form)).question["field_id"] == "city"


async def test_a_message_that_is_sent_again_is_answered_once(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT)
    headers = {"idempotency-key": "once"}
    starts = [await send_start(anonymous, form, {}, headers=headers) for _ in range(2)]
    assert starts[0].json() == starts[1].json()
    chat = Chat(anonymous, form, starts[0].json()["data"]["id"], {})
    turns = [await chat.send("Ada", headers=headers) for _ in range(2)]
    assert [turn.status_code for turn in turns] == [200, 200]
    assert turns[0].json() == turns[1].json()
    assert len(await chat.list_messages()) == 3
    assert len(await list_submissions(developer, form)) == 1


# Limits


async def test_a_message_has_a_text_of_at_most_4000_characters(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT))
    for content in ("", " \n\t", "x" * 4001, "x" * 250_001, None, 5):
        for path in (f"{chat.path}/messages", f"{chat.path}/messages/stream"):
            with subtests.test(content=str(content)[:9], path=path):
                assert (await anonymous.post(path, {"content": content})).status_code == 422
    assert len(await chat.list_messages()) == 1


async def test_a_signature_is_longer_than_other_messages(
    developer: Client, anonymous: Client
) -> None:
    chat = await start(anonymous, await create_form(developer, SIGNATURE, TEXT))
    turn = await chat.say("and " * 60_000)
    assert turn["assistant_message"]["field_id"] == "sign"


async def test_one_address_sends_a_limited_number_of_messages(
    developer: Client, anonymous: Client, world: World
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    limit = world.services.settings.form_submissions_per_minute
    statuses = [(await chat.send("skip")).status_code for _ in range(limit - 1)]
    assert statuses == [200] * (limit - 1)
    answer = await chat.send("skip")
    error = refused(answer, 429, "rate_limit_exceeded")
    assert int(answer.headers["retry-after"]) == error["details"]["retry_after"] > 0
    refused(await send_start(anonymous, chat.form), 429, "rate_limit_exceeded")
    # Others, and other forms, are not affected.
    chat.client = world.anonymous()
    assert (await chat.send("Ada")).status_code == 200
    await start(anonymous, await create_form(developer, TEXT))


async def test_a_required_hidden_field_that_appears_later_ends_with_its_problem(
    developer: Client, anonymous: Client
) -> None:
    hidden = {"id": "code", "type": "hidden", "label": "Code", "required": True}
    hidden["conditional"] = {"field": "name", "operator": "equals", "value": "Ada"}
    form = await create_form(developer, TEXT, hidden)
    chat = await start(anonymous, form)
    assert problems(await chat.send("Ada")) == {"code": "is required"}
    assert (await chat.say("Bob"))["form_completed"] is True


# The end


async def _age(services: Services, chat: Chat, **columns: str) -> None:
    for column, age in columns.items():
        sql = f"UPDATE form_conversations SET {column} = now() - interval '{age}' WHERE id = $1"
        await run_sql(services, sql, chat.id)


async def test_a_conversation_is_abandoned_after_a_day_and_goes_on_with_a_message(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    old, young, done = [await start(anonymous, form) for _ in range(3)]
    await done.say("Ada", MAIL)
    await _age(services, old, updated_at="25 hours")
    await _age(services, young, updated_at="23 hours")
    await _age(services, done, updated_at="25 hours")
    while await conversations.abandon_old(services):
        pass
    statuses = [(await chat.get())["status"] for chat in (old, young, done)]
    assert statuses == ["abandoned", "active", "completed"]
    await old.say("Ada")
    assert (await old.get())["status"] == "active"


async def _drop_off(client: Client, form: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.get(f"{PATH}/{form['id']}/analytics")
    found: list[dict[str, Any]] = answer.json()["data"]["drop_off_fields"]
    return found


async def _run_retention(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        _, failed = await delete_expired(await tx.raw(), RETENTION)
    assert failed == []


async def test_an_expired_conversation_loses_its_contents_and_is_still_counted(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    chat, young = await start(anonymous, form), await start(anonymous, form)
    await chat.say("Ada")
    await submit(anonymous, form, {"name": "Bob"})
    before = await _drop_off(developer, form)
    assert before == [
        {"field_id": "email", "drop_off_rate": pytest.approx(33.33, abs=0.01)},
        {"field_id": "name", "drop_off_rate": pytest.approx(33.33, abs=0.01)},
    ]
    await _age(services, chat, expires_at="1 second")
    refused(await anonymous.get(chat.path), 404, "form_conversation_not_found")
    refused(await chat.send(MAIL), 404, "form_conversation_not_found")
    await _run_retention(services)
    await _run_retention(services)
    sql = "SELECT data::text AS data, expires_at FROM form_conversations WHERE id = $1"
    assert await run_sql(services, sql, chat.id) == [{"data": "{}", "expires_at": None}]
    sql = "SELECT count(*) FROM form_messages WHERE conversation_id = $1"
    assert await run_sql(services, sql, chat.id) == [{"count": 0}]
    assert len(await young.list_messages()) == 1
    assert await _drop_off(developer, form) == before


async def test_a_message_makes_the_conversation_last_for_30_days_more(
    developer: Client, anonymous: Client, services: Services
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    await _age(services, chat, expires_at="-1 hour")
    await chat.say("Ada")
    sql = """SELECT expires_at > now() + interval '29 days' AS is_kept
             FROM form_conversations WHERE id = $1"""
    assert await run_sql(services, sql, chat.id) == [{"is_kept": True}]


async def test_the_log_has_no_id_of_a_conversation(
    developer: Client, anonymous: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    logs.configure("info", "json")
    try:
        await chat.say("Ada")
        await chat.get()
    finally:
        logs.configure("warning", "json")
    output = capsys.readouterr().err
    assert output.count("fcv_[redacted]") == 2
    assert chat.id not in output


async def test_a_model_is_not_asked_within_a_transaction(
    developer: Client, anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a model answers, the conversation can be read and answered."""
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    target = Target("openai/x", "openai")
    ask_again: list[Callable[[], Awaitable[Any]]] = [lambda: chat.say("Bob")]

    async def find(*_: Any) -> Any:
        return target

    async def extract(*_: Any) -> Extract:
        await ask_again.pop()()
        return Extract({"name": "Ada"}, is_trusted=True)

    monkeypatch.setattr(extraction, "find_model", find)
    monkeypatch.setattr(extraction, "extract", extract)
    refused(await chat.send("most people here call me Ada"), 409, "message_conflict")
    assert (await chat.get())["collected_data"] == {"name": "Bob"}
