"""Every route and every kind of work, with the largest legal definitions and bodies: no step holds
the event loop for long, and no request takes much memory.
"""

import gc
import sys
from typing import Final

import pytest

from app.areas import AREAS
from app.jobs.work import QUEUES
from app.kit import memory
from tests.loop.driver import Driver
from tests.loop.multiplied import multiply_rows
from tests.loop.steps import watched_tasks
from tests.loop.tour import Tour
from tests.model_server import ModelServer
from tests.running_worker import cancel_earlier_work, run_worker
from tests.scripted_agents import PROVIDER, give_key
from tests.stores import Stores
from tests.world import World

# Definitions that are above the limits still, by route. None should be here.
_EXCEEDING: Final[set[tuple[str, str]]] = set()
# Routes that refuse every request here, with the reason.
_REFUSED: Final = {
    "POST /auth/reset-password": "needs the token of a mail",
    "POST /auth/verify-email": "needs the token of a mail",
    "POST /auth/invitations/look-up": "needs the token of a mail",
    "POST /auth/links/look-up": "needs the token of a mail",
    "POST /auth/verify-email/resend": "the address is verified already",
    "POST /api/v1/public/form-recipients/confirm": "needs the token of a mail",
    "POST /api/v1/public/approvals/look-up": "needs the token of a mail",
    "POST /api/v1/public/approvals/decide": "needs the token of a mail",
    "POST /auth/mfa/verify": "needs a code of the moment",
    "POST /auth/console/session/mfa": "needs a code of the moment",
    "POST /auth/console/session/refresh": "needs a cookie of the browser",
    "POST /api/v1/mfa/disable": "needs a code of the moment",
    "POST /api/v1/mfa/enable": "needs a code of the moment",
    "POST /api/v1/mfa/recovery-codes": "needs a second factor",
    "DELETE /api/v1/mfa/devices/{device_id}": "needs a second factor",
    "DELETE /auth/sessions/{session_id}": "each request has a session of its own",
    "GET /api/v1/avatars/{key}": "the key is in an address",
    "POST /api/v1/agents/{agent_id}/draft/publish": "the draft is stored later",
    "GET /api/v1/conversations/{conversation_id}/messages/{message_id}/context": "for answers",
    "POST /api/v1/agents/{agent_id}/sub-agents/attach": "needs a second agent",
    "DELETE /api/v1/agents/{agent_id}/chat/jobs/{job_id}": "the job has ended",
    "POST /api/v1/agents/{agent_id}/chat/audio": "needs a recording",
    "POST /api/v1/public/agents/{agent_id}/chat/audio": "needs a recording",
    "POST /v1/audio/transcriptions": "needs a recording",
    "GET /api/v1/public/agents/{agent_id}/conversations": "needs a visitor's token",
    "GET /api/v1/public/agents/{agent_id}/session": "needs a visitor's token",
    "POST /api/v1/public/agents/{agent_id}/messages/{message_id}/feedback": "needs such a token",
    "POST /api/v1/public/agents/{agent_id}/attachments": "needs such a token",
    "POST /api/v1/conversations/{conversation_id}/messages/{message_id}/feedback": "for answers",
    "DELETE /api/v1/embed/api-keys": "the id is in the query",
    "DELETE /api/v1/agents/{agent_id}/documents/{document_id}": "deleted with its agent",
    "POST /api/v1/data-tables/{table_id}/imports/{import_id}/cancel": "the import has ended",
    "POST /v1/tools/{tool_id}/discover": "needs an MCP server",
    "POST /api/v1/workflow-executions/{execution_id}/cancel": "the execution has ended",
    "POST /api/v1/workflow-executions/{execution_id}/retry": "the execution has not failed",
    "GET /api/v1/forms/{form_id}/files/{file_id}": "needs a form with a file",
    "POST /api/v1/public/forms/{slug}/upload": "needs a form with a file",
    "GET /api/v1/public/forms/{slug}/drafts": "the token is in a header",
    "POST /api/v1/notifications/test": "needs a provider that answers",
    "POST /api/v1/approvals/{approval_id}/reject": "it is approved already",
}
# Work that no request causes at once, or only now and then.
_LATER_WORK: Final = {
    "approvals.expire",
    "chat.report_cancelled",
    "files.sweep",
    "forms.digest",
    "forms.erase",
    "knowledge.drop_table",
    "knowledge.maintain",
    "knowledge.refine",
    "knowledge.sweep",
    "notifications.digest",
    "tools.report_deleted",
    "workflows.fail_start",
    "workflows.start",
    "workflows.stop",
}


@pytest.fixture
def _collected_garbage() -> None:
    """What other tests left is not collected while this one measures."""
    gc.collect()
    memory.tune_gc()


async def _create_driver(world: World, models: ModelServer) -> Driver:
    client = await world.user("super_admin")
    other = await world.user("viewer", client.tenant_id)
    await give_key(client, models)
    ids = {
        "me": client.user_id,
        "tenant_id": client.tenant_id,
        "user_id": other.user_id,
        "login_email": other.email,
        "refresh_token": other.refresh_token,
        "model": f"{PROVIDER}/largest",
        "role": "viewer",
        "event_type": "agent.created",
        "channel_type": "email",
        "version": "1",
        "other": "2",
        "from_version": "1",
        "to_version": "2",
    }
    return Driver(world, client, ids)


async def _go(tour: Tour) -> None:
    await tour.create()
    await tour.publish()
    await tour.use()
    await tour.change()
    await tour.find_ids()
    await multiply_rows(tour.driver.world.services, tour.driver.client.tenant_id)
    await tour.read()
    await tour.end()
    await tour.delete()


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("_collected_garbage", "restored_grants")
async def test_the_largest_definitions_hold_nobody_up(
    product: World, stores: Stores, models: ModelServer, subtests: pytest.Subtests
) -> None:
    await cancel_earlier_work(stores)
    driver = await _create_driver(product, models)
    tour = Tour(driver, _EXCEEDING)
    with watched_tasks():
        async with run_worker(stores.settings, *QUEUES):
            await _go(tour)
    slowest = sorted(driver.costs, key=lambda cost: -cost.seconds)
    sys.stdout.write("\n".join(map(str, slowest[:10])))
    with subtests.test("steps and memory"):
        assert [str(cost) for cost in slowest if not cost.is_allowed] == []
    with subtests.test("every route answers"):
        refused = {
            route
            for route, statuses in tour.statuses.items()
            if not any(status < 400 for status in statuses)
        }
        assert refused - set(_REFUSED) == set()
    with subtests.test("every kind of work runs"):
        kinds = {name.removeprefix("work ") for name in driver.steps if name.startswith("work ")}
        assert set(AREAS.work_kinds) - kinds - _LATER_WORK == set()
