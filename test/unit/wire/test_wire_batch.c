/* SPDX-License-Identifier: PostgreSQL
 * test_wire_batch.c: message.h and batch.c: what clients send, whole, cut anywhere, and malformed.
 */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "base/buf.h"
#include "wire/batch.h"

#include "run_suite.h"

#define LIT(s)                                                                                     \
    {                                                                                              \
        (s), sizeof(s) - 1                                                                         \
    }
#define NONE                                                                                       \
    {                                                                                              \
        NULL, 0                                                                                    \
    }
#define COUNT(rows) (int)(sizeof(rows) / sizeof(rows)[0])

#define SELECT_1   "P\0\0\0\x10\0select 1\0\0\0"
#define NAMED      "P\0\0\0\x11s\0select 1\0\0\0"
#define BIND       "B\0\0\0\x0c\0\0\0\0\0\0\0\0"
#define BIND_S     "B\0\0\0\x0d\0s\0\0\0\0\0\0\0"
#define BIND_PS    "B\0\0\0\x0ep\0s\0\0\0\0\0\0\0"
#define DESCRIBE   "D\0\0\0\6P\0"
#define DESCRIBE_S "D\0\0\0\6S\0"
#define EXECUTE    "E\0\0\0\x09\0\0\0\0\0"
#define EXECUTE_5  "E\0\0\0\x09\0\0\0\0\5"
#define EXECUTE_P  "E\0\0\0\x0ap\0\0\0\0\0"
#define SYNC       "S\0\0\0\4"
#define FLUSH      "H\0\0\0\4"

/* One message and what is in it. */
static const struct {
    struct slice bytes;
    struct slice name;
    struct slice portal;
    struct slice sql;
    struct slice rest;
    uint32_t max_rows;
    char what;
    bool is_bad;
} messages[] = {
    {LIT("Q\0\0\0\xdselect 1\0"), .sql = LIT("select 1")},
    {LIT("Q\0\0\0\5\0"), .sql = LIT("")},
    {LIT("Q\0\0\0\xcselect 1"), .sql = NONE, .is_bad = true}, /* no end */
    {LIT("Q\0\0\0\4"), .sql = NONE, .is_bad = true},          /* no text */
    {LIT("Q\0\0\0\x0a"
         "a\0b;c\0"),
        .sql = LIT("a"), .is_bad = true}, /* two of them */
    {LIT(SELECT_1), .name = LIT(""), .sql = LIT("select 1"), .rest = LIT("\0\0")},
    {LIT(NAMED), .name = LIT("s"), .sql = LIT("select 1"), .rest = LIT("\0\0")},
    {LIT("P\0\0\0\x08"
         "s\0s\0"),
        .name = LIT("s"), .sql = LIT("s"), .rest = LIT("")},
    {LIT("P\0\0\0\x07"
         "s\0s"),
        .name = LIT("s"), .sql = NONE, .rest = LIT("s"), .is_bad = true},
    {LIT("P\0\0\0\x05"
         "s"),
        .name = NONE, .sql = NONE, .rest = LIT("s"), .is_bad = true},
    {LIT("P\0\0\0\4"), .name = NONE, .sql = NONE, .rest = LIT(""), .is_bad = true},
    {LIT(BIND), .name = LIT(""), .portal = LIT(""), .rest = LIT("\0\0\0\0\0\0")},
    {LIT(BIND_PS), .name = LIT("s"), .portal = LIT("p"), .rest = LIT("\0\0\0\0\0\0")},
    {LIT("B\0\0\0\7p\0s"), .name = NONE, .portal = LIT("p"), .rest = LIT("s"), .is_bad = true},
    {LIT(DESCRIBE), .portal = LIT(""), .what = 'P'},
    {LIT("D\0\0\0\7Ss\0"), .name = LIT("s"), .what = 'S'},
    {LIT("D\0\0\0\7Xs\0"), .what = 'X', .is_bad = true},
    {LIT("D\0\0\0\4"), .what = '\0', .is_bad = true},
    {LIT("D\0\0\0\5S"), .name = NONE, .what = 'S', .is_bad = true},
    {LIT("D\0\0\0\x8Ss\0\0"), .name = LIT("s"), .what = 'S', .is_bad = true}, /* one byte more */
    {LIT("C\0\0\0\7Pp\0"), .portal = LIT("p"), .what = 'P'},
    {LIT("C\0\0\0\6S\0"), .name = LIT(""), .what = 'S'},
    {LIT(EXECUTE), .portal = LIT("")},
    {LIT(EXECUTE_5), .portal = LIT(""), .max_rows = 5},
    {LIT("E\0\0\0\x0ap\0\xff\xff\xff\xff"), .portal = LIT("p"), .max_rows = UINT32_MAX},
    {LIT("E\0\0\0\x08\0\0\0\0"), .portal = LIT(""), .is_bad = true},
    {LIT("E\0\0\0\x0a\0\0\0\0\0\0"), .portal = LIT(""), .is_bad = true},
    {LIT(SYNC), .name = NONE},
    {LIT(FLUSH), .name = NONE},
    {LIT("H\0\0\0\5x"), .is_bad = true},
    {LIT("S\0\0\0\5\0"), .is_bad = true},
    {LIT("F\0\0\0\6ab"), .rest = LIT("ab")},
    {LIT("d\0\0\0\6ab"), .rest = LIT("ab")},
    {LIT("?\0\0\0\4"), .rest = LIT("")},
};

