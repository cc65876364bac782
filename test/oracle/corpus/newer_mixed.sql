--# What 16 to 18 added, several things at once; the answer expected is what a libpg_query of 18 says.
MERGE INTO ONLY t x USING u ON f(x.a) WHEN NOT MATCHED BY SOURCE AND g() THEN UPDATE SET a = merge_action() RETURNING merge_action(), h(x.*)
--= {"ok": true, "stmts": [{"kind": "merge", "read_only": false, "tables": ["t", "u"], "functions": ["f", "g", "h"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
WITH m AS (MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE RETURNING OLD.a, f(NEW.b)) SELECT * FROM m FOR UPDATE
--= {"ok": true, "stmts": [{"kind": "select", "read_only": false, "tables": ["t", "u"], "functions": ["f"], "locking": true, "dml_in_cte": true, "into": false, "temp": false, "params": 0}]}
UPDATE t SET a = 1 RETURNING WITH (OLD AS o, NEW AS n) f(o.a), n.*
--= {"ok": true, "stmts": [{"kind": "update", "read_only": false, "tables": ["t"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT * FROM JSON_TABLE(f(), '$.a[*] ? (@.b > $x)' PASSING g() AS x COLUMNS (a int PATH '$.a' DEFAULT h() ON EMPTY ERROR ON ERROR, NESTED PATH '$.c' COLUMNS (d FOR ORDINALITY))) AS j, u
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["u"], "functions": ["f", "g", "h"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_OBJECT('a' VALUE f(), 'b' : g() NULL ON NULL WITH UNIQUE KEYS RETURNING jsonb), JSON_ARRAY(SELECT h() FROM t), JSON_ARRAYAGG(i() ORDER BY j() ABSENT ON NULL) FILTER (WHERE k()), JSON_OBJECTAGG(l() : m())
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f", "g", "h", "i", "j", "k", "l", "m"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT JSON_VALUE(f(), '$' RETURNING int DEFAULT g() ON EMPTY), JSON_QUERY(a, '$' WITH CONDITIONAL ARRAY WRAPPER OMIT QUOTES ON SCALAR STRING), JSON_EXISTS(h(), '$' PASSING i() AS x TRUE ON ERROR), JSON(j() WITH UNIQUE), JSON_SCALAR(k()), JSON_SERIALIZE(l() RETURNING bytea FORMAT JSON) FROM t
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": ["t"], "functions": ["f", "g", "h", "i", "j", "k", "l"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
SELECT a IS JSON OBJECT WITH UNIQUE KEYS, f() IS NOT JSON ARRAY, any_value(b), 0x1F, 0o17, 0b101, 1_000.5_0e1_0, now() AT LOCAL FROM (SELECT 1)
--= {"ok": true, "stmts": [{"kind": "select", "read_only": true, "tables": [], "functions": ["any_value", "f", "now"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
CREATE TABLE t (a int GENERATED ALWAYS AS (f(b)) VIRTUAL, c int NOT NULL NO INHERIT, PRIMARY KEY (a, p WITHOUT OVERLAPS), FOREIGN KEY (a, PERIOD p) REFERENCES u (a, PERIOD p) NOT ENFORCED)
--= {"ok": true, "stmts": [{"kind": "ddl", "read_only": false, "tables": ["t", "u"], "functions": ["f"], "locking": false, "dml_in_cte": false, "into": false, "temp": false, "params": 0}]}
