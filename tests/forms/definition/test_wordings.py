"""The fixed texts of conversations."""

import re

import pytest

from app.domain.forms.definition.fields import wordings
from app.domain.forms.definition.fields.language_tables import Text, load_table, speak
from app.domain.forms.definition.fields.wordings import WORDINGS, say
from app.domain.forms.definition.schemas import FormSettings
from app.kit.languages import ENGLISH, LANGUAGES
from app.kit.plurals import list_categories
from tests.layout.sources import find_files

_NAME = re.compile(r"\b(?:say|refuse)\(\s*\"(\w+)\"")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def test_every_text_that_code_names_exists() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in find_files("app/domain/forms"))
    names = set(_NAME.findall(code))
    assert len(names) > 50
    assert names <= WORDINGS.keys()


def _list_variants(text: Text) -> dict[str, str]:
    return {"other": text} if isinstance(text, str) else text


def test_every_language_has_all_texts(subtests: pytest.Subtests) -> None:
    for language in LANGUAGES[1:]:
        with subtests.test(language):
            assert load_table(language).texts.keys() == WORDINGS.keys()


def test_texts_have_the_placeholders_and_plurals_that_they_need(subtests: pytest.Subtests) -> None:
    for language in LANGUAGES:
        texts = WORDINGS if language == ENGLISH else load_table(language).texts
        for name, text in texts.items():
            with subtests.test(language, name=name):
                english, variants = WORDINGS[name], _list_variants(text)
                assert all(item.strip() or name == "list_separator" for item in variants.values())
                if not isinstance(english, str):
                    assert tuple(variants) == list_categories(language)
                expected = set(_PLACEHOLDER.findall(_list_variants(english)["other"]))
                assert set(_PLACEHOLDER.findall(variants["other"])) == expected
                # One thing may be called by its name.
                missing = [expected - set(_PLACEHOLDER.findall(item)) for item in variants.values()]
                assert all(names <= {"count"} for names in missing)


def test_texts_in_other_languages() -> None:
    with speak("de"):
        assert say("max_length", count=10_000) == "höchstens 10.000 Zeichen sind erlaubt"
        assert wordings.show_date("2026-03-03") == "03.03.2026"
        assert wordings.show_decimal("0.5") == "0,5"
    with speak("ru"):
        assert say("max_length", count=21) == "не более 21 символа"
        assert say("max_length", count=5) == "не более 5 символов"
    with speak("ja"):
        assert wordings.show_date("2026-03-03T09:30:00Z") == "2026年3月3日 09:30:00"
    # Errors of the API stay English.
    assert say("max_length", count=10_000) == "must have at most 10,000 characters"


def test_the_default_message_of_a_form_is_translated() -> None:
    assert FormSettings().success_message == WORDINGS["received"]


def test_texts_are_filled_in() -> None:
    assert say("max_length", count=10_000) == "must have at most 10,000 characters"
    assert say("exactly_of", count=1, options="A or B") == "one of A or B"
    assert say("exactly_of", count=2, options="A or B") == "2 of A or B"
    # A value is not filled in again.
    assert say("noted", label="{value}", value="{0}") == "I noted “{value}”: {0}."
    assert str(wordings.refuse("email")).startswith("must be an e-mail address")
