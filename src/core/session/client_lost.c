/* SPDX-License-Identifier: PostgreSQL
 * client_lost.c: a transaction died with its link between two statements, and the client does not
 * know. Runs in: workers.
 *
 * COMMIT is an error then, for nothing is committed, and the transaction is over with it, as when a
 * server fails to commit. Answered with ROLLBACK, as the COMMIT of a transaction that is known to
 * have failed, most drivers would take it for done. A ROLLBACK is done, and anything else an error:
 * the transaction is a failed one until ROLLBACK, and what its COMMIT is answered with then is
 * ROLLBACK. So it is in both protocols and all pool modes; here is what clients with a link of
 * their own need for it (share_virtual.c and share_feed.c have the others). */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "client_lost_int.h"
#include "client_word_int.h"
#include "share_int.h"

void client_lost_err(struct err *err)
{
    err_clear(err);
    err_set(err, "08006", "the server connection of this transaction was lost");
    err_hint(err, "Roll back, and run the transaction again.");
}

bool client_lost_by_timeout(const struct err *words)
{
    static const char *const timeout[] = {"25P03", "25P04", "57P05"};
    unsigned i;

    for (i = 0; i < sizeof timeout / sizeof timeout[0]; i++)
        if (strcmp(words->sqlstate, timeout[i]) == 0)
            return true;
    return false;
}

void client_lost_put(const struct err *words, struct buf *out)
{
    struct err err;

    client_lost_err(&err);
    if (words != NULL && client_lost_by_timeout(words))
        err = *words;
    err.severity = ERR_ERROR;
    wire_put_err(out, &err);
}

HOT bool client_lost_is_untold(const struct client *c)
{
    if (c->balance == NULL || c->balance->own == NULL || c->local_error)
        return false;
    if (client_adrift(c) != NULL)
        return c->target == NULL && client_adrift_is_untold(c);
    return c->balance->own->is_untold && c->target == c->link && !c->server_batch &&
           !c->local_batch && !expect_is_copying(&c->link->expect);
}

enum sql_tx_op client_lost_ends(
    struct client *c, const char *p, const char *end, struct client_word *w)
{
    struct batch_msg m;
    struct slice sql;

    if (*p == FE_QUERY) {
        if (!batch_next(&p, end, &m) || m.is_bad)
            return SQL_TX_NONE;
        sql = m.sql;
    } else if (client_word_read(c, p, end, w)) {
        sql = w->sql;
    } else {
        return SQL_TX_NONE;
    }
    return client_word_ends(balance_facts(c->ss, sql));
}

/* On the own link a transaction was made to fail in its place. */
static void end_on_own(struct client *c)
{
    struct balance_own *own = c->balance->own;
    struct slice rollback = slice_of_str("ROLLBACK");

    balance_again_begin(c, slice_of("", 0));
    own->nexchanges++;
    balance_note_facts(c, rollback, balance_facts(c->ss, rollback), 0);
    balance_send_own_text(c, c->link, rollback);
    own->is_untold = false;
    own->end_is_told = true;
}

/* Of whole messages. */
static void trace_messages(struct client *c, const char *p, const char *end)
{
    struct message m;

    while (c->trace.client && message_next(&p, end, &m))
        client_trace_message(c, m.type, m.body);
}

/* Its COMMIT. Returns where to go on. */
static const char *tell_commit(struct client *c, const char *p, const struct client_word *w)
{
    bool is_query = *p == FE_QUERY;
    struct slice query = slice_of(p, message_bytes(p));
    const char *end = is_query ? p + query.n : w->end;
    struct buf out = {0};

    client_stats_on_query(c);
    if (client_log_statements(c) && is_query)
        client_log_statement(c, "", slice_of(message_body(query).p, message_body(query).n - 1));
    else if (client_log_statements(c))
        client_word_log(c, p, w);
    trace_messages(c, p, end);
    if (is_query)
        statements_remove(c->statements, slice_of("", 0));
    else
        client_word_begin(c, w, &out);
    client_lost_put(NULL, &out);
    if (client_adrift(c) != NULL)
        client_adrift_end(c);
    else
        end_on_own(c);
    if (is_query || w->syncs)
        wire_put_ready(&out, 'I');
    else
        c->local_error = true; /* the rest of the sequence is skipped, up to its Sync */
    client_send(c, &out);
    return end;
}

/* A server would answer it without any error: it ends the transaction, and does more. */
static bool ends_midway(struct client *c, const char *p, const char *end)
{
    const struct sql_facts *facts;
    enum sql_tx_op op;
    struct batch_msg m;

    if (!batch_next(&p, end, &m) || m.is_bad)
        return false;
    facts = balance_facts(c->ss, m.sql);
    op = facts->nstmts > 0 ? facts->stmts[0].tx.op : SQL_TX_NONE;
    return op == SQL_TX_COMMIT || op == SQL_TX_PREPARE;
}

/* A command of ours is answered whatever has become of the servers. */
static bool is_ours(const struct client *c, const char *p, const char *end)
{
    size_t have = (size_t)(end - p);

    if (*p != FE_PARSE)
        return client_local(c) != NULL;
    return client_local_is_likely(
        feed_parse_sql(slice_of(p + PROTO_HEADER_BYTES, have - PROTO_HEADER_BYTES)));
}

/* Not its end: the error is told here if a server might not. */
static bool must_tell(struct client *c, const char *p, const char *end)
{
    if (client_adrift(c) != NULL)
        return false; /* client_adrift.c does */
    return *p == FE_QUERY ? ends_midway(c, p, end) : !is_ours(c, p, end);
}

static void tell(struct client *c, bool is_query)
{
    struct buf out = {0};

    c->balance->own->is_untold = false;
    client_lost_put(NULL, &out);
    if (is_query)
        wire_put_ready(&out, 'E');
    else
        c->local_error = true;
    client_send(c, &out);
}

enum feed_step client_lost_message(
    struct client *c, const char *p, const char *end, const char **next)
{
    struct client_word w;
    enum sql_tx_op ends;

    *next = NULL;
    if (strchr("QPBDEC", *p) == NULL)
        return FEED_AGAIN;
    ends = client_lost_ends(c, p, end, &w);
    if (ends == SQL_TX_ROLLBACK || (ends == SQL_TX_NONE && !must_tell(c, p, end)))
        return FEED_AGAIN;
    if (client_adrift(c) == NULL &&
        (balance_is_waiting(c) || balance_owes_client(&c->link->expect)))
        return FEED_PARK;
    if (ends == SQL_TX_COMMIT)
        *next = tell_commit(c, p, &w);
    else
        tell(c, *p == FE_QUERY);
    return FEED_LOCAL;
}
