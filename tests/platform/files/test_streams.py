"""Uploads over a socket: memory, interruptions, sizes and repeated requests."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import msgspec
import pytest
from litestar import Litestar
from starlette.types import ASGIApp

from app.domain.platform.files.service import UploadLimit
from app.http import multipart
from app.main import create_app
from app.services import Services
from tests.agents.tools.asgi_server import serve_app
from tests.assertions import refused, until, wait_until
from tests.database import lose_commit_replies, run_sql
from tests.http_clients import open_client
from tests.lengths import rounds
from tests.platform.files.api import (
    MEGABYTE,
    PATH,
    count_rows,
    list_names,
    read_usage,
    send_file,
    stored_files,
)
from tests.server import Server
from tests.stores import Stores
from tests.world import Client, World

_HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
_END = b"\r\n--b--\r\n"
_TYPE = {"content-type": "multipart/form-data; boundary=b"}
_BLOCK = hashlib.sha256(b"block").digest() * 2048


async def _body(block_count: int) -> AsyncIterator[bytes]:
    yield _HEAD
    for _ in range(block_count):
        yield _BLOCK
    yield _END


def _peak_mib(pid: int) -> int:
    """Returns the most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) // 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak memory")
async def test_a_large_file_is_stored_and_sent_without_being_in_memory(
    server: Server, developer: Client, services: Services
) -> None:
    headers = _TYPE | {"authorization": f"Bearer {developer.token}"}
    async with open_client(base_url=server.url, headers=headers, timeout=60) as http:
        assert (await http.post(PATH, content=_body(1))).status_code == 201
        before, count = _peak_mib(server.pid), rounds(40, 60) * MEGABYTE // len(_BLOCK)
        keyed = {"idempotency-key": "large"}
        for replayed in (None, "true"):
            answer = await http.post(PATH, content=_body(count), headers=keyed)
            assert answer.status_code == 201, answer.text
            assert answer.headers.get("idempotent-replayed") == replayed
        file, digest = answer.json()["data"], hashlib.sha256()
        assert file["size_bytes"] == count * len(_BLOCK)
        async with http.stream("GET", f"{PATH}/{file['id']}/content") as content:
            async for part in content.aiter_bytes():
                digest.update(part)
    assert digest.hexdigest() == file["sha256"]
    assert _peak_mib(server.pid) - before < 30
    assert len(stored_files(services, developer.tenant_id)) == 2


