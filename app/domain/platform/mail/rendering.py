"""Renders mails from the templates beside this file.

A template is one file for both formats: it extends `layout` and calls the macros of `parts.txt` or
`parts.html`, so that text and HTML say the same.
"""

import re
import textwrap
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from app.kit.texts import storable

if TYPE_CHECKING:
    from jinja2 import Environment

Format = Literal["txt", "html"]

_TEMPLATES = Path(__file__).with_name("templates")
_PARTS = (
    "paragraph",
    "note",
    "code",
    "button",
    "choices",
    "addresses",
    "link",
    "lines",
    "table",
    "entry",
)
_LINE_CHARS = 76
_MAX_SUBJECT_CHARS = 200
# Control characters, and the line separators of Unicode. A text keeps its tabs and line feeds.
_NOT_IN_SUBJECT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NOT_IN_BODY = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class MailContent(msgspec.Struct, frozen=True):
    """`html` is empty for a mail of plain text alone."""

    subject: str
    text: str
    html: str


def render(template: str, **values: Any) -> MailContent:
    """Renders `templates/<template>.jinja`. Every value that it names must be given."""
    name = f"{template}.jinja"
    text, html = _environment("txt").get_template(name), _environment("html").get_template(name)
    return MailContent(
        clean_subject(text.render({**values, "layout": "subject.txt"})),
        _as_body(text.render(values)),
        _as_body(html.render(values)),
    )


@cache
def _environment(format_: Format) -> "Environment":
    """Keeps compiled templates for good: a file is read once."""
    # The import would make every process start later.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=format_ == "html",  # noqa: S701  # plain text has nothing to escape
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {"moment": _format_moment, "wrap": _wrap}
    parts = environment.get_template(f"parts.{format_}").module
    environment.globals |= {name: getattr(parts, name) for name in _PARTS}
    environment.globals["layout"] = f"layout.{format_}"
    return environment


def _format_moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _wrap(text: str) -> str:
    """Wraps each line between words; a long word, such as a URL, stays whole."""
    return "\n".join(
        textwrap.fill(line, _LINE_CHARS, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )


def clean_subject(text: str) -> str:
    """Returns a text as one line without control characters. An encoded word (RFC 2047) is broken:
    the `email` package would decode it, and write a line break that it hides.
    """
    subject = " ".join(_NOT_IN_SUBJECT.sub(" ", storable(text)).split()).replace("=?", "= ?")
    if len(subject) > _MAX_SUBJECT_CHARS:
        subject = subject[: _MAX_SUBJECT_CHARS - 1] + "…"
    return subject


def _as_body(text: str) -> str:
    text = storable(text).replace("\r\n", "\n").replace("\r", "\n")
    return _NOT_IN_BODY.sub(" ", text).strip() + "\n"
