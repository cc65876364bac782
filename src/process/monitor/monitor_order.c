/* SPDX-License-Identifier: PostgreSQL
 * monitor_order.c: orders to servers by SQL: promote, follow, stop writing.
 * Runs in: monitor. A connection of its own for each order, as recovery_user when that is set, else
 * as whoever the probes log in as. Passwords that stand in a primary_conninfo pass through here:
 * they never reach the log. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "sys/clock.h"

#include "monitor_int.h"

#define ORDER_LIMIT_MS  10000
#define PROMOTE_LIMIT_S 60
#define PROMOTE_ORDERS  3
#define NOT_IN_RECOVERY                                                                            \
    "55000" /* pg_promote() says so: somebody was faster, or the first order                       \
             */
#define TEXT_BYTES     300
#define CONNINFO_BYTES 1024
#define MAX_LOOKS      100 /* of 20 ms */
#define NEEDS_RESTART                                                                              \
    "it has to be restarted: before PostgreSQL 13 a server takes up another primary_conninfo "     \
    "only "                                                                                        \
    "when it starts"

/* Transactions that may still write although new ones may not: those that have written, and those
 * that began before all processes knew. */
#define OPEN_TRANSACTIONS                                                                          \
    " FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'"                      \
    " AND pid <> pg_catalog.pg_backend_pid() AND xact_start IS NOT NULL"                           \
    " AND (backend_xid IS NOT NULL"                                                                \
    " OR xact_start <= pg_catalog.pg_conf_load_time() + interval '200 ms')"

static void end_order(struct order *o, bool ok, bool is_unsure, const char *text)
{
    const char(*value)[PROBE_VALUE_BYTES] = (void *)o->value;
    struct failover_outcome out = {
        .seq = o->what.seq, .ok = ok, .is_unsure = is_unsure, .text = text};

    if (ok && o->what.type == FAILOVER_DO_DRAIN) {
        out.count = strtoll(value[0], NULL, 10);
        out.lsn = strtoull(value[3], NULL, 10);
    }
    if (o->what.type == FAILOVER_DO_LEAD)
        out.count = o->nslots;
    o->is_running = false;
    mem_wipe(o->conninfo, sizeof o->conninfo);
    monitor_act_done(o->m, o->is_beside, &out);
}

static void finish(struct order *o, bool ok, const char *text)
{
    end_order(o, ok, false, text);
}

static void send_sql(struct order *o, int node, const char *const sql[], int n, int64_t limit_ms)
{
    struct probe_target target;

    monitor_conf_order_target(role_loop_gen(&o->m->role), node, &target, &o->password);
    target.timeout_ms = limit_ms;
    probe_set_target(o->probe, &target);
    probe_start_orders(o->probe, sql, n);
}

/* Following */

static bool is_known(const struct monitor *m, int node)
{
    const struct conf *conf = conf_of(role_loop_gen(&m->role));

    return node >= 0 && node < conf->nnodes && conf_has_node(conf, node);
}

static void send_slot(struct order *o)
{
    struct buf text = {0};
    const char *sql[1];

    buf_printf(&text, "SELECT pg_catalog.pg_create_physical_replication_slot(");
    probe_put_literal(&text, o->slot);
    buf_printf(&text, ") WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots "
                      "WHERE slot_name = ");
    probe_put_literal(&text, o->slot);
    buf_put_byte(&text, ')');
    buf_put_byte(&text, '\0');
    sql[0] = text.data;
    send_sql(o, o->what.target, sql, 1, ORDER_LIMIT_MS);
    buf_free(&text);
}

static void send_conninfo(struct order *o)
{
    struct buf text = {0};
    const char *sql[2];

    buf_printf(&text, "ALTER SYSTEM SET primary_conninfo = ");
    probe_put_literal(&text, o->conninfo);
    buf_put_byte(&text, '\0');
    sql[0] = text.data;
    sql[1] = "SELECT pg_catalog.pg_reload_conf()";
    send_sql(o, o->what.node, sql, 2, ORDER_LIMIT_MS);
    mem_wipe(text.data, text.len);
    buf_free(&text);
}

