"""Joins the two halves of a search by reciprocal rank fusion, and cuts previews."""

from typing import Final

from app.domain.knowledge.chunk_store import Matches
from app.domain.knowledge.chunks import StoredChunk

# The usual constant: the first rank counts only a little more than the second.
_RANK_OFFSET = 60
# A chunk without a matching word must be at least this similar.
MIN_SIMILARITY: Final = 0.2
PREVIEW_CHARS: Final = 200


def fuse(matches: Matches, limit: int) -> list[tuple[StoredChunk, float]]:
    """Returns the best chunks with a score above 0, at most 1: 1 is the first of both halves."""
    matching = {chunk.key for chunk, _ in matches.by_text}
    nearest = [
        chunk
        for chunk, similarity in matches.by_vector
        if similarity >= MIN_SIMILARITY or chunk.key in matching
    ]
    halves = [half for half in (nearest, [chunk for chunk, _ in matches.by_text]) if half]
    scores: dict[tuple[str, int], float] = {}
    chunks: dict[tuple[str, int], StoredChunk] = {}
    for half in halves:
        for rank, chunk in enumerate(half):
            chunks[chunk.key] = chunk
            scores[chunk.key] = scores.get(chunk.key, 0.0) + 1 / (_RANK_OFFSET + 1 + rank)
    best = len(halves) / (_RANK_OFFSET + 1)
    order = sorted(scores, key=lambda key: (-scores[key], key))[:limit]
    return [(chunks[key], round(min(1.0, scores[key] / best), 4)) for key in order]


def cut_preview(text: str) -> str:
    """Returns the beginning of a text in one line, cut between words."""
    line = " ".join(text.split())
    if len(line) <= PREVIEW_CHARS:
        return line
    head = line[: PREVIEW_CHARS - 1]
    if line[PREVIEW_CHARS - 1] != " " and " " in head:
        head = head.rpartition(" ")[0]
    return head.rstrip() + "…"
