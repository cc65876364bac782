/* SPDX-License-Identifier: PostgreSQL
 * web_metrics.c: /metrics under our own names. Made from the tables that SHOW is made from, and
 * from one walk over all clients and server connections.
 * Runs in: web. Reads shared memory and /proc, never waits. Costs grow with the number of clients
 * only by that walk. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth/auth_guard.h"
#include "backend/limits.h"
#include "backend/quota.h"
#include "base/mem.h"
#include "cluster/doubt.h"
#include "cluster/recovery.h"
#include "ipc/gate.h"
#include "ipc/dbstats.h"
#include "ipc/nodestats.h"
#include "ipc/orders.h"
#include "ipc/proc.h"
#include "session/session.h"

#include "web_metrics.h"

#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TYPE_PROMETHEUS  "text/plain; version=0.0.4; charset=utf-8"

static const char *const client_states[CLIENT_STATE_COUNT] = {
#define TEXT(sym, text, status) text,
    CLIENT_STATES(TEXT)
#undef TEXT
};

static const char *const link_states[LINK_STATE_COUNT] = {
#define TEXT(sym, text, status) text,
    LINK_STATES(TEXT)
#undef TEXT
};

static const char *const wait_reasons[WAIT_REASON_COUNT] = {
#define TEXT(sym, text) text,
    WAIT_REASONS(TEXT)
#undef TEXT
};

static const char *const pin_reasons[PIN_REASON_COUNT] = {
#define TEXT(sym, text) text,
    PIN_REASONS(TEXT)
#undef TEXT
};

static const struct conf *conf_now(const struct web_scrape *s)
{
    return conf_of(s->src.gen);
}

/* One sample per text, with the texts as values of `label`. The first is none of them. */
static void put_counts(struct web_scrape *s, const char *label, const char *const *texts,
    const uint32_t *counts, int n)
{
    int i;

    for (i = 1; i < n; i++) {
        web_metric_begin(s);
        web_metric_label(s, label, slice_of_str(texts[i]));
        web_metric_value(s, counts[i]);
    }
}

/* --- the whole --- */

static void put_itself(struct web_scrape *s)
{
    struct web_trouble troubles[WEB_TROUBLES_MAX];
    struct web_facts f;
    struct proc_row row;
    bool is_ready = true;
    int i;
    int n;

    web_health_look(s->web, &f);
    n = web_health_judge(&f, &s->web->view, conf_now(s), troubles);
    for (i = 0; i < n; i++)
        is_ready = is_ready && web_trouble_may_log_in(troubles[i].kind);
    proc_row_copy(s->src.shm, PROC_SLOT_SUPERVISOR, &row);
    web_metric_family(s, "pgpool_build", WEB_GAUGE, "1, with the version");
    web_metric_begin(s);
    web_metric_label(s, "version", slice_of_str(PACKAGE_VERSION));
    web_metric_value(s, 1);
    web_metric_single(s, "pgpool_start_time_seconds", WEB_GAUGE,
        "when pgpool was started, seconds since 1970", (double)row.start_time_us / 1e6);
    web_metric_single(s, "pgpool_ready", WEB_GAUGE, "1 while clients can log in", is_ready);
    web_metric_single(s, "pgpool_can_write", WEB_GAUGE,
        "1 while there is a primary that takes writes", web_health_can_write(&s->web->view));
    web_metric_single(s, "pgpool_leader", WEB_GAUGE,
        "1 while this pgpool leads its watchdog, or has none",
        web_leader_look(s->web) <= WEB_LEAD_OURS);
    web_metric_single(s, "pgpool_alarms", WEB_GAUGE, "what is wrong now, see the console",
        web_trouble_level(troubles[0].kind) >= WEB_WARNING ? n : 0);
    web_metric_single(s, "pgpool_config_generation", WEB_GAUGE,
        "how often the settings have been read", (double)conf_number(s->src.gen));
    web_metric_single(s, "pgpool_auth_failures", WEB_COUNTER,
        "logins that failed, of clients and of administrators",
        (double)auth_guard_failures(shm_get(s->src.shm, SHM_AUTH)));
}

static void put_certs(struct web_scrape *s)
{
    int i;

    if (s->web->certs.n == 0)
        return;
    web_metric_family(s, "pgpool_certificate_expires_seconds", WEB_GAUGE,
        "when the certificate that is in use expires, seconds since 1970; the label setting names "
        "it");
    for (i = 0; i < s->web->certs.n; i++) {
        web_metric_begin(s);
        web_metric_label(s, "setting", slice_of_str(s->web->certs.row[i]->setting));
        web_metric_value(s, (double)s->web->certs.row[i]->expires_s);
    }
}

