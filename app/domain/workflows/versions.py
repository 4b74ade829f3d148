"""Loads the graphs of versions. A version never changes, so that each process keeps some."""

from collections import OrderedDict

import msgspec

from app.domain.workflows import execution_queries as queries
from app.domain.workflows.definitions import Definition
from app.domain.workflows.errors import WorkflowVersionNotFound
from app.domain.workflows.graph import Graph
from db.session import Tx

_MAX_GRAPHS = 200


class Graphs:
    """The graphs that were used last."""

    def __init__(self) -> None:
        self._graphs: OrderedDict[tuple[str, int], Graph] = OrderedDict()

    async def load(self, tx: Tx, tenant_id: str, workflow_id: str, version: int) -> Graph:
        graph = self._graphs.get((workflow_id, version))
        if graph is None:
            text = await queries.load_definition(tx, tenant_id, workflow_id, version)
            if text is None:
                raise WorkflowVersionNotFound(f"The workflow has no version {version}")
            graph = Graph(msgspec.json.decode(text, type=Definition))
            self._graphs[workflow_id, version] = graph
            if len(self._graphs) > _MAX_GRAPHS:
                self._graphs.popitem(last=False)
        else:
            self._graphs.move_to_end((workflow_id, version))
        return graph
