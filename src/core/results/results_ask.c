/* SPDX-License-Identifier: PostgreSQL
 * results_ask.c: what the catalogue says of the names in a statement, for the query cache.
 * Asked in front of the statement, on a link that is borrowed for it; in a transaction, where that
 * could disturb it, behind its end. Runs in: workers. */
#include "config.h"

#include "wire/reader.h"

#include "results/results_int.h"
#include "sstate/phase_int.h"

/* Questions for one exchange; it may change faster than it can be asked. */
#define ASK_MAX 8
/* In a scope: the number of a link follows. No question begins so. */
#define OF_ONE_LINK '\xff'

int cached_scope(struct client *c, const struct sql_facts *facts)
{
    struct buf *out = &c->ss->cache->scope;
    const struct qcache_who *who = cached_who(c);
    uint64_t own = results_own_names(c);

    buf_clear(out);
    buf_put(out, who->asks.data, who->asks.len);
    if (own != 0) {
        buf_put_byte(out, OF_ONE_LINK);
        buf_put(out, &own, sizeof own);
    }
    c->ss->cache->question_at = out->len;
    return qcache_question(facts, out);
}

const struct qcache_judgement *cached_judged(struct client *c)
{
    struct cached_worker *w = c->ss->cache;

    return qcache_book_find(w->book, w->gens, buf_slice(&w->scope), loop_now_us(c->ss->loop));
}

static struct qcache_asked asked_by(
    const struct client *c, const struct sql_facts *facts, struct slice sql)
{
    return (struct qcache_asked){c, c->sstate->vars.client, facts, sql.p};
}

void cached_note_judged(struct client *c, const struct sql_facts *facts, struct slice sql,
    const struct qcache_judgement *j)
{
    struct qcache_asked asked = asked_by(c, facts, sql);

    qcache_book_note(c->ss->cache->book, &asked, j);
}

const struct qcache_judgement *cached_judged_now(
    struct client *c, const struct sql_facts *facts, struct slice sql)
{
    const struct cached_worker *w = c->ss->cache;
    struct qcache_asked asked = asked_by(c, facts, sql);

    return qcache_book_noted(w->book, &asked, w->gens, loop_now_us(c->ss->loop));
}

/* What is asked now is only believed if nobody changes the catalogue from here on. False: somebody
 * does. */
static bool note_deps(struct client *c, struct cached *sc)
{
    cache_cell db = cache_cell_database(pool_database_there(c->pool));

    cache_deps_init(&sc->asked_deps);
    cache_deps_add(&sc->asked_deps, sc->gens, db);
    cache_deps_add(&sc->asked_deps, sc->gens, cache_cell_table(db, QCACHE_OID_NONE));
    return cache_deps_read(&sc->asked_deps, sc->gens, loop_now_us(c->ss->loop)) == CACHE_FILL_OK;
}

static void send_question(struct client *c, struct cached *sc)
{
    struct slice all = buf_slice(&sc->asked);
    struct slice question = slice_of(all.p + sc->scope_len, all.n - sc->scope_len);
    struct buf sql = {0};

    sc->is_firm =
        note_deps(c, sc) && !results_are_elsewhere(c) && sc->asked_own == results_own_names(c);
    sc->nasked++;
    qcache_judge_free(&sc->judge);
    sc->judge = qcache_judge_new(question, c->ss->cache->rules);
    sc->asking = ASKS_NOW;
    qcache_question_sql(question, &sql);
    plan_send_question(c, c->link, buf_slice(&sql));
    buf_free(&sql);
}

bool cached_knows_session(const struct sstate *s)
{
    static const uint32_t harmless = ROWS_PIN(PIN_REASON_SESSION_MODE) |
                                     ROWS_PIN(PIN_REASON_LISTEN) |
                                     ROWS_PIN(PIN_REASON_ADVISORY_LOCK);

    return s->pins == 0 || ((s->pins & ~harmless) == 0 && s->ran_code == 0);
}

/* Nothing is under way on the link that the session has, where its writes go. */
static bool is_quiet(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return s->phase == PHASE_ATTACHED && expect_is_quiet(&c->link->expect) && !s->loan.is_fresh &&
           !s->exchange.hold && !c->server_batch && c->body_left == 0 &&
           s->errand->way.npending == 0 && s->errand->mark.client == NULL &&
           c->link->pool->cluster_node == c->pool->cluster_node;
}

bool cached_own_is_quiet(const struct client *c)
{
    return c->sstate->pins != 0 && is_quiet(c) && c->link->tx_status == 'I';
}

bool cached_sees_commits(const struct client *c)
{
    const struct sstate *s = c->sstate;
    const struct link *home = s->errand->home;

    if (!s->errand->leave.sees_commits)
        return false;
    if (home != NULL)
        return s->phase <= PHASE_WAITING && home->tx_status == 'T' &&
               !s->errand->leave.home_fails && home->pool->cluster_node == c->pool->cluster_node &&
               !pool_link_is_of_before(home);
    return is_quiet(c) && c->link->tx_status == 'T';
}

/* What may go to a standby waits for nobody's link of the primary: there is a free one, however
 * long it has been so, or none at all, as all reads go to standbys, and one is opened. */
