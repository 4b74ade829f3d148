"""A page of the web as a source: taken in, kept fresh, and removed."""

from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import WebSite


async def test_a_page_becomes_a_document_that_is_kept_fresh(
    curator: Curator, site: WebSite
) -> None:
    site.article("/hours", "Opening hours", "The shop opens at nine in the morning.")
    source = await curator.add_source("page", {"url": f"{site.url}/hours"})
    assert (source["status"], source["error"]) == ("ready", None)
    assert source["last_sync"] == _counts(added=1)
    (document,) = await curator.documents()
    assert document["name"] == "Opening hours.html"
    assert document["source_id"] == source["id"]
    assert document["source_url"] == f"{site.url}/hours"
    (passage, *_) = await curator.search("When does the shop open?")
    assert "nine" in passage["content"]

    site.article("/hours", "Opening hours", "The shop opens at ten in the morning.")
    source = await curator.sync(source["id"])
    assert source["last_sync"] == _counts(changed=1)
    (changed,) = await curator.documents()
    assert changed["id"] == document["id"]
    (passage, *_) = await curator.search("When does the shop open?")
    assert "ten" in passage["content"]

    assert (await curator.client.delete(f"{curator.sources}/{source['id']}")).status_code == 204
    assert await curator.documents() == []
    assert await curator.search("When does the shop open?") == []


async def test_an_unchanged_page_is_not_read_again(curator: Curator, site: WebSite) -> None:
    site.article("/a", "A", "Bread costs three euros.")
    source = await curator.add_source("page", {"url": f"{site.url}/a"})
    (before,) = await curator.documents()
    source = await curator.sync(source["id"])
    assert "If-None-Match" in site.last_headers
    assert source["last_sync"] == _counts()
    assert await curator.documents() == [before]


def _counts(**counts: int) -> dict[str, int]:
    names = ("added", "changed", "removed", "left_out", "skipped")
    return {name: counts.get(name, 0) for name in names}
