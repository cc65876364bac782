--# What object mappers, drivers and benchmark programs send, in their style.
SELECT "auth_user"."id", "auth_user"."username" FROM "auth_user" WHERE ("auth_user"."is_active" AND NOT ("auth_user"."id" IN (SELECT U0."id" FROM "blog_post" U0 WHERE U0."rank" = 5))) ORDER BY "auth_user"."username" ASC LIMIT 21
SELECT COUNT(*) FROM (SELECT DISTINCT ON ("a"."id") "a"."id" AS Col1 FROM "a" INNER JOIN "b" ON ("a"."b_id" = "b"."id") WHERE UPPER("b"."name"::text) LIKE UPPER('%x%')) subquery
INSERT INTO "django_session" ("session_key", "session_data", "expire_date") SELECT 'abc', 'def', '2024-01-01T00:00:00+00:00'::timestamptz RETURNING "django_session"."session_key"
UPDATE "blog_post" SET "views" = ("blog_post"."views" + 1), "title" = CASE WHEN ("blog_post"."id" = 1) THEN 'a' WHEN ("blog_post"."id" = 2) THEN 'b' ELSE NULL END WHERE "blog_post"."id" IN (1, 2)
SELECT "t"."id", EXTRACT('year' FROM "t"."created" AT TIME ZONE 'UTC') AS "y", DATE_TRUNC('month', "t"."created" AT TIME ZONE 'Europe/Paris') AS "m", ("t"."data" -> 'a') AS "j", ("t"."data" #> '{a,b}')::text, "t"."tags" && (ARRAY['x'])::varchar(10)[] FROM "t" WHERE "t"."data" @> '{"k": 1}' AND ("t"."data" ? 'k') AND to_tsvector(COALESCE("t"."body", '')) @@ (plainto_tsquery('x'))
SELECT (1) AS "a" FROM "x" WHERE "x"."id" = 1 LIMIT 1
SAVEPOINT "s140_x1"
RELEASE SAVEPOINT "s140_x1"
ROLLBACK TO SAVEPOINT "s140_x1"
DECLARE "_django_curs_1_sync_1" NO SCROLL CURSOR WITH HOLD FOR SELECT "a"."id" FROM "a"
ALTER TABLE "app_x" ADD COLUMN "f" integer DEFAULT 0 NOT NULL CHECK ("f" >= 0)
ALTER TABLE "app_x" ALTER COLUMN "f" DROP DEFAULT
CREATE INDEX "app_x_name_like" ON "app_x" ("name" varchar_pattern_ops)
ALTER TABLE "a" ADD CONSTRAINT "a_b_fk" FOREIGN KEY ("b_id") REFERENCES "b" ("id") DEFERRABLE INITIALLY DEFERRED
SET CONSTRAINTS "a_b_fk" IMMEDIATE; ALTER TABLE "a" DROP CONSTRAINT "a_b_fk"
SELECT users.id AS users_id, users.name AS users_name, addresses_1.email AS addresses_1_email FROM users LEFT OUTER JOIN addresses AS addresses_1 ON users.id = addresses_1.user_id WHERE users.name IN ($1::VARCHAR, $2::VARCHAR) ORDER BY users.id, addresses_1.id
SELECT anon_1.users_id FROM (SELECT users.id AS users_id FROM users ORDER BY users.id LIMIT $1::INTEGER OFFSET $2::INTEGER) AS anon_1 JOIN addresses ON anon_1.users_id = addresses.user_id
INSERT INTO users (name, fullname) VALUES (%(name)s, %(fullname)s)
INSERT INTO users (name, n) SELECT p0::VARCHAR, p1::INTEGER FROM (VALUES ($1, $2, 0), ($3, $4, 1)) AS imp_sen(p0, p1, sen_counter) ORDER BY sen_counter RETURNING users.id, users.id AS id__1
WITH RECURSIVE cte(id, parent, lvl) AS (SELECT n.id AS id, n.parent AS parent, $1::INTEGER AS lvl FROM nodes AS n WHERE n.parent IS NULL UNION ALL SELECT n2.id, n2.parent, cte.lvl + $2 FROM nodes AS n2, cte WHERE n2.parent = cte.id) SELECT cte.id FROM cte
SELECT "users".* FROM "users" WHERE "users"."id" = $1 LIMIT $2
SELECT 1 AS one FROM "users" WHERE LOWER("users"."email") = LOWER($1) AND "users"."id" != $2 LIMIT $3
INSERT INTO "users" ("name", "created_at", "updated_at") VALUES ($1, $2, $3) RETURNING "id"
INSERT INTO "books" ("author_id","name") VALUES (1, 'x'), (2, 'y') ON CONFLICT ("author_id","name") DO UPDATE SET updated_at=(CASE WHEN ("books"."x" IS NOT DISTINCT FROM excluded."x") THEN "books".updated_at ELSE CURRENT_TIMESTAMP END),"x"=excluded."x" RETURNING "id"
SELECT DISTINCT "posts"."id", posts.created_at AS alias_0 FROM "posts" LEFT OUTER JOIN "comments" ON "comments"."post_id" = "posts"."id" WHERE (comments.body ILIKE '%it''s%') ORDER BY posts.created_at DESC LIMIT 10
SELECT pg_try_advisory_lock(2142616474639426746)
SELECT "schema_migrations"."version" FROM "schema_migrations" ORDER BY "schema_migrations"."version" ASC
CREATE TABLE "users" ("id" bigserial primary key, "name" character varying DEFAULT '' NOT NULL, "meta" jsonb DEFAULT '{}', "created_at" timestamp(6) without time zone NOT NULL)
CREATE UNIQUE INDEX CONCURRENTLY "index_users_on_lower_email" ON "users" (lower(email)) WHERE deleted_at IS NULL
select user0_.id as id1_0_, user0_.name as name2_0_ from users user0_ left outer join roles r1_ on user0_.role_id=r1_.id where user0_.name=$1 and (r1_.kind is null or r1_.kind in ($2 , $3)) order by user0_.id asc limit $4 for update of user0_ skip locked
select nextval ('hibernate_sequence')
select count(*) as col_0_0_ from A a0_ cross join B b1_ where a0_.b_id=b1_.id and (lower(b1_.x) like ($1||'%') escape '!')
insert into t (version, name, id) values ($1, $2, $3)
update t set version=$1, name=$2 where id=$3 and version=$4
select t1_0.id,t1_0.x from t t1_0 where t1_0.d between $1 and $2 fetch first $3 rows only
with q as (select row_number() over (partition by o1_0.c order by o1_0.d desc) rn from o o1_0) select * from q q1_0(rn) where q1_0.rn=1
SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User" WHERE ("public"."User"."email" = $1 AND 1=1) LIMIT $2 OFFSET $3
SELECT "t0"."id", COALESCE("t1"."__prisma_data__", '[]'::jsonb) AS "posts" FROM "public"."User" AS "t0" LEFT JOIN LATERAL (SELECT JSONB_AGG("__prisma_data__") AS "__prisma_data__" FROM (SELECT "t3"."__prisma_data__" FROM (SELECT JSONB_BUILD_OBJECT('id', "t2"."id") AS "__prisma_data__" FROM "public"."Post" AS "t2" WHERE "t0"."id" = "t2"."authorId") AS "t3") AS "t4") AS "t1" ON TRUE WHERE $1=$2
INSERT INTO "public"."User" ("email","name") VALUES ($1,$2) ON CONFLICT DO NOTHING RETURNING "public"."User"."id"
BEGIN ISOLATION LEVEL SERIALIZABLE
DEALLOCATE ALL
DISCARD ALL
SELECT "User"."id", count("Posts"."id")::int AS "n" FROM "Users" AS "User" INNER JOIN ("UserPosts" AS "Posts->UP" INNER JOIN "Posts" AS "Posts" ON "Posts"."id" = "Posts->UP"."postId") ON "User"."id" = "Posts->UP"."userId" GROUP BY "User"."id" HAVING count("Posts"."id") > 3
SELECT b."Id", b."Url", (b."Json" ->> 'a')::integer FROM "Blogs" AS b WHERE b."Id" = ANY (@__ids_0) OR @__ids_0 IS NULL
SELECT t."Id" FROM unnest($1::int[]) WITH ORDINALITY AS i(value, ord) JOIN "T" AS t ON t."Id" = i.value ORDER BY i.ord
BEGIN; UPDATE pgbench_accounts SET abalance = abalance + 10 WHERE aid = 1; SELECT abalance FROM pgbench_accounts WHERE aid = 1; UPDATE pgbench_tellers SET tbalance = tbalance + 10 WHERE tid = 1; UPDATE pgbench_branches SET bbalance = bbalance + 10 WHERE bid = 1; INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, 1, 10, CURRENT_TIMESTAMP); END;
SELECT abalance FROM pgbench_accounts WHERE aid = 12345;
copy pgbench_accounts from stdin with (freeze on)
create table pgbench_accounts(aid int not null,bid int,abalance int,filler char(84)) with (fillfactor=100)
vacuum analyze pgbench_branches
truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers
insert into pgbench_tellers(tid,bid,tbalance) select (bid - 1) * 10 + 1, bid, 0 from generate_series(1, 10) as bid
alter table pgbench_branches add primary key (bid) using index tablespace x
SELECT c FROM sbtest1 WHERE id=$1
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c
SELECT SUM(k) FROM sbtest3 WHERE id BETWEEN 100 AND 200
INSERT INTO sbtest1 (id, k, c, pad) VALUES ($1, $2, $3, $4)
SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = $1 AND d_id = $2 FOR UPDATE
SELECT s_quantity, s_data, s_dist_01 FROM stock WHERE s_w_id = 1 AND s_i_id = 2 FOR NO KEY UPDATE
UPDATE stock SET s_quantity = CASE WHEN s_quantity >= 15 THEN s_quantity - 5 ELSE s_quantity - 5 + 91 END, s_ytd = s_ytd + 5, s_order_cnt = s_order_cnt + 1 WHERE (s_i_id, s_w_id) IN ((1, 1), (2, 1)) RETURNING s_quantity
DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = (SELECT no_o_id FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 ORDER BY no_o_id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING no_o_id
SELECT COUNT(DISTINCT (s_i_id)) FROM order_line, stock WHERE ol_w_id = 1 AND ol_o_id < 3000 AND ol_o_id >= 3000 - 20 AND s_i_id = ol_i_id AND s_quantity < 15
select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_discount), count(*) from lineitem where l_shipdate <= date '1998-12-01' - interval '90' day group by l_returnflag, l_linestatus order by 1, 2
select s_name, p_partkey from part, supplier, partsupp where p_partkey = ps_partkey and p_type like '%BRASS' and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier where p_partkey = ps_partkey and s_suppkey = ps_suppkey) order by s_name limit 100
select nation, o_year, sum(amount) from (select n_name as nation, extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount from part, supplier, lineitem where p_name like '%green%') as profit group by nation, o_year order by nation, o_year desc
create view revenue0 (supplier_no, total_revenue) as select l_suppkey, sum(l_extendedprice) from lineitem where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval '3' month group by l_suppkey; select s_suppkey from supplier, revenue0 where total_revenue = (select max(total_revenue) from revenue0); drop view revenue0
select c_count, count(*) from (select c_custkey, count(o_orderkey) from customer left outer join orders on c_custkey = o_custkey and o_comment not like '%special%requests%' group by c_custkey) as c_orders (c_custkey, c_count) group by c_count
select sum(l_extendedprice) / 7.0 from lineitem where l_quantity < all (select 0.2 * avg(l_quantity) from lineitem) and exists (select * from orders where not exists (table nation))
with customer_total_return as (select sr_customer_sk as ctr_customer_sk, sum(sr_return_amt) as r from store_returns, date_dim group by sr_customer_sk) select c_customer_id from customer_total_return ctr1, store, customer where ctr1.r > (select avg(r) * 1.2 from customer_total_return ctr2 where ctr1.ctr_customer_sk = ctr2.ctr_customer_sk) order by 1 limit 100
with ss as (select i_category, i_class, sum(x) s, grouping(i_category) + grouping(i_class) as lochierarchy, rank() over (partition by grouping(i_category) + grouping(i_class), case when grouping(i_class) = 0 then i_category end order by sum(x) desc) as rk from item, store_sales group by rollup(i_category, i_class)) select * from ss order by lochierarchy desc, case when lochierarchy = 0 then i_category end, rk
select substr(r_reason_desc, 1, 20), avg(ws_quantity) from web_sales, reason where ((cd1.a = 'M' and b between 100.00 and 150.00) or (c in ('x', 'y') and d not in (select 1 intersect select 2 except select 3))) group by r_reason_desc having count(*) > 1
select item_sk, rnk from (select * from (select item_sk, rank() over (order by rank_col asc) rnk from (select ss_item_sk item_sk, avg(p) rank_col from s ss1 where ss_store_sk = 4 group by ss_item_sk having avg(p) > 0.9 * (select avg(p) rank_col from s where a is null group by ss_store_sk)) v1) v11 where rnk < 11) asceding
explain (analyze, buffers, format json) select 1
SELECT 1;
select 1;;
;select 1
BEGIN;;COMMIT
SELECT 1; SELECT 2; INSERT INTO t VALUES (1); SELECT * FROM u FOR UPDATE
START TRANSACTION READ ONLY; SELECT 1; COMMIT
SET LOCAL lock_timeout = '1s'; LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE NOWAIT
LISTEN jobs; UNLISTEN jobs; UNLISTEN *
SELECT 1; SELECT 1 1; SELECT 2
SELECT 1 SELECT 2
