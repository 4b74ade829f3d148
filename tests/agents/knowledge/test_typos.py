"""Questions with mistyped words find what they mean, and others pay nothing for that."""

from typing import Any

import pytest

from app.domain.agents.knowledge.chunk_store import ChunkStore
from app.services import Services
from tests.agents.knowledge.librarian import HANDBOOK, Librarian
from tests.agents.knowledge.tables import maintain

_INTERNAL = "# Warranty\n\nThe guarantee for dishwashers lasts seven years.\n"


@pytest.fixture
def lookups(services: Services, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The terms that the index was asked for, each with the number of mistakes."""
    seen: list[tuple[str, int]] = []
    store = services.get(ChunkStore)
    find_texts = store.find_texts

    async def find(request: Any, terms: str, mistakes: int, limit: int) -> list[str]:
        seen.append((terms.partition(" ")[0], mistakes))
        return await find_texts(request, terms, mistakes, limit)

    monkeypatch.setattr(store, "find_texts", find)
    return seen


async def _headings(librarian: Librarian, query: str) -> list[str]:
    return [item["heading"] for item in await librarian.search(query)]


async def test_a_mistyped_question_finds_what_it_means(
    librarian: Librarian, services: Services, subtests: pytest.Subtests
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    await maintain(services, librarian)
    for query in ("retruned reciept", "recepit", "Can I bring godos back?", "Recipt"):
        with subtests.test(query=query):
            assert (await _headings(librarian, query))[:1] == ["Returns"]


async def test_a_question_whose_words_are_known_asks_the_index_nothing(
    librarian: Librarian, lookups: list[tuple[str, int]]
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    for query in ("When does the shop open on Sundays?", "goods and a receipt", "opening"):
        await librarian.search(query)
    assert lookups == []
    # A frequent word is spelt right, though no document has it.
    await librarian.search("Where is the swimming pool?")
    assert ("pool", 0) not in lookups


async def test_few_words_of_a_question_are_looked_up(
    librarian: Librarian, lookups: list[tuple[str, int]]
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    await librarian.search(" ".join(f"zzqq{letter * 4}" for letter in "abcdefgh"))
    assert len(lookups) <= 9


async def test_words_of_internal_documents_correct_no_question_of_a_visitor(
    librarian: Librarian, services: Services
) -> None:
    """Otherwise the answer would show that an internal document has the word."""
    await librarian.add(handbook_md=HANDBOOK)
    (document,) = await librarian.add(warranty_md=_INTERNAL)
    path = f"{librarian.path}/documents/{document['id']}"
    await librarian.client.http.patch(path, json={"visibility": "internal"})
    await maintain(services, librarian)
    body = {"query": "dishwahsers", "only_public": True}
    answer = await librarian.client.post(f"{librarian.path}/search", body)
    assert "Warranty" not in [item["heading"] for item in answer.json()["data"]]
    assert (await _headings(librarian, "dishwahsers"))[:1] == ["Warranty"]


async def test_a_search_does_without_corrections_that_fail(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_arguments: object) -> list[str]:
        raise RuntimeError("the index is broken")

    await librarian.add(handbook_md=HANDBOOK)
    monkeypatch.setattr(services.get(ChunkStore), "find_texts", fail)
    assert (await _headings(librarian, "When does the shop opne on Sunadys?"))[0] == "Opening hours"
