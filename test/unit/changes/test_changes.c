/* SPDX-License-Identifier: PostgreSQL
 * test_changes.c: messages of a replication stream and events of test_decoding. The events were
 * taken from a server of version 15, and cut and bent by hand. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "changes/changes.h"

#include "run_suite.h"

#define LIT(s)                                                                                     \
    {                                                                                              \
        (s), sizeof(s) - 1                                                                         \
    }
#define COUNT(rows)  (int)(sizeof(rows) / sizeof(rows)[0])
#define MAX_COLUMNS  8
#define COLUMN_BYTES 256

/* --- messages --- */

static const struct {
    struct slice body;
    enum stream_kind kind;
    uint64_t lsn;
    bool wants_answer;
    struct slice text;
} messages[] = {
    {LIT("w\0\0\0\1\x02\x03\x04\x05\0\0\0\1\0\0\0\0\0\2\xe7\x11\x22\x33\x44\x55"
         "BEGIN 7"),
        STREAM_DATA, 0x102030405, false, LIT("BEGIN 7")},
    {LIT("w\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), STREAM_DATA, 1, false, LIT("")},
    {LIT("k\0\0\0\1\0\0\0\2\0\2\xe7\x11\x22\x33\x44\x55\0"), STREAM_ALIVE, 0x100000002, false,
        LIT("")},
    {LIT("k\0\0\0\1\0\0\0\2\0\2\xe7\x11\x22\x33\x44\x55\1"), STREAM_ALIVE, 0x100000002, true,
        LIT("")},
    {LIT("k\0\0\0\1\0\0\0\2\0\2\xe7\x11\x22\x33\x44\x55\1\1"), STREAM_BAD, 0x100000002, true,
        LIT("")},
    {LIT("k\0\0\0\1\0\0\0\2\0\2\xe7\x11\x22\x33\x44\x55"), STREAM_BAD, 0x100000002, false, LIT("")},
    {LIT("w\0\0\0\1\x02\x03\x04\x05\0\0\0\1"), STREAM_BAD, 0x102030405, false, LIT("")},
    {LIT("x\0\0\0\1\x02\x03\x04\x05\0\0\0\1\0\0\0\0\0\2\xe7\x11\x22\x33\x44\x55"), STREAM_BAD,
        0x102030405, false, LIT("")},
    {LIT(""), STREAM_BAD, 0, false, LIT("")},
};

START_TEST(a_message_is_what_it_says)
{
    struct stream_msg m;

    stream_read(messages[_i].body, &m);
    ck_assert_int_eq(m.kind, messages[_i].kind);
    ck_assert_uint_eq(m.lsn, messages[_i].lsn);
    ck_assert_int_eq(m.wants_answer, messages[_i].wants_answer);
    if (m.kind == STREAM_DATA)
        ck_assert(slice_eq(m.text, messages[_i].text));
}
END_TEST

START_TEST(an_answer_has_its_fields)
{
    char out[STREAM_REPLY_BYTES];

    stream_reply(out, 0x102030405, INT64_C(946684800000000) + 0x1122334455, true);
    ck_assert_mem_eq(out,
        "r\0\0\0\1\2\3\4\5\0\0\0\1\2\3\4\5\0\0\0\1\2\3\4\5"
        "\0\0\0\x11\x22\x33\x44\x55\1",
        sizeof out);
}
END_TEST

/* --- events --- */

static const struct {
    struct slice text;
    enum change_kind kind;
    uint32_t xid;
    int64_t commit_us;
    struct slice tables;
    struct slice old_row; /* p is NULL: it is not told */
    struct slice new_row;
} events[] = {
    {LIT("BEGIN 724"), CHANGE_BEGIN, .xid = 724},
    {LIT("COMMIT 4294967295 (at 2026-11-24 00:10:28.991001+00)"), CHANGE_COMMIT, .xid = UINT32_MAX,
        .commit_us = INT64_C(1795479028991001)},
    {LIT("COMMIT 724"), CHANGE_COMMIT, .xid = 724},
    {LIT("COMMIT 7 (at 1970-01-01 00:00:01.5+00)"), CHANGE_COMMIT, .xid = 7, .commit_us = 1500000},
    {LIT("COMMIT 7 (at 2000-02-29 23:59:59+00)"), CHANGE_COMMIT, .xid = 7,
        .commit_us = INT64_C(951868799000000)},
    {LIT("COMMIT 7 (at 2000-02-29 23:59:59+01)"), CHANGE_COMMIT, .xid = 7},
    {LIT("COMMIT 7 (at infinity)"), CHANGE_COMMIT, .xid = 7},
    {LIT("COMMIT 4294967296"), CHANGE_BAD, .xid = 0},
    {LIT("BEGIN 7x"), CHANGE_BAD, .xid = 0},
    {LIT("BEGIN"), CHANGE_BAD, .xid = 0},
    {LIT("table public.t: INSERT: id[integer]:1 v[text]:'it''s \\ a'"), CHANGE_INSERT,
        .tables = LIT("public.t"), .new_row = LIT(" id[integer]:1 v[text]:'it''s \\ a'")},
    {LIT("table public.t: UPDATE: id[integer]:1 v[text]:'z'"), CHANGE_UPDATE,
        .tables = LIT("public.t"), .new_row = LIT(" id[integer]:1 v[text]:'z'")},
    {LIT("table public.t: UPDATE: old-key: id[integer]:2 new-tuple: id[integer]:3 v[text]:null"),
        CHANGE_UPDATE, .tables = LIT("public.t"), .old_row = LIT(" id[integer]:2"),
        .new_row = LIT(" id[integer]:3 v[text]:null")},
    {LIT("table public.t: UPDATE: old-key: a[text]:' new-tuple: b[text]:1' new-tuple: "
         "\"new-tuple:\"[text]:' new-tuple:'"),
        CHANGE_UPDATE, .tables = LIT("public.t"),
        .old_row = LIT(" a[text]:' new-tuple: b[text]:1'"),
        .new_row = LIT(" \"new-tuple:\"[text]:' new-tuple:'")},
    {LIT("table public.t: UPDATE: old-key: id[integer]:2"), CHANGE_BAD, .tables = LIT("public.t")},
    {LIT("table public.t: UPDATE: old-key: id[integer"), CHANGE_BAD, .tables = LIT("public.t")},
    {LIT("table public.t: DELETE: id[integer]:3"), CHANGE_DELETE, .tables = LIT("public.t"),
        .old_row = LIT(" id[integer]:3")},
    {LIT("table public.nopk: DELETE: (no-tuple-data)"), CHANGE_DELETE,
        .tables = LIT("public.nopk")},
    {LIT("table public.nopk: INSERT: (no-tuple-data)"), CHANGE_INSERT,
        .tables = LIT("public.nopk")},
    {LIT("table \"S: x\".\"T, \"\"q\"\": INSERT:\": INSERT: \"select\"[integer]:1"), CHANGE_INSERT,
        .tables = LIT("\"S: x\".\"T, \"\"q\"\": INSERT:\""),
        .new_row = LIT(" \"select\"[integer]:1")},
    {LIT("table public.t, public.nopk, \"S: x\".\"T, q\": TRUNCATE: restart_seqs cascade"),
        CHANGE_TRUNCATE, .tables = LIT("public.t, public.nopk, \"S: x\".\"T, q\"")},
    {LIT("table public.p: TRUNCATE: (no-flags)"), CHANGE_TRUNCATE, .tables = LIT("public.p")},
    {LIT("table public.p: MERGE: a[integer]:1"), CHANGE_BAD, .tables = LIT("public.p")},
    {LIT("table public.p"), CHANGE_BAD, .xid = 0},
    {LIT("table public.: INSERT: a[integer]:1"), CHANGE_BAD, .xid = 0},
    {LIT("table \"public: INSERT: a[integer]:1"), CHANGE_BAD, .xid = 0},
    {LIT("message: transactional: 1 prefix: pre, sz: 7 content:content"), CHANGE_MESSAGE, .xid = 0},
    {LIT("opening a streamed block for transaction"), CHANGE_BAD, .xid = 0},
    {LIT(""), CHANGE_BAD, .xid = 0},
};

START_TEST(an_event_is_taken_apart)
{
    struct change c;

    change_read(events[_i].text, &c);
    ck_assert_int_eq(c.kind, events[_i].kind);
    if (c.kind == CHANGE_BAD)
        return;
    ck_assert_uint_eq(c.xid, events[_i].xid);
    ck_assert_int_eq(c.commit_us, events[_i].commit_us);
    ck_assert(slice_eq(c.tables, events[_i].tables));
    ck_assert_int_eq(c.has_old, events[_i].old_row.p != NULL);
    ck_assert_int_eq(c.has_new, events[_i].new_row.p != NULL);
    if (c.has_old)
        ck_assert(slice_eq(c.old_row, events[_i].old_row));
    if (c.has_new)
        ck_assert(slice_eq(c.new_row, events[_i].new_row));
}
END_TEST

static const struct {
    struct slice list;
    int n;
    struct slice name[3];
} lists[] = {
    {LIT("public.t"), 1, {LIT("public.t")}},
    {LIT("public.t, public.nopk"), 2, {LIT("public.t"), LIT("public.nopk")}},
    {LIT("public.t, \"S: x\".\"T, \"\"q\", a.b"), 3,
        {LIT("public.t"), LIT("\"S: x\".\"T, \"\"q\""), LIT("a.b")}},
    {LIT(""), 0, {LIT("")}},
    {LIT(", a.b"), 0, {LIT("")}},
    {LIT("\"a"), 0, {LIT("")}},
};

START_TEST(tables_of_a_truncate)
{
    struct slice rest = lists[_i].list;
    struct slice name;
    int n;

    for (n = 0; change_next_table(&rest, &name); n++)
        ck_assert(slice_eq(name, lists[_i].name[n]));
    ck_assert_int_eq(n, lists[_i].n);
}
END_TEST

/* What is printed of each column: name, type, and the value after = when it is bare, : when it
 * stood in quotes, nothing for null, ? for what is not told. */
static const struct {
    struct slice row;
    enum change_next end;
    int n;
    const char *column[MAX_COLUMNS];
} rows[] = {
    {LIT(" id[integer]:1 v[text]:'it''s \\ a' b[boolean]:true d[date]:'2026-01-02'"), CHANGE_END, 4,
        {"id integer=1", "v text:it's \\ a", "b boolean=true", "d date:2026-01-02"}},
    {LIT(" n[numeric]:-1.5 a[integer[]]:'{1,2}' f[double precision]:Infinity"), CHANGE_END, 3,
        {"n numeric=-1.5", "a integer[]:{1,2}", "f double precision=Infinity"}},
    {LIT(" \"Odd \"\"Name\"[character varying]:'x y' ts[timestamp with time zone]:'a' "
         "bt[bit]:B'101'"),
        CHANGE_END, 3,
        {"\"Odd \"\"Name\" character varying:x y", "ts timestamp with time zone:a", "bt bit:101"}},
    {LIT(" a[integer]:null big[text]:unchanged-toast-datum v[text]:'null' w[text]:''"), CHANGE_END,
        4, {"a integer", "big text?", "v text:null", "w text:"}},
    {LIT(" a[dd]:'1' \"c]:\"[\"char\"]:'x' e[public.\"My ]: type\"[]]:'{}'"), CHANGE_END, 3,
        {"a dd:1", "\"c]:\" \"char\":x", "e public.\"My ]: type\"[]:{}"}},
    {LIT(" v[text]:''''''"), CHANGE_END, 1, {"v text:''"}},
    {LIT(""), CHANGE_END, 0, {NULL}},
    {LIT(" (no-tuple-data)"), CHANGE_BROKEN, 0, {NULL}},
    {LIT(" v[text]:'open"), CHANGE_BROKEN, 0, {NULL}},
    {LIT(" v[text]:'a'b"), CHANGE_BROKEN, 0, {NULL}},
    {LIT(" v[text]:"), CHANGE_BROKEN, 0, {NULL}},
    {LIT(" v[text]'x'"), CHANGE_BROKEN, 0, {NULL}},
    {LIT(" v[text"), CHANGE_BROKEN, 0, {NULL}},
    {LIT(" \"v[text]:1"), CHANGE_BROKEN, 0, {NULL}},
    {LIT(" a[integer]:1 new-tuple: b[integer]:2"), CHANGE_BROKEN, 1, {"a integer=1"}},
    {LIT("v[text]:1"), CHANGE_BROKEN, 0, {NULL}},
};

static void print_column(const struct change_column *c, char out[COLUMN_BYTES])
{
    char value[COLUMN_BYTES];
    size_t n;

    ck_assert_uint_lt(c->value.n, COLUMN_BYTES);
    n = change_unquote(c->value, value);
    if (!c->is_quoted)
        n = c->value.n;
    if (c->is_null || c->is_unchanged)
        n = 0;
    snprintf(out, COLUMN_BYTES, "%.*s %.*s%s%.*s", (int)c->name.n, c->name.p, (int)c->type.n,
        c->type.p,
        c->is_null        ? ""
        : c->is_unchanged ? "?"
        : c->is_quoted    ? ":"
                          : "=",
        (int)n, value);
}

START_TEST(columns_of_a_row)
{
    struct slice rest = rows[_i].row;
    struct change_column column;
    enum change_next next;
    char text[COLUMN_BYTES];
    int n;

    for (n = 0; (next = change_next_column(&rest, &column)) == CHANGE_COLUMN; n++) {
        print_column(&column, text);
        if (n < rows[_i].n)
            ck_assert_str_eq(text, rows[_i].column[n]);
    }
    ck_assert_int_eq(n, rows[_i].n);
    ck_assert_int_eq(next, rows[_i].end);
}
END_TEST

/* Cut anywhere, an event is itself or not understood; what is told of its rows ends before the
 * cut. */
START_TEST(a_cut_event_stays_within_itself)
{
    struct slice text = events[_i].text;
    struct change_column column;
    struct change c;
    char *copy;
    size_t n;

    for (n = 0; n < text.n; n++) {
        copy = malloc(n + 1);
        memcpy(copy, text.p, n);
        change_read(slice_of(copy, n), &c);
        while (c.has_old && change_next_column(&c.old_row, &column) == CHANGE_COLUMN)
            ck_assert(column.value.p + column.value.n <= copy + n);
        while (c.has_new && change_next_column(&c.new_row, &column) == CHANGE_COLUMN)
            ck_assert(column.value.p + column.value.n <= copy + n);
        free(copy);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("changes");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, a_message_is_what_it_says, 0, COUNT(messages));
    tcase_add_test(tc, an_answer_has_its_fields);
    tcase_add_loop_test(tc, an_event_is_taken_apart, 0, COUNT(events));
    tcase_add_loop_test(tc, tables_of_a_truncate, 0, COUNT(lists));
    tcase_add_loop_test(tc, columns_of_a_row, 0, COUNT(rows));
    tcase_add_loop_test(tc, a_cut_event_stays_within_itself, 0, COUNT(events));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
