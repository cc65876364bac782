/* SPDX-License-Identifier: PostgreSQL
 * admin_bouncer_stats.c: PgBouncer's figures (SHOW STATS and its like, TOTALS, MEM) and the reports
 * about what pgpool has not: no rows. Runs in: worker. Sums are since the start; averages are per
 * second of the last minute that is complete, but those of times, which are per transaction and per
 * statement, as in PgBouncer. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ipc/dbstats.h"

#include "admin_bouncer_int.h"

#define ABSENT 3 /* counts of Parse and Bind */

/* In PgBouncer's order. */
enum figure {
    ASSIGNMENTS,
    TRANSACTIONS,
    QUERIES,
    RECEIVED,
    SENT,
    TRANSACTION_TIME,
    QUERY_TIME,
    WAIT_TIME,
    FIRST_ABSENT,
    LOGINS = FIRST_ABSENT + ABSENT,
    FIGURES
};

static const char *const total_names[FIGURES] = {"total_server_assignment_count",
    "total_xact_count", "total_query_count", "total_received", "total_sent", "total_xact_time",
    "total_query_time", "total_wait_time", "total_client_parse_count", "total_server_parse_count",
    "total_bind_count", "total_client_login_count"};
static const char *const average_names[FIGURES] = {"avg_server_assignment_count", "avg_xact_count",
    "avg_query_count", "avg_recv", "avg_sent", "avg_xact_time", "avg_query_time", "avg_wait_time",
    "avg_client_parse_count", "avg_server_parse_count", "avg_bind_count", "avg_client_login_count"};

static void take_totals(const struct dbstats_sum *sum, uint64_t out[FIGURES])
{
    memset(out, 0, FIGURES * sizeof out[0]);
    out[ASSIGNMENTS] = sum->assignments;
    out[TRANSACTIONS] = sum->transactions;
    out[QUERIES] = sum->queries;
    out[RECEIVED] = sum->bytes_in;
    out[SENT] = sum->bytes_out;
    out[TRANSACTION_TIME] = sum->transaction_us;
    out[QUERY_TIME] = sum->query_us;
    out[WAIT_TIME] = sum->wait_us;
    out[LOGINS] = sum->logins;
}

static uint64_t each(double sum, double n)
{
    return n > 0 ? (uint64_t)(sum / n) : 0;
}

static void take_averages(const double per_second[DBSTATS_NCOUNTERS], uint64_t out[FIGURES])
{
    memset(out, 0, FIGURES * sizeof out[0]);
    out[ASSIGNMENTS] = (uint64_t)per_second[DBSTATS_N_assignments];
    out[TRANSACTIONS] = (uint64_t)per_second[DBSTATS_N_transactions];
    out[QUERIES] = (uint64_t)per_second[DBSTATS_N_queries];
    out[RECEIVED] = (uint64_t)per_second[DBSTATS_N_bytes_in];
    out[SENT] = (uint64_t)per_second[DBSTATS_N_bytes_out];
    out[TRANSACTION_TIME] =
        each(per_second[DBSTATS_N_transaction_us], per_second[DBSTATS_N_transactions]);
    out[QUERY_TIME] = each(per_second[DBSTATS_N_query_us], per_second[DBSTATS_N_queries]);
    out[WAIT_TIME] = (uint64_t)per_second[DBSTATS_N_wait_us];
    out[LOGINS] = (uint64_t)per_second[DBSTATS_N_logins];
}

static void put_figures(struct admin_rows *out, const uint64_t figures[FIGURES])
{
    int i;

    for (i = 0; i < FIGURES; i++)
        admin_put_uint(out, figures[i]);
}

static void put_stats(
    const struct admin_sources *src, struct admin_rows *out, bool totals, bool averages)
{
    struct dbstats_sum *sum = mem_alloc_zero(sizeof *sum); /* too large for the stack */
    uint64_t figures[FIGURES];
    uint32_t at = 0;

    while (dbstats_next(src->shm, &at, sum)) {
        admin_row_begin(out);
        admin_put(out, admin_field_text(sum->database, sizeof sum->database));
        take_totals(sum, figures);
        if (totals)
            put_figures(out, figures);
        take_averages(sum->per_second, figures);
        if (averages)
            put_figures(out, figures);
        if (totals && averages)
            admin_put_uint(out, sum->queries); /* total_requests */
    }
    mem_free(sum);
}

