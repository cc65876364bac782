/* SPDX-License-Identifier: PostgreSQL
 * sim_worker.c: worker processes, several in one: each has its loop, its mailbox and its sessions,
 * as process/worker/worker.c has; shared memory is what they share. And the accounts: what must be
 * true when nothing goes on. */
#include "config.h"

#include "sim_world.h"

#include <string.h>
#include <unistd.h>

#include "backend/limits.h"
#include "backend/link.h"
#include "backend/pool.h"
#include "backend/quota.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/mailbox.h"
#include "known/session_shared.h"
#include "login/login_auth.h"
#include "net/stream.h"
#include "session/session.h"

#define FIRST_WORKER_SLOT 2
#define MAILS_PER_TURN    64

struct worker {
    struct loop loop;
    struct io mail_io;
    struct proc_env env;
    struct sessions ss;
    struct conf_gen *gen; /* of its own, as processes have it */
    bool has_reload;      /* on its way */
};

static struct {
    struct worker *w[WORLD_MAX_WORKERS];
    int n;
    struct shm *shm;
    struct conf_gen *gen;    /* by which shared memory was made */
    uint64_t number;         /* of the last */
    struct mailboxes *first; /* of slot 0 */
    struct proc_paths paths;
} workers;

/* ---- settings ---- */

static struct conf_gen *make_conf(void)
{
    static const char *const modes[WORLD_NMODES] = {"transaction", "session", "statement"};
    static const char *const consistency[] = {"eventual", "session", "global"};
    static const char *const stays_home[] = {
        "transaction", "transaction", "trans_transaction", "always"};
    const struct world_opts *o = &world.opts;
    struct conf_report report;
    struct conf_gen *gen;
    struct buf text = {0};
    int i;

    for (i = 0; i < o->nnodes; i++)
        buf_printf(
            &text, "backend_hostname%d = '127.0.0.1'\nbackend_port%d = %d\n", i, i, WORLD_PORT + i);
    buf_printf(&text, "load_balance_mode = %s\nread_consistency = %s\n",
        o->nnodes > 1 ? "on" : "off", consistency[o->consistency]);
    buf_printf(&text, "statement_level_load_balance = %s\ndisable_load_balance_on_write = '%s'\n",
        o->each_statement ? "on" : "off", stays_home[o->stays_home]);
    buf_printf(&text,
        "num_init_children = %d\n"
        "pool_mode = %s\ndefault_pool_size = %d\nmax_backend_connections = %d\n"
        "max_clients = 100\nvirtual_begin = %s\npool_test_rotate = %s\n"
        "max_prepared_statements = %d\npools_file = ''\npool_passwd = ''\n"
        "query_wait_timeout = 1000\nrole_check_delay = 0\nlog_min_messages = debug1\n",
        o->nworkers, modes[o->mode], o->pool_size, o->node_limit, o->virtual_begin ? "on" : "off",
        o->rotate ? "on" : "off", o->prepared);
    conf_report_init(&report);
    gen = conf_load_text("/nowhere/pgpool.conf", buf_slice(&text), &report);
    buf_clear(&text);
    if (gen == NULL) {
        conf_report_format(&report, &text);
        sim_fail("the settings are refused: %.*s", (int)text.len, text.data);
    }
    conf_report_fini(&report);
    buf_free(&text);
    return gen;
}

/* The present settings as the supervisor gives them out: a text with a number of its own. */
static struct conf_gen *make_generation(uint64_t number)
{
    static const char first[] = " 1 /nowhere";
    struct conf_gen *gen = make_conf();
    struct conf_report report;
    struct buf text = {0};
    struct buf all = {0};
    const char *at;

    if (gen == NULL)
        return NULL;
    conf_dump_canonical(gen, &text);
    conf_gen_free(&gen);
    at = memmem(text.data, text.len, first, strlen(first));
    if (at != NULL) {
        buf_printf(&all, "%.*s %llu", (int)(at - text.data), text.data, (unsigned long long)number);
        buf_put(&all, at + 2, text.len - (size_t)(at + 2 - text.data));
        conf_report_init(&report);
        gen = conf_load_canonical(buf_slice(&all), &report);
        conf_report_fini(&report);
    }
    if (gen == NULL || conf_number(gen) != number)
        sim_fail("generation %llu of the settings is refused", (unsigned long long)number);
    buf_free(&text);
    buf_free(&all);
    return gen;
}

