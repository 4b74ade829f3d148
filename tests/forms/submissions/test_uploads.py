"""Files that visitors upload: what is accepted, and how much."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from app.domain.forms.definition.fields.files import CONTENT, FileRules
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows, run_sql
from tests.forms.api import (
    FILE,
    PUBLIC,
    TEXT,
    create_form,
    upload,
    upload_file,
)
from tests.forms.contents import ELF, HTML, PDF, PNG, SVG
from tests.platform.files.api import MEGABYTE, read_usage, stored_files
from tests.world import Client, World

_OTHER: dict[str, Any] = {"id": "other", "type": "file", "label": "Another file"}


def _file(**validation: Any) -> dict[str, Any]:
    return {**FILE, "validation": validation}


async def _upload_before_field(
    client: Client, form: dict[str, Any], content: bytes, field_id: str = "file"
) -> httpx.Response:
    """Sends the file before the name of its field."""
    parts: list[Any] = [("file", ("a.txt", content)), ("field_id", (None, field_id))]
    return await client("POST", f"{PUBLIC}/{form['slug']}/upload", files=parts)


# What is accepted


async def test_an_upload_answers_with_what_was_stored(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, FILE)
    answer = await upload(anonymous, form, PDF, "../../etc/Bill <1>.pdf")
    assert answer.status_code == 201
    (row,) = await fetch_rows(services, "SELECT * FROM form_uploads WHERE form_id = $1", form["id"])
    assert answer.json() == {
        "data": {
            "file_id": row["file_id"],
            "filename": row["filename"],
            "size_bytes": len(PDF),
            "mime_type": "application/pdf",
        }
    }
    assert "/" not in row["filename"]
    assert 23.9 < (row["expires_at"] - row["created_at"]).total_seconds() / 3600 < 24.1
    (path,) = stored_files(services, developer.tenant_id)
    assert path.read_bytes() == PDF


async def test_a_body_of_unknown_length_is_stored_while_it_arrives(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, FILE)
    head = (
        b'--x\r\nContent-Disposition: form-data; name="field_id"\r\n\r\nfile\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    )

    async def stream() -> AsyncIterator[bytes]:
        yield head
        for _ in range(64):
            yield b"\1" * 65536
        yield b"\r\n--x--\r\n"

    answer = await anonymous(
        "POST",
        f"{PUBLIC}/{form['slug']}/upload",
        content=stream(),
        headers={"content-type": "multipart/form-data; boundary=x"},
    )
    assert answer.status_code == 201, answer.text
    assert answer.json()["data"]["size_bytes"] == 4 * MEGABYTE


async def test_a_file_over_the_limit_of_its_field_is_refused(
    developer: Client, anonymous: Client, services: Services
) -> None:
    """Also where another field of the form takes larger ones."""
    large = {**_OTHER, "validation": {"max_size_mb": 2}}
    form = await create_form(developer, TEXT, _file(max_size_mb=0.5), large)
    content = bytes(MEGABYTE)
    for send_file in (upload, _upload_before_field):
        error = refused(await send_file(anonymous, form, content), 413, "file_too_large")
        assert error["details"] == {"max_size_mb": 0.5}
    answer = await _upload_before_field(anonymous, form, content, "other")
    assert answer.status_code == 201
    answer = await upload(anonymous, form, bytes(2 * MEGABYTE + 1), field_id="other")
    refused(answer, 413, "file_too_large")
    assert (await upload(anonymous, form, bytes(MEGABYTE // 2))).status_code == 201
    assert len(stored_files(services, developer.tenant_id)) == 2


async def test_files_have_ten_megabytes_unless_the_field_says_otherwise(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, FILE)
    assert (await upload(anonymous, form, bytes(10 * MEGABYTE))).status_code == 201
    refused(await upload(anonymous, form, bytes(10 * MEGABYTE + 1)), 413, "file_too_large")


async def test_the_content_decides_about_the_type_not_the_name(
    developer: Client, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, TEXT, _file(allowed_types=[".PDF", "txt"]))
    # The content, the name, and whether it is accepted.
    cases = [
        (PDF, "a.pdf", True),
        (PDF, "a.exe", True),
        (b"plain text", "a.txt", True),
        (b"plain text", "A.TXT", True),
        (PNG, "a.pdf", False),
        (ELF, "a.pdf", False),
        (HTML, "a.txt", False),
        (SVG, "a.txt", False),
        (b"plain text", "a.html", False),
        (b"plain text", "a.pdf", False),
        (b"\0\1\2", "a.txt", False),
    ]
    for content, name, is_accepted in cases:
        with subtests.test(content=content[:20], name=name):
            answer = await upload(anonymous, form, content, name)
            if is_accepted:
                assert answer.status_code == 201, answer.text
            else:
                error = refused(answer, 415, "unsupported_file_type")
                assert error["details"]["allowed_types"] == ["pdf", "txt"]
    assert len(stored_files(services, developer.tenant_id)) == 4


async def test_programs_are_refused_where_all_types_are_allowed(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, TEXT, FILE)
    programs = {
        "elf": ELF,
        "windows": b"MZ\x90\0" + bytes(60),
        "mach": b"\xcf\xfa\xed\xfe" + bytes(20),
        "wasm": b"\0asm\1\0\0\0",
    }
    for name, content in programs.items():
        with subtests.test(name=name):
            answer = await upload(anonymous, form, content, "photo.png")
            refused(answer, 415, "unsupported_file_type")
    for content in (HTML, SVG, b""):
        assert (await upload(anonymous, form, content)).status_code == 201


def test_every_known_ending_accepts_a_file_with_its_content(subtests: pytest.Subtests) -> None:
    for ending, kinds in CONTENT.items():
        rules = FileRules(allowed_types=[ending])
        for kind in kinds:
            with subtests.test(ending=ending, kind=kind):
                assert rules.allows(f"a.{ending}", kind)
                assert not rules.allows(f"a.{ending}", "application/x-elf")


async def test_the_field_must_be_one_that_takes_files(
    developer: Client, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    form, without = await create_form(developer, TEXT, FILE), await create_form(developer, TEXT)
    cases: list[tuple[dict[str, Any], str | None]] = [
        (form, None),
        (form, ""),
        (form, "name"),
        (form, "nothing"),
        (without, "file"),
        (without, None),
    ]
    for target, field_id in cases:
        with subtests.test(form=target["id"], field_id=field_id):
            error = refused(
                await upload(anonymous, target, b"x", field_id=field_id), 422, "validation_error"
            )
            assert set(error["details"]) == {"field_id"}
    for target, name in ((form, "name"), (form, ""), (without, "file")):
        with subtests.test(form=target["id"], field_after_file=name):
            answer = await _upload_before_field(anonymous, target, b"x", name)
            assert set(refused(answer, 422, "validation_error")["details"]) == {"field_id"}
    assert stored_files(services, developer.tenant_id) == []


async def test_a_body_without_one_file_is_refused(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, FILE)
    path = f"{PUBLIC}/{form['slug']}/upload"
    two: list[Any] = [
        ("field_id", (None, "file")),
        ("file", ("a.txt", b"a")),
        ("file", ("b.txt", b"b")),
    ]
    answer = await anonymous("POST", path, files=two)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"file"}
    answer = await anonymous("POST", path, files={"field_id": (None, "file")})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"file"}
    answer = await anonymous.post(path, {"field_id": "file"})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"body"}
    broken = {"content-type": "multipart/form-data; boundary=x"}
    answer = await anonymous("POST", path, content=b"--x\r\nbroken", headers=broken)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"body"}


async def test_a_form_that_takes_no_submissions_takes_no_files(
    developer: Client, anonymous: Client
) -> None:
    draft = await create_form(developer, TEXT, FILE, is_published=False)
    refused(await upload(anonymous, draft, b"x"), 409, "form_not_published")
    closed = await create_form(
        developer, TEXT, FILE, settings={"closes_at": "2020-01-01T00:00:00Z"}
    )
    refused(await upload(anonymous, closed, b"x"), 409, "form_closed")
    refused(await upload(anonymous, {"slug": "none"}, b"x"), 404, "form_not_found")


async def test_an_idempotency_key_stores_one_file(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, FILE)

    async def send_file(content: bytes) -> httpx.Response:
        return await anonymous(
            "POST",
            f"{PUBLIC}/{form['slug']}/upload",
            files={"file": ("a.txt", content)},
            data={"field_id": "file"},
            headers={"Idempotency-Key": "one"},
        )

    first, again = await send_file(b"a"), await send_file(b"a")
    assert (first.status_code, again.json()) == (201, first.json())
    refused(await send_file(b"b"), 422, "idempotency_mismatch")
    assert (await read_usage(developer))["file_count"] == 1


# Limits


async def test_a_form_has_so_many_files_that_wait(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form, other = [await create_form(developer, TEXT, FILE) for _ in range(2)]
    sql = """
    INSERT INTO form_uploads
        (tenant_id, file_id, form_id, field_id, filename, size_bytes, mime_type, expires_at,
         network)
    SELECT $1, 'fil_' || $2 || n, $2, 'file', 'a', 1, 'text/plain', now() + interval '1 hour',
           'x' || n
    FROM generate_series(1, 5000) n
    """
    await run_sql(services, sql, developer.tenant_id, form["id"])
    answer = await upload(anonymous, form, b"x")
    refused(answer, 429, "too_many_uploads")
    assert int(answer.headers["retry-after"]) > 0
    assert (await upload(anonymous, other, b"x")).status_code == 201


async def test_one_address_does_not_use_up_the_share_of_others(
    developer: Client, world: World, services: Services
) -> None:
    form, sender, other = await create_form(developer, TEXT, FILE), *_visitors(world)
    file_id = await upload_file(sender, form)
    sql = """
    INSERT INTO form_uploads
        (tenant_id, file_id, form_id, field_id, filename, size_bytes, mime_type, expires_at,
         network)
    SELECT tenant_id, file_id || n, form_id, field_id, filename, size_bytes, mime_type, expires_at,
           network
    FROM form_uploads CROSS JOIN generate_series(1, 49) n WHERE file_id = $1
    """
    await run_sql(services, sql, file_id)
    refused(await upload(sender, form, b"x"), 429, "too_many_uploads")
    assert (await upload(other, form, b"x")).status_code == 201


def _visitors(world: World) -> tuple[Client, Client]:
    return world.anonymous(), world.anonymous()


async def test_uploads_count_in_the_storage_of_the_tenant(
    world: World, anonymous: Client, services: Services
) -> None:
    limits = {"requests_per_minute": 1_000_000, "storage_mb": 1}
    owner = await world.user("agent_developer", await world.tenant("enterprise", limits))
    form = await create_form(owner, TEXT, FILE)
    await upload_file(anonymous, form, bytes(50_000))
    assert (await read_usage(owner))["file_bytes"] == 50_000
    await run_sql(
        services,
        "UPDATE storage_usage SET used_bytes = 1000000 WHERE tenant_id = $1",
        owner.tenant_id,
    )
    error = refused(await upload(world.anonymous(), form, bytes(50_000)), 413, "quota_exceeded")
    assert "details" not in error
    assert len(stored_files(services, owner.tenant_id)) == 1
