"""Types of fields that this product does not have: one class and one row each suffice."""

import re
import sys
from importlib import util
from typing import Any, ClassVar

import msgspec
import pytest

from app.domain.forms.conversation import dialogue, extraction, interpreting
from app.domain.forms.conversation.interpreting import Question, Reading
from app.domain.forms.definition.definitions import FormDefinition, check_fields
from app.domain.forms.definition.fields import definition
from app.domain.forms.definition.fields.definition import Field
from app.domain.forms.definition.fields.files import FileRules
from app.domain.forms.definition.fields.protocol import (
    FieldType,
    InputField,
    NoRules,
    R,
)
from app.domain.forms.definition.fields.registry import FIELD_TYPES
from app.domain.forms.submissions import progress, uploads
from app.kit.errors import Invalid
from app.kit.validation import decode
from app.kit.value_checks import WrongValue
from tests.world import Client

_COLOUR = re.compile(r"#[0-9a-f]{6}")


class _MadeUpField(FieldType[R]):
    description: ClassVar[str] = "Made up"

    def check(self, field: InputField[R], value: Any) -> str:
        del field
        return str(value)

    def describe(self, field: InputField[R]) -> str:
        del field
        return f"a {self.name}"

    def to_json_schema(self, field: InputField[R]) -> dict[str, Any]:
        del field
        return {"type": "string"}


class ColourField(_MadeUpField[NoRules]):
    name: ClassVar[str] = "colour"
    synonyms: ClassVar[tuple[str, ...]] = ("colour", "color")
    pattern_in_text: ClassVar[re.Pattern[str] | None] = _COLOUR

    def check(self, field: InputField[NoRules], value: Any) -> str:
        del field
        if not isinstance(value, str) or not _COLOUR.fullmatch(value):
            raise WrongValue("must be a colour, like #ff8800")
        return value


class NickField(_MadeUpField[NoRules]):
    name: ClassVar[str] = "nick"
    is_free_text: ClassVar[bool] = True


class StoryField(_MadeUpField[NoRules]):
    name: ClassVar[str] = "story"
    is_free_text: ClassVar[bool] = True
    has_lines: ClassVar[bool] = True


class CampaignField(_MadeUpField[NoRules]):
    name: ClassVar[str] = "campaign"
    is_asked: ClassVar[bool] = False


class PhotoField(_MadeUpField[FileRules]):
    name: ClassVar[str] = "photo"
    rules: ClassVar[type[msgspec.Struct]] = FileRules
    is_verbal: ClassVar[bool] = False

    def get_file_rules(self, rules: FileRules) -> FileRules:
        return rules


MADE_UP: list[FieldType[Any]] = [
    *(ColourField(), NickField(), StoryField(), CampaignField(), PhotoField())
]
BODIES = [{"id": kind.name, "type": kind.name, "label": f"Your {kind.name}"} for kind in MADE_UP]


@pytest.fixture
def field_struct(monkeypatch: pytest.MonkeyPatch) -> type[Field]:
    """The struct of definitions as it is in a process whose registry has the types."""
    for kind in MADE_UP:
        monkeypatch.setitem(FIELD_TYPES, kind.name, kind)
    spec = util.spec_from_file_location(
        f"{definition.__name__}_with_new_types", definition.__file__
    )
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    # Where the names in annotations are looked up.
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    struct: type[Field] = module.Field
    return struct


@pytest.fixture
def form(field_struct: type[Field]) -> FormDefinition:
    fields = decode(msgspec.json.encode(BODIES), list[field_struct])  # type: ignore[valid-type]
    check_fields(fields)
    return FormDefinition(fields)


def _read(form: FormDefinition, current: str, text: str) -> Reading:
    asked = progress.compute(form, {}).asked
    question = Question(fields=asked, answers={}, current=form.by_id[current])
    return interpreting.read(question, text)


def test_the_api_takes_the_names_in_the_registry(field_struct: type[Field]) -> None:
    schema = msgspec.json.schema(field_struct)["$defs"]["Field"]["properties"]["type"]
    # Sorted by msgspec.
    assert schema["enum"] == sorted(FIELD_TYPES)
    with pytest.raises(Invalid) as caught:
        decode(b'{"id": "a", "type": "tune", "label": "A"}', field_struct)
    assert caught.value.details == {"type": f"must be one of {', '.join(FIELD_TYPES)}"}


async def test_new_types_are_listed(field_struct: type[Field], developer: Client) -> None:
    listed = (await developer.get("/api/v1/form-field-types")).json()["data"]
    assert [item["type"] for item in listed] == list(FIELD_TYPES)
    assert listed[-1]["validation_schema"] == msgspec.json.schema(FileRules)


def test_their_definitions_are_checked(field_struct: type[Field]) -> None:
    body = {"id": "photo", "type": "photo", "label": "A", "validation": {"max_size_mb": -1}}
    field = decode(msgspec.json.encode(body), field_struct)
    with pytest.raises(Invalid) as caught:
        check_fields([field])
    assert list(caught.value.details or {}) == ["fields.0.validation.max_size_mb"]


def test_their_answers_are_checked(form: FormDefinition) -> None:
    state = progress.compute(form, {"colour": "red", "nick": "Ada"})
    assert state.values == {"nick": "Ada"}
    assert state.problems == {"colour": "must be a colour, like #ff8800"}


def test_nobody_is_asked_for_one_that_the_page_sends(form: FormDefinition) -> None:
    assert [field.id for field in progress.compute(form, {}).asked] == [
        *("colour", "nick", "story", "photo")
    ]


def test_files_can_be_uploaded_for_one_that_takes_them(form: FormDefinition) -> None:
    answers = {"photo": "fil_1", "nick": "fil_2"}
    assert uploads.select_files(form, answers) == {"photo": "fil_1"}


def test_messages_answer_them(form: FormDefinition, subtests: pytest.Subtests) -> None:
    story = "Once, my nick is wrong\nwas all she said."
    for current, text, values in (
        ("nick", "Hi, I'm Ada.", {"nick": "Ada"}),
        ("nick", "Ada, my color is #ff8800", {"nick": "Ada", "colour": "#ff8800"}),
        ("nick", "Ada, #ff8800", {"nick": "Ada", "colour": "#ff8800"}),
        ("story", story, {"story": story}),
        # A question of the visitor is no answer.
        ("nick", "What is it for?", {}),
    ):
        with subtests.test(text=text):
            assert _read(form, current, text).values == values


def test_questions_explain_all_but_free_texts(form: FormDefinition) -> None:
    optional = "This is optional; say “skip” to leave it out."
    questions = {field.id: dialogue.ask(field) for field in form.fields}
    assert questions["nick"] == f"Your nick? {optional}"
    assert questions["story"] == f"Your story? {optional}"
    assert questions["colour"] == f"Your colour: please enter a colour. {optional}"


def test_models_read_those_that_can_be_put_into_words(form: FormDefinition) -> None:
    asked = progress.compute(form, {}).asked
    question = Question(fields=asked, answers={}, current=form.by_id["nick"])
    selected = extraction._select_fields(question, is_local=False)
    assert [field.id for field in selected] == ["nick", "colour", "story"]
