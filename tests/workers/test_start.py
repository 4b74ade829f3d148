"""What a worker imports at its start."""

import subprocess
import sys

import pytest

from app import settings as configuration
from tests.processes import ROOT
from tests.stores import Stores

_WEB_FRAMEWORKS = {"granian", "litestar", "starlette", "uvicorn"}
_IMPORT = """
import sys
import workers.main
print(*sys.modules)
"""
_START = """
import asyncio, sys
from app import container, settings
from app.kit import background, heartbeat
from app.kit.work import QUEUES
from workers.main import WorkerProcess

async def main():
    services = container.build(settings.load())
    process = WorkerProcess(services, list(QUEUES))
    task = asyncio.create_task(process.run())
    own = heartbeat.own_name()
    while own not in [beat.name for beat in await heartbeat.read(services.redis)]:
        await asyncio.sleep(0.02)
    await background.drain()
    print(*sys.modules)
    process.stopped.set()
    await task
    await services.close()

asyncio.run(main())
"""


def _imported_packages(script: str, stores: Stores) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**configuration.as_env(stores.settings), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return {module.partition(".")[0] for module in result.stdout.split()}


def test_its_modules_import_nothing_that_only_some_jobs_need(stores: Stores) -> None:
    optional = {"asyncssh", "langcodes", "litellm", "mcp", "numpy", "pydantic", "sqlglot"}
    assert _imported_packages(_IMPORT, stores) & (_WEB_FRAMEWORKS | optional) == set()


@pytest.mark.usefixtures("app")
def test_a_ready_worker_has_what_the_first_jobs_need_but_no_web_framework(stores: Stores) -> None:
    packages = _imported_packages(_START, stores)
    assert packages & _WEB_FRAMEWORKS == set()
    assert "sqlglot" in packages
