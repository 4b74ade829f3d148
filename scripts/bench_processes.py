"""Starts the processes that the bench measures: web processes, bare counterparts and workers."""

import os
import subprocess
import sys

from app import settings as configuration
from app.settings import Settings
from tests.stores import Stores


def start(code: str, settings: Settings) -> subprocess.Popen[bytes]:
    env = {**os.environ, **configuration.as_env(settings), "PYTHONPATH": "scripts:."}
    return subprocess.Popen([sys.executable, "-c", code], env=env)


def web(factory: str, port: int) -> str:
    return (
        f"import uvicorn; uvicorn.run('{factory}', factory=True, port={port}, log_level='error', "
        "access_log=False, proxy_headers=False)"
    )


def start_children(stores: Stores, ports: dict[str, int]) -> list[subprocess.Popen[bytes]]:
    """The first one is the web process that is measured, the last one that of knowledge."""
    return [
        start(web("bench:parley_app", ports["parley"]), stores.settings),
        start(web("bench:bare_app", ports["bare"]), stores.settings),
        start(web("bench_chat:bare_app", ports["bare_chat"]), stores.settings),
        start(web("bench_reads:bare_app", ports["bare_reads"]), stores.settings),
        start(web("bench_forms:bare_app", ports["bare_forms"]), stores.settings),
        start("import stub_model; stub_model.main()", stores.settings),
        start("import bench; bench.ledger_worker()", stores.settings),
        start("import bench; bench.saq_worker()", stores.settings),
        start("import bench_tools; bench_tools.worker()", stores.settings),
        start("import bench_events; bench_events.worker()", stores.settings),
        start("import receiver; receiver.main()", stores.settings),
        start("import bench_workflows; bench_workflows.worker()", stores.settings),
        start("import bench_knowledge; bench_knowledge.worker()", stores.settings),
        start(web("bench:parley_app", ports["knowledge"]), stores.settings),
    ]