static void same(struct slice is, struct slice wanted, const char *field, int row)
{
    ck_assert_msg((is.p == NULL) == (wanted.p == NULL) && slice_eq(is, wanted),
        "row %d: %s \"%.*s\"", row, field, (int)is.n, is.p == NULL ? "" : is.p);
}

START_TEST(each_kind_has_its_fields)
{
    const char *p = messages[_i].bytes.p;
    const char *end = p + messages[_i].bytes.n;
    struct batch_msg m;

    ck_assert(batch_next(&p, end, &m));
    ck_assert_ptr_eq(p, end);
    ck_assert_int_eq(m.type, messages[_i].bytes.p[0]);
    same(m.whole, messages[_i].bytes, "whole", _i);
    same(m.body, message_body(messages[_i].bytes), "body", _i);
    same(m.name, messages[_i].name, "name", _i);
    same(m.portal, messages[_i].portal, "portal", _i);
    same(m.sql, messages[_i].sql, "sql", _i);
    same(m.rest, messages[_i].rest, "rest", _i);
    ck_assert_uint_eq(m.max_rows, messages[_i].max_rows);
    ck_assert_int_eq(m.what, messages[_i].what);
    ck_assert_int_eq(m.is_bad, messages[_i].is_bad);
}
END_TEST

/* Nothing is taken before all is there. */
START_TEST(a_part_is_no_message)
{
    struct slice bytes = messages[_i].bytes;
    const char *p = bytes.p;
    struct batch_msg m;
    size_t n;

    for (n = 0; n < bytes.n; n++) {
        ck_assert(!batch_next(&p, bytes.p + n, &m));
        ck_assert_ptr_eq(p, bytes.p);
    }
}
END_TEST

/* Of a cut message there are the fields that are whole, and no others. */
START_TEST(a_cut_body_is_bad)
{
    struct slice body = message_body(messages[_i].bytes);
    struct batch_msg whole;
    struct batch_msg m;
    const char *p;
    size_t n;

    batch_read(&whole, messages[_i].bytes.p[0], body);
    for (n = 0; n < body.n; n++) {
        p = messages[_i].bytes.p;
        ck_assert(batch_next_part(&p, body.p + n, &m));
        ck_assert_ptr_eq(p, body.p + n);
        ck_assert(m.name.p == NULL || slice_eq(m.name, whole.name));
        ck_assert(m.portal.p == NULL || slice_eq(m.portal, whole.portal));
        ck_assert(m.sql.p == NULL || slice_eq(m.sql, whole.sql));
        ck_assert_int_eq(m.name.p != NULL, whole.name.p != NULL && whole.name.p + whole.name.n < p);
        ck_assert_int_eq(m.sql.p != NULL, whole.sql.p != NULL && whole.sql.p + whole.sql.n < p);
    }
}
END_TEST

