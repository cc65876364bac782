/* SPDX-License-Identifier: PostgreSQL
 * client_console.c: how a client's messages come to the machine that answers them here
 * (session/answering.h), in the order of replies: while the server owes any, the input waits. A
 * Sync is answered here only when nothing of its sequence went to the server. Runs in: workers. */
#include "config.h"

#include <sys/socket.h>

#include "base/hot.h"
#include "config/pools_conf.h"
#include "ipc/orders.h"
#include "wire/writer.h"

#include "sstate_int.h"

/* ---- what is kept with a client ---- */

struct console *client_console(const struct client *c)
{
    return c->rare == NULL ? NULL : c->rare->console;
}

void client_set_console(struct client *c, struct console *console)
{
    if (console != NULL)
        client_rare(c)->console = console;
    else if (c->rare != NULL)
        c->rare->console = NULL;
    client_rare_trim(c);
}

/* ---- what its session is ---- */

char client_tx_status(const struct client *c)
{
    return c->kind->tx_status(c);
}

uint32_t client_number(const struct client *c)
{
    return c->row == NULL ? 0 : c->row->id;
}

int client_role_place(const struct client *c)
{
    int node = c->pool->cluster_node;

    if (client_is_alone(c))
        return ORDERS_NO_SERVERS;
    return node >= POOLS_FIRST_TARGET ? node : ORDERS_OUR_SERVERS;
}

struct conf_override **client_overrides(struct client *c)
{
    return &client_rare(c)->override;
}

/* ---- when is it answered? ---- */

/* A server that skips up to the next Sync owes nothing before it. */
static bool server_comes_first(const struct client *c)
{
    enum client_pace pace = c->kind->pace(c); /* EXPLAIN waits, to ask */

    return pace == PACE_RUNS || pace == PACE_REPAIRS || c->target != c->link ||
           (c->link != NULL && (c->link->expect.len > 0 || c->link->body_left > 0));
}

bool client_is_skipped(const struct client *c)
{
    return c->link != NULL && c->link->expect.skipping;
}

/* What the server said before in this sequence is told now, even if it was kept back because the
 * sequence might be sent again: behind our answer it never is. */
bool client_may_answer(struct client *c)
{
    if (server_comes_first(c))
        return false;
    if (c->server_batch)
        c->kind->stop_keeping(c);
    return true;
}

bool client_take_part(struct client *c)
{
    if (!client_may_answer(c))
        return false;
    c->local_part = LOCAL_PART_SOME;
    return true;
}

void client_fail_part(struct client *c)
{
    struct buf out = {0};

    c->local_part = LOCAL_PART_FAILED;
    if (!c->server_batch || c->link == NULL || c->target != c->link || c->link->tx_status != 'I' ||
        c->link->expect.skipping)
        return;
    wire_put_parse(&out, slice_of_str(REFUSED_NAME), slice_of_str(refused_query));
    link_expect(c->link, OP_PARSE | OP_SWALLOW);
    (void)link_send(c->link, out.data, out.len);
    buf_free(&out);
}

/* ---- messages ---- */

HOT bool client_local_is_likely(struct slice sql)
{
    const char *p = sql.p;
    const char *end = p + sql.n;
    char c;

    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    if (end - p < 6)
        return false;
    c = (char)(p[1] | 0x20);
    switch (*p | 0x20) {
    case 's':
        if (c != 'e')
            return c == 'h';
        if ((p[2] | 0x20) != 'l')
            return (p[2] | 0x20) == 't';
        /* select pg_...: pg_terminate_backend() of a client's number is one of those. */
        return end - p > 10 && (p[7] | 0x20) == 'p' && (p[8] | 0x20) == 'g' && end - p < 100;
    case 'r':
        return c == 'e' && (p[2] | 0x20) == 's';
    case 'p':
        return c == 'g';
    case '/' | 0x20:
    case '-' | 0x20:
        return true;
    default:
        return false;
    }
}

enum local_verdict client_local_query(struct client *c, struct slice sql)
{
    return c->ss->console == NULL ? LOCAL_NO : c->ss->console->query(c, sql);
}

/* The end of a sequence. */
static enum local_verdict on_sync(struct client *c)
{
    if (c->local_part == LOCAL_PART_NONE)
        return LOCAL_NO;
    if (!client_may_answer(c))
        return LOCAL_PARK;
    c->local_part = LOCAL_PART_NONE;
    if (client_console(c) != NULL)
        c->ss->console->synced(c);
    if (c->server_batch || client_is_skipped(c))
        return LOCAL_NO;
    client_note_idle(c);
    client_say_ready(c, c->kind->tx_status(c));
    return LOCAL_DONE;
}

enum local_verdict client_local_extended(struct client *c, char type, struct slice body)
{
    if (type == FE_SYNC)
        return on_sync(c);
    if (c->local_part == LOCAL_PART_FAILED)
        return LOCAL_DONE;
    if (client_is_skipped(c))
        return LOCAL_NO;
    if (type == FE_FLUSH)
        return c->local_part != LOCAL_PART_NONE && !c->server_batch ? LOCAL_DONE : LOCAL_NO;
    if (!client_has_console(c) &&
        (type != FE_PARSE || !client_local_is_likely(feed_parse_sql(body))))
        return LOCAL_NO;
    return c->ss->console == NULL ? LOCAL_NO : c->ss->console->message(c, type, body);
}

void sstate_judge_end(struct client *c)
{
    if (c->sstate->errand->judged == JUDGED_NOT)
        return;
    c->sstate->errand->judged = JUDGED_NOT;
    c->ss->console->forget(c);
}

/* ---- to wait ---- */

void client_look_again(struct client *c)
{
    char byte;

    if (recv(stream_fd(&c->stream), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        client_leave(c);
    else
        client_unpark(c);
}
