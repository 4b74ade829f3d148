"""The fixed texts of conversations."""

import re

import pytest

from app.domain.forms.definition.fields import wordings
from app.domain.forms.definition.fields.wordings import WORDINGS, Plural, say
from tests.layout.sources import find_files

_NAME = re.compile(r"\b(?:say|refuse)\(\s*\"(\w+)\"")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def test_every_text_that_code_names_exists() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in find_files("app/domain/forms"))
    names = set(_NAME.findall(code))
    assert len(names) > 50
    assert names <= WORDINGS.keys()


def test_variants_have_the_same_placeholders(subtests: pytest.Subtests) -> None:
    for name, text in WORDINGS.items():
        if isinstance(text, Plural):
            with subtests.test(name):
                one, other = (set(_PLACEHOLDER.findall(item)) for item in (text.one, text.other))
                assert "count" in other
                assert other - one <= {"count"}


def test_texts_are_filled_in() -> None:
    assert say("max_length", count=10_000) == "must have at most 10,000 characters"
    assert say("exactly_of", count=1, options="A or B") == "one of A or B"
    assert say("exactly_of", count=2, options="A or B") == "2 of A or B"
    # A value is not filled in again.
    assert say("noted", label="{value}", value="{0}") == "I noted “{value}”: {0}."
    assert str(wordings.refuse("email")).startswith("must be an e-mail address")
