"""The configuration of an agent that a turn needs, read with one query."""

from typing import Any

import msgspec

from app.crypto.keyring import Keyring
from app.domain.agents.llm.api import (
    LOCAL,
    LOCAL_ANSWER_TOKENS,
    LOCAL_TEMPERATURE,
    Target,
    key_seal_context,
    provider_of,
    require_offered,
)
from app.kit import validation
from app.security.plans import Plan, plan_of
from db.fast import Row, tenant_of
from db.session import Tx

from . import queries
from .errors import AgentArchived, AgentNotFound
from .retrieval_settings import RetrievalSettings
from .schemas import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, UpdateAgent


class SubAgentInfo(msgspec.Struct, frozen=True):
    """A sub-agent that tasks can be delegated to."""

    id: str
    name: str
    status: str
    description: str
    delegation_prompt: str
    # It or one of its sub-agents has tools, so a repeated delegation may repeat an effect.
    has_tools: bool = False


class AttachedToolInfo(msgspec.Struct, frozen=True):
    """A tool that the agent may call."""

    id: str
    name: str
    slug: str
    description: str
    tool_type: str
    input_schema: dict[str, Any] | None


class KnowledgeInfo(msgspec.Struct, frozen=True):
    """The table of the agent's documents. `hidden_document_ids` are deleted, but their chunks may
    still be in it. `encoders` have encoded passages of it: all of them when `is_refined`. With
    `has_addresses`, some documents came from the web; with `has_invalid`, some are not valid now.
    """

    agent_id: str
    generation: int
    revision: int
    embedding_model: str
    languages: list[str] = []
    encoders: list[str] = []
    is_refined: bool = False
    has_addresses: bool = False
    hidden_document_ids: list[str] = []
    has_invalid: bool = False
    settings: RetrievalSettings = RetrievalSettings()


class WebSearchInfo(msgspec.Struct, frozen=True):
    """How the agent searches the web."""

    engine: str
    max_results: int
    safe_search: bool


class AgentRuntime(msgspec.Struct, frozen=True, kw_only=True):
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
    sub_agents: list[SubAgentInfo]
    tools: list[AttachedToolInfo]
    # None when there is nothing to search.
    knowledge: KnowledgeInfo | None = None
    # None when it is not enabled.
    web_search: WebSearchInfo | None = None
    # The version that has this prompt; None for one of a draft.
    version: int | None = None

    @property
    def answer_tokens(self) -> int:
        """The longest answer unless the caller chooses another length. The local model, which few
        can use at a time, writes long answers only where somebody has chosen a length.
        """
        is_default = self.max_tokens == DEFAULT_MAX_TOKENS
        is_short = self.target.provider == LOCAL and is_default
        return LOCAL_ANSWER_TOKENS if is_short else self.max_tokens

    @property
    def answer_temperature(self) -> float:
        """The temperature unless the caller chooses another one. The local model is so small that
        it wanders at the usual one.
        """
        is_default = self.temperature == DEFAULT_TEMPERATURE
        is_low = self.target.provider == LOCAL and is_default
        return LOCAL_TEMPERATURE if is_low else self.temperature


class EmbedKeyRules(msgspec.Struct, frozen=True):
    """What an embed key demands of visitors and allows them. `identity_secret` is sealed."""

    require_session_token: bool
    require_user_token: bool
    allow_voice: bool
    allow_feedback: bool
    allow_attachments: bool
    max_messages_per_day: int | None
    max_tokens_per_day: int | None
    identity_secret: bytes | None

    @property
    def has_budget(self) -> bool:
        return self.max_messages_per_day is not None or self.max_tokens_per_day is not None


class EmbeddedAgent(msgspec.Struct, frozen=True):
    """The agent of an embed key, the origins that may use it, its rules, and the tenant's plan."""

    runtime: AgentRuntime
    embed_key_id: str
    allowed_domains: list[str]
    rules: EmbedKeyRules
    plan: Plan
    # True when the stored time of last use is missing or more than a minute old.
    is_use_outdated: bool


