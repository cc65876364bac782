/* SPDX-License-Identifier: PostgreSQL
 * test_route_choose.c: the node for reads: weights, preference lists, lag, consistency. */
#include "config.h"

#include "base/hash.h"
#include "route_test.h"
#include "run_suite.h"

#define DRAWS 100000

/* Draws many times and counts in per mille. */
static void count_draws(struct route_test *t, int *permille)
{
    int count[VIEW_MAX_NODES] = {0};
    int i;

    for (i = 0; i < DRAWS; i++) {
        int node;
        t->in.random = hash_bytes(&i, sizeof i, 1);
        node = route_choose_balance_node(&t->in);
        ck_assert_int_ge(node, 0);
        count[node]++;
    }
    for (i = 0; i < t->view.nnodes; i++)
        permille[i] = (count[i] + DRAWS / 2000) / (DRAWS / 1000);
}

struct share_case {
    const char *settings;
    int primary;
    unsigned down; /* bits of nodes */
    int want[3];   /* per mille */
};

#define APP(x)  "app_name_redirect_preference_list = '" x "'"
#define DB(x)   "database_redirect_preference_list = '" x "'"
#define USER(x) "user_redirect_preference_list = '" x "'"
#define WEIGHTS(a, b, c)                                                                           \
    "backend_weight0 = " a "\nbackend_weight1 = " b "\nbackend_weight2 = " c "\n"

static const struct share_case shares[] = {
    /* Weights; down nodes and those without weight get nothing. */
    {"", 0, 0, {333, 333, 333}},
    {WEIGHTS("1", "2", "7"), 0, 0, {100, 200, 700}},
    {WEIGHTS("1", "2", "7"), 2, 0, {100, 200, 700}},
    {WEIGHTS("0", "1", "3"), 0, 0, {0, 250, 750}},
    {WEIGHTS("3", "1", "0"), 2, 0, {750, 250, 0}},
    {WEIGHTS("0.001", "0.003", "0"), 2, 0, {250, 750, 0}},
    {WEIGHTS("1", "1", "2"), 0, 1u << 2, {500, 500, 0}},
    {WEIGHTS("1", "0", "0"), 2, 1u << 0, {0, 0, 1000}}, /* nothing else: the primary */
    {WEIGHTS("0", "0", "0"), 0, 0, {1000, 0, 0}},
    {WEIGHTS("0", "0", "0"), 2, 0, {0, 0, 1000}},
    {WEIGHTS("0", "0", "0"), 2, 1u << 2, {1000, 0, 0}}, /* the main node stands in */
    /* A number. */
    {APP("web:1"), 0, 0, {0, 1000, 0}},
    {APP("web:1(0.8)"), 0, 0, {100, 800, 100}},
    {APP("web:1(0)") "\n" WEIGHTS("1", "1", "3"), 2, 0, {250, 0, 750}},
    {APP("web:1"), 0, 1u << 1, {500, 0, 500}}, /* down: as if the list were empty */
    {APP("web:1(0.5)") "\n" WEIGHTS("0", "1", "0"), 0, 0, {0, 1000, 0}},
    {APP("web:7"), 0, 0, {333, 333, 333}},
    /* The primary. */
    {APP("web:primary"), 0, 0, {1000, 0, 0}},
    {APP("web:primary"), 2, 0, {0, 0, 1000}},
    {APP("web:primary(0.4)"), 2, 0, {300, 300, 400}},
    /* Standbys by weight, else the primary. */
    {APP("web:standby") "\n" WEIGHTS("5", "1", "3"), 0, 0, {0, 250, 750}},
    {APP("web:standby") "\n" WEIGHTS("1", "3", "5"), 2, 0, {250, 750, 0}},
    {APP("web:standby(0.6)"), 2, 0, {300, 300, 400}},
    {APP("web:standby(0.6)"), 0, 0, {400, 300, 300}},
    {APP("web:standby"), 0, 6, {1000, 0, 0}},
    /* The first item that fits; application before database before user; the whole name. */
    {APP("w.*:1,web:2"), 0, 0, {0, 1000, 0}},
    {APP("we:1,eb:1,WEB:2"), 0, 0, {0, 0, 1000}},
    {USER("alice:0") "\n" DB("shop:1") "\n" APP("web:2"), 0, 0, {0, 0, 1000}},
    {USER("alice:0") "\n" DB("shop:1") "\n" APP("psql:2"), 0, 0, {0, 1000, 0}},
    {USER("alice:0") "\n" DB("other:1") "\n" APP("psql:2"), 0, 0, {1000, 0, 0}},
    {USER("bob:0") "\n" DB("other:1") "\n" APP("psql:2"), 0, 0, {333, 333, 333}},
    {APP("a|web|b:2"), 0, 0, {0, 0, 1000}},
};

