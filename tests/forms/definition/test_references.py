"""What forms refer to: workflows and data tables must exist, and their author may use them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.assertions import refused
from tests.automation.workflows.factories import PATH as WORKFLOWS
from tests.automation.workflows.factories import create_published, create_workflow, transform
from tests.data.tables.api import TABLES, create_table
from tests.forms.api import EMAIL, PATH, TEXT, act, get_form, request_form, update_form
from tests.identity.roles.api_calls import VIEWER_GRANTS, set_permissions
from tests.world import Client, World

Grant = Callable[..., Awaitable[None]]
BODY: dict[str, Any] = {"name": "Contact", "fields": [TEXT, EMAIL]}
SECTION = {"id": "part", "type": "section", "label": "Part"}
COLUMNS = [{"name": "full_name", "type": "text"}, {"name": "address", "type": "text"}]


@pytest.fixture
async def table(developer: Client) -> dict[str, Any]:
    return await create_table(developer, COLUMNS)


@pytest.fixture
async def grant(super_admin: Client) -> AsyncIterator[Grant]:
    """Replaces the permissions of viewers."""

    async def replace(*permissions: str) -> None:
        await set_permissions(super_admin, "viewer", *permissions)

    yield replace
    await set_permissions(super_admin, "viewer", *VIEWER_GRANTS)


@pytest.fixture
async def caller(developer: Client, world: World) -> Client:
    return await world.user("viewer", tenant_id=developer.tenant_id)


def _map(table: dict[str, Any], **more: Any) -> dict[str, Any]:
    mapping = {"name": "full_name", "email": "address"}
    return {"table_id": table["id"], "auto_save": True, "field_mapping": mapping, **more}


def _choose(table: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Returns a field with options of the table."""
    source = {"table_id": table["id"], "value_column": "address", "label_column": "full_name"}
    return {
        "id": "who",
        "type": "select",
        "label": "Who",
        "data_source": {"type": "data_table", **source, **more},
    }


async def _read_problems(client: Client, form: dict[str, Any], part: dict[str, Any]) -> Any:
    """Sends the same part of a body to create and to change a form."""
    created = await client.post(PATH, {**BODY, **part})
    changed = await client.put(f"{PATH}/{form['id']}", part)
    details = refused(created, 422, "validation_error")["details"]
    assert refused(changed, 422, "validation_error")["details"] == details
    return details


# Workflows


async def test_a_form_refers_to_a_workflow_until_it_is_removed(developer: Client) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    form = await request_form(developer, workflow_id=workflow_id)
    assert form["workflow_id"] == workflow_id
    assert (await update_form(developer, form, name="Other"))["workflow_id"] == workflow_id
    assert (await update_form(developer, form, workflow_id=None))["workflow_id"] is None
    draft = await create_workflow(developer, [transform("a", 1)])
    changed = await update_form(developer, form, workflow_id=draft["id"])
    assert changed["workflow_id"] == draft["id"]


async def test_an_unknown_workflow_is_refused(
    developer: Client, admin: Client, subtests: pytest.Subtests
) -> None:
    form = await request_form(developer)
    foreign_id = await create_published(admin, [transform("a", 1)])
    deleted_id = await create_published(developer, [transform("a", 1)])
    await developer.delete(f"{WORKFLOWS}/{deleted_id}")
    for workflow_id in ("wfl_none", foreign_id, deleted_id):
        with subtests.test(workflow_id=workflow_id):
            details = await _read_problems(developer, form, {"workflow_id": workflow_id})
            assert details == {"workflow_id": "this workflow does not exist"}


async def test_a_form_whose_workflow_was_deleted_can_be_changed(developer: Client) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    form = await request_form(developer, workflow_id=workflow_id)
    await developer.delete(f"{WORKFLOWS}/{workflow_id}")
    changed = await update_form(developer, form, workflow_id=workflow_id, name="Renamed")
    assert changed["name"] == "Renamed"


