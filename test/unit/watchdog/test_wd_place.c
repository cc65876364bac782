/* SPDX-License-Identifier: PostgreSQL
 * test_wd_place.c: where the virtual address belongs, out of an operator's words and a machine's
 * networks; the commands made of them; which interfaces matter. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/conf.h"
#include "process/watchdog/wd_addr_words.h"

#include "run_suite.h"

#define DEFAULT_UP "/usr/bin/sudo /sbin/ip addr add $_IP_$/24 dev eth0 label eth0:0"

static struct wd_place_host host;
static struct wd_place_words words;
static struct net_addr where;
static struct iflink link_found;
static struct err err;

static void add_link(const char *name)
{
    struct iflink *l = &host.link[host.nlinks++];

    snprintf(l->name, sizeof l->name, "%s", name);
    l->ifindex = (unsigned)host.nlinks;
    l->is_up = true;
    l->is_loopback = strcmp(name, "lo") == 0;
}

static void add_addr(unsigned ifindex, const char *ip, int prefix)
{
    struct net_addr *a = &host.addr[host.naddrs++];

    ck_assert(net_ip_parse(ip, &a->ip));
    a->ifindex = ifindex;
    a->prefix = prefix;
}

static void setup(void)
{
    memset(&host, 0, sizeof host);
    memset(&err, 0, sizeof err);
    add_link("lo");
    add_link("eth0");
    add_link("ens5");
    add_addr(1, "127.0.0.1", 8);
    add_addr(2, "10.0.0.5", 16);
    add_addr(3, "192.0.2.5", 25);
    add_addr(3, "2001:db8::5", 64);
}

static int choose(const char *command, bool is_default, const char *ip)
{
    struct net_ip parsed;

    ck_assert(net_ip_parse(ip, &parsed));
    wd_place_read(command, &words);
    return wd_place_choose(&host, &words, is_default, &parsed, &where, &link_found, &err);
}

START_TEST(test_words_of_ip)
{
    wd_place_read(DEFAULT_UP, &words);
    ck_assert_str_eq(words.dev, "eth0");
    ck_assert_str_eq(words.label, "eth0:0");
    ck_assert_int_eq(words.prefix, 24);
    wd_place_read("ip -6 addr add $_IP_$ dev ens5", &words);
    ck_assert_str_eq(words.dev, "ens5");
    ck_assert_str_eq(words.label, "");
    ck_assert_int_eq(words.prefix, -1);
    wd_place_read("ip addr add $_IP_$/999 dev a-name-that-is-too-long", &words);
    ck_assert_str_eq(words.dev, "");
    ck_assert_int_eq(words.prefix, -1);
    wd_place_read("", &words);
    ck_assert_str_eq(words.dev, "");
}
END_TEST

START_TEST(test_words_of_ifconfig)
{
    wd_place_read("/usr/bin/sudo /sbin/ifconfig eth0:0 inet $_IP_$ netmask 255.255.255.0", &words);
    ck_assert_str_eq(words.dev, "eth0");
    ck_assert_str_eq(words.label, "eth0:0");
}
END_TEST

/* Whoever left the default has his interface found, whatever it is called. */
START_TEST(test_default_goes_by_the_network)
{
    ck_assert_int_eq(choose(DEFAULT_UP, true, "192.0.2.9"), 0);
    ck_assert_str_eq(link_found.name, "ens5");
    ck_assert_int_eq(where.prefix, 25);
    ck_assert_str_eq(where.label, "");
    ck_assert_int_eq(choose(DEFAULT_UP, true, "10.0.7.7"), 0);
    ck_assert_str_eq(link_found.name, "eth0");
    ck_assert_int_eq(where.prefix, 16);
    ck_assert_str_eq(where.label, "eth0:0");
    ck_assert_int_eq(choose(DEFAULT_UP, true, "2001:db8::9"), 0);
    ck_assert_str_eq(link_found.name, "ens5");
    ck_assert_int_eq(where.prefix, 64);
}
END_TEST

