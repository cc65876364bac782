/* SPDX-License-Identifier: PostgreSQL
 * web_wait.c: what was ordered in the console and takes its time: a PAUSE until no server
 * connection is left, a DRAIN until no client is. That it is complete, or was ended before, is put
 * among the events with who ordered it. Runs in: web. The order holds whatever becomes of this
 * process; only the event would be missing. */
#include "config.h"

#include "web_wait.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ipc/orders.h"

#define WAITS_MAX 16 /* of more the end is not told */
#define LOOK_MS   200

struct wait {
    unsigned flag; /* 0: free */
    char database[ROWS_NAME_BYTES];
    char who[VIEW_WHO_BYTES];
};

struct web_waits {
    struct web *web;
    struct timer timer;
    struct wait wait[WAITS_MAX];
};

static void tell(struct web_waits *ws, const struct wait *w, bool is_complete)
{
    const char *name = w->flag == ORDER_PAUSE ? "pause" : "drain";
    char text[VIEW_EVENT_TEXT_BYTES];
    struct err ignored = {0};

    snprintf(text, sizeof text, "%s of %s%s%s %s", name,
        w->database[0] == '\0' ? "all databases" : "database \"", w->database,
        w->database[0] == '\0' ? "" : "\"",
        !is_complete             ? "was ended before it was complete"
        : w->flag == ORDER_PAUSE ? "is complete: no server connection is left"
                                 : "is complete: no client is left");
    (void)web_action_note(ws->web, name, text, w->who, &ignored);
}

static void on_time(struct timer *t)
{
    struct web_waits *ws = LIST_ENTRY(t, struct web_waits, timer);
    const struct shm *shm = ws->web->role.env->shm;
    bool is_left = false;
    int i;

    for (i = 0; i < WAITS_MAX; i++) {
        struct wait *w = &ws->wait[i];
        struct slice database = slice_of_str(w->database);
        bool holds = w->flag != 0 && (orders_own_flags(shm, database) & w->flag) != 0;

        if (w->flag == 0)
            continue;
        if (holds && !orders_is_complete(shm, database, w->flag)) {
            is_left = true;
            continue;
        }
        tell(ws, w, holds);
        w->flag = 0;
    }
    if (is_left)
        timer_start(&ws->web->role.loop, t, LOOK_MS);
}

struct web_waits *web_waits_new(struct web *w)
{
    struct web_waits *ws = mem_alloc_zero(sizeof *ws);

    ws->web = w;
    timer_init(&ws->timer, on_time);
    return ws;
}

void web_waits_free(struct web_waits **wp)
{
    if (*wp == NULL)
        return;
    timer_stop(&(*wp)->web->role.loop, &(*wp)->timer);
    mem_free(*wp);
    *wp = NULL;
}

void web_waits_add(struct web_waits *ws, struct slice database, unsigned flag, const char *who)
{
    int i;

    for (i = 0; i < WAITS_MAX && ws->wait[i].flag != 0; i++)
        ;
    if (i == WAITS_MAX)
        return;
    ws->wait[i].flag = flag;
    rows_set_text(ws->wait[i].database, sizeof ws->wait[i].database, database.p, database.n);
    snprintf(ws->wait[i].who, sizeof ws->wait[i].who, "%s", who);
    timer_start(&ws->web->role.loop, &ws->timer, LOOK_MS);
}
