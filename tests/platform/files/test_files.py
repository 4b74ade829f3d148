"""Uploading, listing, reading and deleting files."""

import hashlib
from typing import Any

import pytest

from app.domain.platform.files.queries import find_unknown_ids
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows, run_sql
from tests.identity.profile.api_calls import set_avatar
from tests.platform.files.api import (
    MEGABYTE,
    PATH,
    content_path,
    is_stored,
    list_names,
    send_file,
    stored_files,
    upload,
)
from tests.world import Client, World


async def test_an_upload_returns_the_file(developer: Client) -> None:
    content = b"%PDF-1.7\n" + bytes(range(256))
    file = await upload(developer, content, "report.pdf")
    assert file.pop("created_at").endswith("Z")
    assert file.pop("id").startswith("fil_")
    assert file == {
        "filename": "report.pdf",
        "size_bytes": len(content),
        "mime_type": "application/pdf",
        "sha256": hashlib.sha256(content).hexdigest(),
        "purpose": "upload",
        "created_by": developer.user_id,
    }


async def test_a_file_is_read_as_it_was_uploaded(developer: Client) -> None:
    for content in (b"", b"x", b"\r\n--", bytes(3 * MEGABYTE) + b"end"):
        file = await upload(developer, content)
        assert (await developer.get(content_path(file))).content == content
        assert (await developer.get(f"{PATH}/{file['id']}")).json() == {"data": file}


