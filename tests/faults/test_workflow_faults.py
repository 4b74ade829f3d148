"""Workflows while every step of theirs is interrupted by SIGKILL, and Redis is flushed."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.services import Services
from tests.automation.workflows.factories import (
    by_node,
    chain,
    condition,
    create_workflow,
    edge,
    read,
    start,
    statuses,
    transform,
)
from tests.database import fetch_rows
from tests.lengths import IS_LONG, rounds
from tests.model_server import ModelServer, Reply
from tests.preloaded import PreloadedProcess
from tests.processes import Processes
from tests.scripted_agents import Talker, talker
from tests.stores import Stores
from tests.world import World

# Kills itself once at each moment of its arguments: after the commit of a step, before another
# worker is woken, or before the commit that has an effect. A file per kill, so that the next
# process goes on.
WORKER = """
import os, signal, sys
from pathlib import Path
from app import settings
from app.domain.automation.workflows import execution_queries
from workers import main
folder, store = Path(sys.argv[1]), execution_queries.store

def kill_once(changes, moment):
    for change in changes:
        mark = folder / f"{change.node_id}-{change.status}-{moment}"
        if mark.name in sys.argv[2:] and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

async def store_and_die(tx, execution, changes):
    async def die():
        kill_once(changes.nodes, "committed")
    tx.after_commit.insert(0, die)
    next_row = await store(tx, execution, changes)
    kill_once(changes.nodes, "written")
    return next_row

execution_queries.store = store_and_die
# A kill interrupts one node: each one is tried a limited number of times.
main.CONCURRENCY.update(workflows=1, chat=1, tools=1, default=2)
# Imports for tools of other types than this workflow has.
main._warm_up = lambda queues: None
main.main(settings.load(os.environ), ["workflows", "chat", "tools", "default"])
"""
FUNCTION = "def main(input):\n    return {'double': input['n'] * 2}\n"
# Each kind of step once: one that goes on, one that waits, one that another queue runs, one whose
# effect is in another table.
_SHORT_KILLS = {
    *("start-completed-committed", "ask-waiting-committed", "double-running-committed"),
    *("store-completed-written", "double-completed-written"),
}
# The approval is completed by the web tier, which is not killed.
_STEPS = (
    *("start-completed", "store-completed", "pause-waiting", "pause-completed"),
    *("check-completed", "tell-completed", "ask-waiting", "join-completed"),
    *("double-running", "double-completed", "answer-running", "answer-completed"),
    "record-completed",
)
_EFFECTS = ("store", "tell", "join", "double", "answer", "record")
_ALL_KILLS = {
    *(f"{step}-committed" for step in _STEPS),
    *(f"{name}-completed-written" for name in _EFFECTS),
}
KILLS = _ALL_KILLS if IS_LONG else _SHORT_KILLS
_COUNTS = """
SELECT (SELECT count(*) FROM data_rows WHERE tenant_id = $1) AS rows,
       (SELECT count(*) FROM notification_messages WHERE tenant_id = $1 AND title = 'Told') AS told,
       (SELECT count(*) FROM approvals WHERE tenant_id = $1) AS approvals,
       (SELECT count(*) FROM chat_jobs WHERE tenant_id = $1) AS jobs,
       (SELECT count(*) FROM tool_executions WHERE tenant_id = $1) AS runs,
       (SELECT count(*) FROM work WHERE tenant_id = $1 AND state = 'dead') AS dead
"""
_EVENTS = """
SELECT split_part(type, 'execution.', 2) || ' ' || coalesce(data->>'node_id', '') AS name,
       count(*) AS count
