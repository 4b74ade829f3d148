"""What the console is built into: its size, its files, and how they are served."""

import gzip
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Final

import msgspec
import pytest

from app.kit import node
from app.web import console_page
from app.web.console_build import DIST, SOURCE
from app.web.console_page import Manifest
from tests.processes import ROOT
from tests.world import Client

_KILOBYTE: Final = 1000
# Gzipped: what every screen loads, what one of them needs beside, and an editor of code.
_MAX_SHELL: Final = 60 * _KILOBYTE
_MAX_STYLES: Final = 12 * _KILOBYTE
_MAX_AREA: Final = 40 * _KILOBYTE
_MAX_EDITOR: Final = 115 * _KILOBYTE
# The screens of links in mails, and texts that several areas show.
_NO_SCREENS: Final = {"accounts", "docs", "turns"}


class BuiltManifest(Manifest, frozen=True):
    areas: dict[str, list[str]] = msgspec.field(default_factory=dict)
    parts: dict[str, list[str]] = msgspec.field(default_factory=dict)


@pytest.fixture(scope="module")
def manifest() -> BuiltManifest:
    return msgspec.json.decode((DIST / "manifest.json").read_bytes(), type=BuiltManifest)


def _size(*names: str) -> int:
    return sum((DIST / "files" / f"{name}.gz").stat().st_size for name in names)


def test_what_a_screen_loads_stays_small(manifest: BuiltManifest) -> None:
    shell = {manifest.script, *manifest.preloads}
    assert _size(*shell) <= _MAX_SHELL
    assert _size(manifest.style) <= _MAX_STYLES
    assert {"home", "agents", "conversations", "settings"} <= manifest.areas.keys()
    sizes = {area: _size(*names) for area, names in manifest.areas.items()}
    assert {area: size for area, size in sizes.items() if size > _MAX_AREA} == {}
    assert {"chart", "code_editor"} <= manifest.parts.keys()
    parts = {part: _size(*names) for part, names in manifest.parts.items()}
    assert {part: size for part, size in parts.items() if size > _MAX_EDITOR} == {}


def test_the_reference_loads_less_than_a_screen(manifest: BuiltManifest) -> None:
    texts = manifest.areas["docs"]
    assert _size(manifest.docs.script, *manifest.docs.preloads, *texts) <= _MAX_SHELL
    assert _size(manifest.docs.style) <= _MAX_STYLES


def test_two_builds_are_identical(tmp_path: Path) -> None:
    node.run(SOURCE / "build.mjs", tmp_path)
    built, stored = tmp_path / "files", DIST / "files"
    names = sorted(path.name for path in built.iterdir())
    assert names == sorted(path.name for path in stored.iterdir())
    assert [name for name in names if _read(built / name) != _read(stored / name)] == []


def _read(path: Path) -> bytes:
    content = path.read_bytes()
    # The header of gzip has the system that compressed it.
    return gzip.decompress(content) if path.suffix == ".gz" else content


def test_the_wheel_has_what_was_built_and_no_sources(manifest: Manifest, tmp_path: Path) -> None:
    uv = ROOT / ".venv" / "bin" / "uv"
    command = [str(uv), "build", "--wheel", "--quiet", "-o", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, cwd=ROOT)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("app/web/console/")}
    assert {f"app/web/console/dist/files/{name}" for name in manifest.files} <= names
    assert "app/web/console/dist/manifest.json" in names
    assert [name for name in names if "/node_modules/" in name or "/src/" in name] == []


async def test_files_may_be_kept_for_good(anonymous: Client, manifest: Manifest) -> None:
    answer = await anonymous.get(f"/console/files/{manifest.script}")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["content-encoding"] in {"br", "gzip"}
    plain = await anonymous.get(
        f"/console/files/{manifest.style}", headers={"accept-encoding": "identity"}
    )
    assert "content-encoding" not in plain.headers
    assert plain.content == (DIST / "files" / manifest.style).read_bytes()


async def test_a_file_that_does_not_exist_is_not_the_page(anonymous: Client) -> None:
    for name in ("part-OLDOLDOL.js", "..%2Fmanifest.json", "manifest.json"):
        answer = await anonymous.get(f"/console/files/{name}")
        assert answer.status_code == 404, name
        assert answer.headers["content-type"] == "application/json", name


async def test_every_screen_is_the_same_page_with_a_strict_policy(anonymous: Client) -> None:
    pages = [await anonymous.get(f"/console{path}") for path in ("/a", "/sign-in", "/a/b/c")]
    assert {page.status_code for page in pages} == {200}
    assert len({page.text for page in pages}) == 1
    policy = pages[0].headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert pages[0].headers["cache-control"] == "no-cache"


async def test_the_page_names_the_scripts_of_its_screen(
    anonymous: Client, manifest: BuiltManifest, subtests: pytest.Subtests
) -> None:
    assert manifest.screens.keys() == {"", *(manifest.areas.keys() - {"home", *_NO_SCREENS})}
    for path, screen in (("", ""), ("/agents", "agents"), ("/agents/agt_1/test", "agents")):
        with subtests.test(path=path):
            page = (await anonymous.get(f"/console{path}")).text
            expected = {*manifest.preloads, *manifest.screens[screen]}
            assert (
                set(re.findall(r'"modulepreload" href="/console/files/([^"]+)"', page)) == expected
            )
            assert set(manifest.areas[screen or "home"]) <= expected


async def test_without_a_build_the_page_says_what_to_do(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reason = tmp_path / "reason"
    reason.write_text("npm error <no> registry", encoding="utf-8")
    monkeypatch.setattr(console_page, "_MANIFEST", tmp_path / "manifest.json")
    monkeypatch.setattr(console_page, "REASON", reason)
    answer = await anonymous.get("/console")
    assert answer.status_code == 503
    assert "npm error &lt;no&gt; registry" in answer.text
    assert "./scripts/up" in answer.text
    assert (await anonymous.get("/console/files/licenses.txt")).status_code == 404
