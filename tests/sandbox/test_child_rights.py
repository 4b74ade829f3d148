"""Processes that read foreign bytes have no rights: no user, network, file, program or signal."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import psutil
import pytest
from structlog.testing import capture_logs

from app.domain.agents.knowledge import parsing
from app.domain.agents.search.engines import duckduckgo
from app.domain.agents.sources import archives, xml_lists
from app.domain.agents.tools import openapi_import
from app.domain.agents.tools.executors import sqlite
from app.domain.agents.vault import connection_tests
from app.domain.agents.vault.types import SshSecrets
from app.domain.conversations.speech import audio, conversion, espeak
from app.domain.identity.profile import images
from app.sandbox import child_process, landlock
from app.sandbox.child_process import Limits
from tests.assertions import logged_by, until
from tests.processes import ROOT
from tests.sandbox.child_scripts import write_script
from tests.sandbox.rights_probe import write_probe

_NOBODY, _ANY_FILE = "65534", 2
_SECRETS = SshSecrets(host="a.example", port=22, username="a", private_key="x")


class Reader(NamedTuple):
    """`start` runs the script of `module` with the limits that the product gives it."""

    module: ModuleType
    name: str
    start: Callable[[Path], Awaitable[Any]]


_READERS = (
    Reader(images, "_SCRIPT", lambda _: images.redraw(b"", 512)),
    *(
        Reader(parsing, "_SCRIPT", lambda _, kind=kind: parsing.read_chunks(b"", kind))  # type: ignore[misc]
        for kind in parsing.MIME_TYPES
    ),
    Reader(xml_lists, "_SCRIPT", lambda _: xml_lists.read_feed(b"")),
    Reader(openapi_import, "_SCRIPT", lambda _: openapi_import.read_document({"text": ""})),
    Reader(archives, "_SCRIPT", lambda _: archives.list_files(b"", "", 1)),
    Reader(audio, "_SCRIPT", lambda _: audio.decode(b"")),
    Reader(espeak, "_SCRIPT", lambda _: espeak.speak("a", None)),
    Reader(conversion, "_SCRIPT", lambda _: conversion.convert(b"", "wav")),
    Reader(duckduckgo, "_SCRIPT", lambda _: duckduckgo._read_page(b"")),
    Reader(connection_tests, "_KEY_SCRIPT", lambda _: connection_tests._read_private_key(_SECRETS)),
    Reader(sqlite, "_CHILD", lambda folder: sqlite._run_script({}, folder, 30)),
)


class Files(NamedTuple):
    """The folder of a tenant, a file of another tenant, and the file of the master key."""

    own: Path
    foreign: Path
    key: Path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    files = Files(tmp_path / "own", tmp_path / "other" / "shop.db", tmp_path / "key")
    files.own.mkdir()
    files.foreign.parent.mkdir()
    files.foreign.write_text("x")
    files.key.write_text("x")
    return files


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What scripts write, before the caller reads it."""
    outputs: list[bytes] = []
    communicate = child_process._communicate

    async def record(*arguments: Any) -> bytes:
        output = await communicate(*arguments)
        outputs.append(output)
        return output

    monkeypatch.setattr(child_process, "_communicate", record)
    return outputs


def _keeps_user(reader: Reader) -> bool:
    return reader.module is sqlite


def _check_status(reader: Reader, status: dict[str, str]) -> None:
    assert (status["NoNewPrivs"], status["Seccomp"], status["Threads"]) == ("1", "2", "1")
    if os.geteuid() != 0:
        assert int(status["CapEff"], 16) == 0
    else:
        keeps_user = _keeps_user(reader)
        ids = ["0" if keeps_user else _NOBODY] * 4
        assert [status["Uid"].split(), status["Gid"].split(), status["Groups"]] == [ids, ids, ""]
        assert {int(status[name], 16) for name in ("CapEff", "CapPrm")} == {
            _ANY_FILE if keeps_user else 0
        }
        assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0


def _check_outcomes(reader: Reader, outcomes: dict[str, str], files: Files) -> None:
    if _keeps_user(reader):
        assert outcomes.pop(f"write {files.own}/new") == "allowed"
    assert outcomes.pop("import") == "ModuleNotFoundError"
    assert outcomes.pop("thread") == "RuntimeError"
    if not landlock.version():
        # Only its user restricts a process that opens files.
        outcomes = {name: outcome for name, outcome in outcomes.items() if " " not in name}
    assert set(outcomes.values()) <= {"EPERM", "EACCES"}, outcomes


