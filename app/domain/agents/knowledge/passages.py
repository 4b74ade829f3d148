"""Puts what a search found into passages as people and models read them: chunks that follow each
other in a section become one passage, and of nearly equal ones only the first is kept.
"""

from collections.abc import Iterable

import msgspec

from .chunks import StoredChunk
from .fusion import Candidate

# A passage of more chunks would leave no room for others.
_MAX_CHUNKS = 3
# Chunks that share so many of their terms say the same.
_SAME_SHARE = 0.9
_MIN_TERMS = 8
# The end of a chunk that the next one repeats.
_MAX_OVERLAP_CHARS = 400
_MIN_OVERLAP_CHARS = 20


class Passage(msgspec.Struct, frozen=True):
    """`chunk` is the best of its chunks, whose texts follow each other in `text`."""

    chunk: StoredChunk
    score: float
    text: str


class _Span:
    def __init__(self, chunk: StoredChunk, score: float) -> None:
        self.best, self.score = chunk, score
        self.chunks = [chunk]

    def continues(self, chunk: StoredChunk) -> bool:
        """True for a chunk right before or after these, in the same section of running text."""
        first, last = self.chunks[0], self.chunks[-1]
        return (
            (chunk.document_id, chunk.version) == (first.document_id, first.version)
            and chunk.position in {first.position - 1, last.position + 1}
            and chunk.heading == first.heading
            and chunk.row is None
            and first.row is None
            and len(self.chunks) < _MAX_CHUNKS
        )

    def add(self, chunk: StoredChunk) -> None:
        self.chunks.append(chunk)
        self.chunks.sort(key=lambda part: part.position)


def drop_repetitions(candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """Returns the first that differ."""
    kept: list[tuple[Candidate, set[str]]] = []
    for candidate in candidates:
        if len(kept) == limit:
            break
        terms = set(candidate.chunk.terms.split())
        if not any(_is_same(terms, others) for _, others in kept):
            kept.append((candidate, terms))
    return [candidate for candidate, _ in kept]


def _is_same(terms: set[str], others: set[str]) -> bool:
    return len(terms) >= _MIN_TERMS and len(terms & others) >= _SAME_SHARE * len(terms | others)


def put_together(candidates: Iterable[Candidate]) -> list[Passage]:
    """Returns the passages of these chunks, the best first."""
    spans: list[_Span] = []
    for candidate in candidates:
        chunk = candidate.chunk
        span = next((span for span in spans if span.continues(chunk)), None)
        if span is not None:
            span.add(chunk)
        else:
            spans.append(_Span(chunk, candidate.score))
    return [Passage(span.best, span.score, _join_texts(span.chunks)) for span in spans]


def _join_texts(chunks: list[StoredChunk]) -> str:
    text = chunks[0].text
    for chunk in chunks[1:]:
        more = chunk.text
        if chunk.heading and more.startswith(chunk.heading):
            more = more[len(chunk.heading) :].lstrip()
        text = _join(text, more)
    return text


def _join(text: str, more: str) -> str:
    for size in range(min(len(text), len(more), _MAX_OVERLAP_CHARS), _MIN_OVERLAP_CHARS, -1):
        if text.endswith(more[:size]):
            return text + more[size:]
    return f"{text}\n{more}"
