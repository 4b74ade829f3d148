"""Ordinary queries have the same result after they are parsed and rendered."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from app.domain.agents.tools.executors.sql import validate_statement
from tests.agents.tools.statements import READ_ONLY, split_queries
from tests.agents.tools.tenant_postgres import TenantPostgres

_TABLES = """
CREATE TABLE people (id int PRIMARY KEY, name text, born date, boss int, pay numeric(10, 2));
INSERT INTO people VALUES
    (1, 'Ada', '1815-12-10', NULL, 1000.50), (2, 'Bob', '1950-01-31', 1, 750),
    (3, 'Cyd', '1980-02-29', 1, 750), (4, 'Dän''s', '1999-12-31', 2, NULL);
"""

COMMON_QUERIES = split_queries(r"""
    SELECT 1
    SELECT 1;
    SELECT * FROM people ORDER BY id
    SELECT id, name AS who FROM people WHERE pay > 700 AND (boss = 1 OR boss IS NULL) ORDER BY id
    SELECT DISTINCT pay FROM people WHERE pay IS NOT NULL ORDER BY pay DESC
    SELECT p.name, b.name FROM people p LEFT JOIN people AS b ON b.id = p.boss ORDER BY p.id
    SELECT count(*), sum(pay), min(name), max(name) FROM people
    SELECT boss, count(*) FROM people GROUP BY boss HAVING count(*) > 1 ORDER BY boss
    SELECT name FROM people WHERE name LIKE '%\_%' ESCAPE '\' OR name LIKE 'A%' ORDER BY 1
    SELECT name FROM people WHERE id IN (SELECT boss FROM people) ORDER BY name
    SELECT name FROM people p WHERE EXISTS (SELECT 1 FROM people b WHERE b.boss = p.id) ORDER BY 1
    SELECT CASE WHEN pay > 800 THEN 'much' WHEN pay IS NULL THEN 'none' ELSE 'some' END FROM
        | people ORDER BY id
    SELECT coalesce(pay, 0), nullif(boss, 1), upper(name), length(name) FROM people ORDER BY id
    WITH rich AS (SELECT * FROM people WHERE pay > 700) SELECT name FROM rich ORDER BY name
    WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5) SELECT x FROM n
    SELECT name, row_number() OVER (PARTITION BY boss ORDER BY id DESC) FROM people ORDER BY id
    SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM people ORDER
        | BY id
    SELECT id FROM people UNION SELECT boss FROM people WHERE boss IS NOT NULL ORDER BY 1
    SELECT id FROM people EXCEPT SELECT boss FROM people ORDER BY 1
    SELECT id FROM people INTERSECT SELECT boss FROM people ORDER BY 1
    SELECT id FROM people ORDER BY id LIMIT 2 OFFSET 1
    SELECT 'it''s; -- not /* a comment', '--', '/*', ';', '$$', 'a%b', '?', ':x'
    SELECT "name" FROM "people" WHERE "id" = 1
    SELECT 7 / 2, 7 % 3, 7 - -2, 2 * (3 + 4), 1.5 + 1, -(-3)
    SELECT 'a' || 'b' || name FROM people ORDER BY id
    SELECT id BETWEEN 2 AND 3, id NOT IN (1, 2), NOT (id = 1) FROM people ORDER BY id
    SELECT CAST('12' AS int) + 1, CAST(pay AS int) FROM people WHERE id = 2
    SELECT substr(name, 1, 2), replace(name, 'a', 'o'), trim('  x ') FROM people ORDER BY id
    SELECT (SELECT max(id) FROM people), 1 WHERE 1 = 1
    SELECT * FROM (SELECT id, name FROM people) AS x(a, b) WHERE a < 3 ORDER BY a
    VALUES (1, 'a'), (2, 'b')
    SELECT name FROM people ORDER BY pay IS NULL, pay DESC, name
    SELECT count(DISTINCT boss), count(*) FILTER (WHERE boss = 1) FROM people
    SELECT lag(name) OVER (ORDER BY id), lead(name, 1, '-') OVER (ORDER BY id) FROM people ORDER
        | BY id
    SELECT a.id, b.id FROM people a CROSS JOIN people b WHERE a.id < b.id ORDER BY 1, 2
    SELECT id FROM people WHERE name = 'Dän''s'
    SELECT abs(-3), round(2.567, 1), sign(-2)
    SELECT born FROM people WHERE born > '1900-01-01' ORDER BY born
    SELECT 1 = 1 AND NOT 1 = 2 OR NULL
    SELECT name FROM people WHERE (id, boss) IN ((2, 1), (3, 1)) ORDER BY id
