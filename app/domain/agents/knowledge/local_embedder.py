"""The local embedder: a text's vector is the mean of the table rows of its tokens.

The tokenizer and the table of 32,000 rows come from the wheel `wordllama`, whose code is not used.
"""

import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from app.kit import wheels

NAME: Final = "local/wordllama"
DIMENSIONS: Final = 256
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
# The tokenizer takes more than a hundred bytes for each token of a batch.
_BATCH = 256
_BATCH_CHARS = 64 * 1024
# Rows that are added up at a time.
_SLICE = 4096


class TokenTable:
    """Loads its files on the first use. Every call blocks, so it belongs on a thread."""

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._tokenizer: Any = None
        self._rows: Any = None

    def embed(self, texts: list[str]) -> Any:
        """Returns a float32 matrix with a row per text, each of length 1. The row of a text
        without tokens is zero.
        """
        return self.embed_and_count(texts)[0]

    def embed_and_count(self, texts: list[str]) -> tuple[Any, int]:
        """Returns the matrix of `embed`, and the number of tokens of all texts."""
        import numpy as np  # noqa: PLC0415  # only processes that embed load it

        self._load()
        vectors, tokens = np.zeros((len(texts), DIMENSIONS), np.float32), 0
        for start, batch in _batches(texts):
            encodings = self._tokenizer.encode_batch(batch, add_special_tokens=False)
            for number, encoding in enumerate(encodings, start):
                if ids := encoding.ids:
                    vectors[number] = self._mean(ids)
                    tokens += len(ids)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths == 0, 1, lengths), tokens

    def list_frequent(self, words: list[str]) -> list[str]:
        """Returns the words that are one token, as frequent words of English are and hardly any
        misspelt one is.
        """
        self._load()
        spellings = [spelling for word in words for spelling in (word, word.capitalize())]
        encodings = self._tokenizer.encode_batch(spellings, add_special_tokens=False)
        whole = {text for text, item in zip(spellings, encodings, strict=True) if len(item) == 1}
        return [word for word in words if not whole.isdisjoint((word, word.capitalize()))]

    def _mean(self, ids: list[int]) -> Any:
        sums = [
            self._rows[ids[start : start + _SLICE]].sum(axis=0, dtype="float32")
            for start in range(0, len(ids), _SLICE)
        ]
        return sum(sums[1:], sums[0]) / len(ids)

    def _load(self) -> None:
        with self._loading:
            if self._rows is not None:
                return
            from tokenizers import Tokenizer  # noqa: PLC0415

            folder = wheels.folder_of(
                "wordllama", part="embedding model", instead="PARLEY_EMBEDDING_MODEL"
            )
            self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
            self._rows = _map_rows(folder / _WEIGHTS)


def _map_rows(path: Path) -> Any:
    """Returns the table as the file of the wheel, of which processes share what they read. The
    format is the length of a header in JSON, the header, and the numbers.
    """
    import numpy as np  # noqa: PLC0415  # only processes that embed load it

    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        place = msgspec.json.decode(file.read(size))["embedding.weight"]
    types = {"F32": "<f4", "F16": "<f2"}
    offset, shape = 8 + size + place["data_offsets"][0], tuple(place["shape"])
    return np.memmap(path, types[place["dtype"]], "r", offset, shape)


def _batches(texts: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields texts that are encoded together, and the number of the first."""
    start, chars = 0, 0
    for number, text in enumerate(texts):
        chars += len(text)
        if number > start and (number - start == _BATCH or chars > _BATCH_CHARS):
            yield start, texts[start:number]
            start, chars = number, len(text)
    if start < len(texts):
        yield start, texts[start:]
