"""Joins the two halves of a search by reciprocal rank fusion, and leaves out what does not fit.

A third ranking is that by the share of the question's words in a chunk. The share is also the
weight of the words: a chunk that has only one usual word of the question is hardly a match.
"""

import math
from collections import Counter
from typing import Final

from .chunk_store import Matches
from .chunks import StoredChunk
from .query_words import has_word, list_words

# The first rank of one half counts more than two middle ranks: often only one half is right.
_RANK_OFFSET = 2
_TEXT_WEIGHT = 1.5
# A chunk is relevant when it is so similar, or has this share of the question's words.
MIN_SIMILARITY: Final = 0.2
MIN_COVERAGE: Final = 0.4
# How well a chunk fits is its similarity and a part of its share of the question's words. What fits
# less than this share of the best one is not quoted.
_COVERAGE_WEIGHT = 0.5
MIN_SHARE_OF_BEST: Final = 0.65
_Key = tuple[str, int]


def fuse(
    matches: Matches, limit: int, query: str = "", *, min_fit: float | None = None
) -> list[tuple[StoredChunk, float]]:
    """Returns the relevant chunks with a score above 0, at most 1: 1 is the first of all
    rankings and has all words of the query. Without a query all words count as found.

    With `min_fit`, chunks that fit less than that, or much less than the best, are left out.
    """
    similarities = {chunk.key: similarity for chunk, similarity in matches.by_vector}
    chunks = {chunk.key: chunk for half in matches for chunk, _ in half}
    text_scores = {chunk.key: score for chunk, score in matches.by_text}
    coverage = _cover(query, chunks) if query else dict.fromkeys(text_scores, 1.0)
    by_text = sorted(text_scores, key=lambda key: -text_scores[key] * coverage[key])
    min_coverage = MIN_COVERAGE if similarities else 0.0
    relevant = [
        key
        for key in chunks
        if similarities.get(key, 0.0) >= MIN_SIMILARITY or coverage.get(key, 0.0) >= min_coverage
    ]
    by_words = sorted(coverage, key=lambda key: (-coverage[key], -similarities.get(key, 0.0), key))
    rankings = [(list(similarities), 1.0), (by_text, _TEXT_WEIGHT), (by_words, 1.0)]
    scores = dict.fromkeys(relevant, 0.0)
    best = 0.0
    for number, (keys, weight) in enumerate(rankings):
        best += weight / (_RANK_OFFSET + 1) if keys else 0.0
        for rank, key in enumerate(key for key in keys if key in scores):
            share = coverage[key] if number else 1.0
            scores[key] += weight * share / (_RANK_OFFSET + 1 + rank)
    order = sorted((key for key in scores if scores[key]), key=lambda key: (-scores[key], key))
    if min_fit is not None:
        order = _select_fitting(order[:limit], similarities, coverage, min_fit)
    return [(chunks[key], round(min(1.0, scores[key] / best), 4)) for key in order[:limit]]


def _select_fitting(
    keys: list[_Key],
    similarities: dict[_Key, float],
    coverage: dict[_Key, float],
    min_fit: float,
) -> list[_Key]:
    """A chunk that the vector half did not find is at most as similar as the last that it found.
    Without vectors there is no absolute measure.
    """
    least = min(similarities.values(), default=0.0)
    fits = {
        key: similarities.get(key, least) + _COVERAGE_WEIGHT * coverage.get(key, 0.0)
        for key in keys
    }
    bound = MIN_SHARE_OF_BEST * max(fits.values(), default=0.0)
    if similarities:
        bound = max(bound, min_fit)
    return [key for key in keys if fits[key] >= bound]


def _cover(query: str, chunks: dict[_Key, StoredChunk]) -> dict[_Key, float]:
    """Returns the share of the query's words that each chunk has. A word counts the more, the
    fewer of the chunks have it.
    """
    words = list_words(query)
    if not words:
        return dict.fromkeys(chunks, 0.0)
    texts = {key: chunk.text.lower() for key, chunk in chunks.items()}
    found = {
        key: [word for word, is_whole in words.items() if has_word(text, word, is_whole=is_whole)]
        for key, text in texts.items()
    }
    counts = Counter(word for present in found.values() for word in present)
    weights = {word: math.log(1 + (len(chunks) + 0.5) / (counts[word] + 0.5)) for word in words}
    total = sum(weights.values())
    return {key: sum(weights[word] for word in present) / total for key, present in found.items()}
