"""The history of records: who changed what, and when."""

from typing import Any

import pytest

from app.domain.platform.history import entries
from app.domain.platform.history.kinds import KINDS
from app.services import Services
from tests.agents.definition.factories import create_agent
from tests.http.record_cases import CASES, Owner, create_attachment
from tests.world import Client, World

_PATH = "/api/v1/history"
# The kind of each case, and the parameter of its path that is the record's id.
_KINDS = {
    "/users/": ("user", "user_id"),
    "/roles/": ("role", "role"),
    "/api/v1/profile": ("user", ""),
    "/api/v1/tenants/": ("tenant", "tenant_id"),
    "/api/v1/agents/{agent_id}/sub-agents/direct/": ("agent", "child_id"),
    "/api/v1/agents/{agent_id}/sources/": ("source", "source_id"),
    "/api/v1/agents/": ("agent", "agent_id"),
    "/v1/agents/": ("agent", "agent_id"),
    "/api/v1/embed/": ("embed_key", "key_id"),
    "/v1/credentials/": ("credential", "credential_id"),
    "/api/v1/data-tables/": ("data_table", "table_id"),
    "/v1/tools/": ("tool", "tool_id"),
    "/api/v1/event-subscriptions/": ("subscription", "subscription_id"),
    "/api/v1/webhooks/": ("webhook", "webhook_id"),
    "/api/v1/incoming-webhooks/": ("incoming_webhook", "webhook_id"),
    "/api/v1/workflows/": ("workflow", "workflow_id"),
    "/api/v1/forms/": ("form", "form_id"),
    "/api/v1/notification-channels/": ("notification_channel", "channel_id"),
}
# They change often, and have no history.
_WITHOUT = ("/documents/", "/rows/", "/submissions/", "/preferences", "/draft", "/views/")


@pytest.fixture
async def owner(world: World, super_admin: Client) -> Owner:
    return Owner(world, await world.user("tenant_admin"), super_admin)


