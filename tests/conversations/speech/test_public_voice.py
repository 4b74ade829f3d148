"""Voice for visitors of web sites."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from litestar import Litestar

from tests.assertions import until
from tests.conversations.embed.factories import list_embed_keys
from tests.conversations.embed.sites import NO_CORS, ORIGIN, cors_headers, error_of
from tests.conversations.embed.visits import Visit, call, create_shop, visit, visit_as
from tests.conversations.speech.calls import QUESTION
from tests.conversations.speech.hosted import serve_hosted
from tests.conversations.speech.recordings import tone
from tests.http_clients import open_client
from tests.model_server import SPEECH, ModelServer, Reply
from tests.scripted_agents import Talker, give_key, talker
from tests.server import Server
from tests.stores import Stores
from tests.world import World
from workers.main import WorkerProcess

pytestmark = pytest.mark.usefixtures("scripts_here")
EAR, MOUTH = "ear-of-visitors", "mouth-of-visitors"
SECRETS = ("hearing", EAR, MOUTH, "sk-")


@pytest.fixture(scope="module")
async def hosted_world(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    del app
    async with serve_hosted(stores, EAR, MOUTH) as world:
        yield world


@pytest.fixture
async def hosted_talk(
    hosted_world: World, models: ModelServer, speech_worker: WorkerProcess
) -> Talker:
    """An agent whose tenant has a key of the provider."""
    models.script(EAR, Reply(texts=[QUESTION]))
    models.script(MOUTH, Reply())
    talk = await talker(hosted_world, models)
    await give_key(talk.client, models, "hearing")
    return talk


@pytest.fixture
async def visitor(hosted_talk: Talker) -> Visit:
    return await visit(await create_shop(hosted_talk, "shop.example.com", allow_voice=True))


async def _record(visitor: Visit, content: bytes | None = None, **changes: Any) -> httpx.Response:
    """Sends a recording with the visitor's token."""
    fields = {"session_id": visitor.session_id, "origin": ORIGIN, **changes}
    headers = {"authorization": f"Bearer {visitor.token}", "origin": fields["origin"]}
    return await visitor.site.talk.world.anonymous().http.post(
        f"{visitor.site.path}/chat/audio",
        files={"audio": ("recording.webm", tone() if content is None else content)},
        data={"session_id": fields["session_id"]},
        headers=headers,
        timeout=60,
    )


async def test_a_recording_is_answered_with_its_transcript(visitor: Visit) -> None:
    answer = await _record(visitor)
    assert answer.status_code == 200, answer.text
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    reply = answer.json()
    assert set(reply) == {
        "session_id",
        "conversation_id",
        "assistant_reply",
        "sources",
        "finish_reason",
        "transcript",
    }
    assert reply["session_id"] == visitor.session_id
    assert reply["transcript"] == QUESTION
    assert reply["assistant_reply"]["content"] == "Hello there"
    # It is part of the same session as what is written.
    await visitor.say("And on Sundays?")
    contents = [message["content"] for message in (await visitor.load())["messages"]]
    assert contents == [QUESTION, "Hello there", "And on Sundays?", "Hello there"]
    assert (await visitor.load())["agent"]["allow_voice"] is True


async def test_a_text_is_spoken(visitor: Visit) -> None:
    answer = await visitor.call("POST chat/tts")
    assert (answer.status_code, answer.content) == (200, SPEECH)
    assert answer.headers["content-type"] == "audio/mpeg"
    assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_a_customer_speaks_in_their_own_session(hosted_talk: Talker) -> None:
    site = await create_shop(hosted_talk, allow_voice=True, require_user_token=True)
    customer = await visit_as(site, name="Ada")
    assert (await _record(customer)).status_code == 200
    assert "Ada" in hosted_talk.asked[0]["messages"][0]["content"]
    other = await visit_as(site, "bob")
    answer = await _record(other, session_id=customer.session_id)
    assert error_of(answer) == (403, "session_mismatch")


async def test_the_key_itself_may_speak_unless_it_only_opens_sessions(
    hosted_talk: Talker,
) -> None:
    site = await create_shop(hosted_talk, allow_voice=True)
    answer = await call(site, "POST chat/tts", site.api_key)
    assert answer.status_code == 200


