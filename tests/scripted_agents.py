"""Agents that use a scripted model, created without the HTTP API."""

import itertools
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from app.domain.agents.llm import keys
from app.kit.ids import new_id
from tests.database import fetch_rows
from tests.model_server import ModelServer, Reply
from tests.world import Client, World

PROVIDER = "scripted"
_API_KEY = "sk-scripted-0123456789"
_number = itertools.count(1)
# Rows in place of two requests, since many tests begin with them.
_INSERT_KEY = """
    INSERT INTO provider_keys
        (tenant_id, id, provider, name, api_key, key_hint, base_url, is_default)
    VALUES ($1, $2, 'scripted', 'Scripted', $3, '…6789', $4, true)
    ON CONFLICT DO NOTHING
"""
_INSERT_AGENT = """
    WITH agent AS (INSERT INTO agents ({columns}) {values} RETURNING *)
    INSERT INTO agent_versions (tenant_id, id, agent_id, version, primary_model, system_prompt,
        temperature, max_tokens, created_by)
    SELECT tenant_id, $2, id, version, primary_model, system_prompt, temperature, max_tokens, $3
    FROM agent
"""


class Talker(msgspec.Struct):
    """A user, one of their agents, and the script of its model."""

    client: Client
    agent_id: str
    model: str
    models: ModelServer
    world: World

    @property
    def path(self) -> str:
        return f"/api/v1/agents/{self.agent_id}"

    def script(self, *replies: Reply) -> None:
        self.models.script(self.model, *replies)

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The requests that the model has received."""
        return self.models.asked(self.model)

    async def say(self, message: str, **more: Any) -> dict[str, Any]:
        """Sends a message to the agent and returns its reply."""
        answer = await self.client.post(f"{self.path}/chat", {"message": message, **more})
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    async def agent(self, name: str = "Another", **fields: Any) -> "Talker":
        """Creates another agent of the same user, with a script of its own."""
        return await _create_agent(self.client, self.models, self.world, name=name, **fields)

    async def with_helper(self) -> "Talker":
        """Attaches a sub-agent, which the model calls as delegate_to_helper, and returns it."""
        helper = await self.agent("Helper")
        body = {"agent_id": helper.agent_id, "delegation_prompt": "Knows it all"}
        answer = await self.client.post(f"{self.path}/sub-agents/attach", body)
        assert answer.status_code == 201, answer.text
        return helper


async def talker(
    world: World, models: ModelServer, *, client: Client | None = None, **fields: Any
) -> Talker:
    """Creates an agent with a scripted model, for `client` or a new tenant_admin."""
    client = client or await world.user("tenant_admin")
    key_id = new_id("pvk")
    context = keys.seal_context(client.tenant_id, key_id)
    key = world.services.keyring.seal(_API_KEY.encode(), context)
    await fetch_rows(world.services, _INSERT_KEY, client.tenant_id, key_id, key, models.url)
    return await _create_agent(client, models, world, **fields)


async def give_key(client: Client, models: ModelServer, provider: str = PROVIDER) -> str:
    """Adds a provider key for the scripted models; returns its id."""
    key = {
        "provider": provider,
        "name": "Scripted",
        "api_key": _API_KEY,
        "base_url": models.url,
    }
    answer = await client.post("/api/v1/api-keys", key)
    assert answer.status_code == 201, answer.text
    key_id: str = answer.json()["id"]
    return key_id


async def _create_agent(client: Client, models: ModelServer, world: World, **fields: Any) -> Talker:
    model, agent_id = f"model-{next(_number)}", new_id("agt")
    row: dict[str, Any] = {
        "name": "Talker",
        "primary_model": f"{PROVIDER}/{model}",
        "system_prompt": "You are a test.",
        "status": "published",
        "tenant_id": client.tenant_id,
        "id": agent_id,
        **fields,
    }
    row["provider"] = row["primary_model"].partition("/")[0]
    columns = ", ".join(row)
    values = f"SELECT {columns} FROM json_populate_record(NULL::agents, $1::json)"
    sql = _INSERT_AGENT.format(columns=columns, values=values)
    await fetch_rows(world.services, sql, json.dumps(row), new_id("agv"), client.user_id)
    return Talker(client, agent_id, model, models, world)


def events_in(text: str) -> list[tuple[str, Any]]:
    """Parses a stream of server-sent events into names and decoded data."""
    events = []
    for block in text.split("\n\n"):
        lines = dict(_split_line(line) for line in block.splitlines() if not line.startswith(":"))
        if "data" in lines:
            events.append((lines.get("event", ""), json.loads(lines["data"])))
    return events


def _split_line(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    return name, value


def texts_of(events: Iterable[tuple[str, Any]]) -> str:
    """Returns the text of all deltas."""
    return "".join(data["delta"] for name, data in events if name == "content_delta")


def names_of(events: Iterable[tuple[str, Any]]) -> list[str]:
    """Returns the names of events in order, with consecutive deltas as one."""
    names: list[str] = []
    for name, _ in events:
        if name != "content_delta" or names[-1:] != ["content_delta"]:
            names.append(name)
    return names
