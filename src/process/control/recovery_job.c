/* SPDX-License-Identifier: PostgreSQL
 * recovery_job.c: the steps of an online recovery: the script of the first stage copies the
 * primary, pgpool_remote_start starts the copy, it is waited for, and attached. Runs in: control.
 * Everything is waited for on the loop; each step is logged, shown by SHOW POOL_RECOVERY and told
 * to who asked. Never touches a node that is in use, nor the primary.
 *
 * In native replication the main node is copied, and clients write to it all the while: so there is
 * a second stage. No session begins anything from then on (ipc/hold.h) until the copy is attached,
 * or the recovery has failed, one way or the other; no step of it is without a limit. */
#include "config.h"

#include "recovery_job.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "crypto/secret.h"
#include "ipc/hold.h"
#include "ipc/orders.h"
#include "probe/probe.h"
#include "sys/clock.h"

#include "process/common/server_login.h"
#include "process/common/server_sql.h"

#include "control_int.h"

#define DEFAULT_USER    "postgres"
#define LOOK_AGAIN_MS   250
#define PROBE_LIMIT_MS  5000
#define ATTACH_LIMIT_MS 30000
#define SETUP_LIMIT_MS  30000
#define SETUP_SQL                                                                                  \
    "SET statement_timeout TO 0; SELECT set_config('client_connection_check_interval', '2s', "     \
    "false) WHERE current_setting('server_version_num')::int >= 140000"
/* Whoever writes there yet: what a worker that has died had begun, or in two phases; and others,
 * who may not. -1: it cannot be seen. */
#define WRITERS_SQL                                                                                \
    "SELECT CASE WHEN pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') THEN "                  \
    "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL "  \
    "AND usesysid IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()) + "                          \
    "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_xacts) ELSE -1 END"

struct recovery_job {
    struct control *ctl;
    struct server_sql *sql;
    struct probe *probe;
    struct timer look;
    struct secret password;
    struct recovery_row row;
    int64_t give_up_us; /* of the step, monotonic */
    bool has_stages;    /* two of them */
    bool holds;         /* the clients */
};

static const struct conf *conf_now(const struct control *ctl)
{
    return conf_of(role_loop_gen(&ctl->role));
}

/* --- how it goes --- */

static void enter(struct recovery_job *job, enum recovery_step step)
{
    job->row.step = (uint8_t)step;
    job->row.step_us = clock_wall_us();
    recovery_publish(job->ctl->role.env->shm, &job->row);
    log_at(LVL_LOG, "online recovery of node %d: %s", (int)job->row.node, recovery_step_name(step));
}

static void let_go(struct recovery_job *job)
{
    const struct proc_env *env = job->ctl->role.env;

    if (!job->holds)
        return;
    job->holds = false;
    hold_end(env->shm, env->slot);
    orders_tell(env);
    log_at(LVL_LOG, "node recovery, the clients go on");
}

static void drop(struct recovery_job *job)
{
    struct control *ctl = job->ctl;

    let_go(job);
    timer_stop(&ctl->role.loop, &job->look);
    server_sql_free(&job->sql);
    probe_free(&job->probe);
    secret_free(&job->password);
    ctl->recovery = NULL;
    mem_free(job);
}

static void end(struct recovery_job *job, const struct err *err)
{
    job->row.is_over = true;
    job->row.is_ok = err == NULL;
    job->row.ended_us = clock_wall_us();
    if (err != NULL) {
        snprintf(job->row.text, sizeof job->row.text, "%s%s%s", err->msg,
            err->detail[0] == '\0' ? "" : ": ", err->detail);
        snprintf(job->row.hint, sizeof job->row.hint, "%s", err->hint);
        log_at_detail(LVL_WARNING, err->detail[0] == '\0' ? NULL : err->detail,
            err->hint[0] == '\0' ? NULL : err->hint, "online recovery of node %d failed: %s",
            (int)job->row.node, err->msg);
    } else {
        log_at(LVL_LOG, "recovery done");
    }
    recovery_publish(job->ctl->role.env->shm, &job->row);
    drop(job);
}

static void give_up(struct recovery_job *job, const char *sqlstate, const char *msg)
{
    struct err err = {0};

    err_set(&err, sqlstate, "%s", msg);
    end(job, &err);
}

/* --- the statements at the primary --- */

/* A literal of SQL, whatever standard_conforming_strings is. */
static void put_literal(struct buf *sql, const char *text)
{
    buf_printf(sql, " E'");
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            buf_put(sql, text, 1);
        buf_put(sql, text, 1);
    }
    buf_printf(sql, "'");
}

