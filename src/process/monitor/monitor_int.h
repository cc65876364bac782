/* SPDX-License-Identifier: PostgreSQL
 * monitor_int.h: the monitor's root struct. */
#ifndef PGP_MONITOR_INT_H
#define PGP_MONITOR_INT_H

#include "cluster/decide.h"
#include "process/common/role_loop.h"
#include "probe/probe.h"

struct conf;
struct monitor;

/* One server under watch. */
struct watched {
    struct monitor *m;
    int id;
    struct probe *probe; /* NULL: the settings do not name this server */
    struct timer timer;  /* when it is asked next */
    char *password;      /* what the probe logs in with; wiped when freed */
};

struct monitor {
    struct role_loop role;
    struct watched node[VIEW_MAX_NODES];
    struct task publish;
    struct decide decide;
    uint64_t saved;            /* digest of what the status file holds */
    struct decide_facts facts; /* scratch: the probe's words in the decision's form */
    struct decide_event events[DECIDE_MAX_EVENTS];
};

/* monitor_conf.c: what the settings mean for probes and decisions. */
void monitor_conf_rules(const struct conf *conf, struct decide_rules *out);
/* Fills *t for server `id`. *password is replaced; the other strings belong to the settings. */
void monitor_conf_target(
    const struct conf_gen *gen, int id, struct probe_target *t, char **password);
/* Frees and wipes. */
void monitor_conf_drop_password(char **password);
/* Time to the next probe of `id`, -1: none until something happens. */
int64_t monitor_conf_delay_ms(const struct conf *conf, const struct decide *d, int id);

/* monitor_orders.c: operators. */
/* Carries out what MAIL_NODE_COMMAND asks for. True when the view may have changed. */
bool monitor_orders_take(struct monitor *m, const struct mail *mail);
/* Takes holds back from the status file, at the start. */
void monitor_orders_load(struct monitor *m);
/* Writes the status file when what it is to hold has changed. */
void monitor_orders_save(struct monitor *m);

#endif
