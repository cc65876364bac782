/* SPDX-License-Identifier: PostgreSQL
 * test_plan.c: the choices of plan.h, one row per case, each run with two and three nodes and with
 * the primary on every one of them. */
#include "config.h"

#include "../route/route_test.h"
#include "plan_test.h"
#include "run_suite.h"

/* What is known of the session. */
#define VIRTUAL  0x0001u /* BEGIN was answered, and its reads may leave */
#define ASIDE    0x0002u /* the link of its transaction is set aside */
#define AT_READS 0x0004u /* of a read-only transaction, on the node for reads */
#define LOST     0x0008u
#define STUCK    0x0010u /* reads do not leave the transaction */
#define KNOWN    0x0020u /* of the reads only those of which all is known leave */
#define HAS_READ 0x0040u
#define DUE      0x0080u
#define TIED     0x0100u
#define AVOIDS   0x0200u /* the node for reads failed a moment ago */
#define WAL_DUE  0x0400u
#define WAL_OVER 0x0800u
#define BEHIND   0x1000u  /* the standbys have not replayed the session's last write */
#define HEADLESS 0x2000u  /* there is no primary, and writes wait for one */
#define NO_ASK   0x4000u  /* a question failed */
#define KEPT     0x8000u  /* questions are kept, for a read that is made again */
#define ONLY     0x10000u /* BEGIN READ ONLY */
#define REPLAN   0x20000u
#define UNREAD   0x40000u /* nobody has looked into the text */
#define AT_HOME  0x80000u /* nothing leaves where writes go */
#define WROTE    0x100000u

/* Where to. */
enum where { P, R, NO }; /* the primary, the node for reads, none */

struct row {
    const char *settings;
    unsigned state;
    const char *text;
    enum plan_verdict verdict;
    int what; /* GO: enum plan_way; ASK: enum plan_asks */
    enum where where;
    unsigned retry;
    enum plan_snapshot snapshot;
};

#define READ   PLAN_RETRY_READ
#define FRESH  PLAN_RETRY_REPLAN
#define NONE   PLAN_SNAPSHOT_NONE
#define TOOK   PLAN_SNAPSHOT_READ
#define OWED   PLAN_SNAPSHOT_DUE
#define STAYS  PLAN_GO, PLAN_STAYS
#define WRITES PLAN_GO, PLAN_WRITES
#define READS  PLAN_GO, PLAN_READS
#define LEAVES PLAN_GO, PLAN_LEAVES
#define ASKS   PLAN_ASK, PLAN_ASKS_CATALOGUE
#define WAITS  PLAN_WAIT, 0

#define SESSION_LSN "read_consistency = 'session'"
#define GLOBAL_DML                                                                                 \
    "disable_load_balance_on_write = 'dml_adaptive_global'\nread_consistency = 'eventual'"

