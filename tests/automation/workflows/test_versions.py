"""The cache of graphs: how much of it a process keeps."""

from typing import Any

import msgspec
import pytest

from app.domain.automation.workflows import execution_queries, versions
from app.domain.automation.workflows.versions import Graphs
from app.services import Services
from tests.automation.workflows.factories import transform


async def test_graphs_are_kept_up_to_a_number_and_up_to_a_size(
    services: Services, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    loaded: list[int] = []

    async def load(_tx: Any, _tenant_id: str, workflow_id: str, version: int) -> str:
        loaded.append(version)
        text = "x" * (1000 if workflow_id == "wfl_large" else 1)
        return msgspec.json.encode({"nodes": [transform("a", text)]}).decode()

    monkeypatch.setattr(execution_queries, "load_definition", load)
    monkeypatch.setattr(versions, "_MAX_GRAPHS", 3)
    monkeypatch.setattr(versions, "_MAX_BYTES", 2500)
    tx = services.db.begin("ten_1")
    for name, workflow_id, limit in (("number", "wfl_small", 3), ("size", "wfl_large", 2)):
        with subtests.test(name):
            graphs = Graphs()
            for version in range(limit + 1):
                await graphs.load(tx, "ten_1", workflow_id, version)
            loaded.clear()
            for version in (*range(limit, 0, -1), 0, 2):
                await graphs.load(tx, "ten_1", workflow_id, version)
            assert loaded[:1] == [0]
            assert len(loaded) == (1 if limit == 3 else 2)
