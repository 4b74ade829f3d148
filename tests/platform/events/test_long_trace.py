"""A trace with too much data omits the data of its last entries."""

from typing import Any

from app.kit.ids import new_id
from app.services import Services
from tests.database import run_sql
from tests.world import Client

_INSERT = """
INSERT INTO event_log (tenant_id, id, type, correlation_id, data)
SELECT $1, 'evt_' || lpad(n::text, 26, '0'), 'system.test', $2,
       jsonb_build_object('note', repeat('x', 60000))
FROM generate_series(1, 100) n
ON CONFLICT DO NOTHING
"""


async def test_data_beyond_four_mebibytes_is_omitted(developer: Client, services: Services) -> None:
    correlation_id = new_id("cor")
    await run_sql(services, _INSERT, developer.tenant_id, correlation_id)
    answer = await developer.get(f"/api/v1/event-log/trace/{correlation_id}")
    assert answer.status_code == 200
    assert len(answer.content) < 5 * 1024 * 1024
    entries: list[dict[str, Any]] = answer.json()["data"]
    assert len(entries) == 100
    assert "omitted" not in entries[0]
    assert (entries[-1]["omitted"], entries[-1]["data"]) == (True, {})
    entry = await developer.get(f"/api/v1/event-log/{entries[-1]['id']}")
    assert len(entry.json()["data"]["note"]) == 60_000
    assert "omitted" not in entry.json()
