/* SPDX-License-Identifier: PostgreSQL
 * test_parser_session.c: facts about transactions, settings, prepared statements and cursors. */
#include "config.h"

#include <stdlib.h>

#include "parser/leading.h"
#include "parser_util.h"
#include "run_suite.h"

START_TEST(transactions)
{
    const struct sql_stmt *s =
        one("START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY NOT DEFERRABLE");

    ck_assert_int_eq(s->kind, SQL_BEGIN);
    ck_assert_int_eq(s->tx.op, SQL_TX_BEGIN);
    ck_assert_int_eq(s->tx.isolation, SQL_ISO_REPEATABLE_READ);
    ck_assert_int_eq(s->tx.read_only, SQL_YES);
    ck_assert_int_eq(s->tx.deferrable, SQL_NO);
    s = one("begin");
    ck_assert_int_eq(s->tx.read_only, SQL_UNSET);
    s = one("COMMIT AND CHAIN");
    ck_assert_int_eq(s->kind, SQL_COMMIT);
    ck_assert(s->flags & SQL_F_CHAIN);
    ck_assert(!(one("END AND NO CHAIN")->flags & SQL_F_CHAIN));
    s = one("ROLLBACK WORK TO SAVEPOINT \"A b\"");
    ck_assert_int_eq(s->kind, SQL_SAVEPOINT);
    ck_assert_int_eq(s->tx.op, SQL_TX_ROLLBACK_TO);
    ck_assert_str_eq(str(s->tx.name), "A b");
    s = one("PREPARE TRANSACTION 'it''s'");
    ck_assert_int_eq(s->kind, SQL_OTHER);
    ck_assert_int_eq(s->tx.op, SQL_TX_PREPARE);
    ck_assert_str_eq(str(s->tx.name), "it's");
}
END_TEST

static void check_set(
    const char *text, enum sql_set_scope scope, const char *name, const char *value)
{
    const struct sql_stmt *s = one(text);

    ck_assert_int_eq(s->kind, SQL_SET);
    ck_assert_msg(s->set.scope == scope, "%s: scope %d", text, (int)s->set.scope);
    ck_assert_str_eq(str(s->set.name), name);
    ck_assert_str_eq(str(s->set.value), value);
    ck_assert_int_eq((s->flags & SQL_F_LITERAL_DEPENDS) != 0, *value != '\0');
    ck_assert_int_eq(s->set.how, *value != '\0' ? SQL_SET_VALUE : SQL_SET_DEFAULT);
}

START_TEST(settings)
{
    check_set("SET Work_Mem = '4MB'", SQL_SET_SESSION, "work_mem", "'4MB'");
    check_set("SET LOCAL a.\"B\" TO 1, -2.5 , on ;", SQL_SET_LOCAL, "a.B", "1, -2.5 , on");
    check_set("SET SESSION x TO DEFAULT", SQL_SET_SESSION, "x", "");
    check_set("SET TIME ZONE INTERVAL '1' HOUR", SQL_SET_SESSION, "timezone", "INTERVAL '1' HOUR");
    check_set("SET TIME ZONE LOCAL", SQL_SET_SESSION, "timezone", "");
    check_set("SET ROLE none", SQL_SET_SESSION, "role", "none");
    check_set("SET SESSION AUTHORIZATION DEFAULT", SQL_SET_SESSION, "session_authorization", "");
    check_set("SET NAMES 'utf8'", SQL_SET_SESSION, "client_encoding", "'utf8'");
    check_set("SET SCHEMA 'x'", SQL_SET_SESSION, "search_path", "'x'");
    check_set("SET TRANSACTION READ WRITE", SQL_SET_TRANSACTION, "transaction", "READ WRITE");
    ck_assert_int_eq(one("SET TRANSACTION READ WRITE")->tx.read_only, SQL_NO);
    check_set("SET SESSION CHARACTERISTICS AS TRANSACTION DEFERRABLE", SQL_SET_CHARACTERISTICS,
        "transaction", "DEFERRABLE");
    check_set("SET CONSTRAINTS ALL DEFERRED", SQL_SET_CONSTRAINTS, "constraints", "DEFERRED");
    ck_assert_int_eq(one("RESET ALL")->set.how, SQL_SET_RESET_ALL);
    ck_assert(one("RESET ALL")->flags & SQL_F_ALL);
    ck_assert_str_eq(str(one("RESET a.b")->set.name), "a.b");
    ck_assert_str_eq(
        str(one("SHOW TRANSACTION ISOLATION LEVEL")->set.name), "transaction_isolation");
}
END_TEST

