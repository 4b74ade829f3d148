"""DELETE /api/v1/agents/:id."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.definition.api_calls import list_event_data, list_events, list_names
from tests.agents.definition.database import count_rows
from tests.agents.definition.factories import BODY, PATH, create_agent
from tests.assertions import until
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.world import Client


@pytest.fixture
async def used_agent(talk: Talker, services: Services) -> AsyncIterator[Talker]:
    """An agent with a conversation, an embed key, a job and two versions."""
    caller = talk.client
    await talk.say("Hello")
    key = {"agent_id": talk.agent_id, "name": "Site"}
    assert (await caller.post("/api/v1/embed/api-keys", key)).status_code == 201
    job = await caller.post(f"{talk.path}/chat/async", {"message": "Later"})
    assert job.status_code == 202
    await caller.put(talk.path, {"temperature": 0.1})
    yield talk
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("DELETE FROM work WHERE tenant_id = $1", caller.tenant_id)


async def test_a_deleted_agent_is_not_found(developer: Client) -> None:
    agent = await create_agent(developer)
    answer = await developer.delete(f"{PATH}/{agent['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await developer.get(f"{PATH}/{agent['id']}")).status_code == 404
    assert (await developer.delete(f"{PATH}/{agent['id']}")).status_code == 404
    assert await list_names(developer) == []


OWNED_TABLES = [
    "conversations",
    "conversation_entries",
    "embed_keys",
    "chat_jobs",
    "agent_versions",
]


async def test_deleting_an_agent_deletes_the_rows_that_it_owns(
    used_agent: Talker, services: Services, subtests: pytest.Subtests
) -> None:
    for table in OWNED_TABLES:
        with subtests.test(table, when="before"):
            assert await count_rows(services, table, "agent_id", used_agent.agent_id) > 0
    assert (await used_agent.client.delete(used_agent.path)).status_code == 204
    for table in OWNED_TABLES:
        with subtests.test(table, when="after"):
            assert await count_rows(services, table, "agent_id", used_agent.agent_id) == 0


async def test_direct_sub_agents_are_deleted_with_their_parent_at_any_depth(
    developer: Client, services: Services
) -> None:
    parent = await create_agent(developer)
    ids = [parent["id"]]
    for _ in range(3):
        answer = await developer.post(f"{PATH}/{ids[-1]}/sub-agents/direct", BODY)
        assert answer.status_code == 201
        ids.append(answer.json()["id"])
    assert await count_rows(services, "agents", "tenant_id", developer.tenant_id) == 4
    await developer.delete(f"{PATH}/{parent['id']}")
    assert await count_rows(services, "agents", "tenant_id", developer.tenant_id) == 0
    assert await count_rows(services, "sub_agents", "tenant_id", developer.tenant_id) == 0


async def test_deleting_an_agent_emits_an_event_for_every_direct_sub_agent(
    developer: Client,
) -> None:
    """Subscribers that count agents by their events need an event for each."""
    parent = await create_agent(developer)
    child = (await developer.post(f"{PATH}/{parent['id']}/sub-agents/direct", BODY)).json()
    await developer.delete(f"{PATH}/{parent['id']}")
    events = await list_event_data(developer, "agent.deleted")
    deleted_ids = [data["agent_id"] for data in events]
    assert sorted(deleted_ids) == sorted([parent["id"], child["id"]])


async def test_attached_agents_are_not_deleted_with_their_parent(
    developer: Client, services: Services
) -> None:
    parent, other = await create_agent(developer), await create_agent(developer, name="Other")
    path = f"{PATH}/{parent['id']}"
    await developer.post(f"{path}/sub-agents/attach", {"agent_id": other["id"]})
    await developer.delete(path)
    assert await list_names(developer) == ["Other"]
    assert await count_rows(services, "sub_agents", "tenant_id", developer.tenant_id) == 0


async def test_a_deleted_agent_is_removed_from_its_parents(developer: Client) -> None:
    parent, other = await create_agent(developer), await create_agent(developer, name="Other")
    path = f"{PATH}/{parent['id']}"
    await developer.post(f"{path}/sub-agents/attach", {"agent_id": other["id"]})
    await developer.delete(f"{PATH}/{other['id']}")
    assert (await developer.get(path)).json()["sub_agents"] == []
    assert (await developer.get(f"{path}/sub-agents")).json() == {"data": []}


async def test_deleting_an_agent_keeps_conversations_of_other_agents(used_agent: Talker) -> None:
    other = await used_agent.agent("Other")
    reply = await other.say("Hello")
    await used_agent.client.delete(used_agent.path)
    path = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    assert (await used_agent.client.get(path)).json()["pagination"]["total"] == 2


async def test_an_embed_key_is_not_valid_after_its_agent_is_deleted(talk: Talker) -> None:
    body = {"agent_id": talk.agent_id, "name": "Site"}
    key = (await talk.client.post("/api/v1/embed/api-keys", body)).json()["api_key"]
    visitor, headers = talk.world.anonymous(), {"x-api-key": key}
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    message = {"session_id": "s1", "message": "Hello"}
    assert (await visitor.post(path, message, headers=headers)).status_code == 200
    await talk.client.delete(talk.path)
    assert (await visitor.post(path, message, headers=headers)).status_code == 401


async def test_concurrent_deletes_delete_an_agent_once(developer: Client) -> None:
    agent = await create_agent(developer)
    answers = await asyncio.gather(*(developer.delete(f"{PATH}/{agent['id']}") for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404, 404]
    types = [kind for kind, _ in await list_events(developer)]
    assert types == ["agent.created", "agent.deleted"]


async def test_an_agent_can_be_deleted_while_it_answers(talk: Talker) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    turn = asyncio.create_task(talk.client.post(f"{talk.path}/chat", {"message": "Hello"}))
    await until(lambda: talk.asked)
    assert (await talk.client.delete(talk.path)).status_code == 204
    hold.set()
    answer = await turn
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "conversation_not_found"
