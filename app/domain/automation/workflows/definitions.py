"""The definition of a workflow: its nodes and edges, as authors write and versions store them."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from app.kit import validation
from app.kit.validation import ONE_LINE
from app.security.principal import Principal

MAX_NODES: Final = 100
MAX_EDGES: Final = 500
_MAX_DELAY_SECONDS = 86400.0
_MAX_TIMEOUT_SECONDS = 30 * 86400

# A name in both template languages, so that `nodes.<id>.output` works.
_NODE_ID = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
validation.describe_pattern(
    _NODE_ID, "must be up to 64 letters, digits and underscores, and not start with a digit"
)

NodeId = Annotated[str, Meta(pattern=_NODE_ID, examples=["ask_agent"])]


class Retry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How often a node is tried in all, and how long it waits before the next attempt: the delay,
    multiplied by `backoff` after each attempt, and at most a day.
    """

    max_attempts: Annotated[int, Meta(ge=1, le=10)] = 3
    delay_seconds: Annotated[float, Meta(ge=0, le=3600)] = 1.0
    backoff: Annotated[float, Meta(ge=1, le=10)] = 2.0

    def find_delay(self, attempt: int) -> float:
        """Returns the seconds between this attempt and the next one."""
        return min(self.delay_seconds * self.backoff ** (attempt - 1), _MAX_DELAY_SECONDS)


class Node(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: NodeId
    type: Annotated[str, Meta(max_length=64)]
    config: dict[str, Any] = {}
    name: Annotated[str, Meta(max_length=100, pattern=ONE_LINE)] | None = None
    retry: Retry | None = None
    timeout_seconds: Annotated[float, Meta(ge=0.1, le=_MAX_TIMEOUT_SECONDS)] | None = None

    @property
    def max_attempts(self) -> int:
        return self.retry.max_attempts if self.retry else 1


class Edge(msgspec.Struct, omit_defaults=True, rename={"source": "from", "target": "to"}):
    """`when` is for nodes with two branches; without it the edge is taken in either case."""

    source: NodeId
    target: NodeId
    when: bool | None = None


Nodes = Annotated[list[Node], Meta(min_length=1, max_length=MAX_NODES)]
Edges = Annotated[list[Edge], Meta(max_length=MAX_EDGES)]


class Definition(msgspec.Struct):
    nodes: Nodes
    edges: Edges = []


_WRITE_PERMISSION = "workflows:write"


def select_nodes(principal: Principal, nodes: list[Node]) -> list[Node]:
    """Returns the nodes, without their configs for callers who may not change them: configs have
    prompts, and some have secrets that belong into the vault.
    """
    if principal.may(_WRITE_PERMISSION):
        return nodes
    return [msgspec.structs.replace(node, config={}) for node in nodes]
