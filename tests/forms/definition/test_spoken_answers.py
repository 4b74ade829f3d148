"""Answers of people who speak another language than English."""

from collections.abc import Callable
from typing import Any, get_args

import pytest

from app.domain.forms.definition.fields.choice_parser import parse_consent
from app.domain.forms.definition.fields.date_parser import parse_date, parse_time
from app.domain.forms.definition.fields.language_tables import speak
from app.domain.forms.definition.fields.number_parser import parse_number, parse_score
from app.kit.languages import ENGLISH, Language
from app.kit.value_checks import WrongValue
from tests.forms.definition import spoken_answers, spoken_choices
from tests.forms.definition.field_builders import build_field

_OTHERS = set(get_args(Language)) - {ENGLISH}


def _try(parse: Callable[..., Any], *args: Any) -> Any:
    """Returns None for a text that is refused."""
    try:
        return parse(*args)
    except WrongValue:
        return None


def _check_tables(
    tables: dict[Any, dict[str, Any]], parse: Callable[[str], Any], subtests: pytest.Subtests
) -> None:
    assert tables.keys() == _OTHERS
    for language, cases in tables.items():
        for text, expected in cases.items():
            with subtests.test(language, text=text), speak(language):
                assert _try(parse, text) == expected


def test_dates(subtests: pytest.Subtests) -> None:
    _check_tables(spoken_answers.DATES, parse_date, subtests)


def test_times(subtests: pytest.Subtests) -> None:
    def parse(text: str) -> str:
        time = parse_time(text)
        assert f"{time:%Y-%m-%d}" == "2026-03-03"
        return f"{time:%H:%M}"

    _check_tables(spoken_answers.TIMES, parse, subtests)


def test_numbers(subtests: pytest.Subtests) -> None:
    _check_tables(spoken_answers.NUMBERS, parse_number, subtests)


def test_scores(subtests: pytest.Subtests) -> None:
    assert spoken_answers.SCORES.keys() == _OTHERS
    for language, text in spoken_answers.SCORES.items():
        with subtests.test(language, text=text), speak(language):  # type: ignore[arg-type]
            assert parse_score(text, 5) == 3
            assert _try(parse_score, text, 10) is None
            assert parse_score("4", 5) == 4


def test_a_yes_and_a_no(subtests: pytest.Subtests) -> None:
    assert spoken_choices.CONSENT.keys() == _OTHERS
    for language, lists in spoken_choices.CONSENT.items():
        for expected, texts in zip((True, False, None), lists, strict=True):
            for text in texts:
                with subtests.test(language, text=text), speak(language):  # type: ignore[arg-type]
                    assert parse_consent(text) is expected


def test_options(subtests: pytest.Subtests) -> None:
    assert spoken_choices.OPTIONS.keys() == _OTHERS
    for language, (labels, messages) in spoken_choices.OPTIONS.items():
        options = [{"value": str(number), "label": item} for number, item in enumerate(labels, 1)]
        field = build_field("checkbox_group", options=options)
        for text, numbers in messages.items():
            with subtests.test(language, text=text), speak(language):  # type: ignore[arg-type]
                found = _try(field.type.parse, field, text) or []
                assert found == [str(number) for number in numbers]


def test_english_reads_no_other_language() -> None:
    for parse, text in [
        (parse_date, "3. März 2026"),
        (parse_date, "03/04/2026"),
        (parse_number, "1,5"),
        (parse_number, "١٢"),
    ]:
        assert _try(parse, text) is None
    assert parse_consent("ja") is None
