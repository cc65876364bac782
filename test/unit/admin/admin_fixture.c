/* SPDX-License-Identifier: PostgreSQL
 * admin_fixture.c: a small cluster in shared memory, for the tests of the admin module. */
#include "config.h"

#include "admin_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend/limits.h"
#include "backend/quota.h"
#include "cache/cache_stats.h"
#include "cluster/wd_share.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "ipc/dbstats.h"
#include "ipc/orders.h"
#include "ipc/proc.h"
#include "wire/proto.h"

#define NSLOTS (1 + NWORKERS)

static const char settings[] = "port = 11000\n"
                               "backend_hostname0 = '/tmp'\n"
                               "backend_port0 = 11002\n"
                               "backend_weight0 = 1\n"
                               "backend_hostname2 = 'db2'\n"
                               "backend_port2 = 11004\n"
                               "backend_weight2 = 3\n"
                               "client_idle_limit = 0\n";

struct shm *shm;
struct conf_gen *gen;
struct conf_override *ov;
struct admin_sources src;
struct admin_result res;
struct err err;

void fixture_load(const char *text)
{
    struct conf_report report;
    struct buf why = {0};

    conf_report_init(&report);
    gen = conf_load_text("/nonexistent/pgpool.conf", slice_of_str(text), &report);
    conf_report_format(&report, &why);
    ck_assert_msg(gen != NULL, "%.*s", (int)why.len, why.data);
    buf_free(&why);
    conf_report_fini(&report);
    src.gen = gen;
}

void fixture_setup(void)
{
    struct shm_plan plan = {{0}};
    struct proc_row *proc;
    int i;

    setenv("TZ", "UTC", 1);
    tzset();
    err_clear(&err);
    ov = NULL;
    plan.bytes[SHM_PROCS] = proc_table_bytes(NSLOTS);
    plan.bytes[SHM_CLIENTS] =
        rows_bytes(sizeof(struct client_row), ROWS_CLIENT_STATEMENT_BYTES, NWORKERS, PER_WORKER);
    plan.bytes[SHM_LINKS] =
        rows_bytes(sizeof(struct link_row), ROWS_LINK_STATEMENT_BYTES, NWORKERS, PER_WORKER);
    plan.bytes[SHM_DBSTATS] = dbstats_region_bytes(NWORKERS);
    plan.bytes[SHM_WATCHDOG] = wd_share_region_bytes();
    plan.bytes[SHM_ORDERS] = orders_region_bytes();
    plan.bytes[SHM_QUOTAS] = quota_region_bytes(NWORKERS);
    plan.bytes[SHM_LIMITS] = limits_region_bytes(NWORKERS, 100);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    rows_init(shm_get(shm, SHM_CLIENTS), sizeof(struct client_row), ROWS_CLIENT_STATEMENT_BYTES,
        NWORKERS, PER_WORKER);
    rows_init(shm_get(shm, SHM_LINKS), sizeof(struct link_row), ROWS_LINK_STATEMENT_BYTES, NWORKERS,
        PER_WORKER);
    dbstats_region_init(shm, NWORKERS);
    quota_region_init(shm, NWORKERS);
    limits_region_init(shm, NWORKERS, 100);
    for (i = 0; i < NWORKERS; i++) {
        proc = proc_row(shm, 1 + i);
        proc->pid = 4000 + i;
        proc->start_time_us = AGO(3600 + i);
    }
    memset(&src, 0, sizeof src);
    src.ov = &ov;
    src.shm = shm;
    src.first_worker_slot = 1;
    src.now_us = NOW_US;
    src.user = slice_of_str("alice");
    src.database = slice_of_str("shop");
    src.balance_node = -1;
    fixture_load(settings);
}

void fixture_teardown(void)
{
    admin_result_fini(&res);
    conf_override_free(&ov);
    conf_gen_free(&gen);
    shm_free(&shm);
}

/* Takes row `i` of worker `ordinal`. */
struct client_row *fixture_put_client(int ordinal, int i, enum client_state state, const char *user)
{
    struct rows_header *rows = shm_get(shm, SHM_CLIENTS);
    struct rows_worker *range = rows_worker(rows, (uint32_t)ordinal);
    struct client_row *row = client_row_at(rows, (int64_t)range->first + i);

    if (range->high_water < (uint32_t)i + 1)
        range->high_water = (uint32_t)i + 1;
    range->served += 1;
    row->state = (uint8_t)state;
    row->node = ROWS_NO_NODE;
    row->balance_node = ROWS_NO_NODE;
    row->link_row = ROWS_NO_ROW;
    row->worker = (uint16_t)ordinal;
    row->id = 100 + range->first + (uint32_t)i;
    row->connected_us = AGO(100);
    row->state_since_us = AGO(10);
    row->names = (int32_t)range->first + i + 1;
    row_names_set(rows_names_at(rows, row->names - 1), slice_of_str(user), slice_of_str("shop"),
        slice_of_str("psql"));
    return row;
}

void fixture_say(struct client_row *row, const char *sql)
{
    struct rows_header *rows = shm_get(shm, SHM_CLIENTS);

    row->statement = ROW_STATEMENT_OWN;
    rows_set_statement(rows, row - client_row_at(rows, 0), slice_of_str(sql));
}

struct link_row *fixture_put_link(int ordinal, int i, enum link_state state)
{
    struct rows_header *rows = shm_get(shm, SHM_LINKS);
    struct rows_worker *range = rows_worker(rows, (uint32_t)ordinal);
    struct link_row *row = link_row_at(rows, (int64_t)range->first + i);

