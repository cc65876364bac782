/* SPDX-License-Identifier: PostgreSQL
 * test_wire_reader.c: reader.c and errmsg.c against good, cut and lying input. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "base/buf.h"
#include "wire/errmsg.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "run_suite.h"

#define LIT(s) slice_of(s, sizeof(s) - 1)

START_TEST(reads_every_kind)
{
    struct wire_reader r;
    bool is_null;
    struct slice v;

    wire_reader_init(&r, LIT("\x07\x01\x02\xff\xee\xdd\xcc"
                             "name\0"
                             "\0\0\0\x03"
                             "abc"
                             "\xff\xff\xff\xff"
                             "xy"));
    ck_assert_uint_eq(wire_get_u8(&r), 7);
    ck_assert_uint_eq(wire_get_u16(&r), 0x0102);
    ck_assert_uint_eq(wire_get_u32(&r), 0xffeeddccU);
    v = wire_get_cstr(&r);
    ck_assert(slice_eq_str(v, "name"));
    ck_assert_int_eq(v.p[v.n], '\0');
    ck_assert(slice_eq_str(wire_get_value(&r, &is_null), "abc"));
    ck_assert(!is_null);
    ck_assert_ptr_null(wire_get_value(&r, &is_null).p);
    ck_assert(is_null);
    ck_assert(!wire_reader_ok(&r));
    ck_assert_uint_eq(wire_reader_left(&r), 2);
    ck_assert(slice_eq_str(wire_get_bytes(&r, 2), "xy"));
    ck_assert(wire_reader_ok(&r));
}
END_TEST

START_TEST(stays_bad_after_a_short_read)
{
    struct wire_reader r;

    wire_reader_init(&r, LIT("\1\2\3"));
    ck_assert_uint_eq(wire_get_u32(&r), 0);
    ck_assert(r.bad);
    /* Three bytes are there, but nothing is believed any more. */
    ck_assert_uint_eq(wire_get_u8(&r), 0);
    ck_assert_uint_eq(wire_get_cstr(&r).n, 0);
    ck_assert_uint_eq(wire_get_bytes(&r, 1).n, 0);
    ck_assert(!wire_reader_ok(&r));
}
END_TEST

START_TEST(refuses_lying_lengths)
{
    static const char *const lies[] = {"\0\0\0\x05"
                                       "abcd",
        "\x7f\xff\xff\xff"
        "abcd",
        "\x80\0\0\0"
        "abcd",
        "\xff\xff\xff\xfe"
        "abcd"};
    struct wire_reader r;
    bool is_null;
    size_t i;

    for (i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        wire_reader_init(&r, slice_of(lies[i], 8));
        ck_assert_uint_eq(wire_get_value(&r, &is_null).n, 0);
        ck_assert(!is_null);
        ck_assert(r.bad);
    }
    wire_reader_init(&r, LIT("no end"));
    ck_assert_uint_eq(wire_get_cstr(&r).n, 0);
    ck_assert(r.bad);
    wire_reader_init(&r, LIT("ab"));
    ck_assert_uint_eq(wire_get_bytes(&r, UINT32_MAX).n, 0);
    ck_assert(r.bad);
}
END_TEST

START_TEST(empty_body_is_fine)
{
    struct wire_reader r;

    wire_reader_init(&r, slice_of(NULL, 0));
    ck_assert(wire_reader_ok(&r));
    wire_get_u8(&r);
    ck_assert(!wire_reader_ok(&r));
}
END_TEST

START_TEST(decodes_an_error)
{
    struct errmsg m;
    struct err err;
    struct slice body = LIT("SFEHLER\0VERROR\0C42P01\0Mrelation \"t\" does not exist\0"
                            "Dd\0Hh\0P15\0Fparse_relation.c\0\0");

    ck_assert_int_eq(errmsg_decode(body, &m), 0);
    ck_assert(slice_eq_str(m.severity, "ERROR"));
    ck_assert(slice_eq_str(m.sqlstate, "42P01"));
    errmsg_to_err(&m, &err);
    ck_assert_int_eq(err.severity, ERR_ERROR);
    ck_assert_str_eq(err.sqlstate, "42P01");
    ck_assert_str_eq(err.msg, "relation \"t\" does not exist");
    ck_assert_str_eq(err.detail, "d");
    ck_assert_str_eq(err.hint, "h");
}
END_TEST

START_TEST(a_detail_is_one_more_field)
{
    struct buf out = {0};
    struct errmsg m;

    errmsg_put_detail(&out, LIT("E\0\0\0\027SERROR\0C25P02\0Mno\0\0"), "why");
    ck_assert_uint_eq(out.len, 29);
    ck_assert_int_eq(out.data[4], 28);
    ck_assert_int_eq(errmsg_decode(slice_of(out.data + 5, out.len - 5), &m), 0);
    ck_assert(slice_eq_str(m.sqlstate, "25P02") && slice_eq_str(m.detail, "why"));
    buf_free(&out);
}
END_TEST

