/* SPDX-License-Identifier: PostgreSQL
 * exchange_link.c: what a borrowed link says: bytes for the client, and that it is quiet, which is
 * when it is given back. Runs in: workers. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/errmsg.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "client/client_ddl_int.h"
#include "sstate_int.h"
#include "exchange/exchange_judge_int.h"
#include "follow/follow_columns_int.h"
#include "lent/lent_int.h"
#include "sstate/phase_int.h"

static void on_auth(void *owner, struct link *link, const char *msg, size_t n)
{
    struct client *c = owner;
    struct err err;

    if (message_is_auth_ok(msg, n))
        return;
    if (link->pool->cluster_node != c->pool->cluster_node) {
        exchange_avoid_no_login(c, link, NULL);
        leg_forget_loan(c);
        link_close(link);
        client_unpark(c);
        return;
    }
    err_clear(&err);
    err_set(&err, "08001", "node %d asks user \"%s\" for a password that pgpool does not know",
        link->pool->cluster_node, c->pool->names);
    err_hint(&err, "Put the user into pool_passwd, or set auth_query.");
    CLIENT_LOG(c, LVL_LOG, "%s", err.msg);
    leg_forget_loan(c);
    link_close(link);
    follow_fail_parked(c, &err);
}

static void on_login_done(void *owner, struct link *link)
{
    leg_on_opened(owner, link);
}

/* The server has no room: what is parked waits for another link. */
static bool on_refused(void *owner, struct link *link)
{
    struct client *c = owner;

    (void)link;
    leg_forget_loan(c);
    client_unpark(c);
    return true;
}

/* How much at the front of `p` belongs to no statement: what a server says between its error and
 * its ReadyForQuery, when nothing of the exchange is told and it is sent again; and notifications,
 * wherever they come. */
static size_t aside_bytes(const struct client *c, const struct link *link, const char *p, size_t n)
{
    if (c->sstate->again.what != AGAIN_NO)
        return n;
    return errmsg_notified(link->in_body, p, n);
}

static void tell(struct client *c, struct link *link, const char *p, size_t n)
{
    if (n == 0)
        return;
    if (c->sstate->errand->results != NULL)
        c->ss->results->seen(c, p, n);
    client_pass_reply(c, link, p, n);
    if (stream_lags(&c->stream) && c->sstate->errand->results != NULL)
        c->ss->results->seen(c, p, 0); /* the next ones may come only when it reads */
}

HOT static void exchange_on_bytes(void *owner, struct link *link, const char *p, size_t n)
{
    struct client *c = owner;
    struct sstate *s = c->sstate;
    size_t aside;

    if (link == s->kept && link != c->link) {
        lent_kept_on_bytes(c, link, p, n);
        return;
    }
    if (link != c->link || link->epoch != c->epoch) {
        (void)client_is_its_reply(c, link);
        return;
    }
    if (s->phase != PHASE_ATTACHED && link->phase == LINK_LOGIN)
        return; /* of a login that is not the client's */
    if (s->errand->retry.len > 0 && !s->again.reply_begun) {
        aside = aside_bytes(c, link, p, n);
        tell(c, link, p, aside);
        p += aside;
        n -= aside;
        if (n == 0)
            return;
        if (errmsg_is_no_answer(p, n)) {
            buf_put(&s->errand->early, p, n);
            return;
        }
        s->again.reply_begun = true; /* it is kept for what exchange_lost.c has to know of it */
        if (s->errand->early.len > 0)
            client_send(c, &s->errand->early);
    }
    tell(c, link, p, n);
}

/* What is parked asks again, unless its client wants it no more. */
static void go_on(struct client *c)
{
    if (c->sstate->errand->is_cancelled)
        follow_cancel_parked(c);
    else if (!follow_refuse_unsure(c))
        client_unpark(c);
}

/* Links that may refuse a client's settings before it is told so. */
#define UNFIT_LINKS 3

