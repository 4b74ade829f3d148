"""What of SQL a tool may send: attacks are refused, ordinary queries mean the same as before."""

import re
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from app.domain.tools.errors import StatementRejected
from app.domain.tools.executors.sql import validate_statement
from tests.tools.outside import OutsidePostgres, running

EVERYTHING = [
    "select",
    "insert",
    "update",
    "delete",
    "merge",
    "create",
    "alter",
    "drop",
    "truncate",
]
READS = ["select"]


def _lines(text: str) -> list[str]:
    """A query a line; one that begins with a bar goes on from the line before."""
    whole = re.sub(r"\n\s+\| ", " ", text)
    return [line.strip() for line in whole.splitlines() if line.strip()]


# What is refused where only reading is allowed

_NOT_READING = _lines("""
    INSERT INTO t VALUES (1)
    UPDATE t SET a = 1
    DELETE FROM t
    MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE
    CREATE TABLE x (a int)
    CREATE TABLE x AS SELECT 1
    ALTER TABLE t ADD COLUMN b int
    DROP TABLE t
    TRUNCATE t
    WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x
    WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x
    WITH x AS (UPDATE t SET a = 1 RETURNING *) SELECT * FROM x
    WITH x AS (SELECT 1), y AS (DELETE FROM t RETURNING *) SELECT * FROM x
    WITH x AS (MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE RETURNING *) SELECT 1
    SELECT * FROM (WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x) y
    SELECT * FROM t FOR UPDATE
    SELECT * FROM t FOR SHARE
    SELECT * FROM t FOR NO KEY UPDATE
    SELECT * FROM t FOR KEY SHARE SKIP LOCKED
    SELECT * FROM (SELECT * FROM t FOR UPDATE) x
    SELECT 1 UNION SELECT a FROM (SELECT a FROM t FOR UPDATE) x
""")


@pytest.mark.parametrize("query", _NOT_READING)
def test_what_writes_is_refused_where_only_reading_is_allowed(query: str) -> None:
    with pytest.raises(StatementRejected):
        validate_statement(query, "postgresql", READS)


# What is refused whatever is allowed