""")

POSTGRES_QUERIES = split_queries(r"""
    SELECT DISTINCT ON (boss) boss, name FROM people ORDER BY boss, id
    SELECT name ILIKE 'a%', name ~ '^[A-C]', name ~* 'd', name !~ 'x', name SIMILAR TO 'A%' FROM
        | people ORDER BY id
    SELECT '{"a": {"b": [1, 2]}}'::jsonb -> 'a' -> 'b' ->> 0, '{"a": 1}'::jsonb #>> '{a}'
    SELECT '{"a": 1}'::jsonb @> '{"a": 1}', '{"a": 1}'::jsonb || '{"b": 2}', '{"a": 1}'::jsonb - 'a'
    SELECT jsonb_build_object('a', 1, 'b', ARRAY[1, 2]), to_jsonb(name) FROM people WHERE id = 1
    SELECT * FROM jsonb_array_elements('[1, 2]'::jsonb) AS x
    SELECT key, value FROM jsonb_each('{"a": 1, "b": 2}') ORDER BY key
    SELECT (ARRAY[1, 2, 3])[2], (ARRAY[1, 2, 3])[2:3], array_length(ARRAY[1, 2], 1), 2 =
        | ANY(ARRAY[1, 2])
    SELECT ARRAY(SELECT id FROM people ORDER BY id), array_agg(name ORDER BY id DESC) FROM people
    SELECT ARRAY[[1, 2], [3, 4]]
    SELECT x, n FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS u(x, n)
    SELECT extract(year FROM born), date_trunc('month', born), born + interval '1 day' FROM
        | people ORDER BY id
    SELECT born - date '1900-01-01', age(date '2000-01-01', date '1990-06-15'), born + 7 FROM
        | people ORDER BY id
    SELECT timestamp '2024-01-02 03:04:05' AT TIME ZONE 'UTC', timestamptz '2024-01-02
        | 03:04:05+02' AT TIME ZONE 'Asia/Tokyo'
    SELECT to_char(timestamp '2024-01-02 03:04:05', 'YYYY-MM-DD HH24:MI'), make_date(2024, 2,
        | 29), make_interval(days => 3)
    SELECT string_agg(name, ', ' ORDER BY name) FROM people
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY pay), mode() WITHIN GROUP (ORDER BY boss)
        | FROM people
    SELECT boss, pay, count(*) FROM people GROUP BY GROUPING SETS ((boss), (pay), ()) ORDER BY 1,
        | 2, 3
    SELECT boss, count(*) FROM people GROUP BY ROLLUP (boss) ORDER BY 1, 2
    SELECT p.name, x.n FROM people p, LATERAL (SELECT count(*) AS n FROM people b WHERE b.boss =
        | p.id) x ORDER BY p.id
    SELECT * FROM generate_series(1, 10, 3) AS g
    SELECT generate_series(date '2024-01-01', date '2024-01-03', interval '1 day')
    SELECT 7.0 / 2, 2 ^ 10, |/ 16, 5 # 3, 5 & 3, 5 | 3, 1 << 4, ~5
    SELECT B'101', X'1F', E'a\nb\'c\\', U&'d\0061t\+000061', $$it's$$, $x$a $$ b$x$, 1e3, 0.5, .5
    SELECT substring('abcdef' FROM 2 FOR 3), position('c' IN 'abc'), overlay('abcd' PLACING 'xx'
        | FROM 2 FOR 2), trim(BOTH 'x' FROM 'xax')
    SELECT NULL IS DISTINCT FROM 1, 1 IS NOT DISTINCT FROM 1, 2 BETWEEN SYMMETRIC 3 AND 1, true
        | IS NOT UNKNOWN
    SELECT id FROM people ORDER BY id FETCH FIRST 2 ROWS ONLY
    SELECT pay FROM people ORDER BY pay DESC NULLS LAST FETCH FIRST 2 ROWS WITH TIES
    SELECT ROW(1, 'a'), (ROW(1, 2)) = (ROW(1, 2)), (p).name FROM people p WHERE id = 1
    SELECT p FROM people p WHERE id = 1
    SELECT 'a' COLLATE "C" < 'B' COLLATE "C"
    SELECT regexp_replace('abc', 'b', 'x', 'g'), regexp_matches('a1b2', '\d', 'g'),
        | split_part('a,b', ',', 2)
    SELECT greatest(1, 2, NULL), least(3, 1), concat_ws('-', 'a', NULL, 'b'), format('%s-%I',
        | 'a', 'b c')
    SELECT 1::text, '1'::int, 1.5::numeric(5, 1), '2024-01-01'::timestamptz::date,
        | 'a'::varchar(3), '{1,2}'::int[]
    SELECT int4range(1, 5) @> 3, int4range(1, 5) && int4range(4, 8), '10.0.0.1'::inet <<
        | '10.0.0.0/8'::inet
    SELECT encode('abc'::bytea, 'hex'), md5('a'), decode('616263', 'hex'), sha256('a'::bytea)
    SELECT count(*) OVER w, first_value(name) OVER w FROM people WINDOW w AS (PARTITION BY boss
        | ORDER BY id) ORDER BY id
    SELECT id, sum(id) OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM
        | people ORDER BY id
    WITH x AS MATERIALIZED (SELECT id FROM people) SELECT * FROM x ORDER BY id
    WITH RECURSIVE up AS (SELECT id, boss, 0 AS depth FROM people WHERE id = 4 UNION ALL SELECT
        | p.id, p.boss, depth + 1 FROM people p JOIN up ON p.id = up.boss) SELECT * FROM up ORDER
        | BY depth
    (SELECT 1 UNION ALL SELECT 2) INTERSECT SELECT 2
    SELECT id FROM people EXCEPT ALL SELECT 1 ORDER BY 1
    SELECT pg_typeof(1), pg_size_pretty(1024::bigint), current_database() = current_catalog
    SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'
    SELECT relname FROM pg_catalog.pg_class WHERE relname = 'people'
    SELECT name AS "Name with spaces", id AS "select" FROM people WHERE id = 1
    SELECT to_tsvector('english', 'fat cats') @@ to_tsquery('english', 'cat'),
        | websearch_to_tsquery('a b')
    SELECT num_nulls(1, NULL), width_bucket(5, 0, 10, 5), div(7, 2), ceil(1.2), trunc(-1.7),
        | mod(7, 3), power(2, 3)
    SELECT '1 year 2 months'::interval, interval '1' day, interval '2 hours 30 minutes' * 2,
        | justify_days(interval '40 days')
    SELECT jsonb_path_query_array('[1, 2, 3]', '$[*] ? (@ > 1)'), '{"a": [1]}'::json #> '{a,0}'
    SELECT id FROM people TABLESAMPLE BERNOULLI (100) ORDER BY id
    TABLE people