/* Until the WAL receiver that streamed from the old primary has ended, it may get more of that. */
static void send_leave(struct order *o)
{
    struct buf text = {0};
    const char *sql[2];

    buf_printf(&text, "SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_wal_receiver"
                      " WHERE pid::pg_catalog.text = ");
    probe_put_literal(&text, o->receiver);
    buf_put_byte(&text, '\0');
    sql[0] = "SELECT pg_catalog.pg_sleep(0.02)";
    sql[1] = text.data;
    send_sql(o, o->what.node, sql, 2, ORDER_LIMIT_MS);
    buf_free(&text);
}

/* Drops a slot whose user leaves in these moments; an unused slot would keep WAL for ever. */
static void send_drop(struct order *o)
{
    struct buf text = {0};
    struct buf look = {0};
    const char *sql[3];

    buf_printf(&text, "SELECT pg_catalog.pg_drop_replication_slot(slot_name)"
                      " FROM pg_catalog.pg_replication_slots WHERE NOT active AND slot_name = ");
    probe_put_literal(&text, o->slot);
    buf_put_byte(&text, '\0');
    buf_printf(&look, "SELECT pg_catalog.count(*) FROM pg_catalog.pg_replication_slots"
                      " WHERE slot_name = ");
    probe_put_literal(&look, o->slot);
    buf_put_byte(&look, '\0');
    sql[0] = "SELECT pg_catalog.pg_sleep(0.02)";
    sql[1] = text.data;
    sql[2] = look.data;
    send_sql(o, o->what.old, sql, 3, ORDER_LIMIT_MS);
    buf_free(&text);
    buf_free(&look);
}

/* What it connects with now is known: the same with the new primary in it. */
static void follow_read(struct order *o, const struct probe_report *r)
{
    const struct conf *conf = conf_of(role_loop_gen(&o->m->role));
    const struct conf_node *primary = &conf->nodes[o->what.target];
    const char *host = primary->backend_hostname[0] == '\0' ? "/tmp" : primary->backend_hostname;
    bool same = false;

    snprintf(o->slot, sizeof o->slot, "%.*s", (int)sizeof o->slot - 1, r->value[1]);
    snprintf(o->receiver, sizeof o->receiver, "%.*s", (int)sizeof o->receiver - 1, r->value[2]);
    o->needs_restart = strcmp(r->value[3], "postmaster") == 0;
    if (r->value[0][0] == '\0' || probe_conninfo_move(r->value[0], host, primary->backend_port,
                                      &same, o->conninfo, sizeof o->conninfo) == -1)
        finish(o, false,
            r->value[3][0] == '\0' ? "before PostgreSQL 12 its primary_conninfo is in recovery.conf"
                                   : "it has no primary_conninfo that could be changed");
    else if (same && o->needs_restart)
        finish(o, false, NEEDS_RESTART);
    else if (same && (o->slot[0] == '\0' || o->what.type == FAILOVER_DO_LEAD))
        finish(o, true, "");
    else if (o->slot[0] != '\0' && o->what.makes_slot)
        o->stage = ORDER_SLOT;
    else
        o->stage = ORDER_CONNINFO;
}

static bool waits_for_leave(const struct order *o)
{
    return (o->what.type == FAILOVER_DO_LEAD || o->what.drops_slot) && o->receiver[0] != '\0';
}

