"""A folder of the archive that hosts of repositories make of a branch."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

import msgspec
from msgspec import Meta

from app.domain.agents.knowledge.api import kind_of
from app.domain.agents.sources import archives, content
from app.domain.agents.sources.archives import ArchivedFile
from app.domain.agents.sources.content import Content
from app.domain.agents.sources.failures import DocumentGone, DocumentSkipped
from app.domain.agents.sources.web import NOTHING_KNOWN, Validators
from app.kit.errors import Invalid
from app.net import headers

from .protocol import Address, Item, SourceKind, SourceType

_OWN_HEADERS = {"user-agent", "if-none-match", "if-modified-since"}
# What is read together with a file, because reading an archive starts at its beginning.
_BATCH_BYTES = 8 * 1024 * 1024


class GitArchiveConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`header` is the name of the header with the token."""

    url: Address
    folder: Annotated[str, Meta(max_length=500)] = ""
    header: Annotated[str, Meta(min_length=1, max_length=100)] = "Authorization"


class GitArchiveSecrets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`token` is the whole value of the header, like `Bearer …`."""

    token: Annotated[str, Meta(min_length=1, max_length=1000, pattern=r"^[\x20-\x7e]+\Z")]


class GitArchiveSource(SourceKind):
    name: ClassVar[SourceType] = "git_archive"
    config_type = GitArchiveConfig
    secrets_type = GitArchiveSecrets
    follows_robots: ClassVar[bool] = False

    _archive = b""
    _files: dict[str, ArchivedFile]
    _read_ahead: dict[str, bytes]

    @staticmethod
    def find_problem(config: Any) -> tuple[str, str] | None:
        try:
            headers.validate({config.header: "x"})
            is_own = config.header.lower() in _OWN_HEADERS
        except Invalid:
            is_own = True
        if is_own:
            return "header", "is not the name of a header that can be set"
        if ".." in config.folder.split("/"):
            return "folder", "must not have .. in it"
        return None

    async def list_items(self) -> Sequence[Item]:
        config, secrets = self._turn.config, self._turn.secrets
        private = {} if secrets is None else {config.header: secrets.token}
        page = await self._turn.web.get(config.url, headers=private, max_bytes=archives.MAX_BYTES)
        if page is None:
            raise DocumentSkipped("answered with status 304")
        self._archive, self._read_ahead = page.body, {}
        files = await archives.list_files(page.body, config.folder, self._turn.max_document_bytes)
        self._files = {file.path: file for file in files}
        return [
            Item(
                f"git+{config.url}#{quote(file.path)}", f"/{file.path}", version=file.sha256 or None
            )
            for file in files
        ]

    async def read(self, item: Item, known: Validators = NOTHING_KNOWN) -> Content | None:
        del known
        path = item.path.removeprefix("/")
        if self._files[path].size_bytes > self._turn.max_document_bytes:
            megabytes = self._turn.max_document_bytes / (1024 * 1024)
            raise DocumentSkipped(f"is larger than {megabytes:g} MB")
        if path not in self._read_ahead:
            self._read_ahead = await archives.read_files(
                self._archive, self._turn.config.folder, self._choose_batch(path)
            )
        body, kind = self._read_ahead.get(path), kind_of(path)
        if body is None or kind is None:
            raise DocumentGone("is not in the archive")
        return Content(body, kind, content.find_title(body) if kind == "html" else "")

    def _choose_batch(self, first: str) -> list[str]:
        """Returns this file and those after it that are read with it."""
        paths = list(self._files)
        size, batch = self._files[first].size_bytes, [first]
        for path in paths[paths.index(first) + 1 :]:
            size += self._files[path].size_bytes
            if size > _BATCH_BYTES:
                break
            batch.append(path)
        return batch
