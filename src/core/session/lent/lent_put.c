/* SPDX-License-Identifier: PostgreSQL
 * lent_put.c: what we say on a client's link by ourselves: queries of ours, settings, named
 * statements. Runs in: workers. */
#include "config.h"

#include "base/hot.h"
#include "wire/writer.h"

#include "sstate_int.h"
#include "sstate/phase_int.h"

WARM void lent_put_query(struct client *c, struct feed_run *run, struct slice sql, unsigned sink)
{
    c->sstate->errand->way.unnamed_epoch =
        0; /* a simple query takes the unnamed statement with it */
    link_expect(c->link, OP_QUERY | sink);
    feed_put(run, "", 0); /* it goes behind what there is */
    wire_put_query(&run->out, sql);
}

WARM void lent_put_own_query(struct client *c, struct feed_run *run, struct slice sql)
{
    lent_put_query(c, run, sql, OP_SWALLOW);
}

HOT bool lent_must_reset(const struct client *c, const struct link *link)
{
    if (link->last_client == sstate_number(c) && c->row != NULL)
        return false;
    return c->ss->conf->reset_between_clients ||
           (link->last_client != 0 && link == c->sstate->kept);
}

/* Puts a reset in front of another client's statements: functions and triggers may have set what
 * nobody saw, made tables, or taken locks. What is known to be set is gone, too, and is set again.
 * First goes what could make the rest fail: another user, a statement_timeout. True when something
 * is to be sent; *safe: no server refuses it. */
static bool reset_for_another(struct client *c, struct buf *sql, bool *safe)
{
    struct link *link = c->link;
    bool is_due = lent_must_reset(c, link);

    link->last_client = sstate_number(c);
    if (!is_due)
        return false;
    *safe = varset_get(link->vars, slice_of_str("role")).p == NULL &&
            varset_get(link->vars, slice_of_str("session_authorization")).p == NULL;
    varset_assign(&link->vars, c->ss->be.varsets.empty);
    varset_assign(&c->sstate->vars.link, link->vars);
    buf_printf(sql, "RESET SESSION AUTHORIZATION;RESET ROLE;RESET ALL;CLOSE ALL;UNLISTEN *;"
                    "SELECT pg_catalog.pg_advisory_unlock_all();DISCARD TEMP;DISCARD SEQUENCES;");
    return true;
}

/* The link gets the session's settings. Those that a server might refuse are waited for: nothing
 * may run with the rights or settings of somebody else. */
HOT enum feed_step lent_put_settings(struct client *c, struct feed_run *run, enum phase meanwhile)
{
    struct sstate *s = c->sstate;
    struct buf sql = {0};
    bool safe = true;

    if (c->link->vars != s->vars.client)
        lent_put_encoding(c, run, c->link->vars, s->vars.client);
    if (link_must_replan(c->link, s->vars.client, sstate_number(c)))
        buf_printf(&sql, "DISCARD PLANS;");
    if (!reset_for_another(c, &sql, &safe) && c->link->vars == s->vars.client && sql.len == 0)
        return FEED_PASS;
    s->loan.has_put_settings = true;
    safe = varset_diff(c->link->vars, s->vars.client, &sql) && safe;
    varset_assign(&c->link->vars, s->vars.client);
    varset_assign(&s->vars.link, s->vars.client);
    if (sql.len > 0)
        lent_put_own_query(c, run, buf_slice(&sql));
    else
        safe = true;
    buf_free(&sql);
    if (safe)
        return FEED_PASS;
    phase_goto(c, meanwhile);
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_REPLAY);
    return FEED_PARK;
}

void lent_put_encoding(
    struct client *c, struct feed_run *run, const struct varset *from, const struct varset *to)
{
    struct buf sql = {0};

    if (varset_diff_encoding(from, to, &sql))
        lent_put_own_query(c, run, buf_slice(&sql));
    buf_free(&sql);
}

void lent_lose_unnamed(struct client *c)
{
    if (c->sstate->errand != NULL)
        c->sstate->errand->way.unnamed_epoch = 0;
}

HOT void lent_expect_end(struct client *c, unsigned op)
{
    struct sstate *s = c->sstate;

    if (s->parameters == PARAMETERS_OWED) {
        s->parameters = PARAMETERS_TOLD;
        c->link->loan.tells = LINK_TELLS_NOTHING;
        expect_hold(&c->link->expect);
    }
    link_expect(c->link, op);
}

void lent_put_close_as(struct client *c, struct feed_run *run, struct slice name, unsigned op)
{
    struct buf out = {0};

    wire_put_close(&out, 'S', name);
    link_expect(c->link, op);
    feed_put(run, out.data, out.len);
    buf_free(&out);
}

bool lent_make_place(struct client *c, struct feed_run *run)
{
    uint32_t named = prepset_count_named(&c->link->preps);
    uint32_t limit = (uint32_t)c->ss->conf->max_prepared_statements;
    char name[PREP_NAME_BYTES + 1];
    bool was_full = false;

    limit = limit < named + SSTATE_MIN_PREPARED ? SSTATE_MIN_PREPARED : limit - named;
    while (prepset_evict(&c->link->preps, limit - 1, name)) {
        lent_put_close(c, run, slice_of_str(name));
        was_full = true;
    }
    return was_full;
}

void lent_put_close(struct client *c, struct feed_run *run, struct slice name)
{
    if (c->sstate->loan.doubt == LOAN_SURE)
        c->sstate->loan.doubt = LOAN_CLOSES;
    lent_put_close_as(c, run, name, OP_CLOSE | OP_SWALLOW);
}

void lent_put_parse(
    struct client *c, struct feed_run *run, struct prep *p, struct slice name, unsigned op)
{
    struct buf out = {0};

    prep_put_parse(&out, p, name);
    link_expect(c->link, op);
    feed_put(run, out.data, out.len);
    buf_free(&out);
}

void lent_put_sync(struct client *c, struct feed_run *run)
{
    struct buf out = {0};

    if (c->server_batch)
        return;
    wire_put_empty(&out, FE_SYNC);
    link_expect(c->link, OP_SYNC | OP_SWALLOW);
    feed_put(run, out.data, out.len);
    buf_free(&out);
}

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

bool lent_is_our_name(struct slice name)
{
    size_t i;

    if (name.n != PREP_NAME_BYTES || memcmp(name.p, "pgp_", 4) != 0)
        return false;
    for (i = 4; i < name.n; i++)
        if (hex_digit(name.p[i]) == -1)
            return false;
    return true;
}

/* The client has no statement of this name, or cannot have it brought here: the link must not have
 * one either, whoever left it there. */
void lent_forget_foreign(struct client *c, struct feed_run *run, struct slice name)
{
    uint8_t id[PREP_ID_BYTES] = {0};
    int i;

    if (prepset_named(&c->link->preps, name) != 0 || !loan_is_sure(&c->sstate->loan)) {
        lent_put_close(c, run, name);
        prepset_set_named(&c->link->preps, name, PREPSET_DOUBTFUL);
    }
    if (!lent_is_our_name(name))
        return;
    for (i = 0; i < PREP_ID_BYTES; i++)
        id[i] = (uint8_t)(hex_digit(name.p[4 + 2 * i]) << 4 | hex_digit(name.p[5 + 2 * i]));
    lent_put_close(c, run, name);
    prepset_remove(&c->link->preps, id);
}
