"""SQL that a tool may not send is rejected."""

import time
from contextlib import suppress

import pytest

from app.domain.agents.tools.errors import StatementRejected
from app.domain.agents.tools.executors.sql import validate_statement
from tests.agents.tools.sql_attacks import ATTACKS, WRITING_STATEMENTS
from tests.agents.tools.statements import ALL_OPERATIONS, READ_ONLY
from tests.lengths import rounds

# Read-only


def _is_rejected(query: str, db_type: str, operations: list[str]) -> bool:
    try:
        validate_statement(query, db_type, operations)
    except StatementRejected:
        return True
    return False


def test_a_writing_statement_is_rejected_where_only_select_is_allowed() -> None:
    accepted = [
        query for query in WRITING_STATEMENTS if not _is_rejected(query, "postgresql", READ_ONLY)
    ]
    assert accepted == []


# Never allowed


def test_an_attack_is_rejected_whatever_is_allowed() -> None:
    accepted = [
        (db_type, query)
        for db_type, queries in ATTACKS.items()
        for query in queries
        if not _is_rejected(query, db_type, ALL_OPERATIONS)
    ]
    assert accepted == []


_UPSERTS: list[tuple[str, str]] = [
    ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2", "postgresql"),
    ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2", "mysql"),
    ("REPLACE INTO t VALUES (1)", "mysql"),
    ("REPLACE INTO t VALUES (1)", "sqlite"),
    ("INSERT OR REPLACE INTO t VALUES (1)", "sqlite"),
    ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2", "sqlite"),
    ("INSERT INTO t SELECT a FROM (SELECT a FROM t FOR UPDATE) x", "postgresql"),
    ("WITH x AS (DELETE FROM t RETURNING a) INSERT INTO t SELECT a FROM x", "postgresql"),
]


def test_insert_does_not_allow_changes_of_existing_rows(subtests: pytest.Subtests) -> None:
    for query, db_type in _UPSERTS:
        with subtests.test(query=query, db_type=db_type), pytest.raises(StatementRejected):
            validate_statement(query, db_type, ["select", "insert"])


def test_merge_needs_the_operations_of_its_branches(subtests: pytest.Subtests) -> None:
    for then in ("DELETE", "UPDATE SET a = 1", "INSERT VALUES (1)", "UPDATE SET a = DEFAULT"):
        with subtests.test(then=then):
            matched = "NOT MATCHED" if then.startswith("INSERT") else "MATCHED"
            query = f"MERGE INTO t USING s ON t.a = s.a WHEN {matched} THEN {then}"
            with pytest.raises(StatementRejected):
                validate_statement(query, "postgresql", ["select", "merge"])
            assert "merge" in validate_statement(query, "postgresql", ALL_OPERATIONS).operations


_NOT_ONE_STATEMENT: list[str] = [
    "SELECT '\0'",
    "SELECT 1\0; DROP TABLE t",
    "\0",
    "",
    " ",
    "SELECT " + "1," * 10_000 + "1",
    "SELECT " + "x" * 20_001,
    "\ufeff; DROP TABLE t; SELECT 1",
    "SELECT 1\uff1b; DROP TABLE t",
    "SELECT 1\u2028; DROP TABLE t",
]


def test_a_text_that_is_not_one_statement_is_rejected(subtests: pytest.Subtests) -> None:
    for db_type in ("postgresql", "mysql", "sqlite"):
        for query in _NOT_ONE_STATEMENT:
            with subtests.test(db_type=db_type, query=query), pytest.raises(StatementRejected):
                validate_statement(query, db_type, ALL_OPERATIONS)


_NESTINGS: list[tuple[str, str]] = [
    ("(", ")"),
    ("ARRAY[", "]"),
    ("int (", ")"),
    ("abs(", ")"),
    ("CAST(", " AS int)"),
    ("CASE WHEN true THEN ", " END"),
    ("EXISTS (SELECT ", ")"),
    ("NOT ", ""),
    ("- ", ""),
    ("[", "]"),
    ("{", "}"),
    ("interval (", ")"),
    ("(SELECT ", ")"),
]


def test_deep_nesting_is_validated_in_bounded_time(subtests: pytest.Subtests) -> None:
    """Some need half a second for 24 levels, in each dialect."""
    dialects = ("postgresql", "mysql", "sqlite")
    for levels, db_types in ((24, dialects[: rounds(1, 3)]), (300, dialects)):
        for begin, end in _NESTINGS:
            for db_type in db_types:
                with subtests.test(db_type=db_type, begin=begin, levels=levels):
                    started = time.process_time()
                    with suppress(StatementRejected):
                        validate_statement(
                            f"SELECT {begin * levels}1{end * levels}", db_type, READ_ONLY
                        )
                    assert time.process_time() - started < 5


def test_comments_are_removed() -> None:
    query = "SELECT 1 /* a */ + /* b */ 2 -- c\n, 3 /* /* d */ e */"
    assert validate_statement(query, "postgresql", READ_ONLY).sql == "SELECT 1 + 2, 3"


def test_a_quoted_placeholder_stays_text() -> None:
    """MySQL's driver writes parameters into the text, where quoted text must not change."""
    sql = validate_statement("SELECT 'a%s', ? , '?'", "mysql", READ_ONLY).sql
    assert sql == "SELECT 'a%%s', %s, '?'"


def test_text_of_a_query_is_never_taken_for_a_placeholder() -> None:
    query = "SELECT 'parley_placeholder_7f3a', `placeholder` FROM t WHERE a = ?"
    assert validate_statement(query, "mysql", READ_ONLY).sql.count("%s") == 1
