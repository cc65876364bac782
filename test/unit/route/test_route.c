/* SPDX-License-Identifier: PostgreSQL
 * test_route.c: the rules of routing, one row per case, each run with one, two and three nodes and
 * with the primary on every one of them. The first column is the number of the rule in the list of
 * pgpool-II's behaviours (doc/user/load-balancing.md names them in the same order), "+" for what is
 * ours. */
#include "config.h"

#include "route_test.h"
#include "run_suite.h"

/* What is known of the session. */
#define TX       0x0001u
#define RO       0x0002u
#define FAILED   0x0004u
#define SER      0x0008u
#define W_TX     0x0010u /* wrote in this transaction */
#define W_EARLY  0x0020u /* in an earlier one */
#define W_SES    0x0040u
#define TEMPS    0x0080u /* has temporary tables, unknown which */
#define UNKNOWN  0x0100u
#define AT_HOME  0x0200u /* the transaction lives on the node for reads */
#define BEFORE   0x0400u /* settings of before ALTER ROLE */
#define DEF_SER  0x0800u
#define NEW_PATH 0x2000u
#define REPEATS  0x10000u /* BEGIN said REPEATABLE READ */
#define DOUBT    0x20000u /* ran what is not known */

/* Where it goes. */
enum where {
    P, /* the primary */
    R, /* the session's node for reads */
    L, /* the primary, but it may leave the transaction for the node for reads */
    X, /* the primary, leaving a read-only transaction that lives elsewhere */
    Q  /* a question first; the primary when it cannot be asked */
};

struct row {
    const char *rule;
    const char *settings;
    unsigned state;
    const char *sql;
    enum route_class class;
    enum route_reason reason;
    enum where where;
    bool is_write;
};

#define PRIMARY(why) ROUTE_PRIMARY, ROUTE_R_##why, P
#define READ(why)    ROUTE_EITHER, ROUTE_R_##why
#define BALANCED     ROUTE_EITHER, ROUTE_R_BALANCED, R
#define STATE        ROUTE_SESSION, ROUTE_R_SESSION_STATE, P
#define TXC          ROUTE_TX, ROUTE_R_TX_CONTROL, P

#define GLOBAL      "read_consistency = 'global'"
#define RAW_MODE    "backend_clustering_mode = 'raw'"
#define WRITE_IS(x) "disable_load_balance_on_write = '" x "'"

static const struct row rows[] = {
#include "route_rows.def"
};

static void set_state(struct route_test *t, unsigned s)
{
    struct route_session *ses = &t->session;

    ses->tx = (s & TX) == 0 ? ROUTE_TX_NONE : (s & FAILED) != 0 ? ROUTE_TX_FAILED : ROUTE_TX_OPEN;
    ses->tx_node = (s & AT_HOME) != 0 ? ses->balance_node : VIEW_NO_NODE;
    ses->tx_read_only = (s & RO) != 0;
    ses->tx_isolation = (s & SER) != 0       ? SQL_ISO_SERIALIZABLE
                        : (s & REPEATS) != 0 ? SQL_ISO_REPEATABLE_READ
                                             : SQL_ISO_UNSET;
    ses->wrote_in_tx = (s & W_TX) != 0;
    ses->wrote = (s & (W_TX | W_EARLY)) != 0 ? ROUTE_WROTE_IN_TX
                 : (s & W_SES) != 0          ? ROUTE_WROTE_ALONE
                                             : ROUTE_WROTE_NOTHING;
    route_tie(ses, ROUTE_TIE_STATE, (s & UNKNOWN) != 0);
    route_tie(ses, ROUTE_TIE_BEFORE, (s & BEFORE) != 0);
    route_tie(ses, ROUTE_TIE_DOUBT, (s & DOUBT) != 0);
    route_tie(ses, ROUTE_TIE_SERIALIZABLE, (s & DEF_SER) != 0);
    route_tie(ses, ROUTE_TIE_TEMP, (s & TEMPS) != 0);
    ses->search_path_changed = (s & NEW_PATH) != 0;
}

