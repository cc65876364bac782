--# Comments and white space where they may and may not stand.
SELECT 1 -- end
SELECT 1 --
SELECT /* a */ 1
SELECT /* a /* b */ c */ 1
SELECT /* a /* b */ 1
SELECT /* a
SELECT 1 /* -- */ + 2
SELECT 1 */ 2
SELECT 1 * /* x */ 2
SELECT 1 */* x */ 2
SELECT 1 */* x */* 2
SELECT 1 +/* x */- 2
SELECT 1 -/* x */- 2
SELECT 1 --x*/ 2
SELECT 1 <-- 2
SELECT a <--> b
SELECT a @-/* c */ b
SELECT a/*+ hint */b
SELECT/**/1
SELECT/**/*/**/FROM/**/t
/**/
--
/* only */ -- comment
/*/*/*/**/*/*/*/
/*/
/* /* */
/* * / */ SELECT 1
/* ' */ SELECT 'a' /* " */
/* $$ */ SELECT $$ /* not */ -- not $$ -- yes $$
SELECT '/* no */', "-- no", $a$ -- no */ $a$ FROM "/*t*/"
SELECT a NOT /* c */ LIKE 'x', b NOT /* c */ IN (1), c NOT /* c */ BETWEEN 1 AND 2, d NOT /* c */ ILIKE 'y', e NOT/**/SIMILAR TO 'z' FROM t
SELECT a FROM t ORDER BY a NULLS /* c */ FIRST, b NULLS/**/LAST
WITH /* c */ t AS /* c */ NOT /* c */ MATERIALIZED (SELECT 1) SELECT * FROM /* c */ t
SELECT time WITH /* c */ TIME ZONE '12:00', timestamp /* c */ WITH /* c */ TIME /* c */ ZONE 'now'
SELECT a::timestamp WITHOUT /* c */ TIME ZONE, b::time WITH/**/TIME ZONE FROM t
SELECT * FROM f() WITH /* c */ ORDINALITY
SELECT U&'d!0061' /* c */ UESCAPE /* c */ '!'
SELECT 'a' /* c */ 'b'
SELECT 1 FROM t WHERE a IS /* c */ NOT /* c */ NULL AND b IS/**/DISTINCT/**/FROM c
SELECT f /* c */ ( /* c */ a /* c */ ) /* c */ OVER /* c */ ( /* c */ )
SELECT s /* c */ . /* c */ f /* c */ (1) FROM a /* c */ . /* c */ b
SELECT a /* c */ :: /* c */ int, b : /* c */ : int
SELECT a : : int
SELECT a > /* c */ = b
SELECT a >/**/= b
SELECT a <= /* c */ b, c != /* c */ d
SELECT $1 /* c */, $/**/1
SELECT $ 1
BEGIN /* c */ ; -- d
; /* c */ ; -- x
/* lead */ INSERT /* c */ INTO t VALUES (1)
/* route to primary */ SELECT 1
/*NO LOAD BALANCE*/ SELECT * FROM t
-- sqlcommenter /*controller='x'*/
SELECT 1 /*controller='index',framework='rails%3A7'*/
--{{
SELECT 'a' -- c
'b'
--}}
--{{
SELECT 'a'
'b'
--}}
--{{
SELECT 'a'
  -- comment
  'b'
  -- another
  'c'
--}}
--{{
SELECT 'a' /* c */
'b'
--}}
--{{
SELECT 'a'
/* c */ 'b'
--}}
--{{
SELECT 'a' -- x
/* c */ 'b'
--}}
--{{
SELECT E'a\n'
'b\n' , e'x'
  'y', B'10'
'01', X'1'
'f', U&'\0061'
'\0062', N'a'
'b'
--}}
--{{
SELECT 'a'
E'b'
--}}
--{{
SELECT B'1'
X'1'
--}}
--{{
SELECT $$a$$
$$b$$
--}}
--{{
SELECT "a"
"b"
--}}
--{{
SELECT 1 -- one
     , 2 -- two /* open
     , 3
--}}
--{{
SELECT 1
/* multi
   line -- nested
   /* deep */
*/
FROM t
--}}
--{{
-- first line
SELECT * -- all
FROM t -- the table
WHERE a = 1; -- done
--}}
--{{
INSERT INTO t VALUES
  (1, 'x'), -- one
  (2, 'y')  /* two */
;
-- tail
--}}
--{{

SELECT

1

;

--}}
	SELECT	1	
SELECT1
SELECT 1FROM t
SELECT 1 FROM t WHERE a=1AND b=2
SELECT 1.FROM t
SELECT 1e FROM t
SELECT 1.5e+ FROM t
SELECT .e1
SELECT 1..2
SELECT 1 .. 2
SELECT a[1:2], a[1 :2], a[b:c], a[b::int:2], a[:], a[:1], a[1:] FROM t
SELECT 0xFFg
SELECT $1a
SELECT $1FROM t
SELECT 'a'FROM t
SELECT 'a'b
SELECT "a"b FROM t
SELECT "a"FROM"t"WHERE"b"='c'
SELECT(1)
SELECT(SELECT(1))
SELECT*FROM t
SELECT-1
SELECT+1
SELECT!1
SELECT@-1
SELECT~1
SELECT a=-1, a<-1, a>-1, a+-1, a*-1, a- -1, a||-1, a=@1, a@-1, a<>-1 FROM t
SELECT a--1 FROM t
SELECT a = - 1
SELECT a *- 1, a /+ 2
SELECT a ?- b, a ?| b, a @@@ b, a <<| b, a &&& b, a !~~ b, a ->> b, a #- b, a @? b, a ^@ b, a ~>=~ b
SELECT a <> b, a != b, a <>- b, a !=- b, a <=> b, a >< b, a === b, a => b
SELECT a := b
SELECT a ;: b
SELECT a\b
SELECT a ` b
SELECT {a}
SELECT #a, a # b, a #> b, a #>> b
SELECT :a
SELECT a, FROM t
SELECT ;
