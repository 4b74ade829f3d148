"""Selects due work that has a lane, within the limits of lanes and tenants.

Nothing is written or locked here: `db/ledger.py` claims what is selected, and work beyond the
limits is not touched.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

LANES_PER_SCAN: Final = 1000
_MAX_EXPIRED = 1000


class Capacity(msgspec.Struct, frozen=True):
    """How many jobs run in this process by lane and by tenant, and the limits of both."""

    lanes: Mapping[str, int]
    tenants: Mapping[str, int]
    per_lane: int
    per_tenant: int

    @property
    def full_lanes(self) -> list[str]:
        return [lane for lane, count in self.lanes.items() if count >= self.per_lane]

    @property
    def full_tenants(self) -> list[str]:
        return [tenant for tenant, count in self.tenants.items() if count >= self.per_tenant]


# Steps from lane to lane through the index, so that a lane with a million rows costs as much as one
# with ten. A scan reads `$9` lanes of the kind `$7` that follow lane `$8`. Tenants with little
# running work come before tenants with much. Work whose lease expired is due from then on, so that
# work that stops its worker does not overtake all other.
_LIVE = "kind = $7 AND lane IS NOT NULL AND state IN ('pending', 'leased')"
CANDIDATES: Final = f"""
waiting AS (
    SELECT (SELECT min(run_at) FROM work
            WHERE kind = $7 AND state = 'pending' AND lane IS NOT NULL) <= now()
        OR (SELECT min(lease_until) FROM work WHERE state = 'leased') < now() AS has_work
), lanes AS (
    (SELECT lane, tenant_id, 1 AS number FROM work
     WHERE {_LIVE} AND lane > $8 AND (SELECT has_work FROM waiting) ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT next.lane, next.tenant_id, lanes.number + 1 FROM lanes CROSS JOIN LATERAL (
        SELECT lane, tenant_id FROM work WHERE {_LIVE} AND lane > lanes.lane ORDER BY lane LIMIT 1
    ) next WHERE lanes.number < $9
), free AS (
    SELECT lane, least($5 - coalesce(of_lane.count, 0), $6 - coalesce(of_tenant.count, 0)) AS slots
    FROM lanes LEFT JOIN unnest($3::text[], $4::int[]) AS of_lane(lane, count) USING (lane)
    LEFT JOIN unnest($10::text[], $11::int[]) AS of_tenant(tenant_id, count) USING (tenant_id)
), expired AS MATERIALIZED (
    SELECT id, tenant_id, lane, lease_until FROM work
    WHERE state = 'leased' AND lease_until < now() AND kind = $7 AND lane IS NOT NULL
    ORDER BY lease_until LIMIT {_MAX_EXPIRED}
), due AS (
    SELECT pending.id, tenant_id, lane, run_at AS due_at, slots
    FROM free CROSS JOIN LATERAL (
        SELECT id, tenant_id, run_at FROM work
        WHERE {_LIVE} AND lane = free.lane AND state = 'pending' AND run_at <= now()
        ORDER BY run_at LIMIT free.slots
    ) pending WHERE slots > 0
    UNION ALL
    SELECT id, tenant_id, lane, lease_until, slots FROM expired JOIN free USING (lane)
), in_lane AS (
    SELECT *, row_number() OVER (PARTITION BY lane ORDER BY due_at, id) AS lane_rank FROM due
), ranked AS (
    SELECT id, due_at, row_number() OVER (PARTITION BY tenant_id ORDER BY due_at, id)
           + coalesce(of_tenant.count, 0) AS tenant_rank
    FROM in_lane LEFT JOIN unnest($10::text[], $11::int[]) AS of_tenant(tenant_id, count)
      USING (tenant_id)
    WHERE lane_rank <= slots
), candidates AS (
    SELECT id, due_at, tenant_rank FROM ranked WHERE tenant_rank <= $6
)"""
