"""The order and the scores in which a search returns its chunks."""

import pytest

from app.domain.agents.knowledge import fusion
from app.domain.agents.knowledge.chunk_store import Matches
from app.domain.agents.knowledge.chunks import StoredChunk
from app.domain.agents.knowledge.fusion import MIN_SIMILARITY, fuse


def _chunk(text: str, position: int = 0) -> StoredChunk:
    return StoredChunk("doc_1", "file.txt", position, text, None, None)


def test_a_chunk_that_is_first_everywhere_and_has_all_words_scores_one() -> None:
    chunk = _chunk("The AX-200 pump")
    ((_, score),) = fuse(Matches([(chunk, 0.9)], [(chunk, 8.0)]), 5, "AX-200 pumps")
    assert score == 1.0


def test_scores_fall_and_lie_between_zero_and_one() -> None:
    chunks = [_chunk(f"pump {number}", number) for number in range(8)]
    matches = Matches([(chunk, 0.5) for chunk in chunks], [(chunk, 2.0) for chunk in chunks[:4]])
    scores = [score for _, score in fuse(matches, 6, "which pump 3")]
    assert len(scores) == 6
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


def test_the_chunk_with_the_rare_word_comes_before_those_with_usual_words() -> None:
    usual = [_chunk("what does the part cost", number) for number in range(6)]
    right = _chunk("price of TB-70571-K: nine", 9)
    matches = Matches(
        [(chunk, 0.5) for chunk in [*usual, right]],
        [(chunk, 3.0) for chunk in [*usual[:3], right]],
    )
    assert fuse(matches, 1, "what does the part tb-70571-k cost?")[0][0] == right


def test_a_neighbour_of_a_part_number_does_not_count_as_the_number() -> None:
    near, right = _chunk("TB-70571-M and TB 70570", 1), _chunk("TB-70571-K", 2)
    matches = Matches([], [(near, 5.0), (right, 4.9)])
    assert fuse(matches, 1, "TB-70571-K")[0][0] == right


def test_a_chunk_that_is_neither_similar_nor_has_the_words_is_left_out() -> None:
    chunk = _chunk("tell the nurse")
    matches = Matches([(chunk, MIN_SIMILARITY - 0.01)], [(chunk, 2.0)])
    query = "tell me an entirely different story about dragons"
    assert fuse(matches, 5, query) == []
    # Without vectors the words are all there is.
    assert fuse(Matches([], matches.by_text), 5, query)


def test_one_half_alone_is_enough() -> None:
    chunk = _chunk("a pump")
    assert fuse(Matches([(chunk, 0.5)], []), 5, "water mover")[0][0] == chunk
    assert fuse(Matches([], [(chunk, 3.0)]), 5, "pump")[0][0] == chunk
    assert fuse(Matches([(chunk, 0.5)], [(chunk, 3.0)]), 5)[0] == (chunk, 1.0)
    assert fuse(Matches([], []), 5, "pump") == []


def test_queries_of_marks_and_of_very_many_words_are_fused() -> None:
    chunk = _chunk("(a) pump [1]")
    matches = Matches([(chunk, 0.5)], [(chunk, 3.0)])
    for query in ("?!", "((", "pump " * 1000, " ".join(map(str, range(1000)))):
        assert fusion.fuse(matches, 5, query)[0][0] == chunk


def test_a_chunk_that_fits_too_little_is_not_quoted(subtests: pytest.Subtests) -> None:
    """The query has two words, which weigh the same."""
    both, one, none = _chunk("pump oil", 0), _chunk("pump", 1), _chunk("cake", 2)
    cases: dict[str, tuple[Matches, list[StoredChunk]]] = {
        "similar": (Matches([(none, 0.31)], []), [none]),
        "hardly similar": (Matches([(none, 0.29)], []), []),
        "hardly similar, with a word": (Matches([(one, 0.25)], [(one, 1.0)]), [one]),
        "much less than the best": (Matches([(both, 0.6), (none, 0.35)], []), [both]),
        "nearly as good as the best": (Matches([(both, 0.4), (one, 0.5)], []), [both, one]),
        # It is as similar as the last of the vector half may be.
        "found by words alone": (Matches([(none, 0.3)], [(both, 5.0)]), [both]),
        "without vectors": (Matches([], [(one, 0.1)]), [one]),
        "nothing": (Matches([], []), []),
    }
    for name, (matches, chunks) in cases.items():
        with subtests.test(name):
            found = fuse(matches, 5, "pump oil", min_fit=0.3)
            assert sorted(chunk.position for chunk, _ in found) == [c.position for c in chunks]
            assert len(fuse(matches, 5, "pump oil")) >= len(chunks)
