"""What the live event log reads."""

from typing import NamedTuple

from db import fast
from db.fast import tenant_of
from db.session import Tx

# The newest events of each tenant by their types. A transaction may become visible some seconds
# after its time; of many events, the newest are enough to tell that there are some.
_NEWEST = """
SELECT e.type, count(*) AS number, max(e.id) AS last_id
FROM (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1) t CROSS JOIN LATERAL (
    SELECT type, id FROM event_log
    WHERE tenant_id = t.id AND created_at > now() - interval '20 seconds'
    ORDER BY created_at DESC LIMIT 500
) e GROUP BY e.type
"""


class Figures(NamedTuple):
    number: int
    last_id: str

    def is_newer(self, before: "Figures | None") -> bool:
        return before is None or self.last_id != before.last_id or self.number > before.number


async def read_newest(tx: Tx) -> dict[str, Figures]:
    rows = await fast.rows(tx, tenant_of(tx), _NEWEST)
    return {row["type"]: Figures(row["number"], row["last_id"]) for row in rows}
