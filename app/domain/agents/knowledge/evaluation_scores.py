"""Compares what a search found with what was expected of it."""

import statistics
from collections.abc import Sequence

import msgspec

from .evaluation_schemas import (
    EvaluationDifferences,
    QuestionResult,
    RankedPassage,
    RetrievalFigures,
)
from .passages import Passage

_MAX_SHOWN = 5


class Target(msgspec.Struct, frozen=True):
    """A passage that answers a question. `text` is folded; without it, any text fits."""

    document_id: str
    text: str = ""
    page: int | None = None

    def fits(self, passage: Passage) -> bool:
        return (
            passage.chunk.document_id == self.document_id
            and self.page in {None, passage.chunk.page}
            and self.text in fold(passage.text)
        )


class Findings(msgspec.Struct, frozen=True):
    """What a question found: passages in plain order, and those that a turn quotes."""

    passages: list[Passage]
    quotations: list[Passage]
    milliseconds: float


class Judgement(msgspec.Struct, frozen=True):
    """The result of a question that has an answer, or has none."""

    is_answerable: bool
    result: QuestionResult
    milliseconds: float

    @property
    def grade(self) -> tuple[bool, float]:
        """The higher, the better."""
        return self.result.is_right, _reciprocal(self.result.rank)


def fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def judge(targets: Sequence[Target], findings: Findings) -> Judgement:
    """Any of the targets is right; without one, it is right to quote nothing."""
    quoted_keys = {passage.chunk.key for passage in findings.quotations}
    matches = [_is_expected(passage, targets) for passage in findings.passages]
    if targets:
        is_right = any(_is_expected(passage, targets) for passage in findings.quotations)
    else:
        is_right = not quoted_keys
    shown = [
        RankedPassage(
            passage.chunk.document_name,
            passage.chunk.page,
            passage.score,
            is_expected,
            passage.chunk.key in quoted_keys,
        )
        for passage, is_expected in zip(findings.passages, matches, strict=True)
    ]
    rank = matches.index(True) + 1 if any(matches) else None
    result = QuestionResult(rank, is_right, len(quoted_keys), shown[:_MAX_SHOWN])
    return Judgement(bool(targets), result, findings.milliseconds)


def summarize(judgements: Sequence[Judgement], cutoffs: Sequence[int]) -> RetrievalFigures:
    answerable = [item.result for item in judgements if item.is_answerable]
    others = [item.result for item in judgements if not item.is_answerable]
    ranks = [result.rank for result in answerable]
    return RetrievalFigures(
        hit_rate=_share_hits(ranks, cutoffs) if ranks else None,
        mrr=_share([_reciprocal(rank) for rank in ranks]) if ranks else None,
        quoted_rate=_share([result.is_right for result in answerable]) if ranks else None,
        missed_count=sum(not result.quoted_count for result in answerable),
        false_answer_count=sum(not result.is_right for result in others),
        median_ms=round(statistics.median(item.milliseconds for item in judgements), 1),
    )


def _share_hits(ranks: Sequence[int | None], cutoffs: Sequence[int]) -> dict[str, float]:
    return {
        str(cutoff): _share([rank is not None and rank <= cutoff for rank in ranks])
        for cutoff in sorted(set(cutoffs))
    }


def compare(current: Sequence[Judgement], changed: Sequence[Judgement]) -> EvaluationDifferences:
    pairs = list(enumerate(zip(current, changed, strict=True)))
    return EvaluationDifferences(
        better=[place for place, (before, after) in pairs if after.grade > before.grade],
        worse=[place for place, (before, after) in pairs if after.grade < before.grade],
    )


def _is_expected(passage: Passage, targets: Sequence[Target]) -> bool:
    return any(target.fits(passage) for target in targets)


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / rank


def _share(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)