static void check_row(const struct row *row, int nnodes, int primary)
{
    struct route_test t;
    struct route_decision d;
    bool alone = nnodes == 1;
    int want;
    char at[200];

    route_test_init(&t, nnodes, primary, row->settings);
    t.prepared_sql = "prepare p as select * from t where a = $1";
    /* What is remembered of it from a session in no special state must not change anything. */
    t.in.answers_id = 7;
    route_test_query(&t, row->sql, &d);
    set_state(&t, row->state);
    if (t.session.search_path_changed)
        t.in.answers_id = 8; /* names mean something else */
    route_test_query(&t, row->sql, &d);
    snprintf(at, sizeof at, "rule %s, %d nodes, primary %d: %.120s", row->rule, nnodes, primary,
        row->sql);
    want = row->where == R ? t.session.balance_node : primary;
    ck_assert_msg(d.class == row->class, "%s: class %s", at, route_class_text(d.class));
    ck_assert_msg(d.reason == row->reason, "%s: reason %s", at, route_reason_text(d.reason));
    ck_assert_msg(d.node == want, "%s: node %d, not %d", at, d.node, want);
    ck_assert_msg(d.is_write == row->is_write, "%s: is_write %d", at, d.is_write);
    ck_assert_msg(d.must_ask == (row->where == Q), "%s: must_ask %d", at, d.must_ask);
    ck_assert_msg(d.must_ask == (d.nquestions > 0), "%s: %u questions", at, d.nquestions);
    ck_assert_msg(
        d.may_leave_tx == (row->where == L && !alone), "%s: may_leave_tx %d", at, d.may_leave_tx);
    ck_assert_msg(!d.may_leave_tx || d.leave_node == t.session.balance_node, "%s: leave_node %d",
        at, d.leave_node);
    ck_assert_msg(d.leaves_tx == (row->where == X && !alone), "%s: leaves_tx %d", at, d.leaves_tx);
    route_test_fini(&t);
}

START_TEST(every_row)
{
    int nnodes;
    int primary;

    for (nnodes = 1; nnodes <= 3; nnodes++)
        for (primary = 0; primary < nnodes; primary++)
            check_row(&rows[_i], nnodes, primary);
}
END_TEST

/* Rule 7: names and numbers of arguments are asked for as they are called. */
START_TEST(questions)
{
    struct route_test t;
    struct route_decision d;

    route_test_init(&t, 3, 2, "");
    route_test_query(&t, "select S.g(1, 2), h() from x.y, z, z where k(z.a)", &d);
    ck_assert(d.must_ask && d.reason == ROUTE_R_ASK && d.is_write);
    ck_assert_uint_eq(d.nquestions, 5);
    ck_assert_int_eq(d.question[0].kind, ROUTE_Q_FUNCTION);
    ck_assert(slice_eq_str(d.question[0].schema, "s") && slice_eq_str(d.question[0].name, "g"));
    ck_assert_uint_eq(d.question[0].nargs, 2);
    ck_assert(slice_eq_str(d.question[1].name, "h") && d.question[1].nargs == 0);
    ck_assert(slice_eq_str(d.question[2].name, "k") && d.question[2].nargs == 1);
    ck_assert_int_eq(d.question[3].kind, ROUTE_Q_RELATION);
    ck_assert(slice_eq_str(d.question[3].schema, "x") && slice_eq_str(d.question[3].name, "y"));
    ck_assert(slice_eq_str(d.question[4].name, "z") && d.question[4].schema.n == 0);
    route_test_fini(&t);
}
END_TEST