/* Scripts reach a server on this machine under this name. */
static const char *host_for_scripts(const struct conf_node *node)
{
    bool is_socket = node->backend_hostname[0] == '/' || node->backend_hostname[0] == '\0';

    return is_socket ? "localhost" : node->backend_hostname;
}

/* How node `id` is reached, as recovery_user. */
static void fill_target(const struct recovery_job *job, int id, struct probe_target *to)
{
    const struct conf *conf = conf_now(job->ctl);
    const struct conf_node *node = &conf->nodes[id];

    *to = (struct probe_target){
        .user = conf->recovery_user[0] == '\0' ? DEFAULT_USER : conf->recovery_user,
        .password = secret_is_empty(&job->password) ? "" : secret_slice(&job->password).p,
        .database = conf->recovery_database,
        .connect_timeout_ms =
            node->connect_timeout_ms > 0 ? node->connect_timeout_ms : SETUP_LIMIT_MS,
    };
    server_login_place(role_loop_gen(&job->ctl->role), id, to);
}

/* A step has recovery_timeout; that is never the whole of it. */
static void set_limit(struct recovery_job *job)
{
    job->give_up_us = clock_mono_us() + conf_now(job->ctl)->recovery_timeout_ms * CLOCK_US_PER_MS;
}

static void run_sql(struct recovery_job *job, const char *sql, int64_t limit_ms)
{
    struct probe_target to;

    fill_target(job, job->row.primary, &to);
    server_sql_run(job->sql, &to, sql, limit_ms);
}

/* While clients are held nothing takes for ever. */
static int64_t script_limit_ms(const struct recovery_job *job)
{
    return job->holds ? conf_now(job->ctl)->recovery_timeout_ms : 0;
}

static void run_script(struct recovery_job *job, const char *script)
{
    const struct conf *conf = conf_now(job->ctl);
    const struct conf_node *node = &conf->nodes[job->row.node];
    const struct conf_node *primary = &conf->nodes[job->row.primary];
    struct buf sql = {0};

    /* What the script is to find in the files is there. */
    buf_printf(&sql, "%sSELECT pgpool_recovery(", job->has_stages ? "CHECKPOINT;" : "");
    put_literal(&sql, script);
    buf_printf(&sql, ",");
    put_literal(&sql, host_for_scripts(node));
    buf_printf(&sql, ",");
    put_literal(&sql, node->backend_data_directory);
    buf_printf(
        &sql, ", '%d', %d, '%d',", primary->backend_port, (int)job->row.node, node->backend_port);
    put_literal(&sql, host_for_scripts(primary));
    buf_put_cstr(&sql, ")");
    run_sql(job, sql.data, script_limit_ms(job));
    buf_free(&sql);
}

static void begin_copy(struct recovery_job *job)
{
    enter(job, RECOVERY_COPY);
    run_script(job, conf_now(job->ctl)->recovery_1st_stage_command);
}

static void begin_start(struct recovery_job *job)
{
    const struct conf *conf = conf_now(job->ctl);
    const struct conf_node *node = &conf->nodes[job->row.node];
    struct buf sql = {0};

    enter(job, RECOVERY_START);
    buf_printf(&sql, "SELECT pgpool_remote_start(");
    put_literal(&sql, host_for_scripts(node));
    buf_printf(&sql, ",");
    put_literal(&sql, node->backend_data_directory);
    buf_put_cstr(&sql, ")");
    run_sql(job, sql.data, script_limit_ms(job));
    buf_free(&sql);
}

static void look_later(struct recovery_job *job)
{
    timer_start(&job->ctl->role.loop, &job->look, LOOK_AGAIN_MS);
}

/* --- the second stage --- */

static void begin_hold(struct recovery_job *job)
{
    const struct proc_env *env = job->ctl->role.env;

    log_at(LVL_LOG, "node recovery, 1st stage is done");
    log_at(LVL_LOG, "node recovery, starting 2nd stage");
    enter(job, RECOVERY_HOLD);
    job->holds = true;
    hold_begin(env->shm, env->slot);
    orders_tell(env);
    set_limit(job);
    look_later(job);
}

/* `nclients` are at work yet, or others write. */
static void wait_for_end(struct recovery_job *job, int nclients)
{
    struct err err = {0};

    if (clock_mono_us() <= job->give_up_us) {
        look_later(job);
        return;
    }
    if (nclients > 0) {
        err_set(&err, "57014", "transactions of clients (%d) did not end within recovery_timeout",
            nclients);
        err_hint(&err, "client_idle_limit_in_recovery ends those of idle clients.");
    } else {
        err_set(&err, "57014", "somebody writes to node %d who is no client of this pgpool",
            (int)job->row.primary);
        err_hint(&err, "See pg_stat_activity and pg_prepared_xacts there.");
    }
    end(job, &err);
}

