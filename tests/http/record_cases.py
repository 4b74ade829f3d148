"""A record of every kind that a PUT or PATCH changes, each with two changes of it."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from app.services import Services
from tests.agents.definition.factories import create_agent
from tests.agents.definition.sub_agent_requests import create_direct_sub_agent
from tests.agents.tools.tool_requests import create_tool
from tests.agents.vault.factories import create_credential
from tests.automation.incoming import factories as incoming
from tests.automation.subscriptions.factories import create_subscription
from tests.automation.workflows.factories import create_workflow, transform
from tests.conversations.embed.factories import create_embed_key
from tests.data.tables.api import add_rows, create_table
from tests.database import run_sql
from tests.forms.api import create_form, submit
from tests.identity.tenants.factories import create_tenant
from tests.messaging.notifications.factories import create_channel
from tests.messaging.webhooks import factories as webhooks
from tests.world import Client, World

_PROCESSED = """
UPDATE form_submissions SET status = 'processed', processed_at = now()
WHERE tenant_id = $1 AND id = $2
"""


class Owner(msgspec.Struct):
    """The callers who may change every record: `client` is an administrator of a tenant."""

    world: World
    client: Client
    super_admin: Client

    @property
    def services(self) -> Services:
        return self.world.services


class RecordCase(msgspec.Struct):
    """`create` returns the values of the path. A path of its own reads the record."""

    method: str
    path: str
    create: Callable[[Owner], Awaitable[dict[str, str]]]
    changes: tuple[dict[str, Any], dict[str, Any]]
    read_path: str = ""
    needs_super_admin: bool = False
    # The fields that show what is changed, where it is not shown itself.
    shown_as: tuple[str, ...] = ()

    def client(self, owner: Owner) -> Client:
        return owner.super_admin if self.needs_super_admin else owner.client


async def _nothing(_owner: Owner) -> dict[str, str]:
    return {}


async def _role(_owner: Owner) -> dict[str, str]:
    return {"role": "viewer"}


async def _user(owner: Owner) -> dict[str, str]:
    return {"user_id": (await owner.world.user("viewer", owner.client.tenant_id)).user_id}


async def _tenant(owner: Owner) -> dict[str, str]:
    return {"tenant_id": (await create_tenant(owner.super_admin))["id"]}


async def _agent(owner: Owner) -> dict[str, str]:
    return {"agent_id": (await create_agent(owner.client))["id"]}


async def _draft(owner: Owner) -> dict[str, str]:
    agent = await _agent(owner)
    path = f"/api/v1/agents/{agent['agent_id']}/draft"
    assert (await owner.client.put(path, {"name": "Zero"})).status_code == 200
    return agent


async def _sub_agent(owner: Owner) -> dict[str, str]:
    agent = await _agent(owner)
    child = await create_direct_sub_agent(owner.client, agent["agent_id"])
    return {**agent, "child_id": child["id"]}


async def _embed_key(owner: Owner) -> dict[str, str]:
    agent = await _agent(owner)
    return {"key_id": (await create_embed_key(owner.client, agent["agent_id"]))["id"]}


async def _credential(owner: Owner) -> dict[str, str]:
    return {"credential_id": (await create_credential(owner.client))["id"]}


async def _document(owner: Owner) -> dict[str, str]:
    agent = await _agent(owner)
    path = f"/api/v1/agents/{agent['agent_id']}"
    files = {"files": ("hours.txt", b"The shop opens at 9.")}
    answer = await owner.client.http.post(f"{path}/train", files=files)
    assert answer.status_code < 300, answer.text
    [document] = (await owner.client.get(f"{path}/documents")).json()["data"]
    return {**agent, "document_id": document["id"]}


async def _source(owner: Owner) -> dict[str, str]:
    agent = await _agent(owner)
    body = {
        "name": "Help",
        "type": "page",
        "config": {"url": "https://example.com/help"},
        "schedule": "manual",
    }
    answer = await owner.client.post(f"/api/v1/agents/{agent['agent_id']}/sources", body)
    assert answer.status_code == 201, answer.text
    return {**agent, "source_id": answer.json()["id"]}


async def _table(owner: Owner) -> dict[str, str]:
    return {"table_id": (await create_table(owner.client))["id"]}


async def _row(owner: Owner) -> dict[str, str]:
    table = await create_table(owner.client)
    [row] = await add_rows(owner.client, table, {"email": "ann@example.com"})
    return {"table_id": table["id"], "row_id": row["id"]}


async def _tool(owner: Owner) -> dict[str, str]:
    return {"tool_id": (await create_tool(owner.client))["id"]}


async def create_attachment(owner: Owner) -> dict[str, str]:
    ids = {**await _agent(owner), **await _tool(owner)}
    path = f"/v1/agents/{ids['agent_id']}/tools"
    answer = await owner.client.post(path, {"tool_id": ids["tool_id"]})
    assert answer.status_code == 201, answer.text
    return ids


async def _subscription(owner: Owner) -> dict[str, str]:
    return {"subscription_id": (await create_subscription(owner.client))["id"]}


async def _webhook(owner: Owner) -> dict[str, str]:
    return {"webhook_id": (await webhooks.create_webhook(owner.client))["id"]}


async def _incoming(owner: Owner) -> dict[str, str]:
    return {"webhook_id": (await incoming.create_webhook(owner.client))["id"]}


async def _workflow(owner: Owner) -> dict[str, str]:
    return {"workflow_id": (await create_workflow(owner.client, [transform("a", 1)]))["id"]}


async def _form(owner: Owner) -> dict[str, str]:
    return {"form_id": (await create_form(owner.client))["id"]}


async def _submission(owner: Owner) -> dict[str, str]:
    form = await create_form(owner.client)
    submission_id = await submit(owner.client, form, {"name": "Ann"})
    await run_sql(owner.services, _PROCESSED, owner.client.tenant_id, submission_id)
    return {"form_id": form["id"], "submission_id": submission_id}


async def _view(owner: Owner) -> dict[str, str]:
    body = {"kind": "agents", "name": "One", "filters": {"b": "1", "a": "2"}}
    answer = await owner.client.post("/api/v1/views", body)
    assert answer.status_code == 201, answer.text
    return {"saved_view_id": answer.json()["id"]}


async def _channel(owner: Owner) -> dict[str, str]:
    return {"channel_id": (await create_channel(owner.client))["id"]}


def _names(name: str = "name") -> tuple[dict[str, Any], dict[str, Any]]:
    return {name: "One"}, {name: "Two"}


def _preference(*, email: bool) -> dict[str, Any]:
    return {"preferences": {"approval_requested": {"email": email}}}


_AGENTS = "/api/v1/agents/{agent_id}"
_CREDENTIAL = "/v1/credentials/{credential_id}"
_ACTIVE = ({"active": False}, {"active": True})
_ENABLED = ({"is_enabled": False}, {"is_enabled": True})

CASES = [
    RecordCase(
        "PUT",
        "/users/{user_id}/role",
        _user,
        ({"role": "agent_user"}, {"role": "agent_developer"}),
        read_path="/users/{user_id}",
    ),
    RecordCase(
        "PUT",
        "/roles/{role}/permissions",
        _role,
        ({"permissions": ["agents:read"]}, {"permissions": ["forms:read", "agents:read"]}),
        needs_super_admin=True,
    ),
    RecordCase("PUT", "/api/v1/profile", _nothing, _names("first_name")),
    RecordCase("PUT", "/api/v1/tenants/{tenant_id}", _tenant, _names(), needs_super_admin=True),
    RecordCase("PUT", _AGENTS, _agent, _names()),
    RecordCase(
        "PUT",
        f"{_AGENTS}/log-settings",
        _agent,
        ({"retention_days": 30}, {"retention_days": 31, "log_messages": False}),
    ),
    RecordCase("PUT", f"{_AGENTS}/draft", _draft, _names()),
    RecordCase("PUT", f"{_AGENTS}/sub-agents/direct/{{child_id}}", _sub_agent, _names()),
    RecordCase("PATCH", f"{_AGENTS}/sub-agents/{{child_id}}", _sub_agent, _ENABLED),
    RecordCase("PUT", "/api/v1/embed/api-keys/{key_id}", _embed_key, _names()),
    RecordCase("PUT", _CREDENTIAL, _credential, ({"metadata": {"b": 1, "a": 2}}, {"name": "Two"})),
    RecordCase(
        "PUT",
        f"{_CREDENTIAL}/secrets",
        _credential,
        ({"secrets": {"token": "planted-1"}}, {"secrets": {"token": "planted-2"}}),
        read_path=_CREDENTIAL,
        shown_as=("secrets_updated_at",),
    ),
    RecordCase(
        "PATCH",
        f"{_AGENTS}/documents/{{document_id}}",
        _document,
        ({"tags": ["b", "a"]}, {"valid_from": "2026-01-01T12:00:00+02:00"}),
    ),
    RecordCase(
        "PUT", f"{_AGENTS}/retrieval", _agent, ({"max_passages": 3}, {"complete_questions": "off"})
    ),
    RecordCase("PATCH", f"{_AGENTS}/sources/{{source_id}}", _source, _names()),
    RecordCase("PUT", "/api/v1/data-tables/{table_id}", _table, _names()),
    RecordCase("PATCH", "/api/v1/data-tables/{table_id}", _table, _names()),
    RecordCase(
        "PUT",
        "/api/v1/data-tables/{table_id}/rows/{row_id}",
        _row,
        ({"values": {"email": "b@example.com"}}, {"values": {"email": "c@example.com"}}),
    ),
    RecordCase(
        "PATCH",
        "/api/v1/data-tables/{table_id}/rows/{row_id}",
        _row,
        ({"values": {"score": 1.5}}, {"values": {"extra": {"b": 1, "a": [1.0, 2]}}}),
    ),
    RecordCase(
        "PUT", "/v1/tools/{tool_id}", _tool, ({"name": "One"}, {"config": {"timeout_ms": 4000}})
    ),
    RecordCase("PATCH", "/v1/agents/{agent_id}/tools/{tool_id}", create_attachment, _ENABLED),
    RecordCase(
        "PUT",
        f"{_AGENTS}/websearch/config",
        _agent,
        ({"max_results": 3}, {"max_results": 4, "safe_search": False}),
    ),
    RecordCase("PUT", "/api/v1/event-subscriptions/{subscription_id}", _subscription, _ACTIVE),
    RecordCase("PUT", "/api/v1/webhooks/{webhook_id}", _webhook, _names("description")),
    RecordCase("PUT", "/api/v1/incoming-webhooks/{webhook_id}", _incoming, _ACTIVE),
    RecordCase(
        "PUT",
        "/api/v1/workflows/{workflow_id}",
        _workflow,
        ({"nodes": [transform("b", {"z": 1, "a": 1.0})]}, {"name": "Two"}),
    ),
    RecordCase(
        "PUT",
        "/api/v1/forms/{form_id}",
        _form,
        (
            {"settings": {"closes_at": "2030-01-01T12:00:00+02:00"}},
            {"fields": [{"id": "a", "type": "text", "label": "A"}]},
        ),
    ),
    RecordCase(
        "PATCH",
        "/api/v1/forms/{form_id}/submissions/{submission_id}",
        _submission,
        ({"status": "archived"}, {"status": "processed"}),
    ),
    RecordCase(
        "PUT",
        "/api/v1/views/{saved_view_id}",
        _view,
        ({"filters": {"a": "2"}}, {"name": "Two", "is_shared": True}),
    ),
    RecordCase("PUT", "/api/v1/notification-channels/{channel_id}", _channel, _names()),
    RecordCase(
        "PUT",
        "/api/v1/notifications/preferences",
        _nothing,
        (_preference(email=False), _preference(email=True)),
    ),
]
