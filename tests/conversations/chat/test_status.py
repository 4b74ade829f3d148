"""GET /api/v1/agents/:id/status."""

import pytest

from tests.conversations.chat.conversation_helpers import conversation_path, start_conversation
from tests.model_server import ModelServer
from tests.scripted_agents import Talker, talker
from tests.world import World


async def test_an_agent_is_online_unless_it_is_archived(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for change, online in (
        ({}, True),
        ({"status": "draft"}, True),
        ({"status": "archived"}, False),
    ):
        with subtests.test(change=change, online=online):
            talk = await talker(world, models)
            await talk.client.put(talk.path, change)
            assert (await talk.client.get(f"{talk.path}/status")).json() == {
                "agent_id": talk.agent_id,
                "status": change.get("status", "published"),
                "is_online": online,
                "active_conversations": 0,
                "training": {"status": "idle", "documents_total": 0, "documents_done": 0},
            }


async def test_an_agent_without_a_key_for_its_model_is_offline(talk: Talker) -> None:
    other = await talk.agent(primary_model="nobody/has-a-key")
    assert (await talk.client.get(f"{other.path}/status")).json()["is_online"] is False


async def test_an_agent_of_a_tenant_without_keys_is_offline(world: World) -> None:
    caller = await world.user("agent_developer")
    body = {"name": "A", "primary_model": "gpt-4o", "system_prompt": "You help."}
    agent = (await caller.post("/api/v1/agents", body)).json()
    status = (await caller.get(f"/api/v1/agents/{agent['id']}/status")).json()
    assert (status["status"], status["is_online"]) == ("draft", False)


async def test_an_ended_conversation_is_not_counted_as_active(talk: Talker) -> None:
    conversation_id = await start_conversation(talk)
    await start_conversation(talk)
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert status["active_conversations"] == 2
    await talk.client.post(f"{conversation_path(conversation_id)}/end")
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert status["active_conversations"] == 1
