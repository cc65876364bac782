/* SPDX-License-Identifier: PostgreSQL
 * inval_snapshot.c: which transactions are visible.
 * Runs in: invalidator. Pure. */
#include "config.h"

#include "inval_snapshot.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

static bool read_number(const char **p, char end, uint64_t *out)
{
    char *after;

    if (**p < '0' || **p > '9')
        return false;
    errno = 0;
    *out = strtoull(*p, &after, 10);
    if (errno != 0 || (*after != end && *after != '\0'))
        return false;
    *p = *after == '\0' ? after : after + 1;
    return true;
}

static void add(struct inval_snapshot *s, uint32_t xid)
{
    if (s->nrunning == s->room) {
        s->room = s->room == 0 ? 16 : s->room * 2;
        s->running = mem_resize(s->running, s->room * sizeof s->running[0]);
    }
    s->running[s->nrunning++] = xid;
}

int inval_snapshot_read(struct inval_snapshot *s, const char *text)
{
    uint64_t n;

    s->nrunning = 0;
    if (!read_number(&text, ':', &n) || !read_number(&text, ':', &n))
        return -1;
    s->end = (uint32_t)n;
    while (*text != '\0') {
        if (!read_number(&text, ',', &n))
            return -1;
        add(s, (uint32_t)n);
    }
    return 0;
}

bool inval_snapshot_sees(const struct inval_snapshot *s, uint32_t xid)
{
    uint32_t i;

    if ((int32_t)(xid - s->end) >= 0)
        return false;
    for (i = 0; i < s->nrunning; i++)
        if (s->running[i] == xid)
            return false;
    return true;
}

void inval_snapshot_free(struct inval_snapshot *s)
{
    mem_free(s->running);
    *s = (struct inval_snapshot){.end = 0};
}