static const struct row queries[] = {
    /* Outside of transactions. */
    {"", 0, "select * from t", READS, R, READ, NONE},
    {"", 0, "select 1", READS, R, READ, NONE},
    {"", 0, "values (1)", READS, R, READ, NONE},
    {"", 0, "insert into t values (1)", WRITES, P, 0, NONE},
    {"", 0, "update t set a = 1", WRITES, P, 0, NONE},
    {"", 0, "with w as (delete from t returning a) select * from w", WRITES, P, 0, NONE},
    {"", 0, "select * from t for update", WRITES, P, 0, NONE},
    {"", 0, "select f_vol()", WRITES, P, 0, NONE},
    {"", 0, "select nextval('sq')", WRITES, P, 0, NONE},
    {"", 0, "select * from u", READS, P, READ, NONE},
    {"", 0, "select * from tmp", READS, P, READ, NONE},
    {"", 0, "select * from v_vol", WRITES, P, 0, NONE},
    {"", 0, "set work_mem = '4MB'", WRITES, P, 0, NONE},
    {"", 0, "reset all", WRITES, P, 0, NONE},
    {"", 0, "discard all", WRITES, P, 0, NONE},
    {"", 0, "listen a", WRITES, P, 0, NONE},
    {"", 0, "create temp table x (a int)", WRITES, P, 0, NONE},
    {"", 0, "do 'begin end'", WRITES, P, 0, NONE},
    {"", 0, "call p()", WRITES, P, 0, NONE},
    {"", 0, "copy t from stdin", WRITES, P, 0, NONE},
    {"", 0, "select 1; insert into t values (1)", WRITES, P, 0, NONE},
    {"", 0, "select 1; select 2", READS, R, READ, NONE},
    {"", 0, "selec 1", WRITES, P, 0, NONE},
    {"", 0, "declare c cursor with hold for select * from t", WRITES, P, 0, NONE},
    {"", 0, "fetch c", WRITES, P, 0, NONE},
    {"", 0, "/*NO LOAD BALANCE*/ select * from t", READS, P, READ, NONE},
    {"primary_routing_query_pattern_list = 'select 7.*'", 0, "select 7", READS, P, READ, NONE},
    {"", 0, "begin", WRITES, P, 0, NONE},
    {"", 0, "begin read only", READS, R, READ, NONE},
    {"", AT_HOME, "select * from t", STAYS, P, READ, NONE},
    {"", UNREAD, "select * from t", STAYS, P, 0, NONE},
    {"", REPLAN, "select * from t", READS, R, READ | FRESH, NONE},
    {"", REPLAN, "insert into t values (1)", WRITES, P, FRESH, NONE},
    {"load_balance_mode = off", AT_HOME, "insert into t values (1)", STAYS, P, 0, NONE},
    /* What has to be asked first. */
    {"", 0, "select * from unknown_table", ASKS, P, READ, NONE},
    {"", 0, "select unknown_function()", ASKS, P, 0, NONE},
    {"", NO_ASK, "select * from unknown_table", WRITES, P, READ, NONE},
    {"", NO_ASK, "select unknown_function()", WRITES, P, 0, NONE},
    {"", KEPT, "select * from t", PLAN_ASK, PLAN_ASKS_KEPT, P, 0, NONE},
    {"", KEPT | HEADLESS, "select * from t", WAITS, NO, 0, NONE},
    {GLOBAL_DML, 0, "insert into unknown_table values (1)", ASKS, P, 0, NONE},
    {GLOBAL_DML, NO_ASK, "insert into unknown_table values (1)", WRITES, P, 0, NONE},
    {GLOBAL_DML, 0, "insert into t values (1)", WRITES, P, 0, NONE},
    /* Where it cannot go just now. */
    {"", AVOIDS, "select * from t", READS, P, READ, NONE},
    {"", HEADLESS, "select * from t", READS, R, READ, NONE},
    {"", HEADLESS, "insert into t values (1)", WRITES, NO, 0, NONE},
    {"", TIED, "select * from t", READS, R, READ, NONE},
    {"", TIED, "begin read only", WRITES, P, 0, NONE},
    /* read_consistency. */
    {SESSION_LSN, WAL_DUE, "select * from t", PLAN_ASK, PLAN_ASKS_WRITTEN, P, READ, NONE},
    {SESSION_LSN, WAL_DUE, "insert into t values (1)", WRITES, P, 0, NONE},
    {SESSION_LSN, WAL_DUE | HEADLESS, "select * from t", WAITS, NO, READ, NONE},
    {SESSION_LSN, BEHIND, "select * from t", PLAN_ASK, PLAN_ASKS_REPLAYED, R, READ, NONE},
    {SESSION_LSN, BEHIND | WAL_OVER, "select * from t", WRITES, P, READ, NONE},
    {SESSION_LSN, BEHIND | AVOIDS, "select * from t", WRITES, P, READ, NONE},
    {SESSION_LSN, 0, "select * from t", READS, R, READ, NONE},
    /* A transaction of which no server knows. */
    {"", VIRTUAL, "select * from t", LEAVES, R, READ, TOOK},
    {"", VIRTUAL, "show work_mem", LEAVES, R, READ, NONE},
    {"", VIRTUAL, "insert into t values (1)", WRITES, P, 0, NONE},
    {"", VIRTUAL | HAS_READ, "select * from t", LEAVES, R, READ, TOOK},
    {"", VIRTUAL | HAS_READ, "insert into t values (1)", WRITES, P, 0, NONE},
    {"", VIRTUAL | HAS_READ, "set work_mem = '4MB'", WRITES, P, 0, OWED},
    {"", VIRTUAL | HAS_READ, "lock table t", WRITES, P, 0, OWED},
    {"", VIRTUAL | DUE, "insert into t values (1)", WRITES, P, 0, OWED},
    {"", VIRTUAL | STUCK, "select * from t", READS, P, 0, NONE},
    {"", VIRTUAL, "select now()", READS, P, 0, NONE},
    {"", VIRTUAL, "select * from t for share", WRITES, P, 0, NONE},
    {"", VIRTUAL, "select * from unknown_table", ASKS, P, 0, NONE},
    {"", VIRTUAL | NO_ASK, "select * from unknown_table", WRITES, P, 0, NONE},
    {"", VIRTUAL | AVOIDS, "select * from t", READS, P, 0, NONE},
    {"", VIRTUAL | TIED, "select * from t", LEAVES, R, READ, TOOK},
    {"", VIRTUAL | HEADLESS, "insert into t values (1)", WRITES, NO, 0, NONE},
    {"", VIRTUAL | ONLY, "select * from t", READS, R, 0, NONE},
    {"", VIRTUAL | ONLY | TIED, "select * from t", WRITES, P, 0, NONE},
    {SESSION_LSN, VIRTUAL | WAL_DUE, "select * from t", PLAN_ASK, PLAN_ASKS_WRITTEN, P, 0, NONE},
    {"", VIRTUAL | UNREAD, "select * from t", STAYS, P, 0, NONE},
    /* One whose link is set aside. */
    {"", ASIDE, "select * from t", LEAVES, R, READ, TOOK},
    {"", ASIDE, "insert into t values (1)", STAYS, P, 0, NONE},
    {"", ASIDE | HAS_READ, "insert into t values (1)", STAYS, P, 0, NONE},
    {"", ASIDE | HAS_READ, "set work_mem = '4MB'", STAYS, P, 0, OWED},
    {"", ASIDE | HAS_READ, "commit", STAYS, P, 0, NONE},
    {"", ASIDE | STUCK, "select * from t", STAYS, P, 0, NONE},
    {"", ASIDE, "select * from unknown_table", ASKS, P, 0, NONE},
    {"", ASIDE | KNOWN, "select * from unknown_table", STAYS, P, 0, NONE},
    {"", ASIDE | AVOIDS, "select * from t", READS, P, 0, NONE},
    {SESSION_LSN, ASIDE | BEHIND, "select * from t", STAYS, P, 0, NONE},
    {"", ASIDE | AT_READS | ONLY, "select * from u", LEAVES, P, 0, NONE},
    /* One that is lost. */
    {"", LOST, "select * from t", STAYS, P, 0, NONE},
    {"", LOST | REPLAN, "execute p", STAYS, P, 0, NONE},
};

