"""Uploaded files: to what they are bound, how long they stay, and how they are served."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from app.domain.forms.submissions import uploads
from app.domain.platform.files import api as files
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows, run_sql
from tests.forms.api import (
    FILE,
    PATH,
    TEXT,
    count_submissions,
    create_form,
    get_submission,
    problems,
    send,
    send_as_user,
    submit,
    upload_file,
)
from tests.forms.contents import HTML, PDF, PNG, SVG
from tests.platform.files.api import read_usage, stored_files
from tests.world import Client

_NOT_THERE = "needs a file that was uploaded for this field within the last day; upload it again"
_OTHER: dict[str, Any] = {"id": "other", "type": "file", "label": "Another file"}
_EXPIRE = "UPDATE form_uploads SET expires_at = now() - interval '1 second' WHERE file_id = $1"


# What they are bound to


async def test_a_submission_has_its_files(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, FILE, _OTHER)
    first = await upload_file(anonymous, form, b"one", "one.txt")
    second = await upload_file(anonymous, form, PNG, "two.png", "other")
    data = {"name": "Ada", "file": first, "other": second}
    submission_id = await submit(anonymous, form, data)
    stored = await get_submission(developer, form, submission_id)
    assert stored["data"] == data
    assert stored["files"] == [
        {
            "field_id": "file",
            "file_id": first,
            "filename": "one.txt",
            "size_bytes": 3,
            "mime_type": "text/plain",
        },
        {
            "field_id": "other",
            "file_id": second,
            "filename": "two.png",
            "size_bytes": len(PNG),
            "mime_type": "image/png",
        },
    ]


async def test_only_a_file_of_the_same_form_and_field_is_accepted(
    developer: Client, admin: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, TEXT, FILE, _OTHER)
    sibling = await create_form(developer, TEXT, FILE)
    foreign = await create_form(admin, TEXT, FILE)
    own = (await developer("POST", "/api/v1/files", files={"file": ("a.txt", b"own")})).json()
    submitted = await upload_file(anonymous, form)
    await submit(anonymous, form, {"name": "Ada", "file": submitted})
    cases = {
        "of another form": await upload_file(anonymous, sibling),
        "of another field": await upload_file(anonymous, form, field_id="other"),
        "of another submission": submitted,
        "of another tenant": await upload_file(anonymous, foreign),
        "a file of a user": own["data"]["id"],
        "forged": "fil_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }
    for name, file_id in cases.items():
        with subtests.test(name):
            answer = await send(anonymous, form, {"name": "Ada", "file": file_id})
            assert problems(answer) == {"file": _NOT_THERE}
            answer = await send_as_user(developer, form, {"name": "Ada", "file": file_id})
            assert problems(answer) == {"file": _NOT_THERE}
    for value in ("fil_", "fil_../../x", "x", 7, ["fil_a"], {"file_id": "fil_a"}, True):
        with subtests.test(value=value):
            answer = await send(anonymous, form, {"name": "Ada", "file": value})
            assert set(problems(answer)) == {"file"}
    assert await count_submissions(developer, form) == 1


async def test_one_file_answers_one_field(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, FILE, _OTHER)
    file_id = await upload_file(anonymous, form)
    data = {"name": "Ada", "file": file_id, "other": file_id}
    assert problems(await send(anonymous, form, data)) == {"other": _NOT_THERE}
    await submit(anonymous, form, {"name": "Ada", "file": file_id})


async def test_of_parallel_submissions_one_gets_the_file(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, FILE)
    data = {"name": "Ada", "file": await upload_file(anonymous, form)}
    answers = await asyncio.gather(*(send_as_user(developer, form, data) for _ in range(6)))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 400: 5}
    assert await count_submissions(developer, form) == 1


async def test_a_file_of_a_hidden_field_is_not_bound(
    developer: Client, anonymous: Client, services: Services
) -> None:
    hidden = {**FILE, "conditional": {"field": "name", "operator": "equals", "value": "Bob"}}
    form = await create_form(developer, TEXT, hidden)
    file_id = await upload_file(anonymous, form)
    submission_id = await submit(anonymous, form, {"name": "Ada", "file": file_id})
    stored = await get_submission(developer, form, submission_id)
    assert (stored["data"], stored["files"]) == ({"name": "Ada"}, [])
    await run_sql(services, _EXPIRE, file_id)
    await uploads.delete_expired(services)
    assert stored_files(services, developer.tenant_id) == []


# Expiry


async def test_files_without_a_submission_are_deleted_when_their_time_is_up(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, FILE)
    submitted, waiting, expired = [await upload_file(anonymous, form) for _ in range(3)]
    await submit(anonymous, form, {"name": "Ada", "file": submitted})
    await run_sql(services, _EXPIRE, expired)
    answer = await send(anonymous, form, {"name": "Bob", "file": expired})
    assert problems(answer) == {"file": _NOT_THERE}
    assert (await read_usage(developer))["file_bytes"] == 15
    await uploads.delete_expired(services)
    assert (await read_usage(developer))["file_bytes"] == 10
    names = {Path(path).name for path in stored_files(services, developer.tenant_id)}
    assert names == {submitted, waiting}
    await submit(anonymous, form, {"name": "Bob", "file": waiting})


async def test_a_file_that_cannot_be_deleted_does_not_keep_the_others(
    developer: Client, anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = await create_form(developer, TEXT, FILE)
    broken, other = [await upload_file(anonymous, form) for _ in range(2)]
    for file_id in (broken, other):
        await run_sql(services, _EXPIRE, file_id)
    delete = files.delete

    async def fail_once(tx: Any, services: Services, tenant_id: str, file_id: str) -> None:
        if file_id == broken:
            raise OSError("the disk is broken")
        await delete(tx, services, tenant_id, file_id)

    with monkeypatch.context() as patch:
        patch.setattr(files, "delete", fail_once)
        assert await uploads.delete_expired(services) is False
    names = {Path(path).name for path in stored_files(services, developer.tenant_id)}
    assert names == {broken}
    await uploads.delete_expired(services)
    assert stored_files(services, developer.tenant_id) == []


async def test_a_file_that_a_user_has_deleted_expires_quietly(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, FILE)
    file_id = await upload_file(anonymous, form)
    assert (await developer.delete(f"/api/v1/files/{file_id}")).status_code == 204
    await run_sql(services, _EXPIRE, file_id)
    await uploads.delete_expired(services)
    sql = "SELECT file_id FROM form_uploads WHERE file_id = $1"
    assert await fetch_rows(services, sql, file_id) == []


# Downloads


async def test_a_download_cannot_run_in_a_browser(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, TEXT, FILE)
    cases = [
        (HTML, 'a"; x=".html', "application/octet-stream"),
        (SVG, "a.svg", "application/octet-stream"),
        (PNG, "a.png", "image/png"),
        (PDF, "a.pdf", "application/pdf"),
        (b"<b>text", "a.txt", "application/octet-stream"),
    ]
    for content, name, content_type in cases:
        with subtests.test(name=name):
            file_id = await upload_file(anonymous, form, content, name)
            await submit(anonymous, form, {"name": "Ada", "file": file_id})
            answer = await developer.get(f"{PATH}/{form['id']}/files/{file_id}")
            assert (answer.status_code, answer.content) == (200, content)
            assert answer.headers["content-type"] == content_type
            assert answer.headers["content-disposition"].startswith("attachment;")
            assert answer.headers["content-security-policy"] == "sandbox"
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_download_has_parts(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, FILE)
    file_id = await upload_file(anonymous, form, b"0123456789")
    await submit(anonymous, form, {"name": "Ada", "file": file_id})
    path = f"{PATH}/{form['id']}/files/{file_id}"
    part = await developer.get(path, headers={"range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"234")
    etag = part.headers["etag"]
    assert (await developer.get(path, headers={"if-none-match": etag})).status_code == 304


async def test_a_file_is_found_only_through_its_submission(
    developer: Client, anonymous: Client
) -> None:
    form, other = [await create_form(developer, TEXT, FILE) for _ in range(2)]
    file_id = await upload_file(anonymous, form)
    refused(await developer.get(f"{PATH}/{form['id']}/files/{file_id}"), 404, "file_not_found")
    await submit(anonymous, form, {"name": "Ada", "file": file_id})
    refused(await developer.get(f"{PATH}/{other['id']}/files/{file_id}"), 404, "file_not_found")
    refused(await anonymous.get(f"{PATH}/{form['id']}/files/{file_id}"), 401, "unauthorized")
    assert (await developer.get(f"{PATH}/{form['id']}/files/{file_id}")).status_code == 200
