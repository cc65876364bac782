/* SPDX-License-Identifier: PostgreSQL
 * doubt_job.c: transactions that are prepared on servers and that nobody is at any more: they are
 * committed when that was decided, else rolled back. Runs in: control. It looks at all servers when
 * it starts, when a worker has died or left one, and from time to time; never touches one that a
 * living worker is at, nor one of another pgpool. */
#include "config.h"

#include "doubt_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/doubt.h"
#include "cluster/doubt_log.h"
#include "cluster/view.h"
#include "config/conf.h"
#include "crypto/secret.h"
#include "ipc/gate.h"
#include "ipc/mailbox.h"
#include "probe/probe.h"
#include "sys/clock.h"

#include "process/common/server_login.h"
#include "process/common/server_sql.h"

#include "control_int.h"

#define DEFAULT_USER "postgres"
#define TICK_MS      200
#define AGAIN_US     INT64_C(1000000)  /* while there is something, or was a moment ago */
#define REST_US      INT64_C(30000000) /* else */
#define ALERT_US     INT64_C(10000000) /* what was under way when a worker died may end later */
#define LEFT_US      INT64_C(8000000)  /* so long others wait for what is in doubt */
#define STATEMENT_MS 5000
#define CONNECT_MS   5000

/* One line each: the limit first, then name, microseconds, and the database as hex digits. */
#define LIST_SQL                                                                                   \
    "SELECT pg_catalog.current_setting('max_prepared_transactions') || E'\\n' || "                 \
    "coalesce((SELECT pg_catalog.string_agg(gid || ' ' || "                                        \
    "(EXTRACT(epoch FROM prepared) * 1000000)::bigint || ' ' || "                                  \
    "pg_catalog.encode(pg_catalog.convert_to(database::text, 'UTF8'), 'hex'), E'\\n') "            \
    "FROM pg_catalog.pg_prepared_xacts WHERE gid LIKE 'pgpool\\_%'), '')"

struct doubt_item {
    struct doubt_row row;
    struct doubt_gid gid;
};

struct doubt_node {
    struct doubt_job *job;
    int node;
    struct server_sql *sql;
    bool is_asked;
    bool has_answered;   /* in this round */
    bool has_complained; /* of what it said */
};

struct doubt_job {
    struct control *ctl;
    struct timer tick;
    struct secret password;
    struct doubt_node node[DOUBT_MAX_NODES];
    struct server_sql *end; /* finishes one after the other */
    struct doubt_item *items;
    uint32_t nitems;
    uint32_t items_cap;
    uint32_t at; /* the one that is being finished */
    bool is_busy;
    struct buf dead; /* owners of files, as they were when the round began */
    char dir[PROC_PATH_BYTES];
    struct doubt_owner us;
    uint64_t signs;    /* of workers: who lives, what they left */
    int64_t looked_us; /* 0: never */
    int64_t alert_until_us;
    uint64_t *oldest;      /* of each slot's worker, when the round began */
    uint32_t nleft;        /* commits in the gate that were left to us before this round */
    int64_t left_since_us; /* when `nleft` was first found above 0; 0: nothing is left */
};

static const struct conf *conf_now(const struct doubt_job *job)
{
    return conf_of(role_loop_gen(&job->ctl->role));
}

/* ---- what a server says ---- */

static void fill_target(
    const struct doubt_job *job, int id, const char *database, struct probe_target *to)
{
    const struct conf *conf = conf_now(job);

    *to = (struct probe_target){
        .user = conf->recovery_user[0] == '\0' ? DEFAULT_USER : conf->recovery_user,
        .password = secret_is_empty(&job->password) ? "" : secret_slice(&job->password).p,
        .database = database,
        .connect_timeout_ms = CONNECT_MS,
    };
    server_login_place(role_loop_gen(&job->ctl->role), id, to);
}

static void take_password(struct doubt_job *job)
{
    struct proc_env *env = job->ctl->role.env;
    const struct conf *conf = conf_now(job);

    server_login_password(role_loop_gen(&job->ctl->role),
        conf->recovery_user[0] == '\0' ? DEFAULT_USER : conf->recovery_user,
        conf->recovery_password, "recovery_password", env->paths->key, &job->password);
}

static unsigned hex_digit(char c)
{
    return c >= 'a' ? (unsigned)(c - 'a') + 10 : (unsigned)(c - '0');
}

