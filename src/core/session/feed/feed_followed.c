/* SPDX-License-Identifier: PostgreSQL
 * feed_followed.c: one message of a followed client. Runs in: workers. What is answered here
 * (BEGIN that waits for its first statement, commands of ours) never touches a server. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "config/conf.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "client/client_lost_int.h"
#include "follow/follow_columns_int.h"
#include "lent/lent_int.h"
#include "sstate_int.h"
#include "sstate/sstate_vars_int.h"

/* A message of the client, or as much of it as has come. */
struct feed_msg {
    char type;
    bool is_whole;
    struct slice msg;
    struct slice body; /* of msg */
    const char *end;   /* of all that has come of it and of what is behind it */
};

/* Fails on every server, and says why in its log. */
const char refused_query[] = "SELECT pg_catalog." REFUSED_FUNCTION "()";

/* Does a string begin a transaction, and is one open behind it? */
static bool begins_transaction(const struct sql_facts *facts, bool *is_open)
{
    bool begins = false;
    uint32_t i;

    *is_open = false;
    for (i = 0; i < facts->nstmts; i++)
        switch (facts->stmts[i].tx.op) {
        case SQL_TX_BEGIN:
            begins = *is_open = true;
            break;
        case SQL_TX_COMMIT:
        case SQL_TX_ROLLBACK:
        case SQL_TX_PREPARE:
            *is_open = *is_open && (facts->stmts[i].flags & SQL_F_CHAIN) != 0;
            break;
        default:
            break;
        }
    return begins;
}

/* A read-only transaction that lives on a standby: all of it runs there. So does what follows, when
 * something in it has tied the session to that link. */
static bool is_away(const struct client *c)
{
    return c->sstate->phase == PHASE_ATTACHED &&
           (c->link->tx_status == 'T' || c->sstate->pins != 0) &&
           c->link->pool->cluster_node != c->pool->cluster_node;
}

/* What a standby would do without a word, and in vain: its locks are not the primary's. */
static bool is_in_vain(const struct sql_facts *facts, struct err *err)
{
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++)
        if (effects_takes_advisory_locks(&facts->stmts[i])) {
            err_set(err, "25006", "cannot take advisory locks in a transaction on a standby");
            err_hint(err, "Take them before other statements, or begin without READ ONLY.");
            return true;
        }
    return false;
}

/* In session mode what ties the session has to be on the kept link. True: it would not be. */
static bool ties_elsewhere(const struct client *c, const struct effects *e, struct err *err)
{
    if (!lent_keeps(c->sstate) || !lent_is_of_kept(e->pins))
        return false;
    err_set(err, "25006", "cannot tie the session to a transaction on a standby");
    err_hint(err, "Do it before other statements, or begin without READ ONLY.");
    return true;
}

static void err_of_tie(struct err *err)
{
    err_set(err, "0A000", "this statement would tie the session to a server connection");
    err_hint(err, "It leaves state in the server session that transaction pooling cannot move. "
                  "Use pool_mode = session, or set pin_on_session_state = on.");
}

static bool refuses_ties(const struct client *c)
{
    return !lent_keeps(c->sstate) && c->ss->conf->pin_on_session_state == CONF_PIN_ERROR;
}

/* Refuses what the pool's mode or pin_on_session_state does not allow. */
WARM static bool is_refused(
    struct client *c, const struct effects *e, const struct sql_facts *facts, struct err *err)
{
    bool is_open;
    uint32_t i;

    err_clear(err);
    if (is_away(c) && (is_in_vain(facts, err) || ties_elsewhere(c, e, err)))
        return true;
    if (c->sstate->mode == CONF_POOL_STATEMENT && begins_transaction(facts, &is_open) && is_open) {
        err_set(err, "08P01", "transaction blocks not allowed in statement pooling mode");
        err_hint(err, "Use pool_mode = transaction, or one string that begins and ends the block.");
        err->severity = ERR_FATAL; /* a script that goes on would commit each statement by itself */
        return true;
    }
    for (i = 0; i < facts->nstmts; i++)
        if (facts->stmts[i].kind == SQL_PREPARE &&
            names_are_full(&c->sstate->names, c->ss->conf->client_prepared_memory_bytes,
                facts->stmts[i].len, err))
            return true;
    if (e->pins != 0 && refuses_ties(c)) {
        err_of_tie(err);
        return true;
    }
    return false;
}

