"""Bodies and answers of an evaluation: questions, what is expected of a search, and figures."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.domain.agents.definition.api import RetrievalSettings
from app.kit.validation import NOT_BLANK

from .schemas import ReaderChoice

_EXPECTED = {"document_name": "handbook.pdf", "contains": "on Sundays at 11"}
_QUESTION = {"question": "When does the shop open on Sundays?", "expected": [_EXPECTED]}
_UNANSWERABLE = {"question": "Who won the football world cup?", "expected": []}
_PASSAGE = {
    "document_name": "handbook.pdf",
    "page": 3,
    "relevance_score": 0.92,
    "is_expected": True,
    "is_quoted": True,
}
_RESULT = {"rank": 1, "is_right": True, "quoted_count": 1, "passages": [_PASSAGE]}
_NO_RESULT: dict[str, Any] = {"rank": None, "is_right": True, "quoted_count": 0, "passages": []}
_FIGURES = {
    "hit_rate": {"1": 0.5, "3": 1.0},
    "mrr": 0.75,
    "quoted_rate": 1.0,
    "missed_count": 0,
    "false_answer_count": 0,
    "median_ms": 8.4,
}
_OUTCOMES: list[dict[str, Any]] = [
    {"question": _QUESTION["question"], "current": _RESULT, "changed": _RESULT},
    {"question": _UNANSWERABLE["question"], "current": _NO_RESULT, "changed": _NO_RESULT},
]


class ExpectedPassage(msgspec.Struct, kw_only=True):
    """A passage that answers a question: of the document with this id or name, on this page, with
    this text. Capitals and spaces of the text do not matter.
    """

    example: ClassVar[dict[str, Any]] = _EXPECTED

    document_id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    document_name: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    contains: Annotated[str, Meta(min_length=1, max_length=1000, pattern=NOT_BLANK)] | None = None
    page: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class EvaluationQuestion(msgspec.Struct, kw_only=True):
    """Any of the `expected` passages is right. Without one, the question has no answer in the
    documents, and it is right that a turn quotes nothing.
    """

    example: ClassVar[dict[str, Any]] = _QUESTION

    question: Annotated[str, Meta(min_length=1, max_length=2000, pattern=NOT_BLANK)]
    expected: Annotated[list[ExpectedPassage], Meta(max_length=10)]


class RetrievalEvaluationRequest(ReaderChoice, kw_only=True):
    """`k` are the numbers of passages for which `hit_rate` is told. `changed_settings` are asked
    beside those of the agent, which stay as they are; what is left out has its default.
    `only_public` searches as for a visitor of these `groups`.
    """

    example: ClassVar[dict[str, Any]] = {
        "questions": [_QUESTION, _UNANSWERABLE],
        "k": [1, 3],
        "changed_settings": {"max_passages": 8},
    }

    questions: Annotated[list[EvaluationQuestion], Meta(min_length=1, max_length=200)]
    k: Annotated[list[Annotated[int, Meta(ge=1, le=20)]], Meta(min_length=1, max_length=20)] = (
        msgspec.field(default_factory=lambda: [1, 3, 5, 10])
    )
    changed_settings: RetrievalSettings | None = None


class RankedPassage(msgspec.Struct):
    """`is_expected` is true for a right passage, and `is_quoted` for one that a turn quotes."""

    example: ClassVar[dict[str, Any]] = _PASSAGE

    document_name: str
    page: int | None
    relevance_score: float
    is_expected: bool
    is_quoted: bool


class QuestionResult(msgspec.Struct):
    """`rank` is that of the first right passage, null when it is not among the first of the largest
    `k`. `is_right` says whether a turn quotes a right passage, or, for a question without an
    answer, nothing. `passages` are the first five that the search found.
    """

    example: ClassVar[dict[str, Any]] = _RESULT

    rank: int | None
    is_right: bool
    quoted_count: int
    passages: list[RankedPassage]


class QuestionOutcome(msgspec.Struct):
    """`changed` is null without `changed_settings`."""

    example: ClassVar[dict[str, Any]] = _OUTCOMES[0]

    question: str
    current: QuestionResult
    changed: QuestionResult | None


class RetrievalFigures(msgspec.Struct):
    """Of the answerable questions, `hit_rate` is the share with a right passage among the first
    `k`, `mrr` the mean of 1 / rank, and `quoted_rate` the share for which a turn quotes a right
    passage; all are null when no question is answerable. `missed_count` are the answerable
    questions for which a turn quotes nothing, `false_answer_count` those without an answer for
    which it quotes something. `median_ms` is the time of a question.
    """

    example: ClassVar[dict[str, Any]] = _FIGURES

    hit_rate: dict[str, float] | None
    mrr: float | None
    quoted_rate: float | None
    missed_count: int
    false_answer_count: int
    median_ms: float


class EvaluationDifferences(msgspec.Struct):
    """The places of questions in the request, from 0 on, whose results are better or worse with
    the changed settings: by `is_right` first, and then by `rank`.
    """

    example: ClassVar[dict[str, Any]] = {"better": [], "worse": []}

    better: list[int]
    worse: list[int]


class RetrievalEvaluation(msgspec.Struct):
    """`questions` are in the order of the request. An evaluation ends after 40 seconds:
    `skipped_count` is the number of questions at the end that it did not reach, which no figure
    includes. `changed` and `differences` are null without `changed_settings`.
    """

    example: ClassVar[dict[str, Any]] = {
        "answerable_count": 1,
        "unanswerable_count": 1,
        "skipped_count": 0,
        "current": _FIGURES,
        "changed": _FIGURES,
        "differences": EvaluationDifferences.example,
        "questions": _OUTCOMES,
    }

    answerable_count: int
    unanswerable_count: int
    skipped_count: int
    current: RetrievalFigures
    changed: RetrievalFigures | None
    differences: EvaluationDifferences | None
    questions: list[QuestionOutcome]
