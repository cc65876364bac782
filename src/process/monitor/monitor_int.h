/* SPDX-License-Identifier: PostgreSQL
 * monitor_int.h: the monitor's root struct. */
#ifndef PGP_MONITOR_INT_H
#define PGP_MONITOR_INT_H

#include "cluster/decide.h"
#include "cluster/failover.h"
#include "cluster/wd_share.h"
#include "process/common/cert_dates.h"
#include "process/common/command_run.h"
#include "process/common/role_loop.h"
#include "probe/probe.h"

struct conf;
struct delay_run;
struct node_command;
struct monitor;

/* One server under watch. */
struct watched {
    struct monitor *m;
    int id;
    struct probe *probe; /* NULL: the settings do not name this server */
    struct timer timer;  /* when it is asked next */
    int64_t due_us;      /* when `timer` ends, on the loop's clock */
    char *password;      /* what the probe logs in with; wiped when freed */
};

enum order_stage { ORDER_READ, ORDER_SLOT, ORDER_CONNINFO, ORDER_LEAVE, ORDER_DROP };

/* An order by SQL while it is being carried out. */
struct order {
    struct monitor *m;
    bool is_beside;
    bool is_running;
    struct failover_do what;
    enum order_stage stage; /* of following */
    int tries;              /* of that stage */
    int nslots;             /* that were made */
    bool needs_restart;     /* before the settings that are given count: PostgreSQL 12 */
    struct probe *probe;
    char *password; /* wiped when freed */
    char conninfo[1024];
    char slot[64];
    char receiver[16]; /* pid of the WAL receiver that is to end; empty: there is none */
    char value[PROBE_MAX_ORDERS][PROBE_VALUE_BYTES];
};

struct monitor {
    struct role_loop role;
    struct watched node[VIEW_MAX_NODES];
    struct task publish;
    struct timer delay_timer;
    struct cert_dates certs;
    struct timer certs_timer;    /* one of them is to be told of */
    struct delay_run *delay_run; /* replication_delay_source_cmd while it runs */
    struct decide decide;
    struct failover failover;
    struct timer act_timer;           /* failover is to be asked again */
    char started_in[PROC_PATH_BYTES]; /* where commands run; empty: not known */
    struct run *run;                  /* failover_command about the primary */
    struct run *beside_run;           /* commands that nobody waits for */
    struct buf begun;                 /* commands that were begun in this turn, each with its NUL */
    struct order order;
    struct order beside_order;
    int64_t wall_us;      /* the wall clock less the boot clock, as monitor_now_us has it */
    uint64_t told;        /* digest of what workers were told of */
    uint64_t saved;       /* digest of what the status file holds */
    uint64_t unsaved;     /* of what could not be written into it, as the log says; else saved */
    uint64_t kept;        /* digest of what the file about a switchover holds */
    bool is_kept;         /* which could be written */
    struct wd_seen seen;  /* as the watchdog was told */
    uint32_t wd_serial;   /* of the last word of the watchdog */
    bool is_wd_alone;     /* nobody leads, and this pgpool may act then */
    int64_t led_until_us; /* by the boot clock: nobody else leads before */
    /* The number of the last failover about each server, in the log of all pgpools. */
    uint32_t wd_epoch[VIEW_MAX_NODES];
    bool is_seen_told;
    struct decide_facts facts; /* scratch: the probe's words in the decision's form */
    struct decide_event events[DECIDE_MAX_EVENTS];
};

/* monitor_conf.c: what the settings mean for probes and decisions. */
void monitor_conf_rules(const struct conf *conf, struct decide_rules *out);
/* Fills *t for server `id`. *password is replaced; the other strings belong to the settings. */
void monitor_conf_target(
    const struct conf_gen *gen, int id, struct probe_target *t, char **password);
/* Fills *t for orders to server `id`, as recovery_user when there is one; *password is replaced. */
void monitor_conf_order_target(
    const struct conf_gen *gen, int id, struct probe_target *t, char **password);
/* Frees and wipes. */
void monitor_conf_drop_password(char **password);
/* Time to the next probe of `id`, -1: none until something happens. */
int64_t monitor_conf_delay_ms(const struct conf *conf, const struct decide *d, int id);

