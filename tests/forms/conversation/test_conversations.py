"""Forms that are filled in by chat: starting, answering and reading a conversation."""

from typing import Any

import pytest

from tests.assertions import refused
from tests.forms.api import (
    EMAIL,
    FILE,
    PATH,
    PUBLIC,
    TEXT,
    TOPIC,
    create_form,
    get_submission,
    problems,
    upload,
)
from tests.forms.conversation.chat import GUESTS, MAIL, reply_of, send_start, start
from tests.world import Client

HIDDEN: dict[str, Any] = {"id": "campaign", "type": "hidden", "label": "Campaign", "required": True}
BUDGET: dict[str, Any] = {
    "id": "budget",
    "type": "number",
    "label": "Your budget",
    "required": True,
    "conditional": {"field": "topic", "operator": "equals", "value": "sales"},
}


# Starting and reading


async def test_a_conversation_starts_with_the_first_question(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL, description="Write to us.")
    answer = await send_start(anonymous, form)
    assert answer.status_code == 201
    body = answer.json()
    assert body["data"] | {"id": "", "created_at": ""} == {
        "id": "",
        "form_slug": form["slug"],
        "status": "active",
        "fields_completed": 0,
        "fields_total": 2,
        "collected_data": {},
        "submission_id": None,
        "created_at": "",
        "language": "en",
    }
    message = body["message"]
    assert message["content"] == "Hello! This is the form “Contact”. Write to us. Your name?"
    assert (message["role"], message["field_id"]) == ("assistant", "name")
    assert message["id"].startswith("fms_")


async def test_a_form_greets_with_its_own_words(developer: Client, anonymous: Client) -> None:
    settings = {"conversation": {"greeting": "Ahoy!"}}
    form = await create_form(developer, TEXT, settings=settings)
    assert (await start(anonymous, form)).question["content"] == "Ahoy! Your name?"


async def test_known_answers_are_not_asked_for(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, EMAIL, HIDDEN)
    chat = await start(anonymous, form, {"name": "Ada", "campaign": "spring"})
    assert chat.question["field_id"] == "email"
    view = await chat.get()
    assert (view["fields_completed"], view["fields_total"]) == (1, 2)
    assert view["collected_data"] == {"name": "Ada", "campaign": "spring"}
    turn = await chat.say(MAIL)
    stored = await get_submission(developer, form, turn["submission_id"])
    assert stored["data"] == {"name": "Ada", "email": MAIL, "campaign": "spring"}


async def test_wrong_known_answers_are_refused(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, TEXT, EMAIL, HIDDEN, FILE)
    known = {"campaign": "spring"}
    for data, wrong in (
        ({}, "campaign"),
        ({**known, "email": "ada"}, "email"),
        ({**known, "other": 1}, "other"),
        ({**known, "file": "fil_forged"}, "file"),
    ):
        with subtests.test(wrong):
            assert problems(await send_start(anonymous, form, data)).keys() == {wrong}


async def test_a_start_with_all_answers_is_refused(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT)
    assert problems(await send_start(anonymous, form, {"name": "Ada"})).keys() == {"data"}


async def test_a_form_that_takes_no_answers_has_no_conversations(
    developer: Client, anonymous: Client
) -> None:
    draft = await create_form(developer, TEXT, is_published=False)
    refused(await send_start(anonymous, draft), 404, "form_not_found")
    closed = await create_form(developer, TEXT, settings={"closes_at": "2020-01-01T00:00:00Z"})
    refused(await send_start(anonymous, closed), 409, "form_closed")


