"""What of SQL a tool may send. Nobody's text is sent on: it is parsed, judged, and written anew.

So a comment that hides a second statement, or one that only the server reads as code, is gone; and
what the parser did not understand as a whole is refused.
"""

import logging
import re
from typing import Any, Final

import msgspec
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

# It repeats what it cannot parse, and that is nobody's business.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

DIALECTS: Final = {"postgresql": "postgres", "mysql": "mysql", "sqlite": "sqlite"}
_CHARS = 20_000
_MOST_NODES = 5_000

_KINDS: Final[tuple[tuple[type[exp.Expression], str], ...]] = (
    (exp.Insert, "insert"),
    (exp.Update, "update"),
    (exp.Delete, "delete"),
    (exp.Merge, "merge"),
    (exp.Create, "create"),
    (exp.Alter, "alter"),
    (exp.Drop, "drop"),
    (exp.TruncateTable, "truncate"),
)
_READS: Final = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
# Whatever else a statement can be or hold that is more than data.
_NEVER: Final = tuple(
    found
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
    )
    if (found := getattr(exp, name, None)) is not None
)
# Functions that reach beyond the data: files, other servers, settings, other sessions, or SQL given
# as text. Everything of Postgres' own administration goes by its prefix.
_FUNCTIONS: Final = re.compile(
    r"(pg_(?!typeof$|size_pretty$|column_size$|table_size$|relation_size$|total_relation_size$)"
    r"|lo_|lo$|loread$|lowrite$|dblink|set_config$|current_setting$|setval$|nextval$"
    r"|query_to_xml|table_to_xml|schema_to_xml|database_to_xml|cursor_to_xml"
    r"|ts_stat$|ts_rewrite$|txid_|binary_upgrade_|inet_server_|inet_client_|crosstab|connectby"
    r"|xpath_table|file_fdw|postgres_fdw|plpy|plperl|brin_|gin_clean|has_.*_privilege$"
    r"|load_file$|sleep$|benchmark$|get_lock$|release_lock|master_pos_wait$|source_pos_wait$"
    r"|wait_for_executed_gtid_set|sys_eval$|sys_exec$|updatexml$|extractvalue$"
    r"|load_extension$|readfile$|writefile$|edit$|fts3_tokenizer$|sqlite_"
    r"|randomblob$|zeroblob$|generate_series_unbounded$)"
)
_SECRETS: Final = re.compile(
    r"(pg_shadow|pg_authid|pg_user_mappings?|pg_hba_file_rules|pg_file_settings|pg_config"
    r"|pg_largeobject|pg_subscription|pg_settings)$"
)


class Rejected(Exception):
    """The statement is not run. The message says why."""


class Statement(msgspec.Struct, frozen=True):
    sql: str
    kinds: frozenset[str]

    @property
    def only_reads(self) -> bool:
        return self.kinds == {"select"}


def judged(query: str, db_type: str, allowed: list[str]) -> Statement:
    tree = _parsed(query, DIALECTS[db_type])
    kinds = {_kind_of(tree)}
    for count, node in enumerate(tree.walk()):
        if count > _MOST_NODES:
            raise Rejected("the statement is too long")
        _check(node)
        kinds |= {name for kind, name in _KINDS if isinstance(node, kind)}
        if isinstance(node, exp.Lock):
            kinds.add("update")
    denied = sorted(kinds - set(allowed))
    if denied:
        raise Rejected(f"{denied[0]} is not among the allowed operations")
    return Statement(_written(tree, db_type), frozenset(kinds))


def _parsed(query: str, dialect: str) -> Any:
    if len(query) > _CHARS:
        raise Rejected(f"the statement has more than {_CHARS} characters")
    if "\0" in query:
        raise Rejected("the statement has a NUL character in it")
    try:
        trees = sqlglot.parse(query, dialect=dialect)
        found = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    except (SqlglotError, RecursionError, ValueError, AttributeError, IndexError) as error:
        raise Rejected("the statement cannot be parsed") from error
    if len(found) != 1:
        raise Rejected("give exactly one statement")
    return found[0]


def _kind_of(tree: Any) -> str:
    for kind, name in _KINDS:
        if isinstance(tree, kind):
            return name
    if isinstance(tree, _READS):
        return "select"
    raise Rejected("this kind of statement is never run")


def _check(node: Any) -> None:
    if isinstance(node, _NEVER):
        raise Rejected(f"{type(node).__name__.upper()} is never run")
    if isinstance(node, exp.Func | exp.Anonymous):
        for name in _names(node):
            if _FUNCTIONS.match(name):
                raise Rejected(f"the function {name[:60]} is never run")
    if isinstance(node, exp.Table) and _SECRETS.match(node.name.lower()):
        raise Rejected(f"{node.name[:60]} is never read")


def _names(node: Any) -> list[str]:
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return [str(node.name).lower()]
    return [str(name).lower() for name in type(node).sql_names()]


def _written(tree: Any, db_type: str) -> str:
    """The statement as we send it: no comments, and placeholders as the driver wants them."""
    dialect = DIALECTS[db_type]
    try:
        if db_type != "mysql":
            text: str = tree.sql(dialect=dialect, comments=False, normalize_functions=False)
            return text
        # This driver fills in `%s` itself, so every other % must be doubled.
        mark = "parley_placeholder_7f3a"
        marked = tree.transform(
            lambda node: exp.Var(this=mark) if isinstance(node, exp.Placeholder) else node
        )
        text = marked.sql(dialect=dialect, comments=False, normalize_functions=False)
    except (SqlglotError, RecursionError, ValueError) as error:
        raise Rejected("the statement cannot be written") from error
    return text.replace("%", "%%").replace(mark, "%s")
