/* SPDX-License-Identifier: PostgreSQL
 * wd_addr.h: the virtual address of the leader (delegate_ip): who leads with a majority heard holds
 * it, for as long as the lease says and no longer.
 * Runs in: watchdog. Where the kernel lets us (CAP_NET_ADMIN) the address is set with a lifetime,
 * so that a process that is killed, stopped or swapped out loses it without its help; elsewhere by
 * if_up_cmd and if_down_cmd. Everything goes on beside the loop; nothing here waits. */
#ifndef PGP_WATCHDOG_WD_ADDR_H
#define PGP_WATCHDOG_WD_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "event/loop.h"

struct conf;
struct wd_addr;

/* The kernel counts lifetimes in whole seconds and looks at most once a second, so what it removes
 * may stay that much longer than its lifetime says. Lifetimes are chosen so that this, too, is over
 * when the lease is: nobody has to wait longer than the lease. */
#define WD_ADDR_LATE_MS 1000
/* A lease shorter than this, and the time between a question and its answers, cannot be kept by
 * the kernel: the shortest lifetime is a second, and the request to the kernel takes time. */
#define WD_ADDR_MIN_LEASE_MS (WD_ADDR_LATE_MS + 1000 + 50)

enum wd_addr_how {
    WD_ADDR_NOTHING, /* no delegate_ip: hooks alone */
    WD_ADDR_KERNEL,  /* the kernel keeps the lease */
    WD_ADDR_COMMANDS /* if_up_cmd and if_down_cmd: a dead process keeps the address */
};

struct wd_addr_status {
    const char *address;   /* delegate_ip; "" without */
    const char *interface; /* on which it is held or was last; "" before */
    const char *doing;     /* a word or two for people: "held", "asking whether it is free", ... */
    enum wd_addr_how how;
    bool is_leading; /* wd_addr_lead was called, wd_addr_stop_leading was not */
    bool is_held;    /* on this host, by us */
    bool is_gone;    /* certainly not on this host: the kernel was told to remove it, and did */
    int64_t
        lease_left_ms; /* until which it is held without another wd_addr_lead; 0 when not held */
    int64_t held_since_us; /* wall clock; 0 when not held */
    char last_error[256];  /* "" when there was none */
};

/* Any may be NULL. They are called from the loop, never from within a call of wd_addr_*; they may
 * call any of these functions but wd_addr_free. */
struct wd_addr_calls {
    /* The address is taken and announced; without delegate_ip: the hook has run. */
    void (*on_taken)(void *owner);
    /* The address is not on this host any more: it stopped leading, the lease is over, or somebody
     * removed it. */
    void (*on_lost)(void *owner, const char *why);
    /* This pgpool should not lead while this lasts: no trusted server answers, an interface is
     * down. The address is being given up already. */
    void (*on_unfit)(void *owner, const char *why);
    /* What made this pgpool unfit to lead is over. */
    void (*on_fit)(void *owner);
};

/* Milliseconds of CLOCK_BOOTTIME, which goes on while the machine sleeps: the clock of leases. */
int64_t wd_addr_boot_ms(void);

/* Makes it, and removes the address when it is on this host: a former process left it. Takes copies
 * of what it needs of `conf`: delegate_ip, if_*, arping_*, ping_path, trusted_server*,
 * wd_monitoring_interfaces_list, the escalation commands. NULL with *err when they cannot be used:
 * a start error. */
struct wd_addr *wd_addr_new(struct loop *lp, const struct conf *conf,
    const struct wd_addr_calls *calls, void *owner, struct err *err);
/* Gives the address up and frees all; commands that still run go on unseen. Clears *ap. */
void wd_addr_free(struct wd_addr **ap);
/* After a reload: the settings of wd_addr_new that may change then. */
void wd_addr_reload(struct wd_addr *a, const struct conf *conf);

/* A majority was heard while leading: nobody else takes the address before `valid_until_boot_ms`,
 * and it is gone from here then unless this is called again. Called as often as that happens. The
 * first call begins to take the address (the caller has waited for the former lease to end); later
 * ones renew. A time that has passed is ignored: an expired lease is not renewed, the next call
 * takes the address anew. */
void wd_addr_lead(struct wd_addr *a, int64_t valid_until_boot_ms);
/* The address is not taken before that time, when the lease of a former leader may still run.
 * Asking whether it is free begins at once. */
void wd_addr_not_before(struct wd_addr *a, int64_t boot_ms);
/* Gives the address up at once; harmless when it is not held. on_lost follows when it was. */
void wd_addr_stop_leading(struct wd_addr *a);
/* False while this pgpool should not lead (see on_unfit); *why then says so. */
bool wd_addr_is_fit(const struct wd_addr *a, const char **why);
/* True when a trusted server has answered since then (loop time); else all are asked. */
bool wd_addr_is_trusted(struct wd_addr *a, int64_t since_us);
/* Fills *out; its pointers are good until the next call of any wd_addr function. */
void wd_addr_status(const struct wd_addr *a, struct wd_addr_status *out);
/* "kernel", "commands", "none". */
const char *wd_addr_how_text(enum wd_addr_how how);

#endif