/* False: the session has ended, as it was tied to that link. */
static bool close_unfit(struct client *c, const struct err *err)
{
    struct sstate *s = c->sstate;
    struct link *link = c->link;
    bool is_tied = link == s->kept && sstate_is_tied(c);
    struct err reason = *err;

    if (link == s->kept)
        s->kept = NULL;
    leg_forget_loan(c);
    link_close(link);
    if (!is_tied)
        return true;
    reason.severity = ERR_FATAL;
    client_end(c, &reason);
    return false;
}

/* What others did on the link may be why: temp_buffers is fixed once a temporary table was used. */
static void on_refused_settings(struct client *c)
{
    struct sstate *s = c->sstate;
    bool is_unfit = c->link->uses > 1 && s->errand->nunfit < UNFIT_LINKS;
    struct err err;

    err_clear(&err);
    err_set(&err, "08006", "the session's settings could not be restored on node %d",
        c->link->pool->cluster_node);
    err_hint(&err, "Connect again.");
    err_detail(&err, "The server refuses a SET that it accepted before; its log says why.");
    s->errand->nunfit += is_unfit;
    if (!close_unfit(c, &err))
        return;
    if (is_unfit)
        go_on(c);
    else
        follow_fail_parked(c, &err);
}

/* Settings that might be refused were sent. */
static void on_synced(struct client *c)
{
    struct sstate *s = c->sstate;
    struct link *link = c->link;

    if (link_own_failed(link)) {
        on_refused_settings(c);
    } else if (s->phase == PHASE_ASK_SYNCING) {
        if (exchange_judge_ask_owed(c))
            return;
        /* The client's statement has no node yet: it is not for this one. */
        phase_goto(c, PHASE_ASKING);
        if (c->sstate->errand->results == NULL || !c->ss->results->ask_owed(c))
            plan_ask_missed(c);
    } else {
        phase_goto(c, PHASE_ATTACHED);
        client_unpark(c);
    }
}

static void on_asked(struct client *c)
{
    struct sstate *s = c->sstate;
    bool was_aside;

    if (c->sstate->errand->results != NULL && c->ss->results->asked(c)) {
        if (c->sstate->pins != 0) { /* the link is the session's, and stays with it */
            phase_goto(c, PHASE_ATTACHED);
            go_on(c);
            return;
        }
    } else {
        if (!s->errand->is_cancelled && plan_replay_goes_on(c))
            return;
        plan_ask_done(c, c->link);
        if (c->plan->doubts != NULL)
            plan_ask_missed(c);
        if (c->plan->asking != ASKING_NONE)
            return;
    }
    phase_goto(c, PHASE_ATTACHED);
    s->loan.is_fresh = true;
    was_aside = s->errand->home != NULL;
    leg_detach(c);
    if (was_aside && s->errand->is_cancelled)
        plan_aside_set(c); /* what is cancelled fails with its transaction */
    if (c->is_parked)
        go_on(c);
    else
        client_after_quiet(c); /* asked for a statement to come */
}

/* More parameters than any server reports. */
#define PARAMETERS_MAX 32

static int compare_names(const void *a, const void *b)
{
    const struct slice *x = a;
    const struct slice *y = b;
    int d = strncasecmp(x->p, y->p, x->n < y->n ? x->n : y->n);

    return d != 0 ? d : (x->n > y->n) - (x->n < y->n);
}

/* What was held back: parameters that are not what the client was told, and ReadyForQuery. */
static void say_ready(struct client *c)
{
    struct sstate *s = c->sstate;
    struct buf out = {0};
    struct slice name;
    struct slice value;
    struct slice told;
    struct slice changed[PARAMETERS_MAX];
    uint32_t at = 0;
    unsigned n = 0;
    unsigned i;

    c->link->loan.tells = LINK_TELLS_HIS;
    while (!paramset_is_empty(&s->errand->told) && n < PARAMETERS_MAX &&
           paramset_next(&c->link->reported, &at, &name, &value)) {
        told = paramset_get(&s->errand->told, name);
        if (told.p != NULL && !slice_eq(told, value))
            changed[n++] = name;
    }
    qsort(changed, n, sizeof changed[0], compare_names); /* the server's order */
    for (i = 0; i < n; i++)
        wire_put_parameter_status(&out, changed[i], paramset_get(&c->link->reported, changed[i]));
    paramset_free(&s->errand->told);
    wire_put_ready(&out, sstate_tx_status(c));
    client_send(c, &out);
}

