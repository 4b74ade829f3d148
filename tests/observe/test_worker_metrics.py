"""The metrics of a worker process that has run work."""

import httpx

from app.domain.platform.files.maintenance import SWEEP
from app.jobs import work
from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import wait_until
from tests.http_clients import open_client
from tests.observe.formats import check_openmetrics, check_prometheus
from tests.ports import free_port
from tests.processes import Processes
from tests.stores import Stores


async def test_the_metrics_of_a_worker_count_its_work_in_both_formats(
    services: Services, stores: Stores
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await work.accept(tx, SWEEP, tenant_id=None, dedupe_key="metrics of a worker")
    processes, port = Processes(stores.settings), str(free_port())
    url = f"http://127.0.0.1:{port}/metrics"
    processes.python("-m", "app.cli", "worker", "--queues", "default", "--metrics-port", port)
    try:
        async with open_client() as client:

            async def has_worked() -> bool:
                try:
                    return "parley_work_seconds_count" in (await client.get(url)).text
                except httpx.TransportError:
                    return False

            await wait_until(has_worked)
            check_prometheus(await client.get(url))
            accept = {"accept": "application/openmetrics-text; version=1.0.0"}
            families = check_openmetrics(await client.get(url, headers=accept))
    finally:
        processes.close()
    seconds = families["parley_work_seconds"]
    assert (seconds.type, seconds.unit) == ("histogram", "seconds")
    outcomes = {tuple(sample.labels.items()) for sample in families["parley_work"].samples}
    assert (("kind", SWEEP.name), ("outcome", "done")) in outcomes
