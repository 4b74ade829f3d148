"""Signatures: sent as images, stored as files of the submission."""

import base64
from typing import Any

import pytest

from app.domain.forms.submissions import uploads
from app.domain.platform.files import api as files
from app.services import Services
from tests.assertions import refused
from tests.data.tables.api import create_table, list_rows
from tests.database import fetch_rows, run_sql
from tests.forms.api import (
    FILE,
    PATH,
    PUBLIC,
    TEXT,
    create_form,
    get_submission,
    list_events,
    list_submissions,
    problems,
    request_form,
    save_to,
    send,
    send_as_user,
    submit,
    upload,
    upload_file,
)
from tests.forms.contents import PDF, PNG
from tests.forms.definition.fields.samples import SIGNATURE
from tests.forms.manual_worker import TEAM, allow_mails, process, read_mails
from tests.platform.files.api import read_usage, stored_files
from tests.world import Client

_SIGN: dict[str, Any] = {"id": "sign", "type": "signature", "label": "Signature"}
_CONTENT = base64.b64decode(SIGNATURE.partition(",")[2])
_STORE_AS_BEFORE = "UPDATE form_submissions SET data = $2::json WHERE id = $1"


async def test_an_image_becomes_a_file_of_the_submission(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, _SIGN)
    submission_id = await submit(anonymous, form, {"name": "Ada", "sign": SIGNATURE})
    stored = await get_submission(developer, form, submission_id)
    (file,) = stored["files"]
    assert stored["data"] == {"name": "Ada", "sign": file["file_id"]}
    assert file == {
        "field_id": "sign",
        "file_id": file["file_id"],
        "filename": "sign.png",
        "size_bytes": len(_CONTENT),
        "mime_type": "image/png",
    }
    content = await developer.get(f"{PATH}/{form['id']}/files/{file['file_id']}")
    assert content.content == _CONTENT
    for event in await list_events(developer, "form.submission.created"):
        assert event["data"] == stored["data"]
    (listed,) = await list_submissions(developer, form)
    assert listed["data"] == stored["data"]


async def test_users_and_uploads_sign_as_well(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, _SIGN)
    answer = await send_as_user(developer, form, {"sign": SIGNATURE})
    assert answer.status_code == 201, answer.text
    file_id = await upload_file(anonymous, form, PNG, "mine.png", "sign")
    submission_id = await submit(anonymous, form, {"sign": file_id})
    (file,) = (await get_submission(developer, form, submission_id))["files"]
    assert (file["file_id"], file["filename"]) == (file_id, "mine.png")
    # Neither another kind of file nor one that was not uploaded for it.
    refused(await upload(anonymous, form, PDF, "a.pdf", "sign"), 415, "unsupported_file_type")
    assert list(problems(await send(anonymous, form, {"sign": file_id}))) == ["sign"]


async def test_a_refused_submission_leaves_no_file(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, _SIGN, FILE, settings={"max_submissions": 1})
    wrong = {"sign": SIGNATURE, "file": "fil_1"}
    assert list(problems(await send(anonymous, form, wrong))) == ["file"]
    assert stored_files(services, developer.tenant_id) == []
    await submit(anonymous, form, {})
    refused(await send(anonymous, form, {"sign": SIGNATURE}), 409, "form_closed")
    assert stored_files(services, developer.tenant_id) == []
    assert (await read_usage(developer))["used_bytes"] == 0


async def test_a_deleted_submission_has_no_signature(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, _SIGN)
    submission_id = await submit(anonymous, form, {"sign": SIGNATURE})
    assert len(stored_files(services, developer.tenant_id)) == 1
    answer = await developer.delete(f"{PATH}/{form['id']}/submissions/{submission_id}")
    assert answer.status_code == 204
    await uploads.delete_expired(services)
    assert stored_files(services, developer.tenant_id) == []


async def test_the_same_signature_from_the_same_address_is_a_repeat(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, _SIGN)
    await submit(anonymous, form, {"sign": SIGNATURE})
    submission_id = await submit(anonymous, form, {"sign": SIGNATURE})
    assert (await get_submission(developer, form, submission_id))["flags"] == ["repeat"]


async def test_a_draft_keeps_the_image_until_it_is_sent(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, _SIGN)
    answer = await anonymous.post(f"{PUBLIC}/{form['slug']}/drafts", {"data": {"sign": SIGNATURE}})
    assert answer.json()["data"]["data"] == {"sign": SIGNATURE}


async def test_answers_that_were_stored_as_images_stay_readable(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, _SIGN)
    submission_id = await submit(anonymous, form, {"name": "Ada"})
    data = f'{{"name": "Ada", "sign": "{SIGNATURE}"}}'
    await run_sql(services, _STORE_AS_BEFORE, submission_id, data)
    stored = await get_submission(developer, form, submission_id)
    assert stored["data"]["sign"] == SIGNATURE
    table = await developer.get(f"{PATH}/{form['id']}/submissions.csv")
    assert table.text.splitlines()[1].endswith(",Ada,signed")


async def test_rows_tables_and_mails_have_a_link(
    developer: Client, anonymous: Client, services: Services
) -> None:
    await allow_mails(services, developer.tenant_id)
    table = await create_table(
        developer, [{"name": "Name", "type": "text"}, {"name": "Sign", "type": "text"}]
    )
    form = await request_form(
        developer,
        TEXT,
        _SIGN,
        FILE,
        data_table_config=save_to(table, name="Name", sign="Sign"),
        settings={"notifications": {"email": TEAM}},
    )
    file_id = await upload_file(anonymous, form, b"hello", "plan.txt")
    answers = {"name": "Ada", "sign": SIGNATURE, "file": file_id}
    submission_id = await submit(anonymous, form, answers)
    signature_id = (await get_submission(developer, form, submission_id))["data"]["sign"]
    await process(services, submission_id)
    address = f"{services.settings.public_url}{PATH}/{form['id']}"
    link = f"{address}/files/{signature_id}"
    (row,) = (await list_rows(developer, table))["data"]
    assert row["values"] == {"Name": "Ada", "Sign": link}
    csv = await developer.get(f"{PATH}/{form['id']}/submissions.csv")
    assert csv.text.splitlines()[1].endswith(f",Ada,{link},{file_id}")
    ((_, content),) = await read_mails(services, developer.tenant_id)
    assert f"Signature\nsign.png\n{link}\n" in content.text
    assert f"plan.txt\n{address}/files/{file_id}\n" in content.text
    assert f"{address}/submissions/{submission_id}" in content.text
    assert f'<a href="{link}">sign.png</a>' in content.html
    answer = await developer.get(f"{PATH}/{form['id']}/submissions/{submission_id}")
    assert answer.status_code == 200


async def test_a_failure_after_the_first_file_deletes_it(
    developer: Client, services: Services, anonymous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = await create_form(developer, _SIGN, {**_SIGN, "id": "second"})
    store, calls = files.store, list[str]()

    async def fail_later(*args: Any, **more: Any) -> Any:
        calls.append(more["filename"])
        if len(calls) > 1:
            raise OSError("no space")
        return await store(*args, **more)

    monkeypatch.setattr(files, "store", fail_later)
    answer = await send(anonymous, form, {"sign": SIGNATURE, "second": SIGNATURE})
    assert answer.status_code == 500
    assert calls == ["sign.png", "second.png"]
    assert stored_files(services, developer.tenant_id) == []
    rows = await fetch_rows(services, "SELECT 1 FROM form_uploads WHERE form_id = $1", form["id"])
    assert rows == []