FROM event_log WHERE tenant_id = $1 AND type LIKE 'workflow.execution.%' GROUP BY 1
"""

pytestmark = pytest.mark.timeout(120)


class Workers(Processes):
    """Workers that kill themselves, and are replaced."""

    def __init__(self, stores: Stores, folder: Path) -> None:
        super().__init__(msgspec.structs.replace(stores.settings, lease_seconds=1.0))
        self.folder = folder
        self._live: list[PreloadedProcess] = []

    def replace_killed(self) -> None:
        self._live = [process for process in self._live if process.is_running]
        while len(self._live) < rounds(1, 2):
            self._live.append(self.python("-c", WORKER, str(self.folder), *KILLS))

    @property
    def kills(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def workers(own_stores: Stores, tmp_path: Path) -> Iterator[Workers]:
    with closing(Workers(own_stores, tmp_path)) as workers:
        yield workers


@pytest.fixture
async def talk(own_world: World, models: ModelServer) -> Talker:
    return await talker(own_world, models)


def _node(node_id: str, node_type: str, **config: Any) -> dict[str, Any]:
    return {"id": node_id, "type": node_type, "config": config}


def _build_nodes(talk: Talker, table_id: str, tool_id: str) -> list[dict[str, Any]]:
    insert: dict[str, Any] = {"table_id": table_id, "operation": "insert"}
    users = [talk.client.user_id]
    number = {"n": "{{ nodes.start.output.n }}"}
    last = {"text": "last {{ nodes.answer.output.text }}"}
    question = "{{ nodes.double.output }}!"
    return [
        transform("start", {"n": "{{ input.n }}"}),
        _node("store", "data_table", **insert, values={"text": "first"}),
        _node("pause", "delay", seconds=1),
        condition("check", "nodes.start.output.n == 21"),
        transform("never", "never"),
        _node("tell", "notification", user_ids=users, title="Told", message="It runs"),
        _node("ask", "approval", user_ids=users, title="Go on?"),
        transform("join", "{{ nodes.ask.output.approved }}"),
        _node("double", "tool", tool_id=tool_id, input=number),
        _node("answer", "agent", agent_id=talk.agent_id, message=question),
        _node("record", "data_table", **insert, values=last),
    ]


async def _create(talk: Talker) -> str:
    client = talk.client
    columns = [{"name": "text", "type": "text"}]
    answer = await client.post("/api/v1/data-tables", {"name": "T", "columns": columns})
    table_id = answer.json()["data"]["id"]
    tool = {
        "name": "Double",
        "category": "custom",
        "tool_type": "function",
        "auth_type": "none",
        "config": {"runtime": "python", "code": FUNCTION},
    }
    answer = await client.post("/v1/tools", tool)
    nodes = _build_nodes(talk, table_id, answer.json()["data"]["id"])
    edges = [
        *chain("start", "store", "pause", "join", "double", "answer", "record"),
        edge("start", "check"),
        edge("check", "never", when=False),
        edge("check", "tell", when=True),
        *chain("tell", "ask", "join"),
        edge("never", "join"),
    ]
    return str((await create_workflow(client, nodes, edges))["id"])


async def _approve(talk: Talker, record: dict[str, Any]) -> None:
    ask = by_node(record)["ask"]
    if ask["status"] == "waiting":
        answer = await talk.client.post(f"/api/v1/approvals/{ask['ref_id']}/approve", {})
        assert answer.status_code == 200, answer.text


async def test_a_workflow_that_is_killed_at_every_step_ends_once_with_each_effect_once(
    own_services: Services, talk: Talker, workers: Workers
) -> None:
    talk.script(Reply(texts=["All", " done"]))
    execution_id = await start(talk.client, await _create(talk), input={"n": 21})
    is_flushed = False
    async with asyncio.timeout(90):
        while True:
            workers.replace_killed()
            record = await read(talk.client, execution_id)
            if record["status"] in {"completed", "failed", "cancelled"}:
                break
            await _approve(talk, record)
            if len(workers.kills) > len(KILLS) // 2 and not is_flushed:
                is_flushed = True
                await own_services.redis.flushall()
            await asyncio.sleep(0.1)
    assert (record["error"], record["status"]) == (None, "completed")
    assert record["output"]["row"]["values"] == {"text": "last All done"}
    expected = dict.fromkeys(statuses(record), "completed") | {"never": "skipped"}
    assert statuses(record) == expected
    assert {node["attempt"] for node in record["nodes"]} == {0, 1}
    assert workers.kills == KILLS
    [counts] = await fetch_rows(own_services, _COUNTS, talk.client.tenant_id)
    assert counts == {"rows": 2, "told": 1, "approvals": 1, "jobs": 1, "runs": 1, "dead": 0}
    rows = await fetch_rows(own_services, _EVENTS, talk.client.tenant_id)
    completed = [name for name, status in expected.items() if status == "completed"]
    assert {row["name"]: row["count"] for row in rows} == {
        "started ": 1,
        "completed ": 1,
        **{f"node_completed {name}": 1 for name in completed},
    }
    report = (await talk.client.get("/api/v1/usage")).json()
    assert report["totals"]["workflow_executions"] == 1
