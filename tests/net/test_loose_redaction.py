"""Redaction of secrets that an echo changed: reversed, spaced out, in other letters."""

import base64
import codecs
import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.net.redaction import Redactor
from tests.lengths import rounds

_SECRET = "sk-Live_4eC39HqLyjWDarjtT1zdp7dc"
_LETTERS = _SECRET.replace("-", "").replace("_", "")
_CYRILLIC = "ключ-от-двери-дома"


def _group(text: str, size: int, separator: str) -> str:
    return separator.join(text[start : start + size] for start in range(0, len(text), size))


_CHANGES: dict[str, Callable[[str], str]] = {
    "reversed": lambda text: text[::-1],
    "upper case": str.upper,
    "lower case": str.lower,
    "swapped case": str.swapcase,
    "reversed and upper case": lambda text: text[::-1].upper(),
    "reversed and spaced": lambda text: " ".join(text[::-1]),
    "spaces": " ".join,
    "dots": ".".join,
    "dashes": "-".join,
    "commas": ", ".join,
    "new lines": "\n".join,
    "carriage returns": "\r\n".join,
    "tabs": "\t".join,
    "zero width spaces": "\u200b".join,
    "zero width joiners": "\u200d".join,
    "soft hyphens": "\u00ad".join,
    "no-break spaces": "\u00a0".join,
    "dashes of typography": "\u2013".join,
    "NUL characters": "\0".join,
    "quotation marks": '", "'.join,
    "pairs": lambda text: _group(text, 2, " "),
    "groups of four": lambda text: _group(text, 4, "-"),
    "uneven groups": lambda text: text[:3] + " / " + text[3:10] + "..." + text[10:],
    "without its own separators": lambda text: text.replace("-", "").replace("_", ""),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "hex with spaces": lambda text: text.encode().hex(" "),
    "hex with colons": lambda text: text.encode().hex(":").upper(),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base32 in a text": lambda text: base64.b32encode(f"abc{text}z".encode()).decode().lower(),
    "base64 in lines": lambda text: _group(
        base64.b64encode(b"user:" + text.encode()).decode(), 16, "\n"
    ),
    "escaped new lines": lambda text: json.dumps("\n".join(text)),
    "quoted spaces": "%20".join,
    "HTML spaces": "&nbsp;".join,
    "forms": "+".join,
}


def test_a_changed_secret_is_redacted(subtests: pytest.Subtests) -> None:
    for change in list(_CHANGES):
        with subtests.test(change=change):
            changed = _CHANGES[change](_SECRET)
            redacted = Redactor([_SECRET]).text(f"before: {changed} :after")
            assert "[redacted]" in redacted
            rest = redacted.replace("[redacted]", "").replace("before:", "").replace(":after", "")
            # At the ends of base64 and base32 remain characters that other bytes share.
            assert len([char for char in rest if char.isalnum()]) <= 10, redacted


def test_the_text_around_a_changed_secret_stays(subtests: pytest.Subtests) -> None:
    for change in ["reversed", "spaces", "groups of four", "upper case"]:
        with subtests.test(change=change):
            changed = _CHANGES[change](_SECRET)
            text = f"Größe: {changed}. {changed}; end"
            assert Redactor([_SECRET]).text(text) == "Größe: [redacted]. [redacted]; end"


def test_a_value_is_searched_for_changed_secrets() -> None:
    redactor = Redactor([_SECRET])
    value = {"echo": _SECRET[::-1], _SECRET.upper(): [" ".join(_SECRET), "other"], "n": 7}
    expected = {"echo": "[redacted]", "[redacted]": ["[redacted]", "other"], "n": 7}
    assert redactor.value(value) == expected


def test_a_list_of_the_characters_of_a_secret_is_redacted() -> None:
    redactor = Redactor([_SECRET])
    value = {"a": list(_SECRET), "b": list(reversed(_SECRET)), "c": ["one", "two", 3]}
    assert redactor.value(value) == {"a": "[redacted]", "b": "[redacted]", "c": ["one", "two", 3]}


def test_a_secret_with_few_letters_of_other_alphabets_is_found() -> None:
    secret = "geheim-pässwörd-0815"
    assert Redactor([secret]).text(f"x {secret[::-1]} y") == "x [redacted] y"
    assert Redactor([secret]).text(f"x {' '.join(secret)} y") == "x [redacted] y"


# False positives


def test_what_only_resembles_a_secret_stays(subtests: pytest.Subtests) -> None:
    for secret, text in [
        # Too short for a loose search.
        ("hunter2", "HUNTER 2, 2retnuh, h u n t e r 2"),
        ("sunshine", "Sun shine, Sunshine"),
        ("postgres-1", "Postgres 1"),
        # Too few different characters.
        ("000000000000", "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0"),
        ("abababababab", "ABAB ABAB ABAB"),
        ("--------------------", "- - - - - - - - - - - - - - - - - - - - -"),
        # Only letters that the search leaves out.
        (_CYRILLIC, _CYRILLIC.upper()),
        (_SECRET, _SECRET[:-1] + "X"),
        (_SECRET, _LETTERS[4:] + _LETTERS[:4]),
    ]:
        with subtests.test(secret=secret, text=text):
            assert Redactor([secret]).text(text) == text
            assert Redactor([secret]).value([text]) == [text]


@given(text=st.text(max_size=200))
@settings(max_examples=rounds(30, 400), deadline=None)
def test_a_random_text_stays(text: str) -> None:
    assert Redactor([_SECRET]).text(text) == text


_separators = st.text(st.sampled_from(" .,-_:;/|\n\t\u200b\u00a0'\"()"), max_size=3)


@given(
    secret=st.from_regex(r"[A-Za-z0-9_-]{24,40}", fullmatch=True).filter(
        lambda text: (
            len({*text.lower()} - {"-", "_"}) > 8 and sum(char.isalnum() for char in text) >= 16
        )
    ),
    separators=st.lists(_separators, min_size=40, max_size=40),
    before=st.text(max_size=10),
    after=st.text(max_size=10),
)
@settings(max_examples=rounds(30, 400), deadline=None)
def test_no_secret_survives_any_separators(
    secret: str, separators: list[str], before: str, after: str
) -> None:
    spaced = "".join(char + separator for char, separator in zip(secret, separators, strict=False))
    redacted = Redactor([secret]).text(f"{before}{spaced}{after}")
    assert "[redacted]" in redacted
    letters = "".join(char for char in secret if char.isalnum()).lower()
    rest = redacted.replace("[redacted]", "\0")
    assert letters not in "".join(char for char in rest if char.isalnum()).lower()


# Cost


def test_no_secret_and_no_text_takes_long(subtests: pytest.Subtests) -> None:
    """The bound is generous: a search that is not linear takes minutes."""
    for secret, text in [
        ("abcdefgh" * 2000 + "x", "a b c d e f g h " * 60_000),
        ("abcdefgh" * 512, "abcdefgh " * 60_000),
        ("abcdefghijkl" * 3, "lkjihgfedcba-" * 40_000),
        (_SECRET, (_SECRET[:-1] + " ") * 30_000),
        (_SECRET, (" ".join(_SECRET) + "\n") * 15_000),
    ]:
        with subtests.test(secret=secret, text=text):
            redactor = Redactor([secret])
            started = time.process_time()
            redactor.text(text)
            assert time.process_time() - started < 5
