"""Removes secrets from responses: a server may echo a secret that Parley sent to it.

All searches take linear time in the length of the text, for any secret: the server chooses the
text, a tenant may choose the secret, and no timeout interrupts a search.
"""

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from app.net.loose_search import LooseSearch

_MIN_CHARS = 4
_REPLACEMENT = "[redacted]"
# Characters that no encoding changes: such a part identifies a secret behind any encodings.
_STABLE_PART = re.compile(r"[A-Za-z0-9_.-]{12,}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))")
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
# How many times longer than its longest form a secret is that was spaced out.
_MAX_SPACING = 4
_MAX_DECODING_ROUNDS = 3
_MAX_DECODED_TEXTS = 16
_MAX_MATCHED_CHARS = 1_000_000


class Redactor:
    """Replaces secrets and their common encodings in texts and JSON values, also where a secret is
    reversed or its characters are apart.

    A text that contains a secret behind several encodings is replaced as a whole.
    """

    def __init__(self, secrets: Iterable[str], replacement: str = _REPLACEMENT) -> None:
        self._replacement = replacement
        parts = {secret for secret in secrets if len(secret) >= _MIN_CHARS}
        parts |= {part for secret in parts for part in _STABLE_PART.findall(secret)}
        # The shortest first: most values have a few characters, and are shorter than most forms.
        self._forms = sorted({form for part in parts for form in _encoded_forms(part)}, key=len)
        self._min_chars = len(self._forms[0]) if self._forms else 0
        # The forms to search for in a decoded text.
        self._basic_forms = sorted({form for part in parts for form in _basic_forms(part)})
        self._loose = LooseSearch(parts, self._basic_forms)
        self._overlap = _MAX_SPACING * len(self._forms[-1]) if self._forms else 0

    def text(self, text: str, max_chars: int | None = None) -> str:
        """Redacts a text. With `max_chars` only its beginning: no more of a long text is searched,
        and no part remains of a secret at the cut, as it would of a text that is cut before.
        """
        if max_chars is None:
            max_chars = len(text)
        if len(text) < self._min_chars:
            return text[:max_chars]
        text = text[: max_chars + self._overlap]
        spans = _merge(chain(self._find_spans(text), self._loose.find_spans(text)))
        redacted = self._replace(text, spans, len(text))
        if self._has_encoded_secret(redacted):
            return self._replacement
        return self._replace(text, spans, max_chars) if len(text) > max_chars else redacted

    def _replace(self, text: str, spans: list[tuple[int, int]], end: int) -> str:
        """Replaces the spans that start before `end`, and cuts the text there."""
        pieces, position = [], 0
        for span_start, span_end in spans:
            if span_start >= end:
                break
            pieces += [text[position:span_start], self._replacement]
            position = span_end
        return "".join([*pieces, text[position:end]])

    def value(self, value: Any) -> Any:
        """Redacts a JSON value. One search over all its texts handles the usual case, no secret."""
        if not self._forms:
            return value
        text = "\n".join(_texts(value))
        has_secret = (
            any(form in text for form in self._forms)
            or self._loose.matches(text)
            or self._has_encoded_secret(text)
        )
        return self._redact_value(value) if has_secret else value

    def _has_encoded_secret(self, text: str) -> bool:
        """True when the text contains a secret behind one or several encodings."""
        return any(
            any(form in decoded for form in self._basic_forms)
            or self._loose.matches(decoded, is_decoded=True)
            for decoded in _decode_variants(text)
        )

    def _redact_value(self, value: Any) -> Any:
        match value:
            case bool():
                return value
            case str():
                return self.text(value)
            case list():
                items = [self._redact_value(item) for item in value]
                return self._replacement if self._is_split_secret(items) else items
            case {"base64": str()} if len(value) == 1:
                text = _decode_binary(value)
                has_secret = self.text(text) != text
                return {"base64": self._replacement if has_secret else value["base64"]}
            case dict():
                return {self.text(key): self._redact_value(item) for key, item in value.items()}
            case int() if str(value) in self._forms:
                return self._replacement
        return value

    def _is_split_secret(self, items: list[Any]) -> bool:
        """True for a list that has a secret, or one of its forms, one character after another."""
        return all(isinstance(item, str | int) for item in items) and self._loose.matches(
            "\n".join(map(str, items))
        )

    def _find_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yields the position of every form, overlapping ones included. A text with very many of
        them is one span: a secret that overlaps itself would take quadratic time.
        """
        for form in self._forms:
            if len(form) > len(text):
                return
            start, matched_chars = text.find(form), 0
            while start >= 0:
                yield start, start + len(form)
                matched_chars += len(form)
                if matched_chars > _MAX_MATCHED_CHARS:
                    yield 0, len(text)
                    return
                start = text.find(form, start + 1)


def _texts(value: Any) -> Iterator[str]:
    remaining = [value]
    while remaining:
        match remaining.pop():
            case str() | int() as scalar:
                yield str(scalar)
            case list() as items:
                remaining += reversed(items)
            case {"base64": str()} as binary if len(binary) == 1:
                yield _decode_binary(binary)
            case dict() as pairs:
                remaining += [*pairs, *pairs.values()]


def _decode_binary(binary: dict[str, str]) -> str:
    """Returns the texts in a binary value that Parley encoded as base 64, and its encoding."""
    try:
        content = base64.b64decode(binary["base64"])
    except ValueError:
        content = b""
    texts = (binary["base64"], content.decode(errors="replace"), content.decode("latin-1"))
    return "\n".join(texts)


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the spans in order, with overlapping ones joined."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _encoded_forms(secret: str) -> set[str]:
    """Returns the secret and its basic forms as URLs, JSON and HTML encode them."""
    texts = _basic_forms(secret)
    forms = set(texts)
    for text in texts:
        escaped = json.dumps(text)[1:-1]
        forms |= {escaped, json.dumps(text, ensure_ascii=False)[1:-1], html.escape(text)}
        forms |= {escaped.replace("/", "\\/"), html.escape(text, quote=False)}
        for encode in (quote, quote_plus):
            for safe in ("", "/", "/:?@!$'()*,;"):
                encoded = encode(text, safe=safe, errors="surrogatepass")
                forms |= {encoded, re.sub("%..", lambda match: match[0].lower(), encoded)}
    return {form for form in forms if len(form) >= _MIN_CHARS}


def _basic_forms(secret: str) -> set[str]:
    """Returns the secret and its forms in hex, Latin-1 and base 64, which no decoder undoes."""
    raw = secret.encode("utf-8", "surrogatepass")
    forms = {secret, raw.hex(), raw.hex().upper(), raw.decode("latin-1")}
    # Inside a longer text in base 64: the characters that do not depend on the neighbouring bytes.
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw).decode()
        stable = whole[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]
        forms |= {stable, stable.translate(_URL_SAFE)}
    encoded = base64.b64encode(raw).decode()
    forms |= {encoded, encoded.translate(_URL_SAFE), encoded.rstrip("=")}
    return {form for form in forms if len(form) >= _MIN_CHARS}


_URL_SAFE: Final = str.maketrans("+/", "-_")


def _decode_variants(text: str) -> Iterator[str]:
    """Yields the text after up to three decodings in any order, without the text itself."""
    variants, layer = {text}, [text]
    for _ in range(_MAX_DECODING_ROUNDS):
        next_layer: list[str] = []
        for encoded in layer:
            for mark, decode in _DECODERS:
                if mark not in encoded or len(variants) >= _MAX_DECODED_TEXTS:
                    continue
                if (decoded := decode(encoded)) not in variants:
                    variants.add(decoded)
                    next_layer.append(decoded)
                    yield decoded
        layer = next_layer


def _unescape(text: str) -> str:
    def unescape_match(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _ESCAPED.get(match[3], match[3])

    # UTF-16 joins two escapes of a surrogate pair into one character.
    return (
        _ESCAPE.sub(unescape_match, text)
        .encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
    )


_DECODERS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("%", unquote),
    ("&", html.unescape),
    ("\\", _unescape),
    ("+", unquote_plus),
)