static const struct row batches[] = {
    {"", 0, "P:select * from t\nB\nD\nE\n|", READS, R, READ, NONE},
    {"", 0, "P:insert into t values (1)\nB\nE\n|", STAYS, P, 0, NONE},
    {"", 0, "B:r\nE\n|", READS, R, READ, NONE},
    {"", 0, "B:w\nE\n|", STAYS, P, 0, NONE},
    {"", 0, "B:nobody\nE\n|", STAYS, P, 0, NONE},
    {"", 0, "B\nE\n|", STAYS, P, 0, NONE},
    {"", 0, "Px:select 1\nBp:x\nEp\n|", READS, R, READ, NONE},
    {"", 0, "P:select 1\nB\nE\nB:w\nE\n|", STAYS, P, 0, NONE},
    {"", 0, "P:select 1\nB\nE\nB:r\nE\n|", READS, R, READ, NONE},
    {"", 0, "P:select 1\nB\nE", STAYS, P, 0, NONE},
    {"", 0, "Px:select 1\nSx\n.", READS, R, READ, NONE},
    {"", 0, "Px:select 1\nB:x\nE\n.", STAYS, P, 0, NONE},
    {"", 0, "Px:select 1\n|", STAYS, P, 0, NONE},
    {"", 0, "Cx\n|", STAYS, P, 0, NONE},
    {"", 0, "P:select 1\nQ:select 1\n|", STAYS, P, 0, NONE},
    {"", 0, "P:select * from unknown_table\nB\nE\n|", ASKS, P, 0, NONE},
    {"", NO_ASK, "P:select * from unknown_table\nB\nE\n|", STAYS, P, 0, NONE},
    {"", REPLAN, "B:r\nE\n|", READS, R, READ | FRESH, NONE},
    {"", KEPT, "B:r\nE\n|", PLAN_ASK, PLAN_ASKS_KEPT, P, 0, NONE},
    {"", AVOIDS, "B:r\nE\n|", READS, P, READ, NONE},
    {"", AVOIDS, "Px:select 1\n.", STAYS, P, 0, NONE},
    {"", TIED, "B:r\nE\n|", READS, R, READ, NONE},
    {"", AT_HOME, "B:r\nE\n|", STAYS, P, 0, NONE},
    {"", LOST | REPLAN, "B:r\nE\n|", STAYS, P, 0, NONE},
    {"", HEADLESS, "B:w\nE\n|", STAYS, NO, 0, NONE},
    {SESSION_LSN, WAL_DUE, "B:r\nE\n|", PLAN_ASK, PLAN_ASKS_WRITTEN, P, 0, NONE},
    {SESSION_LSN, BEHIND, "B:r\nE\n|", PLAN_ASK, PLAN_ASKS_REPLAYED, R, 0, NONE},
    {"", VIRTUAL, "P:select * from t\nB\nD\nE\n|", LEAVES, R, READ, TOOK},
    {"", VIRTUAL, "P:select * from t\nB\nD\nF\n|", READS, P, 0, TOOK},
    {"", VIRTUAL, "P:select * from t\nBp\nEp\n|", READS, P, 0, TOOK},
    {"", VIRTUAL, "P:select * from t\nSr\n|", LEAVES, R, READ, TOOK},
    {"", VIRTUAL, "D\n|", STAYS, P, 0, NONE},
    {"", VIRTUAL, "B:r\nE\nB:w\nE\n|", STAYS, P, 0, NONE},
    {"", VIRTUAL | HAS_READ, "B:w\nE\n|", STAYS, P, 0, NONE},
    {"", ASIDE, "B:r\nE\n|", LEAVES, R, READ, TOOK},
    {"", ASIDE, "B:w\nE\n|", STAYS, P, 0, NONE},
    {"", ASIDE | AT_READS | ONLY, "P:select * from u\nB\nE\n|", LEAVES, P, 0, NONE},
};

