"""The order and the scores in which a search returns its chunks."""

from collections.abc import Sequence

import pytest

from app.domain.agents.knowledge.chunk_store import Matches
from app.domain.agents.knowledge.chunks import StoredChunk
from app.domain.agents.knowledge.encoders import english, multilingual
from app.domain.agents.knowledge.fusion import LOCAL_CALIBRATION, Candidate, rank
from app.domain.agents.knowledge.relevance import select_fitting
from app.domain.agents.knowledge.terms import list_terms

_ENGLISH, _MULTILINGUAL = english.INFO.name, multilingual.INFO.name


def _chunk(text: str, position: int = 0) -> StoredChunk:
    terms = " ".join(list_terms(text, ["en"]))
    return StoredChunk("doc_1", "file.txt", position, text, None, None, terms=terms)


def _rank(matches: Matches, query: str) -> list[Candidate]:
    return rank(matches, list_terms(query, ["en"]))


def _positions(candidates: Sequence[Candidate]) -> list[int]:
    return [candidate.chunk.position for candidate in candidates]


def test_a_chunk_that_is_first_everywhere_and_has_all_words_scores_one() -> None:
    chunk = _chunk("The AX-200 pump")
    for encodings in ({}, {_ENGLISH: [(chunk, 0.9)]}):
        matches = Matches([(chunk, 0.9)], [(chunk, 8.0)], encodings)
        assert _rank(matches, "AX-200 pumps")[0].score == 1.0


def test_scores_fall_and_lie_between_zero_and_one() -> None:
    chunks = [_chunk(f"pump {number}", number) for number in range(8)]
    matches = Matches([(chunk, 0.5) for chunk in chunks], [(chunk, 2.0) for chunk in chunks[:4]])
    scores = [candidate.score for candidate in _rank(matches, "which pump 3")]
    assert len(scores) == 8
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


def test_the_chunk_with_the_rare_word_comes_before_those_with_usual_words() -> None:
    usual = [_chunk("what does the part cost", number) for number in range(6)]
    right = _chunk("price of TB-70571-K: nine", 9)
    matches = Matches(
        [(chunk, 0.5) for chunk in [*usual, right]],
        [(right, 7.0), *((chunk, 3.0) for chunk in usual[:3])],
    )
    assert _rank(matches, "what does the part tb-70571-k cost?")[0].chunk == right


def test_an_encoding_counts_more_than_a_vector() -> None:
    meant, similar = _chunk("recover a file from the bin", 1), _chunk("a document by mistake", 2)
    matches = Matches([(similar, 0.7), (meant, 0.3)], [], {_ENGLISH: [(meant, 0.75)]})
    assert _rank(matches, "I threw away a report")[0].chunk == meant


def test_similarities_of_two_encoders_are_compared_by_what_is_usual_for_each() -> None:
    """0.62 is little for the one and much for the other."""
    little, much = _chunk("one", 1), _chunk("two", 2)
    encodings = {_ENGLISH: [(little, 0.62)], _MULTILINGUAL: [(much, 0.62)]}
    assert _positions(_rank(Matches([], [], encodings), "other")) == [2]


def test_words_decide_between_equal_encodings() -> None:
    first, second = _chunk("about pumps", 1), _chunk("about oil", 2)
    encodings = {_ENGLISH: [(first, 0.7), (second, 0.7)]}
    matches = Matches([], [(second, 4.0), (first, 1.0)], encodings)
    assert _positions(_rank(matches, "oil")) == [2, 1]


def test_a_chunk_that_is_neither_similar_nor_has_the_words_is_left_out() -> None:
    chunk = _chunk("tell the nurse")
    matches = Matches([(chunk, LOCAL_CALIBRATION.floor - 0.01)], [(chunk, 2.0)])
    query = "tell me an entirely different story about dragons"
    assert _rank(matches, query) == []
    # Without vectors the words are all there is.
    assert _rank(Matches([], matches.by_text), query)


def test_one_part_alone_is_enough() -> None:
    chunk = _chunk("a pump")
    assert _rank(Matches([(chunk, 0.5)], []), "water mover")[0].chunk == chunk
    assert _rank(Matches([], [(chunk, 3.0)]), "pump")[0].chunk == chunk
    assert _rank(Matches([], [], {_ENGLISH: [(chunk, 0.7)]}), "water mover")[0].chunk == chunk
    assert _rank(Matches([], []), "pump") == []


def test_queries_of_marks_and_of_very_many_words_are_ranked() -> None:
    chunk = _chunk("(a) pump [1]")
    matches = Matches([(chunk, 0.5)], [(chunk, 3.0)])
    for query in ("?!", "((", "pump " * 1000, " ".join(map(str, range(1000)))):
        assert _rank(matches, query)[0].chunk == chunk


def test_chunks_of_old_tables_are_compared_by_their_text() -> None:
    chunk = StoredChunk("doc_1", "file.txt", 0, "A pump", None, None)
    (found,) = rank(Matches([], [(chunk, 1.0)]), ["pump", "oil"])
    assert 0 < found.coverage < 1


def test_a_chunk_that_fits_too_little_is_not_quoted(subtests: pytest.Subtests) -> None:
    """The query has two words, which weigh the same."""
    both, one, none = _chunk("pump oil", 0), _chunk("pump", 1), _chunk("cake", 2)
    cases: dict[str, tuple[Matches, list[StoredChunk]]] = {
        "similar": (Matches([(none, 0.31)], []), [none]),
        "hardly similar": (Matches([(none, 0.29)], []), []),
        "hardly similar, with a word": (Matches([(one, 0.25)], [(one, 1.0)]), [one]),
        "much less than the best": (Matches([(both, 0.6), (none, 0.35)], []), [both]),
        "nearly as good as the best": (Matches([(both, 0.4), (one, 0.5)], []), [both, one]),
        # It is as similar as the last of the vectors may be.
        "found by words alone": (Matches([(none, 0.3)], [(both, 5.0)]), [both]),
        "without vectors": (Matches([], [(one, 0.1)]), [one]),
        "nothing": (Matches([], []), []),
        "encoded": (Matches([], [], {_ENGLISH: [(none, 0.7)]}), [none]),
        "encoded, about something else": (Matches([], [], {_ENGLISH: [(none, 0.55)]}), []),
        "encoded, with all words": (Matches([], [(both, 5.0)], {_ENGLISH: [(both, 0.5)]}), [both]),
        "encoded beside a vector": (
            Matches([(none, 0.1), (one, 0.05)], [], {_ENGLISH: [(one, 0.7)]}),
            [one],
        ),
    }
    for name, (matches, chunks) in cases.items():
        with subtests.test(name):
            found = select_fitting(_rank(matches, "pump oil"), matches, min_fit=0.3)
            assert sorted(_positions(found)) == [chunk.position for chunk in chunks]


def test_a_question_that_all_passages_are_equally_near_to_has_no_answer() -> None:
    chunks = [_chunk("a passage", number) for number in range(20)]
    for lead, count in ((0.0, 0), (0.01, 0), (0.05, 1)):
        found = [(chunk, 0.7) for chunk in chunks]
        found[0] = (chunks[0], 0.7 + lead)
        matches = Matches([], [], {_ENGLISH: found})
        quoted = select_fitting(_rank(matches, "pump oil"), matches, min_fit=0.3)
        assert min(len(quoted), 1) == count
