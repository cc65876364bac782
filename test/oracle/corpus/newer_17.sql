--# What PostgreSQL 17 added. Where 15 refuses a text, the answer expected stands below it.
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (s.id, f(s.a))
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t AS x USING (SELECT * FROM s) AS y ON x.id = y.id WHEN MATCHED AND y.d THEN DELETE WHEN MATCHED THEN UPDATE SET a = y.a WHEN NOT MATCHED BY SOURCE AND x.b > 1 THEN UPDATE SET a = DEFAULT WHEN NOT MATCHED BY TARGET AND y.c THEN INSERT (id) VALUES (y.id) WHEN NOT MATCHED BY SOURCE THEN DO NOTHING
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING *
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING s ON true WHEN MATCHED THEN UPDATE SET a = 1 RETURNING t.*, s.a AS b
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT DEFAULT VALUES RETURNING (SELECT max(x) FROM u)
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t", "u"], "functions": ["max"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
WITH m AS (MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING *) SELECT * FROM m
--= {"ok": true, "stmts": [{"kind": "select", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": true, "into": false, "temp": false, "params": 0}]}
WITH m AS (MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING t.a) INSERT INTO log SELECT * FROM m
--= {"ok": true, "stmts": [{"kind": "insert", "read_only": false, "tables": ["log", "s", "t"], "functions": [], "locking": false, "dml_in_cte": true, "into": false, "temp": false, "params": 0}]}
COPY (MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING *) TO STDOUT
--= {"ok": true, "stmts": [{"kind": "copy_to", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
EXPLAIN ANALYZE MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE THEN DELETE
--= {"ok": true, "stmts": [{"kind": "explain", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
PREPARE p AS MERGE INTO t USING s ON t.id = $1 WHEN MATCHED THEN DELETE RETURNING $2
--= {"ok": true, "stmts": [{"kind": "prepare", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 2}]}
SELECT a AT LOCAL, b AT /* c */ LOCAL, f(c) AT LOCAL AT TIME ZONE 'UTC' FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_EXISTS(a FORMAT JSON, '$.b' PASSING 1 AS x, f(c) AS y ERROR ON ERROR), JSON_EXISTS(a, '$' FALSE ON ERROR), JSON_EXISTS(a, '$' UNKNOWN ON ERROR) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_VALUE(a, '$.b' RETURNING int DEFAULT 1 ON EMPTY DEFAULT f(2) ON ERROR), JSON_VALUE(a, '$' RETURNING text NULL ON EMPTY ERROR ON ERROR) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_VALUE(a, '$.b' PASSING x AS y, z AS "W" RETURNING numeric(10, 2)) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_QUERY(a, '$.b' WITH WRAPPER), JSON_QUERY(a, '$' WITHOUT WRAPPER), JSON_QUERY(a, '$' WITH CONDITIONAL ARRAY WRAPPER), JSON_QUERY(a, '$' WITH UNCONDITIONAL WRAPPER EMPTY ARRAY ON EMPTY EMPTY OBJECT ON ERROR) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_QUERY(a, '$.b' RETURNING jsonb KEEP QUOTES), JSON_QUERY(a, '$.b' RETURNING text OMIT QUOTES ON SCALAR STRING NULL ON EMPTY), JSON_QUERY(a, '$' RETURNING json FORMAT JSON) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON('{}' WITH UNIQUE KEYS), JSON(a FORMAT JSON WITHOUT UNIQUE), JSON(f(b) FORMAT JSON ENCODING UTF8) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_SERIALIZE(a RETURNING bytea), JSON_SERIALIZE(f(b) FORMAT JSON RETURNING text) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT * FROM JSON_TABLE(jsonb '[]', '$[*]' COLUMNS (id FOR ORDINALITY, a int PATH '$.a', b text, c jsonb FORMAT JSON PATH '$.c' WITH WRAPPER))
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT * FROM t, JSON_TABLE(t.doc, '$.x' AS root PASSING f(1) AS p COLUMNS (a int PATH '$.a' DEFAULT 1 ON EMPTY ERROR ON ERROR, b bool EXISTS PATH '$.b', NESTED PATH '$.n[*]' AS n COLUMNS (c int, NESTED '$.m' COLUMNS (d text)))) AS jt
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT * FROM JSON_TABLE(g(a), '$' COLUMNS (b int) ERROR ON ERROR) jt (x)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": ["g"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT * FROM t CROSS JOIN LATERAL JSON_TABLE(t.j, 'strict $' COLUMNS (a text PATH '$' KEEP QUOTES NULL ON EMPTY EMPTY ARRAY ON ERROR)) AS j
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT count(*) FROM JSON_TABLE('{}' FORMAT JSON, '$' COLUMNS (a json FORMAT JSON ENCODING UTF8 WITHOUT ARRAY WRAPPER OMIT QUOTES))
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": ["count"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
COPY t FROM STDIN WITH (ON_ERROR ignore, LOG_VERBOSITY verbose)
COPY t FROM STDIN WITH (FORMAT csv, FORCE_NULL *, FORCE_NOT_NULL *)
ALTER TABLE t ALTER COLUMN a SET EXPRESSION AS (b + f(1))
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t SET ACCESS METHOD DEFAULT
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ALTER COLUMN a SET STATISTICS DEFAULT
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER STATISTICS s SET STATISTICS DEFAULT
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER OPERATOR === (int, int) SET (COMMUTATOR = ====, NEGATOR = !==, HASHES, MERGES)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
EXPLAIN (MEMORY, SERIALIZE text) SELECT * FROM t
EXPLAIN (ANALYZE, SERIALIZE) SELECT * FROM t
CREATE EVENT TRIGGER e ON login EXECUTE FUNCTION f()
CREATE SUBSCRIPTION s CONNECTION 'c' PUBLICATION p WITH (failover = true)
CREATE DATABASE d LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'
GRANT MAINTAIN ON t TO u
REVOKE MAINTAIN, SELECT ON TABLE t FROM u
CREATE TABLE p PARTITION OF t FOR VALUES IN (1) USING heap
CREATE TABLE p PARTITION OF t DEFAULT USING heap WITH (fillfactor = 50)
SELECT merge_action()
SELECT json_scalar(a), json_scalar(f(b)) FROM t
ALTER DOMAIN a ADD NOT NULL
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER DOMAIN a ADD CONSTRAINT b NOT NULL
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
