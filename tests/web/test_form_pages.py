"""Which pages a form has."""

from typing import Any

import pytest

from tests.web.module_runner import ModuleRunner

_LIST = """({ listPages }, cases) => cases.map(([fields, hidden]) =>
    listPages(fields, ({ id, type }) => !hidden.includes(id) && type !== "hidden")
        .map(({ id, fields }) => [id, fields.map((field) => field.id).join("")]))"""
# Fields in their order (page breaks in capitals, h is of the type hidden), those that are not
# shown, then the pages.
_CASES: list[tuple[str, str, list[list[str]]]] = [
    ("ab", "", [["", "ab"]]),
    ("aBc", "", [["", "a"], ["B", "c"]]),
    ("aBcDe", "", [["", "a"], ["B", "c"], ["D", "e"]]),
    # The first page may have a title.
    ("AbCd", "", [["A", "b"], ["C", "d"]]),
    # A page without fields that are shown is skipped.
    ("aBcDe", "c", [["", "a"], ["D", "e"]]),
    ("aBcDe", "a", [["B", "c"], ["D", "e"]]),
    ("aBCd", "", [["", "a"], ["C", "d"]]),
    ("aB", "", [["", "a"]]),
    ("aBh", "", [["", "a"]]),
    # A page break that is not shown divides nothing.
    ("aBcDe", "B", [["", "ac"], ["D", "e"]]),
    # Fields that may appear belong to their page.
    ("aBcd", "d", [["", "a"], ["B", "cd"]]),
    ("aBc", "ac", [["", "a"]]),
]


def _build(names: str) -> list[dict[str, Any]]:
    kinds = {"h": "hidden"}
    return [
        {"id": name, "type": "page_break" if name.isupper() else kinds.get(name, "text")}
        for name in names
    ]


def test_page_breaks_divide_a_form(modules: ModuleRunner, subtests: pytest.Subtests) -> None:
    cases = [[_build(names), list(hidden)] for names, hidden, _ in _CASES]
    found = modules.evaluate("form/page-breaks.js", _LIST, cases)
    for (names, hidden, pages), actual in zip(_CASES, found, strict=True):
        with subtests.test(names, hidden=hidden):
            assert actual == pages
