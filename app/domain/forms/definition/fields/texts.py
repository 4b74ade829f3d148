"""Types of fields whose answers are texts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from app.kit import email_addresses
from app.kit.errors import Problem
from app.kit.value_checks import check_text

from .numbers import check_number, is_storable
from .options import Option
from .patterns import compile_pattern, matches
from .protocol import FieldType, InputField, NoRules, check_message
from .wordings import group_digits, refuse, say

MAX_TEXT_CHARS: Final = 10_000
MAX_TEXTAREA_CHARS: Final = 100_000
_DEFAULT_TEXT_CHARS = 1000
_DEFAULT_TEXTAREA_CHARS = 10_000
_MAX_HIDDEN_CHARS = 1000
_MAX_URL_CHARS = 2000
_MAX_PHONE_CHARS = 40
_MAX_EMAIL_CHARS = 254
_MIN_DIGITS, _MAX_DIGITS = 5, 20
_PHONE_CHARS: Final = frozenset("0123456789+()-./ \u00a0")
# With the separators of lines and paragraphs.
_CONTROL_CHARS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_EMAIL = re.compile(r"[^\s<>,;:()\[\]\"']{1,64}@[^\s<>,;:()\[\]\"'/]{1,190}")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"]{1,2000}", re.IGNORECASE)
_DOMAIN = re.compile(
    r"(?<![\w@.:/-])(?:[a-z0-9-]{1,63}\.)+[a-z]{2,63}(?![\w@-])[^\s<>\"@]*", re.IGNORECASE
)
_PHONE = re.compile(r"(?:\+ ?)?[0-9(][0-9()\-./ \u00a0]{3,38}[0-9]")
_HOST = re.compile(r"(?:(?!-)[\w-]{1,63}(?<!-)\.)+(?!-)[\w-]{1,63}(?<!-)\.?|localhost")

MinLength = Annotated[int, Meta(ge=0, le=MAX_TEXTAREA_CHARS)]
MaxLength = Annotated[int, Meta(ge=1, le=MAX_TEXTAREA_CHARS)]
Pattern = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=500,
        description="A regular expression in RE2's syntax that the whole text must match",
    ),
]


class LengthRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    min_length: MinLength | None = None
    max_length: MaxLength | None = None


class TextRules(LengthRules, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    pattern: Pattern | None = None


class PhoneRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    pattern: Pattern | None = None


def check_characters(value: Any) -> str:
    """Raises WrongValue for anything but a text that can be stored."""
    text = check_text(value)
    if "\0" in text:
        raise refuse("nul")
    return text


def _check_one_line(text: Any) -> str:
    line = check_characters(text)
    if _CONTROL_CHARS.search(line):
        raise refuse("one_line")
    return line


def _check_length(text: str, rules: LengthRules, default: int) -> None:
    longest = rules.max_length or default
    if len(text) > longest:
        raise refuse("max_length", count=longest)
    if rules.min_length is not None and len(text) < rules.min_length:
        raise refuse("min_length", count=rules.min_length)


def _check_pattern(text: str, pattern: str | None) -> None:
    if pattern is not None and not matches(pattern, text):
        raise refuse("pattern")


def _count_steps(pattern: str | None, length: int) -> int:
    """The engine may visit each instruction of a pattern for each character of a text."""
    return 0 if pattern is None else int(compile_pattern(pattern).programsize) * length


def _find_length_problems(rules: LengthRules, default: int, most: int) -> Iterator[Problem]:
    if rules.max_length is not None and rules.max_length > most:
        yield "max_length", f"must be at most {most:,}"
    if (rules.min_length or 0) > (rules.max_length or default):
        yield "min_length", f"must not be greater than max_length, which is {default:,} by default"


def _find_pattern_problems(pattern: str | None) -> Iterator[Problem]:
    if pattern is not None:
        try:
            compile_pattern(pattern)
        except ValueError as error:
            yield "pattern", str(error)


def _describe_length(rules: LengthRules) -> str:
    fewest, most = rules.min_length, rules.max_length
    if fewest and most:
        return say("a_text_between", min=group_digits(fewest), max=group_digits(most))
    if most:
        return say("a_text_at_most", count=most)
    return say("a_text_at_least", count=fewest) if fewest else say("a_text")


def _length_schema(rules: LengthRules, default: int) -> dict[str, Any]:
    return {
        "type": "string",
        "minLength": rules.min_length or 1,
        "maxLength": rules.max_length or default,
    }


class TextField(FieldType[TextRules]):
    name: ClassVar[str] = "text"
    description: ClassVar[str] = "One line of text"
    is_free_text: ClassVar[bool] = True
    rules: ClassVar[type[msgspec.Struct]] = TextRules

    def find_problems(self, rules: TextRules, options: Sequence[Option]) -> Iterator[Problem]:
        del options
        yield from _find_length_problems(rules, _DEFAULT_TEXT_CHARS, MAX_TEXT_CHARS)
        yield from _find_pattern_problems(rules.pattern)

    def estimate_steps(self, rules: TextRules) -> int:
        return _count_steps(rules.pattern, rules.max_length or _DEFAULT_TEXT_CHARS)

    def check(self, field: InputField[TextRules], value: Any) -> str:
        text = _check_one_line(value)
        _check_length(text, field.rules, _DEFAULT_TEXT_CHARS)
        _check_pattern(text, field.rules.pattern)
        return text

    def describe(self, field: InputField[TextRules]) -> str:
        return _describe_length(field.rules)

    def to_json_schema(self, field: InputField[TextRules]) -> dict[str, Any]:
        return _length_schema(field.rules, _DEFAULT_TEXT_CHARS)


class TextareaField(FieldType[LengthRules]):
    name: ClassVar[str] = "textarea"
    description: ClassVar[str] = "Text of several lines"
    is_free_text: ClassVar[bool] = True
    has_lines: ClassVar[bool] = True
    rules: ClassVar[type[msgspec.Struct]] = LengthRules

    def find_problems(self, rules: LengthRules, options: Sequence[Option]) -> Iterator[Problem]:
        del options
        yield from _find_length_problems(rules, _DEFAULT_TEXTAREA_CHARS, MAX_TEXTAREA_CHARS)

    def check(self, field: InputField[LengthRules], value: Any) -> str:
        text = check_characters(value)
        _check_length(text, field.rules, _DEFAULT_TEXTAREA_CHARS)
        return text

    def describe(self, field: InputField[LengthRules]) -> str:
        return say("of_lines", text=_describe_length(field.rules))

    def to_json_schema(self, field: InputField[LengthRules]) -> dict[str, Any]:
        return _length_schema(field.rules, _DEFAULT_TEXTAREA_CHARS)


class EmailField(FieldType[NoRules]):
    name: ClassVar[str] = "email"
    description: ClassVar[str] = "An e-mail address"
    synonyms: ClassVar[tuple[str, ...]] = ("email", "e-mail", "mail")
    pattern_in_text: ClassVar[re.Pattern[str] | None] = _EMAIL

    def check(self, field: InputField[NoRules], value: Any) -> str:
        del field
        text = check_characters(value).strip()
        if len(text) <= _MAX_EMAIL_CHARS:
            with suppress(ValueError):
                return email_addresses.normalize(text)
        raise refuse("email")

    def parse(self, field: InputField[NoRules], text: str) -> str:
        """The address may be a part of the message."""
        addresses = _EMAIL.findall(check_message(text))
        return self.check(field, _take_one((item.rstrip(".!?") for item in addresses), "email"))

    def describe(self, field: InputField[NoRules]) -> str:
        del field
        return say("an_email")

    def to_json_schema(self, field: InputField[NoRules]) -> dict[str, Any]:
        del field
        # Without a format: that of JSON Schema has no international domains.
        return {"type": "string", "maxLength": _MAX_EMAIL_CHARS}


class PhoneField(FieldType[PhoneRules]):
    name: ClassVar[str] = "phone"
    description: ClassVar[str] = "A phone number"
    synonyms: ClassVar[tuple[str, ...]] = ("phone", "telephone", "mobile", "number")
    pattern_in_text: ClassVar[re.Pattern[str] | None] = _PHONE
    rules: ClassVar[type[msgspec.Struct]] = PhoneRules

    def find_problems(self, rules: PhoneRules, options: Sequence[Option]) -> Iterator[Problem]:
        del options
        yield from _find_pattern_problems(rules.pattern)

    def estimate_steps(self, rules: PhoneRules) -> int:
        return _count_steps(rules.pattern, _MAX_PHONE_CHARS)

    def check(self, field: InputField[PhoneRules], value: Any) -> str:
        text = check_characters(value).strip()
        digits = sum(letter in "0123456789" for letter in text[:_MAX_PHONE_CHARS])
        if (
            len(text) > _MAX_PHONE_CHARS
            or not _PHONE_CHARS.issuperset(text)
            or not _MIN_DIGITS <= digits <= _MAX_DIGITS
            or "+" in text[1:]
        ):
            raise refuse("phone")
        _check_pattern(text, field.rules.pattern)
        return text

    def parse(self, field: InputField[PhoneRules], text: str) -> str:
        """The number may be a part of the message, which must have no other digits."""
        text = check_message(text)
        number = _take_one(_PHONE.findall(text), "phone")
        if any(letter.isnumeric() for letter in text.replace(number, "")):
            raise refuse("phone_alone")
        return self.check(field, number)

    def describe(self, field: InputField[PhoneRules]) -> str:
        del field
        return say("a_phone")

    def to_json_schema(self, field: InputField[PhoneRules]) -> dict[str, Any]:
        del field
        return {"type": "string", "minLength": _MIN_DIGITS, "maxLength": _MAX_PHONE_CHARS}


class UrlField(FieldType[NoRules]):
    name: ClassVar[str] = "url"
    description: ClassVar[str] = "The address of a web page"
    synonyms: ClassVar[tuple[str, ...]] = ("url", "website", "site", "link")
    pattern_in_text: ClassVar[re.Pattern[str] | None] = _URL

    def check(self, field: InputField[NoRules], value: Any) -> str:
        del field
        text = _check_one_line(value).strip()
        if len(text) > _MAX_URL_CHARS or not _is_web_address(text):
            raise refuse("url")
        return text

    def parse(self, field: InputField[NoRules], text: str) -> str:
        """The address may be a part of the message, and may lack its scheme."""
        text = check_message(text)
        addresses = _URL.findall(text) or _DOMAIN.findall(text)
        address = _take_one(map(_strip_punctuation, addresses), "url")
        has_scheme = address.lower().startswith(("http://", "https://"))
        return self.check(field, address if has_scheme else f"https://{address}")

    def describe(self, field: InputField[NoRules]) -> str:
        del field
        return say("a_url")

    def to_json_schema(self, field: InputField[NoRules]) -> dict[str, Any]:
        del field
        # Without a format: that of JSON Schema has ASCII characters alone.
        return {"type": "string", "maxLength": _MAX_URL_CHARS}


def _take_one(values: Iterable[str], problem: str) -> str:
    """Returns the only value. Raises WrongValue with the named text when there is none, or
    several.
    """
    distinct = set(values)
    if len(distinct) != 1:
        raise refuse(problem)
    return distinct.pop()


def _strip_punctuation(address: str) -> str:
    """Strips the end of a sentence, and a bracket that the address does not open."""
    address = address.rstrip(".,;:!?'")
    if address.endswith(")") and address.count("(") < address.count(")"):
        return _strip_punctuation(address[:-1])
    return address


def _is_web_address(text: str) -> bool:
    """False for an address with a user name: it serves to deceive, as in
    https://bank.example@evil.example.
    """
    try:
        parts = urlsplit(text)
        # Reading the port checks it.
        _ = parts.port
    except ValueError:
        return False
    is_web = parts.scheme in {"http", "https"} and _HOST.fullmatch(parts.hostname or "")
    return bool(is_web) and "@" not in parts.netloc and not re.search(r"[\s<>\"]", text)


class HiddenField(FieldType[NoRules]):
    name: ClassVar[str] = "hidden"
    description: ClassVar[str] = "A value that the page sends and the person does not see"
    is_asked: ClassVar[bool] = False
    is_ordered: ClassVar[bool] = True

    def check(self, field: InputField[NoRules], value: Any) -> Any:
        del field
        if isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return check_number(value)
        text = check_characters(value)
        if len(text) > _MAX_HIDDEN_CHARS:
            raise refuse("max_length", count=_MAX_HIDDEN_CHARS)
        return text

    def is_operand(self, value: Any) -> bool:
        return isinstance(value, bool) or is_storable(value) or super().is_operand(value)

    def format(self, field: InputField[NoRules], value: Any) -> str:
        del field
        return msgspec.json.encode(value).decode() if isinstance(value, bool) else str(value)

    def describe(self, field: InputField[NoRules]) -> str:
        del field
        return say("a_hidden_value")

    def to_json_schema(self, field: InputField[NoRules]) -> dict[str, Any]:
        del field
        return {"type": ["string", "number", "boolean"]}
