/* SPDX-License-Identifier: PostgreSQL
 * test_ifaddr.c: addresses of interfaces, in a network of the test's own where that is permitted:
 * set with a lifetime, seen, renewed, removed by us and by the kernel. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/ifaddr.h"

#include "run_suite.h"

#define PATIENCE_MS 60000

static struct err err;
static int fd;
static unsigned loopback;

/* The loopback of a namespace of its own; false where there may be none. */
static bool make_network(void)
{
    struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int sock;

    if (unshare(CLONE_NEWNET) == -1 && unshare(CLONE_NEWUSER | CLONE_NEWNET) == -1) {
        fprintf(stderr, "left out: no namespace for the network here (%s)\n", strerror(errno));
        return false;
    }
    sock = socket(AF_INET, SOCK_DGRAM, 0);
    ck_assert_int_ne(sock, -1);
    ck_assert_int_eq(ioctl(sock, SIOCSIFFLAGS, &req), 0);
    close(sock);
    loopback = if_nametoindex("lo");
    fd = ifaddr_open(&err);
    ck_assert_msg(fd != -1, "%s", err.msg);
    return true;
}

static struct net_addr address(const char *text, int prefix)
{
    struct net_addr a = {.prefix = prefix, .ifindex = loopback};

    ck_assert(net_ip_parse(text, &a.ip));
    return a;
}

static bool find(const struct net_addr *wanted, struct net_addr *found)
{
    struct net_addr all[IFADDR_MAX];
    int n = ifaddr_list(all, IFADDR_MAX, &err);
    int i;

    ck_assert_msg(n != -1, "%s", err.msg);
    for (i = 0; i < n; i++) {
        if (net_ip_eq(&all[i].ip, &wanted->ip)) {
            *found = all[i];
            return true;
        }
    }
    return false;
}

static void live_and_die(const char *text, int prefix)
{
    struct net_addr a = address(text, prefix);
    struct net_addr found;
    int watch = ifaddr_watch(&err);
    struct pollfd wait = {.fd = watch, .events = POLLIN};

    ck_assert_int_ne(watch, -1);
    ck_assert_int_eq(ifaddr_remove(fd, &a, &err), EADDRNOTAVAIL);
    ck_assert_int_eq(ifaddr_set(fd, &a, 600, NULL), 0);
    ck_assert(find(&a, &found));
    ck_assert_int_eq(found.prefix, prefix);
    ck_assert_uint_eq(found.ifindex, loopback);
    ck_assert(!found.is_lasting);
    ck_assert(!ifaddr_watch_read(watch));
    /* the kernel takes it away when nobody renews it, and says so */
    ck_assert_int_eq(ifaddr_set(fd, &a, 1, NULL), 0);
    do
        ck_assert_int_eq(poll(&wait, 1, PATIENCE_MS), 1);
    while (!ifaddr_watch_read(watch));
    ck_assert(!find(&a, &found));
    ck_assert_int_eq(ifaddr_set(fd, &a, 600, NULL), 0);
    ck_assert_int_eq(ifaddr_remove(fd, &a, NULL), 0);
    ck_assert(!find(&a, &found));
    ck_assert(ifaddr_watch_read(watch));
}

START_TEST(test_an_address_of_ipv4)
{
    if (make_network())
        live_and_die("192.0.2.9", 24);
}
END_TEST

START_TEST(test_an_address_of_ipv6)
{
    if (!make_network())
        return;
    if (access("/proc/net/if_inet6", F_OK) == 0)
        live_and_die("2001:db8::9", 64);
    else
        fprintf(stderr, "left out: no IPv6 here\n");
}
END_TEST

START_TEST(test_a_label)
{
    struct net_addr a;
    struct net_addr found;

    if (!make_network())
        return;
    a = address("192.0.2.9", 32);
    snprintf(a.label, sizeof a.label, "lo:7");
    ck_assert_int_eq(ifaddr_set(fd, &a, 600, NULL), 0);
    ck_assert(find(&a, &found));
    ck_assert_str_eq(found.label, "lo:7");
    ck_assert_int_eq(ifaddr_remove(fd, &a, NULL), 0);
}
END_TEST

START_TEST(test_interfaces)
{
    struct iflink all[IFLINK_MAX];
    struct iflink one;
    int n;

    if (!make_network())
        return;
    n = iflink_list(all, IFLINK_MAX, &err);
    ck_assert_msg(n >= 1, "%s", err.msg);
    ck_assert(iflink_of(loopback, &one));
    ck_assert_str_eq(one.name, "lo");
    ck_assert(one.is_up);
    ck_assert(one.is_loopback);
    ck_assert(!one.has_ethernet);
    ck_assert(!iflink_of(999999, &one));
}
END_TEST

/* Without the right nothing is set, and the error says so. */
START_TEST(test_without_permission)
{
    struct net_addr a;

    if (!make_network() || getuid() != 0 || setuid(65534) == -1)
        return;
    close(fd);
    fd = ifaddr_open(&err);
    a = address("192.0.2.9", 24);
    ck_assert_int_eq(ifaddr_set(fd, &a, 600, &err), EPERM);
    ck_assert_ptr_nonnull(strstr(err.msg, "192.0.2.9/24"));
    ck_assert_int_eq(ifaddr_remove(fd, &a, NULL), EPERM);
}
END_TEST

START_TEST(test_texts)
{
    static const char *const good[] = {"192.0.2.9", "::1", "2001:db8::9"};
    static const char *const bad[] = {"", "192.0.2", "192.0.2.9/24", "host", "::g", "1.2.3.4:5"};
    char text[NET_IP_TEXT];
    struct net_ip ip;
    size_t i;

    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert(net_ip_parse(good[i], &ip));
        ck_assert_str_eq(net_ip_text(&ip, text), good[i]);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert(!net_ip_parse(bad[i], &ip));
}
END_TEST

START_TEST(test_networks)
{
    static const struct {
        const char *ip;
        const char *net;
        int prefix;
        bool is_in;
    } row[] = {{"192.0.2.9", "192.0.2.1", 24, true}, {"192.0.3.9", "192.0.2.1", 24, false},
        {"192.0.3.9", "192.0.2.1", 23, true}, {"192.0.2.9", "192.0.2.9", 32, true},
        {"192.0.2.8", "192.0.2.9", 32, false}, {"10.1.2.3", "192.0.2.1", 0, true},
        {"192.0.2.129", "192.0.2.1", 25, false}, {"2001:db8::9", "2001:db8::1", 64, true},
        {"2001:db8:0:1::9", "2001:db8::1", 64, false}, {"2001:db8::9", "192.0.2.1", 0, false}};
    struct net_ip ip;
    struct net_ip net;
    size_t i;

    for (i = 0; i < sizeof row / sizeof row[0]; i++) {
        ck_assert(net_ip_parse(row[i].ip, &ip));
        ck_assert(net_ip_parse(row[i].net, &net));
        ck_assert_msg(net_ip_in(&ip, &net, row[i].prefix) == row[i].is_in, "%s in %s/%d", row[i].ip,
            row[i].net, row[i].prefix);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ifaddr");
    TCase *tc = tcase_create("addresses");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_an_address_of_ipv4);
    tcase_add_test(tc, test_an_address_of_ipv6);
    tcase_add_test(tc, test_a_label);
    tcase_add_test(tc, test_interfaces);
    tcase_add_test(tc, test_without_permission);
    tcase_add_test(tc, test_texts);
    tcase_add_test(tc, test_networks);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