static void look_at_clients(struct recovery_job *job)
{
    int nclients = hold_count(job->ctl->role.env->shm);

    if (nclients == 0)
        run_sql(job, WRITERS_SQL, SETUP_LIMIT_MS);
    else
        wait_for_end(job, nclients);
}

static void begin_second(struct recovery_job *job)
{
    log_at(LVL_LOG, "node recovery, all transactions of clients have ended");
    enter(job, RECOVERY_SECOND);
    run_script(job, conf_now(job->ctl)->recovery_2nd_stage_command);
}

/* --- waiting for the new server --- */

static void begin_wait(struct recovery_job *job)
{
    enter(job, RECOVERY_WAIT);
    server_sql_close(job->sql);
    set_limit(job);
    look_later(job);
}

static void ask_node(struct recovery_job *job)
{
    struct probe_target to;

    fill_target(job, job->row.node, &to);
    to.timeout_ms = PROBE_LIMIT_MS;
    probe_set_target(job->probe, &to);
    probe_start(job->probe);
}

static void begin_attach(struct recovery_job *job)
{
    struct err err = {0};

    enter(job, RECOVERY_ATTACH);
    if (!control_ask_monitor(job->ctl, job->has_stages ? NODE_ATTACH_HELD : NODE_ATTACH,
            job->row.node, job->row.who, "", &err)) {
        end(job, &err);
        return;
    }
    job->give_up_us = clock_mono_us() + (int64_t)ATTACH_LIMIT_MS * CLOCK_US_PER_MS;
    look_later(job);
}

/* What was copied may be another node's by now. */
static bool is_still_main(struct recovery_job *job)
{
    struct control *ctl = job->ctl;

    (void)view_refresh(ctl->role.env->shm, &ctl->view);
    return !job->has_stages || view_write_node(&ctl->view) == job->row.primary;
}

/* There is no use of a server that answers so. */
static bool is_wrong(struct recovery_job *job, const struct probe_report *report, struct err *err)
{
    if (report->answer == PROBE_COMPLETE && !job->has_stages && !report->facts.in_recovery) {
        /* A rebuilt server that is no standby would be a second primary. */
        err_set(err, "55000", "the rebuilt server is no standby");
        err_hint(err, "The script of the first stage has to leave a standby.signal and "
                      "primary_conninfo. Stop the server.");
        return true;
    }
    if (is_still_main(job))
        return false;
    err_set(err, "55000", "node %d, which was copied, is not the main node any more",
        (int)job->row.primary);
    err_hint(err, "Ask for it again.");
    return true;
}

static bool is_there(const struct recovery_job *job, const struct probe_report *report)
{
    if (job->has_stages) /* one that still recovers takes no writes */
        return report->answer == PROBE_COMPLETE && !report->facts.in_recovery;
    return report->answer == PROBE_COMPLETE || report->answer == PROBE_ALIVE;
}

static void on_probed(struct probe *p, const struct probe_report *report)
{
    struct recovery_job *job = probe_owner(p);
    struct err err = {0};

    if (is_wrong(job, report, &err)) {
        end(job, &err);
    } else if (is_there(job, report)) {
        log_at(LVL_LOG, "node recovery, node: %d restarted", (int)job->row.node);
        begin_attach(job);
    } else if (clock_mono_us() > job->give_up_us) {
        err_set(&err, "57014", "the rebuilt server did not answer within recovery_timeout");
        err_detail(&err, "%s",
            report->answer == PROBE_COMPLETE ? "It is still in recovery." : report->message);
        end(job, &err);
    } else {
        look_later(job);
    }
}

static void on_lost(struct probe *p)
{
}

/* Clients are about to write without it: taken into use later, it would lack that. */
static void take_back(struct recovery_job *job)
{
    struct err err = {0};

    if (job->has_stages && !control_ask_monitor(job->ctl, NODE_DETACH, job->row.node, job->row.who,
                               "its recovery gave up waiting for it", &err))
        log_err(LVL_WARNING, &err);
}

static void look_at_attach(struct recovery_job *job)
{
    struct control *ctl = job->ctl;

    (void)view_refresh(ctl->role.env->shm, &ctl->view);
    /* While it is waiting the monitor has not heard what it says now. */
    if (ctl->view.node[job->row.node].status == VIEW_UP) {
        enter(job, RECOVERY_DONE);
        end(job, NULL);
    } else if (clock_mono_us() > job->give_up_us) {
        take_back(job);
        give_up(job, "57014", "the node was not taken into use in time");
    } else {
        look_later(job);
    }
}