/* A statement that is refused here fails its transaction, too. */
static void fail_transaction(struct client *c)
{
    struct sstate *s = c->sstate;
    struct feed_run run = {0};

    if (s->tx == SSTATE_TX_VIRTUAL) {
        s->tx = SSTATE_TX_LOST;
        buf_empty(&s->errand->begin);
    } else if (s->phase == PHASE_ATTACHED && c->link->tx_status == 'T') {
        lent_put_own_query(c, &run, slice_of_str(refused_query));
        c->link->must_clean = true;
        feed_flush(c, &run);
    }
}

/* An error in answer to a query that goes no further. */
static enum feed_step tell_query(struct client *c, const struct err *err)
{
    struct buf out = {0};

    fail_transaction(c);
    wire_put_err(&out, err);
    if (sstate_is_busy(c)) /* that is under way, and says it */
        expect_hold(&c->link->expect);
    else
        wire_put_ready(&out, sstate_tx_status(c));
    client_send(c, &out);
    client_note_idle(c);
    return FEED_LOCAL;
}

static enum feed_step tell_extended(struct client *c, const struct err *err)
{
    struct buf out = {0};

    fail_transaction(c);
    wire_put_err(&out, err);
    client_send(c, &out);
    c->local_part = LOCAL_PART_FAILED;
    return FEED_LOCAL;
}

/* In statement mode a string may have a transaction of its own; should it fail in it, or should
 * what was not looked at begin one, that is ended before the client is told that all is done. */
static void watch_transaction(struct client *c, const struct sql_facts *facts)
{
    struct sstate *s = c->sstate;
    bool is_open;

    if (s->mode != CONF_POOL_STATEMENT ||
        (facts != NULL && facts->nstmts > 0 && !begins_transaction(facts, &is_open)))
        return;
    exchange_holds(&s->exchange);
    expect_hold(&c->link->expect);
}

/* A transaction died with its link while nothing was under way: the next statement is told so,
 * unless it ends the transaction anyhow. */
static bool must_tell_lost(struct client *c, const struct sql_facts *facts, struct err *err)
{
    struct sstate *s = c->sstate;

    if (s->tx == SSTATE_TX_UNTOLD && facts != NULL && facts->nstmts == 1 &&
        facts->stmts[0].kind == SQL_ROLLBACK && facts->stmts[0].tx.op == SQL_TX_ROLLBACK)
        sstate_tx_tell(s);
    if (s->tx == SSTATE_TX_UNTOLD)
        client_lost_err(s->errand->lost_words, err);
    return s->tx == SSTATE_TX_UNTOLD;
}

/* `found` may be NULL. */
HOT static void note_query(struct client *c, struct slice sql, uint32_t traits,
    const struct plan_found *found, bool is_logged)
{
    struct sstate *s = c->sstate;
    /* A simple query takes the unnamed one with it, but one that is malformed does not. */
    bool takes = (s->names.unnamed != NULL || s->errand->way.npending > 0) &&
                 memchr(sql.p, '\0', sql.n) == NULL;
    bool may_be_skipped = c->server_batch && takes && s->names.unnamed != NULL;

    if (c->ss->results != NULL)
        c->ss->results->sent(c, sql, plan_facts_still(c->ss, sql, found));
    if (may_be_skipped)
        lent_names_unnamed(c, NULL);
    else if (takes && !c->server_batch)
        names_pending_overtaken(&c->sstate->errand->way);
    if (takes)
        prep_unref(&s->names.unnamed);
    s->errand->way.unnamed_epoch = 0;
    s->errand->last_portal = 0; /* a Query has one of its own in place of the unnamed one */
    s->is_counted = false;
    s->ran_made = s->ran_made || (traits & EFFECTS_RUNS_CODE) != 0;
    lent_expect_end(c, (may_be_skipped ? OP_QUERY | OP_NOTE : OP_QUERY) | s->errand->op_flags);
    count_statement(
        c->ss, c->link->pool->cluster_node, (enum count_kind)(traits & EFFECTS_COUNT_KIND));
    if (s->errand->sending == SENDING_QUICK_UNTOLD)
        client_note_begun(c, sql);
    else if ((traits & (EFFECTS_IS_PLAIN | EFFECTS_IS_TX_WORD)) != 0)
        client_note_sent(c, sql);
    else
        client_note_statement(c, sql);
    if (s->errand->sending == SENDING_QUICK_UNTOLD)
        s->errand->sending = SENDING_QUICK;
    if (is_logged)
        client_log_statement(c, "", sql);
}

