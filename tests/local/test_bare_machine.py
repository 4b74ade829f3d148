"""`./scripts/up` on a machine with nothing but Python installs Parley, starts and answers."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local import bare_machine
from tests.local.instance import QUESTION, create_agent_on_local_model, start_command
from tests.packages import locked, source
from tests.ports import free_port
from tests.processes import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-bare-", dir="/var/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def _cache() -> Path:
    """Returns the installer's cache, so that packages are downloaded once."""
    uv = Path(shutil.which("uv", path=str(ROOT / ".venv" / "bin")) or "uv")
    completed = subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, check=True)
    folder = Path(completed.stdout.strip())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_up_needs_nothing_but_python(folder: Path) -> None:
    checkout = folder / "checkout"
    checkout.mkdir()
    bare_machine.copy_checkout(ROOT, checkout)
    # A package of an optional feature has no wheel for this machine.
    package = source(folder, "planted-optional", "1.0", folder / "something-was-built")
    (checkout / "requirements-speech.lock").write_text(locked(package), encoding="utf-8")
    shutil.copy(package, checkout)
    port = free_port()
    command = bare_machine.command(
        checkout, _cache(), "./scripts/up",
        PARLEY_PORT=str(port), UV_CACHE_DIR="/cache", UV_FIND_LINKS="/parley",
    )  # fmt: skip
    instance = start_command(command, {}, folder, port)
    try:
        instance.wait_ready(400)
        assert "speech recognition: off, planted-optional==1.0 has no" in instance.text
        with instance.client() as client:
            agent_id = create_agent_on_local_model(client)
            reply = client.post(f"/api/v1/agents/{agent_id}/chat", json=QUESTION).json()
            parts = client.get("/health/ready").json()["parts"]
    finally:
        instance.process.kill()
        instance.wait_ended()
    assert "9" in reply["message"]["content"]
    assert {part["state"] for part in parts.values()} == {"ok"}
    assert not (folder / "something-was-built").exists()
