"""Changes that wait for a review: what is shown, applied and discarded."""

import pytest

from app.services import Services
from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import WebSite
from tests.assertions import refused
from tests.database import fetch_rows
from tests.model_server import Reply
from tests.platform.events.database import load_events
from tests.scripted_agents import Talker

_STAGED = "SELECT count(*) AS count FROM files WHERE tenant_id = $1 AND key LIKE 'files/%'"


async def _count_staged(services: Services, curator: Curator) -> int:
    (row,) = await fetch_rows(services, _STAGED, curator.client.tenant_id)
    count: int = row["count"]
    return count


async def _open_shop(curator: Curator, site: WebSite) -> str:
    """Returns a reviewed source, whose first pages are applied."""
    site.article("/a", "Apples", "Apples are red.")
    site.article("/b", "Bananas", "Bananas are yellow.")
    _list(site, "/a", "/b")
    config = {"url": f"{site.url}/sitemap.xml"}
    source = await curator.add_source("sitemap", config, apply="review")
    source_id: str = source["id"]
    assert (source["status"], source["change_count"]) == ("review", 2)
    assert await curator.documents() == []
    source = await curator.decide(source_id, "apply")
    assert (source["status"], source["document_count"]) == ("ready", 2)
    return source_id


def _list(site: WebSite, *paths: str) -> None:
    rows = "".join(f"<url><loc>{site.url}{path}</loc></url>" for path in paths)
    site.show("/sitemap.xml", f"<urlset>{rows}</urlset>", "text/xml")


async def _change_shop(curator: Curator, site: WebSite, source_id: str) -> None:
    site.article("/b", "Bananas", "Bananas are green.")
    site.article("/c", "Cherries", "Cherries are small.")
    _list(site, "/b", "/c")
    source = await curator.sync(source_id)
    assert source["status"] == "review"


async def test_what_was_found_is_shown_and_applied(
    curator: Curator, site: WebSite, services: Services
) -> None:
    source_id = await _open_shop(curator, site)
    await _change_shop(curator, site, source_id)
    assert await curator.changes(source_id) == [
        ("added", "Cherries.html"),
        ("changed", "Bananas.html"),
        ("removed", "Apples.html"),
    ]
    assert await curator.names() == ["Apples.html", "Bananas.html"]
    answer = await curator.client.get(f"{curator.sources}/{source_id}/changes?change=changed")
    (change,) = answer.json()["data"]
    (document,) = await curator.documents(search="Bananas")
    assert change["document_id"] == document["id"]
    assert change["url"] == f"{site.url}/b"

    # What the page has since is not what was reviewed.
    site.article("/c", "Cherries", "Cherries are expensive.")
    source = await curator.decide(source_id, "apply")
    assert (source["status"], source["change_count"]) == ("ready", 0)
    assert await curator.names() == ["Bananas.html", "Cherries.html"]
    assert "green" in (await curator.search("What colour are bananas?"))[0]["content"]
    assert "small" in (await curator.search("What are cherries like?"))[0]["content"]
    assert await _count_staged(services, curator) == 0

    events = await load_events(services, curator.client.tenant_id, "system.source.changes_found")
    counts = ("added", "changed", "removed")
    assert [tuple(event["data"][name] for name in counts) for event in events] == [
        (2, 0, 0),
        (1, 1, 1),
    ]
    synced = await load_events(services, curator.client.tenant_id, "system.source.synced")
    assert [tuple(event["data"][name] for name in counts) for event in synced] == [
        (2, 0, 0),
        (1, 1, 1),
    ]


async def test_a_discarded_change_is_shown_again_for_another_content_alone(
    curator: Curator, site: WebSite, services: Services
) -> None:
    source_id = await _open_shop(curator, site)
    await _change_shop(curator, site, source_id)
    source = await curator.decide(source_id, "discard")
    assert (source["status"], source["change_count"]) == ("ready", 0)
    assert await _count_staged(services, curator) == 0
    source = await curator.sync(source_id)
    assert (source["status"], source["change_count"]) == ("ready", 0)
    assert await curator.names() == ["Apples.html", "Bananas.html"]

    site.article("/b", "Bananas", "Bananas are brown.")
    await curator.sync(source_id)
    assert await curator.changes(source_id) == [("changed", "Bananas.html")]
    # A page that is there again was not removed, and one that is as it was has not changed.
    site.article("/b", "Bananas", "Bananas are yellow.")
    _list(site, "/a", "/b")
    source = await curator.sync(source_id)
    assert await curator.changes(source_id) == []
    assert await _count_staged(services, curator) == 0
    # Its next removal is another one.
    _list(site, "/b")
    await curator.sync(source_id)
    assert await curator.changes(source_id) == [("removed", "Apples.html")]