/* A query too long to be looked at. */
static enum feed_step unread_query(
    struct client *c, struct feed_run *run, struct slice sql, struct slice msg)
{
    const struct sql_facts *none = NULL;
    enum feed_step step = exchange_begin_query(c, run, sql, msg, &none, true);
    enum count_kind kind = count_kind_of(sql);

    if (step != FEED_PASS)
        return step;
    /* Bulk inserts and the like are believed to be what they begin with; should more be in them,
     * the link does not keep it. */
    if (count_is_of_rows(kind))
        c->link->must_clean = true;
    else
        follow_types_note_unread(c);
    if (c->ss->results != NULL)
        c->ss->results->sent(c, slice_of(NULL, 0), NULL);
    c->kind->routed(c, ROUTED_UNREAD);
    watch_transaction(c, NULL);
    note_query(c, sql, (uint32_t)kind | EFFECTS_RUNS_CODE, NULL, client_log_statements(c));
    return FEED_PASS;
}

/* After an error in a sequence everything is skipped up to its Sync. */
static bool is_skipped(const struct client *c)
{
    return c->local_part == LOCAL_PART_FAILED ||
           (c->sstate->phase == PHASE_ATTACHED && c->link->expect.skipping);
}

/* When all that was sent before is answered; a COPY would wait for its data. */
static enum feed_step refuse(struct client *c, const struct err *err,
    enum feed_step (*tell)(struct client *c, const struct err *err))
{
    lent_stop_asking(c);
    if (sstate_is_busy(c) &&
        (err->severity != ERR_FATAL || c->link == NULL || !expect_is_copying(&c->link->expect)))
        return FEED_PARK;
    if (err->severity == ERR_FATAL) {
        CLIENT_LOG(c, LVL_LOG, "session of user \"%s\" ended: %s", c->pool->names, err->msg);
        client_end(c, err);
        return FEED_STOP;
    }
    sstate_tx_tell(c->sstate);
    return tell(c, err);
}

/* What has to be looked at closely. */
WARM APART static enum feed_step query_closely(struct client *c, struct feed_run *run,
    struct slice msg, struct slice sql, const struct plan_found *found, uint32_t traits)
{
    const struct sql_facts *facts = found->facts;
    struct effects e;
    struct err err;
    enum feed_step step;
    bool is_plain = (traits & EFFECTS_IS_PLAIN) != 0;
    bool is_known; /* what it does to the session */

    if (!is_plain && follow_virtual_query(c, sql, facts))
        return FEED_LOCAL;
    memset(&e, 0, sizeof e);
    if ((traits & EFFECTS_IS_TX_WORD) != 0 && c->sstate->mode != CONF_POOL_STATEMENT)
        e.changes = SSTATE_CHANGES_TX;
    is_known = is_plain || e.changes != SSTATE_CHANGES_NOTHING;
    if (!is_known)
        effects_here(c, facts, sql, &e);
    if (must_tell_lost(c, facts, &err) || (!is_known && is_refused(c, &e, facts, &err)))
        return refuse(c, &err, tell_query);
    step = exchange_begin_query(c, run, sql, msg, &facts,
        e.changes != SSTATE_CHANGES_NOTHING || follow_sql_go_alone(c, facts));
    if (step != FEED_PASS)
        return step;
    if (!is_known)
        follow_sql_before(c, run, facts);
    if (!is_plain)
        follow_types_note(c, sql, facts);
    follow_note(c, sql, facts);
    c->kind->sent(c, sql);
    watch_transaction(c, facts);
    note_query(c, sql, traits, found, client_log_statements(c));
    return FEED_PASS;
}

HOT static enum feed_step on_query(
    struct client *c, struct feed_run *run, struct slice msg, bool is_whole, bool was_idle)
{
    struct slice sql = message_body(msg);
    const struct sql_facts *facts;
    struct plan_found found;
    enum local_verdict v;
    enum feed_step step;
    uint32_t traits;
    bool is_plain;