START_TEST(share)
{
    const struct share_case *c = &shares[_i];
    struct route_test t;
    int got[3];
    int i;

    route_test_init(&t, 3, c->primary, c->settings);
    for (i = 0; i < 3; i++)
        if (c->down & (1u << i))
            t.view.node[i].status = VIEW_DOWN;
    count_draws(&t, got);
    for (i = 0; i < 3; i++) {
        int off = got[i] > c->want[i] ? got[i] - c->want[i] : c->want[i] - got[i];
        ck_assert_msg(off <= 5 && (c->want[i] != 0 || got[i] == 0) &&
                          (off * 50 <= c->want[i] || c->want[i] == 0),
            "%s: node %d gets %d per mille, not %d", c->settings, i, got[i], c->want[i]);
    }
    route_test_fini(&t);
}
END_TEST

/* Whoever gives an even sequence instead of random numbers gets an even distribution at once. */
START_TEST(even_sequence)
{
    struct route_test t;
    int count[3] = {0};
    int i;

    route_test_init(&t, 3, 1, WEIGHTS("1", "1", "2"));
    for (i = 0; i < 40; i++) {
        t.in.random = (uint64_t)i * 0x9e3779b97f4a7c15u; /* steps by the golden ratio */
        count[route_choose_balance_node(&t.in)]++;
    }
    ck_assert(abs(count[0] - 10) <= 2 && abs(count[1] - 10) <= 2 && abs(count[2] - 20) <= 2);
    route_test_fini(&t);
}
END_TEST

/* The bits of a counter in reverse order, as sessions are counted. */
static uint64_t reversed(uint32_t n)
{
    uint64_t out = 0;
    int i;

    for (i = 0; i < 32; i++)
        out |= (uint64_t)(n >> i & 1) << (63 - i);
    return out;
}

/* Two standbys of equal weight take turns; any weights and any ratio are met like 1/n. */
START_TEST(counted_sessions)
{
    static const char *const settings[] = {WEIGHTS("0", "0.5", "0.5"), WEIGHTS("1", "2", "3"),
        WEIGHTS("7", "2", "1"), APP("web:standby(0.5)") "\n" WEIGHTS("1", "1", "1"),
        APP("web:2(0.25)") "\n" WEIGHTS("1", "1", "1")};
    static const int want[][3] = {
        {0, 500, 500}, {167, 333, 500}, {700, 200, 100}, {500, 250, 250}, {375, 375, 250}};
    unsigned k;

    for (k = 0; k < sizeof settings / sizeof settings[0]; k++) {
        struct route_test t;
        int count[3] = {0};
        int last = VIEW_NO_NODE;
        int i;
        int n;

        route_test_init(&t, 3, 0, settings[k]);
        for (i = 0; i < 400; i++) {
            t.in.random = reversed((uint32_t)i + 12345);
            n = route_choose_balance_node(&t.in);
            ck_assert(k != 0 || n != last);
            last = n;
            count[n]++;
            if (i < 20)
                continue;
            for (n = 0; n < 3; n++) /* within a few of what it should be, at any time */
                ck_assert_msg(abs(count[n] * 1000 - want[k][n] * (i + 1)) <= 6000,
                    "%s: node %d has %d of %d", settings[k], n, count[n], i + 1);
        }
        route_test_fini(&t);
    }
}
END_TEST

/* A second primary (an old one that came back) is never read from. */
START_TEST(false_primary)
{
    struct route_test t;
    int got[3];

    route_test_init(&t, 3, 2, "");
    t.in.answers_id = 7;
    t.view.node[0].role = VIEW_ROLE_PRIMARY;
    count_draws(&t, got);
    ck_assert_int_eq(got[0], 0);
    ck_assert_int_eq(got[1] + got[2], 1000);
    route_test_fini(&t);
}
END_TEST

