/* SPDX-License-Identifier: PostgreSQL
 * wd_addr_kernel.c: the virtual address by netlink, with a lifetime that the kernel watches over.
 * Runs in: watchdog. Before it is set, the neighbours are asked whether anybody has it; then they
 * are told, a few times. Must never give a lifetime that ends after the lease, and never a new one
 * to an address that may have been gone in the meantime: between looking at the clocks and the
 * kernel's answer this process may have been stopped for any time, so they are looked at again. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/neigh.h"

#include "wd_addr_int.h"

#define ASK_TIMES    3
#define ASK_GAP_MS   LOOP_TICK_MS
#define RENEW_MS     200 /* not more often: everybody who watches addresses is told each time */
#define TRY_AGAIN_MS 500
#define MARGIN_MS    (WD_ADDR_MIN_LEASE_MS - WD_ADDR_LATE_MS - 1000)
#define EARLY_MS     100 /* the kernel may remove it a little before its time */
#define DEFEND_MS    1000
#define NTELLS       6
#define PACKETS      64 /* read in one turn */

/* Between announcements. A neighbour that has just learnt something else does not listen for a
 * second. */
static const int tell_gap_ms[NTELLS] = {100, 300, 800, 1500, 3000, 0};

/* ---- the neighbours ---- */

static void on_neigh_closed(struct io *io)
{
    mem_free(LIST_ENTRY(io, struct wd_neigh, io));
}

static void stop_hearing(struct wd_addr *a)
{
    struct wd_neigh *n = a->kernel.neigh;

    if (n == NULL)
        return;
    a->kernel.neigh = NULL;
    n->a = NULL;
    io_close(&n->io, on_neigh_closed);
    close(n->fd);
}

/* Whoever believed the other one hears of us again; not more often than once a second, so that two
 * who both believe to be right do not fill the wire. */
static void defend(struct wd_addr *a)
{
    int64_t now_ms = wd_addr_mono_ms();

    if (now_ms - a->kernel.defended_ms < DEFEND_MS)
        return;
    a->kernel.defended_ms = now_ms;
    a->kernel.ntold = 0;
    timer_start(a->lp, &a->again, 0);
}

static void on_conflict(struct wd_addr *a, enum neigh_said said, const uint8_t mac[6])
{
    char text[NEIGH_MAC_TEXT];

    if (a->stage == WD_HELD) {
        log_caused_detail(LVL_WARNING, NULL,
            "Two machines hold one address, or one that held it has just come back: look for who "
            "else sets it if this goes on.",
            "the machine %s says that it has the virtual address %s, too",
            neigh_mac_text(mac, text), a->address);
        defend(a);
        return;
    }
    stop_hearing(a);
    if (said == NEIGH_HOLDS)
        wd_addr_hindered(a, TRY_AGAIN_MS, "the machine %s still has the virtual address %s",
            neigh_mac_text(mac, text), a->address);
    else /* not in step with the other one */
        wd_addr_hindered(a, TRY_AGAIN_MS + (int64_t)(uv_hrtime() % TRY_AGAIN_MS),
            "the machine %s is about to take the virtual address %s, too",
            neigh_mac_text(mac, text), a->address);
}

static void read_packets(struct wd_addr *a)
{
    struct wd_neigh *n = a->kernel.neigh;
    enum neigh_said said;
    uint8_t mac[6];
    int i;

    for (i = 0; i < PACKETS && a->kernel.neigh == n; i++) {
        if (!neigh_read(n->fd, &a->link, &a->ip, &said, mac))
            return;
        if (said == NEIGH_HOLDS || (said == NEIGH_ASKS && a->stage == WD_TAKING))
            on_conflict(a, said, mac);
    }
}

static void on_packet(struct io *io, int events)
{
    read_packets(LIST_ENTRY(io, struct wd_neigh, io)->a);
}

static int hear(struct wd_addr *a, struct err *err)
{
    struct wd_neigh *n;
    int fd = neigh_open(&a->link, &a->ip, err);

    if (fd == -1)
        return -1;
    n = mem_alloc_zero(sizeof *n);
    n->fd = fd;
    n->a = a;
    io_open(a->lp, &n->io, fd, on_packet);
    io_want(&n->io, IO_READ);
    a->kernel.neigh = n;
    return 0;
}

