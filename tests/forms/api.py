"""Requests to forms, as tests send them."""

from typing import Any, cast

import httpx
import msgspec
from litestar import Litestar

from app.domain.forms.definition.schemas import CreateForm
from app.kit import slugs
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.services import Services
from tests.database import fetch_rows
from tests.world import Client

PATH = "/api/v1/forms"
PUBLIC = "/api/v1/public/forms"
TEXT: dict[str, Any] = {"id": "name", "type": "text", "label": "Your name", "required": True}
EMAIL: dict[str, Any] = {"id": "email", "type": "email", "label": "Your e-mail"}
TOPIC: dict[str, Any] = {
    "id": "topic",
    "type": "select",
    "label": "Topic",
    "options": [{"value": "sales", "label": "Sales"}, {"value": "help", "label": "Help"}],
}
FILE: dict[str, Any] = {"id": "file", "type": "file", "label": "A file"}


# Rows in place of two requests, since most tests of forms begin with them.
_INSERT_FORM = """
WITH form AS (
    INSERT INTO forms (tenant_id, id, name, slug, description, status, field_count, settings,
                       branding, created_by, published_at)
    VALUES ($1, $2, $3, $4, $5, 'published', $6, $7, $8, $9, now()) RETURNING id, tenant_id
)
INSERT INTO form_versions (tenant_id, id, form_id, version, fields, created_by, published_at)
SELECT tenant_id, $10, id, 1, $11, $9, now() FROM form
"""


def _services_of(client: Client) -> Services:
    transport = client.http._transport
    assert isinstance(transport, httpx.ASGITransport)
    app = cast("Litestar", transport.app)
    services: Services = app.state.services
    return services