START_TEST(test_default_without_a_network)
{
    ck_assert_int_eq(choose(DEFAULT_UP, true, "203.0.113.9"), 0);
    ck_assert_str_eq(link_found.name, "eth0");
    ck_assert_int_eq(where.prefix, 24);
    ck_assert_int_eq(choose(DEFAULT_UP, true, "2001:db8:ffff::9"), 0);
    ck_assert_int_eq(where.prefix, 128);
}
END_TEST

START_TEST(test_operator_has_the_say)
{
    ck_assert_int_eq(choose("ip addr add $_IP_$/32 dev eth0", false, "192.0.2.9"), 0);
    ck_assert_str_eq(link_found.name, "eth0");
    ck_assert_int_eq(where.prefix, 32);
    ck_assert_int_eq(choose("ip addr add $_IP_$ dev ens5", false, "192.0.2.9"), 0);
    ck_assert_int_eq(where.prefix, 25);
    ck_assert_int_eq(choose("/etc/pgpool/up.sh $_IP_$", false, "192.0.2.9"), 0);
    ck_assert_str_eq(link_found.name, "ens5");
}
END_TEST

START_TEST(test_no_place)
{
    ck_assert_int_eq(choose("ip addr add $_IP_$/24 dev wlan7", false, "192.0.2.9"), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "wlan7"));
    ck_assert_str_ne(err.hint, "");
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(choose("up.sh $_IP_$", false, "203.0.113.9"), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "203.0.113.9"));
}
END_TEST

/* What a former process left does not say where the network is. */
START_TEST(test_the_address_itself_is_no_network)
{
    struct net_ip ip;

    add_addr(1, "192.0.2.9", 32);
    ck_assert_int_eq(choose(DEFAULT_UP, true, "192.0.2.9"), 0);
    ck_assert_str_eq(link_found.name, "ens5");
    ck_assert(net_ip_parse("192.0.2.9", &ip));
    ck_assert_ptr_nonnull(wd_place_find(&host, &ip));
    ck_assert(net_ip_parse("192.0.2.8", &ip));
    ck_assert_ptr_null(wd_place_find(&host, &ip));
}
END_TEST

static void check_command(const char *folder, const char *command, const char *wanted)
{
    char *line = wd_words_command(folder, command, "192.0.2.9");

    ck_assert_str_eq(line, wanted);
    mem_free(line);
}

START_TEST(test_commands)
{
    check_command("/sbin", "ip addr add $_IP_$/24 dev x", "/sbin/ip addr add 192.0.2.9/24 dev x");
    check_command("/sbin", "/bin/ip $_IP_$ $_IP_$", "/bin/ip 192.0.2.9 192.0.2.9");
    check_command("", "ip", "ip");
    check_command("/sbin", "", "");
}
END_TEST

START_TEST(test_interfaces_that_matter)
{
    const char *names[] = {"eth0", "ens5"};
    const char *any[] = {"any"};
    struct conf_list list = {2, names, NULL};
    struct conf_list all = {1, any, NULL};
    struct conf_list none = {0, NULL, NULL};

    ck_assert(wd_words_links_are_up(&list, host.link, host.nlinks));
    host.link[1].is_up = false;
    ck_assert(wd_words_links_are_up(&list, host.link, host.nlinks));
    ck_assert(wd_words_links_are_up(&all, host.link, host.nlinks));
    host.link[2].is_up = false;
    ck_assert(!wd_words_links_are_up(&list, host.link, host.nlinks));
    ck_assert(!wd_words_links_are_up(&all, host.link, host.nlinks));
    ck_assert(wd_words_links_are_up(&none, host.link, host.nlinks));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wd_place");
    TCase *tc = tcase_create("place");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, test_words_of_ip);
    tcase_add_test(tc, test_words_of_ifconfig);
    tcase_add_test(tc, test_default_goes_by_the_network);
    tcase_add_test(tc, test_default_without_a_network);
    tcase_add_test(tc, test_operator_has_the_say);
    tcase_add_test(tc, test_no_place);
    tcase_add_test(tc, test_the_address_itself_is_no_network);
    tcase_add_test(tc, test_commands);
    tcase_add_test(tc, test_interfaces_that_matter);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
