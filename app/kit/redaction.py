"""Keeping secrets out of what others said: an echo of what we sent must not be stored or shown."""

import base64
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

_SHORTEST = 4
_SHOWN = "[redacted]"


class Redactor:
    """Replaces secrets, and the common ways of writing them, wherever they turn up."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if len(secret) >= _SHORTEST for form in _forms(secret)}
        # The longest first, so that no part of one is left standing.
        ordered = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        return self._pattern.sub(_SHOWN, text) if self._pattern else text

    def value(self, value: Any) -> Any:
        if self._pattern is None:
            return value
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.value(item) for item in value]
            case dict():
                return {self.text(key): self.value(item) for key, item in value.items()}
        return value


def _forms(secret: str) -> set[str]:
    raw = secret.encode()
    inner = msgspec.json.encode(secret).decode()[1:-1]
    forms = {secret, inner, quote(secret, safe=""), quote_plus(secret), quote(secret), raw.hex()}
    forms |= {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    forms |= {form.rstrip("=") for form in list(forms)}
    # Each way to sit in a longer text that was encoded as a whole.
    for shift in (1, 2):
        padded = base64.b64encode(b"\0" * shift + raw).decode()
        forms.add(padded[4 : len(padded) - 4])
    forms.add(base64.b64encode(raw).decode()[: len(raw) // 3 * 4])
    return {form for form in forms if len(form) >= _SHORTEST}
