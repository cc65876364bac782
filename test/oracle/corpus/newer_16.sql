--# What PostgreSQL 16 added. Where 15 refuses a text, the answer expected stands below it.
SELECT * FROM (SELECT 1)
SELECT * FROM (SELECT a FROM t), (VALUES (1, 2)), u
SELECT x FROM (SELECT 1 AS x), LATERAL (SELECT * FROM t WHERE t.a = x)
DELETE FROM t USING (SELECT 1) WHERE true
UPDATE t SET a = 1 FROM (SELECT id FROM u) WHERE t.id = 1
SELECT * FROM (SELECT 1) JOIN (SELECT 2) ON true LEFT JOIN ((SELECT 3) CROSS JOIN t) ON true
SELECT 0x1F, 0XfF, 0o17, 0O7, 0b101, 0B1, 1_000, 1_000.5, 1e1_0, 0x_1f, 0b_1, 0o_7, .5_0, 1_0.0_1e1_0
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT 1_, 2
--= {"ok": false}
SELECT 1__0
--= {"ok": false}
SELECT 0x
--= {"ok": false}
SELECT 0xG
--= {"ok": false}
SELECT 0b2
--= {"ok": false}
SELECT 0o8
--= {"ok": false}
SELECT 1_000_
--= {"ok": false}
SELECT 0x1_
--= {"ok": false}
SELECT a[0x1], b[1_0:2_0] FROM t LIMIT 1_000 OFFSET 0x10
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT SYSTEM_USER, system_user FROM t
SELECT a IS JSON, b IS NOT JSON, c IS JSON VALUE, d IS JSON OBJECT, e IS JSON ARRAY, f IS JSON SCALAR FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT a IS JSON WITH UNIQUE KEYS, b IS JSON OBJECT WITHOUT UNIQUE KEYS, c IS JSON WITH UNIQUE, d IS NOT JSON ARRAY WITHOUT UNIQUE FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_OBJECT('a': 1, 'b' VALUE f(x)), JSON_OBJECT('a': 1 NULL ON NULL), JSON_OBJECT('a' : b ABSENT ON NULL WITH UNIQUE KEYS RETURNING jsonb) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_OBJECT(KEY 'a' VALUE 1)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_OBJECT('a': 1 FORMAT JSON, 'b' VALUE '{}' FORMAT JSON ENCODING UTF8 RETURNING bytea FORMAT JSON ENCODING UTF8)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_OBJECT(RETURNING json), JSON_ARRAY(RETURNING jsonb)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_ARRAY(1, 'a', f(b) FORMAT JSON NULL ON NULL), JSON_ARRAY(1, 2 ABSENT ON NULL RETURNING text) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_ARRAY(SELECT a FROM t ORDER BY b), JSON_ARRAY(SELECT a FROM u RETURNING jsonb), JSON_ARRAY(VALUES (1), (2) FORMAT JSON)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t", "u"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_ARRAYAGG(a NULL ON NULL RETURNING jsonb), JSON_ARRAYAGG(g(a) ORDER BY h(b) ABSENT ON NULL) OVER (PARTITION BY c) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["g", "h"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_OBJECTAGG(a: b), JSON_OBJECTAGG(a VALUE b WITH UNIQUE KEYS), JSON_OBJECTAGG(a: b ABSENT ON NULL WITH UNIQUE RETURNING jsonb) FILTER (WHERE c) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT XMLSERIALIZE(DOCUMENT a AS text INDENT), XMLSERIALIZE(CONTENT b AS text NO INDENT) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
GRANT r TO u WITH ADMIN TRUE
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
GRANT r TO u WITH INHERIT FALSE, SET TRUE
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
GRANT r TO u WITH ADMIN OPTION, INHERIT OPTION, SET FALSE GRANTED BY CURRENT_USER
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
REVOKE INHERIT OPTION FOR r FROM u
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
REVOKE SET OPTION FOR r FROM u CASCADE
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a text STORAGE external COMPRESSION pglz, b text STORAGE DEFAULT)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a text STORAGE MAIN NOT NULL)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ALTER COLUMN a SET STORAGE DEFAULT
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE STATISTICS ON a, b FROM t
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE STATISTICS (mcv, ndistinct) ON a, (b + 1) FROM s.t
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["s.t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
REINDEX DATABASE
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
REINDEX SYSTEM
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
REINDEX DATABASE CONCURRENTLY
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
REINDEX (VERBOSE) SYSTEM
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE SUBSCRIPTION s CONNECTION 'c' PUBLICATION p WITH (origin = none, password_required = false, run_as_owner)
COPY t FROM STDIN WITH (FORMAT csv, DEFAULT '\D')
VACUUM (SKIP_DATABASE_STATS, ONLY_DATABASE_STATS, PROCESS_MAIN false) t
VACUUM (BUFFER_USAGE_LIMIT '16MB') t
EXPLAIN (GENERIC_PLAN) SELECT * FROM t WHERE a = $1
ALTER DATABASE d REFRESH COLLATION VERSION
CREATE COLLATION c (provider = icu, locale = 'und', rules = '&V << w')
CREATE DATABASE d LOCALE_PROVIDER icu ICU_LOCALE 'en' ICU_RULES '&a < g'
SELECT any_value(a), random_normal(), array_shuffle(b) FROM t
SELECT1
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
--{{
SELECT 'c'
'd'
--}}
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE SEQUENCE a LOGGED
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["a"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
