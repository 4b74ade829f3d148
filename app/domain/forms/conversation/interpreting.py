"""Reads the answers to a form in a message of a person.

Most is found without a model: the answer to the question that was asked, answers that name their
field, addresses and numbers. What a model has found is used as well, if the field takes it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from app.domain.forms.definition.api import InputField
from app.kit.value_checks import WrongValue

from . import mentions, phrases
from .mentions import Mention
from .phrases import get_phrases

_EDGES = " \t\r\n,;.!\"'“”\u3002\u3001\u060c\u061b\uff01\uff0c«»„"
_MAX_ANSWER_WORDS = 4
# How many addresses and numbers are looked for that name no field: each search reads all the text.
_MAX_UNNAMED = 10
# Longer than any message; a drawn signature is.
_MAX_CHARS = 4000


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What the form asks at a turn. `fields` are those that are shown, in their order."""

    fields: Sequence[InputField[Any]]
    answers: Mapping[str, Any]
    current: InputField[Any]


class Extract(msgspec.Struct, frozen=True):
    """What a model has found, not checked yet. A model that is not trusted may only repeat what the
    message says.
    """

    values: Mapping[str, Any] = {}
    is_trusted: bool = False

    def denies(self, field_id: str) -> bool:
        """True when the model says that the message does not answer a field."""
        return self.is_trusted and field_id in self.values and self.values[field_id] is None


class Reading(msgspec.Struct):
    """Stored values by the ids of fields, and what is wrong with others."""

    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    is_skip: bool = False
    is_question: bool = False
    # The answer to the question was all that the message says besides.
    is_whole: bool = False


def read(question: Question, text: str, extract: Extract | None = None) -> Reading:
    reading, current, text = Reading(), question.current, phrases.normalize(text)
    if len(text) > _MAX_CHARS:
        _parse(reading, current, text)
        return reading
    reading.is_skip = _is_skip(current, text)
    reading.is_question = _is_question(current, text)
    if reading.is_skip or reading.is_question:
        return reading
    split = mentions.split(question.fields, text)
    rest = _find_unnamed(reading, question, split.rest)
    if (reading.values or split.mentions) and get_phrases().is_filler(rest):
        rest = ""
    if current.type.has_lines and _strip_lead_in(rest):
        _read_long_text(reading, question, text, split.mentions)
        return reading
    for field, answer in split.mentions:
        is_line = field.type.is_one_line
        _parse(reading, field, _strip_trailing(answer.strip(_EDGES)) if is_line else answer)
    if extract is not None:
        _add_extract(reading, question, text, extract)
    if current.id not in reading.values and current.id not in reading.problems:
        _read_rest(reading, question, rest, extract)
    return reading


def _is_skip(field: InputField[Any], text: str) -> bool:
    known = get_phrases()
    words = known.fold(text.strip(_EDGES).casefold().replace("\u2019", "'"))
    if words in known.nothing and field.definition.required and field.type.is_free_text:
        return False
    if words not in known.skip and words not in known.nothing:
        return False
    # An option may be called like that.
    reading = Reading()
    if field.type.has_options:
        _parse(reading, field, text)
    return not reading.values


def _is_question(field: InputField[Any], text: str) -> bool:
    """True for a question of the visitor, unless it is a text that answers."""
    known = get_phrases()
    if not field.type.is_one_line or known.about_questions.search(known.fold(field.label)):
        return False
    return known.question.fullmatch(known.fold(_strip_lead_in(text))) is not None


def _read_long_text(
    reading: Reading, question: Question, text: str, found: Sequence[Mention]
) -> None:
    """The text is stored as it is. What it says of other fields is used only where those have no
    answer yet, and where it cannot be anything else.
    """
    _parse(reading, question.current, text)
    _find_unnamed(reading, question, text)
    for field, answer in found:
        if field.id not in question.answers and not field.type.is_free_text:
            _parse(reading, field, answer)
            if field.id != question.current.id:
                reading.problems.pop(field.id, None)


def _read_rest(reading: Reading, question: Question, rest: str, extract: Extract | None) -> None:
    """Reads the answer to the question in what names no field."""
    current, is_line = question.current, question.current.type.is_one_line
    known, plain = get_phrases(), rest.strip(_EDGES)
    answer = _strip_trailing(_strip_lead_in(rest))
    if not answer and not reading.values and not known.only_greeting.fullmatch(known.fold(plain)):
        answer = plain
    is_denied = extract is not None and extract.denies(current.id)
    if answer and not (is_line and is_denied):
        _parse(reading, current, answer)
        reading.is_whole = len(answer.split()) > _MAX_ANSWER_WORDS


def needs_model(question: Question, text: str, reading: Reading, *, is_trusted: bool) -> bool:
    """True when a model may find more in the message, or find it better."""
    if reading.is_skip or reading.is_question:
        return False
    if is_trusted:
        return bool(reading.problems) or len(text.split()) > _MAX_ANSWER_WORDS
    return reading.is_whole and question.current.type.is_one_line


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
    known, text = get_phrases(), text.strip()
    match = known.lead_in.match(known.fold(text))
    return (text[match.end() :] if match else text).strip(_EDGES)


def _strip_trailing(text: str) -> str:
    """Strips what some languages say after an answer."""
    known = get_phrases()
    match = known.trailing.search(known.fold(text)) if known.trailing else None
    return text[: match.start()].strip(_EDGES) if match else text


def _is_correction(text: str) -> bool:
    known = get_phrases()
    return known.correction.search(known.fold(text)) is not None


def _remove_corrections(text: str) -> str:
    known = get_phrases()
    parts, end = [], 0
    for match in known.correction.finditer(known.fold(text)):
        parts.append(text[end : match.start()])
        end = match.end()
    return "".join([*parts, text[end:]])


def _find_unnamed(reading: Reading, question: Question, rest: str) -> str:
    """Finds addresses and phone numbers. Returns the text without those of other fields. An answer
    is replaced only by a short message that says so.
    """
    is_correction = _is_correction(rest)
    found: dict[str, str | None] = {}
    count = 0
    for field in question.fields:
        kind, is_answered = field.type, field.id in question.answers
        if kind.pattern_in_text is None or field.id == question.current.id:
            continue
        if is_answered and not is_correction:
            continue
        if kind.name not in found:
            found[kind.name] = _search(kind.pattern_in_text, rest)
        text = found[kind.name]
        if text is None or count == _MAX_UNNAMED:
            continue
        try:
            value = kind.parse(field, text)
        except WrongValue:
            continue
        others = _remove_corrections(rest.replace(text, " ")).strip(_EDGES)
        if is_answered and len(others.split()) > _MAX_ANSWER_WORDS:
            continue
        reading.values[field.id] = value
        rest = mentions.trim_end(others)
        # None stays None: what is left contains nothing new.
        found = {name: None for name, item in found.items() if item is None}
        count += 1
    return rest


def _search(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[0].rstrip(".,;!?)") if match else None


# What a model has found


def _add_extract(reading: Reading, question: Question, text: str, extract: Extract) -> None:
    named = mentions.find_named(question.fields, text)
    is_correction = _is_correction(text)
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
    if not field.type.is_free_text or not isinstance(value, str):
        return False
    words = rf"(?<!\w){re.escape(_fold(value))}(?!\w)"
    return len(value) <= len(text) and re.search(words, _fold(text)) is not None


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())
