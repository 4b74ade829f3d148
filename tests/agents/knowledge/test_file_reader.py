"""Texts of files whose senders wait: they are whole, cut, or refused; few are read at a time."""

import asyncio
import re

import pytest

from app.domain.agents.knowledge import file_reader, parsing
from app.domain.agents.knowledge.file_reader import FileReader, ReadFile
from app.domain.agents.knowledge.parsing import FileText, Kind, Unreadable
from app.domain.agents.knowledge.readers import formats
from app.domain.agents.knowledge.readers.cutting import Refused
from app.kit.errors import Unavailable
from tests.agents.knowledge.test_parsing import write_prose, write_sources
from tests.assertions import until

_UNLIMITED = 1_000_000


def test_a_text_has_every_word_once_and_in_order(subtests: pytest.Subtests) -> None:
    for kind, content in write_sources().items():
        with subtests.test(kind):
            text, is_truncated = formats.read_text(content, kind, _UNLIMITED)
            assert not is_truncated
            numbers = [int(number) for number in re.findall(r"\bitem(\d+)", text)]
            if kind == "md":
                assert numbers == [*range(1, 21)] * 15
            else:
                assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
                assert len(numbers) >= 300


def test_a_heading_stands_once_above_its_section() -> None:
    markdown = f"# Report\n\n## Halls\n\n{write_prose(60)}"
    text, _ = formats.read_text(markdown.encode(), "md", _UNLIMITED)
    assert text.startswith("Report > Halls\n")
    assert text.count("Report") == 1


def test_a_long_text_is_cut_where_the_limit_is(subtests: pytest.Subtests) -> None:
    for length, limit, expected in [
        (10, 10, (10, False)),
        (11, 10, (10, True)),
        (5, 10, (5, False)),
    ]:
        with subtests.test(length=length):
            text, is_truncated = formats.read_text(b"x" * length, "txt", limit)
            assert (len(text), is_truncated) == expected


def test_a_file_without_text_is_refused(subtests: pytest.Subtests) -> None:
    for content, reason in [(b"", "is empty"), (b" \n ", "has no text"), (b"\0\1", "not a text")]:
        with subtests.test(reason), pytest.raises(Refused, match=reason):
            formats.read_text(content, "txt", _UNLIMITED)


async def _load(content: bytes = b"Hello") -> bytes:
    return content


async def test_a_file_is_read_in_a_process_of_its_own() -> None:
    reader = FileReader()
    assert await reader.read("tenant", "a", "txt", _load) == ReadFile(
        5, "Hello", is_truncated=False
    )
    with pytest.raises(Unreadable, match="is not a PDF file"):
        await reader.read("tenant", "a", "pdf", _load)


class _Reading:
    """Files that are read until `end` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.end = asyncio.Event()
        self.running = 0
        self.most = 0
        monkeypatch.setattr(parsing, "read_text", self._read)

    async def _read(self, content: bytes, kind: Kind, max_characters: int) -> FileText:
        del kind, max_characters
        self.running += 1
        self.most = max(self.most, self.running)
        await self.end.wait()
        self.running -= 1
        return FileText(content.decode(), is_truncated=False)


async def test_two_files_are_read_at_a_time_and_one_of_each_tenant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, reader = _Reading(monkeypatch), FileReader()
    async with asyncio.TaskGroup() as tasks:
        for sender in "aaabc":
            tasks.create_task(reader.read("tenant", sender, "txt", _load))
        await until(lambda: reading.running == 1)
        for tenant_id in ("second", "third"):
            tasks.create_task(reader.read(tenant_id, "a", "txt", _load))
        # The files of the first tenant leave room for those of others.
        await until(lambda: reading.running == 2)
        reading.end.set()
    assert reading.most == file_reader.MAX_READING


async def test_the_senders_of_a_tenant_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, reader = _Reading(monkeypatch), FileReader()
    finished: list[str] = []

    async def read(sender: str) -> None:
        await reader.read("tenant", sender, "txt", _load)
        finished.append(sender)

    async with asyncio.TaskGroup() as tasks:
        for sender in "aaab":
            tasks.create_task(read(sender))
        await until(lambda: reading.running == 1)
        reading.end.set()
    assert finished[:2] == ["a", "b"]


async def test_a_file_that_has_waited_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, reader = _Reading(monkeypatch), FileReader()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(reader.read("tenant", "a", "txt", _load))
        await until(lambda: reading.running == 1)
        monkeypatch.setattr(file_reader, "MAX_WAIT_SECONDS", 0.01)
        with pytest.raises(Unavailable):
            await reader.read("tenant", "a", "txt", _load)
        # The one that is read has no such limit.
        assert not first.done()
        reading.end.set()
    assert first.result().text == "Hello"


async def test_files_that_are_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, reader = _Reading(monkeypatch), FileReader()
    of_tenant, of_sender = file_reader.MAX_FILES_OF_TENANT, file_reader.MAX_FILES_OF_SENDER
    async with asyncio.TaskGroup() as tasks:
        for number in range(file_reader.MAX_FILES):
            tenant_id, sender = f"tenant {number // of_tenant}", f"sender {number // of_sender}"
            tasks.create_task(reader.read(tenant_id, sender, "txt", _load))
            await asyncio.sleep(0)
            if number == of_sender - 1:
                with pytest.raises(Unavailable):
                    await reader.read(tenant_id, sender, "txt", _load)
            if number == of_tenant - 1:
                with pytest.raises(Unavailable):
                    await reader.read(tenant_id, "another", "txt", _load)
        with pytest.raises(Unavailable) as refusal:
            await reader.read("another", "another", "txt", _load)
        assert refusal.value.headers == {"Retry-After": "10"}
        reading.end.set()
    # Nothing is left of those that were read.
    last = await reader.read("another", "another", "txt", _load)
    assert last == ReadFile(5, "Hello", is_truncated=False)
