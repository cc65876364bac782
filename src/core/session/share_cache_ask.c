/* SPDX-License-Identifier: PostgreSQL
 * share_cache_ask.c: what the catalogue says of the names in a statement, for the query cache.
 * Asked in front of the statement, on a link that is borrowed for it; in a transaction, where that
 * could disturb it, behind its end. Runs in: workers. */
#include "config.h"

#include "share_cache_int.h"
#include "share_phase_int.h"

/* Questions for one exchange; it may change faster than it can be asked. */
#define ASK_MAX 8

int share_cache_scope(struct client *c, const struct sql_facts *facts)
{
    struct buf *out = &c->ss->cache->scope;
    const struct qcache_who *who = share_cache_who(c);

    buf_clear(out);
    buf_put(out, who->asks.data, who->asks.len);
    c->ss->cache->question_at = out->len;
    return qcache_question(facts, out);
}

const struct qcache_judgement *share_cache_judged(struct client *c)
{
    struct share_cache_worker *w = c->ss->cache;

    return qcache_book_find(w->book, w->gens, buf_slice(&w->scope), loop_now_us(c->ss->loop));
}

static struct qcache_asked asked_by(
    const struct client *c, const struct sql_facts *facts, struct slice sql)
{
    return (struct qcache_asked){c, c->share->vars.client, facts, sql.p};
}

void share_cache_note_judged(struct client *c, const struct sql_facts *facts, struct slice sql,
    const struct qcache_judgement *j)
{
    struct qcache_asked asked = asked_by(c, facts, sql);

    qcache_book_note(c->ss->cache->book, &asked, j);
}

const struct qcache_judgement *share_cache_judged_now(
    struct client *c, const struct sql_facts *facts, struct slice sql)
{
    const struct share_cache_worker *w = c->ss->cache;
    struct qcache_asked asked = asked_by(c, facts, sql);

    return qcache_book_noted(w->book, &asked, w->gens, loop_now_us(c->ss->loop));
}

/* What is asked now is only believed if nobody changes the catalogue from here on. False: somebody
 * does. */
static bool note_deps(struct client *c, struct share_cache *sc)
{
    cache_cell db = cache_cell_database(pool_database_there(c->pool));

    cache_deps_init(&sc->asked_deps);
    cache_deps_add(&sc->asked_deps, sc->gens, db);
    cache_deps_add(&sc->asked_deps, sc->gens, cache_cell_table(db, QCACHE_OID_NONE));
    return cache_deps_read(&sc->asked_deps, sc->gens, loop_now_us(c->ss->loop)) == CACHE_FILL_OK;
}

static void send_question(struct client *c, struct share_cache *sc)
{
    struct slice all = buf_slice(&sc->asked);
    struct slice question = slice_of(all.p + sc->scope_len, all.n - sc->scope_len);
    struct buf sql = {0};

    sc->is_firm = note_deps(c, sc) && !share_cache_is_elsewhere(c);
    sc->nasked++;
    qcache_judge_free(&sc->judge);
    sc->judge = qcache_judge_new(question, c->ss->cache->rules);
    sc->asking = ASKS_NOW;
    qcache_question_sql(question, &sql);
    balance_send_question(c, c->link, buf_slice(&sql));
    buf_free(&sql);
}

bool share_cache_knows_session(const struct share *s)
{
    static const uint32_t harmless = ROWS_PIN(PIN_REASON_SESSION_MODE) |
                                     ROWS_PIN(PIN_REASON_LISTEN) |
                                     ROWS_PIN(PIN_REASON_ADVISORY_LOCK);

    return s->pins == 0 || ((s->pins & ~harmless) == 0 && s->ran_code == 0);
}

/* Nothing is under way on the link that the session has, where its writes go. */
static bool is_quiet(const struct client *c)
{
    const struct share *s = c->share;

    return s->phase == SHARE_ATTACHED && expect_is_quiet(&c->link->expect) && !s->loan.is_fresh &&
           !s->exchange.hold && !s->owes_ready && !s->loan.detach_due && !c->server_batch &&
           c->body_left == 0 && s->turn->npending == 0 && s->turn->mark.client == NULL &&
           c->link->pool->cluster_node == c->pool->cluster_node;
}

bool share_cache_own_is_quiet(const struct client *c)
{
    return c->share->pins != 0 && is_quiet(c) && c->link->tx_status == 'I';
}

bool share_cache_sees_commits(const struct client *c)
{
    const struct share *s = c->share;
    const struct link *home = s->turn->home;

    if (!s->turn->leave.sees_commits)
        return false;
    if (home != NULL)
        return s->phase <= SHARE_WAITING && home->tx_status == 'T' && !s->turn->leave.home_fails &&
               home->pool->cluster_node == c->pool->cluster_node && !pool_link_is_elsewhere(home);
    return is_quiet(c) && c->link->tx_status == 'T';
}

