"""Rules of robots.txt (RFC 9309), with the wildcards and the delay that most sites use.

`urllib.robotparser` knows neither wildcards nor that the longest rule decides. A site gives the
rules, so matching takes time in proportion to their length.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

import msgspec

from .wildcards import matches

MAX_BYTES: Final = 512 * 1024
# The name by which sites address this client.
PRODUCT: Final = "parley"
_MAX_RULES = 2000
_MAX_PATTERN_CHARS = 2000
_MAX_DELAY_SECONDS = 10.0
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_NUMBER = re.compile(r"\d{1,6}(\.\d{1,6})?\Z")
_TOKEN = re.compile(r"[A-Za-z_-]*")


class Rule(msgspec.Struct, frozen=True):
    allows: bool
    pattern: str

    def covers(self, path: str) -> bool:
        """A rule covers the paths that begin with its pattern, unless that ends with $."""
        if self.pattern.endswith("$"):
            return matches(self.pattern[:-1], path)
        return matches(f"{self.pattern}*", path)


class Robots(msgspec.Struct, frozen=True):
    """The rules for this client, the longest first, and how long it waits between requests."""

    rules: tuple[Rule, ...] = ()
    delay_seconds: float = 0.0

    def allows(self, path: str) -> bool:
        """`path` includes the query."""
        path = _normalize(path)
        return next((rule.allows for rule in self.rules if rule.covers(path)), True)


ALLOW_ALL: Final = Robots()


def parse(text: str) -> Robots:
    """Reads the groups for this client, or else those for all."""
    own: list[tuple[str, str]] = []
    common: list[tuple[str, str]] = []
    has_own = False
    for names, lines in _read_groups(text):
        if PRODUCT in names:
            has_own = True
            own += lines
        if "*" in names:
            common += lines
    return _build(own if has_own else common)


def _build(lines: list[tuple[str, str]]) -> Robots:
    rules = [
        Rule(key == "allow", _normalize(value))
        for key, value in lines
        if key in {"allow", "disallow"} and value and len(value) <= _MAX_PATTERN_CHARS
    ]
    # Of equally long ones, the one that allows.
    rules.sort(key=lambda rule: (-len(rule.pattern), not rule.allows))
    delays = [float(value) for key, value in lines if key == "crawl-delay" and _NUMBER.match(value)]
    return Robots(tuple(rules[:_MAX_RULES]), min(max(delays, default=0.0), _MAX_DELAY_SECONDS))


def _read_groups(text: str) -> Iterator[tuple[set[str], list[tuple[str, str]]]]:
    """Yields the names of clients and the lines for them."""
    names: set[str] = set()
    lines: list[tuple[str, str]] = []
    for line in text.removeprefix("\ufeff").splitlines():
        key, _, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if key == "user-agent":
            if lines:
                yield names, lines
                names, lines = set(), []
            names.add("*" if value == "*" else _read_token(value))
        elif names and key in {"allow", "disallow", "crawl-delay"}:
            lines.append((key, value))
    yield names, lines


def _read_token(value: str) -> str:
    match = _TOKEN.match(value)
    return match[0].lower() if match else ""


def _normalize(path: str) -> str:
    """Returns the path in the form in which equal ones are equal: characters that need no escape
    have none.
    """
    return _ESCAPE.sub(_unescape, quote(path, safe=_PRINTABLE))


def _unescape(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if _UNRESERVED.match(char) else match[0].upper()
