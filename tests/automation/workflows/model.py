"""A plain model of an execution, in memory: what a user expects, without the engine's code."""

from dataclasses import dataclass, field
from typing import Any

ENDED = {"completed", "failed", "cancelled"}
# A delayed node waits for its next attempt.
DUE = {"queued", "delayed"}


@dataclass
class ModelNode:
    """`kind` is value, insert, yes, no, delay, approval or broken. A broken node fails in its first
    `failures` attempts and then inserts a row; `attempts` is how often it is tried in a round.
    """

    name: str
    kind: str
    failures: int = 0
    attempts: int = 1
    status: str = "pending"
    attempt: int = 0
    tries: int = 0
    branch: bool | None = None


@dataclass
class Model:
    nodes: dict[str, ModelNode]
    edges: list[tuple[str, str, bool | None]]
    status: str = "running"
    rows: list[str] = field(default_factory=list)
    completions: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settle()

    def before(self, name: str) -> list[tuple[ModelNode, bool | None]]:
        return [(self.nodes[a], when) for a, b, when in self.edges if b == name]

    def list_queued(self) -> list[str]:
        return [node.name for node in self.nodes.values() if node.status in DUE]

    def list_waiting(self, kind: str) -> list[str]:
        nodes = self.nodes.values()
        return [node.name for node in nodes if node.status == "waiting" and node.kind == kind]

    def run(self, name: str) -> None:
        """One attempt of a queued node."""
        node = self.nodes[name]
        node.attempt += 1
        node.tries += 1
        if node.kind in {"delay", "approval"}:
            node.status = "waiting"
            self.settle()
        elif node.kind == "broken" and node.attempt <= node.failures:
            self._fail(node)
        else:
            self.complete(name, branch={"yes": True, "no": False}.get(node.kind))

    def _fail(self, node: ModelNode) -> None:
        if node.tries < node.attempts:
            node.status = "delayed"
            self.settle()
            return
        node.status = "failed"
        self._end("failed")

    def complete(self, name: str, *, branch: bool | None = None) -> None:
        node = self.nodes[name]
        node.status, node.branch = "completed", branch
        if node.kind in {"insert", "broken"}:
            self.rows.append(name)
        self.completions.append(name)
        self.settle()

    def reject(self, name: str) -> None:
        """Without an edge for a rejection it fails at once, however many attempts are left."""
        if any(a == name and when is False for a, _, when in self.edges):
            self.complete(name, branch=False)
            return
        self.nodes[name].status = "failed"
        self._end("failed")

    def cancel(self) -> None:
        self._end("cancelled")

    def retry(self) -> None:
        for node in self.nodes.values():
            if node.status in {"failed", "cancelled"}:
                node.status, node.tries = "pending", 0
        self.status = "running"
        self.settle()

    def _end(self, status: str) -> None:
        self.status = status
        for node in self.nodes.values():
            if node.status in {"pending", "waiting", *DUE}:
                node.status = "cancelled"

    def settle(self) -> None:
        """Queues or skips nodes until nothing changes."""
        while any(self._decide(node) for node in self.nodes.values()):
            pass
        statuses = {node.status for node in self.nodes.values()}
        if statuses <= {"completed", "skipped"}:
            self.status = "completed"
        else:
            self.status = "running" if "queued" in statuses else "waiting"

    def _decide(self, node: ModelNode) -> bool:
        before = self.before(node.name)
        is_open = any(other.status not in {"completed", "skipped"} for other, _ in before)
        if node.status != "pending" or is_open:
            return False
        taken = [
            other.status == "completed" and (when is None or when == other.branch)
            for other, when in before
        ]
        node.status = "queued" if any(taken) or not before else "skipped"
        return True

    def find_output(self) -> Any:
        """The outputs of completed nodes from which no path leads to another completed one."""
        done = [name for name, node in self.nodes.items() if node.status == "completed"]
        last = [name for name in done if not any(self._leads(name, other) for other in done)]
        outputs = {name: self.output_of(name) for name in last}
        return outputs[last[0]] if len(last) == 1 else outputs

    def _leads(self, source: str, target: str) -> bool:
        return any(b == target or self._leads(b, target) for a, b, _ in self.edges if a == source)

    def output_of(self, name: str) -> Any:
        node = self.nodes[name]
        match node.kind:
            case "yes" | "no":
                return {"result": node.branch}
            case "approval":
                return {"approved": node.branch, "comment": None}
            case "insert" | "broken" | "delay":
                return {}
        return name