/* What the router did not know of in the transaction is asked now that it is over. */
static bool asks_missed(struct client *c)
{
    struct sstate *s = c->sstate;

    if ((c->plan->questions == NULL && c->plan->doubts == NULL) || s->errand->home != NULL ||
        c->body_left > 0 || c->server_batch || c->link->vars != s->vars.client ||
        c->link->pool->cluster_node != c->pool->cluster_node)
        return false;
    c->link->must_clean =
        c->link->must_clean || link_own_failed(c->link); /* a question begins anew */
    plan_ask_missed(c);
    if (c->plan->asking == ASKING_NONE)
        return false;
    phase_goto(c, PHASE_ASKING);
    return true;
}

/* The client has what it asked for. Keeps the link or gives it back, and goes on. */
WARM static void finish(struct client *c, bool owes_end)
{
    if (owes_end)
        say_ready(c);
    leg_show_pins(c);
    if (c->link->tx_status == 'I' && !lent_stays(c->sstate) && !asks_missed(c) &&
        (c->sstate->errand->results == NULL || !c->ss->results->ask_behind(c)))
        leg_leave(c);
    client_after_quiet(c);
}

/* Statement mode: a transaction is open where none may be, or failed. Of one that failed a client
 * who is told the end now hears no more. */
static void end_transaction(struct client *c, bool owes_end)
{
    struct feed_run run = {0};

    if (!owes_end || c->link->tx_status == 'T') {
        client_end_text(c, "08P01", "transaction blocks not allowed in statement pooling mode");
        return;
    }
    lent_put_own_query(c, &run, slice_of_str("ROLLBACK"));
    follow_roll_back(c);
    phase_goto(c, PHASE_ENDING);
    c->link->loan.tells = LINK_TELLS_NOTHING; /* what it undoes is told with the end */
    feed_flush(c, &run);
}

static void on_repaired(struct client *c)
{
    struct sstate *s = c->sstate;
    bool owes_end = s->phase == PHASE_ENDING;

    if (s->mode == CONF_POOL_STATEMENT && c->link->tx_status == 'E' &&
        s->errand->mend.tries++ < SSTATE_MAX_REPAIRS) {
        end_transaction(c, owes_end); /* it was cut short */
        return;
    }
    if (leg_repair_again(c))
        return;
    phase_goto(c, PHASE_ATTACHED);
    finish(c, owes_end);
}

/* The stale plans go, and the sequence is sent again. */
static void replan(struct client *c)
{
    struct sstate *s = c->sstate;
    struct feed_run run = {0};

    s->again.what = AGAIN_NO;
    s->again.may_replan = false; /* once is enough */
    (void)expect_take_hold(&c->link->expect);
    if (s->tx == SSTATE_TX_BEGUN)
        lent_put_own_query(c, &run, slice_of_str("ROLLBACK"));
    follow_replan(c, &run, buf_slice(&s->errand->retry));
    if (s->tx == SSTATE_TX_BEGUN)
        follow_virtual_put(c, &run);
    feed_flush(c, &run);
    leg_send_again(c);
}

