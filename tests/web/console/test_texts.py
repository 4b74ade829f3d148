"""The texts of an area are loaded with its screens, so each screen names the parts it shows."""

import re
from pathlib import Path
from typing import Final

import pytest

from app.web.console_build import SOURCE

_SRC: Final = SOURCE / "src"
_TEXTS: Final = _SRC / "texts"
_PARTS: Final = {path.stem for path in (_TEXTS / "en").glob("*.ts")} - {"index", "count"}
_REFERENCE: Final = "docs"
_LOADED: Final = re.compile(r'import\("\./(\w+)"\),\s*\[?((?:\s*"\w+",?)+)')


def _list_screens() -> dict[str, set[str]]:
    """The parts that are loaded with each area, and with the API reference."""
    registries = [_SRC / "areas" / name for name in ("screens.ts", "open_screens.ts")]
    text = "".join(path.read_text(encoding="utf-8") for path in registries)
    screens = {area: set(re.findall(r"\w+", parts)) for area, parts in _LOADED.findall(text)}
    return screens | {_REFERENCE: {_REFERENCE}}


def _find_entry(area: str) -> Path:
    if area == _REFERENCE:
        return _SRC / "docs" / "main.tsx"
    return _SRC / "areas" / area / "index.tsx"


def _find_sources(start: Path, *, lazy: bool) -> set[Path]:
    """The files that one imports, and those that they import; `lazy` imports as well."""
    imports = re.compile(r'(?:from|import\()\s*"(\.[^"]*)"' if lazy else r'from\s*"(\.[^"]*)"')
    found, left = set[Path](), [start]
    while left:
        path = left.pop()
        if path in found or path.name in {"screens.ts", "open_screens.ts"}:
            continue
        found.add(path)
        for name in imports.findall(path.read_text(encoding="utf-8")):
            base = (path.parent / name).resolve()
            candidates = [base.with_name(base.name + end) for end in (".tsx", ".ts")]
            candidates += [base / "index.tsx", base / "index.ts"]
            left += [file for file in candidates if file.is_file() and _TEXTS not in file.parents]
    return found


def _list_shown(sources: set[Path]) -> set[str]:
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    return set(re.findall(r"\bt\(\)\.(\w+)", text)) & _PARTS


@pytest.mark.parametrize(("area", "parts"), sorted(_list_screens().items()))
def test_an_area_names_the_texts_that_it_shows(area: str, parts: set[str]) -> None:
    sources = _find_sources(_find_entry(area), lazy=True)
    assert _list_shown(sources) == parts


def test_what_every_screen_shows_needs_no_texts_of_an_area() -> None:
    assert _list_shown(_find_sources(_SRC / "main.tsx", lazy=False)) == set()


def test_every_area_has_screens_and_every_part_an_area() -> None:
    screens = _list_screens()
    assert len(screens) >= 10
    assert set().union(*screens.values()) == _PARTS


def test_languages_have_the_same_parts() -> None:
    for folder in _TEXTS.iterdir():
        if folder.is_dir():
            assert {path.stem for path in folder.glob("*.ts")} - {"index", "count"} == _PARTS
