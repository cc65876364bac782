/* SPDX-License-Identifier: PostgreSQL
 * test_wd_seal.c: proofs and seals between pgpools: what is forged, replayed, sent back or cut is
 * refused. */
#include "config.h"

#include <check.h>
#include <string.h>

#include "crypto/crypto.h"
#include "process/watchdog/wd_seal.h"

#include "run_suite.h"

#define KEY slice_of_str("k'\\\xc3\xbc")

static void greet(struct wd_talk *t)
{
    struct wd_hello caller = {.from = 1, .to = 2, .oldest = 3, .newest = 250};
    struct wd_hello called = {.from = 2, .to = 1, .oldest = 1, .newest = 2};
    struct err err = {0};

    ck_assert_int_eq(wd_hello_make(&caller, t->hello[0], &err), 0);
    ck_assert_int_eq(wd_hello_make(&called, t->hello[1], &err), 0);
}

static void begin(struct wd_seal *a, struct wd_seal *b)
{
    struct wd_talk t;
    struct err err = {0};

    greet(&t);
    ck_assert_int_eq(wd_seal_begin(KEY, &t, WD_CALLER, a, &err), 0);
    ck_assert_int_eq(wd_seal_begin(KEY, &t, WD_CALLED, b, &err), 0);
}

static int get(struct wd_seal *s, const struct buf *in, char *type, struct slice *body)
{
    size_t used = 0;
    int rc = wd_seal_get(s, slice_of(in->data, in->len), type, body, &used);

    ck_assert(rc != 1 || used == in->len);
    return rc;
}

START_TEST(test_hello)
{
    struct wd_talk t;
    struct wd_talk other;
    struct wd_hello h;

    greet(&t);
    greet(&other);
    ck_assert_int_eq(wd_hello_read(t.hello[0], &h), WD_HELLO_OURS);
    ck_assert_int_eq(h.from, 1);
    ck_assert_int_eq(h.to, 2);
    ck_assert_int_eq(h.oldest, 3);
    ck_assert_int_eq(h.newest, 250);
    ck_assert(memcmp(t.hello[0], other.hello[0], WD_HELLO_BYTES) != 0);
    t.hello[0][0] ^= 1;
    ck_assert_int_eq(wd_hello_read(t.hello[0], &h), WD_HELLO_NONE);
    t.hello[0][0] ^= 1;
    t.hello[0][9]++;
    ck_assert_int_eq(wd_hello_read(t.hello[0], &h), WD_HELLO_OTHER_SEAL);
    ck_assert_int_eq(h.newest, 0);
}
END_TEST

START_TEST(test_versions)
{
    static const struct {
        struct wd_hello a, b;
        int agreed;
    } cases[] = {
        {{.oldest = 1, .newest = 1}, {.oldest = 1, .newest = 1}, 1},
        {{.oldest = 1, .newest = 3}, {.oldest = 2, .newest = 9}, 3},
        {{.oldest = 1, .newest = 2}, {.oldest = 3, .newest = 4}, 0},
        {{.oldest = 1, .newest = 1}, {.oldest = 0, .newest = 0}, 0}, /* one that does not say */
        {{.oldest = 9, .newest = 1}, {.oldest = 1, .newest = 9}, 0},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(wd_hello_agree(&cases[i].a, &cases[i].b), cases[i].agreed);
        ck_assert_int_eq(wd_hello_agree(&cases[i].b, &cases[i].a), cases[i].agreed);
    }
}
END_TEST

START_TEST(test_proofs)
{
    uint8_t proof[WD_PROOF_BYTES];
    struct wd_talk t;
    struct err err = {0};
    int i;

    greet(&t);
    ck_assert_int_eq(wd_seal_prove(KEY, &t, WD_CALLER, proof, &err), 0);
    ck_assert(wd_seal_check(KEY, &t, WD_CALLER, proof));
    ck_assert(!wd_seal_check(KEY, &t, WD_CALLED, proof)); /* sent back to where it came from */
    ck_assert(!wd_seal_check(slice_of_str("another"), &t, WD_CALLER, proof));
    ck_assert(!wd_seal_check(slice_of_str(""), &t, WD_CALLER, proof));
    for (i = 0; i < WD_HELLO_BYTES; i++) {
        t.hello[i % 2][i] ^= 0x20;
        ck_assert(!wd_seal_check(KEY, &t, WD_CALLER, proof));
        t.hello[i % 2][i] ^= 0x20;
    }
}
END_TEST

START_TEST(test_messages)
{
    struct wd_seal a;
    struct wd_seal b;
    struct buf first = {0};
    struct buf second = {0};
    struct slice body;
    char type;

    begin(&a, &b);
    ck_assert_int_eq(wd_seal_put(&a, 'R', slice_of_str("hello"), &first), 0);
    ck_assert_int_eq(wd_seal_put(&a, 'X', slice_of_str(""), &second), 0);
    ck_assert_int_eq(get(&b, &second, &type, &body), -1); /* out of its turn */
    ck_assert_int_eq(get(&b, &first, &type, &body), 1);
    ck_assert_int_eq(type, 'R');
    ck_assert(slice_eq_str(body, "hello"));
    ck_assert_int_eq(get(&b, &first, &type, &body), -1);  /* once more */
    ck_assert_int_eq(get(&a, &second, &type, &body), -1); /* sent back */
    ck_assert_int_eq(get(&b, &second, &type, &body), 1);
    ck_assert_int_eq(type, 'X');
    ck_assert_uint_eq(body.n, 0);
    buf_free(&first);
    buf_free(&second);
}
END_TEST

/* Every bit counts; what is not all there is waited for, unless its length is impossible. */
START_TEST(test_damage)
{
    struct wd_seal a;
    struct wd_seal b;
    struct buf m = {0};
    struct slice body;
    char type;
    uint32_t i;

    begin(&a, &b);
    ck_assert_int_eq(wd_seal_put(&a, 'S', slice_of_str("vote"), &m), 0);
    for (i = 0; i < m.len * 8; i++) {
        m.data[i / 8] = (char)(m.data[i / 8] ^ (1 << i % 8));
        ck_assert_int_ne(get(&b, &m, &type, &body), 1);
        m.data[i / 8] = (char)(m.data[i / 8] ^ (1 << i % 8));
    }
    for (i = 0; i < m.len; i++) {
        size_t used;

        ck_assert_int_eq(wd_seal_get(&b, slice_of(m.data, i), &type, &body, &used), 0);
    }
    ck_assert_int_eq(get(&b, &m, &type, &body), 1);
    memset(m.data, 0xff, 4);
    ck_assert_int_eq(get(&b, &m, &type, &body), -1);
    memset(m.data, 0, 4);
    ck_assert_int_eq(get(&b, &m, &type, &body), -1);
    buf_free(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wd_seal");
    TCase *tc = tcase_create("all");

    if (crypto_is_built()) { /* without OpenSSL there are no seals */
        tcase_add_test(tc, test_hello);
        tcase_add_test(tc, test_versions);
        tcase_add_test(tc, test_proofs);
        tcase_add_test(tc, test_messages);
        tcase_add_test(tc, test_damage);
    }
    suite_add_tcase(s, tc);
    return run_suite(s);
}
