"""Cells that a spreadsheet would take for formulas."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit import csv_cells

_CALL = "cmd|' /C calc'!A0"
_INVISIBLE = (
    *(" ", "\x00", "\x01", "\x1b", "\x1f", "\x7f", "\x9f", "\u00a0", "\u00ad", "\u034f", "\u061c"),
    *("\u1680", "\u180e", "\u2000", "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u202e"),
    *("\u202f", "\u205f", "\u2060", "\u2066", "\u206f", "\u3000", "\u3164", "\ufe0f", "\ufeff"),
    *("\uffa0", "\U000e0020", '"', "'", "  \u200b "),
)
_SEPARATORS = (";", "\t", "\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028", "\u2029")
_SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"


def test_formulas_at_the_start_of_a_cell_are_escaped(subtests: pytest.Subtests) -> None:
    for start in ("", *_INVISIBLE, "\t", "\r", "\n"):
        with subtests.test(start=start):
            for text in (f"{start}{sign}{_CALL}" for sign in _SIGNS):
                escaped = csv_cells.escape_formula(text)
                assert escaped.startswith("'")
                assert csv_cells.unescape_formula(escaped) == text


def test_formulas_after_another_separator_are_escaped(subtests: pytest.Subtests) -> None:
    """In the part that such a spreadsheet takes for a cell, the apostrophe is the first."""
    for separator in _SEPARATORS:
        with subtests.test(separator=separator):
            for start, sign in itertools.product(("", *_INVISIBLE), _SIGNS):
                text = f"Ada{separator}{start}{sign}{_CALL}"
                escaped = csv_cells.escape_formula(text)
                assert escaped == f"Ada{separator}'{start}{sign}{_CALL}"
                assert csv_cells.unescape_formula(escaped) == text


def test_each_formula_of_a_text_is_escaped() -> None:
    assert csv_cells.escape_formula("=1;=2\t@3\n\uff0b4(") == "'=1;'=2\t'@3\n'\uff0b4("
    assert csv_cells.escape_formula(";;=1") == ";;'=1"


def test_other_texts_stay_as_they_are(subtests: pytest.Subtests) -> None:
    texts = (
        *("", "a", "a=b", "a;b", "a, =b", "1 + 1", "e-mail", "ada@example.com", "'a", "''", "it's"),
        *("https://example.com/?a=b;c=d", "shopping:\n- milk\n- bread", "a;-5;+3", "-5\t"[1:]),
        *("\u200bhidden", "x\n\ny", "Tel.: 1; +49 30 1234", "a\t- b", '","=1', "\u00a0a"),
    )
    for text in texts:
        with subtests.test(text=text):
            assert csv_cells.escape_formula(text) == text
            assert csv_cells.unescape_formula(text) == text


@given(st.text(alphabet="a1;'\t\n=+-@( \"\u200b|,"))
def test_an_import_reads_what_was_exported(text: str) -> None:
    assert csv_cells.unescape_formula(csv_cells.escape_formula(text)) == text
