"""Texts of a form between its questions: each is said once, before the question that follows it."""

from typing import Any

from tests.forms.api import create_form
from tests.forms.conversation.chat import MAIL, reply_of, start
from tests.world import Client

_SKIP = "This is optional; say “skip” to leave it out."
_SETTINGS = {"conversation": {"model": "none", "greeting": "Hello!"}}


def _text(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "text", "label": name.title(), "required": True, **more}


def _read(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"id": f"{kind}_{name}", "type": kind, "label": f"About {name}", **more}


async def test_each_text_is_said_once_before_its_question(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(
        developer,
        _read("page_break", "you", help_text="Two questions."),
        _text("name"),
        _read("section", "mail"),
        _read("paragraph", "use", label="We keep [our promise](https://example.com)."),
        {"id": "email", "type": "email", "label": "E-mail", "required": True},
        _read("section", "end"),
        settings=_SETTINGS,
    )
    chat = await start(anonymous, form)
    assert chat.question["content"] == "Hello!\n\nAbout you\nTwo questions.\n\nName?"
    question = "E-mail: please enter an e-mail address, like name@example.com."
    assert reply_of(await chat.say("Ada")) == (
        f"About mail\n\nWe keep [our promise](https://example.com).\n\n{question}"
    )
    # Neither for a wrong answer nor for a correction are they said again.
    assert "About" not in reply_of(await chat.say("nowhere"))
    assert reply_of(await chat.say("Sorry, my name is Bob")).endswith(question)
    assert "About" not in reply_of(await chat.say("my name is Eve"))
    assert (await chat.say(MAIL))["form_completed"] is True


async def test_headings_of_answered_questions_are_left_out(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(
        developer,
        _text("name"),
        _read("section", "city"),
        _read("paragraph", "law"),
        _text("city"),
        _read("section", "color"),
        _text("color"),
        settings=_SETTINGS,
    )
    chat = await start(anonymous, form)
    reply = reply_of(await chat.say("Ada, my city is London"))
    assert reply == "I noted “City”: London.\n\nAbout law\n\nAbout color\n\nColor?"


async def test_texts_that_are_too_long_for_a_message_wait_for_the_next_question(
    developer: Client, anonymous: Client
) -> None:
    texts = [_read("paragraph", f"{number}", label=f"{number}" * 2000) for number in range(9)]
    more = [_read("paragraph", f"1{number}", label=f"{number}" * 2000) for number in range(9)]
    form = await create_form(
        developer, *texts, *more, _text("name"), _text("city"), settings=_SETTINGS
    )
    chat = await start(anonymous, form)
    blocks = chat.question["content"].split("\n\n")
    assert [block[0] for block in blocks] == [*"H0123456780N"]
    blocks = reply_of(await chat.say("Ada")).split("\n\n")
    assert [block[0] for block in blocks] == [*"12345678C"]


async def test_a_text_that_is_not_shown_is_not_said(developer: Client, anonymous: Client) -> None:
    condition = {"field": "name", "operator": "equals", "value": "Ada"}
    form = await create_form(
        developer,
        _text("name"),
        _read("section", "ada", conditional=condition),
        _text("city", required=False),
        settings=_SETTINGS,
    )
    for name, reply in (("Bob", f"City? {_SKIP}"), ("Ada", f"About ada\n\nCity? {_SKIP}")):
        chat = await start(anonymous, form)
        assert reply_of(await chat.say(name)) == reply


async def test_options_are_chosen_by_a_list_of_names(developer: Client, anonymous: Client) -> None:
    options = [
        {"value": "ddos", "label": "DDoS shield"},
        {"value": "pg", "label": "PostgreSQL"},
        {"value": "R&D", "label": "Research and development"},
    ]
    field = {"id": "extras", "type": "multi_select", "label": "Extras", "options": options}
    form = await create_form(developer, field, _text("name"), settings=_SETTINGS)
    for text, values in (
        ("DDoS shield and PostgreSQL", ["ddos", "pg"]),
        ("research and development and postgresql", ["R&D", "pg"]),
        ("r&d & ddos", ["R&D", "ddos"]),
        ("PostgreSQL\nDDoS shield", ["pg", "ddos"]),
        ("ddos or pg", ["ddos", "pg"]),
    ):
        chat = await start(anonymous, form)
        await chat.say(text)
        assert (await chat.get())["collected_data"] == {"extras": values}, text
