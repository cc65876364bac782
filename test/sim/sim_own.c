/* SPDX-License-Identifier: PostgreSQL
 * sim_own.c: what pgpool asks a server by itself: what ties a session, what names mean, how far the
 * log has come. */
#include "config.h"

#include "sim_pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "route/route.h"
#include "wire/writer.h"

#define MAX_COLUMNS 4

static bool begins(struct slice sql, const char *head)
{
    size_t n = strlen(head);

    return sql.n >= n && memcmp(sql.p, head, n) == 0;
}

int64_t pg_lsn(int64_t position)
{
    return 256 * position + 100; /* never behind the header of a page */
}

static void put_numbers(struct buf *out, const int64_t *number, int n)
{
    char text[MAX_COLUMNS][24];
    struct slice v[MAX_COLUMNS];
    int i;

    for (i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "%lld", (long long)number[i]);
        v[i] = slice_of_str(text[i]);
    }
    wire_put_data_row(out, v, (unsigned)n);
}

static void put_answer(struct buf *out, const int64_t *number, int n)
{
    pg_put_columns(out, n);
    put_numbers(out, number, n);
    wire_put_command_complete(out, "SELECT 1");
}

/* ---- names ---- */

static int64_t bits_of_function(struct slice name)
{
    static const char *const harmless[] = {"fail", "slow"};
    size_t i;

    for (i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        if (slice_eq_str(name, harmless[i]))
            return 0;
    return slice_eq_str(name, "held_locks") ? ROUTE_FUNC_VOLATILE : ROUTE_FUNC_MISSING;
}

static int64_t bits_of(int kind, struct slice name)
{
    switch (kind) {
    case ROUTE_Q_FUNCTION:
        return bits_of_function(name);
    case ROUTE_Q_RELATION:
        return slice_eq_str(name, "three") || slice_eq_str(name, "t") ? 0 : ROUTE_REL_MISSING;
    case ROUTE_Q_OID:
        return slice_eq_str(name, "three") ? 16401 : slice_eq_str(name, "t") ? 16402 : 0;
    default:
        return 0;
    }
}

/* $q0$text$q0$ at or behind *p. */
static struct slice take_literal(const char **p, const char *end)
{
    const char *from = memmem(*p, (size_t)(end - *p), "$q0$", 4);
    const char *to = from == NULL ? NULL : memmem(from + 4, (size_t)(end - from) - 4, "$q0$", 4);

    if (to == NULL) {
        *p = end;
        return slice_of(end, 0);
    }
    *p = to + 4;
    return slice_of(from + 4, (size_t)(to - from) - 4);
}

/* Each question is "(number, kind, CAST($q0$schema$q0$ ...), CAST($q0$name$q0$ ...), number)". */
static void run_catalogue(struct slice sql, struct buf *out)
{
    const char *end = sql.p + sql.n;
    const char *p = memmem(sql.p, sql.n, "(VALUES (", 9);
    const char *stop = p == NULL ? NULL : memmem(p, (size_t)(end - p), "rel(i, oid)", 11);
    int64_t row[2] = {0, 0};
    struct slice name;
    char tag[24];
    int kind;

    pg_put_columns(out, 2);
    for (p = p == NULL ? end : p + 9; stop != NULL && p < stop; row[0]++) {
        p = memchr(p, ',', (size_t)(stop - p));
        kind = p == NULL ? 0 : atoi(p + 1);
        if (p == NULL)
            break;
        (void)take_literal(&p, stop);
        name = take_literal(&p, stop);
        row[1] = bits_of(kind, name);
        put_numbers(out, row, 2);
        p = memmem(p, (size_t)(stop - p), "), (", 4);
        p = p == NULL ? stop : p + 4;
    }
    snprintf(tag, sizeof tag, "SELECT %d", (int)row[0] + 1);
    wire_put_command_complete(out, tag);
}

/* ---- positions ---- */

static bool run_insert_lsn(struct pg_session *s, struct buf *out)
{
    const int64_t row[2] = {pg_lsn(s->place->position), 16777216};

    if (s->place->is_standby) {
        pg_error(s, out, "55000", "recovery is in progress");
        return false;
    }
    put_answer(out, row, 2);
    return true;
}

static void run_replayed_lsn(struct pg_session *s, struct buf *out)
{
    const int64_t row[1] = {pg_lsn(s->place->position)};

    put_answer(out, row, 1);
}

bool pg_run_own(struct pg_session *s, struct slice sql, struct buf *out, bool *ok)
{
    const int64_t pins[4] = {s->nlocks, 0, 0, 0};

    *ok = true;
    if (s->place == NULL)
        return false;
    if (begins(sql, "SELECT (SELECT count(*) FROM pg_catalog.pg_locks"))
        put_answer(out, pins, 4);
    else if (begins(sql, "WITH RECURSIVE q(i, kind"))
        run_catalogue(sql, out);
    else if (begins(sql, "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert"))
        *ok = run_insert_lsn(s, out);
    else if (begins(sql, "WITH RECURSIVE w(n, at)"))
        run_replayed_lsn(s, out);
    else
        return false;
    return true;
}