async def test_a_name_is_cleaned_and_is_no_part_of_the_key(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    names = {
        "../../etc/passwd": "passwd",
        "C:\\docs\\plan.md": "plan.md",
        "..": "file",
        "\u202e\u200b": "file",
        "invoice\u202efdp.exe": "invoicefdp.exe",
        'a"b;c%0d%0aX-Evil: 1.txt': None,
        "na\u0308me.txt": "n\u00e4me.txt",
        "\U0001f469\u200d\U0001f4bb \U0001f600.png": "\U0001f469\u200d\U0001f4bb \U0001f600.png",
        "\u05e9\u05dc\u05d5\u05dd.txt": "\u05e9\u05dc\u05d5\u05dd.txt",
        "x" * 300 + ".csv": "x" * 235 + "x" * 16 + ".csv",
    }
    for sent, expected in names.items():
        with subtests.test(sent[:40]):
            file = await upload(developer, b"x", sent)
            if expected is not None:
                assert file["filename"] == expected
            answer = await developer.get(content_path(file))
            disposition = answer.headers["content-disposition"]
            assert disposition.startswith("attachment; filename*=UTF-8''")
            assert disposition.isascii()
            assert not set(disposition.partition("''")[2]) & set('";\r\n /\\')
            assert "x-evil" not in answer.headers
    ids = {path.name for path in stored_files(services, developer.tenant_id)}
    assert len(ids) == len(names)
    assert all(name.startswith("fil_") for name in ids)


async def test_files_are_listed_searched_filtered_and_sorted(developer: Client) -> None:
    for name, content in (("beta.txt", b"22"), ("alpha.txt", b"1"), ("c.pdf", b"%PDF-1")):
        await upload(developer, content, name)
    assert await list_names(developer) == ["c.pdf", "alpha.txt", "beta.txt"]
    assert await list_names(developer, sort="filename") == ["alpha.txt", "beta.txt", "c.pdf"]
    assert await list_names(developer, sort="-size_bytes") == ["c.pdf", "beta.txt", "alpha.txt"]
    assert await list_names(developer, search="ALPH") == ["alpha.txt"]
    assert await list_names(developer, mime_type="application/pdf") == ["c.pdf"]
    assert await list_names(developer, purpose="form") == []
    assert await list_names(developer, page="2", per_page="2") == ["beta.txt"]
    for query in ({"sort": "key"}, {"purpose": "avatar"}, {"per_page": "101"}):
        refused(await developer.get(PATH, params=query), 422, "validation_error")


async def test_a_deleted_file_and_its_content_are_gone(
    developer: Client, services: Services
) -> None:
    file = await upload(developer)
    assert len(stored_files(services, developer.tenant_id)) == 1
    answer = await developer.delete(f"{PATH}/{file['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    for path in (f"{PATH}/{file['id']}", content_path(file)):
        refused(await developer.get(path), 404, "file_not_found")
    refused(await developer.delete(f"{PATH}/{file['id']}"), 404, "file_not_found")
    assert stored_files(services, developer.tenant_id) == []


async def test_a_file_whose_content_is_lost_is_404(developer: Client, services: Services) -> None:
    file = await upload(developer)
    await services.files.delete(f"files/{developer.tenant_id}/{file['id']}")
    refused(await developer.get(content_path(file)), 404, "file_not_found")


async def test_files_of_other_areas_are_neither_shown_nor_deleted(
    developer: Client, services: Services
) -> None:
    await set_avatar(developer)
    sql = "SELECT id, key, purpose FROM files WHERE tenant_id = $1"
    (row,) = await fetch_rows(services, sql, developer.tenant_id)
    assert row["purpose"] == "avatar"
    path = f"{PATH}/{row['id']}"
    assert await list_names(developer) == []
    for method, target in (("GET", path), ("GET", f"{path}/content"), ("DELETE", path)):
        refused(await developer(method, target), 404, "file_not_found")
    assert await is_stored(services, row["key"])


async def test_only_uploads_of_the_tenant_are_known_to_other_areas(
    developer: Client, world: World, services: Services
) -> None:
    await set_avatar(developer)
    sql = "SELECT id FROM files WHERE tenant_id = $1"
    (avatar,) = await fetch_rows(services, sql, developer.tenant_id)
    uploaded, of_form = [(await upload(developer))["id"] for _ in range(2)]
    await run_sql(services, "UPDATE files SET purpose = 'form' WHERE id = $1", of_form)
    foreign = (await upload(await world.user("agent_developer", await world.tenant())))["id"]
    async with services.db.tx(developer.tenant_id) as tx:
        unknown = await find_unknown_ids(
            tx, developer.tenant_id, [foreign, uploaded, avatar["id"], of_form, "fil_none"]
        )
    assert unknown == [foreign, avatar["id"], "fil_none"]


async def test_a_file_of_a_form_is_shown(developer: Client, services: Services) -> None:
    file = await upload(developer)
    await run_sql(services, "UPDATE files SET purpose = 'form' WHERE id = $1", file["id"])
    assert await list_names(developer, purpose="form") == ["a.txt"]
    assert await list_names(developer, purpose="upload") == []


async def test_super_admin_uploads_to_the_tenant_that_it_names(
    super_admin: Client, developer: Client
) -> None:
    answer = await send_file(super_admin, headers={"x-tenant-id": developer.tenant_id})
    assert answer.status_code == 201
    assert await list_names(developer) == ["a.txt"]


async def test_files_need_their_permissions(world: World) -> None:
    viewer = await world.user("viewer")
    refused(await send_file(viewer), 403, "forbidden")
    refused(await viewer.get(PATH), 403, "forbidden")
    refused(await world.anonymous().get(f"{PATH}/x/content"), 401, "unauthorized")


async def test_a_body_without_exactly_one_file_is_refused(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    headers = {"content-type": "multipart/form-data; boundary=b"}
    cases: dict[str, dict[str, Any]] = {
        "nothing": {},
        "json": {"json": {"file": "x"}},
        "no boundary": {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
        "another boundary": {"content": b"--c\r\n\r\nx\r\n--c--", "headers": headers},
        "another name": {"files": {"other": ("a", b"x")}},
        "a text": {"files": {"file": (None, "text")}},
        "two files": {"files": [("file", ("a", b"1")), ("file", ("b", b"2"))]},
        "an unfinished part": {
            "content": b'--b\r\nContent-Disposition: form-data; name=file; filename="a"\r\n\r\nx',
            "headers": headers,
        },
        "a long text": {"files": [("file", ("a", b"1")), ("t", (None, b"x" * 70_000))]},
    }
    for name, body in cases.items():
        with subtests.test(name):
            refused(await developer("POST", PATH, **body), 422, "validation_error")
            assert stored_files(services, developer.tenant_id) == []
    assert await list_names(developer) == []


async def test_other_fields_of_the_form_are_ignored(developer: Client) -> None:
    parts = [
        ("note", (None, "hi")),
        ("other", ("b.txt", b"b")),
        ("file", ("a.txt", b"a")),
        ("end", (None, "bye")),
    ]
    answer = await developer("POST", PATH, files=parts)
    assert answer.status_code == 201, answer.text
    assert (await developer.get(content_path(answer.json()["data"]))).content == b"a"