    if (is_skipped(c))
        return FEED_SKIP;
    if (!is_whole)
        return unread_query(c, run, sql, msg);
    if (sql.n > 0 && sql.p[sql.n - 1] == '\0')
        sql.n--;
    if (client_local_is_likely(sql)) {
        v = client_local_query(c, sql);
        if (v != LOCAL_NO)
            return feed_of_verdict(v);
    }
    facts = plan_facts(c->ss, sql);
    found = plan_found_of(c->ss, facts);
    traits = effects_traits(facts, sql);
    is_plain = (traits & EFFECTS_IS_PLAIN) != 0;
    if (c->ss->results != NULL) {
        step = c->ss->results->query(c, sql, facts);
        if (step != FEED_AGAIN)
            return step;
        facts = plan_facts_still(c->ss, sql, &found);
        found = plan_found_of(c->ss, facts);
    }
    if (is_plain && was_idle) {
        step = exchange_quick_query(c, run, sql, msg, facts);
        if (step == FEED_PASS)
            note_query(c, sql, traits, &found, false);
        if (step != FEED_AGAIN)
            return step;
    } else if (is_plain && c->kind->goes_on(c, sql)) {
        note_query(c, sql, traits, &found, client_log_statements(c));
        return FEED_PASS;
    }
    return query_closely(c, run, msg, sql, &found, traits);
}

/* Sync where nothing of its sequence went to a server. */
static enum feed_step lone_sync(struct client *c)
{
    struct buf out = {0};

    wire_put_ready(&out, sstate_tx_status(c));
    client_send(c, &out);
    client_note_idle(c);
    return FEED_LOCAL;
}

static enum feed_step send_extended(
    struct client *c, struct feed_run *run, const struct feed_msg *m)
{
    switch (m->type) {
    case FE_PARSE:
        return m->is_whole ? follow_parse(c, run, m->msg) : follow_parse_unread(c, run, m->msg);
    case FE_BIND:
        return follow_bind(c, run, m->msg, m->is_whole);
    case FE_DESCRIBE:
        return follow_describe(c, run, m->msg);
    case FE_CLOSE:
        return follow_close(c, run, m->msg);
    case FE_EXECUTE:
        if (c->sstate->errand->portals != NULL)
            follow_execute(c, m->msg);
        link_expect(c->link, OP_EXECUTE | c->sstate->errand->op_flags);
        return FEED_PASS;
    case FE_FLUSH:
        if (feed_is_bad_flush(c->link, m->type, m->msg))
            link_expect(c->link, OP_CLOSE);
        return c->sstate->errand->sending == SENDING_CUT ? feed_cut(c, run) : FEED_PASS;
    default:
        if ((c->sstate->pins & 1U << PIN_REASON_UNKNOWN) != 0)
            watch_transaction(c, NULL); /* a Parse that was too long to be looked at, say */
        lent_expect_end(c, OP_SYNC);
        return FEED_PASS;
    }
}

static void note_extended(struct client *c, const struct feed_msg *m)
{
    if (m->type == FE_BIND && c->ss->results != NULL)
        c->ss->results->bound(c, follow_bound_prep(c, m->body), follow_bound_values(m->body));
    if (m->type == FE_EXECUTE) {
        client_stats_on_query(c);
        count_statement(c->ss, c->link->pool->cluster_node, (enum count_kind)c->bound_count);
        client_note_statement(c, slice_of(NULL, 0));
    } else if (m->type == FE_PARSE && m->is_whole) {
        client_note_statement(c, feed_parse_sql(m->body));
    } else if (m->type == FE_SYNC) {
        stats_on_sent(&c->stats, loop_now_us(c->ss->loop));
    }
    if (client_log_statements(c))
        client_said(c, m->type, m->body);
}

/* Answers as a server would, which has to be asked nothing for it. */
static enum feed_step tell_bad_flush(struct client *c)
{
    struct err err;

    if (sstate_is_busy(c))
        return FEED_PARK;
    err_clear(&err);
    err_set(&err, "08P01", "invalid message format");
    return tell_extended(c, &err);
}

/* What is executed with the values of `bind`, or at best when there are none yet. */
static bool bound_is_refused(
    struct client *c, struct slice sql, struct slice types, struct slice bind, struct err *err)
{
    const struct sql_facts *facts = plan_facts(c->ss, sql);
    struct buf bound = {0};
    struct effects e;
    bool is;

    if (sstate_bound_may_matter(sql) && sstate_bound_sql(facts, sql, types, bind, &bound)) {
        sql = buf_slice(&bound);
        facts = plan_facts(c->ss, sql);
    }
    effects_here(c, facts, sql, &e);
    is = is_refused(c, &e, facts, err);
    buf_free(&bound);
    return is;
}