static void take_database(struct slice hex, char out[DOUBT_NAME_BYTES])
{
    size_t n = hex.n / 2 < DOUBT_NAME_BYTES - 1 ? hex.n / 2 : DOUBT_NAME_BYTES - 1;

    for (size_t i = 0; i < n; i++)
        out[i] = (char)(hex_digit(hex.p[2 * i]) << 4 | hex_digit(hex.p[2 * i + 1]));
    out[n] = '\0';
}

static void grow(struct doubt_job *job)
{
    uint32_t cap = job->items_cap == 0 ? 64 : job->items_cap * 2;
    struct doubt_item *items = mem_alloc_zero(cap * sizeof *items);

    if (job->nitems > 0)
        memcpy(items, job->items, job->nitems * sizeof *items);
    mem_free(job->items);
    job->items = items;
    job->items_cap = cap;
}

static void take_line(struct doubt_job *job, int node, struct slice line)
{
    struct doubt_item item = {.row = {.node = node}};
    const char *space = memchr(line.p, ' ', line.n);
    struct slice name;
    char *rest;

    if (space == NULL)
        return;
    name = slice_of(line.p, (size_t)(space - line.p));
    if (!doubt_gid_parse(name, &item.gid))
        return; /* an application has chosen a name like ours */
    snprintf(item.row.gid, sizeof item.row.gid, "%.*s", (int)name.n, name.p);
    item.row.since_us = strtoll(space + 1, &rest, 10);
    if (*rest == ' ')
        take_database(slice_of(rest + 1, (size_t)(line.p + line.n - rest - 1)), item.row.database);
    if (job->nitems == job->items_cap)
        grow(job);
    job->items[job->nitems++] = item;
}

static void take_list(struct doubt_node *n, const char *text)
{
    const char *p = strchr(text, '\n');

    if (atoi(text) == 0 && !n->has_complained &&
        conf_now(n->job)->replication_commit == CONF_COMMIT_TWO_PHASE) {
        n->has_complained = true;
        log_at_detail(LVL_WARNING, NULL,
            "Set it to as many clients as may write at once, and restart the server.",
            "node %d cannot prepare transactions: its max_prepared_transactions is 0", n->node);
    }
    while (p != NULL && p[1] != '\0') {
        const char *end = strchr(p + 1, '\n');

        take_line(n->job, n->node,
            end == NULL ? slice_of_str(p + 1) : slice_of(p + 1, (size_t)(end - p - 1)));
        p = end;
    }
}

/* ---- what becomes of them ---- */

static bool is_decided(struct doubt_job *job, const struct doubt_item *item, struct err *err)
{
    struct buf text = {0};
    bool is = false;

    if (doubt_log_read(job->dir, &item->gid.owner, &text, err) == 0)
        is = doubt_decided(buf_slice(&text), slice_of_str(item->row.gid)) != 0;
    buf_free(&text);
    return is;
}

/* Looks whether the transaction's worker is at it, before the file is read: the worker writes what
 * it decides before it is done. */
static void judge(struct doubt_job *job, struct doubt_item *item)
{
    const struct shm *shm = job->ctl->role.env->shm;
    struct doubt_facts facts = {.is_ours = item->gid.owner.instance == job->us.instance};
    struct err err = {0};

    if (facts.is_ours) {
        facts.is_alive = doubt_log_is_held(job->dir, &item->gid.owner);
        facts.is_open = facts.is_alive && doubt_is_open(shm, &item->gid);
        facts.is_decided = is_decided(job, item, &err);
    }
    item->row.verdict = (uint8_t)doubt_judge(&facts);
    if (err_is_set(&err)) {
        item->row.verdict = DOUBT_LEAVE;
        snprintf(item->row.why, sizeof item->row.why, "%.150s", err.msg);
    } else if (item->row.verdict == DOUBT_LEAVE) {
        snprintf(item->row.why, sizeof item->row.why, "its worker, process %" PRIu32 ", is at it",
            item->gid.owner.pid);
    } else if (item->row.verdict == DOUBT_FOREIGN) {
        snprintf(item->row.why, sizeof item->row.why, "%s",
            "another pgpool prepared it, or one whose work_dir was lost");
    }
}