async def test_readers_of_foreign_bytes_have_no_rights(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
    outputs: list[bytes],
    files: Files,
) -> None:
    monkeypatch.setenv("PLANTED", "secret")
    read = ["/etc/shadow", "/etc/passwd", "/proc/self/environ", str(files.key), str(files.foreign)]
    written = ["/tmp/written", str(files.foreign), f"{files.own}/new"]
    for reader in _READERS:
        script = getattr(reader.module, reader.name)
        probe = write_probe(tmp_path, script, read=read, written=written)
        monkeypatch.setattr(reader.module, reader.name, probe)
        with suppress(Exception):  # the answer of the probe is none of the script
            await reader.start(files.own)
        monkeypatch.setattr(reader.module, reader.name, script)
        report = json.loads(outputs.pop())
        with subtests.test(script=script.name):
            _check_status(reader, report["status"])
            _check_outcomes(reader, report["outcomes"], files)
            assert report["descriptors"] == [0, 1, 2, 3]  # the last is that of the status
            assert set(report["environment"]) <= {"OPENBLAS_NUM_THREADS", "LC_CTYPE"}
            assert report["limits"]["NPROC"] == report["limits"]["CORE"] == 0
            assert report["limits"]["FSIZE"] == (256 << 20 if _keeps_user(reader) else 0)
            assert report["limits"]["NOFILE"] <= 64
            assert 0 < report["limits"]["AS"] <= 2 << 30
            assert 0 < report["limits"]["CPU"] <= 120
            assert report["session"]


def test_the_rights_of_every_script_are_tested() -> None:
    scripts = {getattr(reader.module, reader.name) for reader in _READERS}
    assert scripts == set((ROOT / "app").rglob("*_child.py"))


@pytest.mark.parametrize("mode", [0o700, 0o755])
async def test_a_readable_folder_is_read_whoever_may_read_it(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode)
    (folder / "word").write_text("found")
    script = write_script(tmp_path, "import os; print(open('word').read(), os.geteuid(), end='')")
    limits = Limits(seconds=30, cpu_seconds=5, readable=folder)
    output = await child_process.run(script, b"", limits=limits)
    user = _NOBODY if os.geteuid() == 0 and mode == 0o755 else os.geteuid()
    assert output.decode() == f"found {user}"


async def test_a_file_of_a_writable_folder_has_a_limit(tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        f"import os, sys; os.chdir({str(tmp_path)!r})\n"
        "with open('new', 'wb', 0) as file: print(file.write(bytes(3 << 20)), end='')",
    )
    limits = Limits(seconds=30, cpu_seconds=5, file_mib=1, writable=tmp_path)
    assert await child_process.run(script, b"", limits=limits) == b"%d" % (1 << 20)
    assert (tmp_path / "new").stat().st_size == 1 << 20


_PARENT = """
import asyncio, sys
from pathlib import Path
from app.sandbox import child_process
limits = child_process.Limits(seconds=60, cpu_seconds=5)
asyncio.run(child_process.run(Path(sys.argv[1]), b"", limits=limits))
"""


async def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    script = write_script(tmp_path, "import time; time.sleep(60)")
    command = [sys.executable, "-c", _PARENT, str(script)]
    parent = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    children = psutil.Process(parent.pid).children
    await until(lambda: any(_is_restricted(child.pid) for child in children()), 30)
    (child,) = children()
    parent.kill()
    await parent.wait()
    await until(lambda: not child.is_running())


def _is_restricted(pid: int) -> bool:
    return "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")


async def test_missing_limits_are_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = tmp_path / "start.py"
    start.write_text("print('landlock: none; seccomp: none')\nprint('done', end='')")
    monkeypatch.setattr(child_process, "_START", start)
    monkeypatch.setattr(child_process, "_has_logged_missing", False)
    limits = Limits(seconds=30, cpu_seconds=5)
    with capture_logs() as lines:
        for _ in range(2):
            assert await child_process.run(tmp_path, b"", limits=limits) == b"done"
    (line,) = logged_by("child_process", lines)
    assert (line["log_level"], line["missing"]) == ("warning", "landlock: none; seccomp: none")