/* The stage after `o->stage` is done, or the end. */
static void follow_next(struct order *o, const struct probe_report *r)
{
    switch (o->stage) {
    case ORDER_READ:
        follow_read(o, r);
        return;
    case ORDER_SLOT:
        o->nslots += r->value[0][0] != '\0' ? 1 : 0;
        o->stage = ORDER_CONNINFO;
        return;
    case ORDER_CONNINFO:
        o->tries = 0;
        if (o->needs_restart) {
            finish(o, false, NEEDS_RESTART);
            return;
        }
        if (waits_for_leave(o)) {
            o->stage = ORDER_LEAVE;
            return;
        }
        break;
    case ORDER_LEAVE:
        if (r->value[1][0] == '0') {
            o->tries = 0;
            break;
        }
        if (++o->tries >= MAX_LOOKS)
            finish(o, false, "its WAL receiver did not leave the old primary");
        return;
    case ORDER_DROP:
        if (r->value[2][0] == '0')
            finish(o, true, "");
        else if (++o->tries >= MAX_LOOKS)
            finish(o, false, "the replication slot that was made for it could not be dropped");
        return;
    }
    if (o->what.drops_slot && o->slot[0] != '\0' && is_known(o->m, o->what.old))
        o->stage = ORDER_DROP;
    else
        finish(o, true, "");
}

static void follow_on(struct order *o, const struct probe_report *r)
{
    follow_next(o, r);
    if (!o->is_running)
        return;
    switch (o->stage) {
    case ORDER_READ:
        break;
    case ORDER_SLOT:
        send_slot(o);
        break;
    case ORDER_CONNINFO:
        send_conninfo(o);
        break;
    case ORDER_LEAVE:
        send_leave(o);
        break;
    case ORDER_DROP:
        send_drop(o);
        break;
    }
}

/* All orders */

static void on_done(struct probe *p, const struct probe_report *r)
{
    struct order *o = probe_owner(p);
    char text[TEXT_BYTES];

    if (!o->is_running)
        return;
    if (o->what.type == FAILOVER_DO_PROMOTE && strcmp(r->sqlstate, NOT_IN_RECOVERY) == 0) {
        finish(o, true, "");
        return;
    }
    if (r->answer != PROBE_COMPLETE) {
        snprintf(text, sizeof text, "%s%s%s", r->message, r->sqlstate[0] == '\0' ? "" : " ",
            r->sqlstate);
        /* A server that refuses the first statement has not heard of it. */
        end_order(o, false, r->was_asked && (r->sqlstate[0] == '\0' || r->ndone > 0), text);
        return;
    }
    if (o->what.type == FAILOVER_DO_FOLLOW || o->what.type == FAILOVER_DO_LEAD) {
        follow_on(o, r);
        return;
    }
    memcpy(o->value, r->value, sizeof o->value);
    if (o->what.type == FAILOVER_DO_PROMOTE && r->value[PROMOTE_ORDERS - 1][0] != 't')
        end_order(o, false, true, "pg_promote() says that it did not succeed in time");
    else
        finish(o, true, "");
}

static void on_lost(struct probe *p)
{
}

static void send_drain(struct order *o)
{
    static const char *const sql[] = {"SELECT pg_catalog.count(*)" OPEN_TRANSACTIONS,
        "SET default_transaction_read_only = off; SET synchronous_commit = local",
        /* Makes all that was committed before durable here, also what nobody waited for. */
        "SELECT pg_catalog.pg_logical_emit_message(true, 'pgpool', 'switchover')",
        ("SELECT (pg_catalog.pg_current_wal_flush_lsn() - "
         "'0/0'::pg_catalog.pg_lsn)::pg_catalog.int8")};

    send_sql(o, o->what.node, sql, 4, ORDER_LIMIT_MS);
}

/* A server that notices the request just as it begins to wait for its lost primary sleeps for all
 * of wal_retrieve_retry_interval (5 s) with it. A second request wakes it. */
static void send_promote(struct order *o)
{
    static const char *const sql[PROMOTE_ORDERS] = {"SELECT pg_catalog.pg_promote(false)",
        /* Looks every 10 ms, for 300 ms at most; pg_promote() itself would look every 100. */
        ("WITH RECURSIVE look(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM look"
         " WHERE n < 30 AND pg_catalog.pg_is_in_recovery()"
         " AND pg_catalog.pg_sleep(0.01) IS NOT NULL) SELECT pg_catalog.count(*) FROM look"),
        ("SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_promote(true, 60)"
         " ELSE true END")};

    send_sql(o, o->what.target, sql, PROMOTE_ORDERS,
        (PROMOTE_LIMIT_S + 5) * CLOCK_US_PER_S / CLOCK_US_PER_MS);
}

