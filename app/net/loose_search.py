"""Finds secrets in a text that changed them: reversed, spaced out, in other case or encoding.

The text is reduced to its letters and digits once, and each form of a secret is searched for in the
result. All of that takes linear time in the length of the text.
"""

import base64
import codecs
import string
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Final

# Shorter forms, or forms with fewer different characters, are found in texts by chance.
_MIN_CHARS = 12
_MIN_DIFFERENT = 6
_MAX_MATCHED_CHARS = 1_000_000
_KEPT: Final = frozenset(string.ascii_letters + string.digits)
_DROPPED: Final = bytes(code for code in range(128) if chr(code) not in _KEPT)
_LOWER: Final = bytes(range(128)).lower() + bytes(range(128, 256))


class LooseSearch:
    """Compares ASCII letters and digits alone, without their case."""

    def __init__(self, secrets: Iterable[str], encodings: Iterable[str]) -> None:
        """`encodings` are other forms of the secrets."""
        texts = {*secrets}
        encoded = {*map(_reduce, encodings)}
        for text in texts:
            encoded |= {_reduce(codecs.encode(text, "rot13")), *map(_reduce, _encode_base32(text))}
        plain = _select_forms(map(_reduce, texts))
        # The shortest first: most values have a few characters, and are shorter than most forms.
        self._plain_forms = sorted(plain, key=len)
        self._forms = sorted(plain | _select_forms(encoded), key=len)

    def matches(self, text: str, *, is_decoded: bool = False) -> bool:
        """With `is_decoded` the text is one of many variants, searched for plain secrets alone."""
        return bool(_find_forms(self._plain_forms if is_decoded else self._forms, text))

    def find_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yields the position of every form, from its first to its last letter or digit. A text
        with very many of them is one span: a form that overlaps itself would take quadratic time.
        """
        forms = _find_forms(self._forms, text)
        if not forms:
            return
        reduced = _reduce(text)
        positions = array("I", compress(range(len(text)), map(_KEPT.__contains__, text)))
        for form in forms:
            start, matched_chars = reduced.find(form), 0
            while start >= 0:
                yield positions[start], positions[start + len(form) - 1] + 1
                matched_chars += len(form)
                if matched_chars > _MAX_MATCHED_CHARS:
                    yield 0, len(text)
                    return
                start = reduced.find(form, start + 1)


def _find_forms(forms: list[bytes], text: str) -> list[bytes]:
    """Returns the forms that a text has. `forms` are in the order of their lengths."""
    if not forms or len(text) < len(forms[0]):
        return []
    reduced = _reduce(text)
    count = bisect_right(forms, len(reduced), key=len)
    return [form for form in forms[:count] if form in reduced]


def _reduce(text: str) -> bytes:
    """Returns the ASCII letters and digits of a text, in lower case."""
    return text.encode("ascii", "ignore").translate(_LOWER, _DROPPED)


def _select_forms(forms: Iterable[bytes]) -> set[bytes]:
    """Returns the forms that no text has by chance, in both directions."""
    selected = {
        form for form in forms if len(form) >= _MIN_CHARS and len(set(form)) >= _MIN_DIFFERENT
    }
    return selected | {form[::-1] for form in selected}


def _encode_base32(secret: str) -> Iterator[str]:
    """Yields the characters that do not depend on the neighbouring bytes, at each offset."""
    raw = secret.encode("utf-8", "surrogatepass")
    for shift in range(5):
        whole = base64.b32encode(b"\0" * shift + raw).decode()
        yield whole[-(-8 * shift // 5) : 8 * (shift + len(raw)) // 5]
