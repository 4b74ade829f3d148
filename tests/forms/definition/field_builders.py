"""Builds definitions of fields, and forms with them."""

from typing import Any

import msgspec

from app.domain.forms.definition.definitions import FormDefinition, check_fields
from app.domain.forms.definition.fields.definition import Field
from app.domain.forms.definition.fields.protocol import InputField
from app.domain.forms.definition.fields.registry import FIELD_TYPES
from app.kit.validation import decode
from tests.forms.definition.fields.samples import OPTIONS


def decode_fields(*fields: dict[str, Any]) -> list[Field]:
    """Decodes definitions as a body has them, with an id and a label each."""
    bodies = [{"id": f"f{number}", "label": "L", **body} for number, body in enumerate(fields)]
    decoded: list[Field] = decode(msgspec.json.encode(bodies), list[Field])
    return decoded


def build_form(*fields: dict[str, Any]) -> FormDefinition:
    definitions = decode_fields(*fields)
    check_fields(definitions)
    return FormDefinition(definitions)


def build_field(
    kind: str, validation: dict[str, Any] | None = None, **rest: Any
) -> InputField[Any]:
    """A choice has OPTIONS unless others are given."""
    if FIELD_TYPES[kind].has_options and "data_source" not in rest:
        rest = {"options": OPTIONS, **rest}
    field = {"id": "answer", "type": kind, "validation": validation or {}, **rest}
    # A form needs a field that is answered.
    return build_form(field, {"type": "text"}).by_id["answer"]
