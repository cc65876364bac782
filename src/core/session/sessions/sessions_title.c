/* SPDX-License-Identifier: PostgreSQL
 * sessions_title.c: the title of a worker: who its client is when it has one, as pgpool-II's
 * processes have it, and how many they are when it has several. Runs in: workers. What the client
 * does is looked at by the clock: a statement must not pay for its name in ps. */
#include "config.h"

#include "account/client_title.h"
#include "ipc/proc.h"

#include "client_int.h"

#define LOOK_MS 500
/* Where clients come and go by the thousand, a title for each would be work. */
#define REST_MS 100

static void set(struct sessions *ss)
{
    struct client *c;
    char title[TITLE_BYTES];

    ss->titled_us = loop_now_us(ss->loop);
    if (ss->nclients != 1) {
        timer_stop(ss->loop, &ss->title_timer);
        if (ss->nclients == 0)
            proc_set_title("wait for connection request");
        else
            proc_set_title("worker %d: %u clients", ss->env->ordinal, ss->nclients);
        return;
    }
    c = LIST_ENTRY(list_first(&ss->clients), struct client, node);
    if (c->row == NULL)
        proc_set_title("worker %d: 1 client", ss->env->ordinal);
    else
        proc_set_title(
            "%s", title_of_client(title, c->row, client_row_names(c), client_row_statement(c)));
    timer_start(ss->loop, &ss->title_timer, LOOK_MS);
}

void sessions_title_set(struct sessions *ss)
{
    int64_t old_ms = (loop_now_us(ss->loop) - ss->titled_us) / 1000;

    if (old_ms >= REST_MS)
        set(ss);
    else
        timer_start(ss->loop, &ss->title_timer, REST_MS - old_ms);
}

static void look(struct timer *t)
{
    set(LIST_ENTRY(t, struct sessions, title_timer));
}

void sessions_title_init(struct sessions *ss)
{
    timer_init(&ss->title_timer, look);
}