static void on_exchange_over(struct client *c)
{
    struct sstate *s = c->sstate;
    bool failed = s->exchange.saw_error;
    bool was_cut = s->errand->sending == SENDING_CUT;
    bool owes_end;

    if (exchange_quick_ends(c))
        return;
    if (s->loan.doubt == LOAN_CLOSES)
        s->loan.doubt = failed ? LOAN_MAY_HAVE : LOAN_SURE;
    s->errand->way.unloaded = NULL;
    if (s->again.what != AGAIN_NO)
        lent_names_undo(c);
    s->errand->sending = SENDING_AS_IT_COMES;
    lent_names_settle(c);
    follow_settle(c);
    if (s->again.what == AGAIN_REPLANNED) {
        replan(c);
        return;
    }
    if (s->again.what == AGAIN_ELSEWHERE) {
        s->again.what = AGAIN_NO;
        (void)expect_take_hold(&c->link->expect);
        exchange_send_later(c);
        return;
    }
    if (leg_away_over(c, failed, was_cut))
        return;
    if (was_cut && failed)
        c->local_part = LOCAL_PART_FAILED; /* up to the client's own Sync */
    client_send(c, &s->errand->early);     /* ReadyForQuery may be held back */
    s->errand->nresent = 0;
    s->errand->place = PLACE_HOME;
    mem_free(s->errand->refusal);
    s->errand->refusal = NULL;
    buf_empty(&s->errand->retry);
    if (s->tx == SSTATE_TX_BEGUN) {
        buf_empty(&s->errand->begin);
        s->tx = SSTATE_TX_OF_LINK;
    }
    s->again = (struct exchange_again){0};
    c->server_batch = false;
    owes_end = expect_take_hold(&c->link->expect);
    s->errand->op_flags = 0;
    client_note_idle(c);
    c->link->ready_as = 0;
    c->kind->routed(c, ROUTED_SETTLED);
    follow_types_settle(c, c->link->tx_status);
    if (s->mode == CONF_POOL_STATEMENT && c->link->tx_status != 'I') {
        if (feed_end_ignored(c))
            end_transaction(c, owes_end);
        return;
    }
    if ((sstate_is_reset(s) || s->look_at_pins || !loan_is_sure(&s->loan)) &&
        (!feed_end_ignored(c) || leg_repair(c, owes_end ? PHASE_ENDING : PHASE_REPAIRING)))
        return;
    finish(c, owes_end);
}

HOT static void exchange_on_quiet(void *owner, struct link *link)
{
    struct client *c = owner;

    (void)link;
    switch ((enum phase)c->sstate->phase) {
    case PHASE_SYNCING:
    case PHASE_ASK_SYNCING:
        if (c->phase == CL_LOGIN)
            exchange_login_synced(c);
        else
            on_synced(c);
        break;
    case PHASE_ASKING:
        on_asked(c);
        break;
    case PHASE_LOOKING:
        follow_columns_asked(c);
        break;
    case PHASE_JUDGING:
    case PHASE_JUDGING_OWN:
        exchange_judged(c);
        break;
    case PHASE_REPAIRING:
    case PHASE_ENDING:
        on_repaired(c);
        break;
    default:
        if (c->sstate->errand->results != NULL)
            c->ss->results->over(
                c, !c->sstate->exchange.saw_error && c->sstate->again.what == AGAIN_NO);
        on_exchange_over(c);
        break;
    }
    errand_end(c);
}

static void on_settled(void *owner, struct link *link)
{
    struct client *c = owner;

    if (link != c->link)
        return; /* the kept one, which has said something by itself */
    if (phase_is_judging((enum phase)c->sstate->phase)) {
        exchange_judged(c);
        errand_end(c);
        return;
    }
    if (c->sends == CLIENT_HAS_SENT_ALL) {
        client_leave(c);
        return;
    }
    if (c->sstate->errand->way.npending > 0)
        lent_names_settle(c);
    if (c->is_parked)
        client_unpark(c);
}

/* A Sync behind what changes the session was parked, and the data of the COPY behind it; or what
 * would wait for the end of replies that nobody can count any more. */
static void on_no_wait(void *owner, struct link *link)
{
    struct client *c = owner;

    if (link != c->link)
        return;
    client_goodbye_on_no_wait(c, link);
    if (c->is_parked && (expect_is_copying(&link->expect) || link->expect.lost))
        client_unpark(c);
}

WARM static void on_tag(void *owner, struct link *link, struct slice tag)
{
    struct client *c = owner;

    if (!expect_head_is_ours(&link->expect))
        follow_note_tag(c, tag);
}