/* monitor.c */
/* The view is to be published at the end of this turn. */
void monitor_changed(struct monitor *m);

/* Asks all servers now. */
void monitor_ask_all(struct monitor *m);

/* monitor_clock.c: the wall clock; while limits run, as it goes on from when the first began,
 * whoever sets it. */
int64_t monitor_now_us(struct monitor *m);

/* monitor_act.c: does what failover says. */
void monitor_act_init(struct monitor *m);
/* Goes on with what a former monitor began. */
void monitor_act_adopt(struct monitor *m);
/* Takes in the events that have happened and does what is to be done now. */
void monitor_act_step(struct monitor *m);
/* Logs the commands that this step has begun: after the events that led to them. */
void monitor_act_tell(struct monitor *m);
/* Something with an outcome is over. */
void monitor_act_done(struct monitor *m, bool beside, const struct failover_outcome *o);
void monitor_act_fini(struct monitor *m);

/* monitor_order.c: orders to servers by SQL. */
void monitor_order_init(struct monitor *m);
/* Begins one; monitor_act_done is called when it is over, maybe at once. */
void monitor_order_start(struct monitor *m, const struct failover_do *what);
void monitor_order_fini(struct monitor *m);

/* monitor_delay.c: the operator's command that tells the lag. */
void monitor_delay_init(struct monitor *m);
/* Sets when the command runs next, as the settings say. */
void monitor_delay_schedule(struct monitor *m);
void monitor_delay_fini(struct monitor *m);

/* monitor_certs.c: certificates that are about to expire. */
void monitor_certs_init(struct monitor *m);
/* The files are to be read, as the workers do with the settings. */
void monitor_certs_read(struct monitor *m);
void monitor_certs_fini(struct monitor *m);

/* monitor_fake.c: health_check_test. */
/* True when the file backend_down_request names `id` as down, or, with `already`, as already down.
 */
bool monitor_fake_is_down(const struct conf_gen *gen, int id, bool already);
/* The request about `id` was carried out: its word becomes already_down. */
void monitor_fake_mark(const struct conf_gen *gen, int id);

/* monitor_wd.c: the other pgpools, by way of the watchdog. */
/* With use_watchdog nothing is done about servers until the watchdog has said something. */
void monitor_wd_init(struct monitor *m);
/* Before each step: is the last word about who leads still good? */
void monitor_wd_doubt(struct monitor *m);
/* The word is good for longer. True when it was not any more. */
bool monitor_wd_led(struct monitor *m, const struct mail *mail);
/* Takes in what all have agreed on. True when the view may have changed; *is_attached is set when
 * servers were attached, which are to be asked then. */
bool monitor_wd_take(struct monitor *m, const struct mail *mail, bool *is_attached);
/* Tells the watchdog what is found, when that has changed. */
void monitor_wd_tell(struct monitor *m);
/* The number, in the log of all pgpools, of the failover about `node` that goes on here; 0: it is
 * in no log. */
uint32_t monitor_wd_epoch(const struct monitor *m, int node);
/* Hands an operator's word on. False: there is no watchdog, it is for us. */
bool monitor_wd_pass(struct monitor *m, const struct node_command *cmd);

/* monitor_orders.c: operators. */
/* Carries out what MAIL_NODE_COMMAND asks for. True when the view may have changed. */
bool monitor_orders_take(struct monitor *m, const struct mail *mail);
/* A worker that died may have left one server ahead of the others, which are detached. True when
 * the view may have changed. */
bool monitor_orders_catch_up(struct monitor *m);
/* Takes holds back from the status file, at the start. */
void monitor_orders_load(struct monitor *m);
/* Goes on with, or takes back, what is left of a switchover from a former life of all of pgpool. */
void monitor_orders_resume(struct monitor *m);
/* Writes the status files when what they are to hold has changed. */
void monitor_orders_save(struct monitor *m);
/* Writes down what a switchover does to servers: to be called before it is done. False when it
 * cannot be written. */
bool monitor_orders_keep(struct monitor *m);

#endif
