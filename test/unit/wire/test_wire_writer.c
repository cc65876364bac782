/* SPDX-License-Identifier: PostgreSQL
 * test_wire_writer.c: every message writer.c builds, byte by byte. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "wire/errmsg.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "run_suite.h"

#define LIT(s) slice_of(s, sizeof(s) - 1)

/* Checks that `b` holds exactly `bytes`, then empties it. */
static void assert_bytes(struct buf *b, struct slice bytes)
{
    ck_assert_uint_eq(buf_unread(b), bytes.n);
    ck_assert_mem_eq(b->data + b->pos, bytes.p, bytes.n);
    buf_clear(b);
}

START_TEST(server_messages)
{
    struct slice unknown[] = {slice_of_str("_pq_.a"), slice_of_str("_pq_.b")};
    struct slice row[] = {slice_of_str("ab"), slice_of(NULL, 0), slice_of("", 0)};
    const char *names[] = {"a", "bc"};
    struct buf b = {0};

    wire_put_auth(&b, AUTH_OK, slice_of(NULL, 0));
    assert_bytes(&b, LIT("R\0\0\0\x08\0\0\0\0"));
    wire_put_auth(&b, AUTH_MD5, slice_of("salt", 4));
    assert_bytes(&b, LIT("R\0\0\0\x0c\0\0\0\x05salt"));
    wire_put_parameter_status(&b, slice_of_str("is_superuser"), slice_of_str("on"));
    assert_bytes(&b, LIT("S\0\0\0\x14is_superuser\0on\0"));
    wire_put_key_data(&b, 258, slice_of("\1\2\3\4", 4));
    assert_bytes(&b, LIT("K\0\0\0\x0c\0\0\1\2\1\2\3\4"));
    wire_put_ready(&b, 'T');
    assert_bytes(&b, LIT("Z\0\0\0\x05T"));
    wire_put_negotiate(&b, PROTO_3_2, unknown, 2);
    assert_bytes(&b, LIT("v\0\0\0\x1a\0\3\0\2\0\0\0\2_pq_.a\0_pq_.b\0"));
    wire_put_command_complete(&b, "SELECT 1");
    assert_bytes(&b, LIT("C\0\0\0\x0dSELECT 1\0"));
    wire_put_empty(&b, BE_PARSE_COMPLETE);
    assert_bytes(&b, LIT("1\0\0\0\4"));
    wire_put_data_row(&b, row, 3);
    assert_bytes(&b, LIT("D\0\0\0\x14\0\3\0\0\0\2ab\xff\xff\xff\xff\0\0\0\0"));
    wire_put_row_description(&b, names, 2, 25);
    assert_bytes(&b, LIT("T\0\0\0\x2f\0\2"
                         "a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"
                         "bc\0\0\0\0\0\0\1\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"));
    wire_put_typed_columns(&b, names, 2, (const uint32_t[]){25, 23});
    assert_bytes(&b, LIT("T\0\0\0\x2f\0\2"
                         "a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"
                         "bc\0\0\0\0\0\0\1\0\0\0\x17\xff\xff\xff\xff\xff\xff\0\0"));
    buf_free(&b);
}
END_TEST

START_TEST(client_messages)
{
    struct buf b = {0};

    wire_put_query(&b, slice_of_str("select 1"));
    assert_bytes(&b, LIT("Q\0\0\0\x0dselect 1\0"));
    wire_put_password(&b, slice_of("a\0b", 3));
    assert_bytes(&b, LIT("p\0\0\0\x07"
                         "a\0b"));
    wire_put_parse(&b, slice_of_str("s"), slice_of_str("q"));
    assert_bytes(&b, LIT("P\0\0\0\x0as\0q\0\0\0"));
    wire_put_close(&b, 'S', slice_of_str("s"));
    assert_bytes(&b, LIT("C\0\0\0\x07Ss\0"));
    buf_free(&b);
}
END_TEST

START_TEST(a_string_ends_at_its_first_nul)
{
    struct buf b = {0};

    wire_put_query(&b, slice_of("a\0X\0\0\0\4", 7));
    assert_bytes(&b, LIT("Q\0\0\0\6a\0"));
    wire_put_parameter_status(&b, slice_of("n\0m", 3), slice_of(NULL, 0));
    assert_bytes(&b, LIT("S\0\0\0\7n\0\0"));
    buf_free(&b);
}
END_TEST

START_TEST(errors_come_back_as_they_were)
{
    struct err err = {0};
    struct err back;
    struct errmsg m;
    struct buf b = {0};

    err_set_fatal(&err, "53300", "sorry, %s", "too many clients already");
    err_detail(&err, "The limit is 7.");
    err_hint(&err, "Wait.");
    wire_put_err(&b, &err);
    ck_assert_int_eq(b.data[0], BE_ERROR);
    ck_assert_int_eq(errmsg_decode(slice_of(b.data + 5, b.len - 5), &m), 0);
    ck_assert(slice_eq_str(m.severity, "FATAL"));
    errmsg_to_err(&m, &back);
    ck_assert_int_eq(back.severity, ERR_FATAL);
    ck_assert_str_eq(back.sqlstate, "53300");
    ck_assert_str_eq(back.msg, "sorry, too many clients already");
    ck_assert_str_eq(back.detail, "The limit is 7.");
    ck_assert_str_eq(back.hint, "Wait.");
    buf_clear(&b);
    err.severity = ERR_WARNING;
    wire_put_err(&b, &err);
    ck_assert_int_eq(b.data[0], BE_NOTICE);
    buf_clear(&b);
    err_clear(&err);
    wire_put_err(&b, &err);
    assert_bytes(&b, LIT("E\0\0\0\x1cSERROR\0VERROR\0CXX000\0M\0\0"));
    wire_put_notice(&b, "NOTICE", "00000", "hi");
    assert_bytes(&b, LIT("N\0\0\0\x20SNOTICE\0VNOTICE\0C00000\0Mhi\0\0"));
    buf_free(&b);
}
END_TEST

START_TEST(length_is_right_when_the_buffer_moves)
{
    static char big[3000];
    struct buf b = {0};
    uint32_t start;
    unsigned i;

    memset(big, 'x', sizeof big);
    /* Read bytes in front: making room moves the content while the message is under construction.
     */
    for (i = 0; i < 40; i++) {
        buf_put(&b, big, 200);
        b.pos += 190;
        start = wire_begin(&b, FE_PASSWORD);
        buf_put(&b, big, i * 70);
        wire_end(&b, start);
        ck_assert_uint_eq(proto_get_u32(b.data + b.pos + start + 1), 4 + i * 70);
        ck_assert_int_eq(b.data[b.pos + start], FE_PASSWORD);
        b.pos = b.len - 5;
    }
    buf_free(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire_writer");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, server_messages);
    tcase_add_test(tc, client_messages);
    tcase_add_test(tc, a_string_ends_at_its_first_nul);
    tcase_add_test(tc, errors_come_back_as_they_were);
    tcase_add_test(tc, length_is_right_when_the_buffer_moves);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