_POSTGRES = _lines(r"""
    SELECT 1; SELECT 2
    SELECT 1; DROP TABLE t
    SELECT 1;; DROP TABLE t
    SELECT 'a'; DROP TABLE t --'
    SELECT $$a$$; DROP TABLE t
    SELECT $a$ $b$ $a$; DROP TABLE t; SELECT $b$ $b$
    SELECT $$ $a$ $$; DROP TABLE t --$$
    SELECT E'\''; DROP TABLE t --'
    SELECT E'\\'; DROP TABLE t --'
    SELECT "a"; DROP TABLE t --"
    SELECT 1 /* a */; DROP TABLE t
    SELECT 1 /* /* */ */; DROP TABLE t
    SELECT 1 /* never ended
    SELECT 1 /* a /* b */
    SELECT 'never ended
    SELECT "never ended
    SELECT $$ never ended
    SELECT $a$ never ended $b$
    COPY t TO PROGRAM 'id'
    COPY t FROM PROGRAM 'id'
    COPY t TO '/tmp/x'
    COPY t FROM '/etc/passwd'
    COPY (SELECT 1) TO STDOUT
    copy t(a) to stdout with csv
    SELECT pg_read_file('/etc/passwd')
    SELECT PG_Read_File('/etc/passwd')
    SELECT "pg_read_file"('/etc/passwd')
    SELECT pg_catalog.pg_read_file('/etc/passwd')
    SELECT "pg_catalog"."pg_read_file"('/etc/passwd')
    SELECT PG_CATALOG . pg_read_file ('/etc/passwd')
    SELECT pg_read_file/**/('/etc/passwd')
    SELECT * FROM pg_read_file('/etc/passwd')
    SELECT * FROM pg_catalog.pg_read_file('/etc/passwd') AS f
    SELECT * FROM "pg_catalog"."pg_read_file"('/etc/passwd') AS f(x)
    SELECT * FROM t, LATERAL pg_read_file(t.a) AS f
    SELECT * FROM ROWS FROM (pg_read_file('x')) AS f
    SELECT * FROM t JOIN s ON pg_read_file('x') = ''
    SELECT * FROM t WHERE a = pg_read_file('x')
    SELECT * FROM t WHERE a IN (SELECT pg_read_file('x'))
    SELECT * FROM t ORDER BY pg_read_file('x')
    SELECT * FROM t GROUP BY pg_read_file('x')
    SELECT count(*) FROM t HAVING pg_read_file('x') = ''
    SELECT * FROM t LIMIT length(pg_read_file('x'))
    SELECT * FROM t OFFSET length(pg_read_file('x'))
    SELECT DISTINCT ON (pg_read_file('x')) a FROM t
    SELECT CASE WHEN true THEN pg_read_file('x') END
    SELECT ARRAY[pg_read_file('x')]
    SELECT ARRAY(SELECT pg_read_file('x'))
    SELECT (pg_read_file('x'))::bytea
    SELECT CAST(pg_read_file('x') AS json)
    SELECT coalesce(NULL, pg_read_file('x'))
    SELECT count(*) FILTER (WHERE pg_read_file('x') = '') FROM t
    SELECT string_agg(a, ',' ORDER BY pg_read_file('x')) FROM t
    SELECT rank() OVER (PARTITION BY pg_read_file('x')) FROM t
    SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY pg_read_file('x'))
    VALUES (pg_read_file('x'))
    INSERT INTO t VALUES (pg_read_file('x'))
    INSERT INTO t VALUES (1) RETURNING pg_read_file('x')
    INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = pg_read_file('x')
    UPDATE t SET a = pg_read_file('x')
    DELETE FROM t USING pg_read_file('x')
    CREATE TABLE x (a text DEFAULT pg_read_file('x'))
    CREATE TABLE x (a text CHECK (pg_read_file('x') = ''))
    CREATE TABLE x AS SELECT pg_read_file('x')
    CREATE VIEW x AS SELECT pg_read_file('x')
    CREATE INDEX i ON t (pg_read_file(a))
    ALTER TABLE t ADD COLUMN b text DEFAULT pg_read_file('x')
    ALTER TABLE t ALTER COLUMN a SET DEFAULT pg_read_file('x')
    SELECT ('/etc/passwd'::text).pg_read_file
    SELECT (CAST('/etc/passwd' AS text)).pg_read_file
    SELECT ('/etc/passwd'::text)."pg_read_file"
    SELECT x.pg_read_file FROM unnest(ARRAY['/etc/passwd']) AS x
    SELECT x."pg_read_file" FROM unnest(ARRAY['/etc/passwd']) AS x
    SELECT (x).PG_READ_FILE FROM unnest(ARRAY['/etc/passwd']) AS x
    SELECT (t.x).pg_read_file FROM (SELECT '/etc/passwd'::text AS x) t
    SELECT ((ARRAY['/etc/passwd'])[1]).pg_read_file
    SELECT (ARRAY['/etc/passwd'])[1].pg_read_file
    SELECT (SELECT '/etc/passwd'::text).pg_read_file
    SELECT ($1::text).pg_read_file
    SELECT ($1).pg_read_file
    SELECT $1.pg_sleep
    SELECT 1 FROM unnest(ARRAY['/etc/passwd']) AS x ORDER BY x.pg_read_file
    SELECT 1 FROM unnest(ARRAY['/etc/passwd']) AS x WHERE x.pg_read_file = ''
    SELECT (1::float8).pg_sleep
    SELECT (16384::oid).lo_get
    SELECT ('SELECT 1'::text).ts_stat
    SELECT ('SELECT 1'::text).crosstab
    SELECT ('s'::regclass).nextval
    SELECT ('data_directory'::text).current_setting
    SELECT pg_read_binary_file('x')
    SELECT pg_ls_dir('/')
    SELECT * FROM pg_ls_waldir()
    SELECT pg_stat_file('x')
    SELECT pg_file_write('x', 'y', true)
    SELECT pg_sleep(10)
    SELECT pg_sleep_for('1 day')
    SELECT pg_terminate_backend(1)
    SELECT pg_cancel_backend(1)
    SELECT pg_reload_conf()
    SELECT pg_advisory_lock(1)
    SELECT pg_try_advisory_lock(1)
    SELECT pg_notify('a', 'b')
    SELECT pg_switch_wal()
    SELECT pg_create_restore_point('a')
    SELECT pg_logical_emit_message(true, 'a', 'b')
    SELECT pg_get_functiondef(1)
    SELECT lo_import('/etc/passwd')
    SELECT lo_export(1, '/tmp/x')
    SELECT lo_from_bytea(0, 'x')
    SELECT lo_get(1)
    SELECT lo_put(1, 0, 'x')
    SELECT lo_unlink(1)
    SELECT loread(1, 2)
    SELECT lowrite(1, 'x')
    SELECT convert_from(lo_get(1), 'utf8')
    SELECT dblink('host=x', 'SELECT 1')
    SELECT * FROM dblink('host=x', 'SELECT 1') AS t(a int)
    SELECT dblink_connect('host=x')
    SELECT dblink_exec('host=x', 'DROP TABLE t')
    SELECT dblink_send_query('c', 'SELECT 1')
    SELECT query_to_xml('SELECT 1', true, true, '')
    SELECT query_to_xmlschema('SELECT 1', true, true, '')
    SELECT query_to_xml_and_xmlschema('SELECT 1', true, true, '')
    SELECT table_to_xml('t', true, true, '')
    SELECT schema_to_xml('public', true, true, '')
    SELECT database_to_xml(true, true, '')
    SELECT cursor_to_xml('c', 1, true, true, '')
    SELECT * FROM ts_stat('SELECT 1')
    SELECT * FROM crosstab('SELECT 1')
    SELECT * FROM xpath_table('a', 'b', 'c', 'd', 'e') AS t(a int)
    SELECT set_config('statement_timeout', '0', false)
    SELECT current_setting('data_directory')
    SELECT setval('s', 1)
    SELECT nextval('s')
    SELECT txid_current()
    SELECT inet_server_addr()
    SELECT has_table_privilege('t', 'select')
    SELECT * INTO x FROM t
    SELECT a INTO TEMP x FROM t
    SELECT a INTO UNLOGGED TABLE x FROM t
    EXPLAIN SELECT 1
    EXPLAIN ANALYZE DELETE FROM t
    EXPLAIN (ANALYZE, VERBOSE) DELETE FROM t
    DO $$ BEGIN PERFORM 1; END $$
    DO LANGUAGE plpgsql 'BEGIN END'
    CALL p()
    PREPARE p AS SELECT 1
    EXECUTE p
    EXECUTE p(1)
    DEALLOCATE ALL
    LISTEN x
    NOTIFY x, 'y'
    UNLISTEN *
    VACUUM
    VACUUM FULL t
    ANALYZE t
    CLUSTER t
    REINDEX TABLE t
    CHECKPOINT
    SET ROLE postgres
    SET SESSION AUTHORIZATION postgres
    SET statement_timeout = 0
    SET LOCAL statement_timeout = 0
    SET TRANSACTION READ WRITE
    SET search_path TO x
    RESET ALL
    RESET statement_timeout
    SHOW ALL
    SHOW data_directory
    BEGIN
    START TRANSACTION READ WRITE
    COMMIT
    ROLLBACK
    END
    ABORT
    SAVEPOINT a
    RELEASE a
    PREPARE TRANSACTION 'a'
    GRANT ALL ON t TO public
    REVOKE ALL ON t FROM public
    CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$
    CREATE OR REPLACE FUNCTION f() RETURNS text AS 'SELECT 1' LANGUAGE sql
    CREATE FUNCTION f() RETURNS int LANGUAGE sql RETURN 1
    CREATE PROCEDURE p() LANGUAGE sql AS $$ SELECT 1 $$
    CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()
    CREATE EVENT TRIGGER x ON ddl_command_start EXECUTE FUNCTION f()
    CREATE RULE r AS ON INSERT TO t DO INSTEAD NOTHING
    CREATE EXTENSION dblink
    CREATE EXTENSION IF NOT EXISTS file_fdw
    CREATE LANGUAGE plpython3u
    CREATE CAST (a AS b) WITH FUNCTION f(a)
    CREATE OPERATOR + (FUNCTION = pg_read_file, LEFTARG = text)
    CREATE AGGREGATE a(text) (SFUNC = pg_read_file, STYPE = text)
    CREATE ROLE x SUPERUSER
    CREATE USER x SUPERUSER
    CREATE SERVER s FOREIGN DATA WRAPPER file_fdw
    CREATE FOREIGN TABLE f (a text) SERVER s OPTIONS (filename '/etc/passwd')
    CREATE USER MAPPING FOR x SERVER s
    CREATE SUBSCRIPTION s CONNECTION 'host=x' PUBLICATION p
    CREATE TABLESPACE x LOCATION '/tmp'
    ALTER SYSTEM SET archive_command = 'id'
    ALTER ROLE x SUPERUSER
    ALTER USER x PASSWORD 'y'
    ALTER DATABASE d SET x = y
    ALTER FUNCTION f() SECURITY DEFINER
    ALTER TABLE t OWNER TO x
    ALTER TABLE t DISABLE ROW LEVEL SECURITY
    DROP OWNED BY x
    REASSIGN OWNED BY a TO b
    LOCK TABLE t
    LOAD 'x.so'
    DECLARE c CURSOR FOR SELECT 1
    FETCH ALL FROM c
    MOVE c
    CLOSE c
    DISCARD ALL
    COMMENT ON TABLE t IS 'x'
    SECURITY LABEL ON TABLE t IS 'x'
    IMPORT FOREIGN SCHEMA x FROM SERVER s INTO y
    REFRESH MATERIALIZED VIEW x
    SELECT * FROM pg_shadow
    SELECT * FROM pg_catalog.pg_authid
    SELECT * FROM "pg_authid"
    SELECT rolpassword FROM PG_AUTHID
    TABLE pg_authid
    SELECT * FROM pg_user_mappings
    SELECT * FROM information_schema.user_mapping_options
    SELECT * FROM pg_hba_file_rules
    SELECT * FROM pg_file_settings
    SELECT * FROM pg_settings
    SELECT * FROM pg_largeobject
    SELECT (SELECT passwd FROM pg_shadow LIMIT 1)
    UPDATE pg_settings SET setting = '0'
    INSERT INTO pg_authid VALUES (1)
    SELECT $1 FROM t; DELETE FROM t
    SELECT 1 FROM
    SELECT ((1)
    \! id
    \copy t from x
    not sql at all
    ;
    -- a comment
    /* a comment */
""")

