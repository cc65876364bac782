/* SPDX-License-Identifier: PostgreSQL
 * exchange_lost.c: a borrowed link dies. Runs in: workers. The session goes on: a read that was not
 * answered yet is made again elsewhere; whatever else was under way is answered with an error, for
 * nobody knows whether it was done; an open transaction is a failed one until ROLLBACK. Only who
 * was tied to the link (temporary tables and the like) is sent away: its state is lost. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "login/login_auth.h"
#include "wire/message.h"
#include "wire/writer.h"

#include "client/client_lost_int.h"
#include "exchange/lost_way_int.h"
#include "sstate_int.h"
#include "leg/leg_int.h"
#include "lent/lent_int.h"

/* How long reads keep away from a node whose link died, and how long until one is opened again. */
#define LOST_AVOID_US 2000000
#define LOST_RETRY_US 100000
/* A read is made again so many times. */
#define LOST_RETRIES 3

/* A link that has died, and what was known then. */
struct loss {
    struct link *link;
    enum phase phase;
    bool was_tied;  /* the session, to it */
    unsigned facts; /* enum lost_fact */
    struct err reason;
};

/* What was sent goes in front of what the client sends, for later. */
static void put_back(struct client *c)
{
    c->carry = leg_take_retry(c);
    c->is_parked = true;
    c->server_batch = false;
    stream_pause(&c->stream);
    c->sstate->errand->nresent++;
    c->sstate->errand->not_before_us = loop_now_us(c->ss->loop) + 2 * LOST_RETRY_US;
}

void exchange_send_later(struct client *c)
{
    struct sstate *s = c->sstate;

    put_back(c);
    s->errand->refused_us = backend_wall_us(&c->ss->be);
    sessions_suspect_node(c->ss, c->link->pool->cluster_node);
    if (c->link == s->kept) {
        s->kept = NULL;
        c->link->must_clean = true;
    }
    leg_detach(c);
    if (c->phase == CL_ACTIVE && s->phase == PHASE_DETACHED)
        (void)leg_wait_for_primary(c);
}

/* Answers what the link owed: an error for each request, and for each of its ends the state. The
 * first `from` ops are answered. */
static void answer_owed(
    struct client *c, const struct expect *owed, unsigned from, const struct err *err, char tx)
{
    struct buf out = {0};
    bool told = owed->failed;
    bool skips = false;
    unsigned i;

    for (i = from; i < owed->len; i++) {
        unsigned op = expect_peek(owed, i);
        unsigned kind = op & OP_MASK;

        if ((op & OP_SWALLOW) != 0 && kind == OP_SYNC && (op & OP_CUT) == 0)
            told = skips = false; /* what failed in front of it was ours */
        if ((op & OP_SWALLOW) != 0 || kind == OP_COPY_END)
            continue; /* CopyDone is owed nothing */
        if (skips && kind != OP_SYNC)
            continue; /* behind an error in a sequence: a Query, too */
        if (!told) {  /* also before a lone Sync: it would have committed */
            wire_put_err(&out, err);
            told = true;
        }
        skips = kind != OP_QUERY && kind != OP_FUNCTION_CALL && kind != OP_SYNC;
        if (!skips) {
            wire_put_ready(&out, tx);
            told = false;
        }
    }
    if (told) {
        c->local_part = LOCAL_PART_FAILED; /* the rest of the sequence is skipped, up to its Sync */
    } else if (owed->len == 0) { /* its messages so far are answered, its Sync was not sent */
        c->local_part = LOCAL_PART_LOST;
        wire_put_err(&out, err);
    }
    c->server_batch = false;
    client_send(c, &out);
}

/* The settings are what they were before what failed. */
static void lost_roll_back(struct client *c)
{
    struct sstate *s = c->sstate;

    follow_forget_skipped(s);
    if (s->errand->mark.client != NULL)
        sstate_vars_assign(&s->vars, &s->errand->mark);
    if (s->errand->tx.client != NULL && (s->errand->ends != NULL || !sstate_tx_is_sequence(s)))
        sstate_vars_assign(&s->vars, &s->errand->tx);
    sstate_vars_clear(&s->errand->mark);
    s->exchange = (struct exchange){0};
    s->errand->string = (struct exchange_string){0};
    s->errand->commits_unseen = false;
    s->look_at_pins = false;
    s->errand->untied = 0;
    s->errand->way.unnamed_epoch = 0;
    names_portals_free(&s->errand->portals);
}

