import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from app.sandbox.box import Sandbox, Tier
from app.sandbox.limits import Limits
from app.settings import Settings
from tests.sandbox.sandbox_runner import SandboxRunner, create_open_folder, new_secret


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


@pytest.fixture
def secret() -> str:
    return new_secret()


@pytest.fixture
async def same_user(runner: SandboxRunner) -> AsyncIterator[int]:
    """Gives all runs of a test the same user, which no other test process has, and returns its
    id.
    """
    async with runner.as_one_user() as uid:
        yield uid


@pytest.fixture
def little_memory(runner: SandboxRunner, monkeypatch: pytest.MonkeyPatch) -> Limits:
    """A quarter of the memory for each run: what exceeds it is sooner written."""
    limits = msgspec.structs.replace(
        runner.sandbox.limits, total_bytes=runner.sandbox.limits.total_bytes // 4
    )
    monkeypatch.setattr(runner.sandbox, "limits", limits)
    monkeypatch.setattr(runner.sandbox.watcher, "_limits", limits)
    return limits


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder outside the sandbox that every user may write to."""
    with create_open_folder() as folder:
        yield folder
