"""A worker is killed while it syncs a source: the next one goes on with the rest."""

from collections import Counter

import pytest

from app.services import Services
from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import open_web_site
from tests.assertions import until
from tests.faults.instance import fetch_value
from tests.processes import Processes
from tests.running_worker import run_worker
from tests.stores import Stores
from tests.world import World

WORKER = ("-m", "app.cli", "worker", "--queues", "sources")
PAGES = 12
_AGENT = {"name": "Library", "primary_model": "local/smollm2", "system_prompt": "Help."}

pytestmark = pytest.mark.timeout(180)


async def test_a_sync_goes_on_after_its_worker_was_killed(
    own_world: World, own_stores: Stores, own_services: Services, processes: Processes
) -> None:
    client = await own_world.user()
    agent = (await client.post("/api/v1/agents", _AGENT)).json()
    curator = Curator(client, agent["id"])
    async with open_web_site() as site:
        rows = ""
        for number in range(PAGES):
            site.article(f"/{number}", f"Page {number}", f"This is page {number}.")
            rows += f"<url><loc>{site.url}/{number}</loc></url>"
        site.show("/sitemap.xml", f"<urlset>{rows}</urlset>", "text/xml")
        worker = processes.python(*WORKER)
        source = await curator.create("sitemap", {"url": f"{site.url}/sitemap.xml"})
        await until(lambda: len(site.asked) > PAGES // 2, seconds=60)
        processes.kill(worker)
        async with run_worker(own_stores.settings, "sources", slots=2):
            source = await curator.wait_for_sync(source["id"])
        asked = Counter(site.asked)
    assert (source["status"], source["document_count"]) == ("ready", PAGES)
    # A page that was being read when the worker died is read twice, or counted by neither.
    assert source["last_sync"]["added"] in {PAGES - 1, PAGES}
    assert sum(asked[f"/{number}"] for number in range(PAGES)) <= PAGES + 1
    sql = "SELECT count(*) FROM work WHERE kind = 'sources.sync' AND state = 'done'"
    assert await fetch_value(own_services, sql) == 1