/* More names than fit are asked for in rounds; none is taken for answered. */
/* What the catalogue has nothing against is not looked up again; all else is. */
START_TEST(verdicts)
{
    struct route_test t;
    struct route_decision d;
    unsigned before;

    route_test_init(&t, 3, 1, "");
    t.in.answers_id = 7;
    route_test_query(&t, "select f_imm(a) from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_BALANCED);
    before = t.lookups;
    ck_assert_uint_gt(before, 0);
    route_test_query(&t, "select f_imm(a) from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_BALANCED);
    ck_assert_uint_eq(t.lookups, before);
    t.in.answers_id = 9; /* an answer has changed */
    route_test_query(&t, "select f_imm(a) from t", &d);
    ck_assert_uint_eq(t.lookups, 2 * before);
    t.verdict = 0;
    t.in.answers_id = 7;
    route_test_query(&t, "select f_vol(a) from t", &d);
    ck_assert_int_eq(d.reason, ROUTE_R_VOLATILE_FUNCTION);
    ck_assert_uint_eq(t.verdict, 0);
    route_test_query(&t, "select f_unheard_of(a) from t", &d);
    ck_assert(d.must_ask);
    ck_assert_uint_eq(t.verdict, 0);
    t.in.answers_id = 0; /* nobody vouches for the answers */
    route_test_query(&t, "select a from t", &d);
    ck_assert_uint_eq(t.verdict, 0);
    route_test_fini(&t);
}
END_TEST

START_TEST(too_many_questions)
{
    struct route_test t;
    struct route_decision d;
    struct buf sql = {0};
    int i;

    route_test_init(&t, 2, 1, "");
    buf_printf(&sql, "select 1 from t");
    for (i = 0; i < 40; i++)
        buf_printf(&sql, ", other%d", i);
    buf_put_byte(&sql, '\0');
    route_test_query(&t, sql.data, &d);
    ck_assert(d.must_ask);
    ck_assert_uint_eq(d.nquestions, ROUTE_MAX_QUESTIONS);
    ck_assert_int_eq(d.node, 1);
    sql.len--;
    for (; i < 120; i++)
        buf_printf(&sql, ", other%d", i);
    buf_put_byte(&sql, '\0');
    route_test_query(&t, sql.data, &d);
    ck_assert(!d.must_ask && d.reason == ROUTE_R_TOO_MANY_QUESTIONS);
    ck_assert_int_eq(d.node, 1);
    buf_free(&sql);
    route_test_fini(&t);
}
END_TEST

static int lookup_odd_database(void *ctx, const struct route_question *q, uint32_t *bits)
{
    if (q->kind == ROUTE_Q_DATABASE) {
        *bits = ROUTE_DB_OPERATOR | ROUTE_DB_SHADOW | ROUTE_DB_WORD;
        return 0;
    }
    if (q->kind == ROUTE_Q_WORD) {
        *bits = slice_eq_str(q->name, "dvol") ? ROUTE_FUNC_VOLATILE : 0;
        return 0;
    }
    if (q->kind == ROUTE_Q_OPERATOR && slice_eq_str(q->name, "~~")) {
        *bits = ROUTE_FUNC_VOLATILE;
        return 0;
    }
    if (q->kind == ROUTE_Q_FUNCTION && slice_eq_str(q->name, "lower")) {
        *bits = ROUTE_FUNC_VOLATILE;
        return 0;
    }
    return route_test_lookup(ctx, q, bits);
}

/* A database with volatile operators and functions called like built-in ones is looked at closer.
 */
START_TEST(odd_database)
{
    static const struct {
        const char *sql;
        enum route_reason reason;
    } cases[] = {
        {"select 1 + 2 from t where a = 1", ROUTE_R_BALANCED},
        {"select 1 ==> 2", ROUTE_R_VOLATILE_FUNCTION},
        {"select '==>', \"==>\" from t", ROUTE_R_BALANCED},
        {"select $x$ ==> $x$ /* ==> */ from t -- ==>", ROUTE_R_BALANCED},
        {"select e'\\' ==> ' from t", ROUTE_R_BALANCED},
        {"select '\\' ==> 1", ROUTE_R_VOLATILE_FUNCTION},
        {"select 1 =-1 from t", ROUTE_R_BALANCED},
        {"select lower('X')", ROUTE_R_VOLATILE_FUNCTION},
        {"select pg_catalog.lower('X')", ROUTE_R_BALANCED},
        {"select 1 %% 2", ROUTE_R_ASK},
        {"select a::dvol from t", ROUTE_R_VOLATILE_FUNCTION},
        {"select a :: /* c */ public . dvol [] from t", ROUTE_R_VOLATILE_FUNCTION},
        {"select cast(a as \"dvol\") from t", ROUTE_R_VOLATILE_FUNCTION},
        {"select dvol '1' from t", ROUTE_R_VOLATILE_FUNCTION},
        {"select t.dvol from t", ROUTE_R_VOLATILE_FUNCTION},
        {"select dvol, 'dvol', 1 as a from t", ROUTE_R_BALANCED},
        {"select * from json_table(j, '$' columns (a for ordinality, nested path '$' columns "
         "(b int path '$', c dvol))) x",
            ROUTE_R_VOLATILE_FUNCTION},
        {"select json_value(j, '$' returning dvol) from t", ROUTE_R_VOLATILE_FUNCTION},
        {"select * from abs(1) as (a numeric(3), b dvol[])", ROUTE_R_VOLATILE_FUNCTION},
        {"select * from abs(1) x (\"a\" /* c */ dvol)", ROUTE_R_VOLATILE_FUNCTION},
        {"select b from pg_catalog.abs(1) as x (dvol int, b text), t as y (dvol)",
            ROUTE_R_BALANCED},
        {"with x as (select a dvol from t) select (pg_catalog.count(a) over (partition by dvol)) "
         "from x",
            ROUTE_R_BALANCED},
        {"select a from pg_catalog.abs(1) x (a int) where (select a dvol from t) = 1",
            ROUTE_R_BALANCED},
        {"select a from t where a LIKE 'x'", ROUTE_R_VOLATILE_FUNCTION},
        {"select a from t where a in (1, 2)", ROUTE_R_BALANCED},
        {"select \"like\", a$like from t", ROUTE_R_BALANCED},
    };
    struct route_test t;
    struct route_decision d;
    unsigned i;

    route_test_init(&t, 3, 0, "");
    t.in.lookup = lookup_odd_database;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        route_test_query(&t, cases[i].sql, &d);
        ck_assert_msg(
            d.reason == cases[i].reason, "%s: %s", cases[i].sql, route_reason_text(d.reason));
    }
    route_test_fini(&t);
}
END_TEST

static int lookup_serializable(void *ctx, const struct route_question *q, uint32_t *bits)
{
    if (q->kind != ROUTE_Q_DATABASE)
        return route_test_lookup(ctx, q, bits);
    *bits = ROUTE_DB_SERIALIZABLE;
    return 0;
}

static int lookup_nothing(void *ctx, const struct route_question *q, uint32_t *bits)
{
    (void)ctx;
    (void)q;
    (void)bits;
    return -1;
}

/* A role whose transactions are serializable by default: standbys cannot run them. */
START_TEST(serializable_role)
{
    struct route_test t;
    struct route_decision d;
    int primary;

    for (primary = 0; primary < 3; primary++) {
        route_test_init(&t, 3, primary, "write_function_list = 'nothing'");
        t.in.lookup = lookup_serializable;
        route_test_query(&t, "select * from t", &d);
        ck_assert(d.node == primary && d.reason == ROUTE_R_SERIALIZABLE);
        route_test_query(&t, "begin read only", &d);
        ck_assert(d.node == primary && !d.must_ask);
        route_test_query(&t, "begin read only, isolation level read committed", &d);
        ck_assert(d.node != primary && d.reason == ROUTE_R_READ_ONLY_TX);
        t.in.lookup = lookup_nothing; /* not known yet: asked */
        route_test_query(&t, "begin read only", &d);
        ck_assert(d.node == primary && d.must_ask && d.nquestions == 1);
        ck_assert_int_eq(d.question[0].kind, ROUTE_Q_DATABASE);
        route_test_query(&t, "begin", &d);
        ck_assert(d.node == primary && !d.must_ask);
        route_test_fini(&t);
    }
}
END_TEST

/* A read-only transaction that was begun nowhere yet goes where its reads will go, whatever its
 * first statement is. */
START_TEST(read_only_tx_without_node)
{
    static const char *const sql[] = {
        "savepoint a", "set local work_mem = '5MB'", "select * from t", "set search_path = s"};
    struct route_test t;
    struct route_decision d;
    unsigned i;

    for (i = 0; i < sizeof sql / sizeof sql[0]; i++) {
        route_test_init(&t, 3, 2, "");
        set_state(&t, TX | RO);
        route_test_query(&t, sql[i], &d);
        ck_assert_msg(d.node == t.session.balance_node, "%s: node %d", sql[i], d.node);
        route_test_query(&t, "set transaction read write", &d);
        ck_assert_int_eq(d.node, 2);
        set_state(&t, TX | RO | AT_HOME);
        t.session.tx_node = 2;
        route_test_query(&t, sql[i], &d);
        ck_assert_msg(d.node == 2, "%s: node %d", sql[i], d.node);
        route_test_fini(&t);
    }
}
END_TEST

static int node_of_pid(void *ctx, int32_t pid)
{
    return pid >= 100 && pid < 100 + 3 ? pid - 100 : VIEW_NO_NODE;
}

/* Rule 8. */
START_TEST(terminate_backend)
{
    static const struct {
        const char *sql;
        int node; /* VIEW_NO_NODE: the primary, as any volatile function */
    } cases[] = {
        {"select pg_terminate_backend(100)", 0},
        {"SELECT pg_Terminate_Backend ( 101 , 5000 )", 1},
        {"select pg_catalog.pg_terminate_backend(102);", 2},
        {"select pg_cancel_backend(101)", 1},
        {"select pg_terminate_backend(7)", VIEW_NO_NODE},
        {"select pg_terminate_backend(100 + 1)", VIEW_NO_NODE},
        {"select pg_terminate_backend($1)", VIEW_NO_NODE},
        {"select pg_terminate_backend(pid) from t", VIEW_NO_NODE},
        {"select pg_terminate_backend(100), nextval('s')", VIEW_NO_NODE},
        {"select 1; select pg_terminate_backend(100)", VIEW_NO_NODE},
        {"select pg_terminate_backend(99999999999)", VIEW_NO_NODE},
    };
    struct route_test t;
    struct route_decision d;
    unsigned i;
    int primary;

    for (primary = 0; primary < 3; primary++) {
        route_test_init(&t, 3, primary, "");
        t.in.node_of_pid = node_of_pid;
        for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            bool ours = cases[i].node != VIEW_NO_NODE;
            route_test_query(&t, cases[i].sql, &d);
            ck_assert_msg(
                d.node == (ours ? cases[i].node : primary), "%s: node %d", cases[i].sql, d.node);
            ck_assert_msg((d.reason == ROUTE_R_BACKEND_PID) == ours && (d.kill_pid != 0) == ours,
                "%s", cases[i].sql);
        }
        route_test_fini(&t);
    }
}
END_TEST

