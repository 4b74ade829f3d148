"""What calls to a hosted embedding model count."""

from typing import Any, cast

import pytest

from app.domain.agents.knowledge.embedders import Embedder
from app.domain.agents.knowledge.local_embedder import TokenTable
from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.protocol import EmbeddingInputs, Target, estimate_tokens

TARGET = Target("acme/embedder", "acme", "key")
_BATCH = 64


class _Answer:
    def __init__(self, texts: EmbeddingInputs, prompt_tokens: int) -> None:
        self.vectors = [[1.0, 2.0] for _ in texts]
        self.prompt_tokens = prompt_tokens


class _ScriptedModels:
    """Reports `tokens` for each text, and refuses a text `bad`."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    async def embed(self, target: Target, texts: EmbeddingInputs, _dimensions: None) -> _Answer:
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


async def test_without_concurrency_the_first_failure_is_the_last_call() -> None:
    used: list[int] = []
    texts = [*["good"] * _BATCH, *["bad"] * _BATCH, *["good"] * _BATCH]
    with pytest.raises(ModelFailed):
        await _embedder().embed_hosted(TARGET, texts, used.append, concurrency=1)
    assert used == [3 * _BATCH]


async def test_tokens_of_lists_are_counted_when_the_provider_reports_none() -> None:
    used: list[int] = []
    await _embedder(tokens=0).embed_hosted(TARGET, [[1, 2], [3]], used.append)
    assert used == [3]


def test_the_local_embedder_gives_a_text_the_same_vector_in_every_batch() -> None:
    """Long texts and many are embedded in several steps."""
    table = TokenTable()
    texts = ["one short text", "", *["another text"] * 600, "word " * 20_000, "the last one"]
    vectors, tokens = table.embed_and_count(texts)
    counts = []
    for number in (0, 1, 2, 601, 602, 603):
        ((vector,), count) = table.embed_and_count([texts[number]])
        assert vectors[number] == pytest.approx(vector, abs=1e-6)
        counts.append(count)
    assert counts[1] == 0
    assert counts[4] >= 20_000
    assert tokens == counts[0] + 600 * counts[2] + counts[4] + counts[5]
    assert not vectors[1].any()


async def test_the_local_embedder_counts_nothing() -> None:
    used: list[int] = []
    await _embedder().embed(Target("local/wordllama", "local"), ["one"], used.append)
    assert used == []
