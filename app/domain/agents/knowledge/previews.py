"""Cuts the part of a passage that shows why it is a source."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from .query_words import find_word, list_words

PREVIEW_CHARS: Final = 300
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
# What stands before a word that is found, when its sentence is too long.
_LEAD_CHARS = 60
# How many places of words, and how many windows, are compared.
_MAX_PLACES = 100
_GRAM_CHARS = 3


def cut_preview(text: str, query: str = "", heading: str | None = None) -> str:
    """Returns the part of a passage that shares most with the query, in one line, without the
    headings above it. It is cut between words, with an ellipsis where something is left out.
    """
    if heading and text.startswith(heading) and len(text.strip()) > len(heading):
        text = text[len(heading) :]
    lines = filter(None, (" ".join(line.split()) for line in text.splitlines()))
    body = "\n".join(lines)
    if len(body) <= PREVIEW_CHARS:
        return body.replace("\n", " ")
    return _cut(body, _find_start(body, query)).replace("\n", " ")


def _find_start(body: str, query: str) -> int:
    """Returns the start of the window that shares most with the query. Of equal windows the one is
    taken that starts with a sentence, and of those the first.
    """
    lower = body.lower()
    if len(lower) != len(body):
        # A letter whose small form is longer would shift the places.
        lower = body
    sentences = {0, *(match.end() for match in _SENTENCE_END.finditer(body))}
    places = list(islice(_find_places(lower, query), _MAX_PLACES))
    counts = Counter(word for _, word in places)
    grams = _list_grams(query.lower())

    def rate(start: int) -> tuple[float, bool, int]:
        end = start + PREVIEW_CHARS - 2
        words = {word for place, word in places if start <= place <= end - len(word)}
        # A word that the passage has often says little about the place.
        share = len(_list_grams(lower[start:end]) & grams) / max(1, len(grams))
        return sum(1 / counts[word] for word in words) + share, start in sentences, -start

    starts = {*sentences, *(_lead(body, place) for place, _ in places)}
    return max(sorted(starts)[:_MAX_PLACES], key=rate)


def _find_places(text: str, query: str) -> Iterator[tuple[int, str]]:
    for word, is_whole in list_words(query).items():
        place = find_word(text, word, is_whole=is_whole)
        count = 0
        while place >= 0 and count < _MAX_PLACES:
            yield place, word
            count += 1
            place = find_word(text, word, is_whole=is_whole, start=place + 1)


def _lead(body: str, place: int) -> int:
    """Returns the start of a word a little before a place."""
    start = max(0, place - _LEAD_CHARS)
    return start if start == 0 else min(place, _next_word(body, start))


def _next_word(body: str, start: int) -> int:
    space = re.search(r"\s", body[start:])
    return start + space.end() if space else start


def _list_grams(text: str) -> set[str]:
    """Returns the groups of letters in a text, which forms of one word share."""
    grams = (text[place : place + _GRAM_CHARS] for place in range(len(text) - _GRAM_CHARS + 1))
    return {gram for gram in grams if gram.isalnum()}


def _cut(body: str, start: int) -> str:
    # A window at the end of the text shows as much as one elsewhere.
    if len(body) - start < PREVIEW_CHARS - 1:
        start = _next_word(body, len(body) - PREVIEW_CHARS + 1)
    head = "…" if start else ""
    room = PREVIEW_CHARS - len(head)
    if len(body) - start <= room:
        return head + body[start:].rstrip()
    window = body[start : start + room - 1]
    if not body[start + room - 1].isspace() and re.search(r"\s", window):
        window = re.sub(r"\s\S*\Z", "", window)
    return f"{head}{window.rstrip()}…"