static const struct {
    struct slice bytes;
    size_t length; /* of its message; 0: there is none */
    bool may_be;
} lengths[] = {
    {LIT("Q\0\0\0\0"), 0, false},
    {LIT("Q\0\0\0\3"), 0, false},
    {LIT("Q\x80\0\0\0"), 0, false},
    {LIT("Q\xff\xff\xff\xff"), 0, false},
    {LIT("Q\x7f\xff\xff\xff"), 0, true},
    {LIT("S\0\0\0\4"), 5, true},
    {LIT("S\0\0\0\4S"), 5, true},
    {LIT("S\0\0\0\5S"), 6, true},
    {LIT("S\0\0\0\6S"), 0, true},
};

START_TEST(no_length_is_believed)
{
    const char *p = lengths[_i].bytes.p;
    const char *end = p + lengths[_i].bytes.n;
    struct batch_msg part;
    struct message m;

    ck_assert_int_eq(message_may_be(message_bytes(p)), lengths[_i].may_be);
    ck_assert(lengths[_i].may_be || !batch_next_part(&p, end, &part));
    ck_assert_int_eq(message_next(&p, end, &m), lengths[_i].length > 0);
    ck_assert_uint_eq((size_t)(p - lengths[_i].bytes.p), lengths[_i].length);
}
END_TEST

static const struct {
    struct slice bytes;
    size_t max;
    size_t n;
} sequences[] = {
    {LIT(SYNC), 100, 5},
    {LIT(SELECT_1 BIND EXECUTE SYNC SYNC), 100, 17 + 13 + 10 + 5},
    {LIT(SELECT_1 BIND EXECUTE SYNC), 44, 0},
    {LIT(SELECT_1 BIND EXECUTE FLUSH), 100, 0},
    {LIT(SELECT_1 BIND EXECUTE "S\0\0\0"), 100, 0},
    {LIT("Q\0\0\0\1" SYNC), 100, 0},
    {LIT(""), 100, 0},
};

START_TEST(a_sequence_ends_with_its_sync)
{
    const char *p = sequences[_i].bytes.p;
    struct slice found = batch_to_sync(p, p + sequences[_i].bytes.n, sequences[_i].max);

    ck_assert_uint_eq(found.n, sequences[_i].n);
    ck_assert_ptr_eq(found.p, found.n == 0 ? NULL : p);
}
END_TEST

static const struct {
    struct slice bytes;
    size_t n;     /* of the bytes, as far as they are one; 0: they do not begin with one */
    size_t parse; /* bytes of its Parse */
    struct slice name;
    bool describes;
    bool syncs;
} lone[] = {
    {LIT(SELECT_1 BIND EXECUTE SYNC), 45, 17, LIT(""), false, true},
    {LIT(SELECT_1 BIND DESCRIBE EXECUTE SYNC SYNC), 52, 17, LIT(""), true, true},
    {LIT(NAMED BIND_S EXECUTE SYNC), 47, 18, LIT("s"), false, true},
    {LIT(BIND_S EXECUTE_5 SYNC), 29, 0, LIT("s"), false, true},
    {LIT(BIND EXECUTE FLUSH), 23, 0, LIT(""), false, false},
    {LIT(BIND EXECUTE "S\0\0\0\5x"), 23, 0, LIT(""), false, false},
    {LIT(NAMED BIND EXECUTE SYNC), .name = NONE}, /* another one is bound */
    {LIT(SELECT_1 BIND_S EXECUTE SYNC), .name = NONE},
    {LIT(BIND_PS EXECUTE SYNC), .name = NONE}, /* a portal with a name */
    {LIT(BIND_S EXECUTE_P SYNC), .name = NONE},
    {LIT(BIND_S DESCRIBE_S EXECUTE SYNC), .name = NONE}, /* not the portal's columns */
    {LIT(SELECT_1 DESCRIBE BIND EXECUTE SYNC), .name = NONE},
    {LIT(SELECT_1 SELECT_1 BIND EXECUTE SYNC), .name = NONE},
    {LIT(SELECT_1 EXECUTE SYNC), .name = NONE},
    {LIT(BIND DESCRIBE SYNC), .name = NONE},
    {LIT(SYNC), .name = NONE},
    {LIT("Q\0\0\0\xdselect 1\0"), .name = NONE},
    {LIT("P\0\0\0\x05s" BIND EXECUTE SYNC), .name = NONE},
    {LIT("B\0\0\0\6\0s" EXECUTE SYNC), .name = NONE},
    {LIT(BIND "E\0\0\0\x08\0\0\0\0" SYNC), .name = NONE},
};

