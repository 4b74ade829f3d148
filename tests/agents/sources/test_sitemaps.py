"""Sitemaps as sources: their pages, indexes, limits, patterns and removals."""

import gzip
from datetime import timedelta

import pytest

from app.domain.agents.sources import syncing
from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import WebSite

_PAGES = {"a": "Apples are red.", "b": "Bananas are yellow.", "c": "Cherries are small."}


def _list(site: WebSite, *paths: str, at: str = "/sitemap.xml") -> None:
    rows = "".join(f"<url><loc>{site.url}{path}</loc></url>" for path in paths)
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'
    site.show(at, body, "application/xml")


def _open_shop(site: WebSite, *names: str) -> None:
    for name in names:
        site.article(f"/{name}", f"About {name}", _PAGES.get(name, f"This is {name}."))
    _list(site, *(f"/{name}" for name in names))


async def test_pages_are_added_changed_and_removed_with_the_sitemap(
    curator: Curator, site: WebSite
) -> None:
    _open_shop(site, "a", "b")
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert (source["status"], source["document_count"]) == ("ready", 2)
    assert await curator.names() == ["About a.html", "About b.html"]

    site.article("/b", "About b", "Bananas are green.")
    site.article("/c", "About c", _PAGES["c"])
    _list(site, "/b", "/c")
    source = await curator.sync(source["id"])
    counts = {name: source["last_sync"][name] for name in ("added", "changed", "removed")}
    assert counts == {"added": 1, "changed": 1, "removed": 1}
    assert await curator.names(source_id=source["id"]) == ["About b.html", "About c.html"]
    assert "green" in (await curator.search("What colour are bananas?"))[0]["content"]


async def test_an_index_leads_to_sitemaps_which_may_be_packed(
    curator: Curator, site: WebSite
) -> None:
    _open_shop(site, "a", "b")
    _list(site, "/b", at="/second.xml")
    packed = site.pages["/second.xml"].body
    site.show("/second.xml.gz", gzip.compress(packed), "application/gzip")
    rows = "".join(
        f"<sitemap><loc>{site.url}{path}</loc></sitemap>"
        for path in ("/sitemap.xml", "/second.xml.gz")
    )
    site.show("/index.xml", f"<sitemapindex>{rows}</sitemapindex>", "text/xml")
    source = await curator.add_source("sitemap", {"url": f"{site.url}/index.xml"})
    assert (source["error"], source["document_count"]) == (None, 2)

    # An index of which a part cannot be read does not remove the pages of that part.
    site.pages["/second.xml.gz"].body = b"no gzip"
    source = await curator.sync(source["id"])
    assert "/second.xml.gz" in source["error"]
    assert source["document_count"] == 2


async def test_addresses_that_are_too_long_are_left_out(curator: Curator, site: WebSite) -> None:
    _open_shop(site, "a")
    letters = "".join(chr(code) for code in range(0x4E00, 0x4E00 + 1900))
    _list(site, "/a", f"/{letters}", f"/{'b' * 3000}")
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert (source["status"], source["document_count"]) == ("ready", 1)


async def test_a_sync_takes_turns_and_ends(
    curator: Curator, site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    _open_shop(site, "a", "b", "c")
    monkeypatch.setattr(syncing, "TURN_SECONDS", 0.0)
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert (source["status"], source["document_count"]) == ("ready", 3)
    assert site.asked.count("/sitemap.xml") == 3
    assert [site.asked.count(path) for path in ("/a", "/b", "/c")] == [1, 1, 1]

    # One that does not get on fails at last.
    monkeypatch.setattr(syncing, "_MAX_DURATION", timedelta(0))
    for name in ("a", "b", "c"):
        site.article(f"/{name}", name, "Something else.")
    source = await curator.sync(source["id"])
    assert source["error"].startswith("The sync took more than")


async def test_patterns_and_the_limit_choose_pages(curator: Curator, site: WebSite) -> None:
    names = ["help/one", "help/two", "help/three", "news/one", "help/old/one"]
    _open_shop(site, *names)
    source = await curator.add_source(
        "sitemap",
        {"url": f"{site.url}/sitemap.xml"},
        include=["/help/*"],
        exclude=["*/old/*"],
        max_documents=2,
    )
    assert source["document_count"] == 2
    assert source["last_sync"]["left_out"] == 1
    chosen = await curator.names()

    # Pages that are documents already are not replaced by others.
    _list(site, *(f"/{name}" for name in reversed(names)))
    await curator.sync(source["id"])
    assert await curator.names() == chosen


async def test_a_sitemap_lists_only_pages_of_its_own_host(curator: Curator, site: WebSite) -> None:
    _open_shop(site, "a")
    site.show(
        "/sitemap.xml",
        f"<urlset><url><loc>{site.url}/a</loc></url>"
        f"<url><loc>{site.url.replace('127.0.0.1', 'localhost')}/b</loc></url></urlset>",
        "text/xml",
    )
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert (source["document_count"], source["last_sync"]["skipped"]) == (1, 0)
    assert "/b" not in site.asked


async def test_a_sitemap_of_another_host_says_so(curator: Curator, site: WebSite) -> None:
    body = "<urlset><url><loc>https://moved.example.com/a</loc></url></urlset>"
    site.show("/sitemap.xml", body, "application/xml")
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert source["status"] == "failed"
    assert "nothing of its own host, but https://moved.example.com/a" in source["error"]


async def test_what_cannot_be_read_is_named_and_the_rest_is_read(
    curator: Curator, site: WebSite
) -> None:
    _open_shop(site, "a", "film", "broken")
    site.show("/film", b"\0" * 100, "video/mp4")
    site.pages["/broken"].status = 403
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert (source["status"], source["document_count"]) == ("ready", 1)
    assert source["last_sync"]["skipped"] == 2
    problems = {item["url"].rpartition("/")[2]: item["problem"] for item in source["problems"]}
    assert problems["broken"] == "answered with status 403"
    assert problems["film"].startswith("is video/mp4; PDF")


async def test_pages_of_one_title_have_names_of_their_own(curator: Curator, site: WebSite) -> None:
    await curator.upload(Welcome_html="<p>An uploaded page.</p>")
    site.article("/one", "Welcome", "First.")
    site.article("/two", "Welcome", "Second.")
    _list(site, "/one", "/two")
    await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert await curator.names() == ["Welcome (one).html", "Welcome (two).html", "Welcome.html"]
    uploaded = (await curator.documents(search="Welcome.html"))[0]
    assert uploaded["source_id"] is None


@pytest.mark.parametrize("vanishing", [5, 6])
async def test_a_mass_removal_waits_for_a_review(
    curator: Curator, site: WebSite, vanishing: int
) -> None:
    names = [f"page-{number}" for number in range(10)]
    _open_shop(site, *names)
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert source["document_count"] == 10
    _list(site, *(f"/{name}" for name in names[vanishing:]))
    source = await curator.sync(source["id"])
    if vanishing == 5:
        assert (source["status"], source["document_count"]) == ("ready", 5)
        return
    assert (source["status"], source["document_count"]) == ("review", 10)
    assert source["change_count"] == 6
    assert {change for change, _ in await curator.changes(source["id"])} == {"removed"}

    # They are found once, and come back by themselves.
    source = await curator.sync(source["id"])
    assert source["last_sync"]["removed"] == 0
    _list(site, *(f"/{name}" for name in names[1:]))
    source = await curator.sync(source["id"])
    assert (source["status"], source["document_count"]) == ("ready", 9)
