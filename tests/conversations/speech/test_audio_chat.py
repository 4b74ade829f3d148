"""Chat by voice: what is refused, and what the reply has."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from app.domain.conversations.chat.schemas import ChatReply
from app.domain.conversations.speech import audio, speech_jobs
from app.jobs import background
from app.main import create_app
from app.services import Services
from tests.assertions import refused, wait_until
from tests.conversations.speech.calls import QUESTION, Voice, create_archived, is_removed, list_jobs
from tests.conversations.speech.recordings import tone
from tests.database import fetch_rows
from tests.model_server import ModelServer
from tests.scripted_agents import talker
from tests.stores import Stores
from tests.world import World

MIB = 1024 * 1024


async def test_the_reply_is_the_chat_reply_with_the_transcript(
    served_voice: Voice, recogniser: None, services: Services
) -> None:
    reply = await served_voice.say(tone())
    assert set(reply) == {*ChatReply.__struct_fields__, "transcript"}
    assert reply["transcript"] == QUESTION
    assert reply["message"]["content"] == "Hello there"
    sql = "SELECT source, title FROM conversations WHERE id = $1"
    (conversation,) = await fetch_rows(services, sql, reply["conversation_id"])
    assert conversation == {"source": "audio", "title": QUESTION}


async def test_a_conversation_goes_on_by_voice(served_voice: Voice, recogniser: None) -> None:
    conversation_id = (await served_voice.talk.say("Hello"))["conversation_id"]
    reply = await served_voice.say(tone(), conversation_id=conversation_id)
    assert reply["conversation_id"] == conversation_id
    roles = [message["role"] for message in served_voice.talk.asked[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


async def test_an_empty_conversation_id_starts_a_new_conversation(
    served_voice: Voice, recogniser: None
) -> None:
    assert (await served_voice.say(tone(), conversation_id=""))["conversation_id"]


async def test_a_conversation_that_the_user_does_not_have_is_not_found_before_transcription(
    voice: Voice, world: World, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speech_jobs, "QUEUE_SECONDS", 0.1)
    own, other_agent = voice.talk, await voice.talk.agent()
    colleague = await world.user("agent_developer", own.client.tenant_id)
    other_user = msgspec.structs.replace(own, client=colleague)
    for conversation_id in (
        "cnv_00000000000000000000000000",
        "123",
        (await other_agent.say("Hello"))["conversation_id"],
        (await other_user.say("Hello"))["conversation_id"],
    ):
        answer = await voice.send(tone(), conversation_id=conversation_id)
        refused(answer, 404, "conversation_not_found")
    assert await is_removed(services, voice)


async def test_bodies_without_a_recording_are_refused(voice: Voice) -> None:
    path, http = f"{voice.talk.path}/chat/audio", voice.talk.client.http
    for answer in (
        await voice.send(tone(), name="file"),
        await http.post(path, data={"audio": "text"}),
        await http.post(path, files={"audio": ("", b"")}),
        await http.post(path, files=[("audio", ("a", b"1")), ("audio", ("b", b"2"))]),
        await http.post(path, json={"audio": "text"}),
        await http.post(path),
        await voice.send(tone(), conversation_id="c" * 65),
        await voice.send(tone(), conversation_id="cnv\0"),
    ):
        refused(answer, 422, "validation_error")


async def test_unreadable_recordings_are_refused_by_their_content(
    served_voice: Voice, services: Services
) -> None:
    """`test_decoding.py` has many more."""
    for content in (b"", tone("mp4", rate=44_100)):
        error = refused(await served_voice.send(content), 415, "unsupported_file_type")
        assert set(error["details"]) == {"audio"}
    await wait_until(lambda: is_removed(services, served_voice))


async def test_a_recording_without_speech_is_refused_with_a_clear_error(
    served_voice: Voice, services: Services
) -> None:
    answer = await served_voice.send(tone(volume=0.0))
    error = refused(answer, 422, "validation_error")
    assert error["details"] == {"audio": "has no speech that could be recognised"}
    # The recogniser has worked: unlike other invalid input, it costs as much as an answer.
    remaining = int(answer.headers["x-ratelimit-remaining"])
    await background.drain()
    following = await served_voice.talk.client.get("/auth/me")
    assert following.headers["x-ratelimit-remaining"] == str(remaining - 1)
    assert served_voice.talk.asked == []
    await wait_until(lambda: is_removed(services, served_voice))


async def test_recordings_beyond_the_limits_are_refused_with_the_limit(
    served_voice: Voice, recogniser: None, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """25 MB pass with the rest of the body; the recogniser does not look at them here."""
    largest = bytes(25 * MIB)
    assert (await served_voice.say(largest))["transcript"] == QUESTION
    for content in (largest + b"0", bytes(27 * MIB)):
        error = refused(await served_voice.send(content), 413, "file_too_large")
        assert error["details"]["max_size_mb"] == 25
    monkeypatch.undo()
    monkeypatch.setattr(audio, "MAX_SECONDS", 10)
    error = refused(
        await served_voice.send(tone(seconds=15, rate=8_000, bits=8)), 413, "file_too_large"
    )
    assert error["details"] == {"max_seconds": 10}
    await wait_until(lambda: is_removed(services, served_voice))


async def test_an_agent_that_cannot_be_asked_is_refused_before_anything_is_stored(
    voice: Voice, world: World, models: ModelServer, services: Services
) -> None:
    own, foreign = voice.talk, await talker(world, models)
    unconfigured = await own.agent(primary_model="nobody/nothing")
    archived = await create_archived(own)
    for agent_id, status, code in (
        (foreign.agent_id, 404, "agent_not_found"),
        ("agt_00000000000000000000000000", 404, "agent_not_found"),
        (archived.agent_id, 409, "agent_archived"),
        (unconfigured.agent_id, 409, "model_not_configured"),
    ):
        other = Voice(msgspec.structs.replace(own, agent_id=agent_id))
        refused(await other.send(tone()), status, code)
    assert await is_removed(services, voice)


async def test_a_role_without_the_permission_is_refused(voice: Voice, world: World) -> None:
    viewer = await world.user("viewer", voice.talk.client.tenant_id)
    other = Voice(msgspec.structs.replace(voice.talk, client=viewer))
    refused(await other.send(tone()), 403, "forbidden")
    refused(await other.request_speech({"text": "Hello"}), 403, "forbidden")


async def test_a_super_admin_speaks_with_an_agent_of_any_tenant(
    served_voice: Voice, world: World, recogniser: None
) -> None:
    admin = await world.user("super_admin")
    other = Voice(msgspec.structs.replace(served_voice.talk, client=admin))
    assert (await other.say(tone()))["transcript"] == QUESTION
    assert await other.speak("Hello")


def _start_file(boundary: str) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="audio"; filename="a"\r\n\r\n'
    return head.encode()


def _multipart(boundary: str, content: bytes) -> dict[str, Any]:
    body = _start_file(boundary) + content + f"\r\n--{boundary}--\r\n".encode()
    return {
        "content": body,
        "headers": {
            "content-type": f"multipart/form-data; boundary={boundary}",
            "idempotency-key": "voice-1",
        },
    }


async def test_a_repeated_recording_is_answered_once_whatever_its_boundary(
    served_voice: Voice, recogniser: None
) -> None:
    async def send(boundary: str, content: bytes) -> httpx.Response:
        path = f"{served_voice.talk.path}/chat/audio"
        return await served_voice.talk.client("POST", path, **_multipart(boundary, content))

    first, second = await send("one", tone()), await send("two", tone())
    assert (first.status_code, second.status_code) == (200, 200), first.text
    assert first.json() == second.json()
    assert second.headers["idempotent-replayed"] == "true"
    assert len(served_voice.talk.asked) == 1
    refused(await send("three", tone(seconds=2.0)), 422, "idempotency_mismatch")


async def test_recordings_of_one_agent_are_answered_at_the_same_time(
    served_voice: Voice, recogniser: None
) -> None:
    replies = await asyncio.gather(*(served_voice.say(tone()) for _ in range(6)))
    assert {reply["transcript"] for reply in replies} == {QUESTION}
    assert len({reply["conversation_id"] for reply in replies}) == 6


async def test_a_recording_is_not_stored_for_a_bad_request(
    voice: Voice, services: Services
) -> None:
    refused(await voice.send(b"", name="file"), 422, "validation_error")
    assert await list_jobs(services, voice) == []


@pytest.mark.usefixtures("app")
async def test_the_operator_may_lower_the_limit(stores: Stores, models: ModelServer) -> None:
    app = create_app(msgspec.structs.replace(stores.settings, max_body_mb=1))
    talk = await talker(World(app), models)
    path, http = f"{talk.path}/chat/audio", talk.client.http
    chunks = [_start_file("x"), *[bytes(MIB)] * 20]

    async def send_chunks() -> AsyncIterator[bytes]:
        while chunks:
            yield chunks.pop(0)

    headers = {"content-type": "multipart/form-data; boundary=x"}
    for answer in (
        await http.post(path, files={"audio": ("a.wav", bytes(MIB + 1))}),
        await http.post(path, content=send_chunks(), headers=headers),
    ):
        error = refused(answer, 413, "file_too_large")
        assert error["details"]["max_size_mb"] == 1
    # The rest of the body was not read.
    assert len(chunks) >= 17
    await app.state.services.close()


async def test_the_document_describes_the_recording_and_the_spoken_text(voice: Voice) -> None:
    document = (await voice.talk.client.get("/openapi.json")).json()
    base = "/api/v1/agents/{agent_id}/chat"
    body = document["paths"][f"{base}/audio"]["post"]["requestBody"]["content"]
    assert list(body) == ["multipart/form-data"]
    schema = document["components"]["schemas"]["AudioQuestion"]
    assert schema["required"] == ["audio"]
    assert schema["properties"]["audio"]["format"] == "binary"
    answer = document["paths"][f"{base}/tts"]["post"]["responses"]["200"]["content"]
    assert answer == {"audio/mpeg": {"schema": {"type": "string", "format": "binary"}}}
