/* SPDX-License-Identifier: PostgreSQL
 * console.c: how sessions know the console, and what of a client is given up behind each message.
 * Runs in: workers. Above all that it names. */
#include "config.h"

#include "base/mem.h"
#include "console/console.h"
#include "session/session.h"

#include "console_int.h"

/* Of those that have something here each message is looked at: nobody is to be one without need. */
static enum local_verdict settle(struct client *c, enum local_verdict v)
{
    struct console *console = client_console(c);

    if (console != NULL && console->nobjects == 0 && console->wait == NULL &&
        console->kill == NULL && console->right == CONSOLE_NOT_IN) {
        mem_free(console);
        console = NULL;
    }
    client_set_console(c, console);
    return v;
}

static enum local_verdict on_query(struct client *c, struct slice sql)
{
    return settle(c, console_query(c, sql));
}

static enum local_verdict on_message(struct client *c, char type, struct slice body)
{
    return settle(c, console_message(c, type, body));
}

/* A portal ends with its transaction. */
static void on_synced(struct client *c)
{
    if (client_tx_status(c) == 'I')
        objects_forget_portals(c);
    (void)settle(c, LOCAL_DONE);
}

static void on_forget(struct client *c)
{
    kill_free(client_console(c));
    (void)settle(c, LOCAL_DONE);
}

static bool waits(const struct client *c)
{
    return client_console(c)->wait != NULL;
}

static void gone(struct client *c)
{
    struct console *console = client_console(c);

    orders_wait_end(c);
    objects_forget_all(c);
    kill_free(console);
    alone_leave(c);
    mem_free(console);
    client_set_console(c, NULL);
}

static const struct console_ops ops = {
    .query = on_query,
    .message = on_message,
    .synced = on_synced,
    .waits = waits,
    .cancel = orders_wait_cancel,
    .leave = orders_wait_end,
    .free = gone,
    .question = kill_question,
    .row = kill_row,
    .refused = kill_refused,
    .judged = kill_judged,
    .forget = on_forget,
    .enter = alone_enter,
    .alone = alone_message,
    .tx_status = alone_tx_status,
};

void console_offer(struct sessions *ss)
{
    ss->console = &ops;
}