static bool is_fatal(const struct errmsg *m)
{
    return slice_eq_str(m->severity, "FATAL") || slice_eq_str(m->severity, "PANIC");
}

/* An error that speaks of a statement by the name it has on links: the client knows it by another.
 * True when it was sent. */
static bool rename_statement(struct client *c, struct link *link, struct slice msg)
{
    const char *found = memmem(msg.p, msg.n, "\"pgp_", 5);
    struct slice name;
    struct buf out = {0};
    const char *rest;

    if (found == NULL || (size_t)(msg.p + msg.n - found) < PREP_NAME_BYTES + 2)
        return false;
    name = names_of_content(&c->sstate->errand->way, found + 1);
    if (name.p == NULL)
        return false;
    rest = found + 1 + PREP_NAME_BYTES;
    buf_put_byte(&out, msg.p[0]);
    buf_put_u32(&out, (uint32_t)(msg.n - 1 - PREP_NAME_BYTES + name.n));
    buf_put(&out, msg.p + PROTO_HEADER_BYTES, (size_t)(found + 1 - msg.p) - PROTO_HEADER_BYTES);
    buf_put(&out, name.p, name.n);
    buf_put(&out, rest, (size_t)(msg.p + msg.n - rest));
    exchange_on_bytes(c, link, out.data, out.len);
    buf_free(&out);
    return true;
}

/* A write met a server that takes none: it was not done, and its place is elsewhere. Tried again
 * once, and as long as a primary is being replaced. */
static bool is_no_primary(struct client *c, const struct link *link, const struct errmsg *m)
{
    const struct sstate *s = c->sstate;
    bool tried = s->errand->nresent > 0;

    if (!slice_eq_str(m->sqlstate, "25006") || !leg_may_resend(c) || s->again.reply_begun ||
        sstate_is_tied(c) || link->pool->cluster_node != c->pool->cluster_node ||
        varset_get(s->vars.client, slice_of_str("default_transaction_read_only")).p != NULL ||
        !plan_again_is_whole(c, buf_slice(&s->errand->retry)))
        return false;
    (void)view_refresh(c->ss->env->shm, &c->ss->view);
    return !tried || view_must_hold_writes(&c->ss->view) ||
           view_write_node(&c->ss->view) != link->pool->cluster_node;
}

static bool is_of_stale_plan(const struct errmsg *m)
{
    static const char routine[] = "RRevalidateCachedQuery";

    return slice_eq_str(m->sqlstate, "0A000") &&
           memmem(m->whole.p, m->whole.n, routine, sizeof routine) != NULL;
}

/* The result of a prepared statement has other columns by now. Outside of a transaction, if the
 * client has seen nothing of the sequence and asks for the columns in it, a new plan will do. */
static bool is_stale_plan(struct client *c, const struct errmsg *m)
{
    const struct sstate *s = c->sstate;
    bool is_of_stale_types =
        follow_types_are_stale(c, m, s->again.may_replan && follow_parses_all(c));

    return s->again.may_replan && (is_of_stale_plan(m) || is_of_stale_types) &&
           !s->again.reply_begun && !follow_columns_are_relied_on(c);
}

/* The server was made to fail. */
static bool is_refusal(const struct errmsg *m)
{
    return slice_eq_str(m->sqlstate, "42883") &&
           memmem(m->whole.p, m->whole.n, REFUSED_FUNCTION, sizeof REFUSED_FUNCTION - 1) != NULL;
}

/* The statement was refused here, and the server made to fail in its place. */
static bool tell_refusal(struct client *c, struct link *link, const struct errmsg *m)
{
    struct sstate *s = c->sstate;
    struct buf out = {0};

    if (s->errand->refusal == NULL || !is_refusal(m))
        return false;
    if (!follow_columns_put_refusal(&out, s->errand->refusal))
        wire_put_err(&out, s->errand->refusal);
    exchange_on_bytes(c, link, out.data, out.len);
    buf_free(&out);
    return true;
}

