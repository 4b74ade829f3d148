"""The usage of a turn: a row per model, with its tokens and costs."""

from typing import Any

from app.domain.agents.llm.api import cost_usd
from app.domain.agents.usage import api as usage
from app.kit import trace
from app.kit.texts import as_json
from db.session import Tx

from .agent_loop import TokenBudget
from .turn import Speaker, Turn


async def add(tx: Tx, turn: Turn, budget: TokenBudget, **counts: int) -> None:
    """Adds the usage of a turn that is not stored."""
    rows = await usage_of_turn(turn, budget)
    rows[0] |= counts
    agent_id, correlation_id = turn.runtime.agent_id, trace.current().correlation_id
    await usage.add_usage(tx, turn.runtime.tenant_id, agent_id, as_json(rows), correlation_id)


async def usage_of_turn(turn: Turn, budget: TokenBudget) -> list[dict[str, Any]]:
    own_model, ids = turn.runtime.target.model, (turn.conversation_id, turn.message_id)
    return await build_rows(budget, own_model, *ids, turn.speaker, turn.source)


async def build_rows(
    budget: TokenBudget,
    own_model: str,
    conversation_id: str,
    message_id: str,
    speaker: Speaker,
    source: str,
) -> list[dict[str, Any]]:
    """Returns a row per model, the agent's own first."""
    by_model = {own_model: [0, 0], **budget.by_model}
    rows: list[dict[str, Any]] = []
    for model, (prompt_tokens, completion_tokens) in by_model.items():
        cost = await cost_usd(model, prompt_tokens, completion_tokens)
        rows.append(
            {
                "conversation_id": conversation_id,
                "message_id": message_id,
                "user_id": speaker.user_id,
                "caller_id": speaker.embed_key_id or speaker.user_id,
                "source": source,
                "model": model,
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "cost_usd": round(cost, 9),
                "turns": 0,
                "conversations": 0,
                "messages": 0,
                "failures": 0,
                "response_time_ms": 0,
            }
        )
    return rows