/* Parse of something that the mode or the policy refuses. */
static bool parse_is_refused(struct client *c, struct slice body, struct err *err)
{
    struct slice sql = feed_parse_sql(body);
    struct slice types = slice_of("", 0);

    if (c->sstate->mode != CONF_POOL_STATEMENT && !is_away(c) && !refuses_ties(c) &&
        !names_are_full(&c->sstate->names, c->ss->conf->client_prepared_memory_bytes, sql.n, err))
        return false;
    if (sql.n > 0)
        types = slice_of(sql.p + sql.n + 1, (size_t)(body.p + body.n - (sql.p + sql.n + 1)));
    return bound_is_refused(c, sql, types, slice_of(NULL, 0), err);
}

static bool bind_is_refused(struct client *c, struct slice body, struct err *err)
{
    const struct prep *p = follow_bound_prep(c, body);

    if (p == NULL || (!p->has_effects && !is_away(c)))
        return false;
    return bound_is_refused(c, prep_sql(p), prep_types(p), body, err);
}

/* What is skipped behind an error gets no reply: its fate is known at once. The same is true of
 * what was answered here, when nothing of the sequence has gone to the server yet. */
static bool is_full_of_pending(struct client *c)
{
    if (c->sstate->errand->way.npending < NAMES_MAX_PENDING)
        return false;
    if (c->link->expect.skipping)
        lent_names_settle(c);
    else if (c->link->expect.nnotes > 0)
        lent_names_settle_told(c, c->link);
    return c->sstate->errand->way.npending >= NAMES_MAX_PENDING;
}

/* What runs changes the session, or its end is told later, when all is right: it must remain the
 * last that is owed, for it is settled when nothing is. */
static bool is_to_end_alone(const struct client *c)
{
    return (c->link->expect.holds || c->sstate->exchange.hold != EXCHANGE_FLOWS) &&
           c->link->expect.len > 0 && !expect_is_copying(&c->link->expect) &&
           !expect_is_stuck(&c->link->expect);
}

/* A Query in the middle of a sequence ends with a ReadyForQuery of its own: an error of it is none
 * of the messages behind it, and what it changed stays whatever becomes of them. So they wait. */
static bool is_behind_a_query(const struct client *c)
{
    const struct expect *e = &c->link->expect;
    unsigned kind = OP_COPY_END;
    unsigned i = e->len;

    while (i > 0 && kind == OP_COPY_END)
        kind = expect_peek(e, --i) & OP_MASK;
    return (kind == OP_QUERY || kind == OP_FUNCTION_CALL) && !expect_is_copying(e);
}

/* What it means depends on whether a PREPARE or DEALLOCATE in front of it works. */
static bool is_behind_a_word(const struct client *c, char type)
{
    return c->sstate->errand->way.words != NULL && !c->link->expect.skipping &&
           (type == FE_PARSE || type == FE_BIND || type == FE_DESCRIBE || type == FE_CLOSE);
}

/* A message of the extended protocol that needs no server, or not now. FEED_PASS: none of that. */
static enum feed_step answer_extended(struct client *c, const struct feed_msg *m)
{
    struct errand *t = c->sstate->errand;
    enum local_verdict v = LOCAL_NO;

    if (c->local_part == LOCAL_PART_FAILED && (m->type != FE_SYNC || !m->is_whole))
        return FEED_SKIP;
    if (m->is_whole && (m->type == FE_PARSE || m->type == FE_SYNC || client_has_console(c) ||
                           c->local_part != LOCAL_PART_NONE))
        v = client_local_extended(c, m->type, m->body);
    if (v != LOCAL_NO)
        return feed_of_verdict(v);
    if (m->type == FE_BIND && !m->is_whole && follow_bind_wants_whole(c, m->msg))
        return FEED_CARRY;
    if (t->nskip > 0) {
        t->nskip--;
        return FEED_LOCAL; /* answered with the first of its sequence */
    }
    return (m->type == FE_PARSE || m->type == FE_BIND) && follow_virtual_word(c, m->msg.p, m->end)
               ? FEED_LOCAL
               : FEED_PASS;
}