""")

SQLITE_QUERIES = split_queries(r"""
    SELECT name FROM people WHERE name GLOB 'A*'
    SELECT typeof(pay), ifnull(boss, 0), iif(id > 2, 'a', 'b') FROM people ORDER BY id
    SELECT json_extract('{"a": [1, 2]}', '$.a[1]'), '{"a": 1}' -> '$.a', '{"a": 1}' ->> 'a'
    SELECT value FROM json_each('[1, 2, 3]')
    SELECT date('2024-01-31', '+1 month'), strftime('%Y-%m', born), julianday('2024-01-02') FROM
        | people ORDER BY id
    SELECT group_concat(name, '; ') FROM people
    SELECT `name`, [id] FROM people ORDER BY id
    SELECT x'6162', hex('ab'), quote('it''s'), unicode('a'), char(97)
    SELECT printf('%05d|%s', 7, 'a'), instr('abc', 'c'), min(1, 2), max(1, 2)
    SELECT name FROM people WHERE name = 'ada' COLLATE NOCASE
    SELECT 5 & 3, 5 | 3, 1 << 4, ~5, 7 / 2.0, 'a' < 'B'
    SELECT rowid, name FROM people ORDER BY rowid
    SELECT 1 IS 1, NULL IS NULL, 1 IS NOT 2, 3 == 3, 1 <> 2
    SELECT name FROM sqlite_master WHERE type = 'table'
    SELECT total(pay), avg(pay) FROM people
    SELECT * FROM people NATURAL JOIN (SELECT 1 AS id)
    SELECT datetime('2024-01-02 03:04:05', 'start of day'), unixepoch('2024-01-01')