bool cached_has_link(struct client *c)
{
    const struct pool *pool = c->pool;
    bool is_nobody_before = list_is_empty(&pool->waiting) && !sessions_must_hold_writes(c->ss);

    return c->sstate->kept != NULL ||
           (is_nobody_before && (pool->nidle > 0 || list_is_empty(&pool->busy)));
}

/* Outside of a transaction, or before its BEGIN was sent. Who has asked, and has to again, as the
 * catalogue has changed since, does not stand in a line for that once more. */
static bool may_ask(struct client *c)
{
    const struct sstate *s = c->sstate;
    const struct cached *sc = s->errand->cache;

    return (s->phase <= PHASE_WAITING || cached_own_is_quiet(c)) && !sstate_tx_is_lost(s) &&
           s->errand->home == NULL && c->ss->cache->rules != NULL && !results_are_elsewhere(c) &&
           (sc == NULL || (!sc->ask_failed && (sc->nasked == 0 || cached_has_link(c))));
}

static void keep_question(struct client *c, struct cached *sc)
{
    struct slice scope = buf_slice(&c->ss->cache->scope);

    buf_clear(&sc->asked);
    buf_put(&sc->asked, scope.p, scope.n);
    sc->scope_len = c->ss->cache->question_at;
    sc->asked_own = results_own_names(c);
}

enum feed_step cached_ask(struct client *c)
{
    struct sstate *s = c->sstate;
    struct cached *sc;
    struct feed_run run = {0};
    enum feed_step step;
    int node;

    if (!may_ask(c))
        return FEED_AGAIN;
    if (s->phase == PHASE_ATTACHED) {
        sc = results_of(c);
        keep_question(c, sc);
        phase_goto(c, PHASE_ASKING);
        send_question(c, sc);
        return FEED_PARK;
    }
    node = sstate_write_node(c);
    if (node == VIEW_NO_NODE || sstate_is_avoided(c, node))
        return FEED_AGAIN;
    if (!c->kind->may_ask(c))
        return FEED_AGAIN;
    step = leg_attach(c, node, true);
    if (step != FEED_PASS)
        return step;
    sc = results_of(c);
    keep_question(c, sc);
    s->loan.is_fresh = true;
    step = lent_put_settings(c, &run, PHASE_ASK_SYNCING);
    feed_flush(c, &run);
    if (step != FEED_PASS) {
        sc->asking = ASKS_OWED;
        return step;
    }
    phase_goto(c, PHASE_ASKING);
    send_question(c, sc);
    return FEED_PARK;
}

void cached_ask_after(struct client *c)
{
    struct cached *sc = results_of(c);

    if (sc->asking != ASKS_NOTHING || c->ss->cache->rules == NULL || results_are_elsewhere(c))
        return; /* one at a time: the other one's turn comes when it is sent again */
    keep_question(c, sc);
    sc->asking = ASKS_AFTER;
}

bool cached_asks_after(struct client *c)
{
    struct sstate *s = c->sstate;
    struct cached *sc = s->errand->cache;

    if (sc == NULL || sc->asking != ASKS_AFTER || s->errand->home != NULL || c->body_left > 0 ||
        c->server_batch || c->sends == CLIENT_HAS_SENT_ALL || c->ss->stop != SESSION_RUNNING ||
        c->link->vars != s->vars.client || c->link->pool->cluster_node != c->pool->cluster_node)
        return false;
    phase_goto(c, PHASE_ASKING);
    send_question(c, sc);
    return true;
}

bool cached_is_asking(const struct client *c)
{
    const struct cached *sc = c->sstate->errand->cache;

    return sc != NULL && sc->asking == ASKS_NOW;
}

bool cached_ask_owed(struct client *c)
{
    struct cached *sc = c->sstate->errand->cache;

    if (sc == NULL || sc->asking != ASKS_OWED)
        return false;
    send_question(c, sc);
    return true;
}

void cached_on_row(struct client *c, struct slice body)
{
    struct slice value[QCACHE_COLUMNS];

    if (wire_row_values(body, value, QCACHE_COLUMNS))
        qcache_judge_row(c->sstate->errand->cache->judge, value);
}

void cached_asked(struct client *c)
{
    struct cached *sc = c->sstate->errand->cache;
    struct qcache_judgement *j;

    if (link_own_failed(c->link) || !sc->is_firm) {
        qcache_judge_free(&sc->judge);
        sc->ask_failed = true; /* this statement goes its way unjudged */
        link_forget_failure(c->link);
    } else {
        j = qcache_judge_end(&sc->judge, buf_slice(&sc->asked));
        j->known = sc->asked_deps;
        qcache_book_put(c->ss->cache->book, j, loop_now_us(c->ss->loop));
        sc->ask_failed = sc->nasked >= ASK_MAX;
    }
    buf_free(&sc->asked);
    sc->asking = ASKS_NOTHING;
    results_trim(c);
}

bool cached_ask_lost(struct client *c)
{
    struct cached *sc = c->sstate->errand->cache;
    bool was_asking = sc->asking == ASKS_NOW;

    sc->asking = ASKS_NOTHING;
    qcache_judge_free(&sc->judge);
    buf_free(&sc->asked);
    return was_asking;
}
