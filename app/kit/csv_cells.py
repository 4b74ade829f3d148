"""Rows of CSV files, without cells that a spreadsheet would take for formulas."""

import csv
import io
from collections.abc import Iterable
from typing import Final

# Also the full-width forms, which spreadsheets of East Asian locales take for the others.
_FORMULA_STARTS: Final = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")


def escape_formula(text: str) -> str:
    """Puts an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA_STARTS) else text


def unescape_formula(text: str) -> str:
    """Removes the apostrophe that `escape_formula` has added."""
    is_escaped = text.startswith("'") and text.lstrip("'").startswith(_FORMULA_STARTS)
    return text[1:] if is_escaped else text


def encode_rows(rows: Iterable[list[str]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerows(rows)
    return buffer.getvalue().encode()
