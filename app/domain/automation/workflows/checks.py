"""Checks the definition of a workflow when it is saved: what is plainly wrong never runs."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from app.jobs.threads import TenantThreads
from app.kit import validation
from app.kit.errors import ApiError, Forbidden, Invalid, Problem
from app.kit.texts import is_deeper
from app.kit.unknown_fields import describe_unknown
from app.security.principal import Principal
from app.services import Services
from app.templating.expressions import Budget, Expressions, Source, has_templates, list_sources
from db.session import Tx

from . import graph as graphs
from . import references, resources
from .definitions import Definition, Node
from .graph import Graph
from .nodes.protocol import NodeType
from .nodes.registry import NODE_TYPES
from .rendering import NAMES

_MAX_CONFIG_BYTES = 64 * 1024
_MAX_DEFINITION_BYTES = 512 * 1024
_MAX_CONFIG_DEPTH = 32
# Each takes some milliseconds to check.
_MAX_SOURCES = 500


def check_definition(principal: Principal, definition: Definition) -> None:
    """Raises Invalid with all problems of the definition but those of its expressions, or Forbidden
    for a node that does what its author may not do.
    """
    Invalid.check(_find_static_problems(definition))
    check_permissions(principal, definition)


def check_permissions(principal: Principal, definition: Definition) -> None:
    """Raises Forbidden for a node that does what the principal may not do."""
    for node in definition.nodes:
        node_type = NODE_TYPES.get(node.type)
        if node_type is not None and node_type.permission is not None:
            principal.require(node_type.permission)


async def check_expressions(
    services: Services, tenant_id: str, nodes: Sequence[Node], budget: Budget | None = None
) -> None:
    """Raises Invalid for templates and conditions that cannot be evaluated. Skips nodes that
    `check_definition` refuses. Other processes check them: call it before a transaction.
    """
    if _is_too_large(nodes):
        return
    sources = _list_sources(nodes)
    if len(sources) > _MAX_SOURCES:
        message = f"have more than {_MAX_SOURCES} templates and conditions together"
        raise Invalid.field("nodes", message)
    if sources:
        expressions = services.get(Expressions)
        problems = await expressions.check(sources, NAMES, group=tenant_id, budget=budget)
        Invalid.check(problems)


class CheckedExpressions:
    """Results of `check_expressions` for nodes that one transaction saves later. One budget of time
    is for all of them.
    """

    def __init__(self) -> None:
        self._errors: dict[bytes, Invalid | None] = {}
        self._budget = Budget()

    async def check(self, services: Services, tenant_id: str, nodes: Sequence[Node]) -> None:
        self._errors[msgspec.json.encode(nodes)] = None
        try:
            await check_expressions(services, tenant_id, nodes, self._budget)
        except Invalid as error:
            self._errors[msgspec.json.encode(nodes)] = error

    def require(self, nodes: Sequence[Node]) -> None:
        """Raises Invalid as the check did."""
        error = self._errors[msgspec.json.encode(nodes)]
        if error is not None:
            raise error


class CheckedDefinitions:
    """Results of `check_definition` for definitions that one transaction saves later: a thread
    checks them before, because many templates take long to read.
    """

    def __init__(self) -> None:
        self._errors: dict[bytes, ApiError | None] = {}

    async def check(self, services: Services, principal: Principal, definition: Definition) -> None:
        error = None
        try:
            threads = services.get(TenantThreads)
            await threads.run(principal.home, check_definition, principal, definition)
        except (Invalid, Forbidden) as found:
            error = found
        self._errors[msgspec.json.encode(definition)] = error

    def require(self, principal: Principal, definition: Definition) -> None:
        """Raises what the check raised. A definition that differs from the expected one, because
        another request changed a part of it meanwhile, is checked now.
        """
        key = msgspec.json.encode(definition)
        if key not in self._errors:
            check_definition(principal, definition)
        elif (error := self._errors[key]) is not None:
            raise error


async def check_references(tx: Tx, tenant_id: str, nodes: Sequence[Node]) -> None:
    """Raises Invalid when a node refers to something that the tenant does not have."""
    Invalid.check(await resources.find_problems(tx, tenant_id, nodes))


def _find_static_problems(definition: Definition) -> Iterator[Problem]:
    if _is_too_large(definition):
        yield "nodes", f"and edges must be at most {_MAX_DEFINITION_BYTES // 1024} KiB together"
        return
    is_graph = True
    for problem in graphs.find_problems(definition.nodes, definition.edges):
        is_graph = False
        yield problem
    is_known = True
    for index, node in enumerate(definition.nodes):
        for field, message in _find_node_problems(node):
            is_known = is_known and field != "type"
            yield _join(f"nodes.{index}", field), message
    if is_known and is_graph:
        yield from _find_graph_problems(Graph(definition), definition)


def _is_too_large(value: Definition | Sequence[Node]) -> bool:
    return len(msgspec.json.encode(value)) > _MAX_DEFINITION_BYTES


def _find_node_problems(node: Node) -> Iterator[Problem]:
    node_type = NODE_TYPES.get(node.type)
    if node_type is None:
        yield "type", f"must be one of {', '.join(NODE_TYPES)}"
        return
    if node.timeout_seconds is not None and not node_type.has_timeout:
        yield "timeout_seconds", _describe_types("has_timeout")
    if node.retry is not None and not node_type.has_retry:
        yield "retry", _describe_types("has_retry")
    if is_deeper(node.config, _MAX_CONFIG_DEPTH):
        yield "config", f"is nested deeper than {_MAX_CONFIG_DEPTH} levels"
    elif len(msgspec.json.encode(node.config)) > _MAX_CONFIG_BYTES:
        yield "config", f"must be at most {_MAX_CONFIG_BYTES // 1024} KiB"
    else:
        has_problem = False
        for field, message in _find_field_problems(node_type, node.config):
            has_problem = True
            yield _join("config", field), message
        if not has_problem:
            for field, message in node_type.find_problems(node.config):
                yield _join("config", field), message


def _describe_types(attribute: str) -> str:
    names = (name for name, node_type in NODE_TYPES.items() if getattr(node_type, attribute))
    return f"is only for nodes of the types {', '.join(sorted(names))}"


def _find_field_problems(node_type: NodeType[Any], config: dict[str, Any]) -> Iterator[Problem]:
    """Checks each field by its type, except for templates, whose values are not known yet."""
    fields = {field.name: field for field in msgspec.structs.fields(node_type.config)}
    for key in config:
        if key not in fields:
            yield describe_unknown(key, fields, "")
    for name, field in fields.items():
        if name not in config:
            if field.required:
                yield name, "is required"
        elif has_templates(config[name]) and name in node_type.literal:
            yield name, "must not be a template"
        elif has_templates(config[name]) and name not in node_type.conditions:
            continue
        else:
            yield from _find_value_problems(field, config[name])


def _find_value_problems(field: msgspec.structs.FieldInfo, value: Any) -> Iterator[Problem]:
    try:
        validation.convert_field(_build_struct(field.name, field.type), {field.name: value}, "")
    except Invalid as error:
        yield from (error.details or {}).items()


@lru_cache(maxsize=256)
def _build_struct(name: str, field_type: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct("Field", [(name, field_type)])


def _find_graph_problems(graph: Graph, definition: Definition) -> Iterator[Problem]:
    for index, node in enumerate(definition.nodes):
        for field, message in references.find_problems(graph, node, NODE_TYPES[node.type]):
            yield f"nodes.{index}.{field}", message
    for index, edge in enumerate(definition.edges):
        source = graph.nodes[edge.source]
        if edge.when is not None and not NODE_TYPES[source.type].has_branches:
            names = (name for name, node_type in NODE_TYPES.items() if node_type.has_branches)
            message = f"is only for edges from nodes with branches: {' and '.join(names)}"
            yield f"edges.{index}.when", message


def _list_sources(nodes: Sequence[Node]) -> list[Source]:
    """Returns all templates and conditions of nodes without problems."""
    sources = []
    for index, node in enumerate(nodes):
        if any(_find_node_problems(node)):
            continue
        path, node_type = f"nodes.{index}.config", NODE_TYPES[node.type]
        for key, value in node.config.items():
            if key in node_type.conditions:
                sources.append(Source("condition", value, f"{path}.{key}"))
            elif key not in node_type.literal:
                sources += list_sources(value, f"{path}.{key}")
    return sources


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if field else path
