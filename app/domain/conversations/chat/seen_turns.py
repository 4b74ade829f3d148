"""What the model of a turn was given: stored with the turn, for those who develop the agent.

The prompt of a stored version is not stored again: the version has it.
"""

from typing import Any, Final

import msgspec

from app.domain.agents.definition.api import AgentRuntime

from . import tool_calls
from .agent_loop import LoopConfig
from .seen_schemas import OfferedTool

# How much of a turn is stored; a turn may have more.
_MAX_TOOLS: Final = 128
_MAX_DESCRIPTION_CHARS: Final = 300
_MAX_PART_CHARS: Final = 20_000
# The system message and the question.
_NOT_HISTORY: Final = 2


class SeenTurn(msgspec.Struct, frozen=True):
    model: str
    provider: str
    temperature: float
    max_tokens: int
    tools: list[OfferedTool]
    history_messages: int


def describe(runtime: AgentRuntime, config: LoopConfig, message_count: int) -> SeenTurn:
    offers = tool_calls.collect_offers(config.toolboxes)
    tools = [(offer.function, offer.tool) for _, offer in offers.values()]
    tools += [(function, function.name) for function in config.client.functions]
    return SeenTurn(
        runtime.target.model,
        runtime.target.provider,
        config.temperature,
        config.max_tokens,
        [
            OfferedTool(function.name, tool, function.description[:_MAX_DESCRIPTION_CHARS])
            for function, tool in tools[:_MAX_TOOLS]
        ],
        max(0, message_count - _NOT_HISTORY),
    )


def id_of(message_id: str) -> str:
    """The id of the entry that belongs to this answer."""
    return f"ctx_{message_id.partition('_')[2]}"


def to_data(
    seen: SeenTurn, runtime: AgentRuntime, context: dict[str, Any] | None, quoted: str | None
) -> dict[str, Any]:
    """Returns what is stored, as far as the agent's log settings allow."""
    data: dict[str, Any] = msgspec.to_builtins(seen)
    data["has_usage"] = runtime.log_token_usage
    if not runtime.log_messages:
        return data
    if runtime.version is None:
        data["prompt"] = runtime.system_prompt
    else:
        data["version"] = runtime.version
    facts = msgspec.json.encode(context).decode() if context else ""
    for name, text in (("facts", facts), ("quoted", quoted or "")):
        data[name] = text[:_MAX_PART_CHARS]
        data["is_truncated"] = data.get("is_truncated", False) or len(text) > _MAX_PART_CHARS
    return data