static bool extended_is_refused(struct client *c, const struct feed_msg *m, struct err *err)
{
    if (m->type == FE_PARSE)
        return m->is_whole && parse_is_refused(c, m->body, err);
    return m->type == FE_BIND && (is_away(c) || refuses_ties(c)) &&
           bind_is_refused(c, m->body, err);
}

/* Passes a message to the server, or in its place `refusal`. */
static enum feed_step pass_extended(
    struct client *c, struct feed_run *run, const struct feed_msg *m, const struct err *refusal)
{
    enum feed_step step;

    if (refusal != NULL && refusal->severity == ERR_FATAL && !c->link->expect.skipping) {
        feed_flush(c, run); /* what goes before it is told first, and undone then: no Sync came */
        return refuse(c, refusal, tell_extended);
    }
    if (refusal != NULL)
        step = follow_refuse(c, run, refusal);
    else if (m->type == FE_BIND && m->is_whole && follow_columns_differ(c, m->msg, m->end))
        step = follow_columns_refuse(c, run);
    else
        step = send_extended(c, run, m);
    if (step == FEED_CARRY)
        return step;
    if (m->type != FE_FLUSH)
        c->server_batch = m->type != FE_SYNC;
    note_extended(c, m);
    return step;
}

/* Sync or Flush with nothing of a sequence in front of it, on a link: it begins nothing, and within
 * a COPY it must not wait. */
static enum feed_step end_nothing(struct client *c, const struct feed_msg *m)
{
    const struct sstate *s = c->sstate;

    if (s->again.what != AGAIN_NO || s->errand->place == PLACE_OUT ||
        s->errand->sending == SENDING_CUT || is_to_end_alone(c))
        return FEED_PARK;
    if (m->type == FE_SYNC) {
        leg_stop_keeping(c);
        lent_expect_end(c, OP_SYNC);
    } else if (feed_is_bad_flush(c->link, m->type, m->msg)) {
        link_expect(c->link, OP_CLOSE);
        c->server_batch = true;
    }
    return FEED_PASS;
}

/* The first message of a sequence. */
static enum feed_step begin_sequence(
    struct client *c, struct feed_run *run, const struct feed_msg *m)
{
    struct err err;
    enum feed_step step;

    if (must_tell_lost(c, NULL, &err) || extended_is_refused(c, m, &err))
        return refuse(c, &err, tell_extended);
    if (m->type == FE_PARSE && m->is_whole && m->body.n > 0 && m->body.p[0] != '\0' &&
        follow_known_parsed(c, m->msg, m->end)) {
        note_extended(c, m);
        return FEED_LOCAL;
    }
    if (m->type == FE_CLOSE && m->is_whole && follow_known_closed(c, m->msg.p, m->end))
        return FEED_LOCAL;
    step = exchange_begin_batch(c, run, m->msg.p, m->end);
    return step == FEED_PASS ? pass_extended(c, run, m, NULL) : step;
}

static enum feed_step on_extended(struct client *c, struct feed_run *run, const struct feed_msg *m)
{
    const struct sstate *s = c->sstate;
    bool is_empty = m->msg.n == PROTO_HEADER_BYTES;
    enum feed_step step = answer_extended(c, m);
    struct err err;

    if (step != FEED_PASS)
        return step;
    if (c->server_batch) {
        if (s->phase != PHASE_ATTACHED || is_full_of_pending(c) || is_behind_a_query(c) ||
            is_behind_a_word(c, m->type))
            return FEED_PARK;
        return pass_extended(
            c, run, m, m->is_whole && extended_is_refused(c, m, &err) ? &err : NULL);
    }
    if (m->type == FE_FLUSH && s->phase != PHASE_ATTACHED)
        return is_empty ? FEED_LOCAL : tell_bad_flush(c);
    if (m->type == FE_SYNC && s->phase <= PHASE_WAITING && is_empty)
        return lone_sync(c);
    if ((m->type == FE_SYNC || m->type == FE_FLUSH) && s->phase == PHASE_ATTACHED)
        return end_nothing(c, m);
    return begin_sequence(c, run, m);
}

/* Functions from here on are not the same on all servers: somebody has made them. */
#define FIRST_MADE_OID 16384

/* set_config() and the functions that take advisory locks for the session, by the numbers that they
 * have on all servers. What others do is not known of SQL either. */
static bool function_ties(uint32_t oid)
{
    return oid == 2078 || (oid >= 2880 && oid <= 2883) || (oid >= 2886 && oid <= 2889);
}