# The fields of an agent that matter for a turn, besides its model.
_DRAFT_FIELDS = ("name", "system_prompt", "temperature", "max_tokens")
_sub_agents_decoder = msgspec.json.Decoder(list[SubAgentInfo])
_tools_decoder = msgspec.json.Decoder(list[AttachedToolInfo])
_knowledge_decoder = msgspec.json.Decoder(KnowledgeInfo)
_web_search_decoder = msgspec.json.Decoder(WebSearchInfo)


async def find_runtime(tx: Tx, keyring: Keyring, agent_id: str) -> AgentRuntime:
    row = await queries.find_runtime(tx, tenant_of(tx), agent_id)
    if row is None:
        raise _not_found(agent_id)
    return _build_runtime(row, keyring)


def _not_found(agent_id: str) -> AgentNotFound:
    return AgentNotFound(f"There is no agent {agent_id[:64]}")


async def load_runtime(tx: Tx, keyring: Keyring, agent_id: str) -> AgentRuntime:
    """Returns the agent's configuration. Raises AgentArchived when it is archived."""
    runtime = await find_runtime(tx, keyring, agent_id)
    if runtime.status == "archived":
        raise AgentArchived("This agent is archived; change its status to chat with it")
    return runtime


async def load_draft_runtime(
    tx: Tx, keyring: Keyring, agent_id: str, draft: UpdateAgent
) -> AgentRuntime:
    """Returns the configuration that the agent would have with these fields, whatever its status.
    Raises Invalid for a model that nobody offers.
    """
    fields = validation.set_fields(draft)
    model = fields.get("primary_model")
    if model is None:
        row = await queries.find_runtime(tx, tenant_of(tx), agent_id)
    else:
        row = await queries.find_runtime_of(tx, tenant_of(tx), agent_id, provider_of(model))
    if row is None:
        raise _not_found(agent_id)
    runtime = _build_runtime(row, keyring)
    target = runtime.target
    if model is not None:
        await require_offered(tx, runtime.tenant_id, model, "draft.primary_model")
        target = Target(model, provider_of(model), target.api_key, target.base_url)
    values = {name: fields[name] for name in _DRAFT_FIELDS if name in fields}
    if values.get("system_prompt", runtime.system_prompt) != runtime.system_prompt:
        values["version"] = None
    return msgspec.structs.replace(runtime, target=target, **values)


async def find_by_embed_key(tx: Tx, keyring: Keyring, key_hash: str) -> EmbeddedAgent | None:
    row = await queries.find_embedded_by_hash(tx, key_hash)
    return None if row is None else _build_embedded(row, keyring)


async def find_by_embed_key_id(tx: Tx, keyring: Keyring, key_id: str) -> EmbeddedAgent | None:
    """For a key that a signed token names."""
    row = await queries.find_embedded_by_id(tx, key_id)
    return None if row is None else _build_embedded(row, keyring)


def _build_embedded(row: Row, keyring: Keyring) -> EmbeddedAgent:
    plan = plan_of(row["plan"], msgspec.json.decode(row["limits"]))
    domains = list(row["allowed_domains"])
    return EmbeddedAgent(
        _build_runtime(row, keyring),
        row["embed_key_id"],
        domains,
        EmbedKeyRules(**{name: row[name] for name in EmbedKeyRules.__struct_fields__}),
        plan,
        row["is_use_outdated"],
    )


def _build_runtime(row: Row, keyring: Keyring) -> AgentRuntime:
    api_key, web_search = "", row["web_search"]
    if row["key_id"] is not None:
        context = key_seal_context(row["tenant_id"], row["key_id"])
        api_key = keyring.open(row["api_key"], context).decode()
    return AgentRuntime(
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
        sub_agents=_sub_agents_decoder.decode(row["sub_agents"]) if row["sub_agents"] else [],
        tools=_tools_decoder.decode(row["tools"]) if row["tools"] else [],
        knowledge=_knowledge_decoder.decode(row["knowledge"]) if row["knowledge"] else None,
        web_search=_web_search_decoder.decode(web_search) if web_search else None,
        version=row["version"],
    )
