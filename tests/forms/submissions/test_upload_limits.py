"""How much visitors may upload: bytes, files that wait, and files at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from app.services import Services
from tests.assertions import refused
from tests.changed_settings import changed_settings
from tests.forms.api import FILE, PUBLIC, TEXT, create_form, submit, upload, upload_file
from tests.platform.files.api import stored_files
from tests.world import Client, World


async def _upload_of_unknown_length(
    client: Client,
    form: dict[str, Any],
    content: bytes,
    started: asyncio.Event | None = None,
    resumed: asyncio.Event | None = None,
) -> httpx.Response:
    async def stream() -> AsyncIterator[bytes]:
        yield (
            b'--x\r\nContent-Disposition: form-data; name="field_id"\r\n\r\nfile\r\n'
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
        )
        yield content
        if started is not None and resumed is not None:
            started.set()
            await resumed.wait()
        yield b"\r\n--x--\r\n"

    return await client(
        "POST",
        f"{PUBLIC}/{form['slug']}/upload",
        content=stream(),
        headers={"content-type": "multipart/form-data; boundary=x"},
    )


@pytest.fixture
def strict(world: World) -> Iterator[World]:
    """The application where an address may upload a megabyte a day."""
    with changed_settings(world.services, form_upload_mb_per_day=1):
        yield world


async def test_an_address_uploads_so_much_to_a_form_within_a_day(strict: World) -> None:
    owner = await strict.user("agent_developer")
    form, sender = await create_form(owner, TEXT, FILE), strict.anonymous()
    file_id = await upload_file(sender, form, bytes(600_000))
    # Before it arrives, by its declared length, or afterwards; and if it was submitted.
    for send_file in (upload, _upload_of_unknown_length):
        answer = await send_file(sender, form, bytes(600_000))
        error = refused(answer, 429, "too_many_uploads")
        assert "in a day" in error["message"]
        assert int(answer.headers["retry-after"]) > 0
        await submit(sender, form, {"name": "Ada", "file": file_id})
        file_id = await upload_file(sender, form, b"x")
    assert (await upload(strict.anonymous(), form, bytes(600_000))).status_code == 201
    another = await create_form(owner, TEXT, FILE)
    assert (await upload(sender, another, bytes(600_000))).status_code == 201


async def test_parallel_uploads_do_not_exceed_the_bytes_of_a_day(
    strict: World, services: Services
) -> None:
    owner = await strict.user("agent_developer")
    sender, form = strict.anonymous(), await create_form(owner, TEXT, FILE)
    answers = await asyncio.gather(
        *(_upload_of_unknown_length(sender, form, bytes(400_000)) for _ in range(3))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 201, 429]
    assert len(stored_files(services, owner.tenant_id)) == 2


async def test_files_that_wait_take_a_tenth_of_the_quota(world: World) -> None:
    limits = {"requests_per_minute": 1_000_000, "storage_mb": 10}
    owner = await world.user("agent_developer", await world.tenant("enterprise", limits))
    forms = [await create_form(owner, TEXT, FILE) for _ in range(2)]
    # One of any size, but no second one beyond a quarter of that.
    first, second, third = world.anonymous(), world.anonymous(), world.anonymous()
    file_id = await upload_file(first, forms[0], bytes(500_000))
    answer = await upload(first, forms[1], bytes(100_000))
    error = refused(answer, 429, "too_many_uploads")
    assert int(answer.headers["retry-after"]) > 0
    assert not any(char.isdigit() for char in error["message"])
    await upload_file(second, forms[1], bytes(400_000))
    refused(await upload(third, forms[0], bytes(200_000)), 429, "too_many_uploads")
    error = refused(await upload(third, forms[0], bytes(1_300_000)), 413, "quota_exceeded")
    assert "details" not in error
    # What is submitted waits no more.
    await submit(first, forms[0], {"name": "Ada", "file": file_id})
    assert (await upload(third, forms[0], bytes(200_000))).status_code == 201


async def test_an_address_sends_three_files_at_a_time(developer: Client, world: World) -> None:
    form, sender = await create_form(developer, TEXT, FILE), world.anonymous()
    resumed = asyncio.Event()
    started = [asyncio.Event() for _ in range(3)]
    uploads = [
        asyncio.create_task(_upload_of_unknown_length(sender, form, b"x", event, resumed))
        for event in started
    ]
    for event in started:
        await event.wait()
    answer = await upload(sender, form, b"x")
    error = refused(answer, 429, "too_many_uploads")
    assert "3 files at a time" in error["message"]
    assert int(answer.headers["retry-after"]) > 0
    assert (await upload(world.anonymous(), form, b"x")).status_code == 201
    resumed.set()
    assert {answer.status_code for answer in await asyncio.gather(*uploads)} == {201}
    assert (await upload(sender, form, b"x")).status_code == 201