static enum feed_step on_function_call(struct client *c, struct feed_run *run, struct slice msg)
{
    const struct sql_facts *none = NULL;
    enum feed_step step;
    struct wire_reader r;
    struct err err;
    uint32_t function;
    bool ties;

    if (is_skipped(c))
        return FEED_SKIP;
    wire_reader_init(&r, message_body(msg));
    function = wire_get_u32(&r);
    if (r.bad && msg.n < message_bytes(msg.p))
        return FEED_CARRY;
    ties = !r.bad && function_ties(function);
    if (ties && refuses_ties(c)) {
        err_clear(&err);
        err_of_tie(&err);
        return refuse(c, &err, tell_query);
    }
    step = exchange_begin_query(c, run, slice_of("", 0), msg, &none, ties);
    if (step != FEED_PASS)
        return step;
    if (ties)
        follow_note_unread(c);
    if (c->ss->results != NULL)
        c->ss->results->sent(c, slice_of(NULL, 0), NULL);
    c->sstate->is_counted = false;
    c->sstate->ran_made = c->sstate->ran_made || function >= FIRST_MADE_OID;
    c->kind->routed(c, function < FIRST_MADE_OID ? ROUTED_CALL : ROUTED_CODE);
    lent_expect_end(c, OP_FUNCTION_CALL);
    client_note_statement(c, slice_of_str("<function call>"));
    return FEED_PASS;
}

/* A message of the data of a COPY, or its end. */
static enum feed_step on_copy(struct client *c, char type)
{
    struct sstate *s = c->sstate;

    if (s->phase != PHASE_ATTACHED)
        return FEED_SKIP; /* nothing copies: ignored, as the server does */
    if (s->again.what != AGAIN_NO)
        return FEED_PARK; /* the COPY is made again, and this goes behind it */
    if (s->errand->retry.len > 0)
        leg_stop_keeping(c); /* it is not alone any more */
    if (type != FE_COPY_DATA) {
        client_note_copy_end(c, c->link);
        link_expect(c->link, OP_COPY_END);
    }
    return FEED_PASS;
}

static enum feed_step on_unknown(struct client *c, struct feed_run *run, char type)
{
    if (c->sstate->phase == PHASE_ATTACHED && !expect_is_quiet(&c->link->expect) &&
        !c->link->expect.skipping)
        return FEED_PARK;
    feed_flush(c, run);
    client_end_text(c, "08P01", "invalid frontend message type %d", (unsigned char)type);
    return FEED_STOP;
}

/* The link died in a sequence with all of it answered, and the client was told: that is the error
 * of this message. Only a Query has an end of its own. */
COLD static bool ends_what_was_lost(struct client *c, char type)
{
    bool is_query = type == FE_QUERY || type == FE_FUNCTION_CALL;

    if (type != FE_FLUSH)
        c->local_part = is_query ? LOCAL_PART_NONE : LOCAL_PART_FAILED;
    return is_query;
}

HOT enum feed_step feed_followed_message(struct client *c, struct feed_run *run, char type,
    struct slice msg, bool is_whole, const char *end)
{
    struct feed_msg m = {type, is_whole, msg, message_body(msg), end};
    bool was_idle = c->sstate->errand == NULL;

    errand_begin(c);
    if (c->local_part == LOCAL_PART_LOST && ends_what_was_lost(c, type))
        return lone_sync(c);
    if (c->sstate->errand->sending != SENDING_CUT)
        c->sstate->errand->sending = SENDING_AS_IT_COMES;
    if (c->sstate->phase == PHASE_LEAVING) {
        feed_flush(c, run);   /* the end of a message that began there */
        leg_detach_if_due(c); /* what follows may belong elsewhere */
    }
    switch (type) {
    case FE_COPY_DATA:
    case FE_COPY_DONE:
    case FE_COPY_FAIL:
        return on_copy(c, type);
    case FE_QUERY:
        return on_query(c, run, msg, is_whole, was_idle);
    case FE_PARSE:
    case FE_BIND:
    case FE_DESCRIBE:
    case FE_EXECUTE:
    case FE_CLOSE:
    case FE_SYNC:
    case FE_FLUSH:
        return on_extended(c, run, &m);
    case FE_FUNCTION_CALL:
        return on_function_call(c, run, msg);
    default:
        return on_unknown(c, run, type);
    }
}
