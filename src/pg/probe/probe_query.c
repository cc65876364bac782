/* SPDX-License-Identifier: PostgreSQL
 * probe_query.c: the one question a probe asks, and its answer taken apart.
 * Runs in: monitor. Pure. The question is read-only, holds for PostgreSQL 10 and newer, needs no
 * right (without pg_monitor the details of replication come back empty), and names the schema of
 * everything. One row per receiver that this server feeds; a server that feeds none gives one row
 * all the same. */
#include "config.h"

#include "probe_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* On a primary the timeline is that of the WAL being written: the control file still tells the old
 * one until the first checkpoint after a promotion. CASE keeps functions away from servers on which
 * they fail; recovery can only end in between, which harms none of them. */
const char probe_query_text[] =
    "SELECT f.*, r.application_name, r.client_addr::pg_catalog.text, r.state, r.sync_state,"
    " r.replay_lsn, (EXTRACT(EPOCH FROM r.replay_lag) * 1000000)::pg_catalog.int8"
    " FROM (SELECT s.in_recovery,"
    " pg_catalog.current_setting('server_version_num'),"
    " pg_catalog.current_setting('max_connections'),"
    " pg_catalog.current_setting('superuser_reserved_connections'),"
    " pg_catalog.current_setting('reserved_connections', true),"
    " (SELECT c.system_identifier FROM pg_catalog.pg_control_system() c),"
    " CASE WHEN s.in_recovery THEN NULL"
    " ELSE pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()) END,"
    " (SELECT GREATEST(c.timeline_id, d.min_recovery_end_timeline)"
    " FROM pg_catalog.pg_control_checkpoint() c, pg_catalog.pg_control_recovery() d),"
    " w.received_tli,"
    " CASE WHEN s.in_recovery THEN pg_catalog.pg_last_wal_receive_lsn()"
    " ELSE pg_catalog.pg_current_wal_insert_lsn() END,"
    " CASE WHEN s.in_recovery THEN pg_catalog.pg_last_wal_replay_lsn()"
    " ELSE pg_catalog.pg_current_wal_lsn() END,"
    " (EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()"
    " - pg_catalog.pg_last_xact_replay_timestamp()) * 1000000)::pg_catalog.int8,"
    " w.pid, w.status, w.conninfo,"
    " (EXTRACT(EPOCH FROM pg_catalog.clock_timestamp() - w.last_msg_receipt_time)"
    " * 1000000)::pg_catalog.int8,"
    " pg_catalog.current_setting('wal_receiver_timeout'),"
    " (EXTRACT(EPOCH FROM pg_catalog.pg_conf_load_time()) * 1000000)::pg_catalog.int8"
    " FROM (SELECT pg_catalog.pg_is_in_recovery() AS in_recovery) s"
    " LEFT JOIN pg_catalog.pg_stat_wal_receiver w ON true) f"
    " LEFT JOIN pg_catalog.pg_stat_replication r ON true";

enum column {
    COL_IN_RECOVERY,
    COL_VERSION,
    COL_MAX_CONNECTIONS,
    COL_RESERVED_SUPER,
    COL_RESERVED,
    COL_SYSTEM_ID,
    COL_WAL_FILE,
    COL_CHECKPOINT_TLI,
    COL_RECEIVED_TLI,
    COL_RECEIVED,
    COL_REPLAYED,
    COL_REPLAY_AGE,
    COL_RECEIVER_PID,
    COL_RECEIVER_STATUS,
    COL_RECEIVER_CONNINFO,
    COL_RECEIVER_SILENCE,
    COL_RECEIVER_TIMEOUT,
    COL_LOADED,
    COL_SENDER_NAME,
    COL_SENDER_ADDR,
    COL_SENDER_STATE,
    COL_SENDER_SYNC,
    COL_SENDER_REPLAYED,
    COL_SENDER_LAG,
    COL_COUNT
};

static int64_t number_at(const PGresult *res, int row, int col, int64_t otherwise)
{
    if (PQgetisnull(res, row, col))
        return otherwise;
    return strtoll(PQgetvalue(res, row, col), NULL, 10);
}

/* "16/B374D848" */
static uint64_t lsn_at(const PGresult *res, int row, int col)
{
    char *end;
    uint64_t high;

    if (PQgetisnull(res, row, col))
        return 0;
    high = strtoull(PQgetvalue(res, row, col), &end, 16);
    return *end == '/' ? high << 32 | strtoull(end + 1, NULL, 16) : 0;
}

