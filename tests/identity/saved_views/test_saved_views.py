"""/api/v1/views: filters of lists under a name."""

from typing import Any

import pytest

from app.domain.identity.saved_views import queries
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows
from tests.identity.service_keys.keys import create_program
from tests.world import Client, World

_PATH = "/api/v1/views"
_BODY: dict[str, Any] = {
    "kind": "conversations",
    "name": "Failed",
    "filters": {"failed": "true", "source": "embed"},
}


async def _create(caller: Client, **more: Any) -> dict[str, Any]:
    answer = await caller.post(_PATH, {**_BODY, **more})
    assert answer.status_code == 201, answer.text
    view: dict[str, Any] = answer.json()
    return view


async def _list_names(caller: Client, **params: Any) -> list[str]:
    answer = await caller.get(_PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [view["name"] for view in answer.json()["data"]]


@pytest.fixture
async def colleague(admin: Client, world: World) -> Client:
    return await world.user("agent_user", admin.tenant_id)


async def test_a_view_is_saved_changed_and_deleted(admin: Client) -> None:
    view = await _create(admin)
    assert view.keys() == {
        *("id", "kind", "name", "filters", "is_shared", "user_id", "created_at", "updated_at")
    }
    assert {name: view[name] for name in _BODY} == _BODY
    assert (view["is_shared"], view["user_id"]) == (False, admin.user_id)
    path = f"{_PATH}/{view['id']}"
    assert (await admin.get(path)).json() == view
    changes = {"name": "Rated", "filters": {"rating": "down"}, "is_shared": True}
    changed = (await admin.put(path, changes)).json()
    assert changed == {**view, **changes, "updated_at": changed["updated_at"]}
    assert (await admin.get(path)).json() == changed
    assert (await admin.put(path, {})).json()["name"] == "Rated"
    assert (await admin.delete(path)).status_code == 204
    refused(await admin.get(path), 404, "view_not_found")


async def test_views_are_listed_by_name_and_kind(admin: Client) -> None:
    for name, kind in (("b", "agents"), ("a", "conversations"), ("c", "conversations")):
        await _create(admin, name=name, kind=kind)
    assert await _list_names(admin) == ["a", "b", "c"]
    assert await _list_names(admin, kind="conversations") == ["a", "c"]
    assert await _list_names(admin, sort="-name", per_page=1) == ["c"]


async def test_only_shared_views_are_seen_by_others(
    admin: Client, colleague: Client, world: World, subtests: pytest.Subtests
) -> None:
    own, shared = await _create(admin), await _create(admin, name="Shared", is_shared=True)
    assert await _list_names(colleague) == ["Shared"]
    assert (await colleague.get(f"{_PATH}/{shared['id']}")).json() == shared
    foreign = await world.user("tenant_admin", await world.tenant())
    assert await _list_names(foreign) == []
    for caller, view in ((colleague, own), (foreign, own), (foreign, shared)):
        with subtests.test(caller=caller.user_id, view=view["name"]):
            path = f"{_PATH}/{view['id']}"
            for method, body in (("GET", None), ("PUT", {"name": "x"}), ("DELETE", None)):
                answer = await caller(method, path, json=body)
                refused(answer, 404, "view_not_found")
    assert sorted(await _list_names(admin)) == ["Failed", "Shared"]


async def test_a_shared_view_is_changed_by_its_owner_and_administrators(
    admin: Client, colleague: Client, world: World
) -> None:
    developer = await world.user("agent_developer", admin.tenant_id)
    path = f"{_PATH}/{(await _create(colleague, is_shared=True))['id']}"
    refused(await developer.put(path, {"name": "x"}), 403, "forbidden")
    refused(await developer.delete(path), 403, "forbidden")
    assert (await colleague.put(path, {"name": "Mine"})).status_code == 200
    changed = (await admin.put(path, {"name": "Ours"})).json()
    assert (changed["name"], changed["user_id"]) == ("Ours", colleague.user_id)
    assert (await admin.delete(path)).status_code == 204


async def test_wrong_bodies_are_refused(admin: Client, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"kind": "secrets"}, "kind"),
        ({"name": ""}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"filters": None}, "filters"),
        ({"filters": {"failed": True}}, "filters.failed"),
        ({"filters": {"search": "x" * 501}}, "filters.search"),
        ({"filters": {"x" * 65: ""}}, "filters"),
        ({"filters": {str(number): "" for number in range(31)}}, "filters"),
        ({"is_shared": "yes"}, "is_shared"),
    ]
    for change, field in cases:
        with subtests.test(change=change):
            error = refused(await admin.post(_PATH, {**_BODY, **change}), 422, "validation_error")
            assert [name for name in error["details"] if name.startswith(field)]


async def test_a_user_has_a_limited_number_of_views(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_VIEWS", 2)
    for _ in range(2):
        await _create(admin)
    answer = await admin.post(_PATH, _BODY)
    assert "2 saved views" in refused(answer, 409, "conflict")["message"]


async def test_a_program_has_views_of_its_own(admin: Client) -> None:
    program = await create_program(admin, "agent_user")
    await _create(program)
    assert await _list_names(program) == ["Failed"]
    assert await _list_names(admin) == []


async def test_shared_views_outlive_their_owner(
    admin: Client, colleague: Client, services: Services
) -> None:
    await _create(colleague)
    await _create(colleague, name="Shared", is_shared=True)
    await fetch_rows(services, "DELETE FROM users WHERE id = $1", colleague.user_id)
    rows = await fetch_rows(
        services, "SELECT name FROM saved_views WHERE user_id = $1", colleague.user_id
    )
    assert [row["name"] for row in rows] == ["Shared"]
    assert await _list_names(admin) == ["Shared"]
