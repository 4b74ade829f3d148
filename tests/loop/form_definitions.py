"""The largest forms, each with its largest answers."""

import base64
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.loop.definition import Definition, Ids


def _words(count: int, first: str = "w") -> str:
    return " ".join(f"{first}{number}" for number in range(count))


_MESSAGE = {"content": "a " * 1999}


def _form(fields: list[dict[str, Any]], answers: dict[str, Any]) -> Definition:
    settings = {"success_message": "x" * 1000, "conversation": {"model": "none"}}
    submission = {"data": answers, "metadata": {"source": "x" * 100, "more": "x" * 15_000}}
    return Definition(
        {"name": "Form", "description": "x" * 2000, "fields": fields, "settings": settings},
        {
            "SubmitForm": submission,
            "SubmitPublicForm": submission,
            "SaveDraft": {"data": answers},
            "StartFormConversation": {},
            "SendFormMessage": _MESSAGE,
        },
        {"field_id": fields[-1]["id"]},
    )


def _fields_of_all_types(_ids: Ids) -> Definition:
    """Each field is shown if the one before it has an answer."""
    kinds = {
        "text": ("x" * 500, {"validation": {"max_length": 10_000}}),
        "textarea": ("x" * 5000, {"validation": {"max_length": 100_000}}),
        "email": ("a" * 64 + "@example.com", {}),
        "phone": ("+44 20 7946 0958", {}),
        "number": (123456.5, {"validation": {"min": 0}}),
        "checkbox": (True, {}),
        "date": ("2026-01-01", {}),
        "datetime": ("2026-01-01T12:00:00Z", {}),
        "url": ("https://example.com/" + "x" * 1000, {}),
        "rating": (3, {}),
    }
    fields: list[dict[str, Any]] = []
    answers = {}
    for number in range(200):
        kind = list(kinds)[number % len(kinds)]
        value, more = kinds[kind]
        field = {
            "id": f"f{number}",
            "type": kind,
            "label": "x" * 300,
            "help_text": "x" * 300,
            "placeholder": "x" * 200,
            **more,
        }
        if number:
            field["conditional"] = {"field": f"f{number - 1}", "operator": "is_not_empty"}
        fields.append(field)
        answers[f"f{number}"] = value
    return _form(fields, answers)


def _long_answers(_ids: Ids) -> Definition:
    rules = {"validation": {"max_length": 100_000}}
    fields = [
        {"id": f"f{number}", "type": "textarea", "label": "Text", **rules} for number in range(10)
    ]
    return _form(fields, {f"f{number}": "a " * 49_000 for number in range(10)})


def _options(_ids: Ids) -> Definition:
    fields = []
    for number in range(12):
        options = [{"value": f"v{index}", "label": f"o{number} {index}"} for index in range(500)]
        fields.append(
            {"id": f"f{number}", "type": "multi_select", "label": "Options", "options": options}
        )
    answers = {f"f{number}": [f"v{index}" for index in range(500)] for number in range(12)}
    return _form(fields, answers)


def _labels_of_many_words(_ids: Ids) -> Definition:
    """The words are those that a message may mention a field by."""
    fields = [
        {"id": f"f{number}", "type": "text", "label": _words(320, f"q{number}w")[:1990].strip()}
        for number in range(118)
    ]
    return _form(fields, {"f0": "x"})


def _patterns(_ids: Ids) -> Definition:
    fields = [
        {
            "id": f"f{number}",
            "type": "text",
            "label": "Pattern",
            "validation": {"pattern": "[ab]*a[ab]{300}", "max_length": 4000},
        }
        for number in range(6)
    ]
    return _form(fields, {f"f{number}": "ba" * 1999 for number in range(6)})


def _selects_on_a_table(ids: Ids) -> Definition:
    source = {"table_id": ids["table_id"], "value_column": "text", "label_column": "label"}
    fields = [
        {"id": f"f{number}", "type": "select", "label": "Choose", "data_source": source}
        for number in range(200)
    ]
    return _form(fields, {f"f{number}": "t0" for number in range(200)})


def _groups_of_conditions(_ids: Ids) -> Definition:
    """Each field depends on 20 conditions, the last of which holds."""
    rules = {"validation": {"max_length": 100_000}}
    fields: list[dict[str, Any]] = [{"id": "f0", "type": "textarea", "label": "Text", **rules}]
    for number in range(1, 190):
        sources = [f"f{number - 1}", *["f0"] * 19]
        parts = [{"field": name, "operator": "contains", "value": "ab"} for name in sources]
        parts[-1]["value"] = "b"
        group = {"any": [{"all": [{"any": parts}]}]}
        field = {"id": f"f{number}", "type": "text", "label": "L", "conditional": group}
        fields.append(field)
    answers = {f"f{number}": "x" for number in range(1, 190)}
    return _form(fields, {"f0": "a " * 49_000 + "b", **answers})


def _texts_with_links(_ids: Ids) -> Definition:
    """The chat says all texts before its question."""
    label = "[a](https://a)" * 142
    fields = [
        {"id": f"p{number}", "type": "paragraph", "label": label, "help_text": "[" * 300}
        for number in range(100)
    ]
    return _form([*fields, {"id": "f0", "type": "text", "label": label}], {"f0": "x"})


def _signatures(_ids: Ids) -> Definition:
    content = b"\x89PNG\r\n\x1a\n" + bytes(149_000)
    image = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    fields = [
        {"id": f"f{number}", "type": "signature", "label": "Signature"} for number in range(5)
    ]
    definition = _form(fields, {f"f{number}": image for number in range(5)})
    # Longer than a draft may be.
    return msgspec.structs.replace(
        definition, uses={**definition.uses, "SaveDraft": {"data": {"f0": image}}}
    )


FORMS: Final[tuple[Callable[[Ids], Definition], ...]] = (
    _fields_of_all_types,
    _long_answers,
    _options,
    _labels_of_many_words,
    _patterns,
    _selects_on_a_table,
    _groups_of_conditions,
    _texts_with_links,
    _signatures,
)
