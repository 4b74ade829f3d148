"""What happens to a source while it is read."""

import asyncio

from aiohttp import web

from app.services import Services
from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import WebSite
from tests.agents.tools.site import open_site
from tests.assertions import until, wait_until
from tests.database import fetch_rows


async def test_a_source_is_read_once_at_a_time(curator: Curator, site: WebSite) -> None:
    site.article("/a", "A", "Apples are red.")
    source = await curator.add_source("page", {"url": f"{site.url}/a"})
    site.forget()
    path = f"{curator.sources}/{source['id']}/sync"
    site.may_answer.clear()
    answers = await asyncio.gather(*(curator.client.post(path) for _ in range(6)))
    assert {answer.status_code for answer in answers} == {202}
    site.may_answer.set()
    source = await curator.wait_for_sync(source["id"])
    assert site.asked == ["/a"]


async def test_a_source_that_is_deleted_while_it_is_read_leaves_nothing(
    curator: Curator, services: Services
) -> None:
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def respond(request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/sitemap.xml":
                locs = "".join(f"<url><loc>{site.url}/{n}.txt</loc></url>" for n in range(3))
                return web.Response(text=f"<urlset>{locs}</urlset>", content_type="text/xml")
            case "/robots.txt":
                return web.Response(status=404)
            case "/1.txt":
                is_asked.set()
                await may_answer.wait()
        return web.Response(text="Some words.")

    async with open_site() as site:
        site.handler = respond
        source = await curator.create("sitemap", {"url": f"{site.url}/sitemap.xml"})
        await asyncio.wait_for(is_asked.wait(), 30)
        assert len(await curator.names()) == 1
        answer = await curator.client.delete(f"{curator.sources}/{source['id']}")
        assert answer.status_code == 204
        may_answer.set()
        sql = "SELECT state FROM work WHERE ref_id = $1 AND state IN ('pending', 'leased')"

        async def has_ended() -> bool:
            return not await fetch_rows(services, sql, source["id"])

        await wait_until(has_ended)
        await until(lambda: len(site.requests) >= 4)
    assert await curator.names() == []
    rows = await fetch_rows(
        services, "SELECT 1 FROM source_entries WHERE tenant_id = $1", curator.client.tenant_id
    )
    assert rows == []


async def test_a_change_and_a_sync_at_once_both_happen(curator: Curator, site: WebSite) -> None:
    locs = ""
    for number in range(12):
        site.article(f"/{number}", f"Page {number}", f"This is page {number}.")
        locs += f"<url><loc>{site.url}/{number}</loc></url>"
    site.show("/sitemap.xml", f"<urlset>{locs}</urlset>", "text/xml")
    source = await curator.create("sitemap", {"url": f"{site.url}/sitemap.xml"})
    path = f"{curator.sources}/{source['id']}"
    statuses = []
    for number in range(12):
        body = {"document": {"tags": [f"tag-{number}"]}, "schedule": "weekly"}
        statuses.append((await curator.client.http.patch(path, json=body)).status_code)
    assert set(statuses) == {200}
    source = await curator.wait_for_sync(source["id"])
    assert (source["error"], source["document_count"]) == (None, 12)
    assert {tuple(item["tags"]) for item in await curator.documents()} == {("tag-11",)}
    assert (source["schedule"], source["next_sync_at"] is None) == ("weekly", False)