START_TEST(one_statement_is_known_by_its_shape)
{
    const char *p = lone[_i].bytes.p;
    struct batch_lone l;

    ck_assert_int_eq(batch_lone_read(&l, p, p + lone[_i].bytes.n), lone[_i].n > 0);
    if (lone[_i].n == 0)
        return;
    ck_assert_uint_eq((size_t)(l.end - p), lone[_i].n);
    ck_assert_uint_eq(l.parse.p == NULL ? 0 : l.parse.n, lone[_i].parse);
    ck_assert_ptr_eq(l.bind.p, p + lone[_i].parse);
    same(l.name, lone[_i].name, "name", _i);
    ck_assert_int_eq(l.describes, lone[_i].describes);
    ck_assert_int_eq(l.syncs, lone[_i].syncs);
    if (l.parse.p != NULL) {
        ck_assert(slice_eq_str(l.sql, "select 1"));
        ck_assert_uint_eq(batch_lone_statement(&l).n, sizeof "select 1" + 2);
    }
    ck_assert_uint_eq(batch_lone_values(&l).n, 6);
}
END_TEST

static const struct {
    struct slice bytes;
    bool is_bare;
} bare[] = {
    {LIT(SELECT_1 BIND EXECUTE), true},
    {LIT(BIND EXECUTE), true},
    {LIT("B\0\0\0\xe\0\0\0\1\0\1\0\0\0\0" EXECUTE), true},              /* a format of nothing */
    {LIT("B\0\0\0\x10\0\0\0\2\0\0\0\0\0\0\0\0" EXECUTE), false},        /* two of them */
    {LIT("B\0\0\0\x11\0\0\0\0\0\1\0\0\0\1x\0\0" EXECUTE), false},       /* a value */
    {LIT("P\0\0\0\x14\0select 1\0\0\1\0\0\0\x17" BIND EXECUTE), false}, /* a type */
    {LIT("B\0\0\0\x8\0\0\0\0" EXECUTE), false},                         /* cut short */
    {LIT("B\0\0\0\6\0\0" EXECUTE), false},
};

START_TEST(a_bare_statement_has_no_parameters)
{
    struct slice b = bare[_i].bytes;
    struct batch_lone l;

    ck_assert(batch_lone_read(&l, b.p, b.p + b.n));
    ck_assert_int_eq(batch_lone_is_bare(&l), bare[_i].is_bare);
}
END_TEST

/* It is none before its Execute has come, and the Sync is seen when all of it is there. */
START_TEST(a_cut_statement_is_none)
{
    struct slice all = lone[_i].bytes;
    struct batch_lone l;
    size_t n;
    bool is_one;

    for (n = 0; n < lone[_i].n; n++) {
        is_one = batch_lone_read(&l, all.p, all.p + n);
        ck_assert_int_eq(is_one, lone[_i].syncs && n + 5 >= lone[_i].n);
        ck_assert(!is_one || !l.syncs);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire_batch");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, each_kind_has_its_fields, 0, COUNT(messages));
    tcase_add_loop_test(tc, a_part_is_no_message, 0, COUNT(messages));
    tcase_add_loop_test(tc, a_cut_body_is_bad, 0, COUNT(messages));
    tcase_add_loop_test(tc, no_length_is_believed, 0, COUNT(lengths));
    tcase_add_loop_test(tc, a_sequence_ends_with_its_sync, 0, COUNT(sequences));
    tcase_add_loop_test(tc, one_statement_is_known_by_its_shape, 0, COUNT(lone));
    tcase_add_loop_test(tc, a_bare_statement_has_no_parameters, 0, COUNT(bare));
    tcase_add_loop_test(tc, a_cut_statement_is_none, 0, COUNT(lone));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