static void avoid_node(struct client *c, int node)
{
    c->sstate->avoid_node = node;
    c->sstate->avoid_until_us = loop_now_us(c->ss->loop) + LOST_AVOID_US;
}

void exchange_avoid_no_login(struct client *c, const struct link *link, const struct err *refusal)
{
    avoid_node(c, link->pool->cluster_node);
    if (login_auth_is_learning(c->ss->auth, pool_user(c->pool)))
        return; /* it may be known by then */
    exchange_note_no_login(c, link, refusal);
    c->sstate->avoid_until_us = INT64_MAX; /* reads stay on the primary */
}

/* The server cannot be reached, or starts, or stops: another try may do. */
static bool is_server_trouble(const struct err *err)
{
    return strncmp(err->sqlstate, "08", 2) == 0 || strncmp(err->sqlstate, "57P", 3) == 0 ||
           err->sqlstate[0] == '\0';
}

/* While the link logged in: the server may be full, starting, or gone. */
static void lost_opening(struct client *c, struct link *link, const struct err *err)
{
    struct sstate *s = c->sstate;
    int64_t now = loop_now_us(c->ss->loop);
    struct err told = *err;

    if (strncmp(err->sqlstate, "28", 2) == 0 && link->pool->cluster_node != c->pool->cluster_node) {
        exchange_avoid_no_login(c, link, err); /* it has another password, or other rules */
        client_unpark(c);
        return;
    }
    if (is_server_trouble(err) &&
        (s->errand->homeless_until_us == 0 || now < s->errand->homeless_until_us)) {
        if (link->pool->cluster_node != c->pool->cluster_node) {
            avoid_node(c, link->pool->cluster_node);
            client_unpark(c); /* reads go elsewhere */
        } else {
            s->errand->not_before_us = now + LOST_RETRY_US;
            (void)leg_wait_for_primary(c);
        }
        return;
    }

    told.severity = ERR_ERROR;
    if (err->sqlstate[0] == '\0')
        memcpy(told.sqlstate, "08006", 6);
    follow_fail_parked(c, &told);
}

/* The reason, as an ERROR: the connection to the client lives on. Of a login it is the server's,
 * who may have refused the role. */
static void lost_reason(struct client *c, const struct err *err, struct err *out)
{
    struct sstate *s = c->sstate;

    *out = s->errand->last_words != NULL ? *s->errand->last_words : *err;
    out->severity = ERR_ERROR;
    if (s->errand->last_words == NULL && !phase_is_opening((enum phase)s->phase))
        memcpy(out->sqlstate, "08006", 6);
    mem_free(s->errand->last_words);
    s->errand->last_words = NULL;
}

/* The client has had all of its exchange but the end, which was held back for something of ours
 * that will not come to an end. */
static bool owes_end(const struct loss *l)
{
    const struct expect *owed = &l->link->expect;

    return l->phase == PHASE_ENDING ||
           (l->phase == PHASE_ATTACHED && owed->holds && owed->len > 0 && !plan_owes_client(owed));
}

static void say_end(struct client *c, bool is_owed)
{
    leg_owe_parameters(c->sstate);
    if (is_owed)
        client_say_ready(c, sstate_tx_status(c));
}

/* What the link reports is what the client believes, unless that is remembered already. */
static void remember_reported(struct sstate *s, const struct link *link)
{
    struct slice name;
    struct slice value;
    uint32_t at = 0;

    while (paramset_next(&link->reported, &at, &name, &value))
        sstate_remember_told(s, name, value);
}

/* Nothing of the client was under way, or all of it is done: what is parked asks again. */
static void lost_between(struct client *c, struct loss *l)
{
    struct sstate *s = c->sstate;
    const struct link *link = l->link;
    bool was_repairing = phase_is_repairing(l->phase);
    bool in_tx = (was_repairing || l->phase == PHASE_LOOKING) && link->tx_status != 'I' &&
                 s->mode != CONF_POOL_STATEMENT; /* there its end is what is under way */

    if (was_repairing)
        remember_reported(s, link);
    lost_roll_back(c);
    if (c->phase == CL_LOGIN) {
        l->reason.severity = ERR_FATAL;
        client_end(c, &l->reason);
        return;
    }
    if (in_tx)
        s->tx = SSTATE_TX_UNTOLD;
    else if (s->tx != SSTATE_TX_VIRTUAL && !sstate_tx_is_lost(s))
        follow_end_lost(s);
    say_end(c, owes_end(l));
    if (s->errand->is_cancelled || (link->loan.cancel_due && !was_repairing))
        follow_cancel_parked(c);
    else
        client_after_quiet(c);
}

