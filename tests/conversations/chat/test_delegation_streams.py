"""Delegation in streamed turns and in turns of visitors."""

from typing import Any

from tests.conversations.chat.conversation_helpers import create_visitor_headers
from tests.conversations.chat.delegation_scripts import (
    CALL_KEYS,
    add_sub_agent,
    build_call,
    list_offered,
    reply_with_calls,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker, events_in
from tests.world import Client


async def _stream_events(
    caller: Client, path: str, body: Any, **more: Any
) -> list[tuple[str, Any]]:
    answer = await caller.post(path, body, **more)
    assert answer.status_code == 200, answer.text
    return events_in(answer.text)


async def test_a_stream_has_the_calls_of_every_child_in_order(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    await add_sub_agent(child, "Grandkid")
    child.script(reply_with_calls(build_call("grandkid", "b")), Reply(texts=["Done."]))
    talk.script(reply_with_calls(build_call("kid", "a"), texts=["Wait."]), Reply(texts=["Fine."]))
    events = await _stream_events(talk.client, f"{talk.path}/chat/stream", {"message": "Hello"})
    names = [name for name, _ in events]
    assert names == [
        "message_start",
        "content_delta",
        "tool_use",
        "tool_use",
        "tool_result",
        "tool_result",
        "content_delta",
        "message_stop",
    ]
    used, within, result_within, result = (data for name, data in events if "tool" in name)
    assert (used["tool"], used["input"], used["parent_id"]) == ("Kid", {"task": "a"}, None)
    assert (within["tool"], within["parent_id"]) == ("Grandkid", used["id"])
    assert (result_within["id"], result_within["parent_id"]) == (within["id"], used["id"])
    assert (result["id"], result["output"], result["status"]) == (used["id"], "Done.", "completed")
    assert set(used) == {"id", "tool", "tool_id", "input", "parent_id"}
    assert set(result) == CALL_KEYS - {"input"}


async def test_a_stream_joins_fragments_of_calls(talk: Talker) -> None:
    first, second = await add_sub_agent(talk, "First"), await add_sub_agent(talk, "Second")
    talk.script(
        reply_with_calls(build_call("first", "ä" * 200), build_call("second", "b")), Reply()
    )
    events = await _stream_events(talk.client, f"{talk.path}/chat/stream", {"message": "Hello"})
    tasks = [data["input"]["task"] for name, data in events if name == "tool_use"]
    assert tasks == ["ä" * 200, "b"]
    assert (len(first.asked), len(second.asked)) == (1, 1)


async def test_texts_of_children_are_not_streamed(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["Secret."]))
    talk.script(reply_with_calls(build_call("kid")), Reply(texts=["Public."]))
    events = await _stream_events(talk.client, f"{talk.path}/chat/stream", {"message": "Hello"})
    deltas = [data["delta"] for name, data in events if name == "content_delta"]
    assert deltas == ["Public."]


async def test_visitors_reach_no_draft_at_any_depth(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    await add_sub_agent(talk, "Draft", status="draft")
    await add_sub_agent(child, "Draft", status="draft")
    await add_sub_agent(child, "Grandkid")
    child.script(reply_with_calls(build_call("draft")), Reply(texts=["Done."]))
    talk.script(reply_with_calls(build_call("kid"), build_call("draft")), Reply(texts=["Fine."]))
    headers, visitor = await create_visitor_headers(talk), talk.world.anonymous()
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    body = {"session_id": "s", "message": "Hello"}
    answer = await visitor.post(path, body, headers=headers)
    assert answer.json()["assistant_reply"]["content"] == "Fine."
    assert list_offered(talk.asked[0]) == ["delegate_to_kid"]
    assert list_offered(child.asked[0]) == ["delegate_to_grandkid"]


async def test_visitors_do_not_see_inputs_and_outputs_of_calls(talk: Talker) -> None:
    child = await add_sub_agent(talk, "Kid")
    await add_sub_agent(child, "Grandkid")
    child.script(
        reply_with_calls(build_call("grandkid", "inner secret")), Reply(texts=["output secret"])
    )
    talk.script(reply_with_calls(build_call("kid", "outer secret")), Reply(texts=["Fine."]))
    headers, visitor = await create_visitor_headers(talk), talk.world.anonymous()
    path = f"/api/v1/public/agents/{talk.agent_id}/chat/stream"
    body = {"session_id": "s", "message": "Hello"}
    answer = await visitor.post(path, body, headers=headers)
    assert "secret" not in answer.text
    assert child.agent_id not in answer.text
    names = [name for name, _ in events_in(answer.text) if name.startswith("tool")]
    assert names == ["tool_use", "tool_use", "tool_result", "tool_result"]
