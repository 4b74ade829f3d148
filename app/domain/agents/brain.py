"""What a turn needs to know of an agent, in one read."""

from typing import Any

import msgspec

from app.domain.agents import queries
from app.domain.agents.errors import AgentArchived, AgentNotFound
from app.domain.models import keys
from app.domain.models.protocol import Target
from app.http.limits import Plan, plan_of
from app.kit.crypto import Keyring
from db.fast import Row, tenant_of
from db.session import Tx


class Child(msgspec.Struct, frozen=True):
    """A sub-agent that tasks can be handed to."""

    id: str
    name: str
    status: str
    description: str
    delegation_prompt: str
    # It, or somebody whom it may hand tasks to, has tools: asking twice may do something twice.
    acts: bool = False


class Ability(msgspec.Struct, frozen=True):
    """A tool that the agent may call."""

    id: str
    name: str
    slug: str
    description: str
    tool_type: str
    input_schema: dict[str, Any] | None


class Brain(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: str
    tenant_id: str
    name: str
    status: str
    target: Target
    system_prompt: str
    temperature: float
    max_tokens: int
    log_messages: bool
    log_tool_calls: bool
    log_token_usage: bool
    children: list[Child]
    abilities: list[Ability]


class Admitted(msgspec.Struct, frozen=True):
    """The agent that an embed key opens, from where it may be used, and how often."""

    brain: Brain
    embed_key_id: str
    allowed_domains: list[str]
    plan: Plan


_children = msgspec.json.Decoder(list[Child])
_abilities = msgspec.json.Decoder(list[Ability])


async def find(tx: Tx, keyring: Keyring, agent_id: str) -> Brain:
    row = await queries.brain(tx, tenant_of(tx), agent_id)
    if row is None:
        raise AgentNotFound(f"There is no agent {agent_id[:64]}")
    return _brain(row, keyring)


async def load(tx: Tx, keyring: Keyring, agent_id: str) -> Brain:
    """The agent, ready to think; archived ones do not."""
    brain = await find(tx, keyring, agent_id)
    if brain.status == "archived":
        raise AgentArchived("This agent is archived; change its status to chat with it")
    return brain


async def by_embed_key(tx: Tx, keyring: Keyring, key_hash: str) -> Admitted | None:
    row = await queries.brain_by_embed_key(tx, key_hash)
    if row is None:
        return None
    plan = plan_of(row["plan"], msgspec.json.decode(row["limits"]))
    domains = list(row["allowed_domains"])
    return Admitted(_brain(row, keyring), row["embed_key_id"], domains, plan)


def _brain(row: Row, keyring: Keyring) -> Brain:
    api_key = ""
    if row["key_id"] is not None:
        place = keys.place_of(row["tenant_id"], row["key_id"])
        api_key = keyring.open(row["api_key"], place).decode()
    return Brain(
        agent_id=row["id"],
        tenant_id=row["tenant_id"],
        name=row["name"],
        status=row["status"],
        target=Target(row["primary_model"], row["provider"], api_key, row["base_url"]),
        system_prompt=row["system_prompt"],
        temperature=row["temperature"],
        max_tokens=row["max_tokens"],
        log_messages=row["log_messages"],
        log_tool_calls=row["log_tool_calls"],
        log_token_usage=row["log_token_usage"],
        children=_children.decode(row["children"]) if row["children"] else [],
        abilities=_abilities.decode(row["abilities"]) if row["abilities"] else [],
    )
