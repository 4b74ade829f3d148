"""Feeds as sources: the pages of their entries, or what the feed has of them."""

from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import WebSite


def _rss(site: WebSite, *entries: tuple[str, str]) -> None:
    items = "".join(
        f"<item><title>{title}</title><link>{site.url}/{title.lower()}</link>"
        f"<description>&lt;p&gt;{text}&lt;/p&gt;</description></item>"
        for title, text in entries
    )
    site.show("/feed", f"<rss><channel>{items}</channel></rss>", "application/rss+xml")


async def test_entries_of_rss_lead_to_pages(curator: Curator, site: WebSite) -> None:
    _rss(site, ("Ovens", "Short."), ("Mills", "Short."))
    site.article("/ovens", "Ovens of the shop", "An oven weighs forty kilograms.")
    site.article("/mills", "Mills of the shop", "A mill weighs two kilograms.")
    source = await curator.add_source("feed", {"url": f"{site.url}/feed"})
    assert (source["error"], source["document_count"]) == (None, 2)
    assert await curator.names() == ["Mills.html", "Ovens.html"]
    assert "forty" in (await curator.search("How heavy is an oven?"))[0]["content"]


async def test_the_feed_itself_has_the_contents(curator: Curator, site: WebSite) -> None:
    _rss(site, ("Ovens", "An oven weighs forty kilograms."))
    config = {"url": f"{site.url}/feed", "content": "entries"}
    source = await curator.add_source("feed", config)
    assert "forty" in (await curator.search("How heavy is an oven?"))[0]["content"]
    assert site.asked == ["/feed"]
    _rss(site, ("Ovens", "An oven weighs fifty kilograms."))
    source = await curator.sync(source["id"])
    assert source["last_sync"]["changed"] == 1
    (document,) = await curator.documents()
    assert document["source_url"] == f"{site.url}/ovens"


async def test_entries_of_atom_have_links_and_xhtml(curator: Curator, site: WebSite) -> None:
    site.show(
        "/atom",
        f"""<?xml version="1.0"?>
        <feed xmlns="http://www.w3.org/2005/Atom"><entry>
          <title type="text">Ovens &amp; mills</title><id>tag:example.com,2026:1</id>
          <link rel="edit" href="{site.url}/edit"/><link href="/ovens"/>
          <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>An oven weighs
          <b>forty</b> kilograms.</p></div></content>
        </entry></feed>""",
        "application/atom+xml",
    )
    await curator.add_source("feed", {"url": f"{site.url}/atom", "content": "entries"})
    (document,) = await curator.documents()
    assert document["name"] == "Ovens & mills.html"
    assert document["source_url"] == f"{site.url}/ovens"
    assert "forty" in (await curator.search("How heavy is an oven?"))[0]["content"]


async def test_entries_that_leave_the_feed_stay_up_to_the_limit(
    curator: Curator, site: WebSite
) -> None:
    config = {"url": f"{site.url}/feed", "content": "entries"}
    _rss(site, ("One", "First."), ("Two", "Second."))
    source = await curator.add_source("feed", config, max_documents=3)
    _rss(site, ("Three", "Third."))
    source = await curator.sync(source["id"])
    assert await curator.names() == ["One.html", "Three.html", "Two.html"]
    _rss(site, ("Four", "Fourth."))
    source = await curator.sync(source["id"])
    assert source["last_sync"]["removed"] == 1
    assert len(await curator.names()) == 3
    assert "Four.html" in await curator.names()
