"""Requests with recordings and for speech."""

from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from app.kit import optional
from app.services import Services
from tests.database import Row, fetch_rows
from tests.scripted_agents import Talker

QUESTION = "When does the shop open?"
needs_recogniser = pytest.mark.skipif(
    not optional.is_installed(optional.SPEECH_RECOGNITION),
    reason=optional.read_missing_reason(optional.SPEECH_RECOGNITION),
)


class Voice(msgspec.Struct):
    """A user who speaks with an agent."""

    talk: Talker

    async def send(self, content: bytes, name: str = "audio", **fields: str) -> httpx.Response:
        """Sends a recording; the declared name and type are wrong, and must not matter."""
        files = {name: ("recording.txt", content, "text/plain")}
        return await self.talk.client.http.post(
            f"{self.talk.path}/chat/audio", files=files, data=fields, timeout=60
        )

    async def say(self, content: bytes, **fields: str) -> dict[str, Any]:
        answer = await self.send(content, **fields)
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    async def request_speech(self, body: object, **more: Any) -> httpx.Response:
        return await self.talk.client.post(f"{self.talk.path}/chat/tts", body, timeout=60, **more)

    async def speak(self, text: str, **fields: str) -> bytes:
        answer = await self.request_speech({"text": text, **fields})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "audio/mpeg"
        return answer.content


async def list_jobs(services: Services, voice: Voice) -> list[Row]:
    sql = """
        SELECT j.*, w.state FROM speech_jobs j JOIN work w ON w.id = j.work_id
        WHERE j.tenant_id = $1
    """
    return await fetch_rows(services, sql, voice.talk.client.tenant_id)


def list_files(services: Services) -> list[Path]:
    return list((services.settings.data_dir / "files" / "speech").glob("*"))


async def is_removed(services: Services, voice: Voice) -> bool:
    """True when neither a row nor a file is left."""
    return not await list_jobs(services, voice) and not list_files(services)


async def create_archived(talk: Talker) -> Talker:
    """Creates an archived agent of the same user."""
    archived = await talk.agent()
    answer = await talk.client.put(archived.path, {"status": "archived"})
    assert answer.status_code == 200, answer.text
    return archived