/* A BEGIN is on its way, and the first statement whose answer is owed. One whose answer is behind
 * us without its tag did not happen, nor did one behind another statement of its sequence: what the
 * client is told of that skips it. */
static bool begins_one(const struct sstate *s, const struct expect *owed)
{
    unsigned n = 0; /* up to that statement */
    const struct tx_end *e;

    while (n < owed->len && (expect_peek(owed, n++) & OP_MASK) != OP_EXECUTE)
        ;
    for (e = s->errand->ends; e != NULL; e = e->next)
        if (e->kind == TX_END_BEGINS && e->serial - owed->nended < n)
            return true;
    return false;
}

/* True when the client is in a transaction that it began, or may be: what it was told counts more
 * than the link's last ReadyForQuery. Several statements in one query are a transaction, too, but
 * none that outlives the query. So is a sequence, unless there is a BEGIN in it; a SAVEPOINT in it
 * fails. In statement mode there is none. */
static bool is_in_transaction(const struct sstate *s, const struct link *link)
{
    if (s->mode == CONF_POOL_STATEMENT)
        return false;
    if (s->errand->ended != NULL)
        return s->errand->ended->kind == TX_END_BEGINS;
    return link->tx_status != 'I' ||
           (s->errand->tx.client != NULL &&
               (!s->exchange.tx_is_string || begins_one(s, &link->expect)));
}

/* The router may not have looked at it. */
bool exchange_may_send_again(struct client *c, const struct link *link)
{
    const struct sstate *s = c->sstate;
    struct slice msgs = buf_slice(&s->errand->retry);
    struct route_decision missing;

    return !s->again.reply_begun && msgs.n > 0 && s->errand->nresent < LOST_RETRIES &&
           (s->errand->place == PLACE_OUT || !is_in_transaction(s, link)) &&
           (s->again.retry == AGAIN_ANYWHERE || plan_again_is_read(c, msgs, &missing));
}

/* The server has refused it, of which the client has been told nothing: it will be made elsewhere,
 * or with a new plan. */
static bool was_only_refused(const struct sstate *s, const struct link *link)
{
    return (s->again.what == AGAIN_ELSEWHERE || s->again.what == AGAIN_REPLANNED) &&
           s->errand->retry.len > 0 && !is_in_transaction(s, link);
}

/* The client was told that its transaction is over, or in statement mode that another one has
 * begun: what holds since then. True when all of the exchange is done but for its ReadyForQuery. */
static bool keep_told(struct client *c, const struct link *link)
{
    struct sstate *s = c->sstate;
    const struct tx_end *told = s->errand->ended;
    const struct expect *owed = &link->expect;
    unsigned head = owed->len == 0 ? OP_SYNC : expect_peek(owed, 0);
    bool is_done = told->serial == owed->nended
                       ? told->nbehind == 0 && told->kind != TX_END_BEGINS
                       : told->serial + 1 == owed->nended && head == OP_SYNC && !owed->failed;

    sstate_vars_assign(&s->vars, &told->vars);
    follow_end_lost(s);
    c->kind->routed(c, ROUTED_COMMIT);
    return is_done;
}

/* The first request that is owed has only its end to come. */
static void answer_end(struct client *c, const struct expect *owed, const struct err *err)
{
    c->server_batch = false;
    if (owed->len == 0)
        return; /* its Sync was not sent: it comes to no link, or begins the next sequence */
    client_say_ready(c, 'I');
    answer_owed(c, owed, 1, err, 'I');
}

/* What was SET and is rolled back now was told to the client: the next link puts that right. When
 * the link was not up to date yet nothing of the kind can have happened. */
static void remember_parameters(struct sstate *s, const struct link *link)
{
    if (!expect_head_is_ours(&link->expect) || link->tx_status != 'I')
        remember_reported(s, link);
}

/* A sequence whose first part, up to the client's Flush, was answered on this link: nothing is owed
 * but the Sync that stands for the Flush. Nothing was executed in it. */
static bool is_cut_over(const struct sstate *s, const struct link *link)
{
    const struct expect *owed = &link->expect;

    return s->errand->sending == SENDING_CUT && owed->len == 1 && !owed->lost && !owed->failed &&
           (expect_peek(owed, 0) & OP_CUT) != 0 && link->tx_status == 'I';
}

