/* SPDX-License-Identifier: PostgreSQL
 * sessions_title.c: the title of a worker: who its client is when it has one, as pgpool-II's
 * processes have it, and how many they are when it has several. Runs in: workers. What the client
 * does is looked at by the clock: a statement must not pay for its name in ps. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ipc/proc.h"
#include "ipc/rows.h"

#include "client_int.h"

#define LOOK_MS 500
#define REST_MS                                                                                    \
    100               /* where clients come and go by the thousand, a title for each would be work \
                       */
#define WORD_BYTES 24 /* of a statement's first word, with its NUL */

static const char *const state_texts[CLIENT_STATE_COUNT] = {
#define TEXT(sym, text, status) text,
    CLIENT_STATES(TEXT)
#undef TEXT
};

/* What the client does, in the words of ps: a statement by its first word. */
static const char *doing(const struct client *c, char *word)
{
    const struct client_row *row = c->row;
    struct slice sql = client_row_statement(c);
    const char *p = sql.p;
    const char *end = sql.p + sql.n;
    size_t n;

    if (row->state != CLIENT_STATE_ACTIVE)
        return state_texts[row->state];
    while (p < end && isspace((unsigned char)*p))
        p++;
    for (n = 0; n < WORD_BYTES - 1 && p < end && isalpha((unsigned char)*p); n++)
        word[n] = (char)toupper((unsigned char)*p++);
    word[n] = '\0';
    return n == 0 ? state_texts[CLIENT_STATE_ACTIVE] : word;
}

/* A name may hold anything; a title is one line. */
static void make_plain(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

static void name_client(const struct client *c)
{
    const struct client_row *row = c->row;
    struct slice user = row_user(client_row_names(c));
    struct slice database = row_database(client_row_names(c));
    char word[WORD_BYTES];
    char host[64];
    char port[16] = "";
    char names[2 * ROWS_NAME_BYTES];

    if (user.n == 0) {
        proc_set_title("accept connection");
        return;
    }
    snprintf(names, sizeof names, "%.*s %.*s", (int)user.n, user.p, (int)database.n, database.p);
    make_plain(names);
    client_host_text(c, host, sizeof host);
    if (row->addr_kind != ROW_ADDR_LOCAL)
        snprintf(port, sizeof port, "(%d)", row->port);
    proc_set_title("%s %s%s %s", names, host, port, doing(c, word));
}

static void set(struct sessions *ss)
{
    struct client *c;

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
        name_client(c);
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