_MYSQL = _lines(r"""
    SELECT 1; DROP TABLE t
    SELECT 'a\''; DROP TABLE t -- '
    SELECT /*! SLEEP(10) */
    SELECT 1 /*!50000 UNION SELECT LOAD_FILE('/etc/passwd') */
    SELECT 1 /*M! , SLEEP(10) */
    SELECT 1 /*M!100100 , SLEEP(10) */
    SELECT 1 /*!; DROP TABLE t */
    /*! DROP TABLE t */
    /*!40000 SELECT */ 1
    SELECT 1 INTO OUTFILE '/tmp/x'
    SELECT * FROM t INTO OUTFILE '/tmp/x' FIELDS TERMINATED BY ','
    SELECT 1 INTO DUMPFILE '/tmp/x'
    SELECT 1 INTO @a
    SELECT LOAD_FILE('/etc/passwd')
    SELECT load_file ('/etc/passwd')
    SELECT `LOAD_FILE`('/etc/passwd')
    SELECT * FROM t WHERE a = LOAD_FILE(0x2f6574632f706173737764)
    SELECT SLEEP(10)
    SELECT * FROM t WHERE a = 1 OR SLEEP(10)
    SELECT BENCHMARK(1000000000, MD5('a'))
    SELECT GET_LOCK('a', 10)
    SELECT RELEASE_ALL_LOCKS()
    SELECT MASTER_POS_WAIT('a', 1)
    SELECT SOURCE_POS_WAIT('a', 1)
    SELECT WAIT_FOR_EXECUTED_GTID_SET('a')
    SELECT UPDATEXML(1, CONCAT(0x7e, VERSION()), 1)
    SELECT EXTRACTVALUE(1, CONCAT(0x7e, VERSION()))
    SELECT sys_exec('id')
    SELECT sys_eval('id')
    SELECT @@datadir
    SELECT @@global.secure_file_priv
    SELECT * FROM mysql.user
    SELECT * FROM `mysql`.`user`
    UPDATE mysql.user SET authentication_string = 'x'
    LOAD DATA INFILE '/etc/passwd' INTO TABLE t
    LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t
    LOAD XML INFILE 'x' INTO TABLE t
    HANDLER t OPEN
    HANDLER t READ FIRST
    DO SLEEP(10)
    CALL p()
    SET GLOBAL general_log = 1
    SET @a = 1
    SHOW VARIABLES
    SHOW GRANTS
    USE mysql
    DESCRIBE t
    EXPLAIN SELECT 1
    FLUSH PRIVILEGES
    KILL 1
    RESET MASTER
    INSTALL PLUGIN x SONAME 'x.so'
    CREATE FUNCTION f RETURNS STRING SONAME 'x.so'
    CREATE PROCEDURE p() SELECT 1
    CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1
    CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO DELETE FROM t
    CREATE USER x
    ALTER USER x IDENTIFIED BY 'y'
    DROP USER x
    GRANT ALL ON *.* TO x
    RENAME TABLE a TO b
    PREPARE s FROM 'SELECT 1'
    EXECUTE s
    LOCK TABLES t READ
    UNLOCK TABLES
    ANALYZE TABLE t
    OPTIMIZE TABLE t
    BINLOG 'x'
    CHANGE MASTER TO MASTER_HOST = 'x'
    START TRANSACTION
    COMMIT
    SELECT * FROM t PROCEDURE ANALYSE()
""")

