/* SPDX-License-Identifier: PostgreSQL
 * top_summary.c: one line about the whole: what is wrong first, then servers and clients in
 * numbers. Runs in: pgpool-top. */
#include "config.h"

#include "bin/pgpool_top/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many rows have `value` in the column. */
static int count(const PGresult *rows, const char *column, const char *value)
{
    int at = PQfnumber(rows, column);
    int n = 0;
    int i;

    for (i = 0; at != -1 && i < PQntuples(rows); i++)
        n += strcmp(PQgetvalue(rows, i, at), value) == 0;
    return n;
}

static int count_usable(const PGresult *nodes)
{
    return count(nodes, "status", "up") + count(nodes, "status", "waiting");
}

static int count_primaries(const PGresult *nodes)
{
    int status = PQfnumber(nodes, "status");
    int role = PQfnumber(nodes, "role");
    int n = 0;
    int i;

    for (i = 0; status != -1 && role != -1 && i < PQntuples(nodes); i++) {
        if (strcmp(PQgetvalue(nodes, i, role), "primary") == 0 &&
            (strcmp(PQgetvalue(nodes, i, status), "up") == 0 ||
                strcmp(PQgetvalue(nodes, i, status), "waiting") == 0))
            n++;
    }
    return n;
}

static const char *verdict(const PGresult *nodes, int waiting)
{
    if (count_usable(nodes) == 0)
        return "NO SERVER IS UP";
    /* Where nobody may ask for roles, one server takes all. */
    if (count_primaries(nodes) == 0 && count(nodes, "pg_role", "standby") > 0)
        return "NO PRIMARY: writes wait";
    if (count_usable(nodes) < PQntuples(nodes))
        return "A SERVER IS DOWN";
    return waiting > 0 ? "clients wait" : "all is well";
}

void top_summary(struct top_link *l, char *out, size_t size)
{
    PGresult *nodes = top_link_ask(l, "SHOW POOL_NODES");
    PGresult *clients = nodes == NULL ? NULL : top_link_ask(l, "SHOW POOL_CLIENTS");
    int waiting;

    if (clients == NULL) {
        snprintf(out, size, "pgpool: %s", l->error);
    } else {
        waiting = count(clients, "state", "waiting");
        snprintf(out, size, "%s | servers %d of %d up | clients %d: %d active, %d idle, %d waiting",
            verdict(nodes, waiting), count_usable(nodes), PQntuples(nodes), PQntuples(clients),
            count(clients, "state", "active"), count(clients, "state", "idle"), waiting);
    }
    PQclear(nodes);
    PQclear(clients);
}