async def test_the_newest_content_replaces_one_that_waits(
    curator: Curator, site: WebSite, services: Services
) -> None:
    source_id = await _open_shop(curator, site)
    for colour in ("green", "blue"):
        site.article("/b", "Bananas", f"Bananas are {colour}.")
        source = await curator.sync(source_id)
        assert source["change_count"] == 1
    assert await _count_staged(services, curator) == 1
    await curator.decide(source_id, "apply")
    assert "blue" in (await curator.search("What colour are bananas?"))[0]["content"]


async def test_what_waits_is_applied_when_the_review_ends(
    curator: Curator, site: WebSite, services: Services
) -> None:
    source_id = await _open_shop(curator, site)
    await _change_shop(curator, site, source_id)
    path = f"{curator.sources}/{source_id}"
    await curator.client.http.patch(path, json={"apply": "automatic"})
    source = await curator.sync(source_id)
    assert (source["status"], source["change_count"]) == ("ready", 0)
    assert await curator.names() == ["Bananas.html", "Cherries.html"]
    assert await _count_staged(services, curator) == 0


@pytest.mark.usefixtures("reader")
async def test_nothing_is_decided_while_a_source_is_read(
    curator: Curator, site: WebSite, services: Services
) -> None:
    source_id = await _open_shop(curator, site)
    delay = "UPDATE document_sources SET work_id = $2 WHERE id = $1"
    work = "INSERT INTO work (id, kind, tenant_id, max_attempts, correlation_id, run_at)"
    values = "VALUES ($1, 'sources.sync', $2, 1, 'cor_1', now() + interval '1 day')"
    work_id = f"wrk_{source_id[4:]}"
    await fetch_rows(services, f"{work} {values}", work_id, curator.client.tenant_id)
    await fetch_rows(services, delay, source_id, work_id)
    for decision in ("apply", "discard"):
        answer = await curator.client.post(f"{curator.sources}/{source_id}/changes/{decision}")
        refused(answer, 409, "source_busy")
    await fetch_rows(services, "DELETE FROM work WHERE id = $1", work_id)


async def test_files_of_changes_are_deleted_with_their_source(
    curator: Curator, site: WebSite, services: Services
) -> None:
    source_id = await _open_shop(curator, site)
    await _change_shop(curator, site, source_id)
    assert await _count_staged(services, curator) == 2
    path = f"{curator.sources}/{source_id}?keep_documents=true"
    assert (await curator.client.delete(path)).status_code == 204
    assert await _count_staged(services, curator) == 0
    documents = await curator.documents()
    assert [(item["name"], item["source_id"]) for item in documents] == [
        ("Apples.html", None),
        ("Bananas.html", None),
    ]
    assert documents[0]["source_url"] == f"{site.url}/a"


async def test_files_of_changes_are_deleted_with_their_agent(
    curator: Curator, site: WebSite, services: Services
) -> None:
    source_id = await _open_shop(curator, site)
    await _change_shop(curator, site, source_id)
    assert (await curator.client.delete(curator.path)).status_code == 204
    assert await _count_staged(services, curator) == 0


async def test_an_answer_has_the_address_of_the_page(
    talk: Talker, curator: Curator, site: WebSite
) -> None:
    site.article("/hours", "Opening hours", "The shop opens at nine in the morning.")
    await curator.add_source("page", {"url": f"{site.url}/hours"})
    await curator.documents()
    talk.script(Reply(texts=["At nine [1]."]))
    reply = await talk.say("When does the shop open in the morning?")
    assert reply["sources"][0]["metadata"]["url"] == f"{site.url}/hours"
