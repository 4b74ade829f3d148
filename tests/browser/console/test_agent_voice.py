"""The voice of an agent in the console: a sample, a spoken question, and the keys of visitors."""

from collections.abc import AsyncIterator

import pytest
from litestar import Litestar
from playwright.async_api import expect

from tests.browser import looks
from tests.browser.console.console import Console
from tests.conversations.speech.calls import Voice, needs_recogniser
from tests.model_server import Reply
from tests.running_worker import run_worker
from tests.scripted_agents import Talker
from tests.stores import Stores
from workers.main import WorkerProcess

_IS_LOADED = "audio => audio.readyState > 0 && audio.duration > 0.5"


@pytest.fixture
async def speech_worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    async with run_worker(stores.settings, "speech") as process:
        yield process


@needs_recogniser
@pytest.mark.usefixtures("speech_worker")
async def test_the_voice_of_an_agent_is_heard_and_it_understands_a_recording(
    console: Console, talk: Talker
) -> None:
    talk.script(Reply(texts=["We open at **nine**."]))
    recording = await Voice(talk).speak("When does the shop open in the morning?")
    key = {"name": "Our shop", "agent_id": talk.agent_id}
    assert (await talk.client.post("/api/v1/embed/api-keys", key)).status_code == 201
    page = console.page
    await console.sign_in(talk.client)
    await console.open(f"/agents/{talk.agent_id}?tab=voice", title="Talker")
    await console.button("Speak it").click()
    audio = page.locator("audio")
    await page.wait_for_function(_IS_LOADED, arg=await audio.element_handle())
    file = {"name": "question.mp3", "mimeType": "audio/mpeg", "buffer": recording}
    await page.get_by_label("Choose a recording").set_input_files(file)  # type: ignore[arg-type]
    answer = page.get_by_role("group", name="The answer")
    await expect(answer).to_contain_text("We open at nine.", timeout=30_000)
    await expect(answer).to_contain_text("shop open")
    await page.get_by_role("switch", name="Our shop").check()
    await expect(page.get_by_role("switch", name="Our shop")).to_be_enabled()
    keys = (await talk.client.get(f"/api/v1/embed/api-keys?agent_id={talk.agent_id}")).json()
    assert [row["allow_voice"] for row in keys["data"]] == [True]
    await page.get_by_role("textbox", name="Text to speak").fill(" ")
    await console.button("Speak it").click()
    await expect(page.get_by_role("textbox", name="Text to speak")).to_have_attribute(
        "aria-invalid", "true"
    )
    assert await looks.find_problems(page, "console-agent-voice", 1280, 360) == []
