"""The scripts for browsers are typed."""

import re

from app.web import assets

# Every visitor loads the panel, whose size is bounded. Types are comments, which would exceed it.
_UNTYPED = {
    "shared/markdown.js",
    *(f"widget/{name}.js" for name in ("chat", "message", "notice", "panel", "player", "session")),
    "widget/voice.js",
}
_ESCAPE = re.compile(r"@ts-(?:nocheck|ignore|expect-error)|\bany\b[>\])},;| ]")


def test_types_are_left_out_only_where_the_size_is_bounded() -> None:
    found = {
        file.relative_to(assets._STATIC).as_posix()
        for file in assets._STATIC.rglob("*.js")
        for comment in re.findall(r"/\*\*[\s\S]*?\*/|// @ts.*", file.read_text(encoding="utf-8"))
        if _ESCAPE.search(comment)
    }
    assert found == _UNTYPED