async def _start_upload(
    client: Client, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Sends 12 of 50 MB."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = (
        f"POST {PATH} HTTP/1.1",
        "host: parley.test",
        f"authorization: Bearer {client.token}",
        f"content-type: {_TYPE['content-type']}",
        f"content-length: {50 * MEGABYTE}",
    )
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + _HEAD)
    for _ in range(12 * MEGABYTE // len(_BLOCK)):
        writer.write(_BLOCK)
        await writer.drain()
    return reader, writer


async def test_an_upload_that_is_interrupted_leaves_nothing(
    server: Server, developer: Client, services: Services
) -> None:
    _, writer = await _start_upload(developer, server.settings.port)
    # The first parts are on the disk, beside the place of the file.
    await until(lambda: stored_files(services, developer.tenant_id))
    writer.close()
    await writer.wait_closed()
    await until(lambda: not stored_files(services, developer.tenant_id))
    assert await count_rows(services, developer.tenant_id) == 0
    assert (await read_usage(developer))["file_bytes"] == 0


async def test_an_upload_that_does_not_continue_is_ended(
    stores: Stores, developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipart, "MAX_WAIT_SECONDS", 1.0)
    async with serve_app(cast("ASGIApp", create_app(stores.settings))) as url:
        reader, writer = await _start_upload(developer, int(url.rpartition(":")[2]))
        # Up to the end of the connection.
        head, _, body = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n\r\n")
        writer.close()
    assert head.startswith(b"HTTP/1.1 408 ")
    assert msgspec.json.decode(body)["error"]["code"] == "request_timeout"
    assert not stored_files(services, developer.tenant_id)
    assert (await read_usage(developer))["file_bytes"] == 0


async def test_a_tenant_sends_a_limited_number_of_files_at_a_time(
    developer: Client, admin: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(services.area_objects, UploadLimit, UploadLimit(1))
    started, resumed = asyncio.Event(), asyncio.Event()

    async def pause() -> AsyncIterator[bytes]:
        yield _HEAD + b"x"
        started.set()
        await resumed.wait()
        yield _END

    first = asyncio.create_task(developer.http.post(PATH, content=pause(), headers=_TYPE))
    await started.wait()
    answer = await send_file(developer)
    refused(answer, 429, "rate_limited")
    assert int(answer.headers["retry-after"]) > 0
    # Of another tenant.
    assert (await send_file(admin)).status_code == 201
    resumed.set()
    assert (await first).status_code == 201
    assert (await send_file(developer)).status_code == 201


@pytest.fixture
async def limited(stores: Stores, app: Litestar) -> AsyncIterator[Client]:
    """A user of an instance whose files have at most a megabyte."""
    limited_app = create_app(msgspec.structs.replace(stores.settings, max_file_mb=1))
    yield await World(limited_app).user()
    await limited_app.state.services.close()


async def test_a_file_that_is_too_large_is_refused(limited: Client, services: Services) -> None:
    assert (await send_file(limited, bytes(MEGABYTE))).status_code == 201
    for size in (MEGABYTE + 1, 3 * MEGABYTE):
        error = refused(await send_file(limited, bytes(size)), 413, "file_too_large")
        assert error["details"] == {"max_size_mb": 1}
    # Without a length, the size is known only as it arrives.
    count = 3 * MEGABYTE // len(_BLOCK)
    answer = await limited.http.post(PATH, content=_body(count), headers=_TYPE)
    refused(answer, 413, "file_too_large")
    assert len(stored_files(services, limited.tenant_id)) == 1
    assert (await read_usage(limited))["file_count"] == 1


async def test_a_file_may_be_larger_than_other_bodies(
    developer: Client, services: Services
) -> None:
    size = services.settings.max_body_mb * MEGABYTE + 2 * MEGABYTE
    assert (await send_file(developer, bytes(size))).status_code == 201


async def test_no_connection_is_held_while_a_file_arrives(
    developer: Client, services: Services
) -> None:
    pool = services.db.engine.sync_engine.pool
    counts = []

    async def watch() -> AsyncIterator[bytes]:
        yield _HEAD + b"x"
        # Others of this process may have one for a moment.
        await until(lambda: pool.checkedout() == 0)  # type: ignore[attr-defined]
        counts.append(0)
        yield _END

    answer = await developer.http.post(PATH, content=watch(), headers=_TYPE)
    assert (answer.status_code, counts) == (201, [0])


async def test_a_key_replays_the_same_file_and_refuses_another(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "one"}
    first = await send_file(developer, b"content", headers=headers)
    # Each request of this client has a boundary of its own.
    second = await send_file(developer, b"content", headers=headers)
    assert first.content == second.content
    assert second.headers["idempotent-replayed"] == "true"
    for content, name in ((b"other", "a.txt"), (b"content", "b.txt")):
        answer = await send_file(developer, content, name, headers=headers)
        refused(answer, 422, "idempotency_mismatch")
    assert len(stored_files(services, developer.tenant_id)) == 1


async def test_parallel_uploads_with_one_key_store_one_file(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "race"}
    answers = await asyncio.gather(
        *(send_file(developer, b"content", headers=headers) for _ in range(6))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert len(stored_files(services, developer.tenant_id)) == 1


async def test_a_refused_upload_does_not_keep_its_key(developer: Client) -> None:
    headers = {"idempotency-key": "again"}
    answer = await developer("POST", PATH, files={"other": ("a", b"x")}, headers=headers)
    refused(answer, 422, "validation_error")

    async def is_accepted() -> bool:
        return (await send_file(developer, headers=headers)).status_code == 201

    assert await wait_until(is_accepted)
    assert await list_names(developer) == ["a.txt"]


async def test_an_upload_whose_answer_was_lost_is_not_stored_again(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"idempotency-key": "lost"}
    with monkeypatch.context() as patch:
        lose_commit_replies(patch, developer.tenant_id)
        assert (await send_file(developer, headers=headers)).status_code == 503
    answer = await send_file(developer, headers=headers)
    assert (answer.status_code, answer.headers["idempotent-replayed"]) == (201, "true")
    file = answer.json()["data"]
    assert (await developer.get(f"{PATH}/{file['id']}")).json() == answer.json()
    assert await count_rows(services, developer.tenant_id) == 1


async def test_an_upload_that_lost_its_key_to_another_request_stores_nothing(
    developer: Client, services: Services
) -> None:
    """As when the process was suspended while the file arrived."""
    headers = _TYPE | {"idempotency-key": "taken"}
    answers = []

    async def suspended() -> AsyncIterator[bytes]:
        yield _HEAD + b"x"
        lapse = "UPDATE idempotency_keys SET renewed_at = now() - interval '2 minutes'"
        await run_sql(services, f"{lapse} WHERE status IS NULL")
        second = developer.http.post(PATH, content=_HEAD + b"x" + _END, headers=headers)
        # A task of its own, as a server gives each request.
        answers.append(await asyncio.create_task(second))
        yield _END

    refused(await developer.http.post(PATH, content=suspended(), headers=headers), 409, "conflict")
    assert answers[0].status_code == 201
    assert len(stored_files(services, developer.tenant_id)) == 1
    assert await count_rows(services, developer.tenant_id) == 1
