"""Requests for an agent's log, its log settings and its statistics."""

from typing import Any

from tests.model_server import Reply
from tests.scripted_agents import Talker

ENTRY_KEYS = {"id", "conversation_id", "type", "role", "content", "data", "created_at"}


async def set_log_settings(talk: Talker, **settings: Any) -> None:
    answer = await talk.client.put(f"{talk.path}/log-settings", settings)
    assert answer.status_code == 200, answer.text


async def list_log_entries(talk: Talker, **params: Any) -> list[dict[str, Any]]:
    """Returns all entries that match the filters, the newest first."""
    answer = await talk.client.get(f"{talk.path}/logs", params={"per_page": 100, **params})
    assert answer.status_code == 200, answer.text
    entries: list[dict[str, Any]] = answer.json()["data"]
    assert answer.json()["pagination"]["total"] == len(entries)
    return entries


async def get_stats(talk: Talker, period: str = "all_time") -> dict[str, Any]:
    answer = await talk.client.get(f"{talk.path}/stats", params={"period": period})
    assert answer.status_code == 200, answer.text
    stats: dict[str, Any] = answer.json()
    return stats


async def script_delegation(talk: Talker) -> Talker:
    """Attaches a sub-agent that the agent calls in its next turn, and returns it."""
    helper = await talk.with_helper()
    helper.script(Reply(texts=["At 9."], usage=(100, 10)))
    call = ("delegate_to_helper", {"task": "hours"})
    talk.script(
        Reply(texts=[], calls=[call], usage=(5, 1)),
        Reply(texts=["It opens at 9."], usage=(7, 2)),
    )
    return helper
