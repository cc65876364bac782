/* SPDX-License-Identifier: PostgreSQL
 * test_web_conns.c: who goes when there are too many HTTP connections, and who takes too long. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "web_conns.h"
#include "run_suite.h"

#define SECOND INT64_C(1000000)

static struct web_conns all;
static int nfds;

static struct hba_addr v4(uint8_t last)
{
    return (struct hba_addr){.n = 4, .bytes = {192, 0, 2, last}};
}

/* Host `host` of network `net`, each of 64 bits. */
static struct hba_addr v6(uint8_t net, uint8_t host)
{
    struct hba_addr a = {.n = 16, .bytes = {0x20, 0x01, 0x0d, 0xb8}};

    a.bytes[7] = net;
    a.bytes[15] = host;
    return a;
}

static struct web_conn *add(struct hba_addr addr, int64_t at_us)
{
    return web_conns_add(&all, nfds++, &addr, at_us);
}

static struct web_conn *in_the_way(struct hba_addr addr)
{
    return web_conns_in_the_way(&all, &addr);
}

static void setup(void)
{
    web_conns_init(&all);
    nfds = 0;
}

static void teardown(void)
{
    while (all.n > 0) {
        struct web_conn *c = LIST_ENTRY(list_first(&all.all), struct web_conn, node);

        web_conns_remove(&all, &c);
        ck_assert_ptr_null(c);
    }
}

START_TEST(test_one_address)
{
    struct web_conn *first = add(v4(1), 0);
    struct web_conn *known = add(v4(1), 0);
    int i;

    known->is_known = true;
    for (i = 1; i < WEB_CONNS_OF_ONE; i++) {
        ck_assert_ptr_null(in_the_way(v4(1)));
        add(v4(1), i);
    }
    ck_assert_ptr_eq(in_the_way(v4(1)), first);
    ck_assert_ptr_null(in_the_way(v4(2)));
    first->is_leaving = true; /* its place is free as soon as it was told */
    ck_assert_ptr_null(in_the_way(v4(1)));
    add(v4(1), SECOND);
    ck_assert_int_eq(in_the_way(v4(1))->fd, 2);
}
END_TEST

/* Whoever has a network has all its addresses. */
START_TEST(test_a_network_is_one_address)
{
    struct web_conn *first = add(v6(1, 1), 0);
    int i;

    for (i = 1; i < WEB_CONNS_OF_ONE; i++)
        add(v6(1, (uint8_t)(i + 1)), i);
    ck_assert_ptr_eq(in_the_way(v6(1, 200)), first);
    ck_assert_ptr_null(in_the_way(v6(2, 1)));
    ck_assert_ptr_null(in_the_way(v4(1)));
}
END_TEST

/* Many networks: the oldest stranger goes, not somebody who has shown who he is. */
START_TEST(test_all_places)
{
    struct web_conn *known = add(v4(1), 0);
    struct web_conn *first = NULL;
    int i;

    known->is_known = true;
    for (i = 1; i < WEB_CONNS_MAX; i++) {
        struct web_conn *c = add(v6((uint8_t)(i % 8), (uint8_t)i), i);

        first = first == NULL ? c : first;
    }
    ck_assert(web_conns_are_full(&all));
    ck_assert_ptr_eq(in_the_way(v4(2)), first);
    web_conns_renew(&all, first, SECOND); /* it was answered: others wait longer */
    ck_assert_int_eq(in_the_way(v4(2))->fd, 2);
}
END_TEST

START_TEST(test_nobody_can_go)
{
    int i;

    for (i = 0; i < WEB_CONNS_MAX; i++)
        add(v4((uint8_t)i), 0)->is_known = true;
    ck_assert(web_conns_are_full(&all));
    ck_assert_ptr_null(in_the_way(v4(1)));
}
END_TEST

START_TEST(test_time)
{
    struct web_conn *a = add(v4(1), 0);
    struct web_conn *b = add(v4(1), 10 * SECOND);

    ck_assert_ptr_null(web_conns_overdue(&all, WEB_REQUEST_LIMIT_US - 1));
    ck_assert_ptr_eq(web_conns_overdue(&all, WEB_REQUEST_LIMIT_US), a);
    a->is_leaving = true;
    ck_assert_ptr_null(web_conns_overdue(&all, WEB_REQUEST_LIMIT_US));
    ck_assert_ptr_eq(web_conns_overdue(&all, WEB_REQUEST_LIMIT_US + 10 * SECOND), b);
    web_conns_renew(&all, b, 50 * SECOND);
    ck_assert_ptr_null(web_conns_overdue(&all, WEB_REQUEST_LIMIT_US + 49 * SECOND));
    ck_assert_ptr_eq(web_conns_overdue(&all, WEB_REQUEST_LIMIT_US + 50 * SECOND), b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("web_conns");
    TCase *tc = tcase_create("web_conns");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_one_address);
    tcase_add_test(tc, test_a_network_is_one_address);
    tcase_add_test(tc, test_all_places);
    tcase_add_test(tc, test_nobody_can_go);
    tcase_add_test(tc, test_time);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
