"""Nothing of a request is left behind, however it ends."""

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from app.areas import AREAS
from app.domain.conversations.speech import speech_jobs
from app.domain.conversations.speech.area import AREA
from app.domain.conversations.speech.errors import RecordingTooLarge
from app.domain.conversations.speech.jobs import run_speech
from app.domain.conversations.speech.speech_jobs import SpeechRequest
from app.jobs import background
from app.kit import clock
from app.kit.files import StoredFile
from app.services import Services
from db import ledger
from db.retention import delete_expired
from db.session import ALL_TENANTS
from tests.assertions import refused, wait_until
from tests.conversations.speech.calls import Voice, is_removed, list_files, list_jobs
from tests.conversations.speech.recordings import tone
from tests.database import fetch_rows, run_sql
from tests.http_clients import open_client
from tests.running_worker import run_worker
from tests.server import Server
from tests.stores import Stores


async def _wait_for_job(services: Services, voice: Voice) -> dict[str, Any]:
    return (await wait_until(lambda: list_jobs(services, voice)))[0]


async def _work_states(services: Services, voice: Voice) -> list[str]:
    sql = "SELECT state FROM work WHERE tenant_id = $1 AND kind = 'speech.run'"
    return [row["state"] for row in await fetch_rows(services, sql, voice.talk.client.tenant_id)]


def _build_request(voice: Voice) -> SpeechRequest:
    return SpeechRequest(
        tenant_id=voice.talk.client.tenant_id,
        agent_id=voice.talk.agent_id,
        kind="transcribe",
        model="local/moonshine",
    )


async def test_a_request_that_no_worker_takes_is_told_so_and_removed(
    voice: Voice, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speech_jobs, "QUEUE_SECONDS", 0.1)
    for answer in (
        await voice.send(tone()),
        await voice.request_speech({"text": "Hello"}),
    ):
        error = refused(answer, 503, "unavailable")
        assert "`speech`" in error["message"]
    await wait_until(lambda: is_removed(services, voice))
    assert await _work_states(services, voice) == ["cancelled", "cancelled"]


async def test_a_recording_is_not_in_memory_while_it_waits_for_a_worker(
    voice: Voice, services: Services
) -> None:
    freed = asyncio.Event()

    class Content(bytes):
        def __del__(self) -> None:
            freed.set()

    async def read() -> AsyncIterator[bytes]:
        yield Content(tone())

    task = asyncio.create_task(speech_jobs.transcribe(services, _build_request(voice), read()))
    await _wait_for_job(services, voice)
    async with asyncio.timeout(5):
        await freed.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await wait_until(lambda: is_removed(services, voice))


async def test_a_recording_that_cannot_be_read_leaves_nothing(
    voice: Voice, services: Services
) -> None:
    async def read() -> AsyncIterator[bytes]:
        yield b"RIFF"
        raise RecordingTooLarge("audio is larger than 25 MB")

    with pytest.raises(RecordingTooLarge):
        await speech_jobs.transcribe(services, _build_request(voice), read())
    await wait_until(lambda: is_removed(services, voice))