/* All of the exchange is done, and the client has been told but for its end. */
static bool is_over(struct client *c, const struct link *link)
{
    const struct sstate *s = c->sstate;

    if (s->exchange.saw_error)
        return false;
    if (s->errand->sending == SENDING_CUT)
        return is_cut_over(s, link);
    return s->again.reply_begun && plan_again_is_over(c, link, buf_slice(&s->errand->retry));
}

/* What it changed holds. */
static void lost_behind_end(struct client *c, const struct link *link)
{
    struct sstate *s = c->sstate;
    bool was_cut = s->errand->sending == SENDING_CUT; /* its own end is to come */

    if (s->tx != SSTATE_TX_VIRTUAL) {
        sstate_vars_clear(&s->errand->mark);
        follow_end_lost(s);
    }
    lost_roll_back(c);
    s->errand->place = PLACE_HOME;
    s->errand->sending = SENDING_AS_IT_COMES;
    s->errand->nresent = 0;
    leg_stop_keeping(c);
    if (link->pool->cluster_node != c->pool->cluster_node)
        avoid_node(c, link->pool->cluster_node);
    remember_parameters(s, link);
    c->server_batch = false;
    say_end(c, !was_cut);
    c->kind->routed(c, ROUTED_SETTLED);
    client_note_idle(c);
    client_after_quiet(c);
}

/* The client waits to hear whether it may do something: what it did before on that link is lost. */
static void lost_judging(struct client *c, struct link *link, const struct err *err)
{
    struct sstate *s = c->sstate;
    bool in_tx = is_in_transaction(s, link);

    lost_roll_back(c);
    if (in_tx)
        follow_forget_ends(s);
    else
        follow_end_lost(s);
    s->tx = in_tx ? SSTATE_TX_LOST : SSTATE_TX_OF_LINK;
    c->server_batch = false;
    follow_fail_parked(c, err);
}

/* How the link was lost says more than that it is: the client is told with what it sends next. */
static void keep_lost_words(struct sstate *s, const struct err *err)
{
    struct errand *t = s->errand;

    if (s->tx != SSTATE_TX_UNTOLD)
        return;
    if (t->lost_words == NULL)
        t->lost_words = mem_alloc(sizeof *t->lost_words);
    *t->lost_words = *err;
}

/* What became of the client's transaction. True when all of the exchange is done but its end. */
static bool lost_transaction(struct client *c, const struct link *link, bool in_tx)
{
    struct sstate *s = c->sstate;

    lost_roll_back(c);
    if (in_tx)
        follow_forget_ends(s); /* the next link counts anew */
    else if (s->errand->ended != NULL)
        return keep_told(c, link);
    else
        follow_end_lost(s); /* SAVEPOINT outside of a transaction, its error on the way */
    return false;
}

/* Messages that the link had begun, or not, are sent to another one. */
static void lost_repeated(struct client *c)
{
    struct route_decision missing;

    if (c->sstate->again.retry != AGAIN_ANYWHERE &&
        plan_again_is_read(c, buf_slice(&c->sstate->errand->retry), &missing) &&
        missing.nquestions > 0)
        plan_ask_unsure(c, &missing);
    CLIENT_LOG(c, LVL_LOG, "a read of user \"%s\" is made again: its server connection was lost",
        c->pool->names);
    c->sstate->errand->nresent++; /* a read that ends its server process is not made for ever */
    leg_send_again(c);
}

/* The client hears that its transaction failed, now or with what it sends next. */
static void fail_lost_tx(
    struct client *c, const struct link *link, const struct err *err, bool in_tx)
{
    struct sstate *s = c->sstate;
    bool is_told = (c->server_batch && link->expect.len == 0) || link->expect.failed ||
                   plan_owes_client(&link->expect);

    if (in_tx && link->pool->cluster_node != c->pool->cluster_node)
        CLIENT_LOG(c, LVL_LOG, "a read-only transaction of user \"%s\" was lost with its standby",
            c->pool->names);
    if (in_tx)
        s->tx = is_told ? SSTATE_TX_LOST : SSTATE_TX_UNTOLD;
    else if (sstate_tx_is_lost(s))
        s->tx = SSTATE_TX_OF_LINK;
    keep_lost_words(s, err);
}

