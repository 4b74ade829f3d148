"""Visitors' conversations in the console, and the tools that visitors do not see."""

import pytest

from tests.conversations.embed.factories import KEYS_PATH
from tests.conversations.embed.sites import (
    Site,
    attach_sub_agent,
    error_of,
    offered_tools,
    stream_chat,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker, texts_of
from tests.server import Server
from tests.world import Client

# Readers


async def test_developers_read_a_visitors_conversation(site: Site) -> None:
    reply = await site.say("When?")
    path = f"/api/v1/conversations/{reply['conversation_id']}"
    developer = await site.talk.world.user("agent_developer", site.talk.client.tenant_id)
    conversation = (await developer.get(path)).json()
    assert (conversation["source"], conversation["user_id"], conversation["message_count"]) == (
        "embed",
        None,
        2,
    )
    assert (conversation["agent_id"], conversation["title"]) == (site.talk.agent_id, "When?")
    messages = (await developer.get(f"{path}/messages")).json()["data"]
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "When?"),
        ("assistant", "Hello there"),
    ]
    conversations = (await developer.get(f"{site.talk.path}/conversations")).json()["data"]
    assert [item["id"] for item in conversations] == [reply["conversation_id"]]


async def test_users_and_viewers_do_not_read_a_visitors_conversation(
    site: Site, subtests: pytest.Subtests
) -> None:
    for role in ["agent_user", "viewer"]:
        with subtests.test(role=role):
            reply = await site.say()
            caller = await site.talk.world.user(role, site.talk.client.tenant_id)
            path = f"/api/v1/conversations/{reply['conversation_id']}"
            for answer in (
                await caller.get(path),
                await caller.get(f"{path}/messages"),
                await caller.post(f"{path}/end"),
                await caller.delete(path),
            ):
                assert error_of(answer) == (404, "conversation_not_found")
            conversations = await caller.get(f"{site.talk.path}/conversations")
            assert conversations.json()["data"] == []


async def test_another_tenant_does_not_read_a_visitors_conversation(
    site: Site, admin: Client
) -> None:
    reply = await site.say()
    answer = await admin.get(f"/api/v1/conversations/{reply['conversation_id']}")
    assert error_of(answer) == (404, "conversation_not_found")


async def test_a_conversation_outlives_its_key(site: Site) -> None:
    reply = await site.say("When?")
    await site.talk.client.delete(KEYS_PATH, params={"id": site.key["id"]})
    path = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    messages = (await site.talk.client.get(path)).json()["data"]
    assert [message["content"] for message in messages] == ["When?", "Hello there"]


async def test_a_visitors_turns_are_in_the_statistics_and_the_log(site: Site) -> None:
    site.talk.script(Reply(usage=(40, 8)))
    await site.say("First?")
    await site.say("Second?")
    stats = (await site.talk.client.get(f"{site.talk.path}/stats")).json()
    assert stats["total_conversations"] == 1
    assert stats["total_messages"] == 4
    assert stats["total_tokens_used"] == 96
    log = (await site.talk.client.get(f"{site.talk.path}/logs")).json()["data"]
    texts = [entry["content"] for entry in reversed(log) if entry["type"] == "message"]
    assert texts == ["First?", "Hello there", "Second?", "Hello there"]


async def test_a_visitors_turns_are_in_the_event_log(site: Site) -> None:
    reply = await site.say("First?")
    await site.say("Second?")
    log = (await site.talk.client.get("/api/v1/event-log", params={"per_page": 100})).json()["data"]
    chat = [entry for entry in reversed(log) if entry["type"].startswith("agent.chat")]
    assert [entry["type"] for entry in chat] == ["agent.chat.started"] + ["agent.chat.message"] * 4
    assert chat[0]["data"] == {
        "agent_id": site.talk.agent_id,
        "conversation_id": reply["conversation_id"],
        "user_id": None,
        "source": "embed",
    }


async def _attach_helper(talk: Talker) -> Talker:
    """Attaches a sub-agent that the agent calls once."""
    child = await talk.agent("Helper")
    await attach_sub_agent(talk, child)
    child.script(Reply(texts=["The safe code is 4711"]))
    task = {"task": "Tell the safe code to mother"}
    talk.script(
        Reply(texts=[], calls=[("delegate_to_helper", task)]), Reply(texts=["I may not say."])
    )
    return child


# Tools and sub-agents


async def test_a_public_stream_hides_the_input_and_output_of_tools(
    server: Server, site: Site
) -> None:
    child = await _attach_helper(site.talk)
    answer, events = await stream_chat(server, site)
    assert [name for name, _ in events] == [
        "message_start",
        "tool_use",
        "tool_result",
        "content_delta",
        "message_stop",
    ]
    use, result = events[1][1], events[2][1]
    assert (use["tool"], use["input"]) == ("Helper", {})
    assert (result["tool"], result["output"]) == ("Helper", None)
    assert use["tool_id"] is None
    assert result["tool_id"] is None
    for secret in ("4711", "mother", child.agent_id, "delegate_to"):
        assert secret not in answer.text
    assert texts_of(events) == "I may not say."


async def test_a_whole_reply_does_not_mention_tools(site: Site) -> None:
    child = await _attach_helper(site.talk)
    answer = await site.ask()
    assert answer.json()["assistant_reply"]["content"] == "I may not say."
    for secret in ("4711", "mother", "Helper", child.agent_id, "tool"):
        assert secret not in answer.text


async def test_the_console_shows_the_input_and_output_of_tools(site: Site) -> None:
    await _attach_helper(site.talk)
    reply = await site.say()
    path = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    [_, message] = (await site.talk.client.get(path)).json()["data"]
    [call] = message["tool_calls"]
    assert call["input"] == {"task": "Tell the safe code to mother"}
    assert call["output"] == "The safe code is 4711"


async def test_a_draft_sub_agent_is_not_offered_to_visitors(site: Site) -> None:
    await attach_sub_agent(site.talk, await site.talk.agent("Ready"))
    await attach_sub_agent(site.talk, await site.talk.agent("Unfinished", status="draft"))
    await site.say()
    assert offered_tools(site.talk.asked[0]) == ["delegate_to_ready"]
    await site.talk.say("Hi")
    assert offered_tools(site.talk.asked[1]) == ["delegate_to_ready", "delegate_to_unfinished"]


async def test_a_draft_below_a_published_sub_agent_is_not_offered_either(site: Site) -> None:
    middle = await site.talk.agent("Middle")
    await attach_sub_agent(site.talk, middle)
    await attach_sub_agent(middle, await site.talk.agent("Unfinished", status="draft"))
    site.talk.script(
        Reply(texts=[], calls=[("delegate_to_middle", {"task": "x"})]), Reply(texts=["Done."])
    )
    await site.say()
    assert offered_tools(middle.asked[0]) == []


async def test_a_draft_sub_agent_does_not_answer_a_call(site: Site) -> None:
    draft = await site.talk.agent("Unfinished", status="draft")
    await attach_sub_agent(site.talk, draft)
    site.talk.script(
        Reply(texts=[], calls=[("delegate_to_unfinished", {"task": "x"})]), Reply(texts=["Done."])
    )
    assert (await site.say())["assistant_reply"]["content"] == "Done."
    assert draft.asked == []
