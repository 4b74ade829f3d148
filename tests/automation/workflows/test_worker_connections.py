"""Connections of a worker to Redis."""

from app.jobs.work import QUEUES
from app.services import Services
from tests.assertions import wait_until
from tests.running_worker import run_worker
from tests.stores import Stores


async def test_a_worker_of_all_queues_waits_for_work_with_few_connections(
    services: Services, stores: Stores
) -> None:
    async def count_waiting_clients() -> int:
        return int((await services.redis.info("clients"))["blocked_clients"])

    before = await count_waiting_clients()
    async with run_worker(stores.settings, *QUEUES):

        async def is_each_queue_waited_for() -> bool:
            return await count_waiting_clients() - before >= len(QUEUES)

        await wait_until(is_each_queue_waited_for)
        assert await count_waiting_clients() - before <= 4 * len(QUEUES)