async def test_a_workflow_needs_the_permission_to_run_it(
    developer: Client, caller: Client, grant: Grant
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    form = await request_form(developer)
    with_workflow = await request_form(developer, workflow_id=workflow_id)
    await grant("forms:read", "forms:write")
    part = {"workflow_id": workflow_id}
    for answer in (
        await caller.post(PATH, {**BODY, **part}),
        await caller.put(f"{PATH}/{form['id']}", part),
        await act(caller, with_workflow, "duplicate"),
    ):
        assert refused(answer, 403, "forbidden")["details"]["required"] == "workflows:execute"
    assert (await update_form(caller, with_workflow, name="Renamed"))["workflow_id"] == workflow_id
    await grant("forms:read", "forms:write", "workflows:execute")
    assert (await update_form(caller, form, **part))["workflow_id"] == workflow_id


# Rows of data tables


async def test_a_form_refers_to_a_data_table_until_it_is_removed(
    developer: Client, table: dict[str, Any]
) -> None:
    form = await request_form(developer, data_table_config=_map(table))
    assert form["data_table_config"] == _map(table)
    changed = await update_form(developer, form, data_table_config={"table_id": table["id"]})
    expected = {"table_id": table["id"], "auto_save": False, "field_mapping": {}}
    assert changed["data_table_config"] == expected
    changed = await update_form(developer, form, data_table_config=None)
    assert changed["data_table_config"] is None
    assert (await get_form(developer, form))["data_table_config"] is None


async def test_a_mapping_names_fields_and_columns_that_exist(
    developer: Client, admin: Client, table: dict[str, Any], subtests: pytest.Subtests
) -> None:
    form = await request_form(developer)
    foreign = await create_table(admin, COLUMNS)
    deleted = await create_table(developer, COLUMNS, "Deleted")
    await developer.delete(f"{TABLES}/{deleted['id']}")
    path = "data_table_config"
    no_table = {f"{path}.table_id": "this data table does not exist"}
    mapping = f"{path}.field_mapping"
    no_column = {f"{mapping}.name": "the data table has no column salary"}
    taken = {f"{mapping}.email": "another field is mapped to the column address"}
    no_field = "is not a field of this form that is answered"
    cases: list[tuple[dict[str, Any], dict[str, str]]] = [
        (_map({"id": "tbl_none"}), no_table),
        (_map(foreign), no_table),
        (_map(deleted), no_table),
        (_map(table, field_mapping={"name": "salary"}), no_column),
        (_map(table, field_mapping={"age": "address"}), {f"{mapping}.age": no_field}),
        (_map(table, field_mapping={"name": "address", "email": "address"}), taken),
        (_map(table, field_mapping={}), {mapping: "is required with auto_save"}),
    ]
    for config, problems in cases:
        with subtests.test(config=config):
            assert await _read_problems(developer, form, {path: config}) == problems
    static = {
        **BODY,
        "fields": [TEXT, SECTION],
        path: _map(table, field_mapping={"part": "address"}),
    }
    details = refused(await developer.post(PATH, static), 422, "validation_error")["details"]
    assert details == {f"{mapping}.part": no_field}


async def test_a_mapped_field_cannot_be_removed(developer: Client, table: dict[str, Any]) -> None:
    form = await request_form(developer, data_table_config=_map(table))
    answer = await developer.put(f"{PATH}/{form['id']}", {"fields": [TEXT]})
    assert list(refused(answer, 422, "validation_error")["details"]) == [
        "data_table_config.field_mapping.email"
    ]
    config = _map(table, field_mapping={"name": "full_name"})
    changed = await update_form(developer, form, fields=[TEXT], data_table_config=config)
    assert (changed["version"], changed["data_table_config"]) == (2, config)


async def test_rows_need_the_permission_to_write_them(
    developer: Client, caller: Client, grant: Grant, table: dict[str, Any]
) -> None:
    form = await request_form(developer)
    with_table = await request_form(developer, data_table_config=_map(table))
    await grant("forms:read", "forms:write", "data_tables:read")
    part = {"data_table_config": _map(table)}
    for answer in (
        await caller.post(PATH, {**BODY, **part}),
        await caller.put(f"{PATH}/{form['id']}", part),
        await act(caller, with_table, "duplicate"),
    ):
        assert refused(answer, 403, "forbidden")["details"]["required"] == "data_tables:write"
    assert (await update_form(caller, with_table, name="Renamed"))["name"] == "Renamed"
    fields = [{**TEXT, "label": "Name"}, EMAIL]
    assert (await update_form(caller, with_table, fields=fields))["version"] == 2
    await grant("forms:read", "forms:write", "data_tables:write")
    assert (await act(caller, with_table, "duplicate")).status_code == 201


async def test_a_copy_keeps_the_workflow_and_the_table(
    developer: Client, table: dict[str, Any]
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    form = await request_form(developer, workflow_id=workflow_id, data_table_config=_map(table))
    copy = await get_form(developer, (await act(developer, form, "duplicate")).json()["data"])
    assert (copy["workflow_id"], copy["data_table_config"]) == (workflow_id, _map(table))


# Options of data tables


async def test_a_data_source_names_a_table_and_columns_that_exist(
    developer: Client, admin: Client, table: dict[str, Any], subtests: pytest.Subtests
) -> None:
    form = await request_form(developer)
    foreign = await create_table(admin, COLUMNS)
    path = "fields.1.data_source"
    no_table = {f"{path}.table_id": "this data table does not exist"}
    no_column = "this column does not exist"
    cases: list[tuple[dict[str, Any], dict[str, str]]] = [
        (_choose({"id": "tbl_none"}), no_table),
        (_choose(foreign), no_table),
        (_choose(table, value_column="salary"), {f"{path}.value_column": no_column}),
        (_choose(table, label_column="salary"), {f"{path}.label_column": no_column}),
    ]
    for field, problems in cases:
        with subtests.test(field=field):
            assert await _read_problems(developer, form, {"fields": [TEXT, field]}) == problems


async def test_a_data_source_needs_the_permission_to_read_the_table(
    developer: Client, caller: Client, grant: Grant, table: dict[str, Any]
) -> None:
    """The form shows its options to everybody."""
    form = await request_form(developer)
    with_source = await request_form(developer, TEXT, _choose(table))
    await grant("forms:read", "forms:write")
    part = {"fields": [TEXT, _choose(table)]}
    for answer in (
        await caller.post(PATH, {**BODY, **part}),
        await caller.put(f"{PATH}/{form['id']}", part),
        await act(caller, with_source, "duplicate"),
    ):
        assert refused(answer, 403, "forbidden")["details"]["required"] == "data_tables:read"
    await grant("forms:read", "forms:write", "data_tables:read")
    assert (await update_form(caller, form, **part))["fields"][1]["id"] == "who"
