"""Turns texts into vectors of length 1: by the local embedder, or by a provider's model."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from app.domain.agents.llm.api import EmbeddingInputs, Models, Target, estimate_tokens
from app.domain.agents.llm.errors import ModelFailed

from . import local_embedder

# Receives the number of texts that are embedded.
OnProgress = Callable[[int], Awaitable[None]]
_HOSTED_BATCH = 64
_HOSTED_CONCURRENCY = 4


class Embedder:
    def __init__(self, models: Models) -> None:
        self._models = models
        self.local = local_embedder.TokenTable()

    async def embed(
        self,
        target: Target,
        texts: Sequence[str],
        on_used: Callable[[int], None],
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Returns a float32 matrix with a row per text. Raises ModelFailed, ModelNotConfigured.
        `on_used` receives the tokens of each successful call to a provider, also when another call
        fails.
        """
        if on_progress is not None:
            await on_progress(0)
        if target.model == local_embedder.NAME:
            return await asyncio.to_thread(self.local.embed, list(texts))
        return await self.embed_hosted(target, list(texts), on_used, on_progress=on_progress)

    async def embed_hosted(
        self,
        target: Target,
        inputs: EmbeddingInputs,
        on_used: Callable[[int], None],
        *,
        dimensions: int | None = None,
        concurrency: int = _HOSTED_CONCURRENCY,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Like `embed`, for a provider's model. Without concurrency, the first failure is also the
        last call.
        """
        batches = [inputs[i : i + _HOSTED_BATCH] for i in range(0, len(inputs), _HOSTED_BATCH)]
        parts: list[Any] = []
        for start in range(0, len(batches), concurrency):
            answers = await asyncio.gather(
                *(
                    self._embed_batch(target, batch, on_used, dimensions)
                    for batch in batches[start : start + concurrency]
                ),
                return_exceptions=True,
            )
            vectors: list[list[float]] = []
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
                vectors += answer
            # As numbers of four bytes at once: lists of Python numbers take ten times as much.
            parts.append(await asyncio.to_thread(_normalize, target, vectors))
            if on_progress is not None:
                await on_progress(sum(map(len, parts)))
        return _join(target, parts)

    async def _embed_batch(
        self,
        target: Target,
        inputs: EmbeddingInputs,
        on_used: Callable[[int], None],
        dimensions: int | None,
    ) -> list[list[float]]:
        answer = await self._models.embed(target, inputs, dimensions)
        # A provider that reports no tokens has used some all the same.
        on_used(answer.prompt_tokens or sum(map(_estimate, inputs)))
        return answer.vectors


def _estimate(item: str | list[int]) -> int:
    return estimate_tokens(item) if isinstance(item, str) else len(item)


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
