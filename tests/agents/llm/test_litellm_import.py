"""When litellm is imported, and what its import does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import settings as configuration
from tests.agents.llm.litellm_providers import ImportedLibrary
from tests.preloaded import PreloadedProcess
from tests.stores import Stores

# litellm emits warnings at import and in use.
pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parent.parent.parent


def _run_script(script: str) -> str:
    process = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return process.stdout.splitlines()[-1]


_CHAT = """
import asyncio, json, os, sys
from pathlib import Path
import app.main, app.cli, workers.main
assert "litellm" not in sys.modules
from app import settings
from app.main import create_app
from tests.model_server import serving
from tests.scripted_agents import talker
from tests.world import World

async def main():
    app = create_app(settings.load(os.environ))
    async with serving() as models:
        talk = await talker(World(app), models)
        reply = await talk.say("Hello")
        listed = (await talk.client.get("/api/v1/models")).json()["data"]
        result = [reply["message"]["content"], len(listed), "litellm" in sys.modules]
        Path(os.environ["RESULT"]).write_text(json.dumps(result))
    await app.state.services.close()

asyncio.run(main())
"""


@pytest.mark.usefixtures("world")
def test_neither_starting_nor_chatting_with_an_openai_compatible_model_imports_litellm(
    stores: Stores, tmp_path: Path
) -> None:
    result = tmp_path / "result.json"
    env = {**os.environ, **configuration.as_env(stores.settings), "RESULT": str(result)}
    assert PreloadedProcess("-c", _CHAT, env=env).wait(60) == 0
    assert json.loads(result.read_text()) == ["Hello there", 2, False]


_IMPORT = """
import asyncio, socket
from app.domain.agents.llm.litellm_adapter import LiteLLMAdapter

looked_up = []
def refuse(*arguments, **_):
    looked_up.append(arguments[0])
    raise socket.gaierror("no network")
socket.getaddrinfo = refuse

async def main():
    others = LiteLLMAdapter()
    first, second = await asyncio.gather(others._litellm(), others._litellm())
    print(first is second, looked_up)
    await others.close()

asyncio.run(main())
"""


def test_the_import_makes_no_network_request(imported: ImportedLibrary) -> None:
    assert imported.looked_up == []


@pytest.mark.long
def test_the_first_import_of_a_process_makes_no_network_request() -> None:
    """The import takes seconds; a test before the one above may have imported the library."""
    assert _run_script(_IMPORT) == "True []"
