"""Which nodes a node's config reads, by `nodes.<id>` in its templates and expressions."""

import re
from collections.abc import Iterator
from typing import Any

from app.domain.workflows.definitions import Node
from app.domain.workflows.graph import Graph
from app.domain.workflows.nodes.protocol import is_templated
from app.kit.errors import Problem

_NAME = re.compile(
    r"(?<![\w.])nodes(?:\s*\.\s*(?P<name>\w+)|\s*\[\s*(?P<quote>['\"])(?P<key>\w+)(?P=quote)\s*\])?"
)


def list_reads(graph: Graph, node: Node) -> list[str]:
    """Returns the nodes before it whose outputs it reads; all of them where the name of one is
    computed.
    """
    before = graph.list_before(node.id)
    names = set(_find_names(node))
    return sorted(before if None in names else before & names)


def find_problems(graph: Graph, node: Node) -> Iterator[Problem]:
    """Yields names of nodes that are not before this one, so that their outputs are not there."""
    before = graph.list_before(node.id)
    for name in sorted({name for name in _find_names(node) if name is not None} - before):
        reason = "does not come before this node" if name in graph.nodes else "does not exist"
        yield "config", f"reads nodes.{name}, which {reason}"


def _find_names(node: Node) -> Iterator[str | None]:
    """None stands for a name that is not written out."""
    for text in _list_texts(node.config):
        if node.type == "condition" or is_templated(text):
            for match in _NAME.finditer(text):
                yield match["name"] or match["key"]


def _list_texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _list_texts(item)
        case dict():
            for item in value.values():
                yield from _list_texts(item)
