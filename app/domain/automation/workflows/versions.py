"""Loads the graphs of versions. A version never changes, so that each process keeps some."""

import msgspec

from app.kit.caches import SizedCache
from db.session import Tx

from . import execution_queries as queries
from .definitions import Definition
from .errors import WorkflowVersionNotFound
from .graph import Graph

_MAX_GRAPHS = 200
# Of their definitions as JSON; a graph takes a few times as much.
_MAX_BYTES = 16 * 1024 * 1024


class Graphs:
    """The graphs that were used last."""

    def __init__(self) -> None:
        self._cache: SizedCache[tuple[str, int], Graph] = SizedCache(_MAX_GRAPHS, _MAX_BYTES)

    async def load(self, tx: Tx, tenant_id: str, workflow_id: str, version: int) -> Graph:
        key = (workflow_id, version)
        graph = self._cache.get(key)
        if graph is None:
            text = await queries.load_definition(tx, tenant_id, workflow_id, version)
            if text is None:
                raise WorkflowVersionNotFound(f"The workflow has no version {version}")
            graph = Graph(msgspec.json.decode(text, type=Definition))
            self._cache.add(key, graph, len(text))
        return graph
