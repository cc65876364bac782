/* SPDX-License-Identifier: PostgreSQL
 * client_title.c: a client in the title of the process that serves it. Runs in: workers. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>

#include "account/lines.h"
#include "account/client_title.h"

#define WORD_BYTES 24 /* of a statement's first word, with its NUL */

static const char *const state_texts[CLIENT_STATE_COUNT] = {
#define TEXT(sym, text, status) text,
    CLIENT_STATES(TEXT)
#undef TEXT
};

/* What the client does, in the words of ps: a statement by its first word. */
static const char *doing(const struct client_row *row, struct slice sql, char *word)
{
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

const char *title_of_client(
    char *out, const struct client_row *row, const struct row_names *names, struct slice statement)
{
    struct slice user = row_user(names);
    struct slice database = row_database(names);
    char word[WORD_BYTES];
    char host[64];
    char port[16] = "";
    char who[2 * ROWS_NAME_BYTES];

    if (user.n == 0)
        return "accept connection";
    snprintf(who, sizeof who, "%.*s %.*s", (int)user.n, user.p, (int)database.n, database.p);
    make_plain(who);
    lines_host(row, host, sizeof host);
    if (row->addr_kind != ROW_ADDR_LOCAL)
        snprintf(port, sizeof port, "(%d)", row->port);
    snprintf(out, TITLE_BYTES, "%s %s%s %s", who, host, port, doing(row, statement, word));
    return out;
}
