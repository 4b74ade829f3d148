"""Speaking with the agent, and hearing it."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from litestar import Litestar
from playwright.async_api import expect

from tests.browser import screenshots
from tests.browser.axe import find_violations
from tests.browser.widget.shop import Shop
from tests.conversations.speech.calls import Voice, needs_recogniser
from tests.conversations.speech.recordings import convert
from tests.model_server import Reply
from tests.running_worker import run_worker
from tests.stores import Stores
from workers.main import WorkerProcess

SENTENCE = "When does the shop open in the morning?"
WORDS = set(re.findall(r"\w+", SENTENCE.lower()))
# Chromium's microphone repeats the file; this is longer than it.
SPOKEN_MS = 3500

pytestmark = [needs_recogniser, pytest.mark.timeout(120)]


@pytest.fixture
async def speech_worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    async with run_worker(stores.settings, "speech") as process:
        yield process


@pytest.mark.usefixtures("speech_worker")
async def test_a_visitor_speaks_and_hears_the_answer(shop: Shop, recording: Path) -> None:
    spoken = convert(await Voice(shop.talk).speak(SENTENCE), "wav", 44_100)
    await asyncio.to_thread(recording.write_bytes, spoken)
    own = shop.server.url
    shop.site.policy = f"default-src 'none'; script-src {own}; connect-src {own}"
    shop.talk.script(Reply(texts=["We open at **nine**."]))
    await shop.create_key(allow_voice=True, require_session_token=True)
    await shop.open_chat()
    await shop.button("Speak").click()
    await expect(shop.button("Send the recording")).to_be_visible()
    await screenshots.take(shop.page, "widget-recording")
    await shop.page.wait_for_timeout(SPOKEN_MS)
    await shop.button("Send the recording").click()
    await expect(shop.replies.last).to_contain_text("We open at nine.", timeout=30_000)
    heard = await shop.questions.last.inner_text()
    # The recording begins and ends within a repetition.
    known = WORDS & set(re.findall(r"\w+", heard.lower()))
    assert len(known) > len(WORDS) / 2, heard
    play = shop.button("Read aloud")
    await play.click()
    await expect(shop.button("Stop reading aloud")).to_be_visible()
    await expect(play).to_be_visible(timeout=20_000)
    await expect(shop.notice).to_be_hidden()
    await screenshots.take(shop.page, "widget-voice")
    assert await find_violations(shop.page) == []
    await shop.button("Speak").click()
    await shop.button("Discard the recording").click()
    await expect(shop.button("Speak")).to_be_visible()
    await expect(shop.questions).to_have_count(1)


async def test_without_permission_there_is_no_voice(shop: Shop) -> None:
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    await expect(shop.button("Speak")).to_have_count(0)
    await expect(shop.button("Read aloud")).to_have_count(0)
