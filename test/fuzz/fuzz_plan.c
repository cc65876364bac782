/* SPDX-License-Identifier: PostgreSQL
 * fuzz_plan.c: fuzz target over plan.h with the real router: the first bytes are the session's
 * state and the cluster, the rest what the client sends, as one text or as messages. Invariants:
 * what may write goes where writes go, or nowhere; a question has a node to be asked of; what
 * leaves a transaction is a read of an open one; only what goes as a whole is kept; and equal cases
 * have equal choices. */
#include "config.h"

#include "config/conf.h"
#include "route/route_rules.h"
#include "wire/batch.h"

#include "../unit/plan/plan_test.h"
#include "fuzz_bytes.h"

#define NNODES     3
#define HEAD_BYTES 8

/* Made once. */
static struct conf_gen *gens[3];
static struct route_rules *rules[3];
static const char *const settings[3] = {"read_consistency = 'eventual'",
    "read_consistency = 'session'\ndisable_load_balance_on_write = 'always'",
    "disable_load_balance_on_write = 'dml_adaptive_global'\nstatement_level_load_balance = on"};

struct state {
    struct arena *arena;
    struct view view;
    struct route_session session;
    struct route_input route;
    struct plan_test test;
    unsigned answers; /* of the catalogue */
};

/* Answers that follow from the name, of all kinds; or none. */
static int lookup(void *ctx, const struct route_question *q, uint32_t *bits)
{
    const struct plan_test *t = ctx;
    unsigned answers = ((const struct state *)t->route->lookup_ctx)->answers;
    unsigned h = answers + (unsigned)q->kind + (q->name.n > 0 ? (unsigned char)q->name.p[0] : 0);

    if (h % 3 == 0)
        return -1;
    *bits = q->kind == ROUTE_Q_DATABASE ? 0 : (h / 3) & 0x3fU;
    return 0;
}

static int lookup_of_route(void *ctx, const struct route_question *q, uint32_t *bits)
{
    return lookup(&((struct state *)ctx)->test, q, bits);
}

/* What they hold lies where no leak checker looks for pointers. */
static void free_settings(void)
{
    int i;

    for (i = 0; i < 3; i++) {
        route_rules_free(&rules[i]);
        conf_gen_free(&gens[i]);
    }
}

static void make_settings(void)
{
    struct conf_report report;
    struct buf text = {0};
    struct err err;
    int i;
    int n;

    if (gens[0] == NULL)
        (void)atexit(free_settings);
    for (i = 0; i < 3 && gens[i] == NULL; i++) {
        buf_clear(&text);
        for (n = 0; n < NNODES; n++)
            buf_printf(&text, "backend_hostname%d = 'h'\nbackend_port%d = %d\n", n, n, 5432 + n);
        buf_printf(&text, "%s\n", settings[i]);
        conf_report_init(&report);
        gens[i] = conf_load_text("/nowhere/pgpool.conf", buf_slice(&text), &report);
        conf_report_fini(&report);
        require(gens[i] != NULL, "the settings are refused");
        rules[i] = route_rules_new(conf_of(gens[i]), &err);
        require(rules[i] != NULL, "the rules are refused");
    }
    buf_free(&text);
}

static void make_view(struct view *v, uint8_t a, uint8_t b)
{
    int i;

    memset(v, 0, sizeof *v);
    v->nnodes = NNODES;
    v->primary = a % NNODES;
    v->is_streaming = (a & 8) != 0;
    v->primary_epoch = 1;
    for (i = 0; i < NNODES; i++) {
        v->node[i].status = (b >> i & 1) != 0 ? VIEW_DOWN : VIEW_UP;
        v->node[i].role = i == v->primary ? VIEW_ROLE_PRIMARY : VIEW_ROLE_STANDBY;
        v->node[i].replayed_lsn = (b & 64) != 0 ? 1000 : 3000;
    }
    if ((a & 16) != 0)
        v->primary = VIEW_NO_NODE;
}

