/* SPDX-License-Identifier: PostgreSQL
 * follow_known.c: what is known of prepared statements is answered here, in sequences of their own,
 * while a link would have to be waited for. Runs in: workers. Must never: answer what a server
 * would refuse. */
#include "config.h"

#include <string.h>

#include "wire/batch.h"
#include "wire/writer.h"

#include "sstate_int.h"

/* Drivers wait for the answer before they go on with anything else (PQprepare): if that waits for a
 * link which another session of the same thread has in its transaction, it waits for ever. */
bool follow_known_parsed(struct client *c, struct slice msg, const char *end)
{
    static const char sync[] = {FE_SYNC, 0, 0, 0, 4};
    struct sstate *s = c->sstate;
    struct buf out = {0};
    struct batch_msg m;
    struct slice body;
    struct prep *p;
    bool is_parsed;

    if (s->phase != PHASE_DETACHED || sstate_tx_is_lost(s) || c->local_part != LOCAL_PART_NONE ||
        (size_t)(end - (msg.p + msg.n)) < sizeof sync ||
        memcmp(msg.p + msg.n, sync, sizeof sync) != 0)
        return false;
    batch_read(&m, FE_PARSE, message_body(msg));
    body = batch_statement(&m);
    if (m.is_bad || m.name.n > 1024 || names_find(&s->names, m.name) != NULL ||
        !names_have_room(&s->names, c->ss->conf->client_prepared_memory_bytes, body.n + m.name.n))
        return false;
    p = follow_prep_of(c, body);
    prep_need_name(p);
    is_parsed = !p->names_one && !p->keeps_time &&
                (s->pins & ROWS_PIN(PIN_REASON_TEMP_TABLE)) == 0 && pool_has_parsed(c->pool, p->id);
    if (is_parsed) {
        follow_names_learn(c, m.name, body);
        wire_put_empty(&out, BE_PARSE_COMPLETE);
        client_send(c, &out);
    }
    prep_unref(&p);
    return is_parsed;
}

/* How many messages of Close there are at `p`, with nothing behind them but Sync or Flush; 0: there
 * is something else, or a portal is closed, of a transaction that has begun. */
static unsigned count_closes(const struct client *c, const char *p, const char *end)
{
    bool may_have_portals = sstate_tx_status(c) != 'I';
    struct batch_msg m;
    unsigned n = 0;

    while (batch_next(&p, end, &m) && !m.is_bad) {
        if (m.type == FE_SYNC || m.type == FE_FLUSH)
            return n;
        if (m.type != FE_CLOSE || (m.what == 'P' && may_have_portals) || ++n > UINT16_MAX)
            return 0;
    }
    return 0;
}

static void close_statement(struct client *c, struct slice name)
{
    struct sstate *s = c->sstate;
    struct names_entry *n;

    if (name.n == 0) {
        prep_unref(&s->names.unnamed);
        s->errand->way.unnamed_epoch = 0;
        return;
    }
    n = names_find(&s->names, name);
    if (n == NULL)
        return;
    names_take(&s->names, n);
    names_entry_free(&s->errand->way, n);
}

/* A link that is free at once is told, so that who parses it again has a new plan. */
static bool has_link_at_once(struct client *c)
{
    int node = sstate_write_node(c);

    return node == c->pool->cluster_node &&
           (node >= POOLS_FIRST_TARGET || !sessions_must_hold_writes(c->ss)) &&
           sstate_has_ready_link(c);
}

/* Who drops statements does not wait for that: a cancel request for what is asked next would end
 * the wait, and run it. A link that is kept is told, which may have a cursor that is to go. */
bool follow_known_closed(struct client *c, const char *p, const char *end)
{
    struct sstate *s = c->sstate;
    struct buf out = {0};
    struct batch_msg m;
    unsigned n;
    unsigned i;

    if (s->phase != PHASE_DETACHED || s->errand->home != NULL || c->local_part != LOCAL_PART_NONE ||
        client_has_console(c) || s->kept != NULL)
        return false;
    n = count_closes(c, p, end);
    if (n == 0 || has_link_at_once(c))
        return false;
    for (i = 0; i < n && batch_next(&p, end, &m); i++) {
        if (m.what == 'S')
            close_statement(c, m.name);
        if (client_log_statements(c))
            client_said(c, FE_CLOSE, m.body);
        wire_put_empty(&out, BE_CLOSE_COMPLETE);
    }
    client_send(c, &out);
    s->errand->nskip = (uint16_t)(n - 1);
    return true;
}
