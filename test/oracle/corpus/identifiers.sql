--# Names: case, quotes, unicode, length, keywords as names.
SELECT * FROM ABC, "ABC", Abc, "Abc"
SELECT * FROM "a""b", "a.b", "a b", "", "a'b"
SELECT * FROM ""
SELECT * FROM " "
SELECT * FROM "	tab"
SELECT * FROM ÄÖÜ, äöü, Élan, "ÉLAN", НАЗВАНИЕ, 表, テーブル, 表.列
SELECT * FROM naïve.ÀB
SELECT * FROM U&"d\0061ta", u&"\00e4", U&"\+01F600x", U&"d!0061ta" UESCAPE '!', U&"a\\b"
SELECT * FROM U&"\D83D\DE00"
SELECT * FROM U&"\D83D"
SELECT * FROM U&"\zzzz"
SELECT * FROM U&"x" UESCAPE 'ab'
SELECT * FROM U&"x" UESCAPE '+'
SELECT * FROM U&"x!0041" UESCAPE /* c */ '!'
SELECT * FROM U & "x"
SELECT * FROM aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab
SELECT * FROM aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab
SELECT * FROM aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabcd, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABCD"
SELECT * FROM éééééééééééééééééééééééééééééééé
SELECT * FROM aééééééééééééééééééééééééééééééééééé, "xéééééééééééééééééééééééééééééééééé"
SELECT * FROM 表表表表表表表表表表表表表表表表表表表表表表表, x表表表表表表表表表表表表表表表表表表表表表表, xy表表表表表表表表表表表表表表表表表表表表表表
SELECT * FROM 😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀, ab😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀
WITH aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa AS (SELECT 1) SELECT * FROM aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbbbbb
SELECT aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb(1)
SELECT U&"\0061\0061\0061aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"(1)
SELECT * FROM a$b, _a, a1, a$1, $a
SELECT * FROM a$$b
SELECT * FROM 1a
SELECT * FROM user
SELECT * FROM "user"
SELECT * FROM s.user, s.select, s.table, s.from, a.b.order
SELECT s.select(1), s.table(2), a.b.user()
SELECT select(1)
SELECT * FROM left
SELECT * FROM binary
SELECT * FROM verbose
SELECT * FROM concurrently
SELECT * FROM between
SELECT * FROM int
SELECT * FROM values
SELECT * FROM row
SELECT * FROM time, timestamp, interval, char, numeric, setof, out, inout, none, precision, position, overlay, xmltable
SELECT * FROM coalesce
SELECT * FROM name, text, date, type, key, value, index, view, schema, role, data, level, zone, work, begin, end_
SELECT * FROM end
SELECT time, timestamp, interval, char, int, values, row, none FROM t
SELECT time.a FROM time
SELECT a AS select, b AS from, c AS where, d AS "As" FROM t
SELECT a select FROM t
SELECT a type, b key, c value, d date, e text, f name, g zone FROM t
SELECT a year FROM t
SELECT a AS year, b AS over, c AS filter, d AS within, e AS without FROM t
SELECT a over FROM t
SELECT a filter FROM t
SELECT a character FROM t
SELECT a precision, b isnull FROM t
SELECT a.over, a.filter, a.year FROM t a
SELECT left, right FROM t
SELECT l.left FROM t l
SELECT count FROM count
SELECT nulls first FROM t
SELECT a FROM t ORDER BY nulls NULLS FIRST, first, last
SELECT a nulls FROM t
SELECT * FROM t nulls
SELECT * FROM t first
SELECT * FROM t with_
SELECT * FROM t AS with
SELECT not_ FROM t
SELECT * FROM t lateral
SELECT * FROM t natural
SELECT * FROM t AS natural
SELECT * FROM t left
SELECT * FROM t set
SELECT * FROM t values
SELECT * FROM t partition
SELECT * FROM t tablesample
UPDATE t set SET set = 1
UPDATE t SET set = 1, value = 2, t.a = 3, b[1] = 4, c.d.e = 5
UPDATE set SET a = 1
DELETE FROM t using
DELETE FROM using
DELETE FROM t AS using_
INSERT INTO t (select) VALUES (1)
INSERT INTO t ("select", value, key, type, year) VALUES (1, 2, 3, 4, 5)
INSERT INTO values VALUES (1)
INSERT INTO t AS v VALUES (1)
INSERT INTO t v VALUES (1)
CREATE TABLE type (type text, date date, time time, timestamp timestamp, interval interval, "int" int)
CREATE TABLE t (int int)
CREATE TABLE t (user int)
CREATE TABLE t (order int)
CREATE TABLE t (left int)
CREATE TABLE t (value text, key int, name varchar, position int, values int, row int)
CREATE FUNCTION left(a int) RETURNS int AS '' LANGUAGE sql
CREATE FUNCTION coalesce(a int) RETURNS int AS '' LANGUAGE sql
CREATE TYPE left AS (a int)
SELECT 'a'::left
SELECT a::name, b::text, c::public."My Type", d::"char", e::char, f::bpchar FROM t
SELECT CAST(a AS left), CAST(b AS type), CAST(c AS key)
SET ROLE select
SET ROLE "select"
SET search_path = "A", b, 'C'
SET "My"."Var" TO 'x'
SET a.b.c = 1
SET a = b.c
SAVEPOINT "A"
SAVEPOINT type
SAVEPOINT select
LISTEN "Chan"
LISTEN a.b
NOTIFY type
PREPARE type AS SELECT 1
EXECUTE type
DEALLOCATE prepare
DEALLOCATE PREPARE prepare
DECLARE type CURSOR FOR SELECT 1
FETCH from
FETCH FROM from_
FETCH next
FETCH NEXT FROM next
FETCH FROM next
FETCH forward
FETCH FORWARD FORWARD
FETCH all
FETCH first FROM c
FETCH absolute FROM c
MOVE in
CLOSE all
CLOSE "all"
DEALLOCATE "all"
DISCARD temp
SHOW all
SHOW "all"
RESET "all"
