/* SPDX-License-Identifier: PostgreSQL
 * probe_class.c: what a refused or failed connection says about the server.
 * Runs in: monitor. Pure. libpq keeps the SQLSTATE of a refused connection to itself but writes it
 * into the text when asked to be verbose; a server that sends one is alive, whatever it says. Never
 * takes words of the text for facts: they are translated. */
#include "config.h"

#include "probe_int.h"

#include <ctype.h>
#include <string.h>

#define SQLSTATE_CHARS 5

static bool is_sqlstate(const char *p)
{
    int i;

    for (i = 0; i < SQLSTATE_CHARS; i++)
        if (!isdigit((unsigned char)p[i]) && !(p[i] >= 'A' && p[i] <= 'Z'))
            return false;
    return p[SQLSTATE_CHARS] == ':';
}

bool probe_class_find_sqlstate(const char *message, char out[6])
{
    const char *p;

    for (p = strstr(message, ":  "); p != NULL; p = strstr(p + 1, ":  ")) {
        if (!is_sqlstate(p + 3))
            continue;
        memcpy(out, p + 3, SQLSTATE_CHARS);
        out[SQLSTATE_CHARS] = '\0';
        return true;
    }
    return false;
}

/* A server that speaks is alive. Only one that cannot take connections now is put in a class of its
 * own: it lives, but is of no use to a session. */
enum probe_answer probe_class_of_sqlstate(const char *sqlstate)
{
    return strcmp(sqlstate, "57P03") == 0 ? PROBE_BUSY : PROBE_ALIVE;
}

void probe_class_copy_line(const char *from, char *to, size_t room)
{
    size_t n = strcspn(from, "\n");

    if (n >= room)
        n = room - 1;
    memcpy(to, from, n);
    to[n] = '\0';
}

void probe_class_of_conn(const PGconn *conn, struct probe_report *r)
{
    const char *text = PQerrorMessage(conn);

    probe_class_copy_line(text, r->message, sizeof r->message);
    if (probe_class_find_sqlstate(text, r->sqlstate)) {
        r->answer = probe_class_of_sqlstate(r->sqlstate);
        return;
    }
    r->sqlstate[0] = '\0';
    /* A server that asks for a password which we do not have is there. */
    r->answer = PQconnectionNeedsPassword(conn) ? PROBE_ALIVE : PROBE_FAILED;
}