/* EXECUTE runs what was prepared, with the arguments it is given. */
START_TEST(execute)
{
    static const struct {
        const char *prepared;
        const char *sql;
        enum route_class class;
        enum route_reason reason;
    } cases[] = {
        {"prepare p as select * from t", "execute p", READ(BALANCED)},
        {"select * from t where a = $1", "execute p(1)", READ(BALANCED)},
        {"prepare p as select * from t for update", "execute p", ROUTE_PRIMARY, ROUTE_R_LOCKING},
        {"prepare p as insert into t values (1)", "execute p", ROUTE_PRIMARY, ROUTE_R_WRITE},
        {"insert into t values (1)", "execute p", ROUTE_PRIMARY, ROUTE_R_WRITE},
        {"prepare p as select f_vol(1)", "execute p", ROUTE_PRIMARY, ROUTE_R_VOLATILE_FUNCTION},
        {"prepare p as select * from tmp", "execute p", READ(TEMP_TABLE)},
        {"prepare p as select $1", "execute p(nextval('s'))", ROUTE_PRIMARY,
            ROUTE_R_VOLATILE_FUNCTION},
        {"prepare p as select 1", "execute other", ROUTE_PRIMARY, ROUTE_R_UNKNOWN_PREPARED},
        {"execute p", "execute p", ROUTE_PRIMARY, ROUTE_R_UNKNOWN_PREPARED},
        {"explain execute p", "explain analyze execute p", ROUTE_PRIMARY, ROUTE_R_UNKNOWN_PREPARED},
        {"prepare p as select f_vol(1)", "explain execute p", READ(BALANCED)},
        {"prepare p as select f_vol(1)", "explain analyze execute p", ROUTE_PRIMARY,
            ROUTE_R_VOLATILE_FUNCTION},
        {"prepare p as delete from t", "explain analyze execute p", ROUTE_PRIMARY, ROUTE_R_WRITE},
    };
    struct route_test t;
    struct route_decision d;
    unsigned i;

    route_test_init(&t, 3, 2, "");
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        t.prepared_sql = cases[i].prepared;
        route_test_query(&t, cases[i].sql, &d);
        ck_assert_msg(d.class == cases[i].class && d.reason == cases[i].reason, "%s, %s: %s",
            cases[i].prepared, cases[i].sql, route_reason_text(d.reason));
        ck_assert_int_eq(d.node, d.reason == ROUTE_R_BALANCED ? t.session.balance_node : 2);
    }
    route_test_fini(&t);
}
END_TEST

