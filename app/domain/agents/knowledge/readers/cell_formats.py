"""Renders the numbers of a spreadsheet by their formats: dates, times, shares and others."""

import re
from datetime import datetime, timedelta
from typing import Any

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_DATES = {*range(14, 23), *range(27, 37), *range(50, 59)}
_TIMES = {45, 46, 47}
_PERCENTAGES = {9, 10}
# Texts, colours and conditions in a format, which may have letters of dates; but not durations.
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_DATE_LETTER = re.compile(r"[dmyhs]", re.IGNORECASE)
_DURATION = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_EPOCH, _EPOCH_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)  # noqa: DTZ001  # local times
# The last day of the year 9999.
_MAX_DAYS = 2_958_465
_MAX_WHOLE = 1e15


class CellFormats:
    """The formats of a workbook, by the numbers of the styles of its cells."""

    def __init__(self, workbook: Any, styles: Any) -> None:
        properties = workbook.find(f"{_S}workbookPr")
        is_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
        self._epoch = _EPOCH_1904 if is_1904 else _EPOCH
        self._kinds: list[str] = []
        if styles is None:
            return
        codes = {
            element.get("numFmtId", ""): element.get("formatCode", "")
            for element in styles.iter(f"{_S}numFmt")
        }
        for style in styles.iterfind(f"{_S}cellXfs/{_S}xf"):
            number = style.get("numFmtId", "0")
            self._kinds.append(_kind(number, codes.get(number)))

    def render(self, value: str, style: str) -> str:
        """Returns a number as a reader of the sheet knows it, with dates in ISO format."""
        try:
            number = float(value)
        except ValueError:
            return value
        is_known = style.isdecimal() and int(style) < len(self._kinds)
        kind = self._kinds[int(style)] if is_known else ""
        if kind == "percentage":
            return f"{_plain(round(number * 100, 10))}%"
        if kind == "duration":
            seconds = round(number * 86_400)
            return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        if kind == "date" and 0 <= number <= _MAX_DAYS:
            return self._render_date(number)
        return _plain(number)

    def _render_date(self, number: float) -> str:
        moment = self._epoch + timedelta(seconds=round(number * 86_400))
        if number < 1:
            return moment.time().isoformat()
        is_day = number == int(number)
        return moment.date().isoformat() if is_day else moment.isoformat()


def _kind(number: str, code: str | None) -> str:
    """A built-in format has no code."""
    if code is None:
        builtin = int(number) if number.isdecimal() else 0
        if builtin in _PERCENTAGES:
            return "percentage"
        return "date" if builtin in _DATES | _TIMES else ""
    code = _LITERAL.sub("", code.partition(";")[0])
    if _DURATION.search(code):
        return "duration"
    if "%" in code:
        return "percentage"
    return "date" if _DATE_LETTER.search(code) and code.lower() != "general" else ""


def _plain(number: float) -> str:
    if number.is_integer() and abs(number) < _MAX_WHOLE:
        return str(int(number))
    return repr(number)