static void lost_attached(struct client *c, struct loss *l, enum lost_way way)
{
    struct sstate *s = c->sstate;
    struct link *link = l->link;
    const struct expect *owed = &link->expect;
    bool in_tx = is_in_transaction(s, link);
    bool was_kept = s->again.what != AGAIN_NO; /* its error, from the client */
    bool is_done;

    s->again.what = AGAIN_NO;
    if (was_kept)
        link->expect.failed = false; /* not told */
    is_done = lost_transaction(c, link, in_tx);
    if (link->pool->cluster_node != c->pool->cluster_node)
        avoid_node(c, link->pool->cluster_node);
    if (way == LOST_REPEATED) {
        lost_repeated(c);
        return;
    }
    if (way == LOST_PUT_BACK) { /* it was not done, and the client does not know yet */
        put_back(c);
        (void)leg_wait_for_primary(c);
        return;
    }
    leg_stop_keeping(c);
    remember_parameters(s, link);
    plan_away_lost(c);
    fail_lost_tx(c, link, &l->reason, in_tx);
    s->errand->nresent = 0;
    say_end(c, owes_end(l));
    if (is_done)
        answer_end(c, owed, &l->reason);
    else if (owed->len > 0 || c->server_batch)
        answer_owed(c, owed, 0, &l->reason, in_tx ? 'E' : 'I');
    client_note_idle(c);
    client_after_quiet(c);
}

/* A read of a transaction that has its home elsewhere. */
static void lost_out(struct client *c, struct loss *l, enum lost_way way)
{
    struct sstate *s = c->sstate;
    struct link *link = l->link;
    bool was_cut = s->errand->sending == SENDING_CUT;

    if (s->again.what != AGAIN_NO)
        link->expect.failed = false; /* its error was kept from the client */
    s->again.what = AGAIN_NO;
    if (l->phase == PHASE_ASK_OPENING || l->phase == PHASE_ASK_SYNCING || l->phase == PHASE_ASKING)
        plan_ask_stop(c->plan);
    else
        avoid_node(c, link->pool->cluster_node);
    if (way == LOST_HOMEWARD || way == LOST_OUT_REPEATED) {
        plan_aside_return(c);
        if (way == LOST_HOMEWARD) {
            client_unpark(c);
        } else {
            s->errand->nresent++;
            leg_send_again(c);
        }
        return;
    }
    leg_stop_keeping(c);
    if (way == LOST_OUT_FAILS)
        plan_away_lost(c);
    plan_aside_return(c);
    s->errand->sending = SENDING_AS_IT_COMES;
    s->errand->nresent = 0;
    c->server_batch = false;
    if (way == LOST_OUT_FAILS)
        answer_owed(c, &link->expect, 0, &l->reason, 'E');
    else if (!was_cut)
        client_say_ready(c, 'T');
    client_note_idle(c);
    client_after_quiet(c);
}

/* A BEGIN that is all of the exchange was refused or cancelled: only ReadyForQuery is to come. */
static bool has_begun_in_vain(const struct sstate *s, const struct link *link)
{
    const struct tx_end *e = s->errand->ends;

    return s->exchange.saw_error && link->tx_status == 'I' && s->errand->ended == NULL &&
           e != NULL && e->kind <= TX_END_CHAINS && e->at == 0 && e->nbehind == 0 &&
           e->next == NULL;
}

/* A link that the client has, but where nothing of it runs. */
static bool lost_aside(struct client *c, struct link *link, const struct err *err)
{
    bool is_home = plan_aside_on_lost(c, link);

    if (is_home)
        sessions_suspect_node(c->ss, link->pool->cluster_node);
    else if (link == c->sstate->kept && link != c->link)
        lent_kept_on_lost(c, link, err);
    else
        return false;
    errand_end(c);
    return true;
}

/* The loan is over; what is kept to be sent again, and was not told, is not forgotten with it. */
static void lost_loan(struct client *c, bool in_message)
{
    struct errand *t = c->sstate->errand;
    struct buf retry = t->retry;
    struct buf early = t->early;

    memset(&t->retry, 0, sizeof t->retry);
    memset(&t->early, 0, sizeof t->early);
    if (in_message)
        buf_free(&t->held); /* the rest of the message does not come any more */
    leg_forget_loan(c);
    t->retry = retry;
    t->early = early;
}

/* What the link has told of statements under way holds, unless all is sent again, and the others
 * came to nothing. */