/* A session's own PGPOOL SET wins over the file. */
START_TEST(session_settings)
{
    struct route_test t;
    struct route_decision d;
    struct conf_session set = {0};

    route_test_init(&t, 2, 0, "");
    route_test_query(&t, "select * from u", &d);
    ck_assert_int_eq(d.node, 0);
    t.in.set = &set; /* check_unlogged_table off, allow_sql_comments off */
    route_test_query(&t, "select * from u", &d);
    ck_assert_int_eq(d.node, 1);
    set.allow_sql_comments = true;
    route_test_query(&t, "/*NO LOAD BALANCE*/ select * from t", &d);
    ck_assert_int_eq(d.node, 1);
    route_test_fini(&t);
}
END_TEST

/* Without a primary the lowest usable node stands in; without any node there is none. */
START_TEST(no_primary)
{
    struct route_test t;
    struct route_decision d;

    route_test_init(&t, 3, 2, "");
    t.view.primary = VIEW_NO_NODE;
    t.view.node[2].status = VIEW_DOWN;
    t.view.node[0].status = VIEW_DOWN;
    route_test_query(&t, "insert into t values (1)", &d);
    ck_assert_int_eq(d.node, 1);
    t.view.node[1].status = VIEW_DOWN;
    route_test_query(&t, "insert into t values (1)", &d);
    ck_assert(d.node == VIEW_NO_NODE && d.reason == ROUTE_R_NO_NODE);
    route_test_query(&t, "select * from t", &d);
    ck_assert(d.node == VIEW_NO_NODE && d.reason == ROUTE_R_NO_NODE);
    route_test_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *tc = tcase_create("rules");

    tcase_add_loop_test(tc, every_row, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(tc, questions);
    tcase_add_test(tc, verdicts);
    tcase_add_test(tc, too_many_questions);
    tcase_add_test(tc, odd_database);
    tcase_add_test(tc, serializable_role);
    tcase_add_test(tc, read_only_tx_without_node);
    tcase_add_test(tc, terminate_backend);
    tcase_add_test(tc, execute);
    tcase_add_test(tc, session_settings);
    tcase_add_test(tc, no_primary);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
