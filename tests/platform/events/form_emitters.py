"""Emitters of the events of forms."""

from typing import Any

from tests.assertions import wait_until
from tests.forms.api import EMAIL, PATH, TEXT, create_form, submit
from tests.platform.events.database import load_events
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.responses import post_json, read_json
from tests.platform.events.user_emitters import Emitter


async def _create(context: EmitterContext, *, is_published: bool = False) -> str:
    """Returns its path."""
    form = await create_form(context.admin, is_published=is_published)
    return f"{PATH}/{form['id']}"


async def emit_form_created(context: EmitterContext) -> None:
    """A new one, and a copy of it."""
    await post_json(context.admin, f"{await _create(context)}/duplicate", {})


async def emit_form_updated(context: EmitterContext) -> None:
    """The name, a new version, and the withdrawal of a published one."""
    path = await _create(context, is_published=True)
    read_json(await context.admin.put(path, {"name": "Questions"}))
    read_json(await context.admin.put(path, {"fields": [TEXT]}))
    await post_json(context.admin, f"{path}/unpublish", {}, 200)
    await post_json(context.admin, f"{path}/archive", {}, 200)
    events = await load_events(context.services, context.tenant_id, "form.updated")
    changed = [row["data"]["changed"] for row in events]
    assert changed == [["name"], ["fields"], ["status"], ["status"]]


async def emit_form_published(context: EmitterContext) -> None:
    await _create(context, is_published=True)


async def emit_form_deleted(context: EmitterContext) -> None:
    read_json(await context.admin.delete(await _create(context)), 204)


async def emit_submission_created(context: EmitterContext) -> None:
    """Of a visitor and of a user, and with answers too long for the event."""
    long_text: dict[str, Any] = {"id": "text", "type": "textarea", "label": "Text"}
    long_text["validation"] = {"max_length": 50_000}
    form = await create_form(context.admin, TEXT, EMAIL, long_text)
    visitor = context.world.anonymous()
    await submit(visitor, form, {"name": "Ada"}, honeypot="filled in")
    texts = {"name": "Ada", "text": "x" * 40_000}
    await post_json(context.admin, f"{PATH}/{form['id']}/submit", {"data": texts})
    events = await load_events(context.services, context.tenant_id, "form.submission.created")
    assert [row["data"]["data"] for row in events] == [{"name": "Ada"}, None]
    assert [row["data"]["flags"] for row in events] == [["honeypot"], []]


async def emit_submission_updated(context: EmitterContext) -> None:
    """Processed by a worker, then archived."""
    form = await create_form(context.admin)
    submission_id = await submit(context.world.anonymous(), form, {"name": "Ada"})
    path = f"{PATH}/{form['id']}/submissions/{submission_id}"

    async def is_processed() -> bool:
        return bool(read_json(await context.admin.get(path))["data"]["status"] == "processed")

    await wait_until(is_processed)
    read_json(await context.admin("PATCH", path, json={"status": "archived"}))
    events = await load_events(context.services, context.tenant_id, "form.submission.updated")
    assert [row["data"]["status"] for row in events] == ["processed", "archived"]


EMITTERS: dict[str, Emitter] = {
    "form.created": emit_form_created,
    "form.updated": emit_form_updated,
    "form.deleted": emit_form_deleted,
    "form.published": emit_form_published,
    "form.submission.created": emit_submission_created,
    "form.submission.updated": emit_submission_updated,
}
