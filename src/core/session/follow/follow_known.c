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
