"""Manuals in four languages, on which the search in documents is measured, and their questions.

The manuals are documentation packages of Debian 12. They are downloaded at the first run, about
45 MB, into `~/.cache/parley-bench`, or the folder that PARLEY_BENCH_CACHE names. The questions are
in `tests/agents/knowledge/manual_questions`.

    .venv/bin/python scripts/bench_corpus.py           # counts documents, passages and questions
    .venv/bin/python scripts/bench_corpus.py --check   # checks that the answer of each exists
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import manual_pages
import msgspec
from manual_pages import Convert

sys.path.insert(0, str(Path(__file__).parent.parent))

from app.domain.agents.knowledge.chunks import Chunk
from app.domain.agents.knowledge.readers import formats
from tests.agents.knowledge.manual_evaluation import (
    ManualQuestion,
    Passage,
    find_rank,
    read_manual_questions,
)

_RELEASE = "bookworm"
_TIMEOUT_SECONDS = 600
_GIT_MANUALS = ("user-manual", "everyday", "git[a-z]*", "howto/*")
_POSTGRESQL_CHAPTERS = (
    *(
        "tutorial*",
        "backup*",
        "continuous-archiving*",
        "runtime-config-*",
        "auth-*",
        "client-authentication*",
    ),
    *("routine-*", "server-*", "ssl-*", "role-*", "upgrading*", "monitoring-*", "manage-ag-*"),
    *("kernel-*", "populate*", "using-explain*", "ddl-*", "explicit-*", "transaction-*"),
)


class Source(NamedTuple):
    """Pages of a package. `folder` is not part of the names of documents."""

    package: str
    folder: str
    patterns: tuple[str, ...]
    convert: Convert

    def list_pages(self, root: Path) -> list[Path]:
        pages = {page for pattern in self.patterns for page in (root / self.folder).glob(pattern)}
        return sorted(pages)


class Document(NamedTuple):
    """A page as a user would upload it. The name is the path in its package, from there on."""

    language: str
    name: str
    content: bytes

    def read_chunks(self) -> list[Chunk]:
        """Cuts the page into passages as the product does."""
        return [Chunk(*chunk) for chunk in formats.read_chunks(self.content, "html")]


class CorpusUnavailable(Exception):
    pass


def _gnome(*folders: str) -> Source:
    patterns = tuple(f"{folder}/*.page" for folder in folders)
    return Source("gnome-user-docs", "usr/share/help", patterns, manual_pages.convert_mallard)


def _libreoffice(package_language: str, folder: str) -> Source:
    folder = f"usr/share/libreoffice/help/{folder}/text"
    package = f"libreoffice-help-{package_language}"
    return Source(package, folder, ("*/guide/*.html",), manual_pages.convert_libreoffice)


def _debian_reference(language: str) -> Source:
    package, folder = f"debian-reference-{language}", "usr/share/debian-reference"
    return Source(package, folder, ("ch*.html",), manual_pages.convert_docbook)


_SOURCES: dict[str, tuple[Source, ...]] = {
    "en": (
        _gnome("C/gnome-help", "C/system-admin-guide"),
        _libreoffice("en-us", "en-US"),
        _debian_reference("en"),
        Source(
            "evolution-common",
            "usr/share/help",
            ("C/evolution/*.page",),
            manual_pages.convert_mallard,
        ),
        Source(
            "borgbackup-doc",
            "usr/share/doc/borgbackup/html",
            ("[fq]*.html", "in[st]*.html", "usage/*.html", "deployment/*.html"),
            manual_pages.convert_sphinx,
        ),
        Source(
            "git-doc",
            "usr/share/doc/git-doc",
            tuple(f"{name}.html" for name in _GIT_MANUALS),
            manual_pages.convert_asciidoc,
        ),
        Source(
            "postgresql-doc-15",
            "usr/share/doc/postgresql-doc-15/html",
            tuple(f"{name}.html" for name in _POSTGRESQL_CHAPTERS),
            manual_pages.convert_docbook,
        ),
    ),
    "de": (
        _gnome("de/gnome-help"),
        _libreoffice("de", "de"),
        _debian_reference("de"),
    ),
    "es": (
        _gnome("es/gnome-help"),
        _libreoffice("es", "es"),
        _debian_reference("es"),
    ),
    # GNOME's help is mostly not translated into Chinese.
    "zh": (_libreoffice("zh-cn", "zh-CN"), _debian_reference("zh-cn")),
}
LANGUAGES = tuple(_SOURCES)


def read_documents(language: str) -> Iterator[Document]:
    """Yields the pages of a language, always in the same order. Raises CorpusUnavailable."""
    for source in _SOURCES[language]:
        root = _unpack(source.package)
        for page in source.list_pages(root):
            content = source.convert(page.read_bytes())
            if content is not None:
                path = page.relative_to(root / source.folder).with_suffix(".html")
                yield Document(language, f"{source.package}/{path.as_posix()}", content)


# Packages


def cache_folder() -> Path:
    folder = os.environ.get("PARLEY_BENCH_CACHE")
    return Path(folder) if folder else Path.home() / ".cache" / "parley-bench"


def _unpack(package: str) -> Path:
    """Returns the folder with the files of a package, which is downloaded at the first call."""
    target = cache_folder() / package
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        folder = Path(name)
        _run(package, "apt-get", "download", f"{package}/{_RELEASE}", folder=folder)
        archives = list(folder.glob("*.deb"))
        if len(archives) != 1:
            raise CorpusUnavailable(f"apt-get downloaded {len(archives)} files for {package}.")
        _run(package, "dpkg-deb", "-x", archives[0].name, "files", folder=folder)
        (folder / "files").rename(target)
    return target


def _run(package: str, *command: str, folder: Path) -> None:
    program = command[0]
    if shutil.which(program) is None:
        raise CorpusUnavailable(
            f"{program} is missing. The manuals come from packages of Debian, which only Debian"
            " and systems derived from it can download."
        )
    try:
        subprocess.run(
            command,
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        raise CorpusUnavailable(
            f"The package {package} of Debian 12 ({_RELEASE}) cannot be had. Run `apt-get update`,"
            f" and try again. {program} says:\n{error.stderr.strip()}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise CorpusUnavailable(
            f"{program} took more than {_TIMEOUT_SECONDS} seconds for {package}."
        ) from error


# Checks


def read_passages(language: str) -> list[Passage]:
    return [
        Passage(document.name, chunk.heading or "")
        for document in read_documents(language)
        for chunk in document.read_chunks()
    ]


def find_missing(language: str, questions: list[ManualQuestion]) -> list[str]:
    """Returns a line for each answer that the manuals of a language do not have."""
    by_document: dict[str, list[Passage]] = {}
    for passage in read_passages(language):
        by_document.setdefault(passage.document, []).append(passage)
    return [
        f"{question.question!r}: {answer.document} has no section {answer.heading!r}"
        for question in questions
        for answer in question.answers
        if not find_rank(
            msgspec.structs.replace(question, answers=[answer]),
            by_document.get(answer.document, []),
        )
    ]


def _print_counts() -> None:
    for language in LANGUAGES:
        names = Counter(passage.document for passage in read_passages(language))
        print(f"{language}: {len(names)} documents, {names.total()} passages")
    counts = Counter(
        (question.language, question.kind, question.split) for question in read_manual_questions()
    )
    for key, count in sorted(counts.items()):
        print(f"{' '.join(key)}: {count} questions")


def _check() -> bool:
    """Prints what is missing. Returns whether there is nothing."""
    questions = read_manual_questions()
    missing = [
        line
        for language in LANGUAGES
        for line in find_missing(language, [q for q in questions if q.corpus == language])
    ]
    print("\n".join(missing) or f"The answers to all {len(questions)} questions exist.")
    return not missing


def main() -> None:
    try:
        if "--check" in sys.argv[1:]:
            sys.exit(not _check())
        _print_counts()
    except CorpusUnavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
