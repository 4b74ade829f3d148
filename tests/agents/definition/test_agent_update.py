"""PUT /api/v1/agents/:id."""

import itertools
from datetime import datetime
from typing import Any

import pytest

from app.services import Services
from tests.agents.definition.api_calls import list_events
from tests.agents.definition.database import fetch_agent
from tests.agents.definition.factories import (
    AGENT_KEYS,
    BODY,
    INVALID_FIELDS,
    PATH,
    READ_ONLY_FIELDS,
    STATUSES,
    create_agent,
)
from tests.assertions import refused
from tests.scripted_agents import Talker
from tests.world import Client, World

CHANGES: list[dict[str, Any]] = [
    {"name": "New"},
    {"description": "New text"},
    {"primary_model": "local/smollm2"},
    {"system_prompt": "Other."},
    {"temperature": 0.1},
    {"max_tokens": 5},
    {"status": "archived"},
    {"name": "New", "temperature": 0, "status": "published"},
]


async def test_omitted_fields_are_not_changed(world: World, subtests: pytest.Subtests) -> None:
    for change in CHANGES:
        developer = await world.user()
        with subtests.test(change=change):
            agent = await create_agent(
                developer, description="Old", temperature=0.5, max_tokens=100
            )
            answer = await developer.put(f"{PATH}/{agent['id']}", change)
            assert answer.status_code == 200
            updated = answer.json()
            assert set(updated) == AGENT_KEYS
            generated = dict.fromkeys(["updated_at", "version"])
            assert {**updated, **generated} == {**agent, **change, **generated}
            stored = (await developer.get(f"{PATH}/{agent['id']}")).json()
            assert {name: stored[name] for name in AGENT_KEYS} == updated


async def test_all_fields_can_change_at_once(developer: Client) -> None:
    agent = await create_agent(developer)
    change = {
        "name": "New",
        "description": "New text",
        "primary_model": "local/smollm2",
        "system_prompt": "Other.",
        "temperature": 0.1,
        "max_tokens": 5,
        "status": "published",
    }
    updated = (await developer.put(f"{PATH}/{agent['id']}", change)).json()
    assert {name: updated[name] for name in change} == change
    assert updated["version"] == 2


async def test_a_description_can_be_emptied(developer: Client) -> None:
    agent = await create_agent(developer, description="Old")
    answer = await developer.put(f"{PATH}/{agent['id']}", {"description": ""})
    assert answer.json()["description"] == ""


async def test_a_change_without_a_difference_has_no_effect(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [{}, {"name": "Shop"}, {"temperature": 0.7, "status": "draft"}]
    for change in cases:
        developer = await world.user()
        with subtests.test(change=change):
            agent = await create_agent(developer)
            answer = await developer.put(f"{PATH}/{agent['id']}", change)
            assert (answer.status_code, answer.json()) == (200, agent)
            assert [kind for kind, _ in await list_events(developer)] == ["agent.created"]


async def test_a_change_sets_updated_at_and_keeps_created_at(developer: Client) -> None:
    agent = await create_agent(developer)
    updated = (await developer.put(f"{PATH}/{agent['id']}", {"name": "New"})).json()
    assert updated["created_at"] == agent["created_at"]
    assert datetime.fromisoformat(updated["updated_at"]) > datetime.fromisoformat(
        agent["updated_at"]
    )


async def test_a_wrong_field_of_a_change_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    agent = await create_agent(developer)
    for field, value in INVALID_FIELDS:
        with subtests.test(field=field, value=value):
            change = {"description": "Changed", "temperature": 0.1, field: value}
            answer = await developer.put(f"{PATH}/{agent['id']}", change)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {field}
    stored = (await developer.get(f"{PATH}/{agent['id']}")).json()
    assert {name: stored[name] for name in AGENT_KEYS} == agent


async def test_read_only_fields_are_ignored_on_update(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for field, value in READ_ONLY_FIELDS.items():
        developer = await world.user()
        with subtests.test(field=field, value=value):
            agent = await create_agent(developer)
            before = await fetch_agent(services, agent["id"])
            answer = await developer.put(f"{PATH}/{agent['id']}", {field: value})
            assert (answer.status_code, answer.json()) == (200, agent)
            assert await fetch_agent(services, agent["id"]) == before


async def test_a_status_can_change_to_any_other(world: World, subtests: pytest.Subtests) -> None:
    for before, after in itertools.product(STATUSES, STATUSES):
        developer = await world.user()
        with subtests.test(before=before, after=after):
            agent = await create_agent(developer)
            await developer.put(f"{PATH}/{agent['id']}", {"status": before})
            answer = await developer.put(f"{PATH}/{agent['id']}", {"status": after})
            assert (answer.status_code, answer.json()["status"]) == (200, after)
            assert (await developer.get(f"{PATH}/{agent['id']}")).json()["status"] == after


async def test_agent_published_is_emitted_only_when_the_status_becomes_published(
    world: World, subtests: pytest.Subtests
) -> None:
    for before, after in itertools.product(STATUSES, STATUSES):
        developer = await world.user()
        with subtests.test(before=before, after=after):
            agent = await create_agent(developer)
            await developer.put(f"{PATH}/{agent['id']}", {"status": before})
            count = len(await list_events(developer))
            await developer.put(f"{PATH}/{agent['id']}", {"status": after})
            types = [kind for kind, _ in (await list_events(developer))[count:]]
            expected = [] if before == after else ["agent.updated"]
            if after == "published" and before != after:
                expected.append("agent.published")
            assert types == expected


async def test_an_archived_agent_does_not_chat_until_its_status_changes(talk: Talker) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hello"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "agent_archived"
    await talk.client.put(talk.path, {"status": "draft"})
    await talk.say("Hello")


async def test_a_change_applies_to_the_next_turn(talk: Talker) -> None:
    change = {"system_prompt": "Be brief.", "temperature": 0.125, "max_tokens": 33}
    await talk.client.put(talk.path, change)
    await talk.say("Hello")
    request = talk.asked[-1]
    assert request["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (request["temperature"], request["max_tokens"]) == (0.125, 33)


async def test_a_change_of_the_model_changes_the_provider(talk: Talker, services: Services) -> None:
    await talk.client.put(talk.path, {"primary_model": "claude-x"})
    assert (await fetch_agent(services, talk.agent_id))["provider"] == "anthropic"
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hello"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "model_not_configured"


_NOT_OFFERED = [
    ("opnai/gpt-4o", "did you mean openai?"),
    ("my-vllm/llama", "add a key with a base_url for this provider first"),
    ("local/gpt-oss", "use local/smollm2"),
]


async def test_an_agent_whose_model_nobody_offers_is_not_published(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for model, hint in _NOT_OFFERED:
        with subtests.test(model):
            draft = await create_agent(developer, primary_model=model)
            answer = await developer.put(f"{PATH}/{draft['id']}", {"status": "published"})
            details = refused(answer, 422, "validation_error")["details"]
            assert hint in details["primary_model"]
            answer = await developer.post(
                PATH, {**BODY, "primary_model": model, "status": "published"}
            )
            refused(answer, 422, "validation_error")


async def test_an_agent_with_a_provider_of_the_tenants_own_is_published(admin: Client) -> None:
    key = {"provider": "my-vllm", "name": "Own", "api_key": "k", "base_url": "https://example.com"}
    assert (await admin.post("/api/v1/api-keys", key)).status_code == 201
    agent = await create_agent(admin, primary_model="my-vllm/llama", status="published")
    assert agent["status"] == "published"
