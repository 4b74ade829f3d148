"""Cells of CSV files that a spreadsheet would take for formulas."""

from typing import Final

# Also the full-width forms, which spreadsheets of East Asian locales take for the others.
_FORMULA_STARTS: Final = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")


def protect(text: str) -> str:
    """Puts an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA_STARTS) else text


def unprotect(text: str) -> str:
    """Removes the apostrophe that `protect` has added."""
    is_protected = text.startswith("'") and text.lstrip("'").startswith(_FORMULA_STARTS)
    return text[1:] if is_protected else text
