"""Connections of a worker to Redis."""

from app.kit.work import QUEUES
from app.services import Services
from tests.asking import wait_until
from tests.running_worker import run_worker
from tests.stores import Stores
from workers.main import CONCURRENCY


async def test_a_worker_of_all_queues_has_a_connection_for_every_slot(
    services: Services, stores: Stores
) -> None:
    async def count_waiting_clients() -> int:
        return int((await services.redis.info("clients"))["blocked_clients"])

    slots = sum(CONCURRENCY[queue] for queue in QUEUES)
    before = await count_waiting_clients()
    async with run_worker(stores.settings, *QUEUES):

        async def is_each_slot_waiting() -> bool:
            return await count_waiting_clients() - before >= slots

        await wait_until(is_each_slot_waiting)