/* A session keeps its node; another is drawn when it is down, or for each statement. */
START_TEST(when_it_is_drawn)
{
    struct route_test t;
    struct route_decision d;
    int seen[3] = {0};
    int i;

    route_test_init(&t, 3, 2, "");
    t.in.answers_id = 7;
    for (i = 0; i < 100; i++) {
        t.in.random = hash_bytes(&i, sizeof i, 1);
        route_test_query(&t, "select * from t", &d);
        ck_assert_int_eq(d.node, 1);
        ck_assert_int_eq(d.balance_node, VIEW_NO_NODE);
    }
    t.view.node[1].status = VIEW_DOWN;
    for (i = 0; i < 100; i++) {
        t.in.random = hash_bytes(&i, sizeof i, 1);
        route_test_query(&t, "select * from t", &d);
        ck_assert(d.node != 1 && d.node == d.balance_node);
    }
    route_test_fini(&t);
    route_test_init(&t, 3, 2, "statement_level_load_balance = on");
    for (i = 0; i < 100; i++) {
        t.in.random = hash_bytes(&i, sizeof i, 1);
        route_test_query(&t, "select * from t", &d);
        seen[d.node]++;
    }
    ck_assert(seen[0] > 10 && seen[1] > 10 && seen[2] > 10);
    route_test_fini(&t);
}
END_TEST

/* The reason is told as long as the session keeps the node, also of a read that may leave its
 * transaction. */
START_TEST(preferred_node_is_kept)
{
    struct route_test t;
    struct route_decision d;

    route_test_init(&t, 3, 2, APP("web:standby"));
    t.in.answers_id = 7;
    t.session.balance_node = VIEW_NO_NODE;
    t.session.tx = ROUTE_TX_OPEN;
    route_test_query(&t, "select * from t", &d);
    ck_assert(d.may_leave_tx && d.is_preferred);
    t.session.tx = ROUTE_TX_NONE;
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_PREFERENCE);
    ck_assert(d.is_preferred);
    t.session.balance_node = d.balance_node;
    t.session.is_preferred = true;
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_PREFERENCE);
    ck_assert_int_eq(d.balance_node, VIEW_NO_NODE);
    route_test_fini(&t);
}
END_TEST

struct lag_case {
    const char *settings;
    int64_t bytes[2]; /* of the session's node, of the other standby */
    int64_t us[2];
    int where; /* 0: the session's node, 1: the other standby, 2: the primary */
    enum route_reason reason;
};

static const struct lag_case lags[] = {
    {"delay_threshold = 1000", {1000, 0}, {0, 0}, 0, ROUTE_R_BALANCED},
    {"delay_threshold = 1000", {1001, 0}, {0, 0}, 2, ROUTE_R_LAG},
    {"delay_threshold = 0", {1001, 0}, {0, 0}, 0, ROUTE_R_BALANCED},
    {"delay_threshold = 1000\nsr_check_period = 0", {1001, 0}, {0, 0}, 0, ROUTE_R_BALANCED},
    {"delay_threshold = 1000\nbackend_clustering_mode = 'logical_replication'", {1001, 0}, {0, 0},
        0, ROUTE_R_BALANCED},
    {"delay_threshold = 1000\ndelay_threshold_by_time = 10", {1001, 0}, {10000, 0}, 0,
        ROUTE_R_BALANCED},
    {"delay_threshold = 1000\ndelay_threshold_by_time = 10", {0, 0}, {10001, 0}, 2, ROUTE_R_LAG},
    {"delay_threshold = 1000\nprefer_lower_delay_standby = on", {1001, 10}, {0, 0}, 1,
        ROUTE_R_LOWER_LAG},
    {"delay_threshold = 1000\nprefer_lower_delay_standby = on", {1001, 1001}, {0, 0}, 2,
        ROUTE_R_LAG},
    {"delay_threshold = 1000\nprefer_lower_delay_standby = on", {900, 10}, {0, 0}, 0,
        ROUTE_R_BALANCED},
    {"delay_threshold_by_time = 10\nprefer_lower_delay_standby = on", {0, 0}, {10001, 9999}, 1,
        ROUTE_R_LOWER_LAG},
};