_SQLITE = _lines(r"""
    SELECT 1; SELECT 2
    ATTACH DATABASE '/tmp/x' AS y
    ATTACH '/tmp/x' AS y
    DETACH y
    PRAGMA database_list
    PRAGMA writable_schema = 1
    SELECT * FROM pragma_database_list
    SELECT * FROM pragma_table_info('t')
    SELECT * FROM PRAGMA_function_list
    SELECT load_extension('x')
    SELECT LOAD_EXTENSION('x')
    SELECT "load_extension"('x')
    SELECT [load_extension]('x')
    SELECT `load_extension`('x')
    SELECT readfile('/etc/passwd')
    SELECT writefile('/tmp/x', 'y')
    SELECT edit('x')
    SELECT fts3_tokenizer('x')
    SELECT randomblob(1000000000)
    SELECT zeroblob(1000000000)
    SELECT * FROM sqlite_dbpage
    SELECT * FROM dbstat
    SELECT * FROM fsdir('/')
    CREATE TABLE x (a DEFAULT (load_extension('x')))
    CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM t; END
    VACUUM
    VACUUM INTO '/tmp/x'
    REINDEX
    ANALYZE
    BEGIN
    BEGIN IMMEDIATE
    COMMIT
    ROLLBACK
    SAVEPOINT a
    RELEASE a
    EXPLAIN SELECT 1
    EXPLAIN QUERY PLAN SELECT 1
""")


