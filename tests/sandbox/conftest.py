import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from uuid import uuid4

import pytest

from app.kit.sandbox.box import Sandbox, Tier
from app.kit.sandbox.program import Language
from app.settings import Settings
from tests.sandbox.sandbox_runner import SandboxRunner

# Above those of other runs.
_SAME_UID = 65510


@pytest.fixture(scope="session")
def sandbox_home() -> Iterator[Path]:
    """A folder that an unprivileged user can reach, unlike root's folders."""
    folder = Path(tempfile.mkdtemp(prefix="parley-sandbox-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def sandbox_settings(sandbox_home: Path) -> Settings:
    return Settings(data_dir=sandbox_home / "data", sandbox_dir=sandbox_home)


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
async def runner(
    request: pytest.FixtureRequest, sandbox_home: Path, sandbox_settings: Settings
) -> SandboxRunner:
    """Runs each test in both tiers."""
    tier: Tier = request.param
    sandbox = Sandbox(sandbox_settings)
    if await sandbox.start((tier,)) != tier:
        pytest.fail(
            f"the tier {tier} does not start on this machine (Debian: apt-get install bubblewrap); "
            "`./scripts/test --ignore tests/sandbox` leaves these tests out"
        )
    return SandboxRunner(sandbox, sandbox_home)


@pytest.fixture(params=["python", "node", "bash"])
def language(request: pytest.FixtureRequest) -> Language:
    name: Language = request.param
    return name


@pytest.fixture
def secret() -> str:
    return f"planted-{uuid4().hex}"


@pytest.fixture
async def same_user(runner: SandboxRunner, monkeypatch: pytest.MonkeyPatch) -> int:
    """Gives all runs of a test the same user, which no other test process has, and returns its
    id.
    """
    async with runner.sandbox._reserve_uid() as uid:
        pass
    if uid and runner.tier == "landlock":
        uid = _SAME_UID + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    monkeypatch.setattr(runner.sandbox, "_reserve_uid", lambda: nullcontext(uid))
    return uid or os.geteuid()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder outside the sandbox that every user may write to."""
    folder = Path(tempfile.mkdtemp(prefix="parley-open-", dir="/var/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
