"""Loads the graphs of versions. A version never changes, so that each process keeps some."""

from collections import OrderedDict
from typing import NamedTuple

import msgspec

from app.domain.workflows import execution_queries as queries
from app.domain.workflows.definitions import Definition
from app.domain.workflows.errors import WorkflowVersionNotFound
from app.domain.workflows.graph import Graph
from db.session import Tx

_MAX_GRAPHS = 200
# Of their definitions as JSON; a graph takes a few times as much.
_MAX_BYTES = 16 * 1024 * 1024


class _Entry(NamedTuple):
    graph: Graph
    size: int


class Graphs:
    """The graphs that were used last."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, int], _Entry] = OrderedDict()
        self._size = 0

    async def load(self, tx: Tx, tenant_id: str, workflow_id: str, version: int) -> Graph:
        key = (workflow_id, version)
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            return entry.graph
        text = await queries.load_definition(tx, tenant_id, workflow_id, version)
        if text is None:
            raise WorkflowVersionNotFound(f"The workflow has no version {version}")
        graph = Graph(msgspec.json.decode(text, type=Definition))
        self._add(key, _Entry(graph, len(text)))
        return graph

    def _add(self, key: tuple[str, int], entry: _Entry) -> None:
        earlier = self._entries.pop(key, None)  # another task may have loaded it meanwhile
        self._entries[key] = entry
        self._size += entry.size - (earlier.size if earlier else 0)
        while len(self._entries) > _MAX_GRAPHS or self._size > _MAX_BYTES:
            self._size -= self._entries.popitem(last=False)[1].size
