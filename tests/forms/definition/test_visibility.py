"""What callers see of a form who may not read its submissions, or not change it."""

import pytest

from app.services import Services
from tests.assertions import refused
from tests.forms.api import (
    FILE,
    PATH,
    TEXT,
    act,
    get_form,
    list_forms,
    request_form,
    set_status,
    submit,
    update_form,
    upload_file,
)
from tests.forms.contents import PNG
from tests.security.grants import change_grant
from tests.world import Client, World

_FILES = "/api/v1/files"
_READ = "submissions:read"
_SETTINGS = {"notifications": {"email": "team@example.com"}}


async def test_figures_and_the_notified_address_are_hidden(
    world: World, developer: Client, subtests: pytest.Subtests
) -> None:
    form = await request_form(developer, settings=_SETTINGS)
    for role in ("agent_user", "viewer"):
        with subtests.test(role=role):
            caller = await world.user(role, developer.tenant_id)
            view = await get_form(caller, form)
            assert (view["stats"], view["settings"]["notifications"]) == (None, {"email": None})
            assert view["fields"] == form["fields"]
            by_slug = (await caller.get(f"{PATH}/slug/{form['slug']}")).json()["data"]
            assert by_slug == view
            (summary,) = (await list_forms(caller))["data"]
            assert summary["submission_count"] is None


async def test_the_permission_alone_decides(
    developer: Client, anonymous: Client, services: Services
) -> None:
    """Here of a role that may change forms and read files, but no submissions."""
    form = await request_form(developer, TEXT, FILE)
    file_id = await upload_file(anonymous, form, PNG)
    submission_id = await submit(anonymous, form, {"name": "Ada", "file": file_id})
    path = f"{_FILES}/{file_id}"
    assert (await developer.get(f"{path}/content")).content == PNG
    async with change_grant(services, "agent_developer", _READ, is_granted=False):
        answer = await set_status(developer, form, submission_id, "archived")
        assert refused(answer, 403, "forbidden")["details"]["required"] == _READ
        for method, address in (("GET", path), ("GET", f"{path}/content")):
            refused(await developer(method, address), 404, "file_not_found")
        assert (await developer("HEAD", f"{path}/content")).status_code == 404
        assert (await developer.get(_FILES)).json()["data"] == []
        refused(await developer.get(_FILES, params={"purpose": "form"}), 403, "forbidden")
        assert (await update_form(developer, form, name="New"))["stats"] is None
        assert (await act(developer, form, "archive")).json()["data"]["stats"] is None
