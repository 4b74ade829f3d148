"""Decides which passages are good enough to be quoted: without an answer among them, a model makes
one up, or says that it does not know although it was asked something else.
"""

from typing import Final

from .chunk_store import Matches
from .encoders.registry import calibration_of
from .fusion import Candidate, Key

# How well a passage without an encoding fits is its similarity and a part of its share of the
# question's terms. The least fit is that of vectors of the local embedder.
MIN_LOCAL_FIT: Final = 0.28
_COVERAGE_PART = 0.3
_MIN_SHARE_OF_BEST_FIT = 0.66
# A passage that scores less than this share of the best one is not quoted.
_MIN_SHARE_OF_BEST = 0.4
# With so large a share of the question's terms a passage is quoted, however little it is similar.
_SURE_COVERAGE = 0.6
# The lead of the best passage is over the one at this place.
_LEAD_PLACE = 14


def select_fitting(
    candidates: list[Candidate], matches: Matches, *, min_fit: float
) -> list[Candidate]:
    """`min_fit` is for passages that no sentence encoder has encoded."""
    if not candidates:
        return []
    is_answered = _has_encoded_answer(matches) or candidates[0].coverage >= _SURE_COVERAGE
    least_score = _MIN_SHARE_OF_BEST * candidates[0].score
    fits = _measure_fits(candidates, matches)
    least_fit = _MIN_SHARE_OF_BEST_FIT * max(fits.values(), default=0.0)
    if matches.by_vector:
        least_fit = max(least_fit, min_fit)
    return [
        candidate
        for candidate in candidates
        if (
            fits[candidate.chunk.key] >= least_fit
            if candidate.chunk.key in fits
            else is_answered and candidate.score >= least_score
        )
    ]


def _measure_fits(candidates: list[Candidate], matches: Matches) -> dict[Key, float]:
    """Returns how well the passages fit that are to be judged without an encoding. A passage that
    vectors did not find is at most as similar as the last that they found.
    """
    if any(matches.by_encoding.values()) and not matches.by_vector:
        # All passages are encoded.
        return {}
    least = min((similarity for _, similarity in matches.by_vector), default=0.0)
    return {
        candidate.chunk.key: (least if candidate.similarity is None else candidate.similarity)
        + _COVERAGE_PART * candidate.coverage
        for candidate in candidates
        if not candidate.is_encoded
    }


def _has_encoded_answer(matches: Matches) -> bool:
    """A question about something else finds nothing near. One about the subject of the documents
    without an answer finds much, but nothing that is nearer than the rest.
    """
    for name, found in matches.by_encoding.items():
        calibration = calibration_of(name)
        similarities = [similarity for _, similarity in found]
        if not similarities or similarities[0] < calibration.floor:
            continue
        rest = similarities[_LEAD_PLACE : _LEAD_PLACE + 1]
        if not rest or similarities[0] - rest[0] >= calibration.lead:
            return True
    return False
