"""How far a form is filled in: what is answered, skipped and still to be asked for."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from app.domain.forms.definition.api import FormDefinition, InputField

from . import answers

# Of the texts that are said before one question.
_MAX_TEXT_CHARS: Final = 20_000


class Progress(msgspec.Struct, frozen=True):
    """`asked` are the fields that are shown and that people answer, in their order; `shown` also
    has those that are only read. `values` has no answers to fields that are not shown. `skipped`
    has the questions that a person left out, and the texts that were said.
    """

    shown: list[InputField[Any]]
    asked: list[InputField[Any]]
    values: dict[str, Any]
    skipped: list[str]
    problems: dict[str, str]

    @property
    def completed(self) -> int:
        return sum(self._is_done(field) for field in self.asked)

    @property
    def next_field(self) -> InputField[Any] | None:
        return next((field for field in self.asked if not self._is_done(field)), None)

    @property
    def next_texts(self) -> list[InputField[Any]]:
        """What is to be said before the next question: each text once. Headings of questions that
        are answered already are left out, and texts that are too long for one message wait for the
        next question.
        """
        texts: list[InputField[Any]] = []
        for field in self.shown:
            if field.type.has_value:
                if field is self.next_field:
                    return _select_first(texts)
                texts = [text for text in texts if not text.type.is_heading]
            elif field.id not in self.skipped:
                texts.append(field)
        return []

    def _is_done(self, field: InputField[Any]) -> bool:
        return field.id in self.values or field.id in self.skipped


def _select_first(texts: list[InputField[Any]]) -> list[InputField[Any]]:
    """Returns the texts that fit into a message."""
    chars = 0
    for number, text in enumerate(texts):
        chars += len(text.definition.label) + len(text.definition.help_text)
        if chars > _MAX_TEXT_CHARS:
            return texts[:number]
    return texts


def compute(form: FormDefinition, data: Mapping[str, Any], skipped: Iterable[str] = ()) -> Progress:
    """Evaluates conditionals anew. Wrong answers are left out; `problems` says what is wrong."""
    checked = answers.check_answers(form, data, is_complete=False)
    shown = [field for field in form.fields if field.id in checked.visible and field.type.is_asked]
    asked = [field for field in shown if field.type.has_value]
    known = {field.id for field in shown}
    kept = [name for name in skipped if name in known and name not in checked.values]
    return Progress(shown, asked, checked.values, kept, dict(checked.problems))
