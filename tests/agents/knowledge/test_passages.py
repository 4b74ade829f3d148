"""How chunks that were found become the passages that people and models read."""

import msgspec

from app.domain.agents.knowledge.chunks import StoredChunk
from app.domain.agents.knowledge.fusion import Candidate
from app.domain.agents.knowledge.passages import drop_repetitions, put_together
from app.domain.agents.knowledge.terms import list_terms


def _candidate(position: int, text: str, **place: object) -> Candidate:
    terms = " ".join(list_terms(text, ["en"]))
    chunk = StoredChunk("doc_1", "a.md", position, text, None, None, "Hours", terms=terms)
    chunk = msgspec.structs.replace(chunk, **place)
    score = 1 - position / 100
    return Candidate(chunk, score, coverage=1, certainty=1, is_encoded=False, similarity=None)


def test_chunks_that_follow_each_other_become_one_passage() -> None:
    later = _candidate(5, "Hours\n\non Sundays at eleven o'clock. Not on holidays.")
    earlier = _candidate(4, "Hours\n\nWe open at nine, but on Sundays at eleven o'clock.")
    (passage,) = put_together([later, earlier])
    assert passage.text == (
        "Hours\n\nWe open at nine, but on Sundays at eleven o'clock. Not on holidays."
    )
    assert (passage.chunk.position, passage.score) == (5, later.score)


def test_chunks_of_other_places_stay_apart() -> None:
    first = _candidate(4, "We open at nine.")
    for other in (
        _candidate(6, "Not the next one."),
        _candidate(5, "Of another section.", heading="Prices"),
        _candidate(5, "Of another document.", document_id="doc_2"),
        _candidate(5, "A row of a table.", row=3),
        _candidate(5, "Of an earlier version.", version=7),
    ):
        assert len(put_together([first, other])) == 2, other.chunk.text


def test_a_passage_has_at_most_three_chunks() -> None:
    passages = put_together([_candidate(number, f"Part {number}.") for number in range(4)])
    assert [passage.text.count("Part") for passage in passages] == [3, 1]


def test_of_nearly_equal_passages_the_first_is_kept() -> None:
    text = "The shop opens at nine in the morning and closes at six in the evening"
    same = [
        _candidate(number, f"{text} on weekdays.", document_id=f"d{number}") for number in (0, 1)
    ]
    other = _candidate(2, "Bicycles may be left behind the house, next to the bins and the garage.")
    assert drop_repetitions([*same, other], 5) == [same[0], other]
    assert drop_repetitions([*same, other], 1) == [same[0]]
    # Short ones, like rows with a number, are not compared.
    rows = [_candidate(number, "TB 1", document_id=f"d{number}") for number in (0, 1)]
    assert drop_repetitions(rows, 5) == rows
