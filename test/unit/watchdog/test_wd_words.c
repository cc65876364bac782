/* SPDX-License-Identifier: PostgreSQL
 * test_wd_words.c: what pgpools of other builds say: longer words are understood as far as they are
 * known, shorter ones as far as they go, and what lacks something is refused, never misread. */
#include "config.h"

#include <check.h>
#include <string.h>

#include "process/watchdog/wd_words.h"

#include "run_suite.h"

static struct wd_status a_status(void)
{
    struct wd_status s;

    memset(&s, 0, sizeof s);
    s.begin = 2;
    s.role = 3;
    s.is_witness = true;
    s.is_hindered = true;
    s.priority = -7;
    memset(s.identity, 0xab, sizeof s.identity);
    s.lost[0] = UINT64_C(0x8000000000000001);
    s.dead[1] = 5;
    s.listed[0] = 7;
    memcpy(s.name, "pool-a:9999 Linux pool-a", 25);
    s.follows = 2;
    memcpy(s.release, "5.0.0", 6);
    s.silent[1] = 6;
    return s;
}

static bool get(const struct buf *text, uint32_t n, struct wd_status *s)
{
    memset(s, 0x5a, sizeof *s); /* nothing of before stays */
    return wd_status_get(slice_of(text->data, n), s);
}

START_TEST(test_status)
{
    struct wd_status said = a_status();
    struct wd_status read;
    struct buf text = {0};

    wd_status_put(&said, &text);
    ck_assert(get(&text, text.len, &read));
    ck_assert_mem_eq(&read, &said, sizeof said);
    buf_free(&text);
}
END_TEST

START_TEST(test_newer_status)
{
    struct wd_status said = a_status();
    struct wd_status read;
    struct buf text = {0};
    int i;

    wd_status_put(&said, &text);
    for (i = 0; i < 40; i++) {
        buf_put_byte(&text, (char)(i % 3 == 0 ? 0 : 0xff));
        ck_assert(get(&text, text.len, &read));
        ck_assert_mem_eq(&read, &said, sizeof said);
    }
    buf_free(&text);
}
END_TEST

/* Cut anywhere: what all builds say is there or the whole is refused; behind it fields are there or
 * not, and none is there in part. */
START_TEST(test_older_status)
{
    struct wd_status said = a_status();
    struct wd_status wanted = said;
    struct wd_status read;
    struct buf text = {0};
    uint32_t silent = sizeof said.silent;
    uint32_t release = silent + (uint32_t)strlen(said.release) + 1;
    uint32_t n;

    wd_status_put(&said, &text);
    memset(wanted.silent, 0, sizeof wanted.silent);
    ck_assert(get(&text, text.len - silent, &read));
    ck_assert_mem_eq(&read, &wanted, sizeof wanted);
    memset(wanted.release, 0, sizeof wanted.release);
    ck_assert(get(&text, text.len - release, &read));
    ck_assert_mem_eq(&read, &wanted, sizeof wanted);
    wanted.follows = WD_NO_MEMBER;
    ck_assert(get(&text, text.len - release - 4, &read));
    ck_assert_mem_eq(&read, &wanted, sizeof wanted);
    for (n = 0; n < text.len; n++)
        if (n != text.len - silent && n != text.len - release && n != text.len - release - 4)
            ck_assert(!get(&text, n, &read));
    buf_free(&text);
}
END_TEST

START_TEST(test_long_texts)
{
    struct wd_status said = a_status();
    struct wd_status read;
    struct buf text = {0};
    int i;

    said.name[0] = '\0';
    wd_status_put(&said, &text);
    text.len -= (uint32_t)(sizeof said.silent + strlen(said.release) + 1);
    for (i = 0; i < 1000; i++)
        buf_put_byte(&text, 'x');
    buf_put_byte(&text, 0);
    ck_assert(get(&text, text.len, &read));
    ck_assert_uint_eq(strlen(read.release), sizeof read.release - 1);
    ck_assert_int_eq(read.follows, 2);
    buf_free(&text);
}
END_TEST

START_TEST(test_barred)
{
    struct wd_barred said = {.n = 16, .bytes = {0x20, 1, 0xd, 0xb8}};
    struct wd_barred read;
    struct buf text = {0};
    uint32_t n;

    wd_barred_put(&said, &text);
    for (n = 0; n < text.len; n++)
        ck_assert(!wd_barred_get(slice_of(text.data, n), &read));
    buf_put_byte(&text, 'n'); /* a newer one */
    ck_assert(wd_barred_get(buf_slice(&text), &read));
    ck_assert_mem_eq(&read, &said, sizeof said);
    text.data[0] = 5;
    ck_assert(!wd_barred_get(buf_slice(&text), &read));
    buf_free(&text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wd_words");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, test_status);
    tcase_add_test(tc, test_newer_status);
    tcase_add_test(tc, test_older_status);
    tcase_add_test(tc, test_long_texts);
    tcase_add_test(tc, test_barred);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
