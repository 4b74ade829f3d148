"""Asks questions about a corpus and ranks the chunk that has the answer.

The corpus is that of a company of our invention. A question names the document and a phrase of
the right chunk. `questions.json` has questions as people ask them, written without a look at the
results of any search. In `hard_questions.json`, on which the fusion was tuned, the paraphrases
share hardly a word with the right chunk.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from app.domain.agents.knowledge import fusion, parsing
from app.domain.agents.knowledge.chunk_store import ChunkStore, Matches, SearchRequest
from app.domain.agents.knowledge.chunks import Chunk, EmbeddedDocument, StoredChunk
from app.domain.agents.knowledge.follow_ups import add_subject
from app.domain.agents.knowledge.fusion import Candidate
from app.domain.agents.knowledge.lance import TableRef
from app.domain.agents.knowledge.local_embedder import DIMENSIONS, NAME, TokenTable
from app.domain.agents.knowledge.readers import formats
from app.domain.agents.knowledge.relevance import MIN_LOCAL_FIT, select_fitting
from app.domain.agents.knowledge.retrieval import CANDIDATES
from app.domain.agents.knowledge.terms import list_terms

_FOLDER = Path(__file__).parent
_TABLE = TableRef("agt_corpus", 1)
_LANGUAGE = "en"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    question: str
    document: str
    phrase: str
    # The question before, for one that depends on it.
    previous: str | None = None

    @property
    def query(self) -> str:
        return add_subject(self.question, [self.previous] if self.previous else [])


class Ranks(msgspec.Struct):
    """The rank of the right chunk for each question, from 1 on; 0 where it was not found."""

    ranks: list[int]

    def hits(self, limit: int) -> float:
        return sum(0 < rank <= limit for rank in self.ranks) / len(self.ranks)

    @property
    def mean_reciprocal(self) -> float:
        return sum(1 / rank for rank in self.ranks if rank) / len(self.ranks)


class Outcome(msgspec.Struct, frozen=True):
    question: Question
    matches: Matches

    @property
    def hybrid(self) -> int:
        return self._rank([item.chunk for item in rank(self.matches, self.question.query)])

    @property
    def by_vector(self) -> int:
        return self._rank([chunk for chunk, _ in self.matches.by_vector])

    @property
    def by_text(self) -> int:
        return self._rank([chunk for chunk, _ in self.matches.by_text])

    def _rank(self, chunks: list[StoredChunk]) -> int:
        for rank, chunk in enumerate(chunks, 1):
            is_right = chunk.document_name == self.question.document
            if is_right and self.question.phrase in chunk.text:
                return rank
        return 0


class Corpus:
    """The corpus in a table of its own."""

    def __init__(self, folder: Path) -> None:
        self._store = ChunkStore("", folder)
        self._embedder = TokenTable()
        self.chunk_count = 0

    async def load(self) -> None:
        await self._store.create(_TABLE, NAME, DIMENSIONS)
        for name, chunks in read_corpus():
            vectors = self._embedder.embed([chunk.text for chunk in chunks])
            document = EmbeddedDocument(name, name, 1, NAME, chunks, vectors, _LANGUAGE)
            await self._store.replace(_TABLE, document)
            self.chunk_count += len(chunks)
        await self._store.optimize(_TABLE)

    async def search(self, query: str) -> Matches:
        vector = self._embedder.embed([query])[0].tolist()
        request = SearchRequest(
            table=_TABLE,
            revision=1,
            text=query,
            terms=" ".join(list_terms(query, [_LANGUAGE])),
            vector=vector,
            limit=CANDIDATES,
        )
        return await self._store.search(request)

    async def ask(self, questions: Sequence[Question]) -> list[Outcome]:
        return [Outcome(question, await self.search(question.query)) for question in questions]


def rank(matches: Matches, query: str) -> list[Candidate]:
    return fusion.rank(matches, list_terms(query, [_LANGUAGE]))


def quote(matches: Matches, query: str) -> list[Candidate]:
    """Returns what a turn with five passages would quote of the chunks."""
    return select_fitting(rank(matches, query)[:5], matches, min_fit=MIN_LOCAL_FIT)


def read_corpus() -> Iterator[tuple[str, list[Chunk]]]:
    for path in sorted((_FOLDER / "corpus").iterdir()):
        kind = parsing.kind_of(path.name)
        if kind is not None:
            chunks = formats.read_chunks(path.read_bytes(), kind)
            yield path.name, [Chunk(*chunk) for chunk in chunks]


def read_questions(*, hard: bool = False) -> list[Question]:
    content = (_FOLDER / ("hard_questions.json" if hard else "questions.json")).read_bytes()
    return msgspec.json.decode(content, type=list[Question])
