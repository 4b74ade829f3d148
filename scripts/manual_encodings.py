"""Encodings of passages, kept on disk because encoding takes minutes."""

import hashlib
import threading
from pathlib import Path
from typing import Any, Final

import numpy as np

_DIGEST_BYTES: Final = 32


class KeptEncodings:
    """Those of one encoder, in a file of records: the SHA-256 of a text, and its encoding. A record
    that a killed run left unfinished is cut off. Several threads may add some.
    """

    def __init__(self, path: Path, dimensions: int) -> None:
        self._path = path
        self._type = np.dtype([("digest", np.void, _DIGEST_BYTES), ("vector", "<f4", dimensions)])
        self._adding = threading.Lock()
        self._kept: dict[bytes, Any] = {}
        if path.exists():
            whole = path.stat().st_size // self._type.itemsize
            with path.open("r+b") as file:
                file.truncate(whole * self._type.itemsize)
            self._remember(np.fromfile(path, self._type))

    def find_missing(self, texts: list[str]) -> list[str]:
        return [text for text in dict.fromkeys(texts) if _digest(text) not in self._kept]

    def add(self, texts: list[str], vectors: Any) -> None:
        records = np.empty(len(texts), self._type)
        records["digest"] = [np.void(_digest(text)) for text in texts]
        records["vector"] = vectors
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._adding, self._path.open("ab") as file:
            file.write(records.tobytes())
            self._remember(records)

    def read(self, texts: list[str]) -> Any:
        """Returns a float32 matrix with a row per text."""
        return np.stack([self._kept[_digest(text)] for text in texts])

    def _remember(self, records: Any) -> None:
        digests = (digest.tobytes() for digest in records["digest"])
        self._kept |= zip(digests, records["vector"], strict=True)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
