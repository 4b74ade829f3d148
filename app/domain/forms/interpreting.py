"""Reads the answers to a form in a message of a person.

Most is found without a model: the answer to the question that was asked, answers that name their
field, addresses and numbers. What a model has found is used as well, if the field takes it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from app.domain.forms import mentions
from app.domain.forms.fields.protocol import InputField, WrongValue

_SKIP: Final = frozenset(
    {"skip", "skip it", "skip this", "skip that", "pass", "none", "n/a", "na", "nothing"}
    | {"no thanks", "no thank you", "not applicable", "next", "leave it empty", "rather not"}
)
_CORRECTION = re.compile(
    r"\b(?:actually|correction|sorry|change|correct|instead|wrong|mistake|i meant|rather)\b",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"^(?:(?:hi|hello|hey|well|ok|okay|sure|yes|so|actually|sorry)\b[\s,.!:;-]*)*"
    r"(?:(?:my name is|i am called|i am|i'm|this is|call me|it is|it's|that is|that's|"
    r"the answer is|please use|use)\s+)?",
    re.IGNORECASE,
)
_EDGES = " \t\r\n,;.!\"'“”"
_TEXT_TYPES: Final = frozenset({"text", "textarea"})
_MAX_ANSWER_WORDS = 4


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What the form asks at a turn. `fields` are those that are shown, in their order."""

    fields: Sequence[InputField[Any]]
    answers: Mapping[str, Any]
    current: InputField[Any]

    @property
    def open_fields(self) -> list[InputField[Any]]:
        return [field for field in self.fields if field.id not in self.answers]


class Extract(msgspec.Struct, frozen=True):
    """What a model has found, not checked yet. A model that is not trusted may only repeat what the
    message says.
    """

    values: Mapping[str, Any] = {}
    is_trusted: bool = False


class Reading(msgspec.Struct):
    """Stored values by the ids of fields, and what is wrong with others."""

    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    is_skip: bool = False
    is_question: bool = False
    # The answer to the question was all that the message says besides.
    is_whole: bool = False


def read(question: Question, text: str, extract: Extract | None = None) -> Reading:
    reading, current = Reading(), question.current
    if text.strip(_EDGES).casefold() in _SKIP:
        reading.is_skip = True
        return reading
    split = mentions.split(question.fields, text)
    for field, answer in split.mentions:
        _parse(reading, field, answer)
    rest = _find_unnamed(reading, question, split.rest)
    if extract is not None:
        _add_extract(reading, question, text, extract)
    if current.id in reading.values or current.id in reading.problems:
        return reading
    answer = rest if current.type.name == "textarea" else _strip_lead_in(rest)
    if not answer:
        return reading
    if answer.endswith("?") and current.type.name in _TEXT_TYPES:
        reading.is_question = not reading.values
        return reading
    _parse(reading, current, answer)
    reading.is_whole = len(answer.split()) > _MAX_ANSWER_WORDS
    return reading


def needs_model(question: Question, text: str, reading: Reading, *, is_trusted: bool) -> bool:
    """True when a model may find more in the message, or find it better."""
    if reading.is_skip or reading.is_question:
        return False
    if is_trusted:
        return bool(reading.problems) or len(text.split()) > _MAX_ANSWER_WORDS
    return reading.is_whole and question.current.type.name == "text"


def _parse(reading: Reading, field: InputField[Any], text: str) -> None:
    try:
        value = field.type.parse(field, text)
    except WrongValue as error:
        reading.problems[field.id] = str(error)
        return
    if field.type.is_empty(value):
        return
    reading.values[field.id] = value
    reading.problems.pop(field.id, None)


def _strip_lead_in(text: str) -> str:
    answer = _LEAD_IN.sub("", text.strip(), count=1)
    return answer.strip(_EDGES) if answer[-1:] != "?" else answer.strip()


def _find_unnamed(reading: Reading, question: Question, rest: str) -> str:
    """Finds addresses and phone numbers. Returns the text without those of other fields. An answer
    is replaced only by a message that says so.
    """
    is_correction = _CORRECTION.search(rest) is not None
    for field in question.fields:
        if field.type.pattern_in_text is None or field.id in reading.values:
            continue
        if field.id in question.answers and not is_correction:
            continue
        found = _search(field, rest)
        if found is None or field.id == question.current.id:
            continue
        try:
            reading.values[field.id] = field.type.parse(field, found)
        except WrongValue:
            continue
        rest = _CORRECTION.sub("", rest.replace(found, " ")).strip(_EDGES)
        rest = mentions.trim_end(rest)
    return rest


def _search(field: InputField[Any], text: str) -> str | None:
    pattern = field.type.pattern_in_text
    match = pattern.search(text) if pattern is not None else None
    return match[0].rstrip(".,;!?)") if match else None


# What a model has found


def _add_extract(reading: Reading, question: Question, text: str, extract: Extract) -> None:
    named = mentions.find_named(question.fields, text)
    is_correction = _CORRECTION.search(text) is not None
    for field in question.fields:
        value = extract.values.get(field.id)
        if field.id in reading.values or field.type.is_empty(value):
            continue
        if field.id in question.answers and not (is_correction or field.id in named):
            continue
        is_current = field.id == question.current.id
        is_asked = is_current or field.id in named or extract.is_trusted
        if not is_asked or not _may_be_used(field, value, text, extract):
            continue
        try:
            reading.values[field.id] = field.type.check(field, value)
        except WrongValue:
            # The model's mistake: what the person wrote is still read without it.
            continue
        reading.problems.pop(field.id, None)


def _may_be_used(field: InputField[Any], value: Any, text: str, extract: Extract) -> bool:
    """A model that is not trusted is used for texts alone, all else is found without it."""
    if extract.is_trusted:
        return True
    is_text = field.type.name in _TEXT_TYPES and isinstance(value, str)
    return is_text and _fold(value) in _fold(text)


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())