static void set_session(struct route_test *t, unsigned state)
{
    if ((state & (VIRTUAL | ASIDE | LOST)) != 0)
        t->session.tx = (state & LOST) != 0 ? ROUTE_TX_FAILED : ROUTE_TX_OPEN;
    t->session.tx_read_only = (state & ONLY) != 0;
    t->session.wrote_in_tx = (state & WROTE) != 0;
    t->session.wrote = (state & WROTE) != 0 ? ROUTE_WROTE_IN_TX : ROUTE_WROTE_NOTHING;
    if ((state & BEHIND) != 0)
        t->session.last_write_lsn = 2000;
    if ((state & HEADLESS) != 0) {
        t->view.is_streaming = true;
        t->view.primary_epoch = 1;
        t->view.node[t->view.primary].status = VIEW_DOWN;
        t->view.primary = VIEW_NO_NODE;
    }
}

static void set_case(struct plan_test *p, unsigned state, int reads)
{
    struct plan_case *in = &p->in;

    if ((state & VIRTUAL) != 0)
        in->tx = PLAN_TX_VIRTUAL;
    if ((state & LOST) != 0)
        in->tx = PLAN_TX_LOST;
    if ((state & ASIDE) != 0) {
        in->tx = PLAN_TX_ASIDE;
        in->home_node = (state & AT_READS) != 0 ? reads : in->own_node;
    }
    if ((state & (VIRTUAL | ASIDE)) != 0 && (state & (STUCK | ONLY)) == 0)
        in->leave = (state & KNOWN) != 0 ? PLAN_LEAVE_KNOWN : PLAN_LEAVE_ASK;
    in->asking = (state & KEPT) != 0     ? PLAN_ASK_KEPT
                 : (state & NO_ASK) != 0 ? PLAN_ASK_FAILED
                                         : PLAN_MAY_ASK;
    in->snapshot = (state & DUE) != 0        ? PLAN_SNAPSHOT_DUE
                   : (state & HAS_READ) != 0 ? PLAN_SNAPSHOT_READ
                                             : PLAN_SNAPSHOT_NONE;
    in->wal = (state & WAL_OVER) != 0  ? PLAN_WAL_IS_OVER
              : (state & WAL_DUE) != 0 ? PLAN_WAL_DUE
                                       : PLAN_WAL_KNOWN;
    in->is_tied = (state & TIED) != 0;
    in->may_replan = (state & REPLAN) != 0;
    if ((state & AVOIDS) != 0)
        in->avoid_node = reads;
    if ((state & HEADLESS) != 0)
        in->write_node = VIEW_NO_NODE;
    if ((state & AT_HOME) != 0)
        in->judge = NULL;
}

static void check(const struct row *r, const struct plan_choice *got, int primary, int reads)
{
    int node = r->where == P ? primary : r->where == R ? reads : VIEW_NO_NODE;
    int what = got->verdict == PLAN_ASK  ? (int)got->asks
               : got->verdict == PLAN_GO ? (int)got->way
                                         : 0;

    ck_assert_msg(got->verdict == r->verdict && what == r->what && got->node == node &&
                      got->retry == r->retry && got->snapshot == r->snapshot,
        "%s (state %#x, primary %d, reads %d): verdict %d/%d node %d retry %d snapshot %d, %s",
        r->text, r->state, primary, reads, (int)got->verdict, what, got->node, got->retry,
        (int)got->snapshot, r->state & UNREAD ? "" : route_reason_text(got->route.reason));
}

