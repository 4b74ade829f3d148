"""The child process that decodes pictures: limits, timeouts and failures."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from app.domain.identity.profile import images
from app.domain.identity.profile.images import NotAPicture
from tests.assertions import until
from tests.identity.profile.pictures import plain_picture
from tests.sandbox.child_scripts import is_running, write_script


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import os; os.abort()", id="crash"),
        pytest.param("raise SystemExit(3)", id="error"),
        pytest.param("pass", id="silence"),
        pytest.param("print('image/png'); raise SystemExit(1)", id="error after a half answer"),
    ],
)
async def test_a_decoder_that_fails_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(images, "_SCRIPT", write_script(tmp_path, text))
    with pytest.raises(NotAPicture):
        await images.redraw(plain_picture("PNG"), 512)


async def test_a_decoder_that_takes_too_long_is_killed_and_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write_script(tmp_path, "import time; time.sleep(60)")
    monkeypatch.setattr(images, "_SCRIPT", script)
    monkeypatch.setattr(images, "_LIMITS", msgspec.structs.replace(images._LIMITS, seconds=0.2))
    with pytest.raises(NotAPicture):
        await images.redraw(plain_picture("PNG"), 512)
    assert not is_running(script)


async def test_a_decoder_is_killed_when_its_caller_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write_script(tmp_path, "import time; time.sleep(60)")
    monkeypatch.setattr(images, "_SCRIPT", script)
    task = asyncio.create_task(images.redraw(plain_picture("PNG"), 512))
    await until(lambda: is_running(script), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(script)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("bytearray(1 << 30)", id="memory"),
        pytest.param("[os.dup(1) for _ in range(64)]", id="handles"),
    ],
)
async def test_a_decoder_has_limits_of_memory_and_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    text = "import os\n{}\nprint('image/png')"
    monkeypatch.setattr(images, "_SCRIPT", write_script(tmp_path, text.format("pass")))
    assert (await images.redraw(b"", 512)).media_type == "image/png"
    write_script(tmp_path, text.format(code))
    with pytest.raises(NotAPicture):
        await images.redraw(b"", 512)
