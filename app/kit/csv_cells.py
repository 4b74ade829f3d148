"""Rows of CSV files, without cells that a spreadsheet would take for formulas.

A spreadsheet whose locale has another separator splits the file at semicolons or tabs, and then
takes line breaks in a cell for ends of rows. So formulas are escaped after those as well.
"""

import csv
import io
import re
from collections.abc import Iterable
from typing import Final

_SEPARATORS: Final = ";\t\r\n\v\f\x85\u2028\u2029"
# Spaces, control characters and others that a spreadsheet ignores or does not show, and quotes.
_IGNORED: Final = (
    "\x00-\x08\x0e-\x20\x7f-\x84\x86-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5"
    "\u180b-\u180f\u2000-\u200f\u202a-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000e0000-\U000e0fff\"'"
)
# Also the full-width forms, which spreadsheets of East Asian locales take for the others.
_SIGNS: Final = "+\\-\uff0b\uff0d"
_FORMULA_SIGNS: Final = "=@\uff1d\uff20"
# What a text contains that calls a function, another program or another file.
_CALLS: Final = "(|!\\[{\uff08\uff5c\uff01"
_START = re.compile(rf"'*[\t\r\n]|[{_IGNORED}]*[{_SIGNS}{_FORMULA_SIGNS}]")
# Inside a text, a sign without a call is a list or a number.
_INNER_START = re.compile(
    rf"(?<=[{_SEPARATORS}])(?=[{_IGNORED}]*"
    rf"(?:[{_FORMULA_SIGNS}]|[{_SIGNS}][^{_SEPARATORS}{_CALLS}]*[{_CALLS}]))"
)
_ESCAPED_INNER_START = re.compile(rf"(?<=[{_SEPARATORS}])'{_INNER_START.pattern.partition(')')[2]}")


def escape_formula(text: str) -> str:
    """Puts an apostrophe before what a spreadsheet would take for a formula."""
    escaped = _INNER_START.sub("'", text)
    return f"'{escaped}" if _START.match(text) else escaped


def unescape_formula(text: str) -> str:
    """Removes the apostrophes that `escape_formula` has added."""
    plain = _ESCAPED_INNER_START.sub("", text)
    is_escaped = plain.startswith("'") and _START.match(plain, 1) is not None
    return plain[1:] if is_escaped else plain


def encode_rows(rows: Iterable[list[str]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerows(rows)
    return buffer.getvalue().encode()