START_TEST(set_inside_other_statements_is_not_ours)
{
    const struct sql_stmt *s = one("ALTER ROLE a SET TRANSACTION READ ONLY");

    ck_assert_int_eq(s->kind, SQL_DDL);
    ck_assert_int_eq(s->set.scope, SQL_SET_NONE);
    ck_assert_int_eq(s->tx.read_only, SQL_UNSET);
    s = one("CREATE FUNCTION f() RETURNS int LANGUAGE sql SET a = 1 RESET ALL AS 'x'");
    ck_assert_uint_eq(s->set.name.n, 0);
    ck_assert(!(s->flags & SQL_F_ALL));
    s = one("CREATE PROCEDURE p() BEGIN ATOMIC COMMIT; SET a = 1; SELECT 1; END");
    ck_assert_int_eq(s->kind, SQL_DDL);
    ck_assert_int_eq(s->tx.op, SQL_TX_NONE);
    ck_assert_int_eq(s->set.scope, SQL_SET_NONE);
}
END_TEST

START_TEST(names_and_inner_statements)
{
    const char *text = "PREPARE \"P\" (int) AS  DELETE FROM t WHERE a = $1 ;";
    const struct sql_stmt *s = one(text);

    ck_assert_int_eq(s->kind, SQL_PREPARE);
    ck_assert_int_eq(s->inner, SQL_DELETE);
    ck_assert_str_eq(str(s->name), "P");
    ck_assert_str_eq(
        arena_strndup(arena, text + s->body.offset, s->body.len), "  DELETE FROM t WHERE a = $1");
    s = one("EXPLAIN ANALYZE VERBOSE SELECT 1");
    ck_assert_int_eq(s->inner, SQL_SELECT);
    ck_assert(s->flags & SQL_F_ANALYZE);
    s = one("DECLARE c NO SCROLL CURSOR WITH HOLD FOR VALUES (1)");
    ck_assert_int_eq(s->inner, SQL_VALUES);
    ck_assert(s->flags & SQL_F_WITH_HOLD);
    ck_assert_str_eq(str(s->name), "c");
    ck_assert_str_eq(str(one("EXECUTE p (1, 2)")->name), "p");
    ck_assert_str_eq(str(one("DEALLOCATE PREPARE p")->name), "p");
    ck_assert(one("DEALLOCATE ALL")->flags & SQL_F_ALL);
    ck_assert_str_eq(str(one("FETCH FORWARD 3 FROM cur")->name), "cur");
    ck_assert(one("MOVE cur")->flags & SQL_F_MOVE);
    ck_assert_str_eq(str(one("LISTEN Chan")->name), "chan");
    ck_assert_str_eq(str(one("NOTIFY x, 'y'")->name), "x");
    ck_assert_int_eq(one("UNLISTEN *")->verb, SQL_VERB_UNLISTEN);
    ck_assert_str_eq(str(one("DISCARD PLANS")->name), "plans");
    ck_assert_int_eq(one("LOCK t")->lock_mode, SQL_LOCK_ACCESS_EXCLUSIVE);
    ck_assert_int_eq(one("LOCK t IN ROW SHARE MODE")->lock_mode, SQL_LOCK_ROW_SHARE);
    ck_assert_int_eq(one("CREATE TABLE t AS VALUES (1)")->inner, SQL_VALUES);
}
END_TEST