void workers_reload(void)
{
    int i;

    workers.number++;
    sim_note("the settings are read again: %llu", (unsigned long long)workers.number);
    for (i = 0; i < workers.n; i++)
        workers.w[i]->has_reload = true;
}

/* As role_loop.c and worker.c do. */
static void take_reload(struct worker *w)
{
    struct conf_gen *old = w->gen;

    w->has_reload = false;
    w->gen = make_generation(workers.number);
    if (w->gen == NULL)
        return;
    sim_note("worker %d takes generation %llu: pool %d, virtual_begin %d", w->env.ordinal,
        (unsigned long long)workers.number, world.opts.pool_size, (int)world.opts.virtual_begin);
    world.nreloads++;
    w->env.conf = w->gen;
    sessions_set_conf(&w->ss, w->gen);
    conf_gen_free(&old);
}

/* ---- processes ---- */

static void on_mail(struct worker *w, struct mail *mail)
{
    struct backend *be = &w->ss.be;

    sim_note("worker %d gets %s", w->env.ordinal, mail_name(mail->type));
    world.nmails++;
    switch (mail->type) {
    case MAIL_CANCEL:
        sessions_on_cancel(&w->ss, mail->body, mail->len, mail->fd);
        return;
    case MAIL_LINK_OFFER:
        backend_on_offer(be, mail->body, mail->len, mail->fd);
        return;
    case MAIL_LINK_WANTED:
        backend_on_wanted(be, mail->body, mail->len);
        break;
    case MAIL_CLIENT_WANTED:
        backend_on_called(be, mail->body, mail->len);
        break;
    case MAIL_LINK_PLACE:
        backend_on_place(be, mail->body, mail->len);
        break;
    case MAIL_SESSION:
        sessions_on_travel(&w->ss, mail->body, mail->len, mail->fd);
        return;
    case MAIL_CLUSTER_CHANGED:
        sessions_on_cluster(&w->ss);
        break;
    case MAIL_PLACE_TAKEN:
        (void)login_auth_make_room(w->ss.auth);
        break;
    case MAIL_QUOTA_FREED:
    case MAIL_WORKER_GONE:
        backend_post_retry(be);
        break;
    default:
        sim_fail("worker %d got %s", w->env.ordinal, mail_name(mail->type));
        break;
    }
    if (mail->fd != -1)
        close(mail->fd);
}

static void on_mail_ready(struct io *io, int events)
{
    struct worker *w = LIST_ENTRY(io, struct worker, mail_io);
    struct mail mail;
    int i;

    (void)events;
    for (i = 0; i < MAILS_PER_TURN && mailbox_take(w->env.boxes, &mail) == 1; i++)
        on_mail(w, &mail);
}

static void on_closed(struct io *io)
{
    (void)io;
}

/* With pool_test_rotate clients go from each worker to the next, as in worker_gather.c. */
static void on_look(struct sessions *ss)
{
    bool goes = ss->conf->pool_test_rotate && world.opts.nworkers > 1;

    sessions_give(ss, (ss->env->ordinal + 1) % world.opts.nworkers, goes ? UINT32_MAX : 0, true);
}

static bool may_give(struct sessions *ss, int ordinal)
{
    return ordinal != ss->env->ordinal;
}

static void worker_start(int ordinal)
{
    struct worker *w = mem_alloc_zero(sizeof *w);
    struct proc_row *row;

    w->env.role = ROLE_WORKER;
    w->env.slot = FIRST_WORKER_SLOT + ordinal;
    w->env.ordinal = ordinal;
    w->env.nworkers = world.opts.nworkers;
    w->env.first_worker_slot = FIRST_WORKER_SLOT;
    w->env.shm = workers.shm;
    w->env.boxes = sim_mail_new(0, w->env.slot, workers.first);
    w->env.mail_fd = mailboxes_own_fd(w->env.boxes);
    w->gen = make_conf();
    w->env.conf = w->gen;
    w->env.paths = &workers.paths;
    row = proc_row(workers.shm, w->env.slot);
    row->pid = 100 + w->env.slot;
    row->role = ROLE_WORKER;
    row->ordinal = ordinal;
    loop_init(&w->loop);
    stream_later_init(&w->loop);
    io_open(&w->loop, &w->mail_io, w->env.mail_fd, on_mail_ready);
    io_want(&w->mail_io, IO_READ);
    sessions_init(&w->ss, &w->loop, &w->env);
    sessions_give_watch(&w->ss, on_look, may_give);
    workers.w[ordinal] = w;
}

