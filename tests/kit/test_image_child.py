"""The child process that decodes pictures: limits, timeouts and failures."""

import asyncio
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from app.kit import images
from app.kit.images import NotAPicture
from tests.kit.pictures import plain_picture
from tests.stores import wait_for


def _write_script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text)
    return path


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
    monkeypatch.setattr(images, "_SCRIPT", _write_script(tmp_path, text))
    with pytest.raises(NotAPicture):
        await images.redraw(plain_picture("PNG"), 512)


def _is_running(script: Path) -> bool:
    """True while a child of this process runs the script."""
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if str(script) in child.cmdline():
                return True
    return False


async def test_a_decoder_that_takes_too_long_is_killed_and_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = _write_script(tmp_path, "import time; time.sleep(60)")
    monkeypatch.setattr(images, "_SCRIPT", script)
    monkeypatch.setattr(images, "_SECONDS", 0.2)
    with pytest.raises(NotAPicture):
        await images.redraw(plain_picture("PNG"), 512)
    assert not _is_running(script)


async def test_a_decoder_is_killed_when_its_caller_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = _write_script(tmp_path, "import time; time.sleep(60)")
    monkeypatch.setattr(images, "_SCRIPT", script)
    task = asyncio.create_task(images.redraw(plain_picture("PNG"), 512))
    await asyncio.to_thread(wait_for, lambda: _is_running(script), 30, "the decoder's start")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _is_running(script)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("bytearray(1 << 30)", id="memory"),
        pytest.param("open('written', 'wb', buffering=0).write(b'x')", id="file"),
        pytest.param("[open(os.devnull) for _ in range(64)]", id="handles"),
    ],
)
async def test_a_decoder_has_limits_of_memory_files_and_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    text = f"import os\nos.chdir({str(tmp_path)!r})\n{{}}\nprint('image/png')"
    monkeypatch.setattr(images, "_SCRIPT", _write_script(tmp_path, text.format("pass")))
    assert (await images.redraw(b"", 512)).media_type == "image/png"
    _write_script(tmp_path, text.format(code))
    with pytest.raises(NotAPicture):
        await images.redraw(b"", 512)
