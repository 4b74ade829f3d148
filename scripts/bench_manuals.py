"""Measures how well questions about manuals are answered, for each way of ranking their passages.

Questions of the split `reported` are asked, or of the one that BENCH_SPLIT names. The passages are
the same for every ranking.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import bench_corpus
import manual_base
import psutil
from manual_base import MAX_RANK, ManualBase

from app.domain.agents.definition.api import RetrievalSettings
from app.domain.agents.knowledge import retrieval
from app.domain.agents.knowledge.chunks import StoredChunk
from app.domain.agents.knowledge.embedders import Embedder
from app.domain.agents.knowledge.encoders import registry
from app.domain.agents.knowledge.encoders.registry import SentenceEncoders, calibration_of
from app.domain.agents.knowledge.question_vectors import encode_question
from app.services import Services
from tests.agents.knowledge.manual_evaluation import (
    ManualQuestion,
    Passage,
    Score,
    find_rank,
    read_manual_questions,
    score,
)

_MIB = 1024 * 1024
_ALL = "all"
_MAX_QUOTED = RetrievalSettings().max_passages
_Bases = dict[str, ManualBase]
_Rank = Callable[[ManualBase, str], Awaitable[list[StoredChunk]]]


class Quotation(NamedTuple):
    """What passed the cut-off for a question: whether anything, and whether its answer."""

    question: ManualQuestion
    has_passages: bool
    has_answer: bool


# The rankings: how each one orders the passages of a base for a question.


async def rank_by_words(base: ManualBase, question: str) -> list[StoredChunk]:
    matches = await base.match(question)
    return [chunk for chunk, _ in matches.by_text]


async def rank_by_table(base: ManualBase, question: str) -> list[StoredChunk]:
    embedder = base.services.get(Embedder).local
    vectors = await asyncio.to_thread(embedder.embed, [retrieval.shorten(question)])
    matches = await base.match(question, vector=vectors[0].tolist())
    return [chunk for chunk, _ in matches.by_vector]


async def rank_by_encoders(base: ManualBase, question: str) -> list[StoredChunk]:
    """Similarities of several encoders are compared by their calibrations, as the product does."""
    text = retrieval.shorten(question)
    vectors = await encode_question(base.services, base.tenant_id, base.info, text)
    matches = await base.match(question, encodings=vectors.encodings)
    places = [
        ((similarity - calibration_of(name).usual) / calibration_of(name).scale, chunk)
        for name, found in matches.by_encoding.items()
        for chunk, similarity in found
    ]
    places.sort(key=lambda place: -place[0])
    return [chunk for _, chunk in places[:MAX_RANK]]


async def rank_at_once(base: ManualBase, question: str) -> list[StoredChunk]:
    """As a search does before anything is encoded."""
    return await base.unrefined.search(question, MAX_RANK, only_fitting=False)


async def rank_refined(base: ManualBase, question: str) -> list[StoredChunk]:
    """As a search does when everything is encoded."""
    return await base.search(question, MAX_RANK, only_fitting=False)


RANKINGS: dict[str, _Rank] = {
    "words": rank_by_words,
    "table": rank_by_table,
    "fused at once": rank_at_once,
}
ENCODED_RANKINGS: dict[str, _Rank] = {"encoder": rank_by_encoders, "fused, refined": rank_refined}


# The tables


async def bench(services: Services, tenant_id: str) -> None:
    """Prints the tables; without the network, why it cannot."""
    split = os.environ.get("BENCH_SPLIT", "reported")
    questions = [question for question in read_manual_questions() if question.split == split]
    try:
        bases, rankings = await _prepare(services, tenant_id)
    except bench_corpus.CorpusUnavailable as error:
        print(f"\nQuestions about manuals were not asked. {error}", flush=True)
        return
    await _print_scores(bases, questions, rankings)
    print("\nWhat a turn quotes, before passages are encoded:\n")
    await _print_quotations({name: base.unrefined for name, base in bases.items()}, questions)
    if ENCODED_RANKINGS.keys() <= rankings.keys():
        print("\nWhat a turn quotes, when all are:\n")
        await _print_quotations(bases, questions)


async def _prepare(services: Services, tenant_id: str) -> tuple[_Bases, dict[str, _Rank]]:
    """Returns a base for each language, and the rankings that are possible here."""
    encoders = services.get(SentenceEncoders)
    encoders.enabled = registry.are_installed()
    print()
    if encoders.enabled:
        print(f"sentence encoders: {await asyncio.to_thread(_load, encoders):.0f} MiB", flush=True)
    bases: _Bases = {}
    for language in bench_corpus.LANGUAGES:
        manuals = await asyncio.to_thread(manual_base.read_manuals, language)
        count = sum(len(manual.chunks) for manual in manuals)
        started = time.perf_counter()
        bases[language] = await manual_base.write(services, tenant_id, language, manuals)
        seconds = time.perf_counter() - started
        print(f"{language}: {count} passages of manuals, written in {seconds:.1f} s", flush=True)
        if encoders.enabled:
            bases[language] = await manual_base.refine(bases[language], manuals)
    if encoders.enabled:
        return bases, RANKINGS | ENCODED_RANKINGS
    print("The sentence encoders are not installed.")
    return bases, RANKINGS


def _load(encoders: SentenceEncoders) -> float:
    """Returns the memory that they take in a process."""
    process = psutil.Process()
    before = process.memory_info().rss
    for info in registry.ENCODERS:
        encoders.encode(info.name, ["How do I print a page?"])
    bytes_taken: int = process.memory_info().rss - before
    return bytes_taken / _MIB


async def _print_scores(
    bases: _Bases, questions: list[ManualQuestion], rankings: dict[str, _Rank]
) -> None:
    columns: dict[str, dict[str, Score]] = {}
    times: dict[str, float] = {}
    for name, rank in rankings.items():
        outcomes, milliseconds = [], []
        for question in questions:
            started = time.perf_counter()
            chunks = await rank(bases[question.corpus], question.question)
            milliseconds.append((time.perf_counter() - started) * 1000)
            outcomes.append((question, find_rank(question, _to_passages(chunks))))
        columns[name] = _score_languages(outcomes)
        times[name] = statistics.median(milliseconds)
    print(f"\n| hit@1, hit@3, MRR | questions | {' | '.join(f'{name:<17}' for name in columns)} |")
    print("|---|---|" + "---|" * len(columns))
    for language, first in next(iter(columns.values())).items():
        cells = " | ".join(_format_score(scores[language]) for scores in columns.values())
        print(f"| {language:<17} | {first.questions:>9} | {cells} |")
    cells = " | ".join(f"{f'{value:.1f} ms':<17}" for value in times.values())
    print(f"| {'p50':<17} | {'':<9} | {cells} |", flush=True)


async def _print_quotations(bases: _Bases, questions: list[ManualQuestion]) -> None:
    """Prints what the cut-off of the product leaves of a search."""
    quotations = []
    for question in questions:
        base = bases[question.corpus]
        chunks = await base.search(question.question, _MAX_QUOTED, only_fitting=True)
        has_answer = find_rank(question, _to_passages(chunks)) > 0
        quotations.append(Quotation(question, bool(chunks), has_answer))
    columns = (
        *("answer quoted", "answerable, nothing quoted"),
        *("no answer, passages quoted", "unrelated, passages quoted"),
    )
    print(f"| {'questions':<17} | {' | '.join(columns)} |\n|---|" + "---|" * len(columns))
    for language in (_ALL, *sorted({question.language for question in questions})):
        group = [item for item in quotations if language in {_ALL, item.question.language}]
        answerable = [item for item in group if item.question.answers]
        shares = (
            [item.has_answer for item in answerable],
            [not item.has_passages for item in answerable],
            [item.has_passages for item in group if item.question.kind == "none"],
            [item.has_passages for item in group if item.question.kind == "unrelated"],
        )
        cells = (
            f"{_format_share(share):<{len(name)}}"
            for share, name in zip(shares, columns, strict=True)
        )
        print(f"| {language:<17} | {' | '.join(cells)} |", flush=True)


def _to_passages(chunks: Sequence[StoredChunk]) -> list[Passage]:
    return [Passage(chunk.document_id, chunk.heading or "") for chunk in chunks]


def _score_languages(outcomes: Sequence[tuple[ManualQuestion, int]]) -> dict[str, Score]:
    return score(outcomes, lambda _: _ALL) | score(outcomes, lambda question: question.language)


def _format_score(value: Score) -> str:
    return f"{value.hits[1]:>5.0%} {value.hits[3]:>5.0%}  {value.mean_reciprocal:.2f}"


def _format_share(values: list[bool]) -> str:
    return f"{sum(values) / len(values):>4.0%} of {len(values)}" if values else "none asked"