/* An error of a text in front of which something was put. */
START_TEST(a_position_is_moved)
{
    const struct {
        struct slice whole;
        uint32_t chars;
        struct slice want;
    } row[] = {
        {LIT("E\0\0\0\027SERROR\0Mno\0P17\0p3\0\0"), 6, LIT("E\0\0\0\026SERROR\0Mno\0P11\0p3\0\0")},
        {LIT("E\0\0\0\022P7\0SERROR\0Mno\0\0"), 6, LIT("E\0\0\0\024P1\0SERROR\0Mno\0\0")},
        {LIT("E\0\0\0\022P6\0SERROR\0Mno\0\0"), 6, LIT("E\0\0\0\021SERROR\0Mno\0\0")},
        {LIT("E\0\0\0\022SERROR\0Mno\0\0"), 6, LIT("E\0\0\0\021SERROR\0Mno\0\0")},
        {LIT("E\0\0\0\022Px\0SERROR\0Mno"), 6, LIT("E\0\0\0\015SERROR\0\0")},
    };

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct buf out = {0};

        errmsg_put_moved(&out, row[i].whole, row[i].chars);
        ck_assert_uint_eq(out.len, row[i].want.n);
        ck_assert_msg(memcmp(out.data + 5, row[i].want.p + 5, out.len - 5) == 0, "row %zu", i);
        ck_assert_uint_eq((unsigned char)out.data[4], out.len - 1);
        buf_free(&out);
    }
}
END_TEST

START_TEST(survives_a_hostile_server)
{
    struct errmsg m;
    struct err err;

    /* Nothing at all, not even a terminator. */
    ck_assert_int_eq(errmsg_decode(slice_of("", 0), &m), -1);
    errmsg_to_err(&m, &err);
    ck_assert_str_eq(err.sqlstate, "XX000");
    ck_assert_int_ne(err.msg[0], '\0');
    ck_assert_int_eq(err.severity, ERR_ERROR);
    /* No SQLSTATE, an old server without V. */
    ck_assert_int_eq(errmsg_decode(LIT("SPANIC\0Mgone\0\0"), &m), 0);
    errmsg_to_err(&m, &err);
    ck_assert_str_eq(err.sqlstate, "XX000");
    ck_assert_str_eq(err.msg, "gone");
    ck_assert_int_eq(err.severity, ERR_FATAL);
    /* A SQLSTATE that is none, a field cut off, bytes behind the end. */
    ck_assert_int_eq(errmsg_decode(LIT("C%s%n\0Mx\0\0"), &m), 0);
    errmsg_to_err(&m, &err);
    ck_assert_str_eq(err.sqlstate, "XX000");
    ck_assert_int_eq(errmsg_decode(LIT("C57P01\0Mter"), &m), -1);
    ck_assert(slice_eq_str(m.sqlstate, "57P01"));
    ck_assert_uint_eq(m.message.n, 0);
    ck_assert_int_eq(errmsg_decode(LIT("C57P01\0Mx\0\0junk"), &m), -1);
    ck_assert(slice_eq_str(m.message, "x"));
    /* The first of two counts: a later field cannot replace what was shown. */
    ck_assert_int_eq(errmsg_decode(LIT("C57P01\0C00000\0Mx\0\0"), &m), 0);
    ck_assert(slice_eq_str(m.sqlstate, "57P01"));
}
END_TEST

START_TEST(cuts_long_messages_between_characters)
{
    struct errmsg m;
    struct err err;
    struct buf b = {0};
    size_t i;

    buf_put_byte(&b, 'M');
    for (i = 0; i < 4000; i++)
        buf_put(&b, "\xe2\x82\xac", 3);
    buf_put(&b, "\0\0", 2);
    ck_assert_int_eq(errmsg_decode(buf_slice(&b), &m), 0);
    errmsg_to_err(&m, &err);
    ck_assert_uint_eq(strlen(err.msg) % 3, 0);
    ck_assert_uint_gt(strlen(err.msg), sizeof err.msg - 5);
    buf_free(&b);
}
END_TEST

START_TEST(notices_are_warnings)
{
    struct errmsg m;
    struct err err;

    ck_assert_int_eq(errmsg_decode(LIT("SNOTICE\0VNOTICE\0C00000\0Mx\0\0"), &m), 0);
    errmsg_to_err(&m, &err);
    ck_assert_int_eq(err.severity, ERR_WARNING);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire_reader");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, reads_every_kind);
    tcase_add_test(tc, a_position_is_moved);
    tcase_add_test(tc, stays_bad_after_a_short_read);
    tcase_add_test(tc, refuses_lying_lengths);
    tcase_add_test(tc, empty_body_is_fine);
    tcase_add_test(tc, decodes_an_error);
    tcase_add_test(tc, a_detail_is_one_more_field);
    tcase_add_test(tc, survives_a_hostile_server);
    tcase_add_test(tc, cuts_long_messages_between_characters);
    tcase_add_test(tc, notices_are_warnings);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
