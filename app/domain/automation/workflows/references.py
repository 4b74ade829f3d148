"""Which nodes a node's config reads, by `nodes.<id>` in its templates and conditions."""

import re
from collections.abc import Iterator
from typing import Any

from app.kit.errors import Problem
from app.templating.expressions import list_expressions, list_sources

from .definitions import Node
from .graph import Graph
from .nodes.protocol import NodeType

_NAME = r"""
    (?<![\w.])nodes
    (?: \s*\.\s*(?P<name>\w+) | \s*\[\s*(?P<quote>['"])(?P<key>\w+)(?P=quote)\s*\] )?
"""
# A text within an expression, also one without an end; possessive, so that it takes linear time.
_LITERAL = r""" "(?:[^"\\]|\\.)*+(?:"|\\?\Z) | '(?:[^'\\]|\\.)*+(?:'|\\?\Z) """
_READ = re.compile(_NAME, re.VERBOSE)
_READ_OR_LITERAL = re.compile(f"{_NAME} | (?P<literal>{_LITERAL})", re.VERBOSE | re.DOTALL)


def list_reads(graph: Graph, node: Node, node_type: NodeType[Any] | None) -> list[str]:
    """Returns the nodes before it whose outputs it may read; all of them where the name of one is
    computed. A version may be older than the node types of this instance: then there is no type.
    """
    before = graph.list_before(node.id)
    conditions = node_type.conditions if node_type is not None else frozenset[str]()
    texts = _list_texts(node, conditions)
    names = {_find_name(match) for text in texts for match in _READ.finditer(text)}
    return sorted(before if None in names else before & names)


def find_problems(graph: Graph, node: Node, node_type: NodeType[Any]) -> Iterator[Problem]:
    """Yields names of nodes that are not before this one, so that their outputs are not there."""
    before = graph.list_before(node.id)
    names = {
        _find_name(match)
        for text in _list_texts(node, node_type.conditions)
        for match in _READ_OR_LITERAL.finditer(text)
        if match["literal"] is None
    }
    for name in sorted({name for name in names if name is not None} - before):
        reason = "does not come before this node" if name in graph.nodes else "does not exist"
        yield "config", f"reads nodes.{name}, which {reason}"


def _find_name(match: re.Match[str]) -> str | None:
    """Returns None for a name that is not written out."""
    return match["name"] or match["key"]


def _list_texts(node: Node, conditions: frozenset[str]) -> Iterator[str]:
    """Yields conditions, and the expressions within templates."""
    for key, value in node.config.items():
        if key in conditions:
            if isinstance(value, str):
                yield value
            continue
        for source in list_sources(value, key):
            # Most templates read no node, and large ones take long to take apart.
            if "nodes" in source.text:
                yield from list_expressions(source.text)
