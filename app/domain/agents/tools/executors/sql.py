"""Decides which SQL a tool may send. The text of the input is never sent: it is parsed, validated,
and rendered again from the syntax tree.

So comments are removed, also those that hide a second statement or that a server reads as code.
A statement that the parser does not understand completely is rejected.
"""

import logging
import re
import secrets
from functools import cache
from typing import Any, Final

import msgspec
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from app.domain.agents.tools.errors import StatementRejected

# The library logs the text that it cannot parse, which can have secrets.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

DIALECTS: Final = {"postgresql": "postgres", "mysql": "mysql", "sqlite": "sqlite"}
_MAX_CHARS = 20_000
_MAX_NODES = 5_000
# An ordinary statement takes one or two steps per word. Some nested ones double them per level.
_MAX_STEPS = 60_000

_OPERATIONS: Final[tuple[tuple[type[exp.Expression], str], ...]] = (
    (exp.Insert, "insert"),
    (exp.Update, "update"),
    (exp.Delete, "delete"),
    (exp.Merge, "merge"),
    (exp.Create, "create"),
    (exp.Alter, "alter"),
    (exp.Drop, "drop"),
    (exp.TruncateTable, "truncate"),
)
_READ_NODES: Final = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
# Nodes that do more than read or write data.
_FORBIDDEN_NODES: Final = tuple(
    node_type
    for name in (
        "Command",
        "Copy",
        "Set",
        "Use",
        "Pragma",
        "Attach",
        "Detach",
        "Into",
        "Kill",
        "LoadData",
        "Transaction",
        "Commit",
        "Rollback",
        "Analyze",
        "Grant",
        "Revoke",
        "Execute",
        "ExecuteSql",
        "Cache",
        "Uncache",
        "Refresh",
        "Comment",
        "Export",
        "Directory",
        "Declare",
        "Describe",
        "Show",
        "SessionParameter",
        "Hint",
    )
    if (node_type := getattr(exp, name, None)) is not None
)
# Functions with access to files, other servers, settings or other sessions, and those that run SQL
# from a text. The administration functions of Postgres have a common prefix.
_FORBIDDEN_FUNCTIONS: Final = re.compile(
    r"(pg_(?!typeof$|size_pretty$|column_size$|table_size$|relation_size$|total_relation_size$)"
    r"|lo_|lo$|loread$|lowrite$|dblink|set_config$|current_setting$|setval$|nextval$"
    r"|query_to_xml|table_to_xml|schema_to_xml|database_to_xml|cursor_to_xml"
    r"|ts_stat$|ts_rewrite$|txid_|binary_upgrade_|inet_server_|inet_client_|crosstab|connectby"
    r"|xpath_table|file_fdw|postgres_fdw|plpy|plperl|brin_|gin_clean|has_.*_privilege$"
    r"|load_file$|sleep$|benchmark$|get_lock$|release_(all_)?locks?$|master_pos_wait$|source_pos_wait$"
    r"|wait_for_executed_gtid_set|sys_eval$|sys_exec$|updatexml$|extractvalue$"
    r"|load_extension$|readfile$|writefile$|edit$|fsdir$|fts3_tokenizer$|sqlite_|pragma_"
    r"|randomblob$|zeroblob$|generate_series_unbounded$)"
)
# Postgres also calls a function for `(value).name` and `row.name`.
_FORBIDDEN_ATTRIBUTES: Final = re.compile(
    r"(pg_|lo_|dblink|nextval$|current_setting$|txid_|ts_stat$|crosstab|binary_upgrade_|brin_"
    r"|gin_clean|postgres_fdw|plpy|plperl)"
)
_FORBIDDEN_TABLES: Final = re.compile(
    r"(pg_shadow|pg_authid|_?pg_user_mappings?|user_mapping_options|pg_hba_file_rules"
    r"|pg_ident_file_mappings|pg_file_settings|pg_config|pg_largeobject|pg_subscription|pg_settings"
    r"|pragma_.*|sqlite_dbpage|sqlite_stmt|dbstat|bytecode|tables_used)$"
)
# Objects that hold data. A function or a trigger holds code, which would run without validation.
_CREATABLE: Final = {"TABLE", "VIEW", "INDEX", "SEQUENCE", "SCHEMA", "TYPE", "DATABASE"}


class Statement(msgspec.Struct, frozen=True):
    """A validated statement, with the operations that it does."""

    sql: str
    operations: frozenset[str]

    @property
    def is_read_only(self) -> bool:
        return self.operations == {"select"}


def validate_statement(query: str, db_type: str, allowed: list[str]) -> Statement:
    """Raises StatementRejected for everything but one statement of the `allowed` operations."""
    tree = _parse(query, DIALECTS[db_type])
    operations = {_statement_operation(tree)}
    for count, node in enumerate(tree.walk()):
        if count > _MAX_NODES:
            raise StatementRejected("the statement is too long")
        _check_node(node, db_type)
        operations |= _node_operations(node)
    denied = sorted(operations - set(allowed))
    if denied:
        raise StatementRejected(f"{denied[0]} is not among the allowed operations")
    return Statement(_render(tree, db_type), frozenset(operations))


