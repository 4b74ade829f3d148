"""Keeping secrets out of what others said: an echo of what we sent must not be stored or shown.

Everything here takes time in proportion to the text, whatever the secret: a peer chooses the one,
a tenant perhaps the other, and no time-out reaches into a search.
"""

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

_SHORTEST = 4
_SHOWN = "[redacted]"
# A part that every encoding leaves alone gives a secret away, however many were used.
_RUN = re.compile(r"[A-Za-z0-9_.-]{12,}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))")
_ROUNDS = 3
_MOST_WRITINGS = 16


class Redactor:
    """Replaces secrets, and the common ways of writing them, wherever they turn up.

    One that is written in several ways at once takes its whole text along.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if len(secret) >= _SHORTEST}
        known |= {run for secret in known for run in _RUN.findall(secret)}
        self._forms = sorted({form for secret in known for form in _forms(secret)})
        # What is left to find once a text is decoded.
        self._plain = sorted({form for secret in known for form in _undecodable(secret)})

    def text(self, text: str) -> str:
        shown, at = [], 0
        for start, end in _joined(self._spans(text)):
            shown += [text[at:start], _SHOWN]
            at = end
        rest = "".join([*shown, text[at:]]) if shown else text
        return _SHOWN if self._hides(rest) else rest

    def value(self, value: Any) -> Any:
        """Of what JSON can hold. Mostly there is nothing to hide, which one look tells."""
        if not self._forms:
            return value
        together = "\n".join(_texts(value))
        seen = any(form in together for form in self._forms) or self._hides(together)
        return self._hidden(value) if seen else value

    def _hides(self, text: str) -> bool:
        """A secret is in it, behind one encoding or several."""
        return any(form in decoded for decoded in _decoded(text) for form in self._plain)

    def _hidden(self, value: Any) -> Any:
        match value:
            case bool():
                return value
            case str():
                return self.text(value)
            case list():
                return [self._hidden(item) for item in value]
            case {"base64": str()} if len(value) == 1:
                inside = _inside(value)
                seen = self.text(inside) != inside
                return {"base64": _SHOWN if seen else value["base64"]}
            case dict():
                return {self.text(key): self._hidden(item) for key, item in value.items()}
            case int() if str(value) in self._forms:
                return _SHOWN
        return value

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Also where one begins within another, so that no part of either is left standing."""
        for form in self._forms:
            found = text.find(form)
            while found >= 0:
                yield found, found + len(form)
                found = text.find(form, found + 1)


def _texts(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        match left.pop():
            case str() | int() as one:
                yield str(one)
            case list() as items:
                left += items
            case {"base64": str()} as binary if len(binary) == 1:
                yield _inside(binary)
            case dict() as pairs:
                left += [*pairs, *pairs.values()]


def _inside(binary: dict[str, str]) -> str:
    """What we wrote in base 64 ourselves because it is no text: it may still hold some."""
    try:
        content = base64.b64decode(binary["base64"])
    except ValueError:
        content = b""
    texts = (binary["base64"], content.decode(errors="replace"), content.decode("latin-1"))
    return "\n".join(texts)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _forms(secret: str) -> set[str]:
    """As texts, URLs, JSON and HTML write it, each throughout; and in base 64 and hex."""
    texts = _undecodable(secret)
    forms = set(texts)
    for text in texts:
        escaped = json.dumps(text)[1:-1]
        forms |= {escaped, json.dumps(text, ensure_ascii=False)[1:-1], html.escape(text)}
        forms |= {escaped.replace("/", "\\/"), html.escape(text, quote=False)}
        for write in (quote, quote_plus):
            for safe in ("", "/", "/:?@!$'()*,;"):
                encoded = write(text, safe=safe, errors="surrogatepass")
                forms |= {encoded, re.sub("%..", lambda found: found[0].lower(), encoded)}
    return {form for form in forms if len(form) >= _SHORTEST}


def _undecodable(secret: str) -> set[str]:
    """Itself, and what no decoding of texts leads back from."""
    raw = secret.encode("utf-8", "surrogatepass")
    forms = {secret, raw.hex(), raw.hex().upper(), raw.decode("latin-1")}
    # Each way to sit in a longer text that was encoded as a whole: what its neighbours leave alone.
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw).decode()
        known = whole[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]
        forms |= {known, known.translate(_FOR_URLS)}
    encoded = base64.b64encode(raw).decode()
    forms |= {encoded, encoded.translate(_FOR_URLS), encoded.rstrip("=")}
    return {form for form in forms if len(form) >= _SHORTEST}


_FOR_URLS: Final = str.maketrans("+/", "-_")


def _decoded(text: str) -> Iterator[str]:
    """The text as it reads behind a few encodings, in any order; itself not again."""
    seen, layer = {text}, [text]
    for _ in range(_ROUNDS):
        fresh: list[str] = []
        for one in layer:
            for mark, decode in _DECODERS:
                if mark in one and len(seen) < _MOST_WRITINGS and (read := decode(one)) not in seen:
                    seen.add(read)
                    fresh.append(read)
                    yield read
        layer = fresh


def _unescaped(text: str) -> str:
    def read(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        return chr(int(code, 16)) if code else found[3] or ""

    # Two escapes make one character where it is a rare one.
    return _ESCAPE.sub(read, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_DECODERS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("%", unquote),
    ("&", html.unescape),
    ("\\", _unescaped),
    ("+", unquote_plus),
)