async def _read(client: Client, kind: str, record_id: str = "", **query: Any) -> Any:
    params = {"kind": kind, **({"record_id": record_id} if record_id else {}), **query}
    answer = await client.get(_PATH, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_every_column_of_a_table_with_a_history_has_a_place() -> None:
    assert entries.list_columns_without_place() == []


@pytest.mark.usefixtures("restored_grants")
async def test_every_change_of_a_record_leaves_an_entry(
    owner: Owner, subtests: pytest.Subtests
) -> None:
    seen = set()
    for case in CASES:
        if any(part in case.path for part in _WITHOUT):
            continue
        with subtests.test(method=case.method, path=case.path):
            kind, parameter = next(
                value for prefix, value in _KINDS.items() if case.path.startswith(prefix)
            )
            seen.add(kind)
            values = await case.create(owner)
            client = case.client(owner)
            record_id = values[parameter] if parameter else client.user_id
            before = await _read(client, kind, record_id)
            path = case.path.format(**values)
            answer = await client(case.method, path, json=case.changes[0])
            assert answer.status_code == 200, answer.text
            latest, *older = await _read(client, kind, record_id)
            assert older[:1] == before[:1]
            assert latest["actor"]["id"] == client.user_id
            assert latest["action"] == "changed"
            assert latest["changes"]
            assert latest["kind"] == kind
            assert "planted" not in str(latest)
            # Nothing changes, so there is nothing to tell.
            await client(case.method, path, json=case.changes[0])
            if not case.shown_as:
                assert (await _read(client, kind, record_id))[0] == latest
    assert seen == KINDS.keys() - {"service_key", "provider_key"}


async def test_an_agent_has_the_history_of_all_its_parts(owner: Owner) -> None:
    ids = await create_attachment(owner)
    client, agent_id, tool_id = owner.client, ids["agent_id"], ids["tool_id"]
    path = f"/api/v1/agents/{agent_id}"
    await client.put(path, {"temperature": 0.1, "status": "published"})
    await client.put(f"{path}/websearch/config", {"max_results": 3})
    await client.post(f"{path}/versions/1/restore")
    await client.delete(f"/v1/agents/{agent_id}/tools/{tool_id}")
    await client.delete(path)
    history = await _read(client, "agent", agent_id)
    told = [
        (entry["action"], [(change["path"], change["op"]) for change in entry["changes"]])
        for entry in history
    ]
    assert [action for action, _ in told] == [
        "deleted",
        "changed",
        "restored",
        "changed",
        "published",
        "changed",
        "created",
    ]
    removed, restored, searched, published, attached, created = (part for _, part in told[1:])
    assert (f"tools.{tool_id}.is_enabled", "removed") in removed
    assert ("temperature", "changed") in restored
    assert ("web_search.max_results", "added") in searched
    assert set(published) == {
        ("temperature", "changed"),
        ("status", "changed"),
        ("version", "changed"),
    }
    assert (f"tools.{tool_id}.is_enabled", "added") in attached
    assert ("system_prompt", "added") in created
    [change] = [item for item in history[4]["changes"] if item["path"] == "temperature"]
    assert change == {"path": "temperature", "op": "changed", "before": 0.7, "after": 0.1}
    assert history[4]["actor"] == {"type": "user", "id": client.user_id, "name": "Test User"}
    assert history[0]["record_name"] == history[-1]["record_name"]


async def test_a_draft_has_no_history_until_it_is_published(developer: Client) -> None:
    agent = await create_agent(developer)
    path = f"/api/v1/agents/{agent['id']}"
    await developer.put(f"{path}/draft", {"name": "New"})
    assert len(await _read(developer, "agent", agent["id"])) == 1
    answer = await developer.post(f"{path}/draft/publish", {"note": "A new name"})
    assert answer.headers["etag"] == (await developer.get(path)).headers["etag"]
    latest, _ = await _read(developer, "agent", agent["id"])
    assert latest["action"] == "published"
    assert [change["path"] for change in latest["changes"]] == ["name"]


async def test_hidden_fields_stay_hidden(world: World, developer: Client) -> None:
    agent = await create_agent(developer, system_prompt="planted-prompt")
    await developer.put(
        f"/api/v1/agents/{agent['id']}", {"system_prompt": "planted-2", "name": "New"}
    )
    viewer = await world.user("viewer", developer.tenant_id)
    history = await _read(viewer, "agent", agent["id"])
    assert "planted" in str(await _read(developer, "agent", agent["id"]))
    assert "planted" not in str(history)
    assert [change["path"] for change in history[0]["changes"]] == ["name"]


async def test_a_caller_needs_the_permission_of_the_kind(
    world: World, developer: Client, subtests: pytest.Subtests
) -> None:
    viewer = await world.user("viewer", developer.tenant_id)
    for kind, record_kind in KINDS.items():
        with subtests.test(kind=kind):
            for client in (viewer, developer):
                permissions = (await client.get("/me/permissions")).json()["permissions"]
                expected = 200 if record_kind.reads in permissions else 403
                answer = await client.get(_PATH, params={"kind": kind})
                assert answer.status_code == expected
    assert (await developer.get(_PATH, params={"kind": "row"})).status_code == 422


async def test_other_tenants_have_histories_of_their_own(world: World, developer: Client) -> None:
    agent = await create_agent(developer)
    stranger = await world.user()
    assert await _read(stranger, "agent", agent["id"]) == []
    assert await _read(stranger, "agent") == []
    assert len(await _read(developer, "agent")) == 1


async def test_a_failed_change_leaves_no_entry(developer: Client) -> None:
    agent = await create_agent(developer)
    operations = [
        {"action": "update", "id": agent["id"], "data": {"name": "Second"}},
        {
            "action": "update",
            "id": agent["id"],
            "data": {"name": "Third", "status": "published", "primary_model": "local/none"},
        },
    ]
    answer = await developer.post("/v1/agents/batch", {"operations": operations})
    assert [result["status"] for result in answer.json()["results"]] == [200, 422]
    latest, _ = await _read(developer, "agent", agent["id"])
    assert [change["after"] for change in latest["changes"]] == ["Second"]


async def test_long_values_are_cut_and_many_changes_are_bounded(developer: Client) -> None:
    agent = await create_agent(developer, system_prompt="\N{OLD ITALIC LETTER A}" * 100_000)
    path = f"/api/v1/agents/{agent['id']}"
    await developer.put(path, {"system_prompt": "\N{OLD ITALIC LETTER BE}" * 100_000})
    latest, first = await _read(developer, "agent", agent["id"])
    assert len(str(latest)) < 40_000
    assert latest["truncated"]
    assert {"path": "system_prompt", "op": "changed"} in latest["changes"]
    assert len(str(first)) < 40_000


async def test_the_history_of_a_user_is_deleted_with_the_user(
    world: World, services: Services
) -> None:
    admin = await world.user("tenant_admin")
    user = await world.user("viewer", admin.tenant_id)
    await user.put("/api/v1/profile", {"first_name": "Planted"})
    assert "Planted" in str(await _read(admin, "user", user.user_id))
    assert (await admin.delete(f"/users/{user.user_id}")).status_code == 200
    [entry] = await _read(admin, "user", user.user_id)
    assert (entry["action"], entry["record_name"], entry["changes"]) == ("deleted", None, [])
    del services
