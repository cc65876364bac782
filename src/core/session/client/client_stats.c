/* SPDX-License-Identifier: PostgreSQL
 * client_stats.c: what is counted of a client, and the clocks of its present request. Runs in:
 * workers, per statement: no system call, nothing written that another worker writes. */
#include "config.h"

#include "base/hot.h"
#include "ipc/nodestats.h"

#include "client_int.h"

/* Rows are made for databases to which somebody logged in, not for names that anybody may send:
 * what happened during the login is kept until then. */
void client_stats_on_login(struct client *c)
{
    struct client_stats *s = &c->stats;

    if (s->row == NULL)
        s->row = dbstats_row_of(c->ss->env->shm, c->ss->env->ordinal, pool_database(c->pool));
    dbstats_add(&s->row->logins, 1);
    if (c->link != NULL || s->wait_us < 0) {
        dbstats_add(&s->row->assignments, 1);
        dbstats_waited(s->row, -s->wait_us);
    }
    s->wait_us = 0;
}

HOT void client_stats_on_queries(struct client *c, unsigned n)
{
    struct client_stats *s = &c->stats;

    if (s->taken_us == 0)
        s->taken_us = loop_now_us(c->ss->loop);
    if (s->row != NULL)
        dbstats_add(&s->row->queries, n);
    if (c->ss->stmts != NULL)
        client_stmts_calls(c, n);
}

HOT void client_stats_on_sent(struct client *c)
{
    struct client_stats *s = &c->stats;

    client_stats_on_wait_end(c);
    if (s->sent_us != 0)
        return;
    s->sent_us = loop_now_us(c->ss->loop);
    if (s->taken_us == 0)
        s->taken_us = s->sent_us;
    if (s->tx_us == 0)
        s->tx_us = s->sent_us;
}

HOT void client_stats_on_quiet(struct client *c)
{
    struct client_stats *s = &c->stats;
    int64_t now_us;
    struct histogram_value took;
    bool is_alone; /* its transaction took as long as it */

    s->taken_us = 0;
    client_stats_on_wait_end(c);
    if (s->row != NULL)
        s->wait_us = 0;
    if (s->sent_us == 0) {
        client_stmts_end(c, -1);
        return;
    }
    now_us = loop_now_us(c->ss->loop);
    took = histogram_value_of(now_us - s->sent_us);
    is_alone = s->tx_us == s->sent_us;
    s->sent_us = 0;
    if (s->row == NULL || c->target == NULL) {
        s->tx_us = 0;
        client_stmts_end(c, -1);
        return;
    }
    if (c->ss->stmts != NULL)
        client_stmts_end(c, took.us);
    dbstats_look(s->row, now_us);
    dbstats_answered(s->row, took);
    nodestats_count(c->ss->env->shm, c->ss->env->ordinal, c->target->pool->cluster_node, took);
    if (c->target->ntransactions > 0)
        dbstats_add(&s->row->transactions, c->target->ntransactions);
    c->target->ntransactions = 0;
    if (c->target->tx_status != 'I' || c->target->ready_as != 0)
        return;
    if (!is_alone)
        took = histogram_value_of(now_us - s->tx_us);
    dbstats_ended(s->row, took);
    nodestats_ended(c->ss->env->shm, c->ss->env->ordinal, c->target->pool->cluster_node, took);
    s->tx_us = 0;
}

void client_stats_on_virtual_end(struct client *c)
{
    struct client_stats *s = &c->stats;

    if (s->row != NULL && s->tx_us != 0) {
        dbstats_add(&s->row->transactions, 1);
        dbstats_ended(s->row, histogram_value_of(loop_now_us(c->ss->loop) - s->tx_us));
    }
    s->tx_us = 0;
}

void client_stats_on_wait_begin(struct client *c)
{
    if (c->stats.wait_us <= 0)
        c->stats.wait_us = loop_now_us(c->ss->loop);
}

HOT void client_stats_on_wait_end(struct client *c)
{
    struct client_stats *s = &c->stats;

    int64_t waited_us;

    if (s->wait_us <= 0)
        return;
    waited_us = loop_now_us(c->ss->loop) - s->wait_us;
    s->wait_us = s->row == NULL || s->sent_us == 0 ? -waited_us : 0;
    if (s->row != NULL)
        dbstats_waited(s->row, waited_us);
}

HOT void client_stats_on_link(struct client *c)
{
    struct client_stats *s = &c->stats;

    if (s->row != NULL)
        dbstats_add(&s->row->assignments, 1);
    if (s->row != NULL && s->wait_us <= 0)
        dbstats_waited(s->row, 0);
    else
        client_stats_on_wait_end(c);
}
