"""Scripts and styles for browsers, and how long browsers may keep them."""

import gzip
import re

import pytest

from app.web import assets
from tests.world import Client

FOREVER = "public, max-age=31536000, immutable"


async def test_a_file_is_kept_for_good_at_the_address_of_its_content(anonymous: Client) -> None:
    url = assets.url_of("shared/theme.css")
    answer = await anonymous.get(url)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert answer.headers["cache-control"] == FOREVER
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"


def test_styles_are_served_without_comments_and_indentation() -> None:
    styles = assets.load("widget/panel.css").content.decode()
    assert "/*" not in styles
    assert re.search(r"^\s", styles, re.MULTILINE) is None
    assert styles.count("{") == styles.count("}") > 10


async def test_the_address_of_an_older_release_has_the_newest_file(anonymous: Client) -> None:
    answer = await anonymous.get("/assets/0123456789abcdef/shared/theme.css")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-cache"


async def test_no_other_file_is_served(anonymous: Client, subtests: pytest.Subtests) -> None:
    for path in [
        "/assets/0/nothing.js",
        "/assets/0/../assets.py",
        "/assets/0/..%2fassets.py",
        "/assets/0//etc/passwd",
        "/assets/0/shared",
        "/embed/nothing.js",
        "/embed/launcher.js",
    ]:
        with subtests.test(path=path):
            assert (await anonymous.get(path)).status_code == 404


async def test_an_embedded_script_is_checked_again_after_a_while(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    for name in ["widget.js", "form.js"]:
        with subtests.test(name=name):
            answer = await anonymous.get(f"/embed/{name}")
            assert answer.status_code == 200
            assert "immutable" not in answer.headers["cache-control"]
            same = await anonymous.get(
                f"/embed/{name}", headers={"if-none-match": answer.headers["etag"]}
            )
            assert (same.status_code, same.content) == (304, b"")


async def test_a_browser_gets_a_compressed_file(anonymous: Client) -> None:
    plain = await anonymous.get("/embed/widget.js", headers={"accept-encoding": "identity"})
    small = await anonymous.get("/embed/widget.js", headers={"accept-encoding": "gzip, br"})
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert small.headers["vary"] == "Accept-Encoding"
    assert small.content == plain.content
    assert int(small.headers["content-length"]) == len(gzip.compress(plain.content, mtime=0))


async def test_files_name_each_other_by_addresses_that_exist(anonymous: Client) -> None:
    for path in sorted(
        {*assets.list_imports("widget/panel.js"), "widget/panel.js", "widget/frame-host.js"}
    ):
        url = assets.url_of(path)
        content = (await anonymous.get(url)).text
        for reference in re.findall(r'"(\.\.?/[^"]+\.(?:js|css))"', content):
            answer = await anonymous.get(_join(url, reference))
            assert answer.headers["cache-control"] == FOREVER, (path, reference)


def _join(url: str, reference: str) -> str:
    parts = url.split("/")[:-1]
    for part in reference.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
