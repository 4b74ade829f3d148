"""Chunks: their sizes, their overlap, and that no text of a document is lost."""

import re
from itertools import pairwise

import pytest

from app.domain.agents.knowledge.readers import formats
from app.domain.agents.knowledge.readers.cutting import Chunk
from app.kit import wheels
from tests.agents.knowledge.sample_packages import make_docx
from tests.agents.knowledge.sample_pdfs import make_pdf
from tests.lengths import rounds

_SENTENCE = "Clerk {0} counted item{0} and wrote the number {0} into the ledger of the north hall. "
_MAX_BYTES = 1700


def read(content: str | bytes, kind: str) -> list[Chunk]:
    return formats.read_chunks(content.encode() if isinstance(content, str) else content, kind)


def texts(content: str | bytes, kind: str) -> list[str]:
    return [chunk.text for chunk in read(content, kind)]


def write_prose(sentences: int, per_paragraph: int = 6) -> str:
    parts = [
        _SENTENCE.format(number) + ("\n\n" if number % per_paragraph == 0 else "")
        for number in range(1, sentences + 1)
    ]
    return "".join(parts)


def write_sources() -> dict[str, bytes]:
    prose = write_prose(300)
    lines = prose.replace("\n\n", "").replace(". ", ".\n").splitlines()
    pages = ["\n".join(lines[start : start + 60]) for start in range(0, len(lines), 60)]
    sections = [f"## Part {n}\n\n{write_prose(20)}" for n in range(15)]
    rows = [f'{n},"clerk {n} of, hall",item{n}' for n in range(500)]

    def build(document: object) -> None:
        for number, paragraph in enumerate(prose.split("\n\n")):
            if number % 9 == 0:
                document.add_heading(f"Hall {number}", 1 + number % 3)  # type: ignore[attr-defined]
            document.add_paragraph(paragraph)  # type: ignore[attr-defined]

    return {
        "txt": prose.encode(),
        "md": ("# Report\n\n" + "\n\n".join(sections)).encode(),
        "csv": "\n".join(["number,clerk,item", *rows]).encode(),
        "pdf": make_pdf(pages),
        "docx": make_docx(build),
    }


def test_no_word_of_a_document_is_lost_and_no_chunk_is_empty(subtests: pytest.Subtests) -> None:
    for kind, content in write_sources().items():
        with subtests.test(kind):
            chunks = texts(content, kind)
            assert len(chunks) > 5
            assert all(chunk == chunk.strip() and chunk for chunk in chunks)
            numbers = range(1, 300) if kind not in {"csv", "md"} else range(1, 20)
            assert {f"item{number}" for number in numbers} <= words_of(chunks)


def words_of(chunks: list[str]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(chunks)))


def test_chunks_have_about_two_to_four_hundred_tokens_in_any_script(
    subtests: pytest.Subtests,
) -> None:
    scripts = {
        "English": write_prose(400),
        "Russian": "Сотрудник проверил остатки на северном складе и записал их в журнал. " * 300,
        "Chinese": "仓库管理员检查了北厅的库存并把数字写进了账本。" * 400,
        "Hindi": "कर्मचारी ने उत्तरी गोदाम की गिनती की और उसे बही में लिखा। " * 200,
        "one line": "stock " * 5000,
        "no spaces": "x" * 30_000,
    }
    for name, text in scripts.items():
        with subtests.test(name):
            chunks = texts(text, "txt")
            sizes = [len(chunk.encode()) for chunk in chunks]
            assert max(sizes) <= _MAX_BYTES
            assert sorted(sizes)[len(sizes) // 2] >= 700
            if name == "English":
                tokens = count_tokens(chunks[:-1])
                assert 180 <= sum(tokens) / len(tokens) <= 420


def count_tokens(chunks: list[str]) -> list[int]:
    from tokenizers import Tokenizer  # noqa: PLC0415  # every test process imports this file

    folder = wheels.folder_of("wordllama", part="embedding model", instead="")
    (path,) = folder.glob("tokenizers/*.json")
    tokenizer = Tokenizer.from_file(str(path))
    return [len(tokenizer.encode(chunk).ids) for chunk in chunks]


def test_neighbour_chunks_of_prose_overlap_by_a_sentence() -> None:
    chunks = texts(write_prose(60, per_paragraph=1000), "txt")
    for former, latter in pairwise(chunks):
        assert latter.split(". ")[0] in former


def test_control_and_invisible_characters_are_removed_and_letters_are_composed() -> None:
    text = "Ku\u0308n\u00addi\u200bgung\x07\x00\x1b by\x85 A\u0308rger\ufeff\r\nsecond\rline"
    (chunk,) = texts(text.encode("utf-16"), "txt")
    assert chunk.split() == ["Kündigung", "by", "Ärger", "second", "line"]


def test_texts_that_take_a_splitter_long_are_cut_in_seconds(subtests: pytest.Subtests) -> None:
    size = rounds(1, 4)
    cases = {
        "a line of words": "word " * 25_000 * size,
        "no spaces": "ab" * 18_000 * size,
        "long words": ("a" * 300 + " ") * 250 * size,
        "blank lines around a word": "\n" * 60_000 * size + "word" + "\n \n" * 25_000 * size,
        "a heading of marks": "# " + "# " * 40_000 * size,
        "fences": "```\n~~~\n" * 2_500 * size,
        "a quotation that never ends": 'a,b\n"' + "x y, " * 12_500 * size,
    }
    for name, text in cases.items():
        for kind in ("txt", "md", "csv"):
            with subtests.test(f"{name} as {kind}"):
                assert read(text, kind)
