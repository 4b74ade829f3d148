"""The addresses in mails: screens of the console where it is built, plain pages elsewhere."""

import pytest

from app.services import Services
from app.web import console_page
from app.web.console_page import Bundle, Manifest
from tests.changed_settings import changed_settings
from tests.world import Client

NAMES = ("register", "verify-email", "confirm-recipient", "forgot-password", "reset-password")


@pytest.fixture
def is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = Manifest(
        "console.js", "console.css", [], Bundle("docs.js", "docs.css", []), frozenset()
    )
    monkeypatch.setattr(console_page, "load_manifest", lambda: manifest)


@pytest.mark.usefixtures("is_built")
async def test_links_lead_to_screens_of_the_console(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    for name in NAMES:
        with subtests.test(name):
            answer = await anonymous.get(f"/{name}?token=a%20b%26c&next=/demo")
            assert answer.status_code == 303
            location = f"/console/{name}?token=a+b%26c&next=%2Fdemo"
            assert answer.headers["location"] == location
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["referrer-policy"] == "no-referrer"
    answer = await anonymous.get("/forgot-password")
    assert answer.headers["location"] == "/console/forgot-password"


@pytest.mark.usefixtures("is_built")
async def test_a_link_leads_nowhere_else(anonymous: Client, subtests: pytest.Subtests) -> None:
    for query in ("next=//evil.example.net", "token=%0d%0aset-cookie:a=b", "host=evil&x=y"):
        with subtests.test(query):
            answer = await anonymous.get(f"/register?{query}")
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/console/register")
            assert "set-cookie" not in answer.headers
            assert "x=y" not in answer.headers["location"]


@pytest.mark.usefixtures("is_built")
async def test_links_keep_the_path_of_a_proxy(anonymous: Client, services: Services) -> None:
    with changed_settings(services, base_url="https://example.com/parley"):
        answer = await anonymous.get("/reset-password?token=x")
        page = await anonymous.get("/console/reset-password?token=x")
    assert answer.headers["location"] == "/parley/console/reset-password?token=x"
    assert '<meta name="parley-base" content="/parley">' in page.text


@pytest.mark.usefixtures("is_built")
async def test_the_console_knows_whether_sign_up_is_open(
    anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for is_open, content in ((True, "open"), (False, "closed")):
        with subtests.test(content), changed_settings(services, allow_signup=is_open):
            page = await anonymous.get("/console/register")
            assert f'<meta name="parley-signup" content="{content}">' in page.text


async def test_without_the_console_the_links_are_plain_pages(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(console_page, "load_manifest", lambda: None)
    for name in NAMES:
        with subtests.test(name):
            answer = await anonymous.get(f"/{name}?token=x")
            assert answer.status_code == 200
            assert "<form" in answer.text
