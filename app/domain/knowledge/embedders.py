"""Turns texts into vectors of length 1: by the local embedder, or by a provider's model."""

import asyncio
from collections.abc import Sequence
from typing import Any

from app.domain.knowledge import local_embedder
from app.domain.models.errors import ModelFailed
from app.domain.models.service import Models, Target

_HOSTED_BATCH = 64
_HOSTED_CONCURRENCY = 4


class Embedder:
    def __init__(self, models: Models) -> None:
        self._models = models
        self._local = local_embedder.TokenTable()

    async def embed(self, target: Target, texts: Sequence[str]) -> Any:
        """Returns a float32 matrix with a row per text. Raises ModelFailed, ModelNotConfigured."""
        if target.model == local_embedder.NAME:
            return await asyncio.to_thread(self._local.embed, list(texts))
        batches = [texts[i : i + _HOSTED_BATCH] for i in range(0, len(texts), _HOSTED_BATCH)]
        parts: list[Any] = []
        for start in range(0, len(batches), _HOSTED_CONCURRENCY):
            answers = await asyncio.gather(
                *(
                    self._models.embed(target, list(batch))
                    for batch in batches[start : start + _HOSTED_CONCURRENCY]
                )
            )
            # As numbers of four bytes at once: lists of Python numbers take ten times as much.
            vectors = [vector for answer in answers for vector in answer.vectors]
            parts.append(await asyncio.to_thread(_normalize, target, vectors))
        return _join(target, parts)


def _join(target: Target, parts: list[Any]) -> Any:
    import numpy as np  # noqa: PLC0415  # only processes that embed load it

    if len({part.shape[1] for part in parts}) != 1:
        raise ModelFailed(target.model, "broken", "the embeddings differ in length")
    return np.concatenate(parts)


def _normalize(target: Target, vectors: list[list[float]]) -> Any:
    import numpy as np  # noqa: PLC0415  # only processes that embed load it

    if len({len(vector) for vector in vectors}) != 1:
        raise ModelFailed(target.model, "broken", "the embeddings differ in length")
    matrix = np.asarray(vectors, np.float32)
    if not np.isfinite(matrix).all():
        raise ModelFailed(target.model, "broken", "an embedding has numbers that are not finite")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths == 0, 1, lengths)
