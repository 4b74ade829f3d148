"""What of SQL a tool may send. Nobody's text is sent on: it is parsed, judged, and written anew.

So a comment that hides a second statement, or one that only the server reads as code, is gone; and
what the parser did not understand as a whole is refused.
"""

import logging
import re
import secrets
from functools import cache
from typing import Any, Final

import msgspec
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

# It repeats what it cannot parse, and that is nobody's business.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

DIALECTS: Final = {"postgresql": "postgres", "mysql": "mysql", "sqlite": "sqlite"}
_CHARS = 20_000
_MOST_NODES = 5_000
# An ordinary statement takes one or two a word; some nestings double them with each level.
_MOST_STEPS = 60_000

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
        "SessionParameter",
        "Hint",
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
    r"|load_file$|sleep$|benchmark$|get_lock$|release_(all_)?locks?$|master_pos_wait$|source_pos_wait$"
    r"|wait_for_executed_gtid_set|sys_eval$|sys_exec$|updatexml$|extractvalue$"
    r"|load_extension$|readfile$|writefile$|edit$|fsdir$|fts3_tokenizer$|sqlite_|pragma_"
    r"|randomblob$|zeroblob$|generate_series_unbounded$)"
)
# Postgres calls a function also for `(value).name` and `row.name`.
_ATTRIBUTES: Final = re.compile(
    r"(pg_|lo_|dblink|nextval$|current_setting$|txid_|ts_stat$|crosstab|binary_upgrade_|brin_"
    r"|gin_clean|postgres_fdw|plpy|plperl)"
)
_SECRETS: Final = re.compile(
    r"(pg_shadow|pg_authid|_?pg_user_mappings?|user_mapping_options|pg_hba_file_rules"
    r"|pg_ident_file_mappings|pg_file_settings|pg_config|pg_largeobject|pg_subscription|pg_settings"
    r"|pragma_.*|sqlite_dbpage|sqlite_stmt|dbstat|bytecode|tables_used)$"
)
# What holds data. A function or a trigger holds code that nobody would judge when it runs.
_MADE: Final = {"TABLE", "VIEW", "INDEX", "SEQUENCE", "SCHEMA", "TYPE", "DATABASE"}


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
        _check(node, db_type)
        kinds |= _kinds_in(node)
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
        trees = _trees(query, Dialect.get_or_raise(dialect))
        found = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    except Rejected:
        raise
    except Exception as error:
        raise Rejected("the statement cannot be parsed") from error
    if len(found) != 1:
        raise Rejected("give exactly one statement")
    return found[0]


def _trees(query: str, dialect: Dialect) -> list[Any]:
    tokens = dialect.tokenize(query)
    comments = [said for token in tokens for said in token.comments]
    if any(said.startswith(_CODE) for said in comments):
        raise Rejected("a comment that a server reads as code is never sent")
    if any(";" in said for said in comments):
        raise Rejected("a comment hides the end of a statement")
    return list(_bounded(dialect.parser_class)(dialect=dialect).parse(tokens, query))


# MySQL's and MariaDB's `/*! … */` and `/*M! … */`.
_CODE: Final = ("!", "M!")


@cache
def _bounded(parser: Any) -> Any:
    """A parser that gives up where going back and forth takes too long."""

    class Bounded(parser):  # type: ignore[misc]
        steps = 0

        def _advance(self, times: int = 1) -> None:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise Rejected("the statement is nested too deeply")
            super()._advance(times)

    return Bounded


def _kind_of(tree: Any) -> str:
    for kind, name in _KINDS:
        if isinstance(tree, kind):
            return name
    if isinstance(tree, _READS):
        return "select"
    raise Rejected("this kind of statement is never run")


def _kinds_in(node: Any) -> set[str]:
    """What a part of a statement does, besides what its name says."""
    kinds = {name for kind, name in _KINDS if isinstance(node, kind)}
    match node:
        case exp.Lock():
            kinds.add("update")
        case exp.OnConflict() if node.expressions:
            kinds.add("update")
        case exp.Insert() if str(node.args.get("alternative") or "").upper() == "REPLACE":
            kinds.add("update")
        case exp.When() if node.args["then"].name.upper() == "DELETE":
            kinds.add("delete")
    return kinds


def _check(node: Any, db_type: str) -> None:
    if isinstance(node, _NEVER):
        raise Rejected(f"{type(node).__name__.upper()} is never run")
    if isinstance(node, exp.Create) and node.kind not in _MADE:
        raise Rejected(f"CREATE {str(node.kind)[:60]} is never run")
    if isinstance(node, exp.Func | exp.Anonymous):
        for name in _names(node):
            if _FUNCTIONS.match(name):
                raise Rejected(f"the function {name[:60]} is never run")
    if db_type == "postgresql" and _ATTRIBUTES.match(_attribute(node)):
        raise Rejected(f"{_attribute(node)[:60]} is never run")
    if isinstance(node, exp.Table):
        of_the_server = db_type == "mysql" and node.db.lower() == "mysql"
        if of_the_server or _SECRETS.match(node.name.lower()):
            raise Rejected(f"{node.name[:60]} is never read")


def _attribute(node: Any) -> str:
    match node:
        case exp.Dot():
            return str(node.expression.name).lower()
        case exp.Column() if node.table:
            return str(node.name).lower()
    return ""


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
        mark = f"placeholder_{secrets.token_hex(16)}"
        marked = tree.transform(
            lambda node: exp.Var(this=mark) if isinstance(node, exp.Placeholder) else node
        )
        text = marked.sql(dialect=dialect, comments=False, normalize_functions=False)
    except Exception as error:
        raise Rejected("the statement cannot be written") from error
    return text.replace("%", "%%").replace(mark, "%s")