static void on_look(struct timer *t)
{
    struct recovery_job *job = LIST_ENTRY(t, struct recovery_job, look);

    if (job->row.step == RECOVERY_HOLD)
        look_at_clients(job);
    else if (job->row.step == RECOVERY_WAIT)
        ask_node(job);
    else
        look_at_attach(job);
}

/* --- one step after the other --- */

static void explain(struct recovery_job *job, const struct err *from, struct err *out)
{
    *out = *from;
    if (job->row.step == RECOVERY_CONNECT)
        err_wrap(out, "could not talk to the primary as recovery_user");
    if (job->row.step == RECOVERY_COPY)
        err_wrap(out, "executing recovery, execution of command failed at \"1st stage\"");
    if (job->row.step == RECOVERY_HOLD)
        err_wrap(out, "could not ask the main node who writes");
    if (job->row.step == RECOVERY_SECOND)
        err_wrap(out, "executing recovery, execution of command failed at \"2nd stage\"");
    if (job->row.step == RECOVERY_START)
        err_wrap(out, "executing remote start failed");
    if (strcmp(from->sqlstate, "42883") == 0)
        err_hint(out,
            "Run CREATE EXTENSION pgpool_recovery in database \"%s\", which is recovery_database; "
            "pgpool-II before 4.7 looked in template1.",
            conf_now(job->ctl)->recovery_database);
}

static void go_on(struct recovery_job *job, const char *value)
{
    switch ((enum recovery_step)job->row.step) {
    case RECOVERY_CONNECT:
        /* Without a script there is nothing to copy: the node has been rebuilt by hand. */
        if (conf_now(job->ctl)->recovery_1st_stage_command[0] != '\0')
            begin_copy(job);
        else if (job->has_stages)
            begin_hold(job);
        else
            begin_start(job);
        return;
    case RECOVERY_COPY:
        if (job->has_stages)
            begin_hold(job);
        else
            begin_start(job);
        return;
    case RECOVERY_HOLD:
        if (strcmp(value, "0") == 0)
            begin_second(job);
        else if (value[0] == '-')
            give_up(job, "42501", "recovery_user may not see who writes: GRANT pg_read_all_stats");
        else
            wait_for_end(job, 0);
        return;
    case RECOVERY_SECOND:
        log_at(LVL_LOG, "node recovery, 2nd stage is done");
        begin_start(job);
        return;
    default:
        begin_wait(job);
        return;
    }
}

static void on_sql_done(struct server_sql *q, const char *value, const struct err *failed)
{
    struct recovery_job *job = server_sql_owner(q);
    struct err err;

    if (value == NULL) {
        explain(job, failed, &err);
        end(job, &err);
        return;
    }
    if (job->row.step != RECOVERY_CONNECT && job->row.step != RECOVERY_HOLD &&
        strcmp(value, "t") != 0) {
        give_up(job, "38000", "the recovery function did not say that it succeeded");
        return;
    }
    go_on(job, value);
}

/* Scripts look for pgpool-II's words. */
static int refuse_used(struct err *err, int node)
{
    err_set(err, "55000", "node recovery failed, node id: %d is alive", node);
    err_detail(err, "the node is in use");
    err_hint(err, "Detach it first: pcp_detach_node.");
    return -1;
}

static int refuse_primary(struct err *err, const struct conf *conf)
{
    err_set(err, "55000", "process recovery request failed");
    err_detail(err, "primary server cannot be recovered by online recovery.");
    err_hint(err, conf_writes_everywhere(conf)
                      ? "Detach it first (pcp_detach_node): another node is the main one then."
                      : "Promote another node first.");
    return -1;
}

static int refuse(struct err *err, const char *sqlstate, const char *msg, const char *hint)
{
    err_set(err, sqlstate, "%s", msg);
    if (hint != NULL)
        err_hint(err, "%s", hint);
    return -1;
}

/* Whoever else writes to the servers is not held. */
static int check_stages(const struct conf *conf, struct err *err)
{
    if (conf->use_watchdog)
        return refuse(err, "0A000",
            "online recovery of native replication does not work with a watchdog",
            "Other pgpools would go on writing. Stop all but one, which runs without use_watchdog "
            "until the server is rebuilt.");
    if (conf->recovery_2nd_stage_command[0] == '\0')
        return refuse(err, "55000", "node recovery failed, recovery_2nd_stage_command is not set",
            "What clients write while the first stage runs would be missing.");
    return 0;
}

