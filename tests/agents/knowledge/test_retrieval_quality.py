"""How often a search finds the passage that answers a question."""

from pathlib import Path

import pytest

from tests.agents.knowledge.evaluation import (
    Corpus,
    Outcome,
    Question,
    Ranks,
    rank,
    read_corpus,
    read_questions,
)

_IRRELEVANT = (
    "hello",
    "thanks!",
    "ok",
    "bye",
    "What is the capital of Mongolia?",
    "Who won the football world cup?",
    "Who wrote Hamlet?",
    "How tall is Mount Everest?",
    "What is quantum entanglement?",
    "Recommend a film",
)


@pytest.fixture(scope="module")
async def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    corpus = Corpus(Path(tmp_path_factory.mktemp("corpus")))
    await corpus.load()
    return corpus


@pytest.fixture(scope="module")
async def outcomes(corpus: Corpus) -> list[Outcome]:
    return await corpus.ask(read_questions(hard=True))


def _is_paraphrase(question: Question) -> bool:
    return question.kind == "paraphrase"


def test_each_question_has_its_answer_in_a_chunk() -> None:
    texts = {name: [chunk.text for chunk in chunks] for name, chunks in read_corpus()}
    for question in [*read_questions(), *read_questions(hard=True)]:
        assert any(question.phrase in text for text in texts[question.document]), question


async def test_questions_as_people_ask_them_find_their_passage(corpus: Corpus) -> None:
    outcomes = await corpus.ask(read_questions())
    hybrid = Ranks([outcome.hybrid for outcome in outcomes])
    assert hybrid.hits(3) >= 0.9
    for half in ("by_vector", "by_text"):
        ranks = Ranks([getattr(outcome, half) for outcome in outcomes])
        assert hybrid.hits(3) >= ranks.hits(3)
        assert hybrid.mean_reciprocal >= ranks.mean_reciprocal


def test_hybrid_search_is_better_than_each_half_alone(outcomes: list[Outcome]) -> None:
    hybrid = Ranks([outcome.hybrid for outcome in outcomes])
    halves = [
        Ranks([outcome.by_vector for outcome in outcomes]),
        Ranks([outcome.by_text for outcome in outcomes]),
    ]
    for half in halves:
        assert hybrid.hits(3) >= half.hits(3) + 0.1
        assert hybrid.mean_reciprocal >= half.mean_reciprocal + 0.1
    assert hybrid.hits(3) >= 0.85
    assert hybrid.mean_reciprocal >= 0.75


def test_words_numbers_names_and_follow_ups_find_their_passage(outcomes: list[Outcome]) -> None:
    literal = [outcome for outcome in outcomes if not _is_paraphrase(outcome.question)]
    misses = [outcome.question.question for outcome in literal if not 0 < outcome.hybrid <= 3]
    assert len(misses) <= 0.05 * len(literal), misses


def test_paraphrases_without_shared_words_mostly_find_their_passage(
    outcomes: list[Outcome],
) -> None:
    ranks = Ranks([item.hybrid for item in outcomes if _is_paraphrase(item.question)])
    assert ranks.hits(3) >= 0.7


async def test_questions_about_something_else_find_few_passages(corpus: Corpus) -> None:
    counts = [len(rank(await corpus.search(query), query)[:5]) for query in _IRRELEVANT]
    assert sum(counts) <= 1.5 * len(_IRRELEVANT), dict(zip(_IRRELEVANT, counts, strict=True))
