/* SPDX-License-Identifier: PostgreSQL
 * wd_addr_int.h: what the files of wd_addr share: the virtual address and its stages.
 *
 * wd_addr.c decides when the address is wanted and for how long; one of two ways carries it out:
 * wd_addr_kernel.c (netlink, the kernel keeps the lease) or wd_addr_command.c (if_up_cmd,
 * if_down_cmd). A way is asked to take, to renew and to give up, and says how that went through
 * wd_addr_taken, wd_addr_hindered and wd_addr_given. */
#ifndef PGP_WATCHDOG_WD_ADDR_INT_H
#define PGP_WATCHDOG_WD_ADDR_INT_H

#include "net/ifaddr.h"
#include "config/conf.h"
#include "process/common/command_run.h"

#include "wd_addr.h"
#include "wd_addr_words.h"
#include "wd_place.h"
#include "wd_trusted.h"

enum wd_stage {
    WD_IDLE,    /* not wanted, and not here */
    WD_HOOK,    /* wd_escalation_command runs */
    WD_WAITING, /* wanted, but something hinders; tried again later */
    WD_TAKING,  /* the way is at it */
    WD_HELD,
    WD_GIVING /* the way is giving it up, which takes time with commands, or the hook has to end */
};

/* What the way over the kernel has of its own. */
struct wd_addr_kernel {
    int request_fd;
    struct wd_neigh *neigh; /* NULL: neither taking nor holding it on an ethernet */
    bool is_deaf;           /* no CAP_NET_RAW: nobody can be asked */
    bool is_left;           /* it could not be removed, and goes when its lifetime ends */
    int nasked;
    int ntold;
    int64_t defended_ms; /* by the monotonic clock */
    int64_t set_ms;      /* by the monotonic clock: when the lifetime was set last */
    int64_t until_ms;    /* and when it ends */
};

/* Packets from and to the neighbours; outlives its end for a turn of the loop. */
struct wd_neigh {
    struct io io;
    int fd;
    struct wd_addr *a; /* NULL since its end */
};

struct wd_addr {
    struct loop *lp;
    struct wd_addr_calls calls;
    void *owner;
    struct wd_addr_words words;
    struct net_ip ip;
    char address[NET_IP_TEXT];
    enum wd_addr_how how;
    enum wd_stage stage;
    bool is_leading;
    bool is_escalated; /* the hook has run, and its counterpart has not */
    bool must_give;    /* if_up_cmd still runs, but nobody wants the address any more */
    int64_t lease_ms;  /* boot clock */
    int64_t from_ms;   /* boot clock: not taken before */
    int64_t span_ms;   /* how long it was when it was given, the longest since we lead */
    int64_t slept_ms;  /* the boot clock's lead over the monotonic one when last looked at */
    int64_t held_since_us;
    struct net_addr where;
    struct iflink link;
    int lease_fd; /* a timer of the boot clock: goes off at once when a machine wakes up */
    struct io lease;
    int watch_fd;
    struct io watch;
    int nopen; /* ios that are not closed yet, at the end */
    struct timer again;
    struct run *run;  /* question or if_up_cmd / if_down_cmd */
    struct run *hook; /* wd_escalation_command or its counterpart: never both */
    struct wd_addr_kernel kernel;
    struct wd_trusted *trusted;
    struct conf_list watched; /* wd_monitoring_interfaces_list; the items are ours */
    char unfit[128];          /* why this pgpool should not lead; "" when it may */
    struct task tell;
    bool told_held;
    bool was_lost; /* since that was told */
    bool told_unfit;
    char why[128]; /* why it was lost */
    char last_error[256];
    char last_logged[256];
};

/* ---- for the ways ---- */

int64_t wd_addr_mono_ms(void);
/* How long it must not be taken yet; 0: it may be. */
int64_t wd_addr_too_early_ms(const struct wd_addr *a);
/* The address is here and announced. */
void wd_addr_taken(struct wd_addr *a);
/* The address could not be taken: tried again after `again_ms`. Logged when it is news. */
void wd_addr_hindered(struct wd_addr *a, int64_t again_ms, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The address is gone from here. */
void wd_addr_given(struct wd_addr *a);
/* The address was held and is lost; taken anew while leading. */
void wd_addr_lost(struct wd_addr *a, const char *why);
/* Looks where it belongs, into a->where and a->link. False: wd_addr_hindered was called. */
bool wd_addr_find_place(struct wd_addr *a);
/* True when the address is on this machine. */
bool wd_addr_is_here(const struct wd_addr *a);
/* Starts an operator's command whose end nobody waits for. */
void wd_addr_run_beside(struct wd_addr *a, const char *name, const char *command);
/* Has an operator's command run once `before` has ended, which is not heard of any more: this
 * process ends. */
void wd_addr_run_after(
    struct wd_addr *a, const struct run *before, const char *name, const char *command);

/* ---- the ways ---- */

/* True when the kernel lets us, then removes an address that is here. */
bool wd_kernel_init(struct wd_addr *a);
void wd_kernel_fini(struct wd_addr *a);
void wd_kernel_take(struct wd_addr *a);
void wd_kernel_renew(struct wd_addr *a);
/* The address was held, and the kernel has it no more. */
void wd_kernel_missed(struct wd_addr *a);
/* While taking, or held: at once. Calls back nothing. */
void wd_kernel_drop(struct wd_addr *a);
/* The timer a->again went off while taking or held. */
void wd_kernel_step(struct wd_addr *a);

void wd_command_take(struct wd_addr *a);
/* wd_addr_given follows. */
void wd_command_give(struct wd_addr *a);

#endif
