"""Documents are found in their own language: by its words, and by what they mean."""

from pathlib import Path

import msgspec
import pytest

from app.domain.agents.knowledge import refining
from app.domain.agents.knowledge.chunk_store import ChunkStore, SearchRequest
from app.domain.agents.knowledge.encoders import multilingual
from app.domain.agents.knowledge.encoders.registry import SentenceEncoders, are_installed
from app.domain.agents.knowledge.terms import list_terms
from app.services import Services
from tests.agents.knowledge.librarian import Librarian
from tests.agents.knowledge.tables import current_table, find_base


class _Notes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The question is answered by the text with `right`, in other words. `words` has its words, in
    languages with endings with other ones.
    """

    language: str
    texts: list[str]
    question: str
    words: str
    right: str


_NOTES = msgspec.json.decode(
    (Path(__file__).parent / "notes_in_languages.json").read_bytes(), type=list[_Notes]
)


async def _find_by_words(services: Services, agent_id: str, words: str) -> list[str]:
    """Returns the texts that have a term of these words, the best first."""
    base = await find_base(services, agent_id)
    assert base["encoders"] == []
    request = SearchRequest(
        table=await current_table(services, agent_id),
        revision=base["revision"],
        text=words,
        terms=" ".join(list_terms(words, base["languages"])),
        limit=5,
    )
    matches = await services.get(ChunkStore).search(request)
    return [chunk.text for chunk, _ in matches.by_text]


_each_language = pytest.mark.parametrize("notes", _NOTES, ids=lambda notes: notes.language)


async def _add_notes(librarian: Librarian, notes: _Notes) -> None:
    files = {f"note{number}_txt": text for number, text in enumerate(notes.texts)}
    documents = await librarian.add(**files)
    assert {document["language"] for document in documents} == {notes.language}


@_each_language
async def test_documents_are_found_by_the_words_of_their_language(
    librarian: Librarian, services: Services, notes: _Notes
) -> None:
    await _add_notes(librarian, notes)
    (text,) = await _find_by_words(services, librarian.agent_id, notes.words)
    assert notes.right in text
    assert notes.right in (await librarian.search(notes.words))[0]["content"]


@pytest.mark.skipif(not are_installed(), reason="the encoders are not installed")
@_each_language
async def test_documents_are_found_in_their_language_by_what_they_mean(
    librarian: Librarian, services: Services, monkeypatch: pytest.MonkeyPatch, notes: _Notes
) -> None:
    await _add_notes(librarian, notes)
    monkeypatch.setattr(services.get(SentenceEncoders), "enabled", True)
    await refining.refine(services, librarian.client.tenant_id, librarian.agent_id)
    base = await find_base(services, librarian.agent_id)
    assert (base["languages"], base["encoders"]) == ([notes.language], [multilingual.INFO.name])
    assert notes.right in (await librarian.search(notes.question))[0]["content"]
