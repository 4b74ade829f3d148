"""Reads what the models of turns saw."""

from typing import Any

import msgspec

from app.domain.sources import SourceView
from app.security.principal import Principal
from db.fast import tenant_of
from db.session import Tx

from . import conversations, queries, seen_queries, seen_turns
from .errors import MessageNotFound
from .history import system_text
from .schemas import TokenUsage
from .seen_schemas import ModelParameters, OfferedTool, TurnContext


async def find(tx: Tx, principal: Principal, conversation_id: str, message_id: str) -> TurnContext:
    """Raises MessageNotFound for a message that is not an answer in this conversation."""
    ids = (conversation_id, message_id, seen_turns.id_of(message_id))
    row = await seen_queries.find(tx, tenant_of(tx), *ids, queries.owner_filter(principal))
    if row is None:
        await conversations.require(tx, principal, conversation_id)
        raise MessageNotFound(f"This conversation has no answer {message_id[:64]}")
    data: dict[str, Any] = msgspec.json.decode(row["data"]) if row["data"] else {}
    found = TurnContext(message_id)
    if principal.may("events:read"):
        found.correlation_id = row["correlation_id"]
    if not data:
        return found
    found.history_messages = data["history_messages"]
    found.first_token_ms, found.response_time_ms = data["first_token_ms"], data["response_time_ms"]
    if data["has_usage"] and row["prompt_tokens"] is not None:
        tokens = (row["prompt_tokens"], row["completion_tokens"])
        found.usage = TokenUsage(*tokens, sum(tokens))
        found.cost_usd = data["cost_usd"] if principal.may("usage:read") else None
    if principal.may("agents:write"):
        _add_configuration(found, data, row["system_prompt"])
    return found


def _add_configuration(found: TurnContext, data: dict[str, Any], prompt: str | None) -> None:
    found.model, found.provider = data["model"], data["provider"]
    found.parameters = ModelParameters(data["temperature"], data["max_tokens"])
    found.tools = msgspec.convert(data["tools"], list[OfferedTool])
    found.version = data.get("version")
    prompt = data.get("prompt", prompt)
    if "facts" in data and prompt is not None:
        found.system_message = system_text(prompt, data["facts"], data["quoted"])
        found.passages = msgspec.convert(data["passages"], list[SourceView])
        found.is_truncated = data["is_truncated"]