def _parse(query: str, dialect: str) -> Any:
    if len(query) > _MAX_CHARS:
        raise StatementRejected(f"the statement has more than {_MAX_CHARS} characters")
    if "\0" in query:
        raise StatementRejected("the statement has a NUL character in it")
    try:
        statements = _parse_statements(query, Dialect.get_or_raise(dialect))
    except StatementRejected:
        raise
    except Exception as error:
        raise StatementRejected("the statement cannot be parsed") from error
    if len(statements) != 1:
        raise StatementRejected("give exactly one statement")
    return statements[0]


def _parse_statements(query: str, dialect: Dialect) -> list[Any]:
    tokens = dialect.tokenize(query)
    comments = [comment for token in tokens for comment in token.comments]
    if any(comment.startswith(_CODE_COMMENTS) for comment in comments):
        raise StatementRejected("a comment that a server reads as code is never sent")
    if any(";" in comment for comment in comments):
        raise StatementRejected("a comment hides the end of a statement")
    parser = _limit_steps(dialect.parser_class)(dialect=dialect)
    trees = parser.parse(tokens, query)
    return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]


# MySQL's and MariaDB's `/*! ... */` and `/*M! ... */`.
_CODE_COMMENTS: Final = ("!", "M!")


@cache
def _limit_steps(parser: Any) -> Any:
    """Returns a subclass of the parser that stops when backtracking takes too many steps."""

    class LimitedParser(parser):  # type: ignore[misc]
        steps = 0

        def _advance(self, times: int = 1) -> None:
            self.steps += 1
            if self.steps > _MAX_STEPS:
                raise StatementRejected("the statement is nested too deeply")
            super()._advance(times)

    return LimitedParser


def _statement_operation(tree: Any) -> str:
    for node_type, operation in _OPERATIONS:
        if isinstance(tree, node_type):
            return operation
    if isinstance(tree, _READ_NODES):
        return "select"
    raise StatementRejected("this kind of statement is never run")


def _node_operations(node: Any) -> set[str]:
    """Returns the operations of a part of a statement, also those that its type does not name."""
    operations = {name for node_type, name in _OPERATIONS if isinstance(node, node_type)}
    match node:
        case exp.Lock():
            operations.add("update")
        case exp.OnConflict() if node.expressions:
            operations.add("update")
        case exp.Insert() if str(node.args.get("alternative") or "").upper() == "REPLACE":
            operations.add("update")
        case exp.When() if node.args["then"].name.upper() == "DELETE":
            operations.add("delete")
    return operations


def _check_node(node: Any, db_type: str) -> None:
    if isinstance(node, _FORBIDDEN_NODES):
        raise StatementRejected(f"{type(node).__name__.upper()} is never run")
    if isinstance(node, exp.Create) and node.kind not in _CREATABLE:
        raise StatementRejected(f"CREATE {str(node.kind)[:60]} is never run")
    if isinstance(node, exp.Func | exp.Anonymous):
        for name in _function_names(node):
            if _FORBIDDEN_FUNCTIONS.match(name):
                raise StatementRejected(f"the function {name[:60]} is never run")
    if db_type == "postgresql" and _FORBIDDEN_ATTRIBUTES.match(_attribute_name(node)):
        raise StatementRejected(f"{_attribute_name(node)[:60]} is never run")
    if isinstance(node, exp.Table):
        is_system_table = db_type == "mysql" and node.db.lower() == "mysql"
        if is_system_table or _FORBIDDEN_TABLES.match(node.name.lower()):
            raise StatementRejected(f"{node.name[:60]} is never read")


def _attribute_name(node: Any) -> str:
    match node:
        case exp.Dot():
            return str(node.expression.name).lower()
        case exp.Column() if node.table:
            return str(node.name).lower()
    return ""


def _function_names(node: Any) -> list[str]:
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return [str(node.name).lower()]
    return [str(name).lower() for name in type(node).sql_names()]


def _render(tree: Any, db_type: str) -> str:
    """Returns the statement without comments, and with the placeholders of the driver."""
    dialect = DIALECTS[db_type]
    try:
        if db_type != "mysql":
            text: str = tree.sql(dialect=dialect, comments=False, normalize_functions=False)
            return text
        # This driver replaces `%s` itself, so every other % must be doubled.
        mark = f"placeholder_{secrets.token_hex(16)}"
        marked = tree.transform(
            lambda node: exp.Var(this=mark) if isinstance(node, exp.Placeholder) else node
        )
        text = marked.sql(dialect=dialect, comments=False, normalize_functions=False)
    except Exception as error:
        raise StatementRejected("the statement cannot be rendered") from error
    return text.replace("%", "%%").replace(mark, "%s")