/* After a switchover whoever is still connected there is sent away: it would only be refused. */
static void send_unfence(struct order *o)
{
    static const char *const back[] = {
        "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_catalog.pg_reload_conf()"};
    static const char *const leave[] = {"ALTER SYSTEM RESET default_transaction_read_only",
        "SELECT pg_catalog.count(pg_catalog.pg_terminate_backend(pid))"
        " FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'"
        " AND pid <> pg_catalog.pg_backend_pid() AND application_name <> 'pgpool monitor'"};

    send_sql(o, o->what.node, o->what.target == VIEW_NO_NODE ? leave : back, 2, ORDER_LIMIT_MS);
}

void monitor_order_start(struct monitor *m, const struct failover_do *what)
{
    static const char *const fence[] = {"ALTER SYSTEM SET default_transaction_read_only = 'on'",
        "SELECT pg_catalog.pg_reload_conf()"};
    static const char *const cut[] = {
        "SELECT pg_catalog.count(pg_catalog.pg_terminate_backend(pid))" OPEN_TRANSACTIONS};
    static const char *const read[] = {
        "SELECT pg_catalog.current_setting('primary_conninfo', true)",
        "SELECT pg_catalog.current_setting('primary_slot_name', true)",
        "SELECT pid FROM pg_catalog.pg_stat_wal_receiver",
        "SELECT context FROM pg_catalog.pg_settings WHERE name = 'primary_conninfo'"};
    bool is_switch = m->decide.view.sw.is_asked_for;
    bool beside = what->type == FAILOVER_DO_FOLLOW || what->type == FAILOVER_DO_UNFENCE_BESIDE;
    bool unfences = what->type == FAILOVER_DO_UNFENCE || what->type == FAILOVER_DO_UNFENCE_BESIDE;
    bool leads = what->type == FAILOVER_DO_FOLLOW || what->type == FAILOVER_DO_LEAD;
    struct order *o = beside ? &m->beside_order : &m->order;

    o->what = *what;
    o->is_running = true;
    o->stage = ORDER_READ;
    o->tries = o->nslots = 0;
    if (!monitor_orders_keep(m) &&
        (what->type == FAILOVER_DO_FENCE || (what->type == FAILOVER_DO_PROMOTE && is_switch))) {
        finish(
            o, false, "what is done could not be written into pgpool_status.switch, see the log");
        return;
    }
    if (!is_known(m, what->type == FAILOVER_DO_PROMOTE ? what->target : what->node) ||
        (leads && !is_known(m, what->target))) {
        finish(o, unfences, "the node is gone from the settings");
        return;
    }
    if (what->type == FAILOVER_DO_FENCE)
        send_sql(o, what->node, fence, 2, ORDER_LIMIT_MS);
    else if (what->type == FAILOVER_DO_DRAIN)
        send_drain(o);
    else if (what->type == FAILOVER_DO_CUT)
        send_sql(o, what->node, cut, 1, ORDER_LIMIT_MS);
    else if (what->type == FAILOVER_DO_PROMOTE)
        send_promote(o);
    else if (unfences)
        send_unfence(o);
    else
        send_sql(o, what->node, read, 4, ORDER_LIMIT_MS);
}

static void init_one(struct monitor *m, struct order *o, bool is_beside)
{
    o->m = m;
    o->is_beside = is_beside;
    o->probe = probe_new(&m->role.loop, on_done, on_lost, o);
}

void monitor_order_init(struct monitor *m)
{
    init_one(m, &m->order, false);
    init_one(m, &m->beside_order, true);
}

void monitor_order_fini(struct monitor *m)
{
    probe_free(&m->order.probe);
    probe_free(&m->beside_order.probe);
    monitor_conf_drop_password(&m->order.password);
    monitor_conf_drop_password(&m->beside_order.password);
}