static void keep_words(struct sstate *s, const struct errmsg *m)
{
    if (s->errand->last_words == NULL)
        s->errand->last_words = mem_alloc(sizeof *s->errand->last_words);
    err_clear(s->errand->last_words);
    errmsg_to_err(m, s->errand->last_words);
}

/* Replay on a standby needed what the read holds: made again elsewhere, as when the link dies. */
static bool yields(struct client *c, struct link *link, const struct errmsg *m)
{
    if (!slice_eq_str(m->sqlstate, PLAN_CONFLICT) || c->sstate->errand->place == PLACE_OUT ||
        link->pool->cluster_node == c->pool->cluster_node || !exchange_may_send_again(c, link))
        return false;
    CLIENT_LOG(c, LVL_LOG, "node %d gives up a read of user \"%s\": %.*s", link->pool->cluster_node,
        c->pool->names, (int)m->message.n, m->message.p);
    link_fail_text(link, PLAN_CONFLICT, "conflict with recovery");
    return true;
}

/* Not the question itself failed, but the settings in front of it. */
static bool is_asked_in_vain(const struct client *c, const struct link *link)
{
    enum phase phase = (enum phase)c->sstate->phase;

    return phase == PHASE_LOOKING || (phase == PHASE_ASKING && link->expect.len > 1) ||
           (phase_is_judging(phase) && expect_head(&link->expect) == OP_QUERY);
}

/* A query of ours was cut short (a cancel request, a timeout): what follows it must not go on as if
 * it had worked. Behind a statement of a transaction, which has failed by it, the client is told
 * before it hears of the end of that statement. */
static void on_cut_short(struct client *c, struct link *link, const struct errmsg *m)
{
    struct sstate *s = c->sstate;
    bool is_repairing = phase_is_repairing((enum phase)s->phase);
    bool fails_tx = is_repairing && link->tx_status == 'T';
    struct buf out = {0};

    s->errand->mend.was_cut_short = is_repairing;
    if (fails_tx && s->phase == PHASE_ENDING) {
        buf_put(&out, m->whole.p, m->whole.n);
        client_send(c, &out);
    } else if (fails_tx || s->phase == PHASE_ATTACHED || is_asked_in_vain(c, link)) {
        link_fail_text(link, "08006",
            "a server connection could not be brought up to date (node %d)",
            link->pool->cluster_node);
    }
}

/* The end of the server process is not the end of the session: what it means for the client is
 * said when the link is gone. */
static void on_last_words(struct client *c, struct link *link, const struct errmsg *m)
{
    count_statement(c->ss, link->pool->cluster_node, COUNT_FATAL);
    errand_begin(c); /* it may be at rest */
    if (link == c->link || c->link == NULL)
        keep_words(c->sstate, m);
}

/* An error in answer to a message of ours, of which no client hears. */
static void on_own_error(struct client *c, struct link *link, const struct errmsg *m)
{
    struct sstate *s = c->sstate;
    bool is_judging = phase_is_judging((enum phase)s->phase);

    if (is_judging && !is_asked_in_vain(c, link)) {
        c->ss->console->refused(c, m);
        return;
    }
    if (is_refusal(m)) {
        s->exchange.saw_error =
            true; /* the sequence of a command of ours that failed: client_fail_part */
        return;
    }
    if (s->phase == PHASE_LOOKING && follow_columns_failed(c, m))
        return; /* the client's own message is going to meet it */
    if (c->phase == CL_LOGIN)
        keep_words(s, m);
    else if (follow_sql_load_failed(c, m))
        return; /* the client is told when it is named */
    CLIENT_LOG(c, LVL_LOG, "node %d refuses what brings a session up to date: %.*s",
        link->pool->cluster_node, (int)m->message.n, m->message.p);
    /* A failed question is forgotten with its end, so the link is cleaned; 55000 is a standby's,
     * and does no harm. */
    if (s->phase == PHASE_ASKING || is_judging)
        link->must_clean = link->must_clean || !slice_eq_str(m->sqlstate, "55000");
    if (slice_eq_str(m->sqlstate, "57014"))
        on_cut_short(c, link, m);
}

