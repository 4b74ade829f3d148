"""The local embedder: a text's vector is the mean of the table rows of its tokens.

The tokenizer and the table of 32,000 rows come from the wheel `wordllama`, whose code is not used.
"""

import threading
from typing import Any, Final

from app.kit import wheels

NAME: Final = "local/wordllama"
DIMENSIONS: Final = 256
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_BATCH = 256


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
        import numpy as np  # noqa: PLC0415  # only processes that embed load it

        self._load()
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            encodings = self._tokenizer.encode_batch(batch, add_special_tokens=False)
            for number, encoding in enumerate(encodings, start):
                if encoding.ids:
                    vectors[number] = self._rows[encoding.ids].mean(axis=0, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths == 0, 1, lengths)

    def _load(self) -> None:
        with self._loading:
            if self._rows is not None:
                return
            from safetensors.numpy import load_file  # noqa: PLC0415
            from tokenizers import Tokenizer  # noqa: PLC0415

            folder = wheels.folder_of(
                "wordllama", part="embedding model", instead="PARLEY_EMBEDDING_MODEL"
            )
            self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
            self._rows = load_file(folder / _WEIGHTS)["embedding.weight"]