static bool is_to_be_ended(const struct doubt_item *item)
{
    return item->row.verdict == DOUBT_COMMIT || item->row.verdict == DOUBT_ROLLBACK;
}

/* What a living worker has prepared a moment ago is not in doubt. */
static void publish(const struct doubt_job *job)
{
    struct doubt_row rows[DOUBT_MAX_ROWS];
    uint32_t n = 0;

    for (uint32_t i = 0; i < job->nitems && n < DOUBT_MAX_ROWS; i++) {
        const struct doubt_row *row = &job->items[i].row;

        if (row->gid[0] != '\0' &&
            (row->verdict != DOUBT_LEAVE || clock_wall_us() - row->since_us > ALERT_US))
            rows[n++] = *row;
    }
    doubt_publish(job->ctl->role.env->shm, rows, n);
}

/* ---- files that say nothing any more ---- */

static bool is_on_some_node(const struct doubt_job *job, struct slice gid, uint64_t nodes)
{
    for (int i = 0; i < DOUBT_MAX_NODES; i++) {
        if ((nodes >> i & 1) != 0 && !job->node[i].has_answered)
            return true;
    }
    for (uint32_t i = 0; i < job->nitems; i++) {
        if (slice_eq_str(gid, job->items[i].row.gid))
            return true;
    }
    return false;
}

static bool is_needed(void *ctx, struct slice text)
{
    struct slice gid;
    uint64_t nodes;

    while (doubt_line_take(&text, &gid, &nodes)) {
        if (is_on_some_node(ctx, gid, nodes))
            return true;
    }
    return false;
}

static void note_dead(void *ctx, const struct doubt_owner *owner)
{
    struct doubt_job *job = ctx;

    if (!doubt_log_is_held(job->dir, owner))
        buf_put(&job->dead, (const char *)owner, sizeof *owner);
}

/* What workers had decided who were gone before the servers were asked is in the servers' lists, if
 * it is not committed yet: what is not there needs no file. */
static void tidy(struct doubt_job *job)
{
    for (uint32_t at = 0; at < job->dead.len; at += sizeof(struct doubt_owner)) {
        struct doubt_owner owner;

        memcpy(&owner, job->dead.data + at, sizeof owner);
        doubt_log_tidy(job->dir, &owner, is_needed, job);
    }
}

/* ---- a round ---- */

static void end_next(struct doubt_job *job);

static void on_wake(void *ctx, int ordinal)
{
    const struct proc_env *env = ctx;

    (void)mailbox_post(env->boxes, env->first_worker_slot + ordinal, MAIL_GATE_OPEN, NULL, 0, -1);
}

/* Nothing is in doubt on a node that clients use. */
static bool is_all_ended(const struct doubt_job *job)
{
    struct view *view = &job->ctl->view;

    (void)view_refresh(job->ctl->role.env->shm, view);
    for (int i = 0; i < DOUBT_MAX_NODES; i++) {
        if (view_is_usable(view, i) && !job->node[i].has_answered)
            return false;
    }
    for (uint32_t i = 0; i < job->nitems; i++) {
        if (job->items[i].row.gid[0] != '\0' && is_to_be_ended(&job->items[i]) &&
            view_is_usable(view, job->items[i].row.node))
            return false;
    }
    return true;
}

/* Snapshot isolation: those that take snapshots wait for what was left to us, but not for ever. */
static void open_gate(struct doubt_job *job)
{
    struct proc_env *env = job->ctl->role.env;
    int64_t now_us = clock_mono_us();
    bool is_late = job->left_since_us != 0 && now_us - job->left_since_us > LEFT_US;

    if (job->nleft == 0) {
        job->left_since_us = 0;
        return;
    }
    if (job->left_since_us == 0)
        job->left_since_us = now_us;
    if (!is_all_ended(job) && !is_late)
        return;
    if (is_late)
        log_at_detail(LVL_WARNING, NULL,
            "See SHOW POOL_IN_DOUBT. Until they are ended, nodes may show them one without the "
            "other.",
            "transactions in doubt could not be ended: clients wait for them no longer");
    gate_end_left(env->shm, job->nleft, on_wake, env);
    job->left_since_us = 0;
}

