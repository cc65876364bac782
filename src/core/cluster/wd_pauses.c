/* SPDX-License-Identifier: PostgreSQL
 * wd_pauses.c: which databases are paused, here and everywhere.
 * Runs in: watchdog. Pure. */
#include "config.h"

#include "cluster/wd_pauses.h"

#include <stdio.h>
#include <string.h>

static int find(const struct wd_pauses *p, const char *database)
{
    int i;

    for (i = 0; i < p->n; i++)
        if (strcmp(p->database[i], database) == 0)
            return i;
    return -1;
}

bool wd_pauses_has(const struct wd_pauses *p, const char *database)
{
    return find(p, database) != -1;
}

bool wd_pauses_set(struct wd_pauses *p, const char *database, bool is_on)
{
    int i = find(p, database);

    if (is_on == (i != -1) || (is_on && p->n == WD_PAUSES))
        return false;
    if (is_on) {
        memset(p->database[p->n], 0, WD_DATABASE_BYTES);
        snprintf(p->database[p->n++], WD_DATABASE_BYTES, "%s", database);
        return true;
    }
    p->n--;
    memmove(p->database[i], p->database[i + 1], (size_t)(p->n - i) * WD_DATABASE_BYTES);
    memset(p->database[p->n], 0, WD_DATABASE_BYTES);
    return true;
}

/* What is to be done about one database. What the log has changed is followed, unless it is so here
 * already; else what was changed here is for the log. */
static enum wd_pauses_do judge(struct wd_pauses *known, const struct wd_pauses *here,
    const struct wd_pauses *agreed, const char *database)
{
    bool is_known = wd_pauses_has(known, database);
    bool is_here = wd_pauses_has(here, database);
    bool is_agreed = wd_pauses_has(agreed, database);

    if (is_agreed != is_known) {
        (void)wd_pauses_set(known, database, is_agreed);
        return is_here == is_agreed ? WD_PAUSES_NOTHING : WD_PAUSES_OBEY;
    }
    return is_here == is_known ? WD_PAUSES_NOTHING : WD_PAUSES_SAY;
}

struct wd_pauses_step wd_pauses_next(
    struct wd_pauses *known, const struct wd_pauses *here, const struct wd_pauses *agreed)
{
    const struct wd_pauses before = *known;
    const struct wd_pauses *const sets[] = {here, agreed, &before};
    struct wd_pauses_step step = {.what = WD_PAUSES_NOTHING};
    int s;
    int i;

    for (s = 0; s < 3; s++)
        for (i = 0; i < sets[s]->n; i++) {
            const char *database = sets[s]->database[i];

            step.what = judge(known, here, agreed, database);
            if (step.what == WD_PAUSES_NOTHING)
                continue;
            snprintf(step.database, sizeof step.database, "%s", database);
            step.is_on = wd_pauses_has(step.what == WD_PAUSES_SAY ? here : agreed, step.database);
            return step;
        }
    return step;
}
