"""What nodes refer to in other areas: looked up by one statement per kind, however many nodes."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from app.domain.agents.definition import api as agents
from app.domain.agents.tools import api as tools
from app.domain.automation.approvals import api as approvals
from app.domain.data.tables import api as tables
from app.domain.identity.accounts import api as accounts
from app.domain.messaging.notifications import api as notifications
from app.kit.errors import Problem
from db.session import Tx

from . import queries
from .definitions import Node
from .nodes.protocol import Kind, Reference
from .nodes.registry import NODE_TYPES

# Returns what is wrong with some of the ids.
_Find = Callable[[Tx, str, list[str]], Awaitable[dict[str, str]]]


async def find_problems(tx: Tx, tenant_id: str, nodes: Sequence[Node]) -> Iterator[Problem]:
    """Returns the fields that refer to something that the tenant does not have or cannot use."""
    references = list(_list_references(nodes))
    ids: dict[Kind, list[str]] = {}
    for _, reference in references:
        ids.setdefault(reference.kind, []).append(reference.id)
    table_ids = list(dict.fromkeys(ids.pop("table", [])))
    columns = await tables.list_column_names(tx, tenant_id, table_ids) if table_ids else {}
    problems = {
        kind: await _FINDERS[kind](tx, tenant_id, list(dict.fromkeys(values)))
        for kind, values in ids.items()
    }
    problems["table"] = {
        table_id: "this data table does not exist"
        for table_id in table_ids
        if table_id not in columns
    }
    unusable = (
        (f"nodes.{index}.config.{reference.field}", problems[reference.kind][reference.id])
        for index, reference in references
        if reference.id in problems[reference.kind]
    )
    return chain(unusable, _find_column_problems(nodes, columns))


def _find_column_problems(
    nodes: Sequence[Node], columns: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Yields the names of columns that the tables do not have. `columns` has the names of the
    columns of each table.
    """
    for index, node in enumerate(nodes):
        node_type = NODE_TYPES.get(node.type)
        # A version may be older than the node types of this instance.
        for column in node_type.list_columns(node.config) if node_type is not None else ():
            known = columns.get(column.table_id)
            if known is not None and column.name not in known:
                names = ", ".join(known)
                message = f"the table has no column {column.name[:64]!r}; its columns are {names}"
                yield f"nodes.{index}.config.{column.field}", message


def _list_references(nodes: Sequence[Node]) -> Iterator[tuple[int, Reference]]:
    for index, node in enumerate(nodes):
        # A version may be older than the node types of this instance.
        if node.type in NODE_TYPES:
            for reference in NODE_TYPES[node.type].list_references(node.config):
                yield index, reference


def _find_by(
    noun: str, find_existing_ids: Callable[[Tx, str, list[str]], Awaitable[set[str]]]
) -> _Find:
    async def find(tx: Tx, tenant_id: str, ids: list[str]) -> dict[str, str]:
        existing_ids = await find_existing_ids(tx, tenant_id, ids)
        return {key: f"this {noun} does not exist" for key in ids if key not in existing_ids}

    return find


async def _find_users(tx: Tx, tenant_id: str, ids: list[str]) -> dict[str, str]:
    unknown_ids = await accounts.find_unknown_ids(tx, tenant_id, ids)
    return {user_id: f"there is no user {user_id}" for user_id in unknown_ids}


_FINDERS: Final[dict[Kind, _Find]] = {
    "agent": _find_by("agent", agents.find_existing_ids),
    "tool": _find_by("tool", tools.find_existing_ids),
    "channel": _find_by("channel", notifications.find_existing_channel_ids),
    "workflow": _find_by("workflow", queries.find_existing_ids),
    "user": _find_users,
    "decider": approvals.find_user_problems,
    "deciding_role": approvals.find_role_problems,
}
