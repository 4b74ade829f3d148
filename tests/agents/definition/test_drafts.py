"""/api/v1/agents/:id/draft: changes that are stored, and published later."""

import asyncio
from typing import Any

import httpx
import pytest

from app.services import Services
from tests.agents.definition.api_calls import list_event_data
from tests.agents.definition.database import count_rows, fetch_agent
from tests.agents.definition.factories import (
    BODY,
    INVALID_FIELDS,
    NO_AGENT,
    PATH,
    create_agent,
)
from tests.assertions import refused
from tests.world import Client, World

_CHANGES: dict[str, Any] = {"system_prompt": "You help at once.", "temperature": 0.25}


class _Drafts:
    """An agent and the requests of its draft."""

    def __init__(self, caller: Client, agent_id: str) -> None:
        self.caller, self.agent_id = caller, agent_id
        self.path = f"{PATH}/{agent_id}/draft"

    async def save(self, **fields: Any) -> dict[str, Any]:
        return await self.save_as(self.caller, **fields)

    async def save_as(self, caller: Client, **fields: Any) -> dict[str, Any]:
        answer = await caller.put(self.path, fields)
        assert answer.status_code == 200, answer.text
        draft: dict[str, Any] = answer.json()
        return draft

    async def get(self) -> dict[str, Any]:
        answer = await self.caller.get(self.path)
        assert answer.status_code == 200, answer.text
        draft: dict[str, Any] = answer.json()
        return draft

    async def publish(self, **body: Any) -> httpx.Response:
        return await self.caller.post(f"{self.path}/publish", body)

    async def change_live(self, **fields: Any) -> None:
        answer = await self.caller.put(f"{PATH}/{self.agent_id}", fields)
        assert answer.status_code == 200, answer.text


@pytest.fixture
async def drafts(developer: Client) -> _Drafts:
    agent = await create_agent(developer, temperature=0.5)
    return _Drafts(developer, agent["id"])


async def test_a_draft_is_stored_beside_an_agent_that_does_not_change(
    drafts: _Drafts, services: Services
) -> None:
    before = await fetch_agent(services, drafts.agent_id)
    saved = await drafts.save(**_CHANGES)
    assert await drafts.get() == saved
    state = saved.pop("draft")
    assert saved == _CHANGES
    assert state.pop("saved_at").endswith("Z")
    assert state == {
        "saved_by": drafts.caller.user_id,
        "based_on": 1,
        "is_outdated": False,
        "changes": [
            {
                "path": "system_prompt",
                "op": "changed",
                "before": "You help.",
                "after": "You help at once.",
            },
            {"path": "temperature", "op": "changed", "before": 0.5, "after": 0.25},
        ],
        "truncated": False,
    }
    assert await fetch_agent(services, drafts.agent_id) == before
    assert await list_event_data(drafts.caller, "agent.updated") == []


async def test_a_saved_draft_replaces_the_one_before(
    drafts: _Drafts, world: World, services: Services
) -> None:
    await drafts.save(**_CHANGES)
    colleague = await world.user("agent_developer", drafts.caller.tenant_id)
    second = await drafts.save_as(colleague, name="Other")
    assert {name for name in second if name != "draft"} == {"name"}
    assert second["draft"]["saved_by"] == colleague.user_id
    assert await count_rows(services, "record_drafts", "record_id", drafts.agent_id) == 1


async def test_the_answer_of_a_get_can_be_saved_again(drafts: _Drafts) -> None:
    saved = await drafts.save(**_CHANGES)
    again = await drafts.save(**saved)
    for draft in (saved, again):
        del draft["draft"]["saved_at"]
    assert again == saved


async def test_an_agent_without_a_draft_has_none_to_get_delete_or_publish(drafts: _Drafts) -> None:
    await drafts.save(**_CHANGES)
    assert (await drafts.caller.delete(drafts.path)).status_code == 204
    refused(await drafts.caller.get(drafts.path), 404, "draft_not_found")
    refused(await drafts.caller.delete(drafts.path), 404, "draft_not_found")
    refused(await drafts.publish(), 404, "draft_not_found")


async def test_a_draft_is_validated_as_a_change_is(
    drafts: _Drafts, subtests: pytest.Subtests
) -> None:
    for field, value in (*INVALID_FIELDS, ("unknown", 1)):
        with subtests.test(f"{field} {str(value)[:20]}"):
            answer = await drafts.caller.put(drafts.path, {field: value})
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}
    refused(await drafts.caller.get(drafts.path), 404, "draft_not_found")


async def test_publishing_changes_the_agent_as_a_put_does(drafts: _Drafts) -> None:
    await drafts.save(**_CHANGES, name="Renamed", status="published")
    answer = await drafts.publish(note="Shorter answers")
    assert answer.status_code == 200, answer.text
    agent = answer.json()
    assert {name: agent[name] for name in _CHANGES} == _CHANGES
    assert (agent["name"], agent["status"], agent["version"]) == ("Renamed", "published", 2)
    live = (await drafts.caller.get(f"{PATH}/{drafts.agent_id}")).json()
    assert agent.items() <= live.items()
    versions = (await drafts.caller.get(f"{PATH}/{drafts.agent_id}/versions")).json()["data"]
    assert [version["note"] for version in versions] == ["Shorter answers", ""]
    (updated,) = await list_event_data(drafts.caller, "agent.updated")
    assert set(updated["changed"]) == {"system_prompt", "temperature", "name", "status"}
    assert len(await list_event_data(drafts.caller, "agent.published")) == 1
    refused(await drafts.caller.get(drafts.path), 404, "draft_not_found")


