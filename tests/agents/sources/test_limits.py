"""What an agent and its tenant may store also limits what sources take in."""

import pytest

from app.domain.agents.knowledge import uploads
from app.services import Services
from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import WebSite
from tests.database import run_sql
from tests.platform.files.api import MEGABYTE
from tests.platform.storage.counting import set_file_bytes


def _list(site: WebSite, count: int) -> None:
    rows = ""
    for number in range(count):
        site.show(f"/{number}.txt", f"This is text {number}.", "text/plain")
        rows += f"<url><loc>{site.url}/{number}.txt</loc></url>"
    site.show("/sitemap.xml", f"<urlset>{rows}</urlset>", "text/xml")


async def test_an_agent_has_a_limited_number_of_documents(
    curator: Curator, site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MAX_DOCUMENTS", 2)
    _list(site, 3)
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"})
    assert (source["status"], source["document_count"]) == ("failed", 2)
    reason = "cannot be stored: An agent has at most 2 documents; delete some first"
    assert source["error"] == f"{site.url}/2.txt {reason}"


@pytest.mark.parametrize("apply", ["automatic", "review"])
async def test_a_full_tenant_takes_nothing_in_and_goes_on_when_there_is_room(
    curator: Curator, site: WebSite, services: Services, apply: str
) -> None:
    tenant_id = curator.client.tenant_id
    _list(site, 2)
    source = await curator.add_source("sitemap", {"url": f"{site.url}/sitemap.xml"}, apply=apply)
    _list(site, 4)
    set_limit = "UPDATE tenants SET limits = limits || $2::jsonb WHERE id = $1"
    await run_sql(services, set_limit, tenant_id, '{"storage_mb": 1}')
    await set_file_bytes(services, tenant_id, MEGABYTE)
    # Nobody of a full tenant starts one; this one is due.
    due = "UPDATE document_sources SET next_sync_at = now() WHERE id = $1"
    await run_sql(services, due, source["id"])
    await curator.wait_for_failure(source["id"])
    source = await curator.source(source["id"])
    assert "The storage quota of 1 MB is used up" in source["error"]
    await set_file_bytes(services, tenant_id, 0)
    source = await curator.sync(source["id"])
    assert source["error"] is None
    assert source["document_count"] + source["change_count"] == 4
