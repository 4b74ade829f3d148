"""Links in the texts of authors: which there are, and what other places show of them."""

import pytest

from app.domain.forms.conversation import dialogue, extraction
from app.domain.forms.definition.fields.links import disarm, to_plain_text
from app.kit.value_checks import WrongValue
from tests.forms.api import create_form, submit
from tests.forms.definition.field_builders import build_field
from tests.forms.definition.links import LINKS, TEXTS
from tests.world import Client

_LABEL = "I accept the [privacy notice](https://example.com/privacy)"
_OPTIONS = [
    {"value": "a", "label": "Plan [A](https://example.com/a)"},
    {"value": "b", "label": "Plan B"},
]


def test_other_places_show_the_texts_of_links(subtests: pytest.Subtests) -> None:
    for text, plain in LINKS.items():
        with subtests.test(text):
            assert to_plain_text(text) == plain
            assert to_plain_text(disarm(text)) == disarm(text)
    for text in TEXTS:
        with subtests.test(text):
            assert to_plain_text(text) == text


def test_many_beginnings_of_links_take_linear_time() -> None:
    for text in ("[" * 100_000, "[a](https://" * 10_000, "[a](https://x" + "a" * 100_000):
        assert to_plain_text(text) == text


def test_questions_have_links_and_what_is_said_about_answers_has_texts() -> None:
    box = build_field("checkbox", label=_LABEL, required=True)
    assert dialogue.ask(box) == f"{_LABEL}: please enter yes to confirm."
    assert dialogue.refuse_skip(box) == "“I accept the privacy notice” is required."


def test_options_are_named_by_the_texts_of_their_links() -> None:
    field = build_field("radio", options=_OPTIONS)
    assert "Plan [A](https://example.com/a) or Plan B" in dialogue.ask(field)
    assert field.type.parse(field, "plan a") == "a"
    assert field.type.format(field, "a") == "Plan A"
    with pytest.raises(WrongValue, match="must be one of the options: Plan A or Plan B"):
        field.type.check(field, "c")


def test_models_read_the_texts_of_links() -> None:
    field = build_field("radio", label=_LABEL, options=_OPTIONS)
    lines = extraction.describe_fields([field])
    assert lines == ["- answer: I accept the privacy notice (one of Plan A or Plan B)"]


async def test_a_table_of_submissions_has_the_texts_of_links(
    developer: Client, anonymous: Client
) -> None:
    box = {"id": "box", "type": "checkbox", "label": _LABEL}
    plan = {"id": "plan", "type": "radio", "label": "Plan", "options": _OPTIONS}
    others = [
        {"id": f"f{number}", "type": "text", "label": text} for number, text in enumerate(LINKS)
    ]
    form = await create_form(developer, box, plan, *others)
    await submit(anonymous, form, {"box": True, "plan": "a"})
    answer = await developer.get(f"/api/v1/forms/{form['id']}/submissions.csv")
    header, row = answer.text.splitlines()[:2]
    assert "I accept the privacy notice,Plan," in header
    assert ",yes,Plan A," in row
    for plain in LINKS.values():
        assert plain in header