async def test_a_draft_that_cannot_go_live_stays_a_draft(drafts: _Drafts) -> None:
    await drafts.save(primary_model="nobody/knows-it", status="published", name="New")
    error = refused(await drafts.publish(), 422, "validation_error")
    assert set(error["details"]) == {"primary_model"}
    assert (await drafts.get())["name"] == "New"
    live = (await drafts.caller.get(f"{PATH}/{drafts.agent_id}")).json()
    assert (live["name"], live["status"]) == (BODY["name"], "draft")


async def test_a_change_of_the_agent_makes_its_draft_outdated(
    drafts: _Drafts, subtests: pytest.Subtests
) -> None:
    for field, value in (("temperature", 0.9), ("description", "New"), ("status", "archived")):
        with subtests.test(field):
            await drafts.save(system_prompt=f"Not {field}")
            await drafts.change_live(**{field: value})
            # What is saved afterwards began before the change.
            state = (await drafts.save(system_prompt=f"Without {field}"))["draft"]
            assert state["is_outdated"] is True
            error = refused(await drafts.publish(), 409, "draft_outdated")
            assert [item["path"] for item in error["details"]["changes"]] == ["system_prompt"]
            (changed,) = error["details"]["live_changes"]
            assert (changed["path"], changed["after"]) == (field, value)
            answer = await drafts.publish(overwrite=True)
            assert answer.status_code == 200, answer.text
            assert answer.json()["system_prompt"] == f"Without {field}"
            assert answer.json()[field] == value


async def test_a_change_that_was_taken_back_leaves_the_draft_current(drafts: _Drafts) -> None:
    await drafts.save(name="New")
    await drafts.change_live(temperature=0.9)
    await drafts.change_live(temperature=0.5)
    state = (await drafts.get())["draft"]
    assert (state["based_on"], state["is_outdated"]) == (1, False)
    assert (await drafts.publish()).status_code == 200


async def test_a_draft_that_was_saved_since_is_not_published_unseen(
    drafts: _Drafts, world: World
) -> None:
    seen = (await drafts.save(name="Seen"))["draft"]["saved_at"]
    colleague = await world.user("agent_developer", drafts.caller.tenant_id)
    unseen = (await drafts.save_as(colleague, name="Unseen"))["draft"]["saved_at"]
    error = refused(await drafts.publish(saved_at=seen), 412, "precondition_failed")
    assert error["details"] == {"saved_at": unseen}
    answer = await drafts.publish(saved_at=unseen)
    assert answer.json()["name"] == "Unseen"


async def test_one_of_two_people_who_publish_at_once_does(drafts: _Drafts) -> None:
    await drafts.save(**_CHANGES)
    answers = await asyncio.gather(*(drafts.publish(note=str(number)) for number in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 404, 404, 404]
    versions = (await drafts.caller.get(f"{PATH}/{drafts.agent_id}/versions")).json()
    assert versions["pagination"]["total"] == 2


async def test_a_draft_is_deleted_with_its_agent(drafts: _Drafts, services: Services) -> None:
    await drafts.save(**_CHANGES)
    assert (await drafts.caller.delete(f"{PATH}/{drafts.agent_id}")).status_code == 204
    assert await count_rows(services, "record_drafts", "record_id", drafts.agent_id) == 0
    for method in ("GET", "PUT", "DELETE"):
        answer = await drafts.caller(method, drafts.path, json={})
        refused(answer, 404, "agent_not_found")


async def test_a_draft_of_the_largest_fields_is_shown_with_cut_texts(drafts: _Drafts) -> None:
    prompt = "<script>alert(1)</script>" * 4000
    saved = await drafts.save(system_prompt=prompt)
    assert saved["system_prompt"] == prompt
    (change,) = saved["draft"]["changes"]
    assert len(change["after"]) < 10_100
    error = refused(await drafts.publish(note="x" * 501), 422, "validation_error")
    assert set(error["details"]) == {"note"}


async def test_strangers_and_readers_neither_see_nor_publish_a_draft(
    drafts: _Drafts, world: World
) -> None:
    await drafts.save(**_CHANGES)
    stranger = await world.user("agent_developer")
    reader = await world.user("agent_user", drafts.caller.tenant_id)
    for caller, status, code in (
        (stranger, 404, "agent_not_found"),
        (reader, 403, "forbidden"),
    ):
        refused(await caller.get(drafts.path), status, code)
        refused(await caller.put(drafts.path, {"name": "Mine"}), status, code)
        refused(await caller.delete(drafts.path), status, code)
        refused(await caller.post(f"{drafts.path}/publish", {}), status, code)
    refused(await drafts.caller.get(f"{PATH}/{NO_AGENT}/draft"), 404, "agent_not_found")
    assert {name for name in await drafts.get() if name != "draft"} == set(_CHANGES)
