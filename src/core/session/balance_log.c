/* SPDX-License-Identifier: PostgreSQL
 * balance_log.c: the log of settings that are repeated on readers (struct balance_own). A session
 * that says for each request who is asking (SET app.tenant = ...) would fill it in no time: what a
 * later entry for the same name overtakes is taken out. Runs in: workers.
 *
 * Must never: take out what an entry behind it needs. Only names are looked for on which no other
 * setting depends, neither by its value, nor by who may set it, nor by how its text is read. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "balance_int.h"

/* By whom such a setting is known: an extension, or nobody but the application. */
static bool is_custom(struct slice name)
{
    return memchr(name.p, '.', name.n) != NULL;
}

static bool stands_alone(struct slice name)
{
    static const char *const names[] = {"application_name", "statement_timeout", "lock_timeout",
        "idle_in_transaction_session_timeout", "work_mem"};
    size_t i;

    if (is_custom(name))
        return true;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (slice_ieq_str(name, names[i]))
            return true;
    return false;
}

/* The part of `text` behind `head`, which is in lower case; p == NULL: it begins otherwise. */
static struct slice behind(struct slice text, const char *head)
{
    size_t n = strlen(head);

    if (text.n < n || !slice_ieq_str(slice_of(text.p, n), head))
        return slice_of(NULL, 0);
    return slice_of(text.p + n, text.n - n);
}

/* What is set by an entry: `SET name =`, `SET name TO` or the call that share_set_config writes.
 * p == NULL: it is another one, or its name does not stand alone. */
static struct slice name_of(struct slice entry)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    struct slice rest = behind(entry, "select pg_catalog.set_config('");
    bool is_call = rest.p != NULL;
    struct slice name;
    size_t n;

    if (!is_call)
        rest = behind(entry, "set ");
    if (rest.p == NULL)
        return rest;
    n = strspn(rest.p, plain); /* an entry ends with NUL */
    name = slice_of(rest.p, n);
    rest = slice_of(rest.p + n, rest.n - n);
    while (!is_call && rest.n > 0 && *rest.p == ' ')
        rest = slice_of(rest.p + 1, rest.n - 1);
    if (behind(rest, is_call ? "'," : "=").p == NULL &&
        (is_call || rest.p == name.p + n || behind(rest, "to ").p == NULL))
        return slice_of(NULL, 0);
    return stands_alone(name) ? name : slice_of(NULL, 0);
}

static void take_out(struct balance_own *own, uint32_t at, uint32_t n)
{
    uint32_t seen;
    unsigned i;

    memmove(own->log.data + at, own->log.data + at + n, own->log.len - at - n);
    own->log.len -= n;
    for (i = 0; i < own->nreaders; i++) {
        seen = own->reader[i]->replayed;
        if (seen > at)
            own->reader[i]->replayed = seen < at + n ? at : seen - n;
    }
}

static bool is_same(struct slice a, struct slice b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

static void take_out_overtaken(struct balance_own *own, struct slice name)
{
    uint32_t at = 0;

    while (at < own->log.len) {
        struct slice entry = slice_of_str(own->log.data + at);
        struct slice set = name_of(entry);
        uint32_t n = (uint32_t)entry.n + 1;

        if (set.p != NULL && is_same(set, name))
            take_out(own, at, n);
        else
            at += n;
    }
}

bool balance_log_pending(struct balance_own *own)
{
    uint32_t at = 0;

    while (at < own->pending.len) {
        struct slice entry = slice_of_str(own->pending.data + at);
        struct slice name = name_of(entry);

        if (name.p != NULL)
            take_out_overtaken(own, name);
        if (own->log.len + entry.n + 1 > BALANCE_LOG_MAX)
            return false;
        buf_put(&own->log, entry.p, entry.n + 1);
        at += (uint32_t)entry.n + 1;
    }
    return true;
}
