"""SQL statements that a tool must never run, or not when it may only read."""

from tests.agents.tools.statements import split_queries

WRITING_STATEMENTS = split_queries("""
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

_POSTGRES_ATTACKS = split_queries(r"""
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

_MYSQL_ATTACKS = split_queries(r"""
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

_SQLITE_ATTACKS = split_queries(r"""
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

ATTACKS = {"postgresql": _POSTGRES_ATTACKS, "mysql": _MYSQL_ATTACKS, "sqlite": _SQLITE_ATTACKS}
