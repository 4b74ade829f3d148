"""Messages of people who speak another language than English."""

from typing import Any, get_args

import pytest

from app.domain.forms.conversation import interpreting
from app.domain.forms.conversation.interpreting import Question
from app.domain.forms.definition.definitions import FormDefinition
from app.domain.forms.definition.fields.language_tables import speak
from app.kit.languages import ENGLISH, Language
from tests.forms.conversation.spoken_messages import LABELS, MESSAGES
from tests.forms.definition.field_builders import build_form

_ANSWERS = {"name": "Ada", "email": "ada@example.com"}


def _build(language: str) -> FormDefinition:
    name, email, topic, guests, sales, help_ = LABELS[language]
    options = [{"value": "sales", "label": sales}, {"value": "help", "label": help_}]
    fields: list[dict[str, Any]] = [
        {"id": "name", "type": "text", "label": name, "required": True},
        {"id": "email", "type": "email", "label": email},
        {"id": "topic", "type": "select", "label": topic, "options": options},
        {"id": "guests", "type": "number", "label": guests},
    ]
    return build_form(*fields)


def test_answers_corrections_and_skipped_questions(subtests: pytest.Subtests) -> None:
    assert MESSAGES.keys() == set(get_args(Language)) - {ENGLISH}
    for language, messages in MESSAGES.items():
        form = _build(language)
        for current, text, expected in messages:
            answers = {} if current == "name" else _ANSWERS
            question = Question(fields=form.inputs, answers=answers, current=form.by_id[current])
            with subtests.test(language, text=text), speak(language):  # type: ignore[arg-type]
                reading = interpreting.read(question, text)
                assert reading.is_skip is (expected is None)
                assert reading.values == (expected or {})
                assert reading.problems == {}


def test_the_words_of_english_skip_questions_everywhere(subtests: pytest.Subtests) -> None:
    for language in MESSAGES:
        form = _build(language)
        question = Question(fields=form.inputs, answers=_ANSWERS, current=form.by_id["topic"])
        with subtests.test(language), speak(language):  # type: ignore[arg-type]
            assert interpreting.read(question, "skip").is_skip
