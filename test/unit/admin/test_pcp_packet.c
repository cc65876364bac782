/* SPDX-License-Identifier: PostgreSQL
 * test_pcp_packet.c: packets of PCP: whole, in pieces, and impossible. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "admin/pcp.h"
#include "wire/errmsg.h"

#include "run_suite.h"

START_TEST(a_packet_is_read_when_it_is_whole)
{
    static const char in[] = "L\0\0\0\7ab\0rest";
    struct pcp_packet p;
    size_t used = 0;
    size_t n;

    for (n = 0; n < 8; n++)
        ck_assert_int_eq(pcp_read(slice_of(in, n), 100, &p, &used), 0);
    ck_assert_int_eq(pcp_read(slice_of(in, sizeof in - 1), 100, &p, &used), 1);
    ck_assert_uint_eq(used, 8);
    ck_assert_int_eq(p.type, 'L');
    ck_assert(slice_eq(p.body, slice_of("ab\0", 3)));
}
END_TEST

START_TEST(impossible_lengths_are_refused_at_once)
{
    struct pcp_packet p;
    size_t used;

    ck_assert_int_eq(pcp_read(slice_of("L\0\0\0\0", 5), 100, &p, &used), -1);
    ck_assert_int_eq(pcp_read(slice_of("L\0\0\0\3", 5), 100, &p, &used), -1);
    ck_assert_int_eq(pcp_read(slice_of("L\0\0\0\4", 5), 100, &p, &used), 1);
    ck_assert_int_eq(pcp_read(slice_of("L\0\0\0\144", 5), 100, &p, &used), 0);
    ck_assert_int_eq(pcp_read(slice_of("L\0\0\0\145", 5), 100, &p, &used), -1);
    ck_assert_int_eq(pcp_read(slice_of("L\377\377\377\377", 5), 100, &p, &used), -1);
}
END_TEST

START_TEST(strings_need_their_end)
{
    struct slice rest = slice_of("ab\0\0cd", 6);
    struct slice s;

    ck_assert(pcp_take_str(&rest, &s) && slice_eq_str(s, "ab"));
    ck_assert(pcp_take_str(&rest, &s) && s.n == 0);
    ck_assert(!pcp_take_str(&rest, &s));
    ck_assert_uint_eq(rest.n, 2);
}
END_TEST

static const struct {
    const char *text;
    bool ok;
    int v;
} ints[] = {{"0", true, 0}, {"-1", true, -1}, {"2147483647", true, 2147483647},
    {"2147483648", false, 0}, {"99999999999", false, 0}, {"", false, 0}, {"1x", false, 0},
    {" 1", false, 0}, {"+1", false, 0}, {"-", false, 0}, {"1-2", false, 0}};

START_TEST(numbers_are_numbers_and_nothing_else)
{
    struct slice rest = slice_of(ints[_i].text, strlen(ints[_i].text) + 1);
    int v = 0;

    ck_assert_int_eq(pcp_take_int(&rest, &v), ints[_i].ok);
    if (ints[_i].ok)
        ck_assert_int_eq(v, ints[_i].v);
    rest = slice_of("12", 2);
    ck_assert(!pcp_take_int(&rest, &v));
}
END_TEST

START_TEST(what_is_put_can_be_read)
{
    struct buf out = {0};
    struct err err = {0};
    struct errmsg m = {0};
    struct pcp_packet p;
    size_t used;

    pcp_put_word(&out, 'r', PCP_LOGIN_OK);
    ck_assert(slice_eq(buf_slice(&out), slice_of("r\0\0\0\025AuthenticationOK\0", 22)));
    buf_clear(&out);
    err_set(&err, "28P01", "no \"%s\"", "x");
    err_detail(&err, "Because.");
    pcp_put_err(&out, PCP_ANSWER_ERROR, "FATAL", &err);
    ck_assert_int_eq(pcp_read(buf_slice(&out), 1000, &p, &used), 1);
    ck_assert_uint_eq(used, out.len);
    ck_assert_int_eq(errmsg_decode(p.body, &m), 0);
    ck_assert(slice_eq_str(m.severity, "FATAL") && slice_eq_str(m.sqlstate, "28P01"));
    ck_assert(slice_eq_str(m.message, "no \"x\"") && slice_eq_str(m.detail, "Because."));
    ck_assert_uint_eq(m.hint.n, 0);
    buf_free(&out);
}
END_TEST

START_TEST(answers_have_pgpools_letters)
{
    static const char pairs[] = "MmRrAaBbCcDdddGgHhIiJdjdLlNnOcPpTtttVvWwZz";
    size_t i;

    for (i = 0; pairs[i] != '\0'; i += 2)
        ck_assert_int_eq(pcp_answer_type(pairs[i]), pairs[i + 1]);
    ck_assert_int_eq(pcp_answer_type('X'), 0);
    ck_assert_int_eq(pcp_answer_type('?'), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pcp_packet");
    TCase *tc = tcase_create("packets");

    tcase_add_test(tc, a_packet_is_read_when_it_is_whole);
    tcase_add_test(tc, impossible_lengths_are_refused_at_once);
    tcase_add_test(tc, strings_need_their_end);
    tcase_add_loop_test(
        tc, numbers_are_numbers_and_nothing_else, 0, (int)(sizeof ints / sizeof ints[0]));
    tcase_add_test(tc, what_is_put_can_be_read);
    tcase_add_test(tc, answers_have_pgpools_letters);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