START_TEST(lag)
{
    const struct lag_case *c = &lags[_i];
    struct route_test t;
    struct route_decision d;
    int primary;
    int where[3];

    for (primary = 0; primary < 3; primary++) {
        route_test_init(&t, 3, primary, c->settings);
        t.in.answers_id = 7;
        where[0] = t.session.balance_node;
        where[1] = 3 - primary - where[0];
        where[2] = primary;
        t.view.node[where[0]].delay_bytes = c->bytes[0];
        t.view.node[where[1]].delay_bytes = c->bytes[1];
        t.view.node[where[0]].delay_us = c->us[0];
        t.view.node[where[1]].delay_us = c->us[1];
        route_test_query(&t, "select * from t", &d);
        ck_assert_msg(d.node == where[c->where] && d.reason == c->reason,
            "%s, primary %d: node %d: %s", c->settings, primary, d.node,
            route_reason_text(d.reason));
        /* The primary itself never lags, whatever the view says. */
        t.session.balance_node = primary;
        t.view.node[primary].delay_bytes = 1 << 30;
        route_test_query(&t, "select * from t", &d);
        ck_assert(d.node == primary && d.reason == ROUTE_R_BALANCED);
        route_test_fini(&t);
    }
}
END_TEST

/* A standby without weight gets no reads, however little it lags. */
START_TEST(lag_and_weight)
{
    struct route_test t;
    struct route_decision d;

    route_test_init(
        &t, 3, 0, "delay_threshold = 10\nprefer_lower_delay_standby = on\nbackend_weight1 = 0");
    t.in.answers_id = 7;
    t.view.node[2].delay_bytes = 11;
    route_test_query(&t, "select * from t", &d);
    ck_assert(d.node == 0 && d.reason == ROUTE_R_LAG);
    route_test_fini(&t);
}
END_TEST

struct plain_case {
    const char *settings;
    int open; /* of three nodes: to so many plain reads go without being judged; -1: to those with a
                 weight */
};

static const struct plain_case plains[] = {
    {"", 1},
    {"statement_level_load_balance = on", 3},
    {"statement_level_load_balance = on\n" WEIGHTS("1", "2", "7"), 3},
    {"statement_level_load_balance = on\n" WEIGHTS("0", "2", "2"), -1},
    {"statement_level_load_balance = on\n" WEIGHTS("0", "0", "0"), 0},
    {"statement_level_load_balance = on\n" APP("web:1(0.5)"), 0},
    {"disable_load_balance_on_write = 'always'", 1},
    {"disable_load_balance_on_write = 'dml_adaptive'", 1},
    {"disable_load_balance_on_write = 'dml_adaptive_global'", 0},
    {"read_consistency = 'session'", 1},
    {"read_consistency = 'global'", 0},
    {"load_balance_mode = off", 0},
};

/* The table of plain reads is used, and says the same (route_test_reads). */
START_TEST(plain_reads)
{
    const struct plain_case *c = &plains[_i];
    struct route_test t;
    struct route_decision d;
    bool seen[3];
    int primary;
    int i;

    for (primary = 0; primary < 3; primary++) {
        memset(seen, 0, sizeof seen);
        route_test_init(&t, 3, primary, c->settings);
        t.in.answers_id = 7;
        for (i = 0; i < 1000; i++) {
            unsigned before = t.nplain;

            t.in.random = hash_bytes(&i, sizeof i, 3);
            route_test_query(&t, "select * from t", &d);
            seen[d.node] = seen[d.node] || t.nplain > before;
        }
        if (c->open == -1)
            ck_assert(!seen[0] && seen[1] && seen[2]);
        else
            ck_assert_msg(seen[0] + seen[1] + seen[2] == c->open, "%s, primary %d: %d %d %d",
                c->settings, primary, seen[0], seen[1], seen[2]);
        route_test_fini(&t);
    }
}
END_TEST

/* A session whose node is the primary finds it there, too, whatever lags and whoever has written.
 */
START_TEST(plain_reads_at_primary)
{
    static const char *const settings[] = {
        "", "read_consistency = 'session'", "delay_threshold = 10"};
    struct route_test t;
    struct route_decision d;

    route_test_init(&t, 3, _i, settings[_i]);
    t.in.answers_id = 7;
    t.session.balance_node = _i;
    t.session.last_write_lsn = 5000;
    t.view.node[_i].replayed_lsn = 0;
    t.view.node[_i].delay_bytes = 11;
    route_test_query(&t, "select * from t", &d); /* is not known yet */
    route_test_query(&t, "select * from t", &d);
    ck_assert_int_ge(t.nplain, 1);
    ck_assert_int_eq(d.node, _i);
    t.session.ties = ROUTE_TIE_STATE;
    t.nplain = 0;
    route_test_query(&t, "select * from t", &d);
    ck_assert(t.nplain == 0 && d.reason == ROUTE_R_STATE_UNKNOWN);
    route_test_fini(&t);
}
END_TEST