void workers_start(void)
{
    struct shm_plan plan = {{0}};
    struct err err;
    int nslots = FIRST_WORKER_SLOT + world.opts.nworkers;
    int i;

    memset(&workers, 0, sizeof workers);
    log_configure("", LVL_PANIC, LOG_DEFAULT);
    if (sim.tracing)
        log_configure("log ", LVL_LOG, LOG_DEFAULT);
    workers.gen = make_conf();
    if (workers.gen == NULL)
        return;
    err_clear(&err);
    plan.bytes[SHM_PROCS] = proc_table_bytes(nslots);
    session_plan_shm(conf_of(workers.gen), world.opts.nworkers, &plan);
    workers.shm = shm_new(&plan, &err);
    session_init_shm(conf_of(workers.gen), world.opts.nworkers, workers.shm);
    workers.first = sim_mail_new(nslots, 0, NULL);
    sim_mail_set_full(workers.first, world.opts.mail_full_one_in);
    if (world.opts.nnodes > 1)
        proc_row(workers.shm, WORLD_MONITOR_SLOT)->role = ROLE_MONITOR;
    for (i = 0; i < world.opts.nworkers; i++)
        worker_start(i);
    workers.n = world.opts.nworkers;
    workers.number = 1;
}

struct shm *workers_shm(void)
{
    return workers.shm;
}

struct mailboxes *workers_boxes(void)
{
    return workers.first;
}

void workers_add_client(int fd)
{
    struct session_peer peer = {.fd = fd, .addr_kind = ROW_ADDR_LOCAL};
    struct worker *w = workers.w[sim_below((uint32_t)workers.n)];

    sessions_add(&w->ss, &peer);
}

static bool is_ready(struct worker *w)
{
    return w->has_reload || !list_is_empty(&w->loop.tasks) || w->loop.closed != NULL ||
           loop_due_us(&w->loop) <= sim.now_us || sim_uv_is_ready(&w->loop.uv) ||
           sim_epoll_is_ready(w->loop.epoll_fd);
}

bool workers_are_ready(void)
{
    int i;

    for (i = 0; i < workers.n; i++)
        if (is_ready(workers.w[i]))
            return true;
    return false;
}

void workers_step(void)
{
    struct worker *w = NULL;
    uint32_t seen = 0;
    int i;

    for (i = 0; i < workers.n; i++)
        if (is_ready(workers.w[i]) && sim_one_in(++seen))
            w = workers.w[i];
    if (w != NULL && w->has_reload && sim_one_in(4))
        take_reload(w);
    else if (w != NULL)
        loop_poll(&w->loop);
}

int64_t workers_next_us(void)
{
    int64_t next_us = INT64_MAX;
    int64_t due_us;
    int i;

    for (i = 0; i < workers.n; i++) {
        due_us = loop_due_us(&workers.w[i]->loop);
        if (due_us < next_us)
            next_us = due_us;
    }
    return next_us;
}

/* Of the client that has this server process; none has, when it has gone. */
static bool find_row(int pid, struct client_row *row)
{
    struct rows_header *rows = shm_get(workers.shm, SHM_CLIENTS);
    uint32_t i;

    for (i = 0; i < rows->capacity; i++) {
        (void)client_row_copy(rows, i, row, NULL);
        if (row->state != CLIENT_STATE_FREE && row->server_pid == pid)
            return true;
    }
    return false;
}

bool workers_is_tied(int pid, bool was_tied)
{
    struct client_row row;

    return find_row(pid, &row) ? row.pins != 0 : was_tied;
}

bool workers_is_held(int pid)
{
    struct client_row row;

    return find_row(pid, &row) && (row.pins & ~ROWS_PIN(PIN_REASON_SESSION_MODE)) != 0;
}

/* ---- accounts ---- */

static int count_list(const struct list *head)
{
    const struct list *n;
    int count = 0;

    LIST_FOREACH(n, head)
    count++;
    return count;
}

static int count_client_rows(void)
{
    struct rows_header *rows = shm_get(workers.shm, SHM_CLIENTS);
    struct client_row row;
    int count = 0;
    uint32_t i;

    for (i = 0; i < rows->capacity; i++) {
        (void)client_row_copy(rows, i, &row, NULL);
        count += row.state != CLIENT_STATE_FREE;
    }
    return count;
}

