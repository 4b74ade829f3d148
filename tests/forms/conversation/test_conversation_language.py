"""The language that a conversation with a form is held in."""

from typing import Any

import pytest

from tests.forms.api import EMAIL, PUBLIC, TEXT, create_form
from tests.forms.conversation.chat import Chat, reply_of
from tests.world import Client

_DATE = {"id": "day", "type": "date", "label": "Tag", "validation": {"min_date": "2026-03-01"}}


async def _start(
    client: Client, form: dict[str, Any], language: str | None = None, accept: str = ""
) -> Chat:
    answer = await client.post(
        f"{PUBLIC}/{form['slug']}/conversations",
        {"language": language},
        headers={"accept-language": accept},
    )
    assert answer.status_code == 201, answer.text
    body = answer.json()
    return Chat(client, form, body["data"]["id"], body["message"])


async def test_it_is_chosen_by_the_page_the_form_and_the_browser(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    plain = await create_form(developer, TEXT)
    french = await create_form(developer, TEXT, settings={"language": "fr"})
    for form, language, accept, expected in [
        (plain, None, "", "en"),
        (plain, None, "sv, de;q=0.8", "de"),
        (plain, "pt-BR", "de", "pt"),
        (plain, "sv", "de", "de"),
        (french, None, "de", "fr"),
        (french, "ja", "de", "ja"),
    ]:
        with subtests.test(language=language, accept=accept, expected=expected):
            chat = await _start(anonymous, form, language, accept)
            assert (await chat.get())["language"] == expected


async def test_the_form_speaks_and_understands_it(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, _DATE, EMAIL)
    chat = await _start(anonymous, form, "de")
    assert chat.question["content"].startswith("Guten Tag! Dies ist das Formular „Contact“.")
    turn = await chat.say("Ich heiße Ada")
    assert "bitte geben Sie an: ein Datum ab dem 01.03.2026" in reply_of(turn)
    assert "darf nicht vor dem 01.03.2026 liegen" in reply_of(await chat.say("28.02.2026"))
    await chat.say("3. März 2026")
    turn = await chat.say("Eigentlich ist mein Name Bob")
    assert reply_of(turn).startswith("Ich habe „Your name“ geändert: Bob.")
    turn = await chat.say("ada@example.com")
    assert turn["form_completed"]
    assert reply_of(turn) == "Vielen Dank. Ihre Antworten sind eingegangen."
    assert (await chat.get())["collected_data"] == {
        "name": "Bob",
        "day": "2026-03-03",
        "email": "ada@example.com",
    }


async def test_errors_of_the_api_stay_english(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    answer = await anonymous.post(
        f"{PUBLIC}/{form['slug']}/conversations", {"data": {"email": "x"}, "language": "de"}
    )
    assert answer.status_code == 400
    assert "must be an e-mail address" in answer.text
