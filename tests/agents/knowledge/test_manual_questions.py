"""The questions about manuals are well-formed and evenly split. Whether their answers exist is
checked by `scripts/bench_corpus.py --check`, which needs the network.
"""

from collections import Counter
from pathlib import PurePosixPath
from typing import get_args

import pytest

from tests.agents.knowledge.manual_evaluation import (
    Answer,
    Kind,
    ManualQuestion,
    Passage,
    find_rank,
    read_manual_questions,
    score,
)

_LANGUAGES = {"de", "de-en", "en", "es", "zh"}
_UNANSWERABLE = {"none", "unrelated"}
_QUESTIONS = read_manual_questions()


def _make_question(*answers: Answer, kind: Kind = "hard") -> ManualQuestion:
    return ManualQuestion(question="Why?", kind=kind, split="tuning", answers=list(answers))


def test_each_language_has_questions_of_each_kind() -> None:
    kinds = {(question.language, question.kind) for question in _QUESTIONS}
    expected = {(language, kind) for language in _LANGUAGES for kind in get_args(Kind)}
    assert kinds == expected - {("de-en", kind) for kind in _UNANSWERABLE}


def test_questions_differ() -> None:
    counts = Counter(question.question.strip().casefold() for question in _QUESTIONS)
    assert [text for text, count in counts.items() if count > 1 or not text] == []


def test_only_unanswerable_questions_have_no_answer() -> None:
    wrong = [q.question for q in _QUESTIONS if (q.kind in _UNANSWERABLE) == bool(q.answers)]
    assert wrong == []


def test_answers_differ_and_name_pages_of_packages() -> None:
    wrong = [
        question.question
        for question in _QUESTIONS
        if len(question.answers) != len(set(question.answers))
        or any(not _is_page(answer.document) for answer in question.answers)
    ]
    assert wrong == []


def _is_page(document: str) -> bool:
    path = PurePosixPath(document)
    return path.suffix == ".html" and len(path.parts) > 1 and not path.is_absolute()


def test_both_splits_have_as_many_questions_of_each_kind() -> None:
    counts = Counter((q.language, q.kind, q.split) for q in _QUESTIONS)
    groups = {(language, kind) for language, kind, _ in counts}
    uneven = [
        group
        for group in groups
        if abs(counts[(*group, "tuning")] - counts[(*group, "reported")]) > 1
    ]
    assert uneven == []


@pytest.mark.parametrize(
    ("heading", "rank"), [("", 2), ("Guide", 2), ("Step two", 3), ("Step", 0), ("Elsewhere", 0)]
)
def test_the_rank_is_that_of_the_first_passage_in_an_answer(heading: str, rank: int) -> None:
    passages = [
        Passage("a/other.html", "Elsewhere"),
        Passage("a/page.html", "Guide"),
        Passage("a/page.html", "Guide > Step two > Details"),
    ]
    assert find_rank(_make_question(Answer("a/page.html", heading)), passages) == rank


def test_any_of_several_answers_counts() -> None:
    question = _make_question(Answer("a/one.html"), Answer("a/two.html"))
    assert find_rank(question, [Passage("a/two.html", "Two"), Passage("a/one.html", "One")]) == 1


def test_scores_leave_out_questions_without_an_answer() -> None:
    question = _make_question(Answer("a/one.html"))
    outcomes = [(question, 1), (question, 4), (question, 0), (_make_question(kind="none"), 0)]
    result = score(outcomes, lambda question: question.kind)
    assert list(result) == ["hard"]
    assert result["hard"].questions == 3
    assert result["hard"].hits == pytest.approx({1: 1 / 3, 3: 1 / 3, 5: 2 / 3, 10: 2 / 3})
    assert result["hard"].mean_reciprocal == pytest.approx((1 + 1 / 4) / 3)
