"""Joins the two halves of a search by reciprocal rank fusion, and cuts previews.

A third ranking is that by the share of the question's words in a chunk. The share is also the
weight of the words: a chunk that has only one usual word of the question is hardly a match.
"""

import math
import re
from collections import Counter
from itertools import islice
from typing import Final

from .chunk_store import Matches
from .chunks import StoredChunk

# The first rank of one half counts more than two middle ranks: often only one half is right.
_RANK_OFFSET = 2
_TEXT_WEIGHT = 1.5
# A chunk is relevant when it is so similar, or has this share of the question's words.
MIN_SIMILARITY: Final = 0.2
MIN_COVERAGE: Final = 0.4
PREVIEW_CHARS: Final = 200
_MAX_WORDS = 100
_WORD_GROUP = re.compile(r"\w+(?:[-.,/:@]\w+)*")
_WORD = re.compile(r"\w+")
# A longer word matches without its ending.
_MIN_STEM_CHARS = 4
_ENDING_CHARS = 2
# English, like the stop words of the full-text index.
_FUNCTION_WORD = re.compile(
    r"a|about|am|an|and|any|are|as|at|be|been|but|by|can|could|did|do|does|"
    r"for|from|get|had|has|have|how|i|if|in|into|is|it|its|may|me|my|no|not|"
    r"of|on|or|our|out|should|so|some|than|that|the|their|them|then|there|these|"
    r"they|this|to|us|was|we|were|what|when|where|which|who|whom|whose|why|will|"
    r"with|would|you|your"
)

_Key = tuple[str, int]


def fuse(matches: Matches, limit: int, query: str = "") -> list[tuple[StoredChunk, float]]:
    """Returns the relevant chunks with a score above 0, at most 1: 1 is the first of all
    rankings and has all words of the query. Without a query all words count as found.
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
    return [(chunks[key], round(min(1.0, scores[key] / best), 4)) for key in order[:limit]]


def _cover(query: str, chunks: dict[_Key, StoredChunk]) -> dict[_Key, float]:
    """Returns the share of the query's words that each chunk has. A word counts the more, the
    fewer of the chunks have it.
    """
    words = _list_words(query)
    if not words:
        return dict.fromkeys(chunks, 0.0)
    texts = {key: chunk.text.lower() for key, chunk in chunks.items()}
    found = {
        key: [word for word, is_whole in words.items() if _has_word(text, word, is_whole=is_whole)]
        for key, text in texts.items()
    }
    counts = Counter(word for present in found.values() for word in present)
    weights = {word: math.log(1 + (len(chunks) + 0.5) / (counts[word] + 0.5)) for word in words}
    total = sum(weights.values())
    return {key: sum(weights[word] for word in present) / total for key, present in found.items()}


def _list_words(query: str) -> dict[str, bool]:
    """Returns the words to look for, and whether each is whole or without its ending. Numbers and
    names with marks in them are listed as a whole and in parts.
    """
    words: dict[str, bool] = {}
    for group in _WORD_GROUP.findall(query.lower()):
        if not _FUNCTION_WORD.fullmatch(group):
            words |= dict(map(_cut_ending, [group, *_WORD.findall(group)]))
    return dict(islice(words.items(), _MAX_WORDS))


def _cut_ending(word: str) -> tuple[str, bool]:
    if len(word) <= _MIN_STEM_CHARS or not word.isalpha():
        return word, True
    return word[: max(_MIN_STEM_CHARS, len(word) - _ENDING_CHARS)], False


def _has_word(text: str, word: str, *, is_whole: bool) -> bool:
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        starts_word = start == 0 or not text[start - 1].isalnum()
        if starts_word and not (is_whole and text[end : end + 1].isalnum()):
            return True
        start = text.find(word, start + 1)
    return False


def cut_preview(text: str) -> str:
    """Returns the beginning of a text in one line, cut between words."""
    line = " ".join(text.split())
    if len(line) <= PREVIEW_CHARS:
        return line
    head = line[: PREVIEW_CHARS - 1]
    if line[PREVIEW_CHARS - 1] != " " and " " in head:
        head = head.rpartition(" ")[0]
    return head.rstrip() + "…"