/* Workers need not keep in mind what no server has any more. */
static void tell_what_ended(struct doubt_job *job)
{
    const struct shm *shm = job->ctl->role.env->shm;

    for (int i = 0; i < DOUBT_MAX_NODES; i++) {
        if (conf_has_node(conf_now(job), i) && !job->node[i].has_answered)
            return;
    }
    for (uint32_t i = 0; i < job->nitems; i++) {
        const struct doubt_gid *gid = &job->items[i].gid;

        if (job->items[i].row.gid[0] != '\0' && gid->owner.instance == job->us.instance &&
            gid->owner.run == job->us.run && gid->owner.slot < (uint32_t)proc_nslots(shm) &&
            gid->number < job->oldest[gid->owner.slot])
            job->oldest[gid->owner.slot] = gid->number;
    }
    for (int slot = 0; slot < proc_nslots(shm); slot++) {
        struct doubt_worker *w = doubt_worker_of(shm, (uint32_t)slot);

        if (w != NULL)
            atomic_store(&w->ended, job->oldest[slot]);
    }
}

static void round_is_over(struct doubt_job *job)
{
    open_gate(job);
    tell_what_ended(job);
    server_sql_close(job->end);
    job->is_busy = false;
    publish(job);
}

static void on_ended(struct server_sql *q, const char *value, const struct err *err)
{
    struct doubt_job *job = server_sql_owner(q);
    struct doubt_item *item = &job->items[job->at];
    const char *what = item->row.verdict == DOUBT_COMMIT ? "committed" : "rolled back";

    (void)value;
    if (err == NULL) {
        log_at(LVL_LOG, "transaction %s, prepared on node %d in database \"%s\", was %s",
            item->row.gid, (int)item->row.node, item->row.database, what);
        item->row.gid[0] = '\0';
    } else if (strcmp(err->sqlstate, "42704") == 0) {
        item->row.gid[0] = '\0'; /* somebody else was quicker */
    } else {
        snprintf(item->row.why, sizeof item->row.why, "%.150s", err->msg);
        log_at_detail(LVL_WARNING, NULL,
            "It holds locks until it is ended. recovery_user has to be a superuser.",
            "transaction %s could not be %s on node %d: %s", item->row.gid, what,
            (int)item->row.node, err->msg);
    }
    job->at++;
    end_next(job);
}

static bool is_same_place(const struct doubt_item *a, const struct doubt_item *b)
{
    return a->row.node == b->row.node && strcmp(a->row.database, b->row.database) == 0;
}

static void end_next(struct doubt_job *job)
{
    struct probe_target to;
    struct doubt_item *item;
    char sql[DOUBT_GID_BYTES + 32];

    while (job->at < job->nitems && !is_to_be_ended(&job->items[job->at]))
        job->at++;
    if (job->at == job->nitems) {
        round_is_over(job);
        return;
    }
    item = &job->items[job->at];
    if (job->at > 0 && !is_same_place(item, &job->items[job->at - 1]))
        server_sql_close(job->end);
    snprintf(sql, sizeof sql, "%s PREPARED '%s'",
        item->row.verdict == DOUBT_COMMIT ? "COMMIT" : "ROLLBACK", item->row.gid);
    fill_target(job, item->row.node, item->row.database, &to);
    server_sql_run(job->end, &to, sql, STATEMENT_MS);
}

static void all_have_answered(struct doubt_job *job)
{
    for (uint32_t i = 0; i < job->nitems; i++)
        judge(job, &job->items[i]);
    tidy(job);
    publish(job);
    job->at = 0;
    end_next(job);
}

static void on_listed(struct server_sql *q, const char *value, const struct err *err)
{
    struct doubt_node *n = server_sql_owner(q);
    struct doubt_job *job = n->job;

    n->is_asked = false;
    n->has_answered = err == NULL;
    if (err == NULL)
        take_list(n, value);
    else
        log_at(LVL_DEBUG1, "node %d was not asked what is prepared there: %s", n->node, err->msg);
    for (int i = 0; i < DOUBT_MAX_NODES; i++) {
        if (job->node[i].is_asked)
            return;
    }
    all_have_answered(job);
}

