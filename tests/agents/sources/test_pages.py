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


async def test_a_page_whose_markup_alone_differs_is_not_taken_in_again(
    curator: Curator, site: WebSite
) -> None:
    def show(nonce: int, text: str) -> None:
        site.show("/a", f"<title>A</title><script>token={nonce}</script><p>{text}</p>")

    show(1, "Bread costs three euros.")
    source = await curator.add_source("page", {"url": f"{site.url}/a"})
    changes = []
    for nonce in (2, 3, 4):
        show(nonce, "Bread costs three euros.")
        source = await curator.sync(source["id"])
        changes.append(source["last_sync"]["changed"])
    # The first difference is that of the text, as far as anybody knows.
    assert changes == [1, 0, 0]
    show(5, "Bread costs four euros.")
    assert (await curator.sync(source["id"]))["last_sync"]["changed"] == 1


def _counts(**counts: int) -> dict[str, int]:
    names = ("added", "changed", "removed", "left_out", "skipped")
    return {name: counts.get(name, 0) for name in names}