static void lost_names(struct client *c, const struct loss *l)
{
    struct sstate *s = c->sstate;

    if ((l->facts & (LOST_MAY_REPEAT | LOST_WAS_REFUSED)) == 0)
        lent_names_settle_told(c, l->link);
    s->exchange.saw_error = (l->facts & LOST_IS_OVER) == 0;
    lent_names_settle(c);
    s->exchange.saw_error = false;
}

/* A question of ours: the cache's, the router's, or whether the client may do something. */
static void lost_question(struct client *c, struct loss *l)
{
    int node = l->link->pool->cluster_node;
    bool was_cache = c->sstate->errand->results != NULL && c->ss->results->lost(c, l->link);

    if (phase_is_judging(l->phase))
        sstate_judge_end(c);
    if (l->phase != PHASE_ASKING)
        return;
    if (!was_cache)
        c->plan->asking = ASKING_NONE;
    if (node != c->pool->cluster_node)
        avoid_node(c, node);
}

static void lost_with_client(struct client *c, struct loss *l)
{
    CLIENT_LOG(c, LVL_LOG, "session of user \"%s\" ends with its server connection: %s",
        c->pool->names, l->reason.msg);
    l->reason.severity = ERR_FATAL;
    client_end(c, (l->facts & LOST_IN_MESSAGE) != 0 ? NULL : &l->reason);
}

static unsigned fact_if(bool is_so, enum lost_fact fact)
{
    return is_so ? (unsigned)fact : 0;
}

static void carry_out(struct client *c, struct loss *l, enum lost_way way)
{
    switch (way) {
    case LOST_OPENING:
        lost_opening(c, l->link, &l->reason);
        break;
    case LOST_ENDS:
        lost_with_client(c, l);
        break;
    case LOST_JUDGING:
        lost_judging(c, l->link, &l->reason);
        break;
    case LOST_BETWEEN:
        lost_between(c, l);
        break;
    case LOST_BEHIND_END:
        lost_behind_end(c, l->link);
        break;
    case LOST_REPEATED:
    case LOST_PUT_BACK:
    case LOST_FAILS:
        lost_attached(c, l, way);
        break;
    case LOST_HOMEWARD:
    case LOST_OUT_REPEATED:
    case LOST_OUT_OVER:
    case LOST_OUT_FAILS:
        lost_out(c, l, way);
        break;
    }
}

/* What can be said of it before the session is told. A read that has left its transaction had
 * nothing that ties. */
static void look_at_loss(struct client *c, struct loss *l)
{
    const struct sstate *s = c->sstate;
    const struct link *link = l->link;
    bool has_home = s->errand->home != NULL;
    bool is_tied = l->was_tied && !has_home;
    bool in_message = c->body_left > 0 || (link->body_left > 0 && !link->swallow_body);

    l->facts = fact_if(is_tied, LOST_IS_TIED) | fact_if(in_message, LOST_IN_MESSAGE) |
               fact_if(has_home, LOST_HAS_HOME) | fact_if(link->expect.len > 0, LOST_OWES);
    lost_loan(c, in_message);
    if (l->phase != PHASE_ATTACHED || is_tied || in_message)
        return;
    if (is_over(c, link))
        l->facts |= LOST_IS_OVER;
    else
        l->facts |= fact_if(exchange_may_send_again(c, link), LOST_MAY_REPEAT) |
                    fact_if(was_only_refused(s, link), LOST_WAS_REFUSED);
}

void exchange_on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct client *c = owner;
    struct sstate *s = c->sstate;
    struct loss l = {link, (enum phase)s->phase, lent_is_tied_to(c, link), 0, {0}};
    bool was_kept = link == s->kept;

    (void)told;
    errand_begin(c);
    if (lost_aside(c, link, err))
        return;
    if (was_kept)
        s->kept = NULL;
    lost_reason(c, err, &l.reason);
    if (has_begun_in_vain(s, link))
        follow_end_lost(s);
    if (strcmp(err->sqlstate, PLAN_CONFLICT) != 0)
        sessions_suspect_node(c->ss, link->pool->cluster_node);
    look_at_loss(c, &l);
    if (was_kept && (l.facts & (LOST_IS_TIED | LOST_IN_MESSAGE)) == 0)
        CLIENT_LOG(c, LVL_LOG, "session of user \"%s\" goes on without its server connection: %s",
            c->pool->names, l.reason.msg);
    lost_names(c, &l);
    lost_question(c, &l);
    carry_out(c, &l, lost_way_of(l.phase, l.facts));
    client_read_on(c);
    errand_end(c);
}