/* A name alone, or with that of a template behind it. */
START_TEST(what_needs_a_database_to_itself)
{
    const struct sql_stmt *s = one("CREATE DATABASE d");

    ck_assert_int_eq(s->verb, SQL_VERB_CREATE_DATABASE);
    ck_assert(s->flags & SQL_F_ALONE);
    ck_assert_str_eq(str(s->name), "d");
    s = one("CREATE DATABASE d WITH OWNER x TEMPLATE = 'T' CONNECTION LIMIT 3");
    ck_assert_int_eq(s->name.n, 3);
    ck_assert_int_eq(memcmp(s->name.p, "d\0T", 3), 0);
    s = one("CREATE DATABASE d TEMPLATE T");
    ck_assert_int_eq(memcmp(s->name.p, "d\0t", 3), 0);
    ck_assert_int_eq(one("CREATE DATABASE d TEMPLATE DEFAULT")->name.n, 1);
    ck_assert_str_eq(str(one("ALTER DATABASE d RENAME TO e")->name), "d");
    ck_assert(one("ALTER DATABASE d RENAME TO e")->flags & SQL_F_ALONE);
    ck_assert(one("ALTER DATABASE d SET TABLESPACE t")->flags & SQL_F_ALONE);
    ck_assert(one("DROP DATABASE d")->flags & SQL_F_ALONE);
    ck_assert(!(one("ALTER DATABASE d SET work_mem = 1")->flags & SQL_F_ALONE));
    ck_assert(!(one("ALTER DATABASE d OWNER TO o")->flags & SQL_F_ALONE));
    ck_assert(!(one("ALTER SCHEMA d RENAME TO e")->flags & SQL_F_ALONE));
}
END_TEST

/* The text ends where its buffer does: nothing behind it is read (ASan sees that). */
static bool leads(const char *text)
{
    static const char *const words[] = {"drop", "create database", NULL};
    size_t n = strlen(text);
    char *copy = malloc(n == 0 ? 1 : n);
    bool found;

    memcpy(copy, text, n);
    found = sql_leads_with(slice_of(copy, n), words);
    free(copy);
    return found;
}

START_TEST(words_that_statements_begin_with)
{
    ck_assert(leads("DROP TABLE t"));
    ck_assert(leads("select 1; /* a /* b */ */ -- c\n drop table t"));
    ck_assert(leads("create\t/* x */\ndatabase d"));
    ck_assert(leads("create database"));
    ck_assert(!leads("create table t; select 'drop'"));
    ck_assert(!leads("create"));
    ck_assert(!leads("create databas"));
    ck_assert(!leads("dro"));
    ck_assert(!leads("/* drop"));
    ck_assert(!leads("-"));
    ck_assert(!leads("create /"));
    ck_assert(!leads(";"));
    ck_assert(!leads(""));
}
END_TEST

/* A client may send it again and again. */
START_TEST(comments_without_an_end_are_looked_at_once)
{
    static const char part[] = "create/*;";
    enum { NPARTS = 1000000, BYTES = NPARTS * (sizeof part - 1) };
    char *text = malloc(BYTES + 1);
    int i;

    for (i = 0; i < NPARTS; i++)
        memcpy(text + (size_t)i * (sizeof part - 1), part, sizeof part);
    ck_assert(leads(text));
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("parser_session");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, transactions);
    tcase_add_test(tc, settings);
    tcase_add_test(tc, set_inside_other_statements_is_not_ours);
    tcase_add_test(tc, names_and_inner_statements);
    tcase_add_test(tc, what_needs_a_database_to_itself);
    tcase_add_test(tc, words_that_statements_begin_with);
    tcase_add_test(tc, comments_without_an_end_are_looked_at_once);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
