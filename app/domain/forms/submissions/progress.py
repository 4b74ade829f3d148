"""How far a form is filled in: what is answered, skipped and still to be asked for."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from app.domain.forms.definition.api import FormDefinition, InputField

from . import answers


class Progress(msgspec.Struct, frozen=True):
    """`asked` are the fields that are shown and that people answer, in their order. `values` has
    no answers to fields that are not shown.
    """

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

    def _is_done(self, field: InputField[Any]) -> bool:
        return field.id in self.values or field.id in self.skipped


def compute(form: FormDefinition, data: Mapping[str, Any], skipped: Iterable[str] = ()) -> Progress:
    """Evaluates conditionals anew. Wrong answers are left out; `problems` says what is wrong."""
    checked = answers.check_answers(form, data, is_complete=False)
    asked = [field for field in form.inputs if field.id in checked.visible and field.type.is_asked]
    known = {field.id for field in asked}
    kept = [name for name in skipped if name in known and name not in checked.values]
    return Progress(asked, checked.values, kept, dict(checked.problems))