/* ---- the lifetime ---- */

/* The whole seconds that end, with the kernel's delay, before the lease does. */
static int64_t lifetime_s(const struct wd_addr *a)
{
    int64_t left = a->lease_ms - wd_addr_boot_ms() - WD_ADDR_LATE_MS - MARGIN_MS;

    return left < 1000 ? 0 : left / 1000;
}

static void remove_it(struct wd_addr *a)
{
    struct err err = {0};
    int code = ifaddr_remove(a->kernel.request_fd, &a->where, &err);

    a->kernel.is_left = code != 0 && code != EADDRNOTAVAIL && code != ENODEV;
    if (a->kernel.is_left)
        log_err(LVL_WARNING, &err);
}

/* 0, or -1 with the address not here and *err saying why. */
static int set_lifetime(struct wd_addr *a, int64_t valid_s, struct err *err)
{
    int64_t mono_ms = wd_addr_mono_ms();

    if (ifaddr_set(a->kernel.request_fd, &a->where, (uint32_t)valid_s, err) != 0)
        return -1;
    a->kernel.set_ms = wd_addr_mono_ms();
    a->kernel.until_ms = mono_ms + valid_s * 1000;
    if (wd_addr_boot_ms() + valid_s * 1000 + WD_ADDR_LATE_MS <= a->lease_ms)
        return 0;
    remove_it(a);
    err_set(err, "57014", "this process was held up while it set the virtual address");
    return -1;
}

/* Nothing is said of a lease that is partly over: the next wd_addr_lead goes on from here, or it
 * ends. */
static void wait_for_lease(struct wd_addr *a)
{
    if (a->span_ms >= WD_ADDR_MIN_LEASE_MS)
        return;
    stop_hearing(a);
    wd_addr_hindered(a, TRY_AGAIN_MS,
        "the lease of %lld ms is too short for the kernel, which needs %d ms",
        (long long)a->span_ms, WD_ADDR_MIN_LEASE_MS);
}

static void set_now(struct wd_addr *a)
{
    int64_t early_ms = wd_addr_too_early_ms(a);
    int64_t valid_s = lifetime_s(a);
    struct err err = {0};

    if (early_ms > 0) { /* where nobody can be asked meanwhile */
        stop_hearing(a);
        a->stage = WD_WAITING;
        timer_start(a->lp, &a->again, early_ms);
        return;
    }
    if (valid_s == 0) {
        wait_for_lease(a);
        return;
    }
    if (set_lifetime(a, valid_s, &err) == -1) {
        stop_hearing(a);
        wd_addr_hindered(a, TRY_AGAIN_MS, "%s", err.msg);
        return;
    }
    a->kernel.ntold = 0;
    wd_addr_taken(a);
    if (a->kernel.neigh != NULL)
        wd_kernel_step(a);
    else if (a->link.has_ethernet)
        wd_addr_run_beside(a, "arping_cmd", a->words.arping);
}

void wd_kernel_missed(struct wd_addr *a)
{
    bool is_over = wd_addr_mono_ms() >= a->kernel.until_ms - EARLY_MS;

    wd_kernel_drop(a);
    wd_addr_lost(a, is_over ? "no majority was heard in time, or this process was held up"
                            : "it was removed from this machine");
}

void wd_kernel_renew(struct wd_addr *a)
{
    int64_t valid_s = lifetime_s(a);
    int64_t now_ms = wd_addr_mono_ms();
    struct err err = {0};

    if (now_ms >= a->kernel.until_ms) {
        wd_kernel_missed(a);
        return;
    }
    if (now_ms - a->kernel.set_ms < RENEW_MS || now_ms + valid_s * 1000 <= a->kernel.until_ms)
        return;
    if (set_lifetime(a, valid_s, &err) == 0)
        return;
    wd_kernel_drop(a);
    wd_addr_lost(a, err.msg);
}

/* ---- stages ---- */

