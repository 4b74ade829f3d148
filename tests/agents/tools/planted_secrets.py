"""Secrets that tests search for, and a record of everything that can be observed."""

import base64
import re
from typing import Any

import httpx

from app.kit.ids import new_id

_START = "plant"


class PlantedSecrets:
    """Secrets by name. Each contains a core that only base64 and hex encode differently."""

    def __init__(self) -> None:
        self.cores: dict[str, str] = {}

    def add(self, name: str) -> str:
        core = self._add_core(name)
        return f'{core}/+="&é:{core}'

    def add_token(self, name: str) -> str:
        return f"{self._add_core(name)}-token"

    def _add_core(self, name: str) -> str:
        self.cores[name] = f"{_START}{new_id('x')[-12:]}"
        return self.cores[name]

    def find_in(self, text: str) -> set[str]:
        """Returns the names of the secrets in a text, plain or in base64 or hex, also reversed or
        with other characters between theirs.
        """
        letters = "".join(filter(str.isalnum, text)).lower()
        texts = [text, letters, letters[::-1], *_decode_base64(text)]
        forms = list(filter(_may_have_secrets, texts))
        return {
            name
            for form in forms
            for name, core in self.cores.items()
            if core in form or core.encode().hex() in form.lower()
        }


def _may_have_secrets(text: str) -> bool:
    """Few texts have the start of all secrets, and need a search for each of them."""
    return _START in text or _START.encode().hex() in text.lower()


def _decode_base64(text: str) -> list[str]:
    texts = []
    for run in set(re.findall(r"[A-Za-z0-9+/_-]{12,}", text)):
        standard = run.replace("-", "+").replace("_", "/")
        for skip in range(4):
            part = standard[skip:]
            part = part[: len(part) // 4 * 4]
            texts.append(base64.b64decode(part).decode("latin-1"))
    return texts


class RunRecord:
    """Everything that can be observed of the runs: responses, log, and requests to the site."""

    def __init__(self, secrets: PlantedSecrets, tenant_id: str) -> None:
        self.secrets = secrets
        self.tenant_id = tenant_id
        self.responses: list[str] = []
        self.log = ""
        self.received = ""
        self.tool_ids: list[str] = []
        self.outcomes: list[dict[str, Any]] = []

    async def record_response(self, response: httpx.Response) -> None:
        await response.aread()
        self.responses.append(f"{response.request.url} {dict(response.headers)} {response.text}")
