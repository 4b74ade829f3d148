"""What servers of sources are asked for: robots.txt, redirects, pauses, secrets and failures."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from app.domain.agents.sources.web import USER_AGENT
from app.kit import clock
from app.services import Services
from tests.agents.sources.curator import Curator
from tests.agents.sources.sample_archives import pack_tar
from tests.agents.sources.web_site import WebSite
from tests.agents.tools.site import open_site, respond_with
from tests.assertions import refused
from tests.database import fetch_rows
from tests.platform.events.database import load_events


async def _add_page(curator: Curator, site: WebSite, path: str, **fields: Any) -> dict[str, Any]:
    return await curator.add_source("page", {"url": f"{site.url}{path}"}, **fields)


async def test_the_client_names_itself(curator: Curator, site: WebSite) -> None:
    site.article("/a", "A", "Apples are red.")
    await _add_page(curator, site, "/a")
    assert "Parley" in USER_AGENT
    assert site.last_headers["User-Agent"] == USER_AGENT


async def test_robots_txt_is_obeyed(curator: Curator, site: WebSite) -> None:
    site.article("/private/a", "A", "Apples are red.")
    site.show("/robots.txt", "User-agent: parley\nDisallow: /private\n", "text/plain")
    source = await _add_page(curator, site, "/private/a")
    assert source["status"] == "failed"
    assert "robots.txt" in source["error"]
    assert site.asked == []


async def test_a_site_whose_robots_txt_fails_is_not_read(curator: Curator, site: WebSite) -> None:
    site.article("/a", "A", "Apples are red.")
    site.show("/robots.txt", "", "text/plain")
    site.pages["/robots.txt"].status = 500
    source = await _add_page(curator, site, "/a")
    assert source["error"].endswith("/robots.txt answered with status 500")
    assert site.asked == []


async def test_each_hop_of_a_redirect_is_checked(curator: Curator, site: WebSite) -> None:
    targets = {
        "/private": ("http://10.0.0.1/", "not a public address"),
        "/metadata": ("http://169.254.169.254/latest/", "not a public address"),
        "/file": ("file:///etc/passwd", "http:// or https://"),
        "/loop": ("/loop", "redirected too often"),
        "/forbidden": ("/not-for-us", "robots.txt"),
    }
    site.show("/robots.txt", "User-agent: *\nDisallow: /not-for-us\n", "text/plain")
    for path, (target, reason) in targets.items():
        site.show(path, "")
        site.pages[path].status = 302
        site.pages[path].headers = {"Location": target}
        source = await _add_page(curator, site, path)
        assert reason in source["error"], path
    site.article("/new", "New", "Apples are red.")
    site.show("/old", "")
    site.pages["/old"].status = 301
    site.pages["/old"].headers = {"Location": "/new"}
    source = await _add_page(curator, site, "/old")
    assert (source["status"], source["error"]) == ("ready", None)
    (document,) = await curator.documents()
    assert document["source_url"] == f"{site.url}/old"


@pytest.mark.parametrize("seconds", [3600, None])
async def test_a_server_that_wants_a_pause_gets_it(
    curator: Curator, site: WebSite, seconds: int | None
) -> None:
    site.article("/a", "A", "Apples are red.")
    site.pages["/a"].status = 429
    if seconds is not None:
        site.pages["/a"].headers = {"Retry-After": str(seconds)}
    source = await _add_page(curator, site, "/a", schedule="hourly")
    assert (source["status"], source["failed_count"]) == ("retrying", 1)
    assert "too many requests" in source["error"]
    assert len(site.asked) == 1
    answer = await curator.client.post(f"{curator.sources}/{source['id']}/sync")
    refused(answer, 409, "source_busy")
    if seconds is not None:
        next_sync_at = datetime.fromisoformat(source["next_sync_at"])
        assert next_sync_at > clock.now() + timedelta(seconds=seconds - 60)


async def test_a_short_pause_is_waited_for(curator: Curator) -> None:
    statuses = [503, 503]

    async def respond(request: web.Request) -> web.StreamResponse:
        if request.path != "/robots.txt" and statuses:
            return web.Response(status=statuses.pop(), headers={"Retry-After": "0"})
        return web.Response(text="Apples are red.")

    async with open_site() as site:
        site.handler = respond
        source = await curator.add_source("page", {"url": f"{site.url}/a.txt"})
        assert (source["status"], source["error"]) == ("ready", None)


async def test_several_failures_in_a_row_are_reported_once(
    curator: Curator, site: WebSite, services: Services
) -> None:
    source = await _add_page(curator, site, "/a", schedule="hourly")
    states = [(source["status"], source["failed_count"])]
    for _ in range(3):
        source = await curator.sync(source["id"])
        states.append((source["status"], source["failed_count"]))
    assert states == [("retrying", 1), ("retrying", 2), ("failed", 3), ("failed", 4)]
    assert source["error"] == f"{site.url}/a answered with status 404"
    (event,) = await load_events(services, curator.client.tenant_id, "system.source.failed")
    assert (event["data"]["failed_count"], event["data"]["error"]) == (3, source["error"])
    assert event["data"]["owner_id"] == curator.client.user_id
    site.article("/a", "A", "Apples are red.")
    source = await curator.sync(source["id"])
    assert (source["status"], source["failed_count"], source["error"]) == ("ready", 0, None)


async def test_a_server_that_keeps_failing_is_left_alone(curator: Curator, site: WebSite) -> None:
    rows = "".join(f"<url><loc>{site.url}/{number}</loc></url>" for number in range(20))
    site.show("/sitemap.xml", f"<urlset>{rows}</urlset>", "text/xml")
    for number in range(20):
        site.show(f"/{number}", "")
        site.pages[f"/{number}"].status = 500
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert source["status"] == "failed"
    assert len(site.asked) == 6


async def test_headers_of_a_hostile_server_do_no_harm(curator: Curator) -> None:
    """Bytes that are no text, and validators that are too long to be sent back."""
    answers = {
        "/a.txt": b"ETag: \xff\xfe\r\nLast-Modified: " + b"a" * 4000,
        "/b": b"Content-Type: image/\xff\xfe",
        "/c": b"Location: http://\xff\xfe/\r\nContent-Type: text/html",
    }

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        status = {"/c": b"302 Found", "/robots.txt": b"404 Not Found"}.get(path, b"200 OK")
        head = b"HTTP/1.1 " + status + b"\r\nConnection: close\r\nContent-Length: 5\r\n"
        writer.write(head + answers.get(path, b"X: x") + b"\r\n\r\nHello")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        source = await curator.add_source("page", {"url": f"{url}/a.txt"})
        assert (source["status"], source["error"]) == ("ready", None)
        assert (await curator.sync(source["id"]))["last_sync"]["changed"] == 0
        for path, reason in (("/b", "is image/??"), ("/c", "is redirected to what is not")):
            source = await curator.add_source("page", {"url": f"{url}{path}"})
            assert source["failed_count"] == 1
            assert reason in source["error"]


async def test_large_pages_are_not_read(
    curator: Curator, site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.agents.sources.jobs._MEGABYTE", 10)
    site.show("/large", "<p>" + "a" * 1000)
    source = await _add_page(curator, site, "/large")
    assert "is larger than" in source["error"]


async def test_a_token_goes_to_its_own_server_alone(curator: Curator, site: WebSite) -> None:
    async with open_site() as other:
        other.handler = respond_with(pack_tar({"a.txt": b"Apples are red."}))
        site.show("/main", "")
        site.pages["/main"].status = 302
        site.pages["/main"].headers = {"Location": f"{other.url}/packed"}
        source = await curator.add_source(
            "git_archive",
            {"url": f"{site.url}/main", "header": "X-Token"},
            secrets={"token": "hidden-0123"},
        )
        assert (source["error"], source["document_count"]) == (None, 1)
        assert site.last_headers["X-Token"] == "hidden-0123"
        assert "X-Token" not in other.last.headers


async def test_sources_that_are_due_are_synced(
    curator: Curator, site: WebSite, services: Services
) -> None:
    site.article("/a", "A", "Apples are red.")
    source = await _add_page(curator, site, "/a", schedule="weekly")
    due_in = datetime.fromisoformat(source["next_sync_at"]) - clock.now()
    assert timedelta(days=6) < due_in <= timedelta(days=7)
    site.article("/a", "A", "Apples are green.")
    make_due = "UPDATE document_sources SET next_sync_at = now() WHERE id = $1"
    await fetch_rows(services, make_due, source["id"])
    await curator.wait_for_count(source["id"], "changed", 1)