    if (range->high_water < (uint32_t)i + 1)
        range->high_water = (uint32_t)i + 1;
    row->state = (uint8_t)state;
    row->server_pid = 7000 + i;
    row->node = 2;
    row->worker = (uint16_t)ordinal;
    row->created_us = AGO(50);
    row->acquired_us = AGO(40);
    row->uses = 5;
    row->client_row = ROWS_NO_ROW;
    row->protocol = PROTO_3_0;
    row->names = (int32_t)range->first + i + 1;
    row_names_set(rows_names_at(rows, row->names - 1), slice_of_str("alice"), slice_of_str("shop"),
        slice_of("", 0));
    row->has_statement = true;
    rows_set_statement(rows, row->names - 1, slice_of_str("select 1"));
    return row;
}

/* Connects the two rows. */
void fixture_lend(struct link_row *link, struct client_row *client)
{
    struct rows_header *links = shm_get(shm, SHM_LINKS);
    struct rows_header *clients = shm_get(shm, SHM_CLIENTS);

    link->client_row = (int32_t)(client - client_row_at(clients, 0));
    client->link_row = (int32_t)(link - link_row_at(links, 0));
    client->node = link->node;
    client->server_pid = link->server_pid;
}

void fixture_run_report(enum admin_report report)
{
    admin_result_fini(&res);
    ck_assert_msg(admin_run_report(report, &src, &res, &err) == 0, "%s", err.msg);
}

/* All rows as text: cells joined by '|', rows ended by '\n'. */
const char *fixture_rows_text(void)
{
    static char text[65536];
    const struct admin_row *row;
    size_t used = 0;
    unsigned i;

    text[0] = '\0';
    for (row = res.rows; row != NULL; row = row->next) {
        for (i = 0; i < res.ncolumns; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s%c", (int)row->cell[i].n,
                row->cell[i].p, i + 1 < res.ncolumns ? '|' : '\n');
            ck_assert_ptr_nonnull(row->cell[i].p);
            ck_assert_uint_lt(used, sizeof text);
        }
    }
    return text;
}

void fixture_assert_rows(const char *expected)
{
    ck_assert_str_eq(fixture_rows_text(), expected);
}

/* Runs an SQL command. */
int fixture_run_sql(const char *sql)
{
    struct admin_cmd cmd;

    err_clear(&err);
    admin_result_fini(&res);
    ck_assert_msg(admin_recognise(slice_of_str(sql), &cmd), "%s", sql);
    return admin_run(&cmd, &src, &res, &err);
}

void fixture_some_node(void *ctx, int id, struct admin_node *out)
{
    out->status = id == 0 ? ADMIN_NODE_DOWN : ADMIN_NODE_UP;
    out->pg_status = id == 0 ? ADMIN_PG_DOWN : ADMIN_PG_UP;
    out->role = id == 0 ? ADMIN_ROLE_STANDBY : ADMIN_ROLE_PRIMARY;
    out->pg_role = id == 0 ? ADMIN_ROLE_UNKNOWN : ADMIN_ROLE_PRIMARY;
    out->delay_bytes = id == 0 ? 4096 : 0;
    out->delay_us = id == 0 ? 2500000 : 0;
    out->delay_is_time = *(bool *)ctx;
    if (id == 0) {
        memcpy(out->replication_state, "streaming", 10);
        memcpy(out->replication_sync_state, "async", 6);
    }
    out->status_changed_us = AGO(60);
    out->counts = (struct admin_counts){12, 10, 30, 0, 2, 31, 0, 1, 4};
    out->health =
        (struct admin_health){4, 2, 1, 1, 2, 2, 9, 2, 19, AGO(1), AGO(2), id == 0 ? AGO(3) : 0, 0};
}

/* Two tables; orders was read from the cache thrice and written by row, both were missed once. */
void fixture_some_cache(void)
{
    const struct conf *conf = conf_of(gen);
    struct conf with = *conf;
    struct shm_plan plan = {{0}};
    struct cache_hit hit = {.took_us = 1500, .ntables = 1};
    struct cache *c;
    uint16_t both[2];

    with.memory_cache_enabled = true;
    cache_plan_shm(&with, NSLOTS, &plan);
    shm_free(&shm);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    cache_init_shm(&with, NSLOTS, shm);
    src.shm = shm;
    c = cache_open(shm, 1);
    both[0] = cache_table_number(
        c, 1, slice_of_str("shop"), slice_of_str("public"), slice_of_str("orders"));
    both[1] = cache_table_number(
        c, 2, slice_of_str("shop"), slice_of_str("public"), slice_of_str("items"));
    hit.table[0] = both[0];
    cache_note_hit(c, &hit, 7, slice_of_str("select * from orders where id = 1"));
    cache_note_hit(c, &hit, 7, slice_of_str("select * from orders where id = 2"));
    cache_note_hit(c, &hit, 8, slice_of_str("select count(*) from orders"));
    cache_note_miss(c, both, 2);
    cache_note_fill(c, both, 2, CACHE_FILL_MOVED);
    cache_note_fill(c, both, 2, CACHE_FILL_LARGE);
    cache_note_fill(c, both, 1, CACHE_FILL_OK);
    cache_note_write(c, both[0], true, false, 0);
    cache_close(&c);
}

bool fixture_delete_from_cache(
    void *ctx, struct slice sql, struct slice user, struct slice database)
{
    return slice_eq_str(sql, "select 'x';") && slice_eq_str(user, "alice") &&
           slice_eq_str(database, "shop");
}
