"""The depth of events that a statement records together with its own rows."""

from app.domain.agents.definition.events import AgentDeleted
from app.domain.platform.events import api as events
from app.kit import trace
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.services import Services
from db import fast
from tests.platform.events.database import load_events
from tests.world import Client

_EMIT = f"WITH {events.emission_sql('$2')} SELECT {events.ROUTED} WHERE $1::text IS NOT NULL"


async def test_a_request_of_a_chain_keeps_the_depth_of_another_tenant(
    developer: Client, services: Services
) -> None:
    trace.begin(Trace(new_id("cor"), depth=5))
    encoded = events.encode_events([AgentDeleted("agt_1", "A")], tenant_id=developer.tenant_id)
    async with services.db.tx(developer.tenant_id) as tx:
        await fast.row(tx, developer.tenant_id, _EMIT, encoded)
    stored = await load_events(services, developer.tenant_id, "agent.deleted")
    assert [event["depth"] for event in stored] == [5]
