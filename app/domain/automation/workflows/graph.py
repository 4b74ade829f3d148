"""The graph of a workflow, and which nodes come next. Pure: the engine stores what it decides."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from app.kit.errors import Problem

from .definitions import Definition, Edge, Node

# States of a node within `progress`. A queued node has work in the ledger, and a delayed one has
# work that is due later; the API shows both as pending until that work runs.
UNFINISHED: Final = frozenset({"pending", "queued", "delayed", "running", "waiting"})
# Statuses of an execution.
ENDED: Final = frozenset({"completed", "failed", "cancelled"})
DUE: Final = ("queued", "delayed")
_RESOLVED: Final = frozenset({"completed", "skipped"})


class NodeState(NamedTuple):
    """`branch` is the branch that a completed node with two branches has taken. `attempt` counts
    the attempts that were begun, `earlier` those of them before the execution was last retried.
    `timer` is the work that ends its wait.
    """

    status: str
    branch: bool | None = None
    attempt: int = 0
    earlier: int = 0
    timer: str | None = None

    def to(
        self, status: str, *, branch: bool | None = None, timer: str | None = None
    ) -> "NodeState":
        return NodeState(status, branch, self.attempt, self.earlier, timer)


Progress = Mapping[str, NodeState]


class Advance(NamedTuple):
    """The nodes that can run now, and those that never will."""

    ready: list[str]
    skipped: list[str]


class Graph:
    """A definition without problems."""

    def __init__(self, definition: Definition) -> None:
        self.nodes = {node.id: node for node in definition.nodes}
        self.incoming: dict[str, list[Edge]] = {node_id: [] for node_id in self.nodes}
        self.outgoing: dict[str, list[Edge]] = {node_id: [] for node_id in self.nodes}
        for edge in definition.edges:
            self.incoming[edge.target].append(edge)
            self.outgoing[edge.source].append(edge)
        self.order = _sort(self.nodes, self.incoming, self.outgoing)

    def start(self) -> dict[str, NodeState]:
        return dict.fromkeys(self.nodes, NodeState("pending"))

    def advance(self, progress: Progress) -> Advance:
        """A node is ready once all nodes before it are finished and at least one edge to it was
        taken. It is skipped when none was.
        """
        ready, skipped = [], list[str]()
        states = dict(progress)
        for node_id in self.order:
            if states[node_id].status != "pending":
                continue
            edges = self.incoming[node_id]
            if any(states[edge.source].status not in _RESOLVED for edge in edges):
                continue
            if edges and not any(is_taken(edge, states) for edge in edges):
                states[node_id] = NodeState("skipped")
                skipped.append(node_id)
            else:
                ready.append(node_id)
        return Advance(ready, skipped)

    def list_last(self, progress: Progress) -> list[str]:
        """Returns the completed nodes with no completed node on any path after them; their outputs
        are the output of the execution.
        """
        last, followed = set[str](), set[str]()
        for node_id in reversed(self.order):
            targets = [edge.target for edge in self.outgoing[node_id]]
            if any(progress[end].status == "completed" or end in followed for end in targets):
                followed.add(node_id)
            elif progress[node_id].status == "completed":
                last.add(node_id)
        return [node_id for node_id in self.nodes if node_id in last]

    def list_before(self, node_id: str) -> set[str]:
        """Returns all nodes from which a path leads to this one."""
        before, open_ids = set[str](), [node_id]
        while open_ids:
            for edge in self.incoming[open_ids.pop()]:
                if edge.source not in before:
                    before.add(edge.source)
                    open_ids.append(edge.source)
        return before


def is_taken(edge: Edge, progress: Progress) -> bool:
    state = progress[edge.source]
    return state.status == "completed" and edge.when in {None, state.branch}


def find_problems(nodes: list[Node], edges: list[Edge]) -> Iterator[Problem]:
    """Yields what keeps nodes and edges from being a graph without cycles."""
    ids = {node.id for node in nodes}
    seen = set[str]()
    for index, node in enumerate(nodes):
        if node.id in seen:
            yield f"nodes.{index}.id", f"another node has the id {node.id}; ids must be unique"
        seen.add(node.id)
    known = set[tuple[str, str, bool | None]]()
    has_dangling = False
    for index, edge in enumerate(edges):
        for name, end in (("from", edge.source), ("to", edge.target)):
            if end not in ids:
                has_dangling = True
                yield f"edges.{index}.{name}", f"there is no node {end}"
        if (edge.source, edge.target, edge.when) in known:
            yield f"edges.{index}", "repeats an earlier edge; remove it"
        known.add((edge.source, edge.target, edge.when))
    if not has_dangling:
        cycle = _find_cycle(ids, edges)
        if cycle:
            yield "edges", f"form a cycle: {' -> '.join(cycle)}"


def _sort(
    nodes: Mapping[str, Node],
    incoming: Mapping[str, list[Edge]],
    outgoing: Mapping[str, list[Edge]],
) -> list[str]:
    """Returns the nodes so that each one comes after those before it."""
    open_edges = {node_id: len(incoming[node_id]) for node_id in nodes}
    order = [node_id for node_id, count in open_edges.items() if not count]
    for node_id in order:
        for edge in outgoing[node_id]:
            open_edges[edge.target] -= 1
            if not open_edges[edge.target]:
                order.append(edge.target)
    return order


def _find_cycle(ids: set[str], edges: list[Edge]) -> list[str]:
    """Returns the nodes of a cycle, the first one also at the end; empty when there is none."""
    targets: dict[str, list[str]] = {node_id: [] for node_id in ids}
    for edge in edges:
        targets[edge.source].append(edge.target)
    finished, path = set[str](), list[str]()
    for start in sorted(ids):
        stack = [(start, iter(targets[start]))] if start not in finished else []
        path = [start]
        while stack:
            node_id, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                finished.add(node_id)
                stack.pop()
                path.pop()
            elif target in path:
                return [*path[path.index(target) :], target]
            elif target not in finished:
                stack.append((target, iter(targets[target])))
                path.append(target)
    return []