static void look(struct doubt_job *job)
{
    const struct conf *conf = conf_now(job);
    struct err err = {0};
    bool some = false;

    for (int slot = 0; slot < proc_nslots(job->ctl->role.env->shm); slot++) {
        const struct doubt_worker *w = doubt_worker_of(job->ctl->role.env->shm, (uint32_t)slot);

        job->oldest[slot] = w == NULL ? 0 : atomic_load(&w->oldest);
    }
    buf_clear(&job->dead);
    (void)doubt_log_each(job->dir, job->us.instance, note_dead, job, &err);
    take_password(job);
    job->is_busy = true;
    job->nitems = 0;
    job->nleft = gate_left(job->ctl->role.env->shm);
    job->looked_us = clock_wall_us();
    for (int i = 0; i < DOUBT_MAX_NODES; i++)
        job->node[i].is_asked = conf_has_node(conf, i);
    for (int i = 0; i < DOUBT_MAX_NODES; i++) {
        struct doubt_node *n = &job->node[i];
        struct probe_target to;

        n->has_answered = false;
        if (!n->is_asked)
            continue;
        some = true;
        if (n->sql == NULL)
            n->sql = server_sql_new(&job->ctl->role.loop, on_listed, n);
        fill_target(job, i, conf->recovery_database, &to);
        server_sql_run(n->sql, &to, LIST_SQL, STATEMENT_MS);
    }
    if (!some)
        job->is_busy = false;
}

/* Changes when a worker has died, was started, or has left a transaction. */
static uint64_t signs_of(const struct shm *shm)
{
    uint64_t signs = 0;

    for (int slot = 0; slot < proc_nslots(shm); slot++) {
        struct doubt_worker *w = doubt_worker_of(shm, (uint32_t)slot);
        struct proc_row row;

        proc_row_copy(shm, slot, &row);
        if (w == NULL || row.role != ROLE_WORKER)
            continue;
        signs = signs * 31 + (uint64_t)row.pid;
        signs = signs * 31 + atomic_load(&w->nleft);
    }
    return signs;
}

static bool is_wanted(const struct doubt_job *job)
{
    return conf_now(job)->replication_commit == CONF_COMMIT_TWO_PHASE || job->nitems > 0 ||
           job->looked_us == 0;
}

static void on_tick(struct timer *t)
{
    struct doubt_job *job = LIST_ENTRY(t, struct doubt_job, tick);
    uint64_t signs = signs_of(job->ctl->role.env->shm);
    int64_t now_us = clock_wall_us();
    int64_t rest_us = REST_US;
    bool has_changed = signs != job->signs;

    timer_start(&job->ctl->role.loop, &job->tick, TICK_MS);
    if (job->is_busy)
        return;
    if (has_changed)
        job->alert_until_us = now_us + ALERT_US;
    if (now_us < job->alert_until_us || job->nitems > 0)
        rest_us = AGAIN_US;
    job->signs = signs;
    if (has_changed || gate_left(job->ctl->role.env->shm) > 0 || job->looked_us == 0 ||
        now_us < job->looked_us || (is_wanted(job) && now_us - job->looked_us >= rest_us))
        look(job);
}

void doubt_job_start(struct control *ctl)
{
    struct doubt_job *job = mem_alloc_zero(sizeof *job);
    struct err err = {0};

    job->ctl = ctl;
    if (!doubt_owner_of(ctl->role.env->shm, ctl->role.env->slot, &job->us) ||
        conf_path(role_loop_gen(&ctl->role), conf_now(job)->work_dir, job->dir, sizeof job->dir,
            &err) == -1) {
        mem_free(job);
        return;
    }
    for (int i = 0; i < DOUBT_MAX_NODES; i++) {
        job->node[i].job = job;
        job->node[i].node = i;
    }
    job->oldest = mem_alloc_zero((size_t)proc_nslots(ctl->role.env->shm) * sizeof *job->oldest);
    job->end = server_sql_new(&ctl->role.loop, on_ended, job);
    timer_init(&job->tick, on_tick);
    timer_start(&ctl->role.loop, &job->tick, TICK_MS);
    ctl->doubt = job;
}

void doubt_job_stop(struct control *ctl)
{
    struct doubt_job *job = ctl->doubt;

    if (job == NULL)
        return;
    timer_stop(&ctl->role.loop, &job->tick);
    for (int i = 0; i < DOUBT_MAX_NODES; i++)
        server_sql_free(&job->node[i].sql);
    server_sql_free(&job->end);
    secret_free(&job->password);
    buf_free(&job->dead);
    mem_free(job->items);
    mem_free(job->oldest);
    mem_free(job);
    ctl->doubt = NULL;
}
