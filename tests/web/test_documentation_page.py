"""/docs and /openapi.json: the page of the reference, and the document that it shows."""

import gzip
import re
from pathlib import Path

import pytest

from app.web import console_page
from tests.world import Client


async def test_every_address_of_the_reference_is_the_same_page(anonymous: Client) -> None:
    paths = ("", "/errors", "/errors/agent_not_found", "/agents/list_agents", "/nothing/of_this")
    pages = [await anonymous.get(f"/docs{path}") for path in paths]
    assert {page.status_code for page in pages} == {200}
    assert len({page.text for page in pages}) == 1
    assert pages[0].headers["content-type"].startswith("text/html")


async def test_every_file_of_the_page_is_served_by_this_instance(anonymous: Client) -> None:
    page = (await anonymous.get("/docs")).text
    assert "//" not in page.replace("<!doctype html>", "")
    files = re.findall(r'(?:src|href)="([^"]+\.(?:js|css|json))"', page)
    assert len(files) >= 4
    answers = [await anonymous.get(path) for path in files]
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.content for answer in answers)


async def test_the_page_has_the_policy_of_the_console(anonymous: Client) -> None:
    policy = (await anonymous.get("/docs")).headers["content-security-policy"]
    assert policy == console_page.CSP
    assert not re.search(r"https?:|\*|unsafe", policy)


async def test_without_a_build_the_page_says_what_to_do(
    anonymous: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(console_page, "_MANIFEST", tmp_path / "manifest.json")
    answer = await anonymous.get("/docs/agents/list_agents")
    assert answer.status_code == 503
    assert "./scripts/up" in answer.text
    assert 'href="/openapi.json"' in answer.text


async def test_the_document_is_compressed_and_sent_once(anonymous: Client) -> None:
    answer = await anonymous.get("/openapi.json")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["cache-control"] == "no-cache"
    tag = answer.headers["etag"]
    again = await anonymous.get("/openapi.json", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == tag
    other = await anonymous.get("/openapi.json", headers={"if-none-match": '"other"'})
    assert other.status_code == 200
    plain = await anonymous.get("/openapi.json", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert gzip.compress(plain.content, mtime=0) == gzip.compress(answer.content, mtime=0)


async def test_an_unknown_path_of_one_word_is_the_envelope(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    """Litestar's documentation routes must not match unknown paths."""
    for method in ["GET", "POST", "DELETE"]:
        with subtests.test(method=method):
            answer = await anonymous(method, "/nothing")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "not_found"
