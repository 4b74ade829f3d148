"""Asks questions about manuals of free software, in four languages, and ranks their answers.

`scripts/bench_corpus.py` gets the manuals, which nobody of this project wrote. The questions in
`manual_questions` were written by reading the manuals, before any search was run on them. Those of
the split `tuning` may be looked at while the search is changed. Those of the split `reported` are
what is reported, and nothing is decided by them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

_FOLDER = Path(__file__).parent / "manual_questions"
_SEPARATOR = " > "

Kind = Literal["easy", "paraphrase", "hard", "none", "unrelated"]
Split = Literal["tuning", "reported"]


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A section of a page with the sections below it; without a heading, the whole page."""

    document: str
    heading: str = ""


class ManualQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`easy` shares words with its answer, `paraphrase` few, `hard` hardly one. The manuals have no
    answer to `none`, which asks for what they might have, and to `unrelated`.
    """

    question: str
    kind: Kind
    split: Split
    answers: list[Answer] = []
    # Has mistakes of spelling or typing.
    typo: bool = False
    # Of the question and of the manuals, like "de-en"; one where both are the same. It is the name
    # of the file.
    language: str = ""

    @property
    def corpus(self) -> str:
        """The language of the manuals."""
        return self.language.rpartition("-")[2]


class Passage(NamedTuple):
    """`heading` has the headings above the passage, like that of a chunk."""

    document: str
    heading: str


class Score(NamedTuple):
    """The share of questions whose answer is among the first passages, and the mean of 1 / rank."""

    questions: int
    hits: dict[int, float]
    mean_reciprocal: float


LIMITS: Final = (1, 3, 5, 10)


def read_manual_questions() -> list[ManualQuestion]:
    return [
        msgspec.structs.replace(question, language=path.stem)
        for path in sorted(_FOLDER.glob("*.json"))
        for question in msgspec.json.decode(path.read_bytes(), type=list[ManualQuestion])
    ]


def find_rank(question: ManualQuestion, passages: Sequence[Passage]) -> int:
    """Returns the rank of the first passage that answers the question, from 1 on; 0 without one."""
    for rank, passage in enumerate(passages, 1):
        if any(_is_in(passage, answer) for answer in question.answers):
            return rank
    return 0


def _is_in(passage: Passage, answer: Answer) -> bool:
    headings = ("", *passage.heading.split(_SEPARATOR))
    return passage.document == answer.document and answer.heading in headings


def score(
    outcomes: Sequence[tuple[ManualQuestion, int]], key: Callable[[ManualQuestion], str]
) -> dict[str, Score]:
    """Returns the score of each group of questions with an answer, from questions and ranks."""
    groups: dict[str, list[int]] = {}
    for question, rank in outcomes:
        if question.answers:
            groups.setdefault(key(question), []).append(rank)
    return {name: _score(ranks) for name, ranks in sorted(groups.items())}


def _score(ranks: list[int]) -> Score:
    hits = {limit: sum(0 < rank <= limit for rank in ranks) / len(ranks) for limit in LIMITS}
    return Score(len(ranks), hits, sum(1 / rank for rank in ranks if rank) / len(ranks))