static int check_mode(const struct conf *conf, struct err *err)
{
    if (conf_writes_everywhere(conf))
        return check_stages(conf, err);
    if (conf->backend_clustering_mode == CONF_CLUSTER_STREAMING)
        return 0;
    return refuse(err, "0A000",
        "recovery request is accepted only in replication mode or streaming replication mode",
        NULL);
}

/* The server to copy. */
static int source_node(const struct conf *conf, const struct view *v)
{
    return conf_writes_everywhere(conf) ? view_write_node(v) : v->primary;
}

static int check(struct control *ctl, int node, struct err *err)
{
    const struct conf *conf = conf_now(ctl);
    const struct view *v = &ctl->view;
    int source;

    (void)view_refresh(ctl->role.env->shm, &ctl->view);
    source = source_node(conf, v);
    if (check_mode(conf, err) == -1)
        return -1;
    if (ctl->recovery != NULL)
        return refuse(err, "55006", "pgpool is already processing another recovery request",
            "See SHOW POOL_RECOVERY.");
    if (source == VIEW_NO_NODE || !view_is_usable(v, source))
        return refuse(err, "08006", "node recovery failed, there is no primary to copy", NULL);
    if (v->primary == node)
        return refuse_primary(err, conf);
    if (view_is_usable(v, node))
        return refuse_used(err, node);
    if (conf->nodes[node].backend_data_directory[0] == '\0')
        return refuse(err, "55000", "node recovery failed, its data folder is not known",
            "Set backend_data_directory of the node.");
    return 0;
}

bool recovery_job_must_wait(struct control *ctl, int node)
{
    const struct view *v = &ctl->view;

    (void)view_refresh(ctl->role.env->shm, &ctl->view);
    return view_failover_in_progress(v) || node >= v->nnodes || v->node[node].status == VIEW_UNUSED;
}

uint64_t recovery_job_start(struct control *ctl, int node, const char *who, struct err *err)
{
    const struct proc_env *env = ctl->role.env;
    const struct conf *conf = conf_now(ctl);
    struct recovery_job *job;

    if (check(ctl, node, err) == -1)
        return 0;
    job = mem_alloc_zero(sizeof *job);
    job->ctl = ctl;
    ctl->recovery = job;
    timer_init(&job->look, on_look);
    job->sql = server_sql_new(&ctl->role.loop, on_sql_done, job);
    job->probe = probe_new(&ctl->role.loop, on_probed, on_lost, job);
    server_login_password(role_loop_gen(&ctl->role),
        conf->recovery_user[0] == '\0' ? DEFAULT_USER : conf->recovery_user,
        conf->recovery_password, "recovery_password", env->paths->key, &job->password);
    job->row.number = recovery_last_number(env->shm) + 1;
    job->row.node = node;
    job->has_stages = conf_writes_everywhere(conf);
    job->row.primary = source_node(conf, &ctl->view);
    job->row.began_us = clock_wall_us();
    snprintf(job->row.who, sizeof job->row.who, "%s", who);
    log_at(LVL_LOG, "starting recovering node %d, as %s wants: copying node %d", node, who,
        (int)job->row.primary);
    enter(job, RECOVERY_CONNECT);
    run_sql(job, SETUP_SQL, SETUP_LIMIT_MS);
    return job->row.number;
}

bool recovery_job_find(struct control *ctl, uint64_t number, struct recovery_row *out)
{
    struct recovery_row row[RECOVERY_MAX_ROWS];
    int n = recovery_copy(ctl->role.env->shm, row, RECOVERY_MAX_ROWS);
    int i;

    for (i = 0; i < n; i++) {
        if (row[i].number == number) {
            *out = row[i];
            return true;
        }
    }
    return false;
}

/* The servers notice by themselves: client_connection_check_interval ends the scripts. */
void recovery_job_bury(struct control *ctl)
{
    struct recovery_row row[RECOVERY_MAX_ROWS];
    int n = recovery_copy(ctl->role.env->shm, row, RECOVERY_MAX_ROWS);
    int i;

    for (i = 0; i < n; i++) {
        if (row[i].is_over)
            continue;
        row[i].is_over = true;
        row[i].ended_us = clock_wall_us();
        snprintf(row[i].text, sizeof row[i].text, "the process that ran it has died");
        recovery_publish(ctl->role.env->shm, &row[i]);
        log_at_detail(LVL_WARNING, NULL, "Ask for it again.",
            "the online recovery of node %d was broken off: the process that ran it has died",
            (int)row[i].node);
    }
}

void recovery_job_stop(struct control *ctl)
{
    struct recovery_job *job = ctl->recovery;

    if (job != NULL)
        give_up(job, "57P01", "pgpool was stopped");
}
