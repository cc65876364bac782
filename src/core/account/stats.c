/* SPDX-License-Identifier: PostgreSQL
 * stats.c: what is counted of a client, and the clocks of its present request. Runs in:
 * workers, per statement: no system call, nothing written that another worker writes. */
#include "config.h"

#include "backend/backend.h"
#include "backend/link.h"
#include "backend/pool.h"
#include "base/hot.h"
#include "ipc/nodestats.h"

#include "account/stats.h"

/* Rows are made for databases to which somebody logged in, not for names that anybody may send:
 * what happened during the login is kept until then. */
void stats_on_login(struct client_stats *s, struct dbstats_row *row, bool was_lent)
{
    if (s->row == NULL)
        s->row = row;
    dbstats_add(&s->row->logins, 1);
    if (was_lent || s->wait_us < 0) {
        dbstats_add(&s->row->assignments, 1);
        dbstats_waited(s->row, -s->wait_us);
    }
    s->wait_us = 0;
}

HOT void stats_on_queries(struct client_stats *s, unsigned n, int64_t now_us)
{
    if (s->taken_us == 0)
        s->taken_us = now_us;
    if (s->row != NULL)
        dbstats_add(&s->row->queries, n);
}

HOT void stats_on_sent(struct client_stats *s, int64_t now_us)
{
    stats_on_wait_end(s, now_us);
    if (s->sent_us != 0)
        return;
    s->sent_us = now_us;
    if (s->taken_us == 0)
        s->taken_us = now_us;
    if (s->tx_us == 0)
        s->tx_us = now_us;
}

HOT int64_t stats_on_quiet(struct client_stats *s, int64_t now_us, struct link *target)
{
    const struct backend *be;
    struct histogram_value took;
    int64_t took_us;
    bool is_alone; /* its transaction took as long as it */

    s->taken_us = 0;
    stats_on_wait_end(s, now_us);
    if (s->row != NULL)
        s->wait_us = 0;
    if (s->sent_us == 0)
        return -1;
    took_us = now_us - s->sent_us;
    is_alone = s->tx_us == s->sent_us;
    s->sent_us = 0;
    if (s->row == NULL || target == NULL) {
        s->tx_us = 0;
        return -1;
    }
    be = target->pool->be;
    took = histogram_value_of(took_us);
    took_us = took.us;
    dbstats_look(s->row, now_us);
    dbstats_answered(s->row, took);
    nodestats_count(be->shm, be->ordinal, target->pool->cluster_node, took);
    if (target->ntransactions > 0)
        dbstats_add(&s->row->transactions, target->ntransactions);
    target->ntransactions = 0;
    if (target->tx_status != 'I' || target->ready_as != 0)
        return took_us;
    if (!is_alone)
        took = histogram_value_of(now_us - s->tx_us);
    dbstats_ended(s->row, took);
    nodestats_ended(be->shm, be->ordinal, target->pool->cluster_node, took);
    s->tx_us = 0;
    return took_us;
}

void stats_on_virtual_end(struct client_stats *s, int64_t now_us)
{
    if (s->row != NULL && s->tx_us != 0) {
        dbstats_add(&s->row->transactions, 1);
        dbstats_ended(s->row, histogram_value_of(now_us - s->tx_us));
    }
    s->tx_us = 0;
}

void stats_on_wait_begin(struct client_stats *s, int64_t now_us)
{
    if (s->wait_us <= 0)
        s->wait_us = now_us;
}

HOT void stats_on_wait_end(struct client_stats *s, int64_t now_us)
{
    int64_t waited_us;

    if (s->wait_us <= 0)
        return;
    waited_us = now_us - s->wait_us;
    s->wait_us = s->row == NULL || s->sent_us == 0 ? -waited_us : 0;
    if (s->row != NULL)
        dbstats_waited(s->row, waited_us);
}

HOT void stats_on_link(struct client_stats *s, int64_t now_us)
{
    if (s->row != NULL)
        dbstats_add(&s->row->assignments, 1);
    if (s->row != NULL && s->wait_us <= 0)
        dbstats_waited(s->row, 0);
    else
        stats_on_wait_end(s, now_us);
}

void stats_on_pins(struct client_stats *s, unsigned added)
{
    int i;

    for (i = 0; added != 0 && s->row != NULL && i < PIN_REASON_COUNT; i++)
        if ((added & ROWS_PIN(i)) != 0)
            dbstats_add(&s->row->npins[i], 1);
}
