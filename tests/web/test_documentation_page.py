"""/docs: the page and its assets, which need no other host."""

import re

import pytest

from tests.world import Client


async def test_the_documentation_page_is_served(anonymous: Client) -> None:
    answer = await anonymous.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


async def test_the_documentation_page_names_no_other_host(anonymous: Client) -> None:
    assert "//" not in (await anonymous.get("/docs")).text


def _assets(page: str) -> list[str]:
    return re.findall(r'(?:src|href)="([^"]+)"', page)


async def test_every_asset_of_the_page_is_served(anonymous: Client) -> None:
    assets = _assets((await anonymous.get("/docs")).text)
    answers = {path: await anonymous.get(path) for path in assets}
    assert len(answers) >= 3
    assert {answer.status_code for answer in answers.values()} == {200}
    assert all(answer.content for answer in answers.values())


async def test_an_asset_has_its_media_type(anonymous: Client, subtests: pytest.Subtests) -> None:
    for ending, kind in [(".js", "text/javascript"), (".css", "text/css"), (".png", "image/png")]:
        with subtests.test(ending=ending, kind=kind):
            assets = _assets((await anonymous.get("/docs")).text)
            answers = [await anonymous.get(path) for path in assets if path.endswith(ending)]
            assert answers
            assert {answer.headers["content-type"].split(";")[0] for answer in answers} == {kind}


async def test_the_page_shows_this_instances_document(anonymous: Client) -> None:
    assert '"/openapi.json"' in (await anonymous.get("/docs/start.js")).text


async def test_the_page_may_load_from_this_instance_only(anonymous: Client) -> None:
    policy = (await anonymous.get("/docs")).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert not re.search(r"https?:|\*|unsafe-eval", policy)


async def test_no_other_file_is_served(anonymous: Client, subtests: pytest.Subtests) -> None:
    for name in ["nothing.js", "..%2f__init__.py", "%2e%2e/__init__.py", "index"]:
        with subtests.test(name=name):
            answer = await anonymous.get(f"/docs/assets/{name}")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "not_found"


async def test_an_unknown_path_of_one_word_is_the_envelope(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    """Litestar's documentation routes must not match unknown paths."""
    for method in ["GET", "POST", "DELETE"]:
        with subtests.test(method=method):
            answer = await anonymous(method, "/nothing")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "not_found"
