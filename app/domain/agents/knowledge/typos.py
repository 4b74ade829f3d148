"""Corrects words of a question that occur nowhere in the documents.

A question whose words were found costs a look at the passages. For each other word, up to a few,
the index is asked whether it has the word at all, and else for words like it.
"""

import asyncio
from collections.abc import Sequence

from app.kit import logs

from . import spelling
from .chunk_store import ChunkStore, Matches, SearchRequest
from .chunks import StoredChunk
from .local_embedder import TokenTable
from .query_words import has_word
from .terms import list_terms

log = logs.get("knowledge")

_MAX_UNKNOWN = 3
# How many passages are read for words like one that is unknown.
_MAX_PASSAGES = 50
_MAX_ENDING_CHARS = 4
# With one mistake, and with two, as which the index counts neighbours that are swapped. Many words
# are like a shorter beginning.
_SHORTEST_BEGINNINGS = (4, 6)


async def correct(
    store: ChunkStore,
    tokens: TokenTable,
    request: SearchRequest,
    matches: Matches,
    languages: Sequence[str],
) -> str:
    """Returns the text of the request with similar words of the documents in the place of those
    that no document has. `matches` is what was found for the text, and `languages` are those of the
    documents.
    """
    words = _list_unknown(request.text, matches, languages)
    if not words:
        return request.text
    try:
        frequent = await asyncio.to_thread(tokens.list_frequent, words)
        unknown = [word for word in words if word not in frequent][:_MAX_UNKNOWN]
        finding = (_find_similar(store, request, word, languages) for word in unknown)
        found = await asyncio.gather(*finding)
    except (RuntimeError, OSError, ValueError) as error:
        log.warning("a question was not corrected", reason=str(error)[:200])
        return request.text
    return _replace_words(request.text, dict(zip(unknown, found, strict=True)))


def _list_unknown(text: str, matches: Matches, languages: Sequence[str]) -> list[str]:
    """Returns the words that none of the passages has."""
    halves = [matches.by_vector, matches.by_text, *matches.by_encoding.values()]
    chunks = {chunk.key: chunk for half in halves for chunk, _ in half}
    texts = [chunk.text.lower() for chunk in chunks.values()]
    words = [
        word
        for word in spelling.list_correctable(text)
        if not any(has_word(passage, word, is_whole=True) for passage in texts)
    ]
    if not words:
        return []
    known = {term for chunk in chunks.values() for term in _terms_of(chunk)}
    return [
        word
        for word in words
        if known.isdisjoint(list_terms(word, languages))
        and not spelling.is_like_function_word(word, text)
    ]


def _terms_of(chunk: StoredChunk) -> list[str]:
    return chunk.terms.split() or list_terms(chunk.text, [])


async def _find_similar(
    store: ChunkStore, request: SearchRequest, word: str, languages: Sequence[str]
) -> list[str]:
    """Returns nothing for a word that the index has."""
    terms = list_terms(word, languages)
    if await store.find_texts(request, " ".join(terms), 0, 1):
        return []
    for mistakes, shortest in enumerate(_SHORTEST_BEGINNINGS, 1):
        forms = " ".join(dict.fromkeys([*terms, *_list_beginnings(word, shortest)]))
        texts = await store.find_texts(request, forms, mistakes, _MAX_PASSAGES)
        similar = spelling.list_similar(word, texts)
        if similar:
            return [] if word in similar else similar
    return []


def _list_beginnings(word: str, shortest: int) -> list[str]:
    """Returns the word with less and less of its ending: with a mistake in that, it keeps the
    ending that the terms of the index have lost.
    """
    shortest = max(shortest, len(word) - _MAX_ENDING_CHARS)
    return [word[:length] for length in range(len(word), shortest - 1, -1)]


def _replace_words(text: str, replacements: dict[str, list[str]]) -> str:
    return spelling.WORD.sub(
        lambda match: " ".join(replacements.get(match[0].lower()) or [match[0]]), text
    )
