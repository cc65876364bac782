/* SPDX-License-Identifier: PostgreSQL
 * follow_execute.c: Bind and Execute of a portal, as far as the session is changed by them. Runs
 * in: workers. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "wire/batch.h"

#include "client/client_watch_int.h"
#include "sstate_int.h"
#include "sstate/sstate_vars_int.h"

/* Portals that are followed: each Bind looks through them. */
#define PORTALS_MAX 2048

void follow_execute(struct client *c, struct slice msg)
{
    struct sstate *s = c->sstate;
    const struct sql_facts *facts;
    struct names_portal *p;
    struct batch_msg m;
    struct slice sql;
    uint8_t was;

    batch_read(&m, FE_EXECUTE, message_body(msg));
    p = m.portal.p == NULL ? NULL : names_portal_find(s->errand->portals, m.portal);
    if (p == NULL)
        return;
    was = p->state;
    p->state = PORTAL_IS_OVER;
    if (was == PORTAL_IN_DOUBT) {
        follow_note_unread(c); /* this, or what the name meant before */
        return;
    }
    sql = p->sql == NULL ? prep_sql(p->prep) : slice_of_str(p->sql);
    facts = plan_facts(c->ss, sql);
    if (facts->nstmts == 1)
        follow_note(c, sql, facts);
    else if (sstate_text_is_doubtful(c, sql))
        follow_note_unread(c);
    else if (facts->status != SQL_OK)
        follow_note(c, sql, facts);
    else
        p->state = was; /* the server did not take it either */
}

/* The text with the values of a Bind, where that matters; NULL: it stays as it is. */
static char *bound_sql(struct client *c, const struct prep *p, struct slice bind)
{
    struct slice sql = prep_sql(p);
    struct buf out = {0};
    char *text = NULL;

    if (sstate_bound_may_matter(sql) &&
        sstate_bound_sql(plan_facts(c->ss, sql), sql, prep_types(p), bind, &out))
        text = mem_strndup(out.data, out.len);
    buf_free(&out);
    return text;
}

static bool fetches(struct client *c, const struct prep *p)
{
    const struct sql_facts *facts = plan_facts(c->ss, prep_sql(p));

    return facts->nstmts == 1 && facts->stmts[0].kind == SQL_FETCH;
}

static bool has_too_many(const struct sstate *s)
{
    const struct names_portal *p = s->errand->portals;
    unsigned n = 0;

    for (; p != NULL && n < PORTALS_MAX; p = p->next)
        n++;
    return n == PORTALS_MAX;
}

void follow_portal_bound(
    struct client *c, struct feed_run *run, struct slice portal, struct prep *p, struct slice bind)
{
    struct sstate *s = c->sstate;
    struct names_portal *known;

    while ((known = names_portal_find(s->errand->portals, portal)) != NULL)
        known->state = PORTAL_IS_OVER;
    if (p == NULL)
        return;
    c->bound_count = p->count;
    s->ran_made = s->ran_made || p->runs_code;
    if (c->ss->stmts != NULL && !client_stmts_is_known(c, p->counted))
        p->counted = client_stmts_bound(c, prep_sql(p));
    client_watch_statement(c, prep_sql(p));
    c->kind->sent(c, prep_sql(p));
    if (p->has_effects)
        follow_types_note(c, prep_sql(p), plan_facts(c->ss, prep_sql(p)));
    if (p->may_commit)
        follow_note_code(c);
    if (s->errand->portals != NULL && fetches(c, p))
        follow_note_fetch(c);
    /* Who prepared it first may have read it otherwise: by a default of his role. */
    if (!p->has_effects && (p->is_plain || !sstate_text_is_doubtful(c, prep_sql(p))))
        return;
    follow_sql_load_names(c, run, prep_sql(p));
    if (has_too_many(s)) {
        follow_note_unread(c); /* who executes it has the link to himself */
        return;
    }
    portal = prep_known_name(portal);
    known = mem_alloc_zero(sizeof *known + portal.n + 1);
    known->prep = prep_ref(p);
    known->sql = bound_sql(c, p, bind);
    known->state = PORTAL_IS_NEW;
    known->len = (uint32_t)portal.n;
    memcpy(known->name, portal.p, portal.n);
    known->next = s->errand->portals;
    s->errand->portals = known;
}