@pytest.mark.parametrize("query", _POSTGRES)
def test_an_attack_on_postgres_is_refused_whatever_is_allowed(query: str) -> None:
    with pytest.raises(StatementRejected):
        validate_statement(query, "postgresql", EVERYTHING)


@pytest.mark.parametrize("query", _MYSQL)
def test_an_attack_on_mysql_is_refused_whatever_is_allowed(query: str) -> None:
    with pytest.raises(StatementRejected):
        validate_statement(query, "mysql", EVERYTHING)


@pytest.mark.parametrize("query", _SQLITE)
def test_an_attack_on_sqlite_is_refused_whatever_is_allowed(query: str) -> None:
    with pytest.raises(StatementRejected):
        validate_statement(query, "sqlite", EVERYTHING)


@pytest.mark.parametrize(
    ("query", "db_type"),
    [
        ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2", "postgresql"),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2", "mysql"),
        ("REPLACE INTO t VALUES (1)", "mysql"),
        ("REPLACE INTO t VALUES (1)", "sqlite"),
        ("INSERT OR REPLACE INTO t VALUES (1)", "sqlite"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2", "sqlite"),
        ("INSERT INTO t SELECT a FROM (SELECT a FROM t FOR UPDATE) x", "postgresql"),
        ("WITH x AS (DELETE FROM t RETURNING a) INSERT INTO t SELECT a FROM x", "postgresql"),
    ],
)
def test_inserting_is_not_a_way_to_change_what_is_there(query: str, db_type: str) -> None:
    with pytest.raises(StatementRejected):
        validate_statement(query, db_type, ["select", "insert"])


