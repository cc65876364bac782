/* SPDX-License-Identifier: PostgreSQL
 * failover_stream.c: does a standby still stream from the primary that does not answer us? Then
 * that is alive, and only we do not reach it.
 * Runs in: monitor. Pure. A standby that another one feeds says nothing of the primary, but whom a
 * standby feeds is known by name only, and it may feed others than our servers: backups, standbys
 * that are not in the settings. So a receiver counts as fed when a standby that does not receive
 * itself, or is fed itself, has a receiver of its name that nobody else needs. On doubt it counts
 * as streaming from the primary: nobody is promoted then. */
#include "config.h"

#include <string.h>

#include "failover_int.h"

/* Standbys that answer, and what is not yet known of them. */
struct streams {
    bool receives[VIEW_MAX_NODES]; /* from somebody, who is not known to be another standby */
    bool feeds[VIEW_MAX_NODES];    /* what it says of its receivers counts */
};

static const char *name_of(const struct decide *d, int node)
{
    const char *name = d->node[node].facts.receiver_name;

    return name[0] == '\0' ? d->rules.node[node].application_name : name;
}

static void look(const struct decide *d, struct streams *s)
{
    int i;

    memset(s, 0, sizeof *s);
    for (i = 0; i < d->rules.nnodes; i++) {
        if (i == d->view.sw.node || !decide_has_facts(d, i) || d->node[i].is_silent)
            continue;
        s->receives[i] = d->view.node[i].is_receiving && !decide_hears_nobody(&d->node[i].facts);
        s->feeds[i] = !s->receives[i];
    }
}

static int count_of(const struct decide *d, int node, const char *name)
{
    const struct decide_facts *f = &d->node[node].facts;
    int n = 0;
    int i;

    for (i = 0; i < f->nsenders; i++)
        n += strcmp(f->sender[i].name, name) == 0;
    return n;
}

/* Receivers of this name that those feed who count, less the servers that were taken for such. */
static int places(const struct decide *d, const struct streams *s, const char *name)
{
    int n = 0;
    int i;

    for (i = 0; i < d->rules.nnodes; i++) {
        if (!s->feeds[i])
            continue;
        n += count_of(d, i, name);
        if (d->view.node[i].is_receiving && !decide_hears_nobody(&d->node[i].facts))
            n -= strcmp(name_of(d, i), name) == 0;
    }
    return n;
}

/* The next receiver that may be fed: of several for one place the one that feeds most itself, for
 * it is hardly the last of the row. */
static int next_fed(const struct decide *d, const struct streams *s)
{
    int found = VIEW_NO_NODE;
    int i;

    for (i = 0; i < d->rules.nnodes; i++) {
        const char *name = name_of(d, i);

        if (!s->receives[i] || name[0] == '\0' || places(d, s, name) <= 0)
            continue;
        if (found == VIEW_NO_NODE || d->node[i].facts.nsenders > d->node[found].facts.nsenders)
            found = i;
    }
    return found;
}

int failover_find_streaming(const struct decide *d)
{
    struct streams s;
    int i;

    look(d, &s);
    while ((i = next_fed(d, &s)) != VIEW_NO_NODE) {
        s.receives[i] = false;
        s.feeds[i] = true;
    }
    for (i = 0; i < d->rules.nnodes; i++)
        if (s.receives[i])
            return i;
    return VIEW_NO_NODE;
}