static int count_link_rows(void)
{
    struct rows_header *rows = shm_get(workers.shm, SHM_LINKS);
    struct link_row row;
    int count = 0;
    uint32_t i;

    for (i = 0; i < rows->capacity; i++) {
        (void)link_row_copy(rows, i, &row, NULL);
        count += row.state != LINK_STATE_FREE;
    }
    return count;
}

static void expect_count(const char *what, int64_t is, int64_t should)
{
    if (is != should)
        sim_fail("%s: %lld, should be %lld", what, (long long)is, (long long)should);
}

static int count_links_in(const struct list *links, int node)
{
    struct list *n;
    int count = 0;

    LIST_FOREACH(n, links)
    count += LIST_ENTRY(n, struct link, be_node)->pool->cluster_node == node;
    return count;
}

static int count_links(int node)
{
    int count = 0;
    int i;

    for (i = 0; i < workers.n; i++)
        count += count_links_in(&workers.w[i]->ss.be.links, node) +
                 count_links_in(&workers.w[i]->ss.be.idle_lru, node);
    return count;
}

static void check_table(void)
{
    struct limits_row row;
    int i;

    for (i = 0; i < limits_high_water(workers.shm); i++) {
        if (!limits_copy(workers.shm, i, &row))
            continue;
        expect_count("clients that wait, in the table of limits", row.waiting, 0);
        if (row.kind == LIMITS_DB_CLIENTS || row.kind == LIMITS_USER_CLIENTS)
            expect_count("clients in the table of limits", row.used, 0);
        else
            expect_count("links in the table of limits", row.used, count_links(row.node));
    }
}

static void check_worker(const struct worker *w)
{
    const struct link *link;
    struct list *n;

    expect_count("clients of a worker", w->ss.nclients, 0);
    expect_count("clients in the list of a worker", count_list(&w->ss.clients), 0);
    expect_count("requests that wait", w->ss.be.nrequests, 0);
    expect_count("pools that somebody waits for", count_list(&w->ss.be.waiting_pools), 0);
    expect_count("cancel requests", w->ss.be.ncancels, 0);
    expect_count("replies that met another client", (int64_t)w->ss.be.epoch_mismatches, 0);
    expect_count("links that are not idle", count_list(&w->ss.be.links), 0);
    LIST_FOREACH(n, &w->ss.be.idle_lru)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        expect_count("phase of a link that nobody uses", link->phase, LINK_IDLE);
        expect_count("what such a link owes", link->expect.len, 0);
    }
}

static void check_node(int node)
{
    int nlinks = count_links(node);

    expect_count("links of the node", quota_used(workers.shm, node), nlinks);
    expect_count("links that are opening", quota_opening(workers.shm, node), 0);
    expect_count("workers that wait for the node", quota_waiting_workers(workers.shm, node), 0);
    expect_count("server processes", server_nprocesses(node), nlinks);
}

void workers_check_idle(void)
{
    int nlinks = 0;
    int i;

    for (i = 0; i < workers.n; i++) {
        check_worker(workers.w[i]);
        nlinks += count_list(&workers.w[i]->ss.be.idle_lru);
    }
    expect_count("clients of all workers", session_count_all(workers.shm), 0);
    expect_count("rows of clients", count_client_rows(), 0);
    expect_count("rows of links", count_link_rows(), nlinks);
    for (i = 0; i < world.opts.nnodes; i++)
        check_node(i);
    expect_count("descriptors", sim_net_open_fds(), nlinks);
    check_table();
}

void workers_end(void)
{
    struct worker *w;
    int i;

    for (i = 0; i < workers.n; i++) {
        w = workers.w[i];
        sessions_stop(&w->ss, SESSION_STOP_FAST);
        if (w->ss.wrong_edges > 0)
            sim_fail("phases of sessions followed others as they may not: %llu times",
                (unsigned long long)w->ss.wrong_edges);
        sessions_fini(&w->ss);
        stream_later_fini(&w->loop);
        io_close(&w->mail_io, on_closed);
        loop_fini(&w->loop);
        sim_mail_free(w->env.boxes);
        conf_gen_free(&w->gen);
        mem_free(w);
    }
    if (workers.gen == NULL)
        return;
    sim_mail_free(workers.first);
    for (i = 0; i < world.opts.nnodes && !sim.failed; i++)
        expect_count("links after the end", quota_used(workers.shm, i), 0);
    shm_free(&workers.shm);
    conf_gen_free(&workers.gen);
    workers.n = 0;
}