async def test_the_messages_of_a_conversation_are_listed_in_order(
    developer: Client, anonymous: Client
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    turn = await chat.say("Ada")
    assert (turn["fields_completed"], turn["fields_total"]) == (1, 2)
    assert turn["form_completed"] is False
    assert "submission_id" not in turn
    messages = await chat.list_messages()
    assert messages == [chat.question, turn["user_message"], turn["assistant_message"]]
    assert [(item["role"], item.get("field_id")) for item in messages] == [
        ("assistant", "name"),
        ("user", None),
        ("assistant", "email"),
    ]
    assert messages[1]["content"] == "Ada"


async def test_a_conversation_goes_on_from_elsewhere_by_its_id(
    developer: Client, anonymous: Client, world: Any
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    await chat.say("Ada")
    chat.client = world.anonymous()
    assert (await chat.get())["collected_data"] == {"name": "Ada"}
    assert (await chat.say(MAIL))["form_completed"] is True


async def test_an_id_opens_only_the_conversation_of_its_form(
    developer: Client, anonymous: Client
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT))
    other = await create_form(developer, TEXT)
    for slug, conversation_id in (
        (other["slug"], chat.id),
        (chat.form["slug"], chat.id[:-1] + ("0" if chat.id[-1] != "0" else "1")),
        (chat.form["slug"], "fcv_"),
        (chat.form["slug"], "%27"),
    ):
        path = f"{PUBLIC}/{slug}/conversations/{conversation_id}"
        code = "form_conversation_not_found"
        refused(await anonymous.get(path), 404, code)
        refused(await anonymous.get(f"{path}/messages"), 404, code)
        refused(await anonymous.post(f"{path}/messages", {"content": "Ada"}), 404, code)
        stream = await anonymous.post(f"{path}/messages/stream", {"content": "Ada"})
        refused(stream, 404, code)
    assert len(await chat.list_messages()) == 1


# Answers


async def test_one_message_answers_several_questions(developer: Client, anonymous: Client) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL, TOPIC, GUESTS))
    turn = await chat.say(f"My name is Ada, my mail is {MAIL} and guests: 3")
    assert (turn["fields_completed"], turn["assistant_message"]["field_id"]) == (3, "topic")
    assert f"I noted “Your e-mail”: {MAIL}." in reply_of(turn)
    assert (await chat.get())["collected_data"] == {"name": "Ada", "email": MAIL, "guests": 3}


async def test_a_correction_changes_an_earlier_answer(developer: Client, anonymous: Client) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL, TOPIC))
    turn = await chat.say("Ada", MAIL, "Actually my e-mail is bob@example.com")
    assert "I changed “Your e-mail” to bob@example.com." in reply_of(turn)
    assert turn["assistant_message"]["field_id"] == "topic"
    assert (await chat.get())["collected_data"] == {"name": "Ada", "email": "bob@example.com"}


async def test_a_wrong_answer_is_asked_for_again_with_the_reason(
    developer: Client, anonymous: Client
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL, GUESTS))
    turn = await chat.say("Ada", "no idea")
    assert turn["assistant_message"]["field_id"] == "email"
    assert "“Your e-mail” must be an e-mail address" in reply_of(turn)
    assert turn["fields_completed"] == 1
    assert "must be at most 9" in reply_of(await chat.say(MAIL, "10"))
    assert (await chat.say("9"))["form_completed"] is True


async def test_a_wrong_correction_keeps_the_earlier_answer(
    developer: Client, anonymous: Client
) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL, FILE, GUESTS))
    file_id = (await upload(anonymous, chat.form, b"hello")).json()["data"]["file_id"]
    turn = await chat.say("Ada", MAIL, file_id, "my e-mail is bob")
    assert "“Your e-mail” must be an e-mail address" in reply_of(turn)
    turn = await chat.say("actually the file is fil_forged")
    assert "“A file”" in reply_of(turn)
    expected = {"name": "Ada", "email": MAIL, "file": file_id}
    assert (await chat.get())["collected_data"] == expected


async def test_a_required_question_cannot_be_skipped(developer: Client, anonymous: Client) -> None:
    chat = await start(anonymous, await create_form(developer, TEXT, EMAIL))
    turn = await chat.say("skip")
    assert reply_of(turn) == "“Your name” is required. Your name?"
    turn = await chat.say("Ada")
    assert "say “skip”" in reply_of(turn)
    turn = await chat.say("skip")
    assert (turn["fields_completed"], turn["form_completed"]) == (2, True)
    assert (await chat.get())["collected_data"] == {"name": "Ada"}


async def test_a_question_of_the_visitor_is_no_answer(developer: Client, anonymous: Client) -> None:
    field = {**TEXT, "help_text": "It is printed on your badge."}
    chat = await start(anonymous, await create_form(developer, field, EMAIL))
    turn = await chat.say("What is this for?")
    assert reply_of(turn) == "Your name? It is printed on your badge."
    assert turn["fields_completed"] == 0


