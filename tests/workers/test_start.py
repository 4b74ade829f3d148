"""What a worker imports at its start."""

import subprocess
import sys

import pytest

from app import settings as configuration
from tests.processes import ROOT
from tests.stores import Stores

_WEB_FRAMEWORKS = {"granian", "litestar", "starlette", "uvicorn"}
# Imported neither with the first modules nor later.
_UNUSED = {"alembic", "rich", *_WEB_FRAMEWORKS}
_OPTIONAL = {"asyncssh", "langcodes", "litellm", "mcp", "numpy", "pydantic", "sqlglot"}
_START = """
import sys
from app.command_runner import one_line_errors
with one_line_errors():
    import workers.main
print("modules", *(name for name, module in sys.modules.items() if module))
import asyncio
from app import container, settings
from app.jobs import background
from app.observe import heartbeat
from app.jobs.work import QUEUES
from workers.main import WorkerProcess

async def main():
    services = container.build(settings.load())
    process = WorkerProcess(services, list(QUEUES))
    task = asyncio.create_task(process.run())
    own = heartbeat.own_name()
    while own not in [beat.name for beat in await heartbeat.read(services.redis)]:
        await asyncio.sleep(0.02)
    await background.drain()
    print("modules", *(name for name, module in sys.modules.items() if module))
    process.stopped.set()
    await task
    await services.close()

asyncio.run(main())
"""


@pytest.mark.usefixtures("app")
def test_a_worker_imports_what_the_first_jobs_need_when_it_starts(stores: Stores) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _START],
        env={**configuration.as_env(stores.settings), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    first, ready = (
        {module.partition(".")[0] for module in line.split()}
        for line in result.stdout.splitlines()
        if line.startswith("modules ")
    )
    # What only some jobs need is not imported with its modules.
    assert first & (_UNUSED | _OPTIONAL) == set()
    assert ready & _UNUSED == set()
    assert "sqlglot" in ready
