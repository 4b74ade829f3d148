"""The address without a path: a page for people, the ways on for programs."""

from pathlib import Path

import msgspec
import pytest

from app import __version__
from app.services import Services
from app.web import console_page, home
from tests.http.test_requests import LIMIT_HEADERS
from tests.world import Client, World

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


async def test_a_browser_is_sent_to_the_console(world: World, subtests: pytest.Subtests) -> None:
    for method in ("GET", "HEAD"):
        anonymous = world.anonymous()
        with subtests.test(method=method):
            answer = await anonymous(method, "/", headers={"accept": BROWSER})
            assert (answer.status_code, answer.headers["location"]) == (302, "/console")
            assert (answer.headers["cache-control"], answer.headers["vary"]) == (
                "no-store",
                "Accept",
            )
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert set(answer.headers) >= LIMIT_HEADERS
            assert answer.content == b""


_CASES: list[str] = [
    "*/*",
    "application/json",
    "application/json, text/plain, */*",
    "text/html;q=0.5, application/json",
    "",
    "nonsense",
    "text/html;q=9e999",
    # Too long for a browser's: it is not parsed.
    "text/html," + "," * 1024,
]


async def test_a_program_learns_where_to_go_on(world: World, subtests: pytest.Subtests) -> None:
    url = world.services.settings.public_url
    for accept in _CASES:
        anonymous = world.anonymous()
        with subtests.test(accept=accept):
            answer = await anonymous("GET", "/", headers={"accept": accept})
            assert (answer.status_code, answer.headers["vary"]) == (200, "Accept")
            assert answer.json() == {
                "name": "Parley",
                "version": __version__,
                "docs": f"{url}/docs",
                "openapi": f"{url}/openapi.json",
                "console": f"{url}/console",
            }


async def test_without_a_console_a_browser_is_sent_to_the_documentation(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(console_page, "_MANIFEST", tmp_path / "manifest.json")
    answer = await anonymous("GET", "/", headers={"accept": BROWSER})
    assert (answer.status_code, answer.headers["location"]) == (302, "/docs")
    assert "console" not in (await anonymous("GET", "/")).json()


def test_a_program_learns_of_the_demo_where_there_is_one(services: Services) -> None:
    shown = msgspec.structs.replace(services.settings, demo=True)
    assert home._describe(shown).demo == f"{shown.public_url}/demo"


async def test_a_head_request_of_a_program_has_no_body(anonymous: Client) -> None:
    answer = await anonymous("HEAD", "/", headers={"accept": "*/*"})
    assert (answer.status_code, answer.content) == (200, b"")
