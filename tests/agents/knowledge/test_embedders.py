"""What calls to a hosted embedding model count."""

from typing import Any, cast

import pytest

from app.domain.agents.knowledge.embedders import Embedder
from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.protocol import Target, estimate_tokens

TARGET = Target("acme/embedder", "acme", "key")
_BATCH = 64


class _Answer:
    def __init__(self, texts: list[str], prompt_tokens: int) -> None:
        self.vectors = [[1.0, 2.0] for _ in texts]
        self.prompt_tokens = prompt_tokens


class _ScriptedModels:
    """Reports `tokens` for each text, and refuses a text `bad`."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    async def embed(self, target: Target, texts: list[str]) -> _Answer:
        if "bad" in texts:
            raise ModelFailed(target.model, "refused", "the provider answered 400")
        return _Answer(texts, self._tokens * len(texts))


def _embedder(tokens: int = 3) -> Embedder:
    return Embedder(cast("Models", _ScriptedModels(tokens)))


async def test_each_successful_call_counts_although_another_one_fails() -> None:
    used: list[int] = []
    texts = [*["good"] * _BATCH, "bad", *["good"] * (2 * _BATCH - 1)]
    with pytest.raises(ModelFailed):
        await _embedder().embed(TARGET, texts, used.append)
    assert used == [3 * _BATCH] * 2


async def test_tokens_are_estimated_when_the_provider_reports_none() -> None:
    used: list[int] = []
    matrix: Any = await _embedder(tokens=0).embed(TARGET, ["one", "two"], used.append)
    assert matrix.shape == (2, 2)
    assert used == [2 * estimate_tokens("one")]


async def test_the_local_embedder_counts_nothing() -> None:
    used: list[int] = []
    await _embedder().embed(Target("local/wordllama", "local"), ["one"], used.append)
    assert used == []
