"""Sub-agents with scripted models, and the calls between them."""

from typing import Any

from tests.model_server import Reply
from tests.scripted_agents import Talker

CALL_KEYS = {
    "id",
    "tool",
    "tool_id",
    "input",
    "output",
    "status",
    "execution_time_ms",
    "parent_id",
}


async def attach_sub_agent(parent: Talker, child: Talker, **more: Any) -> None:
    body = {"agent_id": child.agent_id, **more}
    answer = await parent.client.post(f"{parent.path}/sub-agents/attach", body)
    assert answer.status_code == 201, answer.text


async def add_sub_agent(parent: Talker, name: str, *, link: Any = None, **fields: Any) -> Talker:
    """Creates and attaches a sub-agent with its own scripted model."""
    child = await parent.agent(name, **fields)
    await attach_sub_agent(parent, child, **(link or {}))
    return child


async def script_delegation(talk: Talker) -> None:
    """Lets the agent delegate its first message to a new sub-agent."""
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["Done."], usage=(300, 30)))
    talk.script(
        reply_with_calls(build_call("kid"), usage=(10, 1)), Reply(texts=["Fine."], usage=(20, 2))
    )


def reply_with_calls(*calls: tuple[str, Any], texts: list[str] | None = None, **more: Any) -> Reply:
    return Reply(texts=texts or [], calls=list(calls), **more)


def build_call(name: str, task: str = "Do it") -> tuple[str, Any]:
    return f"delegate_to_{name}", {"task": task}


def list_offered(request: dict[str, Any]) -> list[str]:
    """Returns the functions that the model may call; `tool_choice: none` allows none of them."""
    if request.get("tool_choice") == "none":
        return []
    return [item["function"]["name"] for item in request.get("tools", [])]
