--# What PostgreSQL 18 added. Where 15 refuses a text, the answer expected stands below it.
INSERT INTO t VALUES (1) RETURNING WITH (OLD AS o, NEW AS n) o.a, n.a
--= {"ok": true, "stmts": [{"kind": "insert", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
UPDATE t SET a = f(a) RETURNING WITH (OLD AS before) before.a, new.a, old.*
--= {"ok": true, "stmts": [{"kind": "update", "read_only": false, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
DELETE FROM t RETURNING WITH (NEW AS n) old.*, n.*
--= {"ok": true, "stmts": [{"kind": "delete", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
MERGE INTO t USING s ON true WHEN MATCHED THEN UPDATE SET a = 1 RETURNING WITH (OLD AS o) o.a, g(o)
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["s", "t"], "functions": ["g"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
WITH x AS (UPDATE t SET a = 1 RETURNING old.a, new.a) SELECT * FROM x
CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a * 2) VIRTUAL)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int, b int GENERATED ALWAYS AS (f(a)))
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a) STORED)
CREATE TABLE t (id int, p daterange, PRIMARY KEY (id, p WITHOUT OVERLAPS))
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (id int, p daterange, CONSTRAINT u UNIQUE (id, p WITHOUT OVERLAPS))
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (id int, p daterange, FOREIGN KEY (id, PERIOD p) REFERENCES r (id, PERIOD p))
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["r", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (id int, FOREIGN KEY (id, PERIOD p) REFERENCES s.r)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["s.r", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ADD CONSTRAINT c PRIMARY KEY (a, b WITHOUT OVERLAPS)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int CHECK (a > 0) NOT ENFORCED, b int CHECK (b > 0) ENFORCED)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int REFERENCES r NOT ENFORCED, FOREIGN KEY (a) REFERENCES q NOT ENFORCED)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["q", "r", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int, CONSTRAINT c CHECK (a > 0) NOT ENFORCED NO INHERIT)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES r (b) NOT ENFORCED
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["r", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ALTER CONSTRAINT c NOT ENFORCED
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ALTER CONSTRAINT c ENFORCED DEFERRABLE
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ALTER CONSTRAINT c INHERIT
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ALTER CONSTRAINT c NO INHERIT
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int, NOT NULL a)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int, CONSTRAINT c NOT NULL a NO INHERIT)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ADD CONSTRAINT c NOT NULL a NOT VALID
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER TABLE t ADD NOT NULL a
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int NOT NULL NO INHERIT)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
COPY t FROM STDIN WITH (ON_ERROR ignore, REJECT_LIMIT 10)
VACUUM ONLY t
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
VACUUM (ANALYZE) ONLY t, ONLY s.u (a)
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": ["s.u", "t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ANALYZE ONLY t
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ANALYZE ONLY t (a, b), u
--= {"ok": true, "stmts": [{"kind": "other", "read_only": false, "tables": ["t", "u"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
EXPLAIN (ANALYZE, BUFFERS off, WAL) SELECT 1
ALTER DEFAULT PRIVILEGES GRANT SELECT ON LARGE OBJECTS TO u
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
ALTER DEFAULT PRIVILEGES IN SCHEMA s REVOKE ALL ON LARGE OBJECTS FROM PUBLIC
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": [], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE FOREIGN TABLE f (LIKE t INCLUDING ALL) SERVER s
CREATE SUBSCRIPTION s CONNECTION 'c' PUBLICATION p WITH (two_phase = true, streaming = parallel)
SELECT uuidv7(), casefold(a), array_sort(b), crc32('x') FROM t
ALTER TABLE t ADD COLUMN c int GENERATED ALWAYS AS (a + b) VIRTUAL
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE INDEX i ON t USING gin (a) WITH (parallel_workers = 2)
ALTER TABLE ONLY t ALTER CONSTRAINT c NOT DEFERRABLE NOT ENFORCED
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t"], "functions": [], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