""")


@pytest.fixture(scope="module")
async def connection(postgres: TenantPostgres) -> AsyncIterator[asyncpg.Connection]:
    connection = await postgres.connect("postgres")
    await connection.execute(_TABLES)
    yield connection
    await connection.close()


@pytest.fixture(scope="module")
def sqlite_connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(_TABLES)
    yield connection
    connection.close()


def _to_tuples(rows: Any) -> list[Any]:
    return [tuple(row) for row in rows]


async def test_an_ordinary_query_has_the_same_result_in_postgres(
    connection: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for query in (*COMMON_QUERIES, *POSTGRES_QUERIES):
        with subtests.test(query=query):
            statement = validate_statement(query, "postgresql", READ_ONLY)
            assert statement.is_read_only
            assert _to_tuples(await connection.fetch(statement.sql)) == _to_tuples(
                await connection.fetch(query)
            )


def test_an_ordinary_query_has_the_same_result_in_sqlite(
    sqlite_connection: sqlite3.Connection, subtests: pytest.Subtests
) -> None:
    for common_query in (*COMMON_QUERIES, *SQLITE_QUERIES):
        with subtests.test(query=common_query):
            query = common_query
            if "AS x(a, b)" in query:
                query = query.replace("AS x(a, b)", "AS x").replace("a < 3 ORDER BY a", "id < 3")
            statement = validate_statement(query, "sqlite", READ_ONLY)
            assert statement.is_read_only
            assert _to_tuples(sqlite_connection.execute(statement.sql)) == _to_tuples(
                sqlite_connection.execute(query)
            )


async def test_placeholders_of_postgres_stay_in_their_places(
    connection: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, list[Any]]] = [
        ("SELECT name FROM people WHERE id = $1 OR name = $2 ORDER BY id", [1, "Bob"]),
        ("SELECT $1::int + $2::int, $1::int", [1, 2]),
        ("SELECT * FROM people WHERE id = ANY($1::int[]) ORDER BY id", [[1, 3]]),
        ("SELECT '{\"a\": 1}'::jsonb ? $1", ["a"]),
        ("SELECT '{\"a\": 1}'::jsonb ?| $1::text[], '{\"a\": 1}'::jsonb ?& $1::text[]", [["a"]]),
    ]
    for query, params in cases:
        with subtests.test(query=query, params=params):
            rendered = validate_statement(query, "postgresql", READ_ONLY).sql
            assert _to_tuples(await connection.fetch(rendered, *params)) == _to_tuples(
                await connection.fetch(query, *params)
            )


def test_placeholders_of_sqlite_stay_in_their_places(
    sqlite_connection: sqlite3.Connection, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, list[Any]]] = [
        ("SELECT name FROM people WHERE id = ? OR name = ? ORDER BY id", [1, "Bob"]),
        ("SELECT ?, '?', ?", [1, "it's"]),
    ]
    for query, params in cases:
        with subtests.test(query=query, params=params):
            rendered = validate_statement(query, "sqlite", READ_ONLY).sql
            assert _to_tuples(sqlite_connection.execute(rendered, params)) == _to_tuples(
                sqlite_connection.execute(query, params)
            )


_QUOTED_TEXTS: list[str] = [
    "SELECT E'\\'; DROP TABLE people; --'",
    "SELECT 'a\\', 'b'",
    "SELECT 'a\\'';',  'b'",
    "SELECT $a$'; DROP TABLE people; --$a$",
    "SELECT U&'\\0027; DROP TABLE people; --'",
    "SELECT 'x' -- ' DROP TABLE people\n, 'y'",
    'SELECT "name" AS "a""b; DROP TABLE people" FROM people WHERE id = 1',
]


async def test_what_is_quoted_stays_quoted(
    connection: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for query in _QUOTED_TEXTS:
        with subtests.test(query=query):
            rendered = validate_statement(query, "postgresql", READ_ONLY).sql
            before = await connection.fetch(query)
            assert _to_tuples(await connection.fetch(rendered)) == _to_tuples(before)
            assert [list(row.keys()) for row in before] == [
                list(row.keys()) for row in await connection.fetch(rendered)
            ]
