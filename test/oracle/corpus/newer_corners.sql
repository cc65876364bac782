--# Corners where 15 refuses what 16 to 18 take, or where the server is right and libpg_query is not.
SELECT 0x1F + 0b1010 + 0o17 + 1_000_000 + 1_0.5_5e1_0
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT 0xdeadbeef::int8, -0b1, 0O7, 0X_1f
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT 1_000
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT XMLSERIALIZE(DOCUMENT a AS text INDENT), XMLSERIALIZE(CONTENT a AS text NO INDENT) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT a AT LOCAL FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
((SELECT 1) LIMIT 1) OFFSET 1
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
WITH a AS (MERGE INTO t USING s ON true WHEN MATCHED THEN DO NOTHING RETURNING *) SELECT * FROM a
--= {"ok": true, "stmts": [{"kind": "select", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": true, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (1)
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING merge_action(), t.*
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING ONLY s ON true WHEN MATCHED THEN UPDATE SET a = 1 RETURNING old.a, new.a
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
COPY (MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING *) TO STDOUT
--= {"ok": true, "stmts": [{"kind": "copy_to", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
FETCH ABSOLUTE 0x10 c
--= {"ok": true, "stmts": [{"kind": "fetch", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_object('a': 1, 'b' VALUE 2 NULL ON NULL WITH UNIQUE KEYS RETURNING jsonb FORMAT JSON)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_object(), json_object('{a,b}'), json_object(KEY 'a' VALUE 1 ABSENT ON NULL)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": ["json_object"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_array(1, 2 FORMAT JSON NULL ON NULL RETURNING text), json_array(), json_array(SELECT a FROM t ORDER BY 1), json_array(RETURNING jsonb)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_objectagg(k : v ABSENT ON NULL WITHOUT UNIQUE KEYS) FILTER (WHERE a) OVER (PARTITION BY b), json_arrayagg(a ORDER BY b NULL ON NULL RETURNING jsonb) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_value(a, '$.x' PASSING 1 AS y RETURNING int DEFAULT f(2) ON EMPTY ERROR ON ERROR), json_query(a, '$' WITH CONDITIONAL ARRAY WRAPPER KEEP QUOTES ON SCALAR STRING EMPTY OBJECT ON EMPTY), json_exists(a, '$' UNKNOWN ON ERROR) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT a IS JSON, a IS NOT JSON OBJECT WITH UNIQUE KEYS, a IS JSON SCALAR, a IS JSON VALUE FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json('x' WITH UNIQUE KEYS), json_scalar(1), json_serialize('x' RETURNING bytea)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT * FROM json_table(a.b, 'lax $[*]' AS p PASSING 1 AS x COLUMNS (i FOR ORDINALITY, c int PATH '$.c' DEFAULT f(0) ON EMPTY NULL ON ERROR, d jsonb FORMAT JSON PATH '$' WITH WRAPPER OMIT QUOTES, e bool EXISTS PATH '$' FALSE ON ERROR, NESTED PATH '$.n[*]' AS q COLUMNS (f text, NESTED '$.z' COLUMNS (g int))) ERROR ON ERROR) AS jt, t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT jt.* FROM t, LATERAL json_table(t.a, '$' COLUMNS (x int)) jt
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT any_value(a), a IS JSON IS TRUE FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["any_value"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
UPDATE t SET a = 1 RETURNING WITH (OLD AS o, NEW AS n) o.*, n.a + f(o.b)
--= {"ok": true, "stmts": [{"kind": "update", "read_only": false, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
DELETE FROM t RETURNING WITH (OLD AS a, OLD AS b) a.x
--= {"ok": true, "stmts": [{"kind": "delete", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE AND t.a THEN UPDATE SET b = DEFAULT WHEN MATCHED THEN DO NOTHING RETURNING WITH (NEW AS n) merge_action(), n.*
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
WITH m AS (MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING *) INSERT INTO u SELECT * FROM m
--= {"ok": true, "stmts": [{"kind": "insert", "read_only": false, "tables": ["s", "t", "u"], "functions": [], "locking": false, "dml_in_cte": true, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a * f(2)) VIRTUAL, c int NOT NULL NO INHERIT, CONSTRAINT d NOT NULL a, NOT NULL b NOT VALID, CHECK (a>1) NOT ENFORCED)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int4range, PRIMARY KEY (b, a WITHOUT OVERLAPS), FOREIGN KEY (c, PERIOD a) REFERENCES u (c, PERIOD d) NOT ENFORCED)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t", "u"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ALTER CONSTRAINT c NOT ENFORCED, ALTER CONSTRAINT d INHERIT, ADD CONSTRAINT e FOREIGN KEY (a) REFERENCES s.b NOT VALID NOT ENFORCED, ALTER COLUMN x SET EXPRESSION AS (f(y))
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["s.b", "t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ADD CONSTRAINT c UNIQUE (a, b WITHOUT OVERLAPS) DEFERRABLE
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
VACUUM ONLY t
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ANALYZE ONLY a, b (c)
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": ["a", "b"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
GRANT a TO b WITH INHERIT TRUE, SET FALSE
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER DEFAULT PRIVILEGES GRANT ALL ON LARGE OBJECTS TO x
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
REVOKE INHERIT OPTION FOR a FROM b
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE STATISTICS ON a, b FROM t
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_object('a' : (SELECT 1 FROM c FOR UPDATE))
--= {"ok": true, "stmts": [{"kind": "select", "read_only": false, "tables": ["c"], "functions": [], "locking": true, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_array(SELECT 1 FROM c FOR UPDATE)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": false, "tables": ["c"], "functions": [], "locking": true, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT * FROM json_table((SELECT a FROM c FOR UPDATE), '$' COLUMNS (x int))
--= {"ok": true, "stmts": [{"kind": "select", "read_only": false, "tables": ["c"], "functions": [], "locking": true, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_value((SELECT a FROM c FOR UPDATE), '$' DEFAULT (SELECT b FROM d FOR SHARE) ON EMPTY)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": false, "tables": ["c", "d"], "functions": [], "locking": true, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_object('k' : v FORMAT JSON ENCODING "Utf16"), json_array(a FORMAT JSON ENCODING utf8) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_object('k' : v FORMAT JSON ENCODING latin1) FROM t
--= {"ok": false}
ALTER DOMAIN d ADD CONSTRAINT c CHECK (VALUE > 3) NOT ENFORCED
--= {"ok": false}
ALTER DOMAIN d ADD CHECK (VALUE > 3) ENFORCED
--= {"ok": false}
SELECT json_array(1), json_scalar(2) FROM (SELECT 1)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE AND merge_action() = f() THEN DELETE
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT json_exists(a, '$'), json_object('{a,1}') FROM JSON_TABLE(b, '$' COLUMNS (c int)) AS j
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": ["json_object"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
