"""Status and statistics of an agent."""

import pytest

from tests.agents.factories import PATH, create_agent
from tests.model_server import Reply
from tests.talk import Talker
from tests.world import Client


async def test_the_status_of_a_new_agent(talk: Talker) -> None:
    answer = await talk.client.get(f"{talk.path}/status")
    assert answer.json() == {
        "agent_id": talk.agent_id,
        "status": "published",
        "is_online": True,
        "active_conversations": 0,
        "training": {"status": "idle", "documents_total": 0, "documents_done": 0},
    }


async def test_an_agent_without_a_key_for_its_model_is_offline(developer: Client) -> None:
    agent = await create_agent(developer)
    status = (await developer.get(f"{PATH}/{agent['id']}/status")).json()
    assert (status["status"], status["is_online"]) == ("draft", False)


async def test_an_archived_agent_is_offline(talk: Talker) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert (status["status"], status["is_online"]) == ("archived", False)


async def test_status_counts_conversations_until_they_end(talk: Talker) -> None:
    first = await talk.say("Hello")
    await talk.say("Hello again")
    await talk.client.post(f"/api/v1/conversations/{first['conversation_id']}/end")
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert status["active_conversations"] == 1


async def test_the_statistics_of_a_new_agent(developer: Client) -> None:
    agent = await create_agent(developer)
    answer = await developer.get(f"{PATH}/{agent['id']}/stats")
    assert answer.json() == {
        "agent_id": agent["id"],
        "total_conversations": 0,
        "total_messages": 0,
        "total_tokens_used": 0,
        "avg_response_time_ms": 0,
        "period": "all_time",
    }


@pytest.mark.parametrize("period", ["24h", "7d", "30d", "all_time"])
async def test_statistics_count_the_messages_of_their_period(talk: Talker, period: str) -> None:
    talk.script(Reply(usage=(10, 5)))
    first = await talk.say("One")
    await talk.say("Two", conversation_id=first["conversation_id"])
    await talk.say("Three")
    stats = (await talk.client.get(f"{talk.path}/stats", params={"period": period})).json()
    assert stats.pop("avg_response_time_ms") > 0
    assert stats == {
        "agent_id": talk.agent_id,
        "total_conversations": 2,
        "total_messages": 6,
        "total_tokens_used": 45,
        "period": period,
    }


async def test_an_unknown_period_is_refused(developer: Client) -> None:
    agent = await create_agent(developer)
    answer = await developer.get(f"{PATH}/{agent['id']}/stats", params={"period": "1y"})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"period"}
