"""One turn of a sync: looks at what a source has, and takes in or records what has changed.

Each document is recorded as soon as it was looked at, so that a next turn or another worker goes on
from there. A document that was taken in before that was recorded is recognized by its hash.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import msgspec

from app.domain.job import Job
from app.domain.platform.files import api as files
from app.domain.platform.storage.errors import QuotaExceeded
from app.kit import clock
from app.kit.files import as_stream
from app.kit.ids import new_id
from app.kit.pacing import Pace
from db.fast import Row
from db.session import Tx

from . import applying, content, entry_queries, queries
from .content import Content
from .failures import DocumentGone, DocumentSkipped, OutOfTime, SyncFailed, make_printable
from .kinds.protocol import MAX_URL_CHARS, Item, SourceKind
from .settings import Source
from .web import NOTHING_KNOWN, Validators, shorten
from .wildcards import is_selected

# How long one turn lasts; then the sources of others get theirs.
TURN_SECONDS: Final = 240.0
_LIST_SECONDS = 240.0
_MAX_PROBLEM_CHARS = 300
# A sync that takes longer is tried again, and goes on from there.
_MAX_DURATION = timedelta(hours=6)


class Selection(msgspec.Struct, frozen=True):
    items: list[Item]
    left_out: int


class Entry(msgspec.Struct, frozen=True):
    """What is known of an item. Its document, if there is one, has `document_name`."""

    seen_no: int = 0
    name: str = ""
    validators: Validators = NOTHING_KNOWN
    sha256: str | None = None
    text_sha256: str | None = None
    change: str | None = None
    is_discarded: bool = False
    file_key: str | None = None
    problem: str | None = None
    document_name: str | None = None
    document_sha256: str | None = None

    @property
    def is_waiting(self) -> bool:
        """True for a content that a review has to decide about."""
        return self.change in {"added", "changed"} and not self.is_discarded


_UNKNOWN = Entry()


class Version(msgspec.Struct):
    """A content that was read. `text_sha256` is that of a page that was read before."""

    validators: Validators
    sha256: str
    text_sha256: str | None = None

    def has_text_of(self, entry: Entry) -> bool:
        return self.text_sha256 is not None and self.text_sha256 == entry.text_sha256


async def select_items(
    items: Sequence[Item], source: Source, entries: dict[str, Entry]
) -> Selection:
    """Returns the items that the patterns select, each once, up to the limit: those that are
    documents already come first, so that a list in another order changes nothing.
    """
    chosen: dict[str, Item] = {}
    pace = Pace()
    for item in items:
        await pace.rest()
        # An index has no room for longer ones.
        fits = len(item.url.encode()) <= MAX_URL_CHARS
        if fits and is_selected(item.path, source.include, source.exclude):
            chosen.setdefault(item.url, item)
    ordered = sorted(chosen.values(), key=lambda item: item.url not in entries)
    return Selection(ordered[: source.max_documents], max(0, len(ordered) - source.max_documents))


class Turn:
    def __init__(self, job: Job, source: Source, kind: SourceKind) -> None:
        self._job, self._source, self._kind = job, source, kind
        self._read_count = 0
        self._first_problem: str | None = None

    async def run(self) -> int:
        """Returns how many documents were left out. Raises SyncFailed and OutOfTime."""
        address = self._source.kind.address(self._source.config)[1]
        async with self._job.read() as tx:
            rows = await entry_queries.list_all(tx, self._source.tenant_id, self._source.id)
        entries = {row["url"]: _to_entry(row) for row in rows}
        with _naming(address):
            items = await self._list_items()
        selection = await select_items(items, self._source, entries)
        # From the first document on: each turn reads one at least.
        deadline: float | None = None
        for item in selection.items:
            entry = entries.get(item.url, _UNKNOWN)
            if entry.seen_no == self._source.sync_no:
                self._count(entry.problem, item)
                continue
            self._check_time(deadline)
            with _naming(item.url):
                await self._look_at(item, entry)
            deadline = deadline or asyncio.get_running_loop().time() + TURN_SECONDS
        if self._first_problem is not None and not self._read_count:
            raise SyncFailed(self._first_problem)
        return selection.left_out

    async def _list_items(self) -> Sequence[Item]:
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                return await self._kind.list_items()
        except (DocumentSkipped, DocumentGone) as problem:
            raise SyncFailed(str(problem)) from None
        except TimeoutError:
            raise SyncFailed(f"takes more than {_LIST_SECONDS:g} s to list documents") from None

    def _check_time(self, deadline: float | None) -> None:
        if deadline is None or asyncio.get_running_loop().time() < deadline:
            return
        if clock.now() - self._source.started_at > _MAX_DURATION:
            hours = _MAX_DURATION / timedelta(hours=1)
            raise SyncFailed(f"The sync took more than {hours:g} hours")
        raise OutOfTime

    def _count(self, problem: str | None, item: Item) -> None:
        if problem is None:
            self._read_count += 1
        elif self._first_problem is None:
            self._first_problem = f"{shorten(item.url)} {problem}"

    async def _look_at(self, item: Item, entry: Entry) -> None:
        try:
            change = await self._read(item, entry)
            if change is None:
                await self._record_seen(item, NOTHING_KNOWN)
            else:
                await self._take(item, entry, change)
        except DocumentGone:
            self._read_count += 1
            await self._record_gone(item)
        except DocumentSkipped as problem:
            self._count(str(problem), item)
            await self._record_problem(item, entry, str(problem))
        else:
            self._read_count += 1

    async def _read(self, item: Item, entry: Entry) -> Content | None:
        """Returns None for what was seen before."""
        if not self._is_known(entry):
            return item.content or await self._kind.read(item)
        if item.version is not None and item.version == entry.validators.etag:
            return None
        return item.content or await self._kind.read(item, entry.validators)

    def _is_known(self, entry: Entry) -> bool:
        """False when its content is needed although it may be the one that was seen last."""
        if entry.sha256 is None:
            return False
        if entry.is_waiting:
            # Otherwise the source is no longer reviewed.
            return self._source.is_reviewed
        return entry.document_name is not None or entry.is_discarded

    async def _take(self, item: Item, entry: Entry, found: Content) -> None:
        sha256 = await content.hash_bytes(found.body)
        validators = Validators(item.version or found.etag, found.last_modified)
        version = Version(validators, sha256)
        is_known = self._is_known(entry)
        if is_known and sha256 == entry.sha256:
            await self._record_seen(item, validators)
            return
        if entry.document_name is not None and sha256 == entry.document_sha256:
            await self._record(item, entry, entry.document_name, version)
            return
        if entry.sha256 is not None and found.kind == "html":
            # The markup of many pages has something new in each answer.
            version.text_sha256 = await content.hash_text(found)
            if is_known and version.has_text_of(entry):
                await self._record_seen(item, version.validators)
                return
        if self._source.is_reviewed:
            await self._stage(item, entry, found, version)
        else:
            names = applying.propose_names(item, found)
            name = await applying.take_in(
                self._job.services, self._source, item.url, names, found.body, entry.document_name
            )
            await self._record(item, entry, name, version, applied=True)

    async def _stage(self, item: Item, entry: Entry, found: Content, version: Version) -> None:
        """Stores the content, so that what is applied is what the review was about."""
        name = applying.propose_names(item, found)[0]
        services, tenant_id = self._job.services, self._source.tenant_id
        stored = await files.store(
            services,
            tenant_id,
            as_stream(found.body),
            filename=name,
            purpose="document",
            max_bytes=len(found.body),
            owner_id=self._source.agent_id,
        )
        is_recorded = False
        try:
            async with self._job.checkpoint() as tx:
                await files.record(tx, tenant_id, stored, created_by=self._source.created_by)
                change = "added" if entry.document_name is None else "changed"
                await self._save(tx, item, entry, name, version, change, stored.key)
                is_recorded = True
        except QuotaExceeded as error:
            raise SyncFailed(f"cannot be stored: {error.message}") from None
        finally:
            if not is_recorded:
                await files.discard(services, [stored.key])

    # Recording

    async def _record(
        self,
        item: Item,
        entry: Entry,
        name: str,
        version: Version,
        *,
        applied: bool = False,
    ) -> None:
        async with self._job.checkpoint() as tx:
            await self._save(tx, item, entry, name, version)
            if applied:
                await self._add_count(tx, entry)

    async def _save(
        self,
        tx: Tx,
        item: Item,
        entry: Entry,
        name: str,
        version: Version,
        change: str | None = None,
        file_key: str | None = None,
    ) -> None:
        source = self._source
        if entry.file_key is not None:
            await files.release(tx, self._job.services, source.tenant_id, [entry.file_key])
        await entry_queries.save(
            tx,
            source.tenant_id,
            new_id("sre"),
            source.id,
            item.url,
            name,
            source.sync_no,
            version.validators.etag,
            version.validators.last_modified,
            version.sha256,
            version.text_sha256,
            change,
            file_key,
        )
        if change is not None and entry.change is None:
            await self._add_count(tx, entry)

    async def _add_count(self, tx: Tx, entry: Entry) -> None:
        is_new = entry.document_name is None
        ids = (self._source.tenant_id, self._source.id)
        await queries.add_counts(tx, *ids, added=int(is_new), changed=int(not is_new))

    async def _record_seen(self, item: Item, validators: Validators) -> None:
        ids = (self._source.tenant_id, self._source.id)
        async with self._job.checkpoint() as tx:
            await entry_queries.see(
                tx, *ids, item.url, self._source.sync_no, *msgspec.structs.astuple(validators)
            )

    async def _record_gone(self, item: Item) -> None:
        ids = (self._source.tenant_id, self._source.id)
        async with self._job.checkpoint() as tx:
            await entry_queries.set_gone(tx, *ids, item.url, self._source.sync_no)

    async def _record_problem(self, item: Item, entry: Entry, problem: str) -> None:
        source = self._source
        name = entry.name or make_printable(shorten(item.title or item.path))
        shown = make_printable(problem[:_MAX_PROBLEM_CHARS])
        columns = (item.url, name, source.sync_no, shown)
        async with self._job.checkpoint() as tx:
            await entry_queries.set_problem(
                tx, source.tenant_id, new_id("sre"), source.id, *columns
            )


@contextmanager
def _naming(url: str) -> Iterator[None]:
    """Puts the address before the message of a failure."""
    try:
        yield
    except SyncFailed as failure:
        raise SyncFailed(f"{shorten(url)} {failure}", failure.wait_seconds) from None


def _to_entry(row: Row) -> Entry:
    return Entry(
        seen_no=row["seen_no"],
        name=row["name"],
        validators=Validators(row["etag"], row["last_modified"]),
        sha256=row["sha256"],
        text_sha256=row["text_sha256"],
        change=row["change"],
        is_discarded=row["is_discarded"],
        file_key=row["file_key"],
        problem=row["problem"],
        document_name=row["document_name"],
        document_sha256=row["document_sha256"],
    )
