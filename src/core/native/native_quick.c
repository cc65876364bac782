/* SPDX-License-Identifier: PostgreSQL
 * native_quick.c: a read of a session at rest that is known to be one: it goes to its node as it
 * came, and the answer to the client as it comes, with its end. Nothing of it is kept or compared,
 * so there is no round. Runs in: workers. Must never: do anything before that is sure. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "config/conf.h"
#include "ipc/hold.h"
#include "native/native.h"
#include "wire/batch.h"

#include "native_int.h"

/* Nothing runs or waits, no transaction is open, and the nodes are those that were there. */
HOT static bool is_at_rest(struct native *n)
{
    const struct link *link = n->leg[n->main].link;

    return n->step == STEP_IDLE && n->in.len == 0 && !n->is_open && !n->skips && n->failed < 0 &&
           n->unbegun == 0 && !n->is_counted && n->gate.ops == NULL && link->tx_status == 'I' &&
           expect_is_quiet(&link->expect) && n->opened != 0 &&
           n->opened == view_version(n->ss->env->shm) && !n->ss->conf->replicate_select &&
           native_functions_are_known(n) && !client_log_statements(n->c);
}

HOT static bool is_known(struct native *n, uint64_t known)
{
    return known != 0 && known == native_answers_id(n);
}

/* `one` is what it says when it is a sequence: Bind of a named statement, or Parse of one without a
 * name. Returns the end of the message or messages; NULL: they have not all come, or are others. */
HOT static const char *find_read(
    struct native *n, struct batch_lone *one, const char *p, const char *end)
{
    struct slice sql;

    if (end - p <= PROTO_HEADER_BYTES)
        return NULL;
    if (*p != FE_QUERY) {
        if ((*p != FE_BIND && *p != FE_PARSE) || !batch_lone_read(one, p, end) || !one->syncs ||
            (one->name.n == 0) != (one->parse.p != NULL) ||
            !(one->parse.p != NULL ? is_known(n, native_text_known(n, one->sql))
                                   : is_known(n, native_prepared_known(n, one->name))))
            return NULL;
        return one->end;
    }
    if (!message_may_be(message_bytes(p)) || message_bytes(p) > (size_t)(end - p))
        return NULL;
    sql = message_body(slice_of(p, message_bytes(p)));
    sql.n -= sql.n > 0 && sql.p[sql.n - 1] == '\0';
    if (client_local_is_likely(sql) || !is_known(n, native_text_known(n, sql)))
        return NULL;
    one->sql = sql;
    return p + message_bytes(p);
}

/* What the server owes. A Parse without a name counts when it is known to be done. */
HOT static void expect_answer(struct native *n, struct link *link, const struct batch_lone *one)
{
    if (one->end == NULL) {
        link_expect(link, OP_QUERY);
        return;
    }
    n->portal = n->speaker;
    if (one->parse.p != NULL) {
        native_prepared_note_lone(n, one);
        n->unnamed = n->speaker;
        link_expect(link, OP_PARSE | OP_NOTE);
    }
    link_expect(link, OP_BIND);
    if (one->describes)
        link_expect(link, OP_DESCRIBE);
    link_expect(link, OP_EXECUTE);
    link_expect(link, OP_SYNC);
}

/* The bytes begin with one: it is sent, and what is behind it is in n->in. May end the client.
 * False: nothing was done. */
HOT static bool sends_read(struct native *n, const char *p, const char *end)
{
    struct client *c = n->c;
    struct batch_lone one = {.end = NULL};
    struct native_leg *leg = &n->leg[n->main];
    const char *behind;

    if (!is_at_rest(n) || (behind = find_read(n, &one, p, end)) == NULL)
        return false;
    if (n->ss->conf->load_balance_mode && n->reader >= 0 && native_is_up(&n->leg[n->reader]))
        leg = &n->leg[n->reader];
    if (leg->part.len > 0 || leg->left > 0 || !expect_is_quiet(&leg->link->expect) ||
        client_hold(c) || !hold_enter(n->ss->env->shm, n->ss->env->ordinal))
        return false;
    n->is_counted = true;
    n->step = STEP_QUICK;
    n->speaker = (int)(leg - n->leg);
    n->ex.ends_in_sync = true;
    client_stats_on_query(c);
    client_note_statement(c, one.end == NULL ? one.sql : slice_of(NULL, 0));
    client_target(c, leg->link);
    count_statement(n->ss, leg->node, COUNT_SELECT);
    expect_answer(n, leg->link, &one);
    leg->glue = GLUE_NONE;
    leg->is_asked = true;
    if (behind < end)
        buf_put(&n->in, behind, (size_t)(end - behind));
    (void)link_send(leg->link, p, (size_t)(behind - p)); /* may end the client */
    return true;
}

HOT static void quick_feed(struct client *c, const char *p, const char *end)
{
    if (!sends_read(client_native(c), p, end))
        native_feed(c, p, end);
}

void native_offer(struct sessions *ss)
{
    static const struct native_ops ops = {.begin = native_begin,
        .feed = quick_feed,
        .cancel = native_cancel,
        .end = native_free,
        .is_held = native_is_held};

    ss->native = &ops;
}

void native_withdraw(struct sessions *ss)
{
    ss->native = NULL;
    native_waiters_free(ss);
    native_functions_free(ss);
    native_decisions_free(ss);
}