static void make_session(struct route_session *s, const uint8_t *p, enum plan_tx tx)
{
    uint8_t a = p[5];
    uint8_t b = p[6];

    memset(s, 0, sizeof *s);
    s->balance_node = (int16_t)(a % 4 == 3 ? VIEW_NO_NODE : a % 4);
    s->tx_node = VIEW_NO_NODE;
    s->tx = tx != PLAN_TX_NONE ? ROUTE_TX_OPEN : ROUTE_TX_NONE;
    s->tx_read_only = tx != PLAN_TX_NONE && (p[4] & 64) != 0;
    s->wrote_in_tx = (a & 8) != 0;
    if ((a & 24) != 0)
        s->wrote = (a & 16) != 0 ? ROUTE_WROTE_IN_TX : ROUTE_WROTE_ALONE;
    route_tie(s, ROUTE_TIE_DOUBT, (a & 32) != 0);
    route_tie(s, ROUTE_TIE_STATE, (a & 64) != 0);
    route_tie(s, ROUTE_TIE_TEMP, (a & 128) != 0);
    s->locked_in_tx = (b & 1) != 0;
    if ((b & 2) != 0)
        s->tx_isolation = (b & 4) != 0 ? SQL_ISO_SERIALIZABLE : SQL_ISO_READ_COMMITTED;
    route_tie(s, ROUTE_TIE_SERIALIZABLE, (b & 8) != 0);
    s->last_write_lsn = (p[4] & 128) != 0 ? 2000 : 0;
    s->now_us = 1000000000;
}

static void make_case(struct state *st, const uint8_t *p)
{
    struct plan_case *in = &st->test.in;

    in->tx = (enum plan_tx)(p[2] % 4);
    in->asking = (enum plan_may_ask)(p[2] / 4 % 3);
    in->snapshot = (enum plan_snapshot)(p[2] / 16 % 3);
    in->leave = (enum plan_leave)(p[3] % 3);
    in->wal = (enum plan_wal)(p[3] / 4 % 3);
    in->write_node = view_write_node(&st->view);
    in->own_node = in->write_node == VIEW_NO_NODE ? 0 : in->write_node;
    in->home_node = in->tx == PLAN_TX_ASIDE ? p[4] % NNODES : VIEW_NO_NODE;
    in->avoid_node = p[4] / 4 % 4 == 3 ? VIEW_NO_NODE : p[4] / 4 % 4;
    in->is_tied = (p[4] & 16) != 0;
    in->may_replan = (p[4] & 32) != 0;
    if ((p[3] & 64) != 0)
        in->judge = NULL;
}

static void state_init(struct state *st, const uint8_t *p)
{
    unsigned which = p[7] % 3;
    int i;

    memset(st, 0, sizeof *st);
    st->arena = arena_new("fuzz", 0);
    st->answers = p[7] / 3;
    make_view(&st->view, p[0], p[1]);
    st->route.conf = conf_of(gens[which]);
    st->route.rules = rules[which];
    st->route.view = &st->view;
    st->route.session = &st->session;
    st->route.lookup = lookup_of_route;
    st->route.lookup_ctx = st;
    st->route.random = (uint64_t)p[6] << 56;
    plan_test_init(&st->test, st->arena, &st->route, &st->view, 0);
    st->test.in.lookup = lookup;
    for (i = 0; i < NNODES; i++)
        st->test.lsn[i] = (p[1] & 128) != 0 ? 3000 : 0;
    make_case(st, p);
    make_session(&st->session, p, st->test.in.tx);
}

/* The parser is sure that these write. */
static bool writes_for_sure(const struct sql_facts *facts)
{
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++)
        switch (facts->stmts[i].kind) {
        case SQL_INSERT:
        case SQL_UPDATE:
        case SQL_DELETE:
        case SQL_DDL:
            return true;
        default:
            break;
        }
    return false;
}

static void check_choice(const struct state *st, const struct plan_choice *c)
{
    const struct plan_case *in = &st->test.in;
    int home = in->tx == PLAN_TX_ASIDE ? in->home_node : in->write_node;

    if (c->verdict == PLAN_ASK)
        require(c->node >= 0 && c->node < NNODES, "a question without a node");
    if (c->verdict != PLAN_GO) {
        require(c->way == PLAN_STAYS, "it goes, and asks");
        return;
    }
    if (c->way == PLAN_STAYS || c->way == PLAN_WRITES)
        require(c->node == home, "what stays goes elsewhere");
    if (c->way == PLAN_LEAVES)
        require(in->tx == PLAN_TX_VIRTUAL || in->tx == PLAN_TX_ASIDE, "nothing to leave");
    if (in->judge == NULL && in->tx != PLAN_TX_ASIDE)
        require(c->node == home, "it leaves, and nobody said so");
    require((c->retry & PLAN_RETRY_REPLAN) == 0 || in->may_replan, "replanned, and may not be");
}