static void ask_again(struct wd_addr *a)
{
    if (a->kernel.neigh == NULL) { /* nobody can be asked */
        set_now(a);
        return;
    }
    /* Timers come before packets in a turn of the loop. */
    read_packets(a);
    if (a->stage != WD_TAKING)
        return;
    if (a->kernel.nasked >= ASK_TIMES && wd_addr_too_early_ms(a) > 0) {
        timer_start(a->lp, &a->again, wd_addr_too_early_ms(a));
        return;
    }
    if (a->kernel.nasked++ >= ASK_TIMES) {
        set_now(a);
        return;
    }
    if (neigh_ask(a->kernel.neigh->fd, &a->link, &a->ip) == 0) {
        timer_start(a->lp, &a->again, ASK_GAP_MS);
        return;
    }
    stop_hearing(a);
    wd_addr_hindered(
        a, TRY_AGAIN_MS, "could not ask the neighbours on %s: %s", a->link.name, strerror(errno));
}

static void tell_again(struct wd_addr *a)
{
    if (wd_addr_mono_ms() >= a->kernel.until_ms) {
        wd_kernel_missed(a);
        return;
    }
    if (a->kernel.neigh == NULL)
        return;
    if (neigh_announce(a->kernel.neigh->fd, &a->link, &a->ip) == -1)
        log_caused_detail(LVL_WARNING, NULL,
            "Until their caches expire they send to the machine that had the address: arping by "
            "hand.",
            "could not tell the neighbours on %s about the virtual address: %s", a->link.name,
            strerror(errno));
    if (++a->kernel.ntold < NTELLS)
        timer_start(a->lp, &a->again, tell_gap_ms[a->kernel.ntold - 1]);
}

void wd_kernel_step(struct wd_addr *a)
{
    if (a->stage == WD_HELD)
        tell_again(a);
    else if (a->stage == WD_TAKING)
        ask_again(a);
}

void wd_kernel_take(struct wd_addr *a)
{
    struct err err = {0};

    if (!wd_addr_find_place(a))
        return;
    a->kernel.nasked = 0;
    if (a->kernel.is_deaf || !a->link.has_ethernet) {
        set_now(a);
    } else if (hear(a, &err) == 0) {
        ask_again(a);
    } else if (strcmp(err.sqlstate, "42501") == 0) {
        a->kernel.is_deaf = true;
        log_at_detail(LVL_WARNING, err.msg, "Give the program CAP_NET_RAW besides CAP_NET_ADMIN.",
            "nobody is asked whether the virtual address is in use, and arping_cmd announces it");
        set_now(a);
    } else {
        wd_addr_hindered(a, TRY_AGAIN_MS, "%s", err.msg);
    }
}

void wd_kernel_drop(struct wd_addr *a)
{
    stop_hearing(a);
    timer_stop(a->lp, &a->again);
    if (a->stage == WD_HELD)
        remove_it(a);
}

/* ---- the beginning ---- */

static bool remove_old(struct wd_addr *a, const struct net_addr *old)
{
    struct err err = {0};
    int code = ifaddr_remove(a->kernel.request_fd, old, &err);

    if (code == 0)
        log_at(LVL_WARNING,
            "the virtual address %s was on this machine, left by a former process: removed",
            a->address);
    else if (code != EPERM && code != EADDRNOTAVAIL) {
        a->kernel.is_left = true;
        log_err(LVL_WARNING, &err);
    }
    return code != EPERM;
}

bool wd_kernel_init(struct wd_addr *a)
{
    struct net_addr nowhere = {.ip = a->ip, .prefix = (int)net_ip_size(&a->ip) * 8};
    struct wd_place_host *host = mem_alloc(sizeof *host);
    struct err err = {0};
    bool may;
    int i;

    a->kernel.request_fd = ifaddr_open(&err);
    if (a->kernel.request_fd == -1 || wd_place_look(host, &err) == -1) {
        log_err(LVL_WARNING, &err);
        mem_free(host);
        return false;
    }
    nowhere.ifindex = host->nlinks > 0 ? host->link[0].ifindex : 1;
    may = ifaddr_remove(a->kernel.request_fd, &nowhere, NULL) != EPERM;
    for (i = 0; i < host->naddrs && may; i++)
        if (net_ip_eq(&host->addr[i].ip, &a->ip))
            may = remove_old(a, &host->addr[i]);
    mem_free(host);
    return may;
}

void wd_kernel_fini(struct wd_addr *a)
{
    stop_hearing(a);
    if (a->kernel.request_fd != -1)
        close(a->kernel.request_fd);
    a->kernel.request_fd = -1;
}