struct lsn_case {
    const char *settings;
    uint64_t session;
    uint64_t global;
    bool waits;
    uint64_t lsn;
    enum route_reason reason;
};

#define SEE(x) "read_consistency = '" x "'"

static const struct lsn_case lsns[] = {
    {SEE("eventual"), 2000, 3000, false, 0, ROUTE_R_BALANCED},
    {SEE("session"), 0, 3000, false, 0, ROUTE_R_BALANCED},
    {SEE("session"), 1000, 3000, false, 0, ROUTE_R_BALANCED},
    {SEE("session"), 1001, 3000, true, 1001, ROUTE_R_WAIT},
    {SEE("global"), 0, 1000, false, 0, ROUTE_R_BALANCED},
    {SEE("global"), 0, 3000, true, 3000, ROUTE_R_WAIT},
    {SEE("global"), 4000, 3000, true, 4000, ROUTE_R_WAIT},
    {SEE("session") "\nread_consistency_wait = 0", 1001, 0, false, 0, ROUTE_R_CONSISTENCY},
};

START_TEST(consistency)
{
    const struct lsn_case *c = &lsns[_i];
    struct route_test t;
    struct route_decision d;
    int primary;

    for (primary = 0; primary < 3; primary++) {
        route_test_init(&t, 3, primary, c->settings);
        t.in.answers_id = 7;
        t.session.last_write_lsn = c->session;
        t.session.global_write_lsn = c->global;
        route_test_query(&t, "select * from t", &d);
        ck_assert_msg(d.reason == c->reason, "%s: %s", c->settings, route_reason_text(d.reason));
        ck_assert(d.must_wait == c->waits && d.wait_lsn == c->lsn);
        ck_assert_int_eq(
            d.node, c->reason == ROUTE_R_CONSISTENCY ? primary : t.session.balance_node);
        route_test_query(&t, "begin isolation level repeatable read, read only", &d);
        ck_assert(d.must_wait == c->waits);
        t.session.balance_node = primary;
        route_test_query(&t, "select * from t", &d);
        ck_assert(!d.must_wait && d.node == primary);
        route_test_fini(&t);
    }
}
END_TEST

/* Its position is that of another history: however far it is, it says nothing. */
START_TEST(consistency_on_another_timeline)
{
    static const char *const settings[] = {SEE("session"), SEE("eventual")};
    struct route_test t;
    struct route_decision d;
    int i;

    for (i = 0; i < 2; i++) {
        route_test_init(&t, 2, 0, settings[i]);
        t.in.answers_id = 7;
        t.session.balance_node = 1;
        t.session.last_write_lsn = 1;
        t.view.node[0].timeline = 2;
        t.view.node[1].timeline = 1;
        route_test_query(&t, "select * from t", &d);
        ck_assert(!d.must_wait && d.node == i);
        t.view.node[1].timeline = 2;
        route_test_query(&t, "select * from t", &d);
        ck_assert(!d.must_wait && d.node == 1);
        route_test_fini(&t);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route_choose");
    TCase *tc = tcase_create("choose");

    tcase_add_loop_test(tc, share, 0, (int)(sizeof shares / sizeof shares[0]));
    tcase_add_test(tc, even_sequence);
    tcase_add_test(tc, counted_sessions);
    tcase_add_test(tc, false_primary);
    tcase_add_test(tc, when_it_is_drawn);
    tcase_add_test(tc, preferred_node_is_kept);
    tcase_add_loop_test(tc, lag, 0, (int)(sizeof lags / sizeof lags[0]));
    tcase_add_test(tc, lag_and_weight);
    tcase_add_test(tc, consistency_on_another_timeline);
    tcase_add_loop_test(tc, plain_reads, 0, (int)(sizeof plains / sizeof plains[0]));
    tcase_add_loop_test(tc, plain_reads_at_primary, 0, 3);
    tcase_add_loop_test(tc, consistency, 0, (int)(sizeof lsns / sizeof lsns[0]));
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