/* What the decisions are made of beside the views into the texts. */
static bool is_equal(const struct plan_choice *a, const struct plan_choice *b)
{
    return a->verdict == b->verdict && a->asks == b->asks && a->node == b->node &&
           a->way == b->way && a->retry == b->retry && a->snapshot == b->snapshot &&
           a->is_cut == b->is_cut && a->kept == b->kept;
}

static void choose(const uint8_t *head, struct slice in, bool is_batch, struct plan_choice *out)
{
    struct state st;
    struct sql_facts facts;
    struct arena *own = arena_new("fuzz", 0);
    bool writes;

    memset(out, 0, sizeof *out);
    memset(&facts, 0, sizeof facts);
    state_init(&st, head);
    if (is_batch) {
        plan_batch(&st.test.in, in.p, in.p + in.n, out);
        require(out->kept <= in.n, "more is kept than there is");
        require(out->kept == 0 || out->way >= PLAN_READS || st.test.in.tx == PLAN_TX_ASIDE,
            "what stays is kept");
    } else {
        (void)sql_parse(own, in, &facts);
        writes = facts.status == SQL_OK && writes_for_sure(&facts);
        plan_query(&st.test.in, in, &facts, out);
        /* On a standby a link is set aside for one read alone, which the caller has looked at. */
        if (writes && out->verdict == PLAN_GO && st.test.in.tx != PLAN_TX_ASIDE)
            require(out->node == st.test.in.write_node && out->way < PLAN_READS &&
                        (out->retry & PLAN_RETRY_READ) == 0,
                "a write leaves the primary");
    }
    check_choice(&st, out);
    arena_free(&own);
    arena_free(&st.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan_choice first;
    struct plan_choice second;
    char *text;
    bool is_batch;

    if (size < HEAD_BYTES)
        return 0;
    make_settings();
    is_batch = (data[3] & 128) != 0;
    text = malloc(size - HEAD_BYTES + 1); /* a text ends with a NUL, as in a message */
    require(text != NULL, "no memory");
    memcpy(text, data + HEAD_BYTES, size - HEAD_BYTES);
    text[size - HEAD_BYTES] = '\0';
    choose(data, slice_of(text, size - HEAD_BYTES), is_batch, &first);
    choose(data, slice_of(text, size - HEAD_BYTES), is_batch, &second);
    require(is_equal(&first, &second), "equal cases, other choices");
    free(text);
    return 0;
}

#ifndef FUZZ_LIBFUZZER

/* One in six of what the state may be, in front of each text. */
static const char *const texts[] = {"select * from t where a = 1", "insert into t values (1)",
    "update t set a = 2", "select f(a) from b for update", "begin read only", "set work_mem = 1",
    "with w as (delete from t returning a) select * from w", "select 1; delete from t", "commit",
    "create temp table x (a int)", "execute p", "declare c cursor with hold for select 1"};
static const char *const scripts[] = {"P:select * from t\nB\nD\nE\n|", "B:r\nE\nB:w\nE\n|",
    "Px:select 1\nSx\n.", "P:insert into t values (1)\nB\nE\n|", "Cx\nB:r\nF\n|", "Q:select 1"};

#define NTEXTS   (sizeof texts / sizeof texts[0])
#define NSCRIPTS (sizeof scripts / sizeof scripts[0])
#define NSTATES  16

int main(int argc, char **argv)
{
    static struct buf seeds[(NTEXTS + NSCRIPTS) * NSTATES];
    static struct slice views[(NTEXTS + NSCRIPTS) * NSTATES];
    uint64_t state = 0x2545f4914f6cdd1dULL;
    size_t i;
    size_t n;
    int status;

    for (i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        uint64_t head = next_random(&state);

        n = i / NSTATES;
        head = n < NTEXTS ? head & ~((uint64_t)128 << 24) : head | (uint64_t)128 << 24;
        buf_put(&seeds[i], &head, HEAD_BYTES);
        if (n < NTEXTS)
            buf_put(&seeds[i], texts[n], strlen(texts[n]));
        else
            plan_test_messages(&seeds[i], scripts[n - NTEXTS]);
        views[i] = buf_slice(&seeds[i]);
    }
    status = fuzz_run(argc, argv, views, sizeof views / sizeof views[0]);
    for (i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        buf_free(&seeds[i]);
    for (i = 0; i < 3; i++) {
        route_rules_free(&rules[i]);
        conf_gen_free(&gens[i]);
    }
    return status;
}
#endif
