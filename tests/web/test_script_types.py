"""The scripts for browsers are typed."""

import re

from app.web import assets

_ESCAPE = re.compile(r"@ts-(?:nocheck|ignore|expect-error)|\bany\b[>\])},;| ]")


def test_no_script_escapes_the_checks_of_types() -> None:
    found = {
        file.relative_to(assets._STATIC).as_posix()
        for file in assets._STATIC.rglob("*.js")
        for comment in re.findall(r"/\*\*[\s\S]*?\*/|// @ts.*", file.read_text(encoding="utf-8"))
        if _ESCAPE.search(comment)
    }
    assert found == set()
