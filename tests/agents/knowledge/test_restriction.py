"""Searches that may find some of many documents find the best of these, whatever the way."""

from typing import Any

import pytest

from app.domain.agents.knowledge import arrow_rows
from app.domain.agents.knowledge.chunk_store import ChunkStore, SearchRequest
from app.domain.agents.knowledge.chunks import Chunk, EmbeddedDocument
from app.domain.agents.knowledge.lance import TableRef
from app.domain.agents.knowledge.restriction import Restriction
from tests.agents.knowledge.tables import random_vectors

_REF = TableRef("agt_1", 1)
_COUNT = 400
_LIMIT = 10
# The documents, the best of the search first.
_IDS = [f"doc_{number:03}" for number in range(_COUNT)]


@pytest.fixture(scope="module")
async def store(tmp_path_factory: pytest.TempPathFactory) -> ChunkStore:
    """The farther from the first document, the less a passage is like the question."""
    store = ChunkStore("", tmp_path_factory.mktemp("restriction"))
    await store.create(_REF, "model", 8)
    vectors = random_vectors(1, 8).repeat(_COUNT, axis=0)
    vectors[:, 0] += range(_COUNT)
    rows: list[dict[str, Any]] = []
    for number, document_id in enumerate(_IDS):
        chunks, own = [Chunk(" ".join(["apple"] * (_COUNT - number)))], vectors[number : number + 1]
        document = EmbeddedDocument(document_id, "a.txt", 1, "model", chunks, own, "en")
        rows += arrow_rows.build_rows(document).to_pylist()
    await (await store._open(_REF)).add(rows)
    return store


async def _find(store: ChunkStore, restriction: Restriction) -> list[list[str]]:
    request = SearchRequest(
        table=_REF,
        revision=1,
        text="apple",
        terms="appl",
        vector=random_vectors(1, 8)[0].tolist(),
        limit=_LIMIT,
        restriction=restriction,
    )
    matches = await store.search(request)
    return [
        [chunk.document_id for chunk, _ in part] for part in (matches.by_vector, matches.by_text)
    ]


_EVEN = _IDS[::2]
_CASES: list[tuple[str, Restriction, list[str]]] = [
    ("all", Restriction(), _IDS),
    ("a few are hidden", Restriction.all_but(_IDS[:3]), _IDS[3:]),
    ("half is hidden", Restriction.all_but(_EVEN, share=0.5), _IDS[1::2]),
    ("half is allowed", Restriction.only(_EVEN, share=0.5), _EVEN),
    # The share misleads: all that comes first is hidden.
    ("the best half is hidden", Restriction.all_but(_IDS[:200], share=0.5), _IDS[200:]),
    ("the worst half is allowed", Restriction.only(_IDS[200:], share=0.5), _IDS[200:]),
    ("few are allowed", Restriction.only(_IDS[::100], share=0.01), _IDS[::100]),
    ("the last are allowed", Restriction.only(_IDS[-60:], share=0.15), _IDS[-60:]),
    ("others are allowed", Restriction.only(["doc_x"], share=0.01), []),
    ("all are hidden", Restriction.all_but(_IDS, share=1.0), []),
]


async def test_a_search_finds_the_best_of_the_allowed_documents(
    store: ChunkStore, subtests: pytest.Subtests
) -> None:
    for name, restriction, expected in _CASES:
        with subtests.test(name):
            by_vector, by_text = await _find(store, restriction)
            assert by_vector == by_text == expected[:_LIMIT]


async def test_words_are_looked_up_in_allowed_documents(
    store: ChunkStore, subtests: pytest.Subtests
) -> None:
    for name, restriction, expected in _CASES:
        with subtests.test(name):
            request = SearchRequest(
                table=_REF, revision=1, text="", limit=_LIMIT, restriction=restriction
            )
            texts: list[Any] = await store.find_texts(request, "appl", 0, 1)
            assert len(texts) == min(1, len(expected))


def test_a_long_list_is_no_condition(subtests: pytest.Subtests) -> None:
    for name, restriction, is_condition in (
        ("short", Restriction.all_but(_IDS[:50]), True),
        ("long", Restriction.all_but(_IDS[:51]), False),
        ("long, for most", Restriction.all_but(_EVEN, share=0.9), False),
        ("long, for few", Restriction.only(_EVEN, share=0.1), True),
    ):
        with subtests.test(name):
            assert (restriction.count_candidates(10) is None) is is_condition