static void copy_text(const char *from, char *to, size_t room)
{
    size_t n = strlen(from);

    if (n >= room)
        n = room - 1;
    memcpy(to, from, n);
    to[n] = '\0';
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t timeline_of(const PGresult *res, bool in_recovery)
{
    char first[9] = "";

    if (!in_recovery) {
        copy_text(PQgetvalue(res, 0, COL_WAL_FILE), first, sizeof first);
        return (uint32_t)strtoul(first, NULL, 16);
    }
    return max_u32((uint32_t)number_at(res, 0, COL_RECEIVED_TLI, 0),
        (uint32_t)number_at(res, 0, COL_CHECKPOINT_TLI, 0));
}

/* A time as SHOW has it, microseconds; 0 when it is not understood. */
static int64_t duration_of(const char *text)
{
    static const struct {
        const char *name;
        int64_t us;
    } unit[] = {{"ms", 1000}, {"s", 1000000}, {"min", INT64_C(60000000)},
        {"h", INT64_C(3600000000)}, {"d", INT64_C(86400000000)}};
    char *end;
    long long n = strtoll(text, &end, 10);
    size_t i;

    for (i = 0; n > 0 && n < 1000000000 && i < sizeof unit / sizeof unit[0]; i++)
        if (strcmp(end, unit[i].name) == 0)
            return (int64_t)n * unit[i].us;
    return 0;
}

/* The name under which the WAL receiver shows at its primary. libpq's own rule: application_name,
 * else fallback_application_name. */
static void read_receiver_name(const char *conninfo, struct probe_facts *f)
{
    PQconninfoOption *opts = PQconninfoParse(conninfo, NULL);
    const PQconninfoOption *o;
    const char *name = NULL;

    for (o = opts; o != NULL && o->keyword != NULL; o++) {
        if (o->val == NULL || o->val[0] == '\0')
            continue;
        if (strcmp(o->keyword, "application_name") == 0)
            name = o->val;
        else if (strcmp(o->keyword, "fallback_application_name") == 0 && name == NULL)
            name = o->val;
    }
    if (name != NULL)
        copy_text(name, f->receiver_name, sizeof f->receiver_name);
    PQconninfoFree(opts);
}

static void read_sender(const PGresult *res, int row, struct probe_sender *s)
{
    copy_text(PQgetvalue(res, row, COL_SENDER_NAME), s->name, sizeof s->name);
    copy_text(PQgetvalue(res, row, COL_SENDER_ADDR), s->addr, sizeof s->addr);
    copy_text(PQgetvalue(res, row, COL_SENDER_STATE), s->state, sizeof s->state);
    copy_text(PQgetvalue(res, row, COL_SENDER_SYNC), s->sync_state, sizeof s->sync_state);
    s->replayed_lsn = lsn_at(res, row, COL_SENDER_REPLAYED);
    s->replay_lag_us = number_at(res, row, COL_SENDER_LAG, -1);
}

static void read_senders(const PGresult *res, struct probe_facts *f)
{
    int n = PQntuples(res);
    int i;

    for (i = 0; i < n && f->nsenders < PROBE_MAX_SENDERS; i++)
        if (!PQgetisnull(res, i, COL_SENDER_NAME))
            read_sender(res, i, &f->sender[f->nsenders++]);
}

int probe_query_read(const PGresult *res, struct probe_facts *f)
{
    const char *status;

    if (PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) < 1 || PQnfields(res) != COL_COUNT)
        return -1;
    memset(f, 0, sizeof *f);
    f->in_recovery = PQgetvalue(res, 0, COL_IN_RECOVERY)[0] == 't';
    f->server_version = (uint32_t)number_at(res, 0, COL_VERSION, 0);
    f->max_connections = (int)number_at(res, 0, COL_MAX_CONNECTIONS, 0);
    f->reserved =
        (int)(number_at(res, 0, COL_RESERVED_SUPER, 0) + number_at(res, 0, COL_RESERVED, 0));
    f->system_id = (uint64_t)number_at(res, 0, COL_SYSTEM_ID, 0);
    f->timeline = timeline_of(res, f->in_recovery);
    f->replayed_lsn = lsn_at(res, 0, COL_REPLAYED);
    f->received_lsn = lsn_at(res, 0, COL_RECEIVED);
    if (f->received_lsn < f->replayed_lsn)
        f->received_lsn = f->replayed_lsn; /* restored from an archive */
    f->replay_age_us = number_at(res, 0, COL_REPLAY_AGE, -1);
    /* Without the right to look, the row is there but for its pid empty. */
    status = PQgetvalue(res, 0, COL_RECEIVER_STATUS);
    f->is_receiving = !PQgetisnull(res, 0, COL_RECEIVER_PID) &&
                      (status[0] == '\0' || strcmp(status, "streaming") == 0);
    if (!PQgetisnull(res, 0, COL_RECEIVER_CONNINFO))
        read_receiver_name(PQgetvalue(res, 0, COL_RECEIVER_CONNINFO), f);
    f->silence_us = number_at(res, 0, COL_RECEIVER_SILENCE, -1);
    f->silence_limit_us = duration_of(PQgetvalue(res, 0, COL_RECEIVER_TIMEOUT));
    f->loaded_us = number_at(res, 0, COL_LOADED, 0);
    read_senders(res, f);
    return 0;
}