async def test_voice_is_not_allowed_by_default(hosted_talk: Talker) -> None:
    visitor = await visit(await create_shop(hosted_talk))
    for answer in (await _record(visitor), await visitor.call("POST chat/tts")):
        assert error_of(answer) == (403, "voice_not_allowed")
        assert answer.headers["access-control-allow-origin"] == ORIGIN
    # The body is not even read.
    answer = await visitor.call("POST chat/audio", **{"content-type": "text/plain"})
    assert error_of(answer) == (403, "voice_not_allowed")
    assert (await visitor.load())["agent"]["allow_voice"] is False


async def test_other_sites_cannot_speak(visitor: Visit) -> None:
    site, evil = visitor.site, "https://evil.example.net"
    for route in ("POST chat/audio", "POST chat/tts"):
        answer = await call(site, route, site.api_key, origin=evil)
        assert error_of(answer) == (403, "origin_not_allowed")
        assert cors_headers(answer) == NO_CORS
        answer = await visitor.call(route, origin=evil)
        assert error_of(answer) == (403, "session_mismatch")


async def test_a_recording_for_another_session_is_not_transcribed(
    visitor: Visit, models: ModelServer
) -> None:
    count = len(models.asked(EAR))
    answer = await _record(visitor, session_id="vis_" + "b" * 32)
    assert error_of(answer) == (403, "session_mismatch")
    answer = await _record(visitor, session_id="")
    assert error_of(answer) == (422, "validation_error")
    assert len(models.asked(EAR)) == count


async def test_recordings_and_speech_count_as_messages(
    hosted_talk: Talker, models: ModelServer
) -> None:
    site = await create_shop(hosted_talk, allow_voice=True, max_messages_per_day=2)
    visitor = await visit(site)
    assert (await _record(visitor)).status_code == 200
    assert (await visitor.call("POST chat/tts")).status_code == 200
    counts = len(models.asked(EAR)), len(models.asked(MOUTH))
    for answer in (await _record(visitor), await visitor.call("POST chat/tts")):
        assert error_of(answer) == (429, "daily_limit_reached")
    assert (len(models.asked(EAR)), len(models.asked(MOUTH))) == counts
    [key] = await list_embed_keys(hosted_talk.client)
    assert (key["messages_today"], key["tokens_today"]) == (2, 18)


async def test_what_is_no_recording_is_refused(visitor: Visit) -> None:
    assert error_of(await _record(visitor, b"no audio")) == (415, "unsupported_file_type")
    # A worker has decoded it: 2 units for the session, and 10 in full for the recording.
    client = visitor.site.talk.client
    usage = f"parley:limit:embed:{client.tenant_id}"
    assert await visitor.site.talk.world.services.redis.hget(usage, "minute") == b"12"


async def _assert_hidden(answer: httpx.Response, status: int, code: str) -> None:
    assert error_of(answer) == (status, code)
    assert not [secret for secret in SECRETS if secret in answer.text], answer.text
    assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_visitors_do_not_see_what_a_provider_says(
    visitor: Visit, models: ModelServer
) -> None:
    message = "account hearing-42 with key sk-secret has no credit"
    models.script(EAR, Reply(status=400, message=message))
    models.script(MOUTH, Reply(status=400, message=message))
    await _assert_hidden(await _record(visitor), 502, "provider_error")
    await _assert_hidden(await visitor.call("POST chat/tts"), 502, "provider_error")


async def test_visitors_do_not_see_which_model_is_missing(
    hosted_world: World, models: ModelServer, speech_worker: WorkerProcess
) -> None:
    site = await create_shop(await talker(hosted_world, models), allow_voice=True)
    visitor = await visit(site)
    await _assert_hidden(await _record(visitor), 503, "unavailable")
    await _assert_hidden(await visitor.call("POST chat/tts"), 503, "unavailable")


async def test_a_visitor_who_leaves_ends_the_answer(
    talk: Talker,
    models: ModelServer,
    server: Server,
    speech_worker: WorkerProcess,
    recogniser: None,
) -> None:
    visitor = await visit(await create_shop(talk, allow_voice=True))
    hold, closed = asyncio.Event(), models.closed_early
    talk.script(Reply(hold=hold))
    try:
        async with open_client(base_url=server.url, timeout=30) as client:
            sending = asyncio.create_task(
                client.post(
                    f"{visitor.site.path}/chat/audio",
                    files={"audio": ("recording.webm", tone())},
                    data={"session_id": visitor.session_id},
                    headers={"authorization": f"Bearer {visitor.token}", "origin": ORIGIN},
                )
            )
            await until(lambda: talk.asked or sending.done(), 30)
            sending.cancel()
            await asyncio.wait([sending])
        await until(lambda: models.closed_early > closed, 2)
    finally:
        hold.set()