async def test_a_request_that_ends_while_its_recording_is_stored_leaves_no_file(
    voice: Voice, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store may write the file after its caller was cancelled."""
    started, goes_on = asyncio.Event(), asyncio.Event()
    put = services.files.put_stream

    async def put_slowly(key: str, chunks: AsyncIterable[bytes]) -> StoredFile:
        started.set()
        await goes_on.wait()
        return await put(key, chunks)

    async def put_anyway(key: str, chunks: AsyncIterable[bytes]) -> StoredFile:
        return await asyncio.shield(background.spawn(put_slowly(key, chunks)))

    monkeypatch.setattr(services.files, "put_stream", put_anyway)
    task = asyncio.create_task(voice.send(tone()))
    await started.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    goes_on.set()
    await background.drain()
    assert await is_removed(services, voice)


async def test_a_client_that_goes_away_cancels_its_work(
    voice: Voice, services: Services, server: Server
) -> None:
    headers = {"authorization": f"Bearer {voice.talk.client.token}"}
    async with open_client(base_url=server.url, headers=headers, timeout=60) as client:
        path = f"{voice.talk.path}/chat"
        for request in (
            client.post(f"{path}/audio", files={"audio": ("a.wav", tone())}),
            client.post(f"{path}/tts", json={"text": "Hello"}),
        ):
            task = asyncio.create_task(request)
            await _wait_for_job(services, voice)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await wait_until(lambda: is_removed(services, voice))
    assert await _work_states(services, voice) == ["cancelled", "cancelled"]
    assert voice.talk.asked == []


async def test_a_deleted_agent_ends_its_requests(voice: Voice, services: Services) -> None:
    task = asyncio.create_task(voice.send(tone()))
    await _wait_for_job(services, voice)
    assert (await voice.talk.client.delete(voice.talk.path)).status_code == 204
    refused(await task, 404, "agent_not_found")
    await wait_until(lambda: is_removed(services, voice))
    assert await _work_states(services, voice) == ["cancelled"]


async def test_a_deleted_agent_takes_the_files_of_finished_jobs_along(
    voice: Voice, services: Services
) -> None:
    """Its request has not read the row yet, so it does not know the file of the speech."""
    spoken = speech_jobs.new_file_key()
    await services.files.put(spoken, b"an MP3 file")
    insert = """
        INSERT INTO speech_jobs (tenant_id, id, agent_id, work_id, kind, model, status, output_key,
                                 finished_at)
        VALUES ($1, 'spj_finished', $2, 'wrk_finished', 'synthesize', 'local/espeak', 'completed',
                $3, now())
    """
    await run_sql(services, insert, voice.talk.client.tenant_id, voice.talk.agent_id, spoken)
    assert (await voice.talk.client.delete(voice.talk.path)).status_code == 204
    await wait_until(lambda: _has_no_files(services))


async def test_a_speech_whose_file_is_deleted_with_the_agent_is_not_found(
    voice: Voice, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def finish(*_: Any) -> dict[str, Any]:
        return {"error": None, "output_key": speech_jobs.new_file_key()}

    monkeypatch.setattr(speech_jobs, "_wait", finish)
    refused(await voice.request_speech({"text": "Hello"}), 404, "agent_not_found")
    await wait_until(lambda: is_removed(services, voice))


class _FakeJob:
    """A job whose work was cancelled while it ran."""

    def __init__(self, services: Services, voice: Voice, row: dict[str, Any]) -> None:
        self.services, self.outcome = services, None
        self.tenant_id, self.ref_id = voice.talk.client.tenant_id, row["id"]
        self._row = row

    @asynccontextmanager
    async def checkpoint(self) -> AsyncIterator[Any]:
        async with self.services.db.tx(self.tenant_id) as tx:
            yield tx

    @asynccontextmanager
    async def finish(self) -> AsyncIterator[Any]:
        async with self.services.db.tx(self.tenant_id) as tx:
            yield tx

    async def hold(self, _tx: Any) -> None:
        raise RuntimeError("lease lost")


async def test_a_worker_that_comes_too_late_leaves_no_file(
    voice: Voice, services: Services
) -> None:
    task = asyncio.create_task(voice.request_speech({"text": "Hello"}))
    row = await _wait_for_job(services, voice)
    job: Any = _FakeJob(services, voice, row)
    with pytest.raises(RuntimeError, match="lease lost"):
        await run_speech(job)
    await wait_until(lambda: _has_no_files(services))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await wait_until(lambda: is_removed(services, voice))


async def _has_no_files(services: Services) -> bool:
    return not list_files(services)


async def test_a_request_whose_every_worker_died_ends_with_an_error(
    voice: Voice, services: Services, stores: Stores
) -> None:
    task = asyncio.create_task(voice.send(tone()))
    row = await _wait_for_job(services, voice)
    for _ in range(speech_jobs.RUN_SPEECH.max_attempts):
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            raw = await tx.raw()
            assert await ledger.claim(raw, row["work_id"], "lea_dead", 0.0) is not None
    async with run_worker(stores.settings, "speech"):
        error = refused(await task, 503, "unavailable")
    assert "could not be processed" in error["message"]
    await wait_until(lambda: is_removed(services, voice))


async def test_rows_and_files_of_a_process_that_died_are_deleted_after_a_day(
    voice: Voice, services: Services
) -> None:
    old, new = speech_jobs.new_file_key(), speech_jobs.new_file_key()
    for key in (old, new):
        await services.files.put(key, b"left over")
    folder = services.settings.data_dir / "files"
    day_ago = (clock.now() - timedelta(days=1, minutes=1)).timestamp()
    os.utime(folder / old, (day_ago, day_ago))
    insert = """
        INSERT INTO speech_jobs (tenant_id, id, agent_id, work_id, kind, model, created_at)
        VALUES ($1, $2, $3, 'wrk_x', 'transcribe', 'local/moonshine', now() - $4::interval)
    """
    ids = (voice.talk.client.tenant_id, voice.talk.agent_id)
    await run_sql(services, insert, ids[0], old, ids[1], timedelta(days=1, minutes=1))
    await run_sql(services, insert, ids[0], new, ids[1], timedelta(hours=23))
    (task,) = AREA.periodic_tasks
    await task.run(services)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await delete_expired(await tx.raw(), AREA.retention)
    rows = await fetch_rows(services, "SELECT id FROM speech_jobs WHERE tenant_id = $1", ids[0])
    assert [row["id"] for row in rows] == [new]
    assert [file.name for file in list_files(services)] == [new.removeprefix(speech_jobs.FOLDER)]
    await services.files.delete(new)


def test_the_queue_has_one_kind_so_that_tenants_share_it() -> None:
    assert [kind.name for kind in AREAS.work_kinds.values() if kind.queue == "speech"] == [
        "speech.run"
    ]
