"""The fixed texts of the form page."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.web import assets
from tests.web.module_runner import ModuleRunner

_TEXTS = "form/texts.js"
_READ = "({ TEXTS, PROBLEMS }) => [TEXTS, PROBLEMS]"
_FILL = """({ getText }, cases) => cases.map(([name, values]) => getText(name, values))"""
_NAMES = re.compile(r"\{(\w+)\}")
_FOLDER = assets._STATIC / "form"
# A text in code that begins like a sentence or a button.
_LITERAL = re.compile(r"""["`]([A-Z][a-z]+(?: [a-z$][^"`]*)?[a-z.…])["`]""")
# Names of keys and of events, and what the frame around another site's form is called.
_OTHERS = {"ArrowDown", "Content", "Enter", "Escape", "Form", "Image"}


def _list_variants(text: Any) -> list[str]:
    return [text] if isinstance(text, str) else list(text.values())


def test_variants_of_a_text_have_the_same_placeholders(modules: ModuleRunner) -> None:
    texts, problems = modules.evaluate(_TEXTS, _READ)
    for text in (*texts.values(), *(item["field"] for item in problems.values())):
        names = [set(_NAMES.findall(variant)) for variant in _list_variants(text)]
        assert all(item == names[0] for item in names), text
        if not isinstance(text, str):
            assert "count" in names[0], text
            assert "other" in text


def test_problems_are_whole_sentences_and_name_their_field_in_a_list(
    modules: ModuleRunner,
) -> None:
    _, problems = modules.evaluate(_TEXTS, _READ)
    for texts in problems.values():
        assert all(re.search("[.…]$", text) for text in _list_variants(texts["field"]))
        for text in _list_variants(texts["list"]):
            assert text.count("{label}") == 1


def test_texts_are_filled_in(modules: ModuleRunner, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("back", {}, "Back"),
        ("step", {"step": 2, "total": 4}, "Step 2 of 4"),
        ("problemCount", {"count": 1}, "There is 1 problem"),
        ("problemCount", {"count": 1200}, "There are 1,200 problems"),
        # A value is not filled in again.
        ("uploading", {"name": "{name} $& {count}"}, "Uploading {name} $& {count}"),
    ]
    found = modules.evaluate(_TEXTS, _FILL, [[name, values] for name, values, _ in cases])
    for (name, values, text), actual in zip(cases, found, strict=True):
        with subtests.test(name, values=values):
            assert actual == text


def _find_literals(file: Path) -> list[str]:
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [text for text in _LITERAL.findall(code) if text not in _OTHERS]


def test_other_modules_have_no_texts_of_their_own() -> None:
    files = [file for file in _FOLDER.rglob("*.js") if file.name not in {"texts.js", "embed.js"}]
    assert {file.name: _find_literals(file) for file in files if _find_literals(file)} == {}