@pytest.mark.parametrize(
    "then", ["DELETE", "UPDATE SET a = 1", "INSERT VALUES (1)", "UPDATE SET a = DEFAULT"]
)
def test_merging_does_only_what_is_allowed_besides(then: str) -> None:
    matched = "NOT MATCHED" if then.startswith("INSERT") else "MATCHED"
    query = f"MERGE INTO t USING s ON t.a = s.a WHEN {matched} THEN {then}"
    with pytest.raises(StatementRejected):
        validate_statement(query, "postgresql", ["select", "merge"])
    assert "merge" in validate_statement(query, "postgresql", EVERYTHING).operations


@pytest.mark.parametrize("db_type", ["postgresql", "mysql", "sqlite"])
@pytest.mark.parametrize(
    "query",
    [
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
    ],
)
def test_what_is_no_statement_is_refused(query: str, db_type: str) -> None:
    with pytest.raises(StatementRejected):
        validate_statement(query, db_type, EVERYTHING)


@pytest.mark.parametrize("db_type", ["postgresql", "mysql", "sqlite"])
@pytest.mark.parametrize(
    ("begin", "end"),
    [
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
    ],
)
@pytest.mark.parametrize("levels", [24, 300])
def test_deep_nesting_is_judged_in_a_bounded_time(
    begin: str, end: str, levels: int, db_type: str
) -> None:
    started = time.process_time()
    with suppress(StatementRejected):
        validate_statement(f"SELECT {begin * levels}1{end * levels}", db_type, READS)
    assert time.process_time() - started < 5


def test_a_comment_is_not_sent_on() -> None:
    query = "SELECT 1 /* a */ + /* b */ 2 -- c\n, 3 /* /* d */ e */"
    assert validate_statement(query, "postgresql", READS).sql == "SELECT 1 + 2, 3"


def test_a_text_that_looks_like_a_placeholder_is_no_place_for_a_parameter() -> None:
    """MySQL's driver writes parameters into the text: what is quoted must stay as it is."""
    first = validate_statement("SELECT 'a%s', ? , '?'", "mysql", READS).sql
    assert first == "SELECT 'a%%s', %s, '?'"


def test_nobody_can_guess_what_stands_for_a_placeholder() -> None:
    query = "SELECT 'parley_placeholder_7f3a', `placeholder` FROM t WHERE a = ?"
    assert validate_statement(query, "mysql", READS).sql.count("%s") == 1


# What is harmless stays as it is