bool share_cache_asked_own(const struct client *c)
{
    return c->share->pins != 0;
}

/* Outside of a transaction, or before its BEGIN was sent. */
static bool may_ask(const struct client *c)
{
    const struct share *s = c->share;

    return (s->phase <= SHARE_WAITING || share_cache_own_is_quiet(c)) && !share_tx_is_lost(s) &&
           s->turn->home == NULL && (s->turn->cache == NULL || !s->turn->cache->ask_failed) &&
           c->ss->cache->rules != NULL && !share_cache_is_elsewhere(c);
}

static void keep_question(struct client *c, struct share_cache *sc)
{
    struct slice scope = buf_slice(&c->ss->cache->scope);

    buf_clear(&sc->asked);
    buf_put(&sc->asked, scope.p, scope.n);
    sc->scope_len = c->ss->cache->question_at;
}

/* What may go to a standby waits for nobody's link of the primary: there is a free one, however
 * long it has been so, or none at all, as all reads go to standbys, and one is opened. */
bool share_cache_has_link(struct client *c)
{
    const struct pool *pool = c->pool;
    bool is_nobody_before = list_is_empty(&pool->waiting) && !sessions_must_hold_writes(c->ss);

    return c->share->kept != NULL ||
           (is_nobody_before && (pool->nidle > 0 || list_is_empty(&pool->busy)));
}

enum feed_step share_cache_ask(struct client *c)
{
    struct share *s = c->share;
    struct share_cache *sc;
    struct feed_run run = {0};
    enum feed_step step;
    int node;

    if (!may_ask(c))
        return FEED_AGAIN;
    if (s->phase == SHARE_ATTACHED) {
        sc = share_cache_of(c);
        keep_question(c, sc);
        share_goto(c, SHARE_ASKING);
        send_question(c, sc);
        return FEED_PARK;
    }
    node = share_write_node(c);
    if (node == VIEW_NO_NODE || share_is_avoided(c, node))
        return FEED_AGAIN;
    if (!c->kind->may_ask(c))
        return FEED_AGAIN;
    s->turn->is_asker = true;
    step = share_attach(c, node);
    if (step != FEED_PASS)
        return step;
    sc = share_cache_of(c);
    keep_question(c, sc);
    s->loan.is_fresh = true;
    step = share_put_settings(c, &run);
    feed_flush(c, &run);
    if (step != FEED_PASS) {
        sc->asking = ASKS_OWED;
        return step;
    }
    share_goto(c, SHARE_ASKING);
    send_question(c, sc);
    return FEED_PARK;
}

void share_cache_ask_after(struct client *c)
{
    struct share_cache *sc = share_cache_of(c);

    if (sc->asking != ASKS_NOTHING || c->ss->cache->rules == NULL || share_cache_is_elsewhere(c))
        return; /* one at a time: the other one's turn comes when it is sent again */
    keep_question(c, sc);
    sc->asking = ASKS_AFTER;
}

bool share_cache_asks_after(struct client *c)
{
    struct share *s = c->share;
    struct share_cache *sc = s->turn->cache;

    if (sc == NULL || sc->asking != ASKS_AFTER || !s->loan.detach_due || s->turn->home != NULL ||
        c->body_left > 0 || c->server_batch || c->is_half_closed ||
        c->ss->stop != SESSION_RUNNING || c->link->vars != s->vars.client ||
        c->link->pool->cluster_node != c->pool->cluster_node)
        return false;
    s->loan.detach_due = false;
    share_goto(c, SHARE_ASKING);
    send_question(c, sc);
    return true;
}

bool share_cache_is_asking(const struct client *c)
{
    const struct share_cache *sc = c->share->turn->cache;

    return sc != NULL && sc->asking == ASKS_NOW;
}

bool share_cache_ask_owed(struct client *c)
{
    struct share_cache *sc = c->share->turn->cache;

    if (sc == NULL || sc->asking != ASKS_OWED)
        return false;
    send_question(c, sc);
    return true;
}

void share_cache_on_row(struct client *c, struct slice body)
{
    struct slice value[QCACHE_COLUMNS];

    if (balance_row_values(body, value, QCACHE_COLUMNS))
        qcache_judge_row(c->share->turn->cache->judge, value);
}

void share_cache_asked(struct client *c)
{
    struct share_cache *sc = c->share->turn->cache;
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
    c->share->turn->is_asker = false;
    share_cache_trim(c);
}

bool share_cache_ask_lost(struct client *c)
{
    struct share_cache *sc = c->share->turn->cache;
    bool was_asking = sc->asking == ASKS_NOW;

    sc->asking = ASKS_NOTHING;
    qcache_judge_free(&sc->judge);
    buf_free(&sc->asked);
    return was_asking;
}
