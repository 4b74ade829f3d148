"""Archives of repositories as sources: a folder of them, with a token, and hostile ones."""

from collections.abc import Callable

import pytest

from app.domain.agents.sources import archives
from app.domain.agents.sources.failures import DocumentSkipped
from tests.agents.sources import sample_archives
from tests.agents.sources.curator import Curator
from tests.agents.sources.sample_archives import ROOT, pack_tar, pack_zip
from tests.agents.sources.web_site import WebSite
from tests.failing_cases import FailingCases

_FILES = {
    "README.md": b"# Handbook",
    "docs/hours.md": b"# Hours\n\nThe shop opens at nine.",
    "docs/more/returns.md": b"# Returns\n\nThirty days.",
    "docs/logo.png": b"\x89PNG",
}
_MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("pack", [pack_tar, pack_zip])
async def test_a_folder_of_a_repository_becomes_documents(
    curator: Curator, site: WebSite, pack: Callable[..., bytes]
) -> None:
    site.show("/main", pack(_FILES), "application/octet-stream")
    config = {"url": f"{site.url}/main", "folder": "docs"}
    source = await curator.add_source("git_archive", config)
    assert (source["status"], source["error"]) == ("ready", None)
    assert await curator.names() == ["hours.md", "more - returns.md"]
    assert (await curator.documents())[0]["source_url"] == f"git+{site.url}/main#hours.md"

    # A host names the root after the version.
    changed = {**_FILES, "docs/hours.md": b"# Hours\n\nThe shop opens at ten."}
    del changed["docs/more/returns.md"]
    site.show("/main", pack(changed, "handbook-4c5b6a"), "application/octet-stream")
    source = await curator.sync(source["id"])
    counts = {name: source["last_sync"][name] for name in ("added", "changed", "removed")}
    assert counts == {"added": 0, "changed": 1, "removed": 1}
    assert "ten" in (await curator.search("When does the shop open?"))[0]["content"]


async def test_many_files_are_read_in_batches(
    curator: Curator, site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.agents.sources.kinds.git_archive._BATCH_BYTES", 10)
    site.show("/main", pack_tar({f"{n}.txt": b"File %d" % n for n in range(5)}))
    source = await curator.add_source("git_archive", {"url": f"{site.url}/main"})
    assert (source["error"], source["document_count"]) == (None, 5)


async def test_hostile_archives_are_refused(subtests: FailingCases) -> None:
    refused = {
        "outside": pack_tar({"../../etc/passwd.txt": b"x"}),
        "absolute": pack_tar({"/etc/passwd.txt": b"x"}, root=""),
        "outside of a zip": pack_zip({"a/../../x.txt": b"x"}),
        "two roots": pack_tar({"a/x.txt": b"x", "b/x.txt": b"x"}, root=""),
        "bomb": sample_archives.pack_bomb(513),
        "damaged": pack_tar(_FILES)[:100],
        "damaged zip": b"PK" + bytes(1000),
        "a name that is not Unicode": pack_tar({"caf\udce9.txt": b"x"}),
        "no archive": b"<html>",
        "empty": b"",
    }
    for name, content in refused.items():
        with subtests.test(name):
            with pytest.raises(DocumentSkipped) as raised:
                await archives.list_files(content, "", _MEGABYTE)
            # It is the script that refuses them, before its process has to be ended.
            assert "time or memory" not in str(raised.value)


async def test_links_and_large_files_are_not_read() -> None:
    files = await archives.list_files(sample_archives.pack_links(), "", _MEGABYTE)
    assert [file.path for file in files] == ["d.txt"]
    (file,) = await archives.list_files(sample_archives.pack_bomb(2), "", _MEGABYTE)
    assert (file.size_bytes, file.sha256) == (2 * _MEGABYTE, "")
    contents = await archives.read_files(pack_tar(_FILES), "docs", ["hours.md", "../README.md"])
    assert contents == {"hours.md": _FILES["docs/hours.md"]}
    assert ROOT not in str(contents)