async def test_a_correction_evaluates_the_conditions_again(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, TOPIC, BUDGET, EMAIL)
    chat = await start(anonymous, form)
    assert (await chat.say("Ada"))["fields_total"] == 3
    turn = await chat.say("sales")
    assert (turn["fields_total"], turn["assistant_message"]["field_id"]) == (4, "budget")
    turn = await chat.say("500")
    assert (turn["fields_completed"], turn["fields_total"]) == (3, 4)
    turn = await chat.say("change the topic to help")
    assert (turn["fields_completed"], turn["fields_total"]) == (2, 3)
    assert (await chat.get())["collected_data"] == {"name": "Ada", "topic": "help"}
    turn = await chat.say(MAIL)
    stored = await get_submission(developer, form, turn["submission_id"])
    assert stored["data"] == {"name": "Ada", "topic": "help", "email": MAIL}


async def test_a_question_that_a_correction_hides_is_not_answered_any_more(
    developer: Client, anonymous: Client
) -> None:
    chat = await start(anonymous, await create_form(developer, TOPIC, BUDGET, TEXT))
    turn = await chat.say("sales", "sorry, the topic is help")
    assert turn["assistant_message"]["field_id"] == "name"
    assert (await chat.say("Ada"))["form_completed"] is True


# Types of fields


async def test_an_option_is_chosen_by_its_label_or_its_number(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, TOPIC, TEXT)
    for text, value in (("Help", "help"), ("SALES please", "sales"), ("2", "help")):
        with subtests.test(text):
            chat = await start(anonymous, form)
            await chat.say(text)
            assert (await chat.get())["collected_data"] == {"topic": value}


async def test_options_of_a_data_table_are_named_and_chosen(
    developer: Client, anonymous: Client
) -> None:
    columns = [{"name": "code", "type": "text"}, {"name": "city", "type": "text"}]
    table = await developer.post("/api/v1/data-tables", {"name": "Cities", "columns": columns})
    assert table.status_code == 201, table.text
    table_id = table.json()["data"]["id"]
    for code, city in (("b", "Berlin"), ("p", "Paris")):
        path = f"/api/v1/data-tables/{table_id}/rows"
        row = await developer.post(path, {"values": {"code": code, "city": city}})
        assert row.status_code == 201, row.text
    source = {"type": "data_table", "table_id": table_id}
    source |= {"value_column": "code", "label_column": "city"}
    field = {"id": "city", "type": "select", "label": "City", "data_source": source}
    form = await create_form(developer, field, TEXT)
    chat = await start(anonymous, form)
    assert "one of Berlin or Paris" in chat.question["content"]
    assert "must be one of the options" in reply_of(await chat.say("Rome"))
    turn = await chat.say("paris", "Ada")
    stored = await get_submission(developer, form, turn["submission_id"])
    assert stored["data"] == {"city": "p", "name": "Ada"}


async def test_a_file_is_answered_by_its_id(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, {**FILE, "required": True}, TEXT)
    other = await create_form(developer, FILE)
    foreign = (await upload(anonymous, other, b"other")).json()["data"]["file_id"]
    chat = await start(anonymous, form)
    for wrong in ("fil_forged", foreign, "here it is", "x" * 4000):
        turn = await chat.say(wrong)
        assert turn["assistant_message"]["field_id"] == "file"
        assert "“A file”" in reply_of(turn)
    file_id = (await upload(anonymous, form, b"hello")).json()["data"]["file_id"]
    turn = await chat.say(file_id, "Ada")
    stored = await get_submission(developer, form, turn["submission_id"])
    assert [item["file_id"] for item in stored["files"]] == [file_id]
    content = await developer.get(f"{PATH}/{form['id']}/files/{file_id}")
    assert content.content == b"hello"


async def test_a_consent_has_to_be_given(developer: Client, anonymous: Client) -> None:
    consent = {"id": "terms", "type": "checkbox", "label": "Do you agree?", "required": True}
    chat = await start(anonymous, await create_form(developer, consent, TEXT))
    assert "must be checked" in reply_of(await chat.say("no"))
    assert "is required" in reply_of(await chat.say("skip"))
    assert (await chat.say("I agree"))["fields_completed"] == 1
    assert (await chat.get())["collected_data"] == {"terms": True}


async def test_a_date_is_stored_in_one_form(developer: Client, anonymous: Client) -> None:
    day = {"id": "day", "type": "date", "label": "Which day?"}
    chat = await start(anonymous, await create_form(developer, day, TEXT))
    assert (await chat.say("some day"))["fields_completed"] == 0
    await chat.say("on 31 January 2026, please")
    assert (await chat.get())["collected_data"] == {"day": "2026-01-31"}
