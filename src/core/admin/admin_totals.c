/* SPDX-License-Identifier: PostgreSQL
 * admin_totals.c: one walk over all clients and links, and what they add up to.
 * Runs in: worker, control, web. A row is copied and then looked at, so each is counted once, as it
 * was at one moment; the rows are not of the same moment. */
#include "config.h"

#include "admin/totals.h"

#include <string.h>

#include "admin_int.h"
#include "base/hash.h"

#define PLACES (4 * ADMIN_TOTALS_POOLS) /* a power of two, so that few meet */

/* Where the pools are found by their names. */
struct finder {
    struct admin_totals *t;
    struct admin_pool_total nobody; /* clients that have not said who they are */
    int16_t place[PLACES];          /* 1 + index; 0: free */
};

static bool is_called(const char field[ROWS_NAME_BYTES], struct slice name)
{
    return slice_eq(admin_field_text(field, ROWS_NAME_BYTES), name);
}

static struct admin_pool_total *add_pool(
    struct finder *f, size_t at, struct slice user, struct slice database)
{
    struct admin_totals *t = f->t;
    struct admin_pool_total *p;

    if (t->npools >= ADMIN_TOTALS_POOLS) {
        p = &t->pool[ADMIN_TOTALS_POOLS];
        t->npools = ADMIN_TOTALS_POOLS + 1;
        memcpy(p->user, ADMIN_TOTALS_OTHER, sizeof ADMIN_TOTALS_OTHER);
        memcpy(p->database, ADMIN_TOTALS_OTHER, sizeof ADMIN_TOTALS_OTHER);
        return p;
    }
    p = &t->pool[t->npools++];
    f->place[at] = (int16_t)t->npools;
    if (user.n > 0)
        memcpy(p->user, user.p, user.n);
    if (database.n > 0)
        memcpy(p->database, database.p, database.n);
    return p;
}

static struct admin_pool_total *pool_of(struct finder *f, const struct row_names *names)
{
    struct slice user = row_user(names);
    struct slice database = row_database(names);
    size_t at = hash_bytes(database.p, database.n, hash_bytes(user.p, user.n, 0)) % PLACES;
    struct admin_pool_total *p;

    if (user.n == 0 && database.n == 0)
        return &f->nobody;
    for (; f->place[at] != 0; at = (at + 1) % PLACES) {
        p = &f->t->pool[f->place[at] - 1];
        if (is_called(p->user, user) && is_called(p->database, database))
            return p;
    }
    return add_pool(f, at, user, database);
}

static void longest(int64_t *most_us, int64_t us)
{
    if (us > *most_us)
        *most_us = us;
}

static void count_client(
    struct finder *f, const struct client_row *row, const struct row_words *words, int64_t now_us)
{
    struct admin_pool_total *p = pool_of(f, &words->names);
    struct admin_totals *t = f->t;
    int i;

    if (row->state >= CLIENT_STATE_COUNT)
        return;
    t->clients[row->state]++;
    p->clients[row->state]++;
    t->tls += row->tls_version != 0;
    for (i = 1; row->pins != 0 && i < PIN_REASON_COUNT; i++)
        t->pinned[i] += (row->pins & ROWS_PIN(i)) != 0;
    if (row->state != CLIENT_STATE_WAITING)
        return;
    if (row->wait_reason < WAIT_REASON_COUNT)
        t->waiting[row->wait_reason]++;
    longest(&t->longest_wait_us, now_us - row->state_since_us);
    longest(&p->longest_wait_us, now_us - row->state_since_us);
}

static void count_link(struct finder *f, const struct link_row *row, const struct row_words *words)
{
    struct admin_totals *t = f->t;

    if (row->state >= LINK_STATE_COUNT)
        return;
    pool_of(f, &words->names)->links[row->state]++;
    if (row->node < 0 || row->node >= VIEW_MAX_NODES)
        return;
    t->node_links[row->node][row->state]++;
    t->node_links_tls[row->node] += row->is_tls;
}

void admin_totals(const struct admin_sources *src, struct admin_totals *out)
{
    struct finder f = {.t = out};
    struct client_row client;
    struct row_words words;
    struct link_row link;
    struct admin_walk w;

    memset(out, 0, sizeof *out);
    admin_walk_start(&w, src, SHM_CLIENTS);
    while (admin_walk_client(&w, &client, &words))
        count_client(&f, &client, &words, src->now_us);
    admin_walk_start(&w, src, SHM_LINKS);
    while (admin_walk_link(&w, &link, &words) >= 0)
        count_link(&f, &link, &words);
}
