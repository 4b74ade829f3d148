"""Joins the parts of a search to one order, by how much each says about a passage.

A passage that a sentence encoder has encoded is scored by its similarity, which says most, and by
its words. Any other is scored by its ranks among vectors, words, and shares of the question's
terms, because the sizes of these numbers say little.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Final

import msgspec

from .chunk_store import Matches
from .chunks import StoredChunk
from .encoders.protocol import Calibration
from .encoders.registry import calibration_of
from .query_words import is_function_word
from .terms import list_terms

Key = tuple[str, int]

_ENCODING_WEIGHT = 0.7
_VECTOR_WEIGHT, _TEXT_WEIGHT, _COVERAGE_WEIGHT = 1.0, 1.5, 1.0
# What vectors of words count, and the order by terms with them, for a question in a language that
# their table hardly knows.
_WEAK_PART = 0.5
# The first rank counts more than two middle ones: often only one part is right.
_RANK_OFFSET = 5
# The best of the encoded passages scores about 1, also when none of them has the answer, so those
# without an encoding, which are found by chance more seldom, count more beside them.
_RANKS_FACTOR = 1.4
# Of vectors of the local embedder.
LOCAL_CALIBRATION: Final = Calibration(usual=0.6, scale=0.3, floor=0.2, lead=0.0)
# A chunk is relevant when it is similar, or has this share of the question's terms.
MIN_COVERAGE: Final = 0.2
# The part of the score that does not depend on how certain the best passage is.
_CERTAIN_PART = 0.4
_MAX_TERMS = 100


class Candidate(msgspec.Struct, frozen=True):
    """A chunk that some part of a search found. `certainty` is 0 for one that is as near as any to
    an unrelated question, and 1 for one as near as the best usually is to its question.
    """

    chunk: StoredChunk
    score: float
    coverage: float
    certainty: float
    # Has the encoding of a sentence encoder.
    is_encoded: bool
    similarity: float | None


def rank(
    matches: Matches, terms: Collection[str], *, are_vectors_weak: bool = False
) -> list[Candidate]:
    """Returns the relevant chunks, the best first. Scores are above 0 and at most 1: 1 is that of
    the first of all parts with all terms. `are_vectors_weak`: the vectors are those of a table that
    hardly knows the language of the question.
    """
    halves = [matches.by_vector, matches.by_text, *matches.by_encoding.values()]
    chunks = {chunk.key: chunk for half in halves for chunk, _ in half}
    coverage = _cover(terms, chunks)
    similarities = {chunk.key: similarity for chunk, similarity in matches.by_vector}
    words = {chunk.key: score for chunk, score in matches.by_text}
    nearness, certainty = _compare_encodings(matches)
    has_vectors = bool(similarities or nearness)
    part = _WEAK_PART if are_vectors_weak else 1.0
    scores = _score_by_ranks(
        similarities, words, coverage, part * _VECTOR_WEIGHT if has_vectors else 0.0, part
    )
    most = _best(words) or 1.0
    for key, near in nearness.items():
        word = words.get(key, 0.0) / most
        scores[key] = _ENCODING_WEIGHT * near + (1 - _ENCODING_WEIGHT) * word
    candidates = [
        Candidate(
            chunk=chunk,
            score=scores[key],
            coverage=coverage[key],
            certainty=certainty.get(key, _rate(similarities.get(key, 0.0), LOCAL_CALIBRATION)),
            is_encoded=key in nearness,
            similarity=similarities.get(key),
        )
        for key, chunk in chunks.items()
    ]
    return _order(candidates, has_vectors=has_vectors)


def _score_by_ranks(
    similarities: dict[Key, float],
    words: dict[Key, float],
    coverage: dict[Key, float],
    vector_weight: float,
    part: float,
) -> dict[Key, float]:
    """A passage with few of the terms is hardly a match of words, whatever its rank."""
    by_vector = sorted(similarities, key=lambda key: (-similarities[key], key))
    by_text = sorted(words, key=lambda key: (-words[key], key))
    by_coverage = sorted(
        coverage, key=lambda key: (-coverage[key], -similarities.get(key, 0.0), key)
    )
    scores = dict.fromkeys(coverage, 0.0)
    coverage_weight = part * _COVERAGE_WEIGHT
    for keys, weight, by_share in (
        (by_vector, vector_weight, False),
        (by_text, _TEXT_WEIGHT, True),
        (by_coverage, coverage_weight, True),
    ):
        for place, key in enumerate(keys):
            share = coverage[key] if by_share else 1.0
            scores[key] += weight * share * (_RANK_OFFSET + 1) / (_RANK_OFFSET + 1 + place)
    total = vector_weight + _TEXT_WEIGHT + coverage_weight
    return {key: _RANKS_FACTOR * score / total for key, score in scores.items()}


def _compare_encodings(matches: Matches) -> tuple[dict[Key, float], dict[Key, float]]:
    """Returns how near each encoded chunk is to the nearest of all, from 0 to 1, and its certainty.
    Similarities of several encoders are compared by their calibrations.
    """
    places: dict[Key, float] = {}
    certainty: dict[Key, float] = {}
    for name, found in matches.by_encoding.items():
        calibration = calibration_of(name)
        for chunk, similarity in found:
            places[chunk.key] = (similarity - calibration.usual) / calibration.scale
            certainty[chunk.key] = _rate(similarity, calibration)
    best = _best(places)
    return {key: max(0.0, 1.0 - (best - place)) for key, place in places.items()}, certainty


def _rate(similarity: float, calibration: Calibration) -> float:
    above = (similarity - calibration.floor) / (calibration.usual - calibration.floor)
    return min(1.0, max(0.0, above))


def _order(candidates: list[Candidate], *, has_vectors: bool) -> list[Candidate]:
    """Leaves out what is not relevant, unless some are encoded, of which the nearest may be no more
    than that. The scores of all are lower when not even the best is near.
    """
    has_encodings = any(candidate.is_encoded for candidate in candidates)
    min_coverage = MIN_COVERAGE if has_vectors and not has_encodings else 0.0
    relevant = [
        candidate
        for candidate in candidates
        if candidate.score > 0 and (candidate.certainty > 0 or candidate.coverage >= min_coverage)
    ]
    if not relevant:
        return []
    relevant.sort(key=lambda candidate: (-candidate.score, candidate.chunk.key))
    sure = max(max(candidate.certainty, candidate.coverage) for candidate in relevant[:3])
    highest = 1.0 if relevant[0].is_encoded else _RANKS_FACTOR
    factor = (_CERTAIN_PART + (1 - _CERTAIN_PART) * sure) / highest
    return [
        msgspec.structs.replace(candidate, score=round(min(1.0, candidate.score * factor), 4))
        for candidate in relevant
    ]


def _best(values: Mapping[Key, float]) -> float:
    return max(values.values(), default=0.0)


def _cover(terms: Collection[str], chunks: Mapping[Key, StoredChunk]) -> dict[Key, float]:
    """Returns the share of the question's terms that each chunk has. A term counts the more, the
    fewer of the chunks have it.
    """
    asked = [
        term for term in islice(dict.fromkeys(terms), _MAX_TERMS) if not is_function_word(term)
    ]
    if not asked:
        return dict.fromkeys(chunks, 0.0)
    known = {
        key: set(chunk.terms.split() or list_terms(chunk.text, [])) for key, chunk in chunks.items()
    }
    counts = Counter(term for has in known.values() for term in asked if term in has)
    weights = {term: math.log(1 + (len(chunks) + 0.5) / (counts[term] + 0.5)) for term in asked}
    total = sum(weights.values())
    return {
        key: sum(weights[term] for term in asked if term in has) / total
        for key, has in known.items()
    }