void admin_bouncer_stats(const struct admin_sources *src, struct admin_rows *out)
{
    put_stats(src, out, true, true);
}

void admin_bouncer_stats_totals(const struct admin_sources *src, struct admin_rows *out)
{
    put_stats(src, out, true, false);
}

void admin_bouncer_stats_averages(const struct admin_sources *src, struct admin_rows *out)
{
    put_stats(src, out, false, true);
}

/* --- SHOW TOTALS --- */

static void put_named(
    struct admin_rows *out, const char *const names[FIGURES], const uint64_t figures[FIGURES])
{
    int i;

    for (i = 0; i < FIGURES; i++) {
        admin_row_begin(out);
        admin_put_static(out, names[i]);
        admin_put_uint(out, figures[i]);
    }
}

void admin_bouncer_totals(const struct admin_sources *src, struct admin_rows *out)
{
    struct dbstats_sum *sum = mem_alloc_zero(sizeof *sum);
    double per_second[DBSTATS_NCOUNTERS] = {0};
    uint64_t totals[FIGURES] = {0};
    uint64_t figures[FIGURES];
    uint32_t at = 0;
    int i;

    while (dbstats_next(src->shm, &at, sum)) {
        take_totals(sum, figures);
        for (i = 0; i < FIGURES; i++)
            totals[i] += figures[i];
        for (i = 0; i < DBSTATS_NCOUNTERS; i++)
            per_second[i] += sum->per_second[i];
    }
    take_averages(per_second, figures);
    put_named(out, total_names, totals);
    put_named(out, average_names, figures);
    mem_free(sum);
}

/* --- SHOW MEM: the shared memory, region by region --- */

void admin_bouncer_mem(const struct admin_sources *src, struct admin_rows *out)
{
    static const char *const names[SHM_REGION_COUNT] = {
#define SHM_REGION(sym, name, writer, text) name,
#include "ipc/regions.def"
#undef SHM_REGION
    };
    int i;

    for (i = 0; i < SHM_REGION_COUNT; i++) {
        admin_row_begin(out);
        admin_put_static(out, names[i]);
        admin_put_uint(out, shm_bytes(src->shm, (enum shm_region)i));
        admin_put_static(out, "1");
        admin_put_static(out, "0");
        admin_put_uint(out, shm_bytes(src->shm, (enum shm_region)i));
    }
}

/* --- SHOW HELP --- */

void admin_bouncer_help(const struct admin_sources *src, struct admin_rows *out)
{
    static const char *const lines[] = {
#define BOUNCER_REPORT(sym, name, types, ...) "SHOW " name,
#include "admin_bouncer.def"
#undef BOUNCER_REPORT
#define REPORT_BEGIN(SYM, sym, name, privilege, text) "SHOW " name,
#define COLUMN(name, text)
#define REPORT_END
#include "admin/reports.def"
#undef REPORT_BEGIN
#undef COLUMN
#undef REPORT_END
        "PAUSE [database]", "RESUME [database]", "DRAIN [database]", "RECONNECT [database]",
        "WAIT_CLOSE [database]", "KILL [database]", "KILL_CLIENT id", "CANCEL CLIENT id",
        "DISABLE database", "ENABLE database", "RELOAD", "SHUTDOWN [WAIT_FOR_CLIENTS]"};
    size_t i;

    (void)src;
    for (i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        admin_row_begin(out);
        admin_put_static(out, lines[i]);
    }
}

/* --- what pgpool has not --- */

void admin_bouncer_peers(const struct admin_sources *src, struct admin_rows *out)
{
    (void)src;
    (void)out;
}

void admin_bouncer_peer_pools(const struct admin_sources *src, struct admin_rows *out)
{
    (void)src;
    (void)out;
}

void admin_bouncer_dns_hosts(const struct admin_sources *src, struct admin_rows *out)
{
    (void)src;
    (void)out;
}

void admin_bouncer_dns_zones(const struct admin_sources *src, struct admin_rows *out)
{
    (void)src;
    (void)out;
}