/* Resident pages and clock ticks of a process; false when it has gone. */
static bool read_process(int pid, double *resident, double *cpu_s)
{
    char path[64];
    unsigned long pages = 0;
    unsigned long user = 0;
    unsigned long system = 0;
    char text[1024] = "";
    const char *end;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    fclose(file);
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    fclose(file);
    end = strrchr(text, ')'); /* the name may hold anything */
    if (end != NULL)
        (void)sscanf(
            end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    *resident = (double)pages * (double)sysconf(_SC_PAGESIZE);
    *cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

struct role_sums {
    int n[ROLE_COUNT];
    double restarts[ROLE_COUNT];
    double resident[ROLE_COUNT];
    double cpu_s[ROLE_COUNT];
};

static void put_role_family(struct web_scrape *s, const struct role_sums *sums,
    const double *values, const char *name, enum web_metric_type type, const char *help)
{
    int i;

    web_metric_family(s, name, type, help);
    for (i = 0; i < ROLE_COUNT; i++) {
        if (sums->n[i] == 0)
            continue;
        web_metric_begin(s);
        web_metric_label(s, "role", slice_of_str(proc_role_name((enum proc_role)i)));
        web_metric_value(s, values == NULL ? sums->n[i] : values[i]);
    }
}

/* How long clients of a worker had to wait for others of the same worker, at the worst. */
static void put_stalls(struct web_scrape *s)
{
    static const struct {
        const char *name;
        enum web_metric_type type;
        const char *help;
    } families[] = {{"pgpool_loop_stalls", WEB_COUNTER,
                        "turns of a worker's event loop that took longer than 10 ms: all its "
                        "clients waited"},
        {"pgpool_loop_stall_seconds", WEB_COUNTER, "how long those turns took together"},
        {"pgpool_loop_stall_max_seconds", WEB_GAUGE, "how long the longest of them took"}};
    struct proc_row row;
    size_t k;
    int i;

    for (k = 0; k < sizeof families / sizeof families[0]; k++) {
        web_metric_family(s, families[k].name, families[k].type, families[k].help);
        for (i = 0; i < proc_nslots(s->src.shm); i++) {
            proc_row_copy(s->src.shm, i, &row);
            if (row.role != ROLE_WORKER || row.pid == 0)
                continue;
            web_metric_begin(s);
            web_metric_label_int(s, "worker", row.ordinal);
            web_metric_value(
                s, k == 0 ? (double)row.stalls.n
                          : (double)(k == 1 ? row.stalls.sum_us : row.stalls.max_us) / 1e6);
        }
    }
}

/* A sample of them: small delays are seen here, and every large one among the stalls. */
static void put_turns(struct web_scrape *s)
{
    static const int64_t limits_us[LOOP_TURN_LIMITS] = LOOP_TURN_LIMITS_US;
    uint64_t count[LOOP_TURN_LIMITS + 1];
    struct proc_row row;
    char ordinal[12];
    int i;
    int k;

    web_metric_family(s, "pgpool_loop_turn_seconds", WEB_HISTOGRAM,
        "how long turns of a worker's event loop take, by a sample: what comes meanwhile waits for "
        "the end of the turn");
    for (i = 0; i < proc_nslots(s->src.shm); i++) {
        proc_row_copy(s->src.shm, i, &row);
        if (row.role != ROLE_WORKER || row.pid == 0)
            continue;
        for (k = 0; k <= LOOP_TURN_LIMITS; k++)
            count[k] = row.stalls.turn[k];
        snprintf(ordinal, sizeof ordinal, "%d", row.ordinal);
        web_metric_buckets(s, "worker", slice_of_str(ordinal), limits_us, count, LOOP_TURN_LIMITS,
            row.stalls.turns_us);
    }
}

static void put_processes(struct web_scrape *s)
{
    struct role_sums sums = {0};
    struct proc_row row;
    double resident;
    double cpu_s;
    int i;

    for (i = 0; i < proc_nslots(s->src.shm); i++) {
        proc_row_copy(s->src.shm, i, &row);
        if (row.role < 0 || row.role >= ROLE_COUNT || row.pid == 0)
            continue;
        sums.n[row.role]++;
        sums.restarts[row.role] += row.restarts;
        if (!read_process(row.pid, &resident, &cpu_s))
            continue;
        sums.resident[row.role] += resident;
        sums.cpu_s[row.role] += cpu_s;
    }
    put_role_family(s, &sums, NULL, "pgpool_processes", WEB_GAUGE, "processes, by what they do");
    put_role_family(s, &sums, sums.restarts, "pgpool_process_restarts", WEB_COUNTER,
        "processes that ended and were replaced");
    put_role_family(s, &sums, sums.resident, "pgpool_process_resident_bytes", WEB_GAUGE,
        "memory of the processes; what they share is counted in each");
    put_role_family(s, &sums, sums.cpu_s, "pgpool_process_cpu_seconds", WEB_GAUGE,
        "processor time of the processes that run now");
}

/* --- clients --- */

static void put_clients(struct web_scrape *s)
{
    const struct admin_totals *t = s->totals;

    web_metric_family(s, "pgpool_clients", WEB_GAUGE, "clients, by what they do");
    put_counts(s, "state", client_states, t->clients, CLIENT_STATE_COUNT);
    web_metric_single(
        s, "pgpool_clients_limit", WEB_GAUGE, "max_clients", conf_now(s)->max_clients);
    web_metric_single(
        s, "pgpool_clients_tls", WEB_GAUGE, "clients whose connection is encrypted", t->tls);
    web_metric_family(s, "pgpool_clients_waiting", WEB_GAUGE,
        "clients that wait for a server connection, and why");
    put_counts(s, "reason", wait_reasons, t->waiting, WAIT_REASON_COUNT);
    web_metric_single(s, "pgpool_longest_wait_seconds", WEB_GAUGE,
        "how long the client has waited that waits longest now", (double)t->longest_wait_us / 1e6);
    web_metric_family(s, "pgpool_clients_pinned", WEB_GAUGE,
        "clients that keep their server connection between transactions, and why");
    put_counts(s, "reason", pin_reasons, t->pinned, PIN_REASON_COUNT);
}

/* Clients of snapshot_isolation that wait for each other. */
static void put_gate(struct web_scrape *s)
{
    static const char *const sides[GATE_SIDES] = {"snapshot", "commit"};
    double n[GATE_SIDES][3];

    for (int side = 0; side < GATE_SIDES; side++) {
        struct gate_figures f = gate_figures_of(s->src.shm, (enum gate_side)side);

        n[side][0] = (double)f.nwaits;
        n[side][1] = (double)f.wait_us / 1e6;
        n[side][2] = (double)f.ntimeouts;
    }
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {
            "pgpool_gate_waits", "pgpool_gate_wait_seconds", "pgpool_gate_timeouts"};
        static const char *const helps[] = {
            "times a transaction waited to take its snapshot or to commit (snapshot_isolation)",
            "how long they waited, all together", "those that gave up: snapshot_wait_timeout"};

        web_metric_family(s, names[i], WEB_COUNTER, helps[i]);
        for (int side = 0; side < GATE_SIDES; side++) {
            web_metric_begin(s);
            web_metric_label(s, "side", slice_of_str(sides[side]));
            web_metric_value(s, n[side][i]);
        }
    }
}

/* --- databases --- */

/* Time is counted in microseconds and told in seconds. */
static void put_database_counters(struct web_scrape *s, struct dbstats_sum *sum)
{
    uint32_t at;

#define FAMILY(field, name, scale, help)                                                           \
    web_metric_family(s, name, WEB_COUNTER, help);                                                 \
    for (at = 0; dbstats_next(s->src.shm, &at, sum);) {                                            \
        web_metric_begin(s);                                                                       \
        web_metric_label(                                                                          \
            s, "database", slice_of(sum->database, strnlen(sum->database, ROWS_NAME_BYTES)));      \
        web_metric_value(s, (double)sum->field *(scale));                                          \
    }
    FAMILY(logins, "pgpool_database_logins", 1, "clients that logged in")
    FAMILY(assignments, "pgpool_database_assignments", 1,
        "times a client was given a server connection")
    FAMILY(transactions, "pgpool_database_transactions", 1, "transactions that ended at a server")
    FAMILY(queries, "pgpool_database_queries", 1, "statements sent")
    FAMILY(bytes_in, "pgpool_database_received_bytes", 1, "bytes from clients")
    FAMILY(bytes_out, "pgpool_database_sent_bytes", 1, "bytes to clients")
    FAMILY(transaction_us, "pgpool_database_transaction_seconds", 1e-6, "time in transactions")
#undef FAMILY
}

static void put_databases(struct web_scrape *s)
{
    struct dbstats_sum *sum = mem_alloc_zero(sizeof *sum);
    uint32_t at = 0;
    int i;

    put_database_counters(s, sum);
    web_metric_family(s, "pgpool_query_seconds", WEB_HISTOGRAM,
        "time between a request and the end of its answer");
    for (at = 0; dbstats_next(s->src.shm, &at, sum);)
        web_metric_histogram(
            s, "database", slice_of_str(sum->database), &sum->query, sum->query_us);
    web_metric_family(
        s, "pgpool_wait_seconds", WEB_HISTOGRAM, "time spent waiting for a server connection");
    for (at = 0; dbstats_next(s->src.shm, &at, sum);)
        web_metric_histogram(s, "database", slice_of_str(sum->database), &sum->wait, sum->wait_us);
    web_metric_family(
        s, "pgpool_transaction_seconds", WEB_HISTOGRAM, "from the first request to the end");
    for (at = 0; dbstats_next(s->src.shm, &at, sum);)
        web_metric_histogram(
            s, "database", slice_of_str(sum->database), &sum->transaction, sum->transaction_us);
    web_metric_family(s, "pgpool_database_pins", WEB_COUNTER,
        "clients that began to keep their server connection, and why");
    for (at = 0; dbstats_next(s->src.shm, &at, sum);) {
        for (i = 1; i < PIN_REASON_COUNT; i++) {
            web_metric_begin(s);
            web_metric_label(s, "database", slice_of_str(sum->database));
            web_metric_label(s, "reason", slice_of_str(pin_reasons[i]));
            web_metric_value(s, (double)sum->npins[i]);
        }
    }
    mem_free(sum);
}

/* --- servers --- */

static void label_node(struct web_scrape *s, int id)
{
    const struct conf_node *n = &conf_now(s)->nodes[id];

    web_metric_label_int(s, "node", id);
    web_metric_label(s, "host", slice_of_str(n->backend_hostname));
    web_metric_label_int(s, "port", n->backend_port);
}

static double node_primary(const struct web_scrape *s, int id)
{
    return s->web->view.primary == id;
}

static double node_lag_bytes(const struct web_scrape *s, int id)
{
    return (double)s->web->view.node[id].delay_bytes;
}

static double node_lag_seconds(const struct web_scrape *s, int id)
{
    return (double)s->web->view.node[id].delay_us / 1e6;
}

static double node_changed(const struct web_scrape *s, int id)
{
    return (double)s->web->view.node[id].status_changed_us / 1e6;
}

static double node_held(const struct web_scrape *s, int id)
{
    return s->web->view.node[id].held_down;
}

static double node_used(const struct web_scrape *s, int id)
{
    return quota_used(s->src.shm, id);
}

static double node_limit(const struct web_scrape *s, int id)
{
    return quota_limit(s->src.shm, id);
}

static double node_waiting(const struct web_scrape *s, int id)
{
    return limits_node_waiting(s->src.shm, id);
}

static double node_tls(const struct web_scrape *s, int id)
{
    return s->totals->node_links_tls[id];
}

/* Transactions of replication_commit = two_phase that are prepared there. */
static double node_in_doubt(const struct web_scrape *s, int id)
{
    struct doubt_row row[DOUBT_MAX_ROWS];
    uint32_t n = doubt_copy(s->src.shm, row, DOUBT_MAX_ROWS);
    uint32_t found = 0;
    uint32_t i;

    for (i = 0; i < n; i++)
        found += row[i].node == id;
    return found;
}

static double node_recovering(const struct web_scrape *s, int id)
{
    struct recovery_row row[RECOVERY_MAX_ROWS];
    int n = recovery_copy(s->src.shm, row, RECOVERY_MAX_ROWS);
    int i;

    for (i = 0; i < n; i++)
        if (row[i].node == id && !row[i].is_over)
            return 1;
    return 0;
}

static void put_node_family(struct web_scrape *s, const char *name, const char *help,
    double (*value)(const struct web_scrape *s, int id))
{
    int i;

    web_metric_family(s, name, WEB_GAUGE, help);
    for (i = 0; i < conf_now(s)->nnodes && i < s->web->view.nnodes; i++) {
        if (!conf_has_node(conf_now(s), i))
            continue;
        web_metric_begin(s);
        label_node(s, i);
        web_metric_value(s, value(s, i));
    }
}

static void put_links(struct web_scrape *s)
{
    int i;
    int k;

    web_metric_family(s, "pgpool_node_links", WEB_GAUGE, "server connections, by what they do");
    for (i = 0; i < conf_now(s)->nnodes && i < VIEW_MAX_NODES; i++) {
        for (k = 1; conf_has_node(conf_now(s), i) && k < LINK_STATE_COUNT; k++) {
            web_metric_begin(s);
            label_node(s, i);
            web_metric_label(s, "state", slice_of_str(link_states[k]));
            web_metric_value(s, s->totals->node_links[i][k]);
        }
    }
}

static void put_node_time(struct web_scrape *s, struct nodestats_sum *sum,
    const struct histogram_sum *times, const uint64_t *sum_us)
{
    char number[12];
    int i;

    for (i = 0; i < conf_now(s)->nnodes && i < VIEW_MAX_NODES; i++) {
        if (!conf_has_node(conf_now(s), i))
            continue;
        nodestats_sum(s->src.shm, i, sum);
        snprintf(number, sizeof number, "%d", i);
        web_metric_histogram(s, "node", slice_of_str(number), times, *sum_us);
    }
}

static void put_node_times(struct web_scrape *s)
{
    struct nodestats_sum *sum = mem_alloc(sizeof *sum);

    web_metric_family(s, "pgpool_node_query_seconds", WEB_HISTOGRAM,
        "time between a request and the end of its answer, by server");
    put_node_time(s, sum, &sum->query, &sum->query_us);
    web_metric_family(s, "pgpool_node_transaction_seconds", WEB_HISTOGRAM,
        "from the first request to the end, by the server where it ended");
    put_node_time(s, sum, &sum->transaction, &sum->transaction_us);
    mem_free(sum);
}

static void put_nodes(struct web_scrape *s)
{
    static const struct web_column columns[] = {
#define WEB_METRIC(report, column, family, type, scale, label, value, help)                        \
    {column, family, WEB_##type, scale, label, value, help},
#include "web_metrics.def"
#undef WEB_METRIC
    };
    static const enum admin_report reports[] = {
#define WEB_METRIC(report, column, family, type, scale, label, value, help) ADMIN_REPORT_##report,
#include "web_metrics.def"
#undef WEB_METRIC
    };
    static const struct web_label labels[] = {{"node_id", "node"}, {"hostname", "host"},
        {"port", "port"}, {"pgpool_id", "pgpool"}, {"name", "name"}, {"node", "node"},
        {"database", "database"}, {"user", "user"}};
    size_t n = sizeof columns / sizeof columns[0];
    size_t i;
    size_t first = 0;

    for (i = 1; i <= n; i++) {
        if (i < n && reports[i] == reports[first])
            continue;
        web_metric_columns(s, reports[first], &columns[first], i - first, labels,
            sizeof labels / sizeof labels[0]);
        first = i;
    }
    put_node_times(s);
    put_node_family(s, "pgpool_node_primary", "1 for the server that takes writes", node_primary);
    put_node_family(s, "pgpool_node_lag_bytes", "how far a standby is behind", node_lag_bytes);
    put_node_family(
        s, "pgpool_node_lag_seconds", "the same as time, where that is known", node_lag_seconds);
    put_node_family(s, "pgpool_node_held", "1 while an operator keeps the server out", node_held);
    put_node_family(s, "pgpool_node_changed_time_seconds",
        "when its status changed last, seconds since 1970", node_changed);
    put_node_family(
        s, "pgpool_node_links_used", "server connections that count against the limit", node_used);
    put_node_family(s, "pgpool_node_links_limit", "how many there may be; 0: no limit", node_limit);
    put_node_family(
        s, "pgpool_node_waiting", "clients that wait for a connection to it", node_waiting);
    put_node_family(s, "pgpool_node_links_tls", "server connections that are encrypted", node_tls);
    put_node_family(s, "pgpool_node_in_doubt",
        "transactions that are prepared on the server and have to be finished", node_in_doubt);
    put_node_family(s, "pgpool_node_recovering", "1 while online recovery rebuilds the server",
        node_recovering);
    put_links(s);
    web_metric_single(s, "pgpool_primary_changes", WEB_COUNTER,
        "how often another server became the primary", (double)s->web->view.primary_epoch);
    web_metric_single(s, "pgpool_switchovers", WEB_COUNTER,
        "switchovers that ended, one way or the other", (double)s->web->view.sw.nended);
    web_metric_single(s, "pgpool_failover_in_progress", WEB_GAUGE,
        "1 while a primary is being replaced", view_failover_in_progress(&s->web->view));
}

/* --- pools and orders --- */

static void label_pool(struct web_scrape *s, const struct admin_pool_total *p)
{
    web_metric_label(s, "database", slice_of_str(p->database));
    web_metric_label(s, "user", slice_of_str(p->user));
}

static void put_pools(struct web_scrape *s)
{
    const struct admin_totals *t = s->totals;
    uint32_t i;
    int k;

    web_metric_family(
        s, "pgpool_pool_clients", WEB_GAUGE, "clients of a user in a database, by what they do");
    for (i = 0; i < t->npools; i++) {
        for (k = 1; k < CLIENT_STATE_COUNT; k++) {
            if (t->pool[i].clients[k] == 0 && k != CLIENT_STATE_ACTIVE && k != CLIENT_STATE_WAITING)
                continue;
            web_metric_begin(s);
            label_pool(s, &t->pool[i]);
            web_metric_label(s, "state", slice_of_str(client_states[k]));
            web_metric_value(s, t->pool[i].clients[k]);
        }
    }
    web_metric_family(s, "pgpool_pool_links", WEB_GAUGE,
        "server connections of a user in a database, by what they do");
    for (i = 0; i < t->npools; i++) {
        for (k = 1; k < LINK_STATE_COUNT; k++) {
            if (t->pool[i].links[k] == 0 && k != LINK_STATE_ACTIVE && k != LINK_STATE_IDLE)
                continue;
            web_metric_begin(s);
            label_pool(s, &t->pool[i]);
            web_metric_label(s, "state", slice_of_str(link_states[k]));
            web_metric_value(s, t->pool[i].links[k]);
        }
    }
    web_metric_family(s, "pgpool_pool_longest_wait_seconds", WEB_GAUGE,
        "how long the client has waited that waits longest now");
    for (i = 0; i < t->npools; i++) {
        web_metric_begin(s);
        label_pool(s, &t->pool[i]);
        web_metric_value(s, (double)t->pool[i].longest_wait_us / 1e6);
    }
}

static void put_orders(struct web_scrape *s)
{
    static const struct {
        const char *name;
        unsigned flag;
    } kinds[] = {{"pause", ORDER_PAUSE}, {"drain", ORDER_DRAIN}, {"disable", ORDER_DISABLE}};
    struct order_state state;
    uint32_t at = 0;
    size_t i;

    web_metric_family(s, "pgpool_orders", WEB_GAUGE,
        "1 for a database that an operator paused, drains or disabled; an empty name stands for "
        "all");
    while (orders_next(s->src.shm, &at, &state)) {
        if (state.database[0] != '\0' && state.flags == 0)
            continue;
        for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            web_metric_begin(s);
            web_metric_label(s, "database",
                slice_of(state.database, strnlen(state.database, sizeof state.database)));
            web_metric_label(s, "order", slice_of_str(kinds[i].name));
            web_metric_value(s, (state.flags & kinds[i].flag) != 0);
        }
    }
}

static void put_aliases(struct web_scrape *s)
{
    int names = (int)conf_now(s)->http_metrics_names;

    if (names == CONF_METRICS_PGPOOL2 || names == CONF_METRICS_ALL)
        web_metrics_pgpool2(s);
    if (names == CONF_METRICS_PGBOUNCER || names == CONF_METRICS_ALL)
        web_metrics_pgbouncer(s);
}

void web_metrics_page(const struct web_request *r, struct web_answer *a)
{
    const char *accept = web_request_header(r, "Accept");
    struct web_scrape s = {.web = r->web, .out = &a->body};

    s.is_openmetrics = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    s.totals = mem_alloc(sizeof *s.totals);
    web_sources(r->web, &s.src);
    admin_totals(&s.src, s.totals);
    put_itself(&s);
    put_certs(&s);
    put_processes(&s);
    put_stalls(&s);
    put_turns(&s);
    put_clients(&s);
    put_gate(&s);
    put_databases(&s);
    put_nodes(&s);
    put_pools(&s);
    put_orders(&s);
    web_metrics_cache(&s);
    put_aliases(&s);
    if (s.is_openmetrics)
        buf_printf(s.out, "# EOF\n");
    mem_free(s.totals);
    a->type = s.is_openmetrics ? TYPE_OPENMETRICS : TYPE_PROMETHEUS;
}