/* A statement that could not be prepared on this link: the client hears why. */
static bool tell_why(struct client *c, struct link *link, const struct errmsg *m)
{
    const char *why = follow_sql_why(c, m);

    if (why != NULL)
        exchange_on_bytes(c, link, why, message_bytes(why));
    return why != NULL;
}

static bool on_error(void *owner, struct link *link, const struct errmsg *m)
{
    struct client *c = owner;
    struct sstate *s = c->sstate;
    bool is_elsewhere;

    if (c->drops_database)
        client_ddl_on_error(client_ddl(c));
    if (is_fatal(m)) {
        on_last_words(c, link, m);
        return true;
    }
    if (link_error_is_ours(link)) {
        on_own_error(c, link, m);
        return false;
    }
    count_statement(c->ss, link->pool->cluster_node, COUNT_ERROR);
    client_stmts_error(c);
    if (yields(c, link, m))
        return true;
    s->exchange.saw_error = true;
    if (!slice_eq_str(m->sqlstate, "08P01")) /* a malformed message is as good as none */
        names_pending_refused(&c->sstate->errand->way, c->link->expect.refused);
    is_elsewhere = is_no_primary(c, link, m);
    if (is_elsewhere || is_stale_plan(c, m)) {
        s->again.what = is_elsewhere ? AGAIN_ELSEWHERE : AGAIN_REPLANNED;
        expect_hold(&link->expect);
        return true;
    }
    if (s->pins == 0 && is_of_stale_plan(m) && loan_is_sure(&s->loan))
        s->loan.doubt = LOAN_MAY_HAVE; /* it is told once, and plans are made anew */
    return leg_away_on_error(c, link, m) || tell_why(c, link, m) || tell_refusal(c, link, m) ||
           rename_statement(c, link, m->whole) || client_failed_tell(client_refused(c), link, m);
}

/* A row of the catalogue's answers, or of what ties the session. */
static void on_own_row(void *owner, struct link *link, struct slice body)
{
    static const unsigned reason[] = {
        PIN_REASON_ADVISORY_LOCK, PIN_REASON_LISTEN, PIN_REASON_HOLD_CURSOR, PIN_REASON_TEMP_TABLE};
    struct client *c = owner;
    struct wire_reader r;
    struct slice value;
    bool is_null;
    size_t i;

    (void)link;
    if (phase_is_judging((enum phase)c->sstate->phase)) {
        c->ss->console->row(c, body);
        return;
    }
    if (c->sstate->phase == PHASE_ASKING) {
        if (c->sstate->errand->results == NULL || !c->ss->results->row(c, body))
            plan_on_row(c, body);
        return;
    }
    wire_reader_init(&r, body);
    if (wire_get_u16(&r) != sizeof reason / sizeof reason[0])
        return;
    for (i = 0; i < sizeof reason / sizeof reason[0]; i++) {
        value = wire_get_value(&r, &is_null);
        if (r.bad || is_null)
            return;
        if (slice_eq_str(value, "0"))
            c->sstate->pins &= ~(1U << reason[i]);
    }
}

const struct link_owner_ops exchange_link_ops = {
    .says_unanswered = true,
    .on_log = client_log_link,
    .on_auth = on_auth,
    .on_refused = on_refused,
    .on_login_done = on_login_done,
    .on_bytes = exchange_on_bytes,
    .on_quiet = exchange_on_quiet,
    .on_settled = on_settled,
    .on_no_wait = on_no_wait,
    .on_doubt = client_on_doubt,
    .on_parameter = sstate_on_parameter,
    .on_tag = on_tag,
    .on_columns = follow_columns_on_told,
    .on_error = on_error,
    .on_own_row = on_own_row,
    .on_drained = client_on_link_drained,
    .on_lost = exchange_on_lost,
};