_TABLES = """
CREATE TABLE people (id int PRIMARY KEY, name text, born date, boss int, pay numeric(10, 2));
INSERT INTO people VALUES
    (1, 'Ada', '1815-12-10', NULL, 1000.50), (2, 'Bob', '1950-01-31', 1, 750),
    (3, 'Cyd', '1980-02-29', 1, 750), (4, 'Dän''s', '1999-12-31', 2, NULL);
"""
_COMMON = _lines(r"""
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
_ONLY_POSTGRES = _lines(r"""
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
_ONLY_SQLITE = _lines(r"""
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
async def postgres() -> AsyncIterator[OutsidePostgres]:
    async with running() as made:
        yield made


@pytest.fixture(scope="module")
async def shop(postgres: OutsidePostgres) -> AsyncIterator[asyncpg.Connection]:
    connection = await postgres.connect()
    await connection.execute(_TABLES)
    yield connection
    await connection.close()


@pytest.fixture(scope="module")
def file() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(_TABLES)
    yield connection
    connection.close()


def _rows(found: Any) -> list[Any]:
    return [tuple(row) for row in found]


@pytest.mark.parametrize("query", [*_COMMON, *_ONLY_POSTGRES])
async def test_an_ordinary_query_says_the_same_to_postgres(
    shop: asyncpg.Connection, query: str
) -> None:
    statement = validate_statement(query, "postgresql", READS)
    assert statement.is_read_only
    assert _rows(await shop.fetch(statement.sql)) == _rows(await shop.fetch(query))


@pytest.mark.parametrize("query", [*_COMMON, *_ONLY_SQLITE])
def test_an_ordinary_query_says_the_same_to_sqlite(file: sqlite3.Connection, query: str) -> None:
    if "AS x(a, b)" in query:
        query = query.replace("AS x(a, b)", "AS x").replace("a < 3 ORDER BY a", "id < 3")
    statement = validate_statement(query, "sqlite", READS)
    assert statement.is_read_only
    assert _rows(file.execute(statement.sql)) == _rows(file.execute(query))


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT name FROM people WHERE id = $1 OR name = $2 ORDER BY id", [1, "Bob"]),
        ("SELECT $1::int + $2::int, $1::int", [1, 2]),
        ("SELECT * FROM people WHERE id = ANY($1::int[]) ORDER BY id", [[1, 3]]),
        ("SELECT '{\"a\": 1}'::jsonb ? $1", ["a"]),
        ("SELECT '{\"a\": 1}'::jsonb ?| $1::text[], '{\"a\": 1}'::jsonb ?& $1::text[]", [["a"]]),
    ],
)
async def test_placeholders_of_postgres_stay_in_their_places(
    shop: asyncpg.Connection, query: str, params: list[Any]
) -> None:
    written = validate_statement(query, "postgresql", READS).sql
    assert _rows(await shop.fetch(written, *params)) == _rows(await shop.fetch(query, *params))


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT name FROM people WHERE id = ? OR name = ? ORDER BY id", [1, "Bob"]),
        ("SELECT ?, '?', ?", [1, "it's"]),
    ],
)
def test_placeholders_of_sqlite_stay_in_their_places(
    file: sqlite3.Connection, query: str, params: list[Any]
) -> None:
    written = validate_statement(query, "sqlite", READS).sql
    assert _rows(file.execute(written, params)) == _rows(file.execute(query, params))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT E'\\'; DROP TABLE people; --'",
        "SELECT 'a\\', 'b'",
        "SELECT 'a\\'';',  'b'",
        "SELECT $a$'; DROP TABLE people; --$a$",
        "SELECT U&'\\0027; DROP TABLE people; --'",
        "SELECT 'x' -- ' DROP TABLE people\n, 'y'",
        'SELECT "name" AS "a""b; DROP TABLE people" FROM people WHERE id = 1',
    ],
)
async def test_what_is_quoted_stays_quoted(shop: asyncpg.Connection, query: str) -> None:
    written = validate_statement(query, "postgresql", READS).sql
    before = await shop.fetch(query)
    assert _rows(await shop.fetch(written)) == _rows(before)
    assert [list(row.keys()) for row in before] == [
        list(row.keys()) for row in await shop.fetch(written)
    ]
