"""The commands and programs in the documentation."""

import re
from pathlib import Path
from typing import Final

from tests.processes import ROOT

README: Final = ROOT / "README.md"
DOCS: Final = ROOT / "docs"
TUTORIAL: Final = DOCS / "tutorial.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*(?:\n    .*)*)", re.MULTILINE)
_SECTION = "## A first conversation"


def read_blocks(page: Path, language: str, section: str = "") -> list[str]:
    """Returns the code blocks of a page, or of its part from a heading to the next one."""
    text = page.read_text(encoding="utf-8")
    if section:
        text = text.partition(f"{section}\n")[2].partition("\n## ")[0]
    return [content for kind, content in _BLOCK.findall(text) if kind == language]


def read_commands(page: Path, section: str = "") -> list[str]:
    """Returns the commands after the prompts, without the output that is shown."""
    blocks = read_blocks(page, "console", section)
    return [command for block in blocks for command in _COMMAND.findall(block)]


def read_sign_in() -> list[str]:
    """Returns the commands of the README that all other pages refer to."""
    (block, *_) = read_blocks(README, "console", _SECTION)
    return _COMMAND.findall(block)


def read_first_conversation() -> list[str]:
    return read_commands(README, _SECTION)


def list_pages() -> list[Path]:
    """Returns the pages of `docs` that have commands, except the tutorial."""
    return sorted(page for page in DOCS.glob("*.md") if page != TUTORIAL and read_commands(page))
