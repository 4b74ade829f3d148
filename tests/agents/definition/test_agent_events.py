"""Events of created, changed and deleted agents."""

from tests.agents.definition.api_calls import list_events
from tests.agents.definition.factories import BODY, PATH, create_agent
from tests.platform.events.log_entries import ENTRY_KEYS
from tests.world import Client


async def test_creating_a_draft_emits_an_event(developer: Client) -> None:
    agent = await create_agent(developer)
    assert await list_events(developer) == [
        (
            "agent.created",
            {
                "agent_id": agent["id"],
                "name": "Shop",
                "status": "draft",
                "primary_model": "gpt-4o",
            },
        )
    ]


async def test_creating_a_published_agent_emits_both_events(developer: Client) -> None:
    agent = await create_agent(developer, status="published")
    log = await list_events(developer)
    assert [kind for kind, _ in log] == ["agent.created", "agent.published"]
    assert log[0][1]["status"] == "published"
    assert log[1][1] == {"agent_id": agent["id"], "name": "Shop"}


async def test_the_event_of_a_change_has_the_changed_fields(developer: Client) -> None:
    agent = await create_agent(developer)
    change = {"name": "New", "temperature": 0.1, "max_tokens": 2048, "status": "published"}
    await developer.put(f"{PATH}/{agent['id']}", change)
    log = (await list_events(developer))[1:]
    assert log == [
        (
            "agent.updated",
            {
                "agent_id": agent["id"],
                "name": "New",
                "status": "published",
                "version": 2,
                "changed": ["name", "temperature", "status"],
            },
        ),
        ("agent.published", {"agent_id": agent["id"], "name": "New"}),
    ]


async def test_deleting_emits_an_event(developer: Client) -> None:
    agent = await create_agent(developer)
    await developer.delete(f"{PATH}/{agent['id']}")
    assert (await list_events(developer))[-1] == (
        "agent.deleted",
        {"agent_id": agent["id"], "name": "Shop"},
    )


async def test_an_event_has_the_callers_correlation_id(developer: Client) -> None:
    await developer.post(PATH, BODY, headers={"x-correlation-id": "cor_of_mine"})
    entry = (await developer.get("/api/v1/event-log")).json()["data"][0]
    assert set(entry) == ENTRY_KEYS
    assert (entry["correlation_id"], entry["parent_id"]) == ("cor_of_mine", None)


async def test_a_refused_create_emits_no_event(developer: Client) -> None:
    await developer.post(PATH, {**BODY, "status": "archived"})
    assert await list_events(developer) == []


async def test_changes_by_super_admin_emit_events_in_the_tenant_of_the_agent(
    super_admin: Client, developer: Client
) -> None:
    agent = await create_agent(developer)
    await super_admin.put(f"{PATH}/{agent['id']}", {"name": "New"})
    await super_admin.delete(f"{PATH}/{agent['id']}")
    types = [kind for kind, _ in await list_events(developer)]
    assert types == ["agent.created", "agent.updated", "agent.deleted"]
