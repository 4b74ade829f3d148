import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from uuid import uuid4

import pytest

from app.kit.sandbox.box import Sandbox, Tier
from app.kit.sandbox.program import Language
from app.settings import Settings
from tests.sandbox.cage import Cage


@pytest.fixture(scope="session")
def sandbox_home() -> Iterator[Path]:
    """Where somebody without rights gets to, unlike root's folders."""
    folder = Path(tempfile.mkdtemp(prefix="parley-sandbox-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def sandbox_settings(sandbox_home: Path) -> Settings:
    return Settings(data_dir=sandbox_home / "data", sandbox_dir=sandbox_home)


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
async def cage(
    request: pytest.FixtureRequest, sandbox_home: Path, sandbox_settings: Settings
) -> Cage:
    """Each test with a cage is done in both tiers."""
    tier: Tier = request.param
    sandbox = Sandbox(sandbox_settings)
    if await sandbox.start((tier,)) != tier:
        pytest.fail(
            f"the tier {tier} does not start on this machine (Debian: apt-get install bubblewrap); "
            "`./scripts/test --ignore tests/sandbox` leaves these tests out"
        )
    return Cage(sandbox, sandbox_home)


@pytest.fixture(params=["python", "node", "bash"])
def language(request: pytest.FixtureRequest) -> Language:
    chosen: Language = request.param
    return chosen


@pytest.fixture
def secret() -> str:
    return f"planted-{uuid4().hex}"


@pytest.fixture
def same_user(cage: Cage, monkeypatch: pytest.MonkeyPatch) -> int:
    """The user whom every run of this test is, where it is not whoever runs the tests."""
    monkeypatch.setattr(cage.sandbox, "_uids", repeat(7))
    return cage.sandbox._next_uid() or os.geteuid()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Of the machine, and open to every user of it."""
    folder = Path(tempfile.mkdtemp(prefix="parley-open-", dir="/var/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