async def create_form(client: Client, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Returns a published form, without events of its creation unless the API creates it: forms
    that refer to something else.
    """
    refers = any(field.get("data_source") for field in fields)
    if refers or not more.keys() <= {"name", "description", "settings", "branding"}:
        return await request_form(client, *fields, **more)
    if "notifications" in more.get("settings", {}):
        return await request_form(client, *fields, **more)
    body = {"name": "Contact", "fields": list(fields) or [TEXT, EMAIL], **more}
    form, form_id = msgspec.convert(body, CreateForm), new_id("frm")
    slug = slugs.generate(form.name, 8)
    await fetch_rows(
        _services_of(client),
        _INSERT_FORM,
        client.tenant_id,
        form_id,
        form.name,
        slug,
        form.description,
        len(form.fields),
        msgspec.json.encode(form.settings).decode(),
        msgspec.json.encode(form.branding).decode(),
        client.user_id,
        new_id("frv"),
        as_json(form.fields),
    )
    return {**body, "id": form_id, "slug": slug, "status": "published"}


async def request_form(
    client: Client, *fields: dict[str, Any], is_published: bool = True, **more: Any
) -> dict[str, Any]:
    """Returns a form as the API creates it, published unless said otherwise."""
    body = {"name": "Contact", "fields": list(fields) or [TEXT, EMAIL], **more}
    answer = await client.post(PATH, body)
    assert answer.status_code == 201, answer.text
    form: dict[str, Any] = answer.json()["data"]
    if is_published:
        await publish(client, form)
        form["status"] = "published"
    return form


async def publish(client: Client, form: dict[str, Any]) -> None:
    answer = await client.post(f"{PATH}/{form['id']}/publish")
    assert answer.status_code == 200, answer.text


async def get_form(client: Client, form: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"{PATH}/{form['id']}")).json()["data"]
    return found


async def send(
    client: Client, form: dict[str, Any], data: dict[str, Any], **more: Any
) -> httpx.Response:
    """Submits answers as a visitor."""
    headers = more.pop("headers", None)
    body = {"data": data, **more}
    return await client.post(f"{PUBLIC}/{form['slug']}/submit", body, headers=headers)


async def submit(client: Client, form: dict[str, Any], data: dict[str, Any], **more: Any) -> str:
    """Returns the id of the submission of a visitor."""
    answer = await send(client, form, data, **more)
    assert answer.status_code == 201, answer.text
    submission_id: str = answer.json()["data"]["submission_id"]
    return submission_id


async def get_submission(
    client: Client, form: dict[str, Any], submission_id: str
) -> dict[str, Any]:
    answer = await client.get(f"{PATH}/{form['id']}/submissions/{submission_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


async def list_submissions(
    client: Client, form: dict[str, Any], **query: Any
) -> list[dict[str, Any]]:
    answer = await client.get(f"{PATH}/{form['id']}/submissions", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def upload(
    client: Client,
    form: dict[str, Any],
    content: bytes,
    filename: str = "file.txt",
    field_id: str | None = "file",
) -> httpx.Response:
    return await client(
        "POST",
        f"{PUBLIC}/{form['slug']}/upload",
        files={"file": (filename, content)},
        data={} if field_id is None else {"field_id": field_id},
    )


def problems(answer: httpx.Response) -> dict[str, str]:
    """Returns the messages of a 400, by field."""
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["code"] == "validation_error"
    return {item["field"]: item["message"] for item in error["details"]["errors"]}


async def send_as_user(
    client: Client, form: dict[str, Any], data: object, **more: Any
) -> httpx.Response:
    """Submits answers as a user who signed in."""
    headers = more.pop("headers", None)
    return await client.post(f"{PATH}/{form['id']}/submit", {"data": data, **more}, headers=headers)


async def count_submissions(client: Client, form: dict[str, Any]) -> int:
    """Returns the number that the form shows, once the list has as many."""
    count: int = (await get_form(client, form))["stats"]["submissions"]
    assert len(await list_submissions(client, form, per_page=100)) == count
    return count


async def upload_file(
    client: Client,
    form: dict[str, Any],
    content: bytes = b"hello",
    filename: str = "file.txt",
    field_id: str = "file",
) -> str:
    """Returns the id of an uploaded file."""
    answer = await upload(client, form, content, filename, field_id)
    assert answer.status_code == 201, answer.text
    file_id: str = answer.json()["data"]["file_id"]
    return file_id


async def list_events(client: Client, event_type: str) -> list[dict[str, Any]]:
    """Returns the data of the tenant's events of one type, the newest first."""
    answer = await client.get("/api/v1/event-log", params={"event_type": event_type})
    assert answer.status_code == 200, answer.text
    return [event["data"] for event in answer.json()["data"]]


def save_to(table: dict[str, Any], **mapping: str) -> dict[str, Any]:
    """Returns the `data_table_config` that saves answers as rows."""
    return {"table_id": table["id"], "auto_save": True, "field_mapping": mapping}


async def set_status(
    client: Client, form: dict[str, Any], submission_id: str, status: str
) -> httpx.Response:
    path = f"{PATH}/{form['id']}/submissions/{submission_id}"
    return await client("PATCH", path, json={"status": status})


# Definitions


async def update_form(client: Client, form: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Returns the form after a PUT of these fields."""
    answer = await client.put(f"{PATH}/{form['id']}", changes)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()["data"]
    return changed


async def act(client: Client, form: dict[str, Any], action: str) -> httpx.Response:
    """Publishes, unpublishes, archives or duplicates a form."""
    return await client.post(f"{PATH}/{form['id']}/{action}")


async def list_forms(client: Client, **query: Any) -> dict[str, Any]:
    answer = await client.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def list_names(client: Client, **query: Any) -> list[str]:
    """Returns the names of the listed forms."""
    return [form["name"] for form in (await list_forms(client, **query))["data"]]


async def list_versions(client: Client, form: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
    answer = await client.get(f"{PATH}/{form['id']}/versions", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def list_options(client: Client, form: dict[str, Any], field_id: str) -> list[dict[str, str]]:
    """Returns the options of a field for a user who signed in."""
    answer = await client.get(f"{PATH}/{form['id']}/fields/{field_id}/options")
    assert answer.status_code == 200, answer.text
    options: list[dict[str, str]] = answer.json()["data"]
    return options
