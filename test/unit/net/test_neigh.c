/* SPDX-License-Identifier: PostgreSQL
 * test_neigh.c: packets of ARP and neighbour discovery: what is asked and announced, byte by byte,
 * and what packets of others say about an address, broken ones too. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "net/neigh.h"

#include "run_suite.h"

#define IP6_HEAD 40

static const uint8_t ours[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t theirs[6] = {2, 0, 0, 0, 0, 2};
static struct net_ip v4;
static struct net_ip v6;
static uint8_t packet[NEIGH_PACKET_BYTES];
static uint8_t mac[6];

static void setup(void)
{
    ck_assert(net_ip_parse("192.0.2.9", &v4));
    ck_assert(net_ip_parse("2001:db8::1:203", &v6));
    memset(mac, 0, sizeof mac);
}

static enum neigh_said said(const struct net_ip *ip, size_t n, const uint8_t *from)
{
    return neigh_judge(packet, n, from, ours, ip, mac);
}

START_TEST(test_question_of_arp)
{
    static const uint8_t wanted[28] = {
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 9};

    ck_assert_uint_eq(neigh_make(NEIGH_ASK, ours, &v4, packet), sizeof wanted);
    ck_assert_mem_eq(packet, wanted, sizeof wanted);
}
END_TEST

START_TEST(test_announcement_of_arp)
{
    static const uint8_t wanted[28] = {
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 9, 0, 0, 0, 0, 0, 0, 192, 0, 2, 9};

    ck_assert_uint_eq(neigh_make(NEIGH_TELL, ours, &v4, packet), sizeof wanted);
    ck_assert_mem_eq(packet, wanted, sizeof wanted);
    neigh_make(NEIGH_TELL_AS_REPLY, ours, &v4, packet);
    ck_assert_uint_eq(packet[7], 2);
}
END_TEST

/* RFC 4443: the sum over pseudo-header and message, checksum included, is all ones. */
static void check_sum(size_t n)
{
    uint32_t sum = 58 + (uint32_t)(n - IP6_HEAD);
    size_t i;

    for (i = 8; i < n; i += 2)
        sum += (uint32_t)packet[i] << 8 | packet[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    ck_assert_uint_eq(sum, 0xffff);
}

START_TEST(test_question_of_ipv6)
{
    static const uint8_t group[16] = {0xff, 2, [11] = 1, [12] = 0xff, [13] = 1, [14] = 2, [15] = 3};
    static const uint8_t none[16];
    size_t n = neigh_make(NEIGH_ASK, ours, &v6, packet);

    ck_assert_uint_eq(n, IP6_HEAD + 24);
    ck_assert_uint_eq(packet[7], 255);
    ck_assert_mem_eq(packet + 8, none, 16);
    ck_assert_mem_eq(packet + 24, group, 16);
    ck_assert_uint_eq(packet[IP6_HEAD], 135);
    ck_assert_mem_eq(packet + IP6_HEAD + 8, v6.bytes, 16);
    check_sum(n);
}
END_TEST

START_TEST(test_announcement_of_ipv6)
{
    size_t n = neigh_make(NEIGH_TELL, ours, &v6, packet);

    ck_assert_uint_eq(n, IP6_HEAD + 32);
    ck_assert_mem_eq(packet + 8, v6.bytes, 16);
    ck_assert_uint_eq(packet[24], 0xff);
    ck_assert_uint_eq(packet[39], 1);
    ck_assert_uint_eq(packet[IP6_HEAD], 136);
    ck_assert_uint_eq(packet[IP6_HEAD + 4], 0x20);
    ck_assert_mem_eq(packet + IP6_HEAD + 26, ours, 6);
    check_sum(n);
}
END_TEST

START_TEST(test_what_others_say)
{
    struct net_ip other;
    size_t n = neigh_make(NEIGH_TELL, theirs, &v4, packet);

    ck_assert_int_eq(said(&v4, n, theirs), NEIGH_HOLDS);
    ck_assert_mem_eq(mac, theirs, 6);
    ck_assert(net_ip_parse("192.0.2.10", &other));
    ck_assert_int_eq(said(&other, n, theirs), NEIGH_NOTHING);
    n = neigh_make(NEIGH_ASK, theirs, &v4, packet);
    ck_assert_int_eq(said(&v4, n, theirs), NEIGH_ASKS);
    n = neigh_make(NEIGH_TELL, theirs, &v6, packet);
    ck_assert_int_eq(said(&v6, n, theirs), NEIGH_HOLDS);
    n = neigh_make(NEIGH_ASK, theirs, &v6, packet);
    ck_assert_int_eq(said(&v6, n, theirs), NEIGH_ASKS);
    ck_assert(net_ip_parse("2001:db8::2", &other));
    ck_assert_int_eq(said(&other, n, theirs), NEIGH_NOTHING);
}
END_TEST

/* Somebody who looks for the holder does not hold it himself. */
START_TEST(test_who_looks_for_it)
{
    size_t n = neigh_make(NEIGH_ASK, theirs, &v4, packet);

    memcpy(packet + 14, (const uint8_t[]){192, 0, 2, 1}, 4);
    ck_assert_int_eq(said(&v4, n, theirs), NEIGH_NOTHING);
    n = neigh_make(NEIGH_ASK, theirs, &v6, packet);
    packet[8] = 0xfe;
    ck_assert_int_eq(said(&v6, n, theirs), NEIGH_NOTHING);
}
END_TEST

START_TEST(test_our_own_say_nothing)
{
    size_t n = neigh_make(NEIGH_TELL, ours, &v4, packet);

    ck_assert_int_eq(said(&v4, n, ours), NEIGH_NOTHING);
    n = neigh_make(NEIGH_ASK, ours, &v6, packet);
    ck_assert_int_eq(said(&v6, n, ours), NEIGH_NOTHING);
}
END_TEST

START_TEST(test_broken_ones_say_nothing)
{
    size_t whole = neigh_make(NEIGH_TELL, theirs, &v4, packet);
    size_t n;

    for (n = 0; n < whole; n++)
        ck_assert_int_eq(said(&v4, n, theirs), NEIGH_NOTHING);
    packet[4] = 8; /* not ethernet */
    ck_assert_int_eq(said(&v4, whole, theirs), NEIGH_NOTHING);
    (void)neigh_make(NEIGH_TELL, theirs, &v6, packet);
    for (n = 0; n < IP6_HEAD + 24; n++)
        ck_assert_int_eq(said(&v6, n, theirs), NEIGH_NOTHING);
    packet[7] = 254; /* it has passed a router */
    ck_assert_int_eq(said(&v6, IP6_HEAD + 24, theirs), NEIGH_NOTHING);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("neigh");
    TCase *tc = tcase_create("packets");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, test_question_of_arp);
    tcase_add_test(tc, test_announcement_of_arp);
    tcase_add_test(tc, test_question_of_ipv6);
    tcase_add_test(tc, test_announcement_of_ipv6);
    tcase_add_test(tc, test_what_others_say);
    tcase_add_test(tc, test_who_looks_for_it);
    tcase_add_test(tc, test_our_own_say_nothing);
    tcase_add_test(tc, test_broken_ones_say_nothing);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