static void run_row(const struct row *r, int nnodes, int primary, bool is_batch)
{
    struct route_test t;
    struct plan_test p;
    struct plan_choice got;
    struct sql_facts facts;
    struct buf out = {0};
    int reads;

    memset(&got, 0, sizeof got);
    route_test_init(&t, nnodes, primary, r->settings);
    reads = t.session.balance_node;
    plan_test_init(&p, t.arena, &t.in, &t.view, primary);
    set_session(&t, r->state);
    set_case(&p, r->state, reads);
    if (is_batch) {
        plan_test_messages(&out, r->text);
        plan_batch(&p.in, out.data, out.data + out.len, &got);
        ck_assert_msg((got.kept > 0) == (got.way >= PLAN_READS), "%s: %zu kept", r->text, got.kept);
        ck_assert_uint_le(got.kept, out.len);
    } else {
        memset(&facts, 0, sizeof facts);
        (void)sql_parse(t.arena, slice_of_str(r->text), &facts);
        plan_query(&p.in, slice_of_str(r->text), (r->state & UNREAD) != 0 ? NULL : &facts, &got);
    }
    check(r, &got, primary, reads);
    buf_free(&out);
    route_test_fini(&t);
}

static void run_rows(const struct row *rows, size_t n, bool is_batch)
{
    size_t i;
    int nnodes;
    int primary;

    for (i = 0; i < n; i++)
        for (nnodes = 2; nnodes <= 3; nnodes++)
            for (primary = 0; primary < nnodes; primary++)
                run_row(&rows[i], nnodes, primary, is_batch);
}

START_TEST(test_queries)
{
    run_rows(queries, sizeof queries / sizeof queries[0], false);
}
END_TEST

START_TEST(test_batches)
{
    run_rows(batches, sizeof batches / sizeof batches[0], true);
}
END_TEST

/* A sequence of more messages than are looked at stays. */
START_TEST(test_long_batch)
{
    struct route_test t;
    struct plan_test p;
    struct plan_choice got;
    struct buf out = {0};
    int i;

    route_test_init(&t, 2, 0, "");
    plan_test_init(&p, t.arena, &t.in, &t.view, 0);
    for (i = 0; i < PLAN_LOOK_MAX / 2; i++)
        plan_test_messages(&out, "B:r\nE");
    plan_test_messages(&out, "|");
    plan_batch(&p.in, out.data, out.data + out.len, &got);
    ck_assert_int_eq(got.way, PLAN_STAYS);
    ck_assert_int_eq(got.node, 0);
    buf_free(&out);
    route_test_fini(&t);
}
END_TEST

/* What keeps the reads of a transaction that has its link. */
START_TEST(test_keeps_reads)
{
    static const struct {
        const char *settings;
        bool wrote;
        bool earlier;
        bool locked;
        bool due;
        bool keeps;
    } rows[] = {
        {"", false, false, false, false, false},
        {"", true, false, false, false, true},
        {"", false, true, false, false, false},
        {"", false, false, true, false, true},
        {"disable_load_balance_on_write = 'off'", true, false, false, false, false},
        {"disable_load_balance_on_write = 'off'", true, false, true, false, true},
        {"disable_load_balance_on_write = 'always'", false, true, false, false, true},
        {"disable_load_balance_on_write = 'dml_adaptive'", true, true, false, false, false},
        {"read_consistency = 'global'", false, false, false, false, true},
        {SESSION_LSN, false, false, false, true, true},
        {SESSION_LSN, false, false, false, false, false},
        {"read_consistency = 'eventual'", false, false, false, true, false},
    };
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct conf_gen *gen = route_test_conf(2, rows[i].settings);
        struct route_session s = {.wrote_in_tx = rows[i].wrote,
            .wrote = rows[i].wrote     ? ROUTE_WROTE_IN_TX
                     : rows[i].earlier ? ROUTE_WROTE_ALONE
                                       : ROUTE_WROTE_NOTHING,
            .locked_in_tx = rows[i].locked};

        ck_assert_msg(
            plan_keeps_reads(conf_of(gen), &s, rows[i].due) == rows[i].keeps, "row %zu", i);
        conf_gen_free(&gen);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *tc = tcase_create("plan");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_queries);
    tcase_add_test(tc, test_batches);
    tcase_add_test(tc, test_long_batch);
    tcase_add_test(tc, test_keeps_reads);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
