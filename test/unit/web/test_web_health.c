/* SPDX-License-Identifier: PostgreSQL
 * test_web_health.c: what is said to be wrong, from what is known. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"
#include "base/mem.h"
#include "ipc/orders.h"
#include "web_int.h"
#include "run_suite.h"

static const char settings[] = "backend_hostname0 = 'db0'\n"
                               "backend_port0 = 5432\n"
                               "backend_hostname1 = 'db1'\n"
                               "backend_port1 = 5433\n"
                               "max_clients = 100\n"
                               "delay_threshold = 1000\n";

static struct conf_gen *gen;
static struct view *view;
static struct web_facts facts;
static struct web_trouble troubles[WEB_TROUBLES_MAX];
static int ntroubles;

static void load(const char *text)
{
    struct conf_report report;

    conf_gen_free(&gen);
    conf_report_init(&report);
    gen = conf_load_text("/nonexistent/pgpool.conf", slice_of_str(text), &report);
    ck_assert_ptr_nonnull(gen);
    conf_report_fini(&report);
}

static void setup(void)
{
    int i;

    load(settings);
    view = mem_alloc_zero(sizeof *view);
    view->nnodes = 2;
    view->is_streaming = true;
    view->primary_epoch = 1;
    view->sw.node = view->sw.target = VIEW_NO_NODE;
    for (i = 0; i < 2; i++) {
        view->node[i].status = VIEW_UP;
        view->node[i].pg_status = VIEW_PG_UP;
        view->node[i].role = view->node[i].pg_role = i == 1 ? VIEW_ROLE_PRIMARY : VIEW_ROLE_STANDBY;
    }
    view->primary = 1;
    memset(&facts, 0, sizeof facts);
    facts.nworkers = 2;
    facts.nclients = 7;
}

static void teardown(void)
{
    mem_free(view);
    conf_gen_free(&gen);
}

static void judge(void)
{
    ntroubles = web_health_judge(&facts, view, conf_of(gen), troubles);
    ck_assert_int_ge(ntroubles, 1);
}

/* The trouble of that kind; it must be there. */
static const struct web_trouble *has(enum web_trouble_kind kind)
{
    int i;

    for (i = 0; i < ntroubles; i++)
        if (troubles[i].kind == kind)
            return &troubles[i];
    ck_abort_msg("%s is not said", web_trouble_code(kind));
    return NULL;
}

START_TEST(test_all_is_well)
{
    judge();
    ck_assert_int_eq(ntroubles, 1);
    ck_assert_str_eq(
        has(WEB_TROUBLE_NONE)->en, "All is well: 2 of 2 servers are up, 7 clients are here.");
    ck_assert_int_eq(web_trouble_level(WEB_TROUBLE_NONE), WEB_GOOD);
    ck_assert_ptr_nonnull(strstr(troubles[0].ja, "2 / 2"));
}
END_TEST

START_TEST(test_no_primary)
{
    view->primary = VIEW_NO_NODE;
    view->node[1].status = VIEW_DOWN;
    view->node[1].pg_status = VIEW_PG_DOWN;
    view->node[1].role = VIEW_ROLE_UNKNOWN;
    judge();
    ck_assert_int_eq(troubles[0].kind, WEB_TROUBLE_NO_PRIMARY);
    ck_assert(web_trouble_may_log_in(WEB_TROUBLE_NO_PRIMARY));
    ck_assert_str_eq(has(WEB_TROUBLE_NODE_DOWN)->en,
        "Server 1 (db1:5433) is down: it does not answer. It is used again as soon as it answers.");
    snprintf(facts.cause[1], sizeof facts.cause[1], "SSL error: certificate has expired");
    judge();
    ck_assert_str_eq(has(WEB_TROUBLE_NODE_DOWN)->en,
        "Server 1 (db1:5433) is down: it does not answer (SSL error: certificate has expired). It "
        "is "
        "used again as soon as it answers.");
    ck_assert_ptr_nonnull(
        strstr(has(WEB_TROUBLE_NODE_DOWN)->ja, "(応答なし (SSL error: certificate has expired))"));
}
END_TEST

/* Nothing is promised that will not be. */
START_TEST(test_down_without_auto_failback)
{
    char text[512];

    snprintf(text, sizeof text, "%sauto_failback = off\n", settings);
    load(text);
    view->node[0].status = VIEW_DOWN;
    view->node[0].pg_status = VIEW_PG_DOWN;
    judge();
    ck_assert_str_eq(has(WEB_TROUBLE_NODE_GONE)->en,
        "Server 0 (db0:5432) is down: it does not answer. auto_failback is off: when it answers "
        "again and follows server 1 (db1:5433), the primary, somebody has to attach it.");
    view->node[0].pg_status = VIEW_PG_UP;
    judge();
    ck_assert_str_eq(has(WEB_TROUBLE_NODE_WAITS)->en,
        "Server 0 (db0:5432) answers, but auto_failback is off: it is not used until somebody "
        "attaches it. Look first whether it follows the primary.");
    view->node[0].pg_role = VIEW_ROLE_PRIMARY;
    judge();
    ck_assert_str_eq(has(WEB_TROUBLE_NODE_FORMER_STAYS)->en,
        "Server 0 (db0:5432) says that it is the primary, but server 1 (db1:5433) is: it is not "
        "used. auto_failback is off: rebuild it as a standby and attach it (pcp_recovery_node does "
        "both).");
    ck_assert_ptr_nonnull(strstr(troubles[0].ja, "attach"));
}
END_TEST

/* The sentence tells what has to be done: a former primary does not return by itself. */
START_TEST(test_why_down)
{
    view->node[0].status = VIEW_DOWN;
    view->node[0].pg_status = VIEW_PG_DOWN;
    snprintf(facts.cause[0], sizeof facts.cause[0], "connection refused");
    judge();
    ck_assert_ptr_nonnull(strstr(has(WEB_TROUBLE_NODE_LEFT)->en,
        "it does not answer (connection refused). It is used again as soon as it answers and "
        "follows server 1 (db1:5433), the primary"));
    view->node[0].is_busy = true;
    judge();
    (void)has(WEB_TROUBLE_NODE_BUSY);
    ck_assert_ptr_null(strstr(has(WEB_TROUBLE_NODE_BUSY)->en, "refused"));
    view->node[0].is_busy = false;
    view->node[0].pg_status = VIEW_PG_UP;
    view->node[0].pg_role = VIEW_ROLE_PRIMARY;
    judge();
    ck_assert_str_eq(has(WEB_TROUBLE_NODE_FORMER)->en,
        "Server 0 (db0:5432) says that it is the primary, but server 1 (db1:5433) is: it is not "
        "used. Rebuild it as a standby, then it returns by itself.");
    view->node[0].pg_role = VIEW_ROLE_STANDBY;
    judge();
    (void)has(WEB_TROUBLE_NODE_BACK);
    view->node[0].status = VIEW_QUARANTINE;
    judge();
    (void)has(WEB_TROUBLE_NODE_BACK);
    view->node[0].pg_role = VIEW_ROLE_PRIMARY;
    judge();
    (void)has(WEB_TROUBLE_NODE_FORMER);
}
END_TEST

START_TEST(test_a_standby_that_follows_nobody)
{
    view->node[0].is_unfed = true;
    judge();
    ck_assert_int_eq(troubles[0].kind, WEB_TROUBLE_NODE_UNFED);
    ck_assert_str_eq(troubles[0].en, "Standby 0 (db0:5432) streams nothing of the primary, server "
                                     "1 (db1:5433): what it has gets "
                                     "older. Its own log says why.");
    ck_assert_ptr_nonnull(
        strstr(troubles[0].ja, "サーバー 1 (db1:5433) からストリーミングしていません"));
    ck_assert_int_eq(web_trouble_level(troubles[0].kind), WEB_WARNING);
    view->node[0].status = VIEW_DOWN;
    judge();
    ck_assert_int_eq(ntroubles, 1); /* what is down needs no more words */
    ck_assert_int_eq(troubles[0].kind, WEB_TROUBLE_NODE_BACK);
}
END_TEST

START_TEST(test_certificates)
{
    facts.now_s = 1000 * 86400;
    facts.cert.expires_s = facts.now_s + CERT_DATES_SOON_S + 1;
    snprintf(facts.cert.setting, sizeof facts.cert.setting, "ssl_cert");
    snprintf(facts.cert.file, sizeof facts.cert.file, "/etc/server.crt");
    judge();
    (void)has(WEB_TROUBLE_NONE);
    facts.now_s++;
    judge();
    ck_assert_str_eq(has(WEB_TROUBLE_CERT_EXPIRES)->en,
        "The certificate of ssl_cert (\"/etc/server.crt\") expires at 1972-10-11 00:00:01 GMT. "
        "Renew it and reload.");
    facts.now_s = facts.cert.expires_s;
    judge();
    ck_assert_int_eq(ntroubles, 1);
    ck_assert_ptr_nonnull(
        strstr(has(WEB_TROUBLE_CERT_EXPIRED)->en, "has expired at 1972-10-11 00:00:01 GMT"));
    ck_assert_ptr_nonnull(strstr(troubles[0].ja, "期限切れ"));
}
END_TEST

START_TEST(test_no_server)
{
    view->primary = VIEW_NO_NODE;
    view->node[0].pg_status = view->node[1].pg_status = VIEW_PG_DOWN;
    judge();
    ck_assert_int_eq(troubles[0].kind, WEB_TROUBLE_NO_SERVER);
    ck_assert(!web_trouble_may_log_in(troubles[0].kind));
    ck_assert_str_eq(troubles[0].en, "No PostgreSQL server can be used, of 2: nobody can log in.");
    snprintf(facts.cause[1], sizeof facts.cause[1], "certificate verify failed");
    judge();
    ck_assert_str_eq(troubles[0].en, "No PostgreSQL server can be used, of 2: nobody can log in "
                                     "(server 1: certificate verify failed).");
}
END_TEST

START_TEST(test_roles_nobody_can_ask_for)
{
    view->primary = VIEW_NO_NODE;
    view->primary_epoch = 0;
    view->node[0].role = view->node[0].pg_role = VIEW_ROLE_UNKNOWN;
    view->node[1].role = view->node[1].pg_role = VIEW_ROLE_UNKNOWN;
    judge();
    ck_assert_int_eq(troubles[0].kind, WEB_TROUBLE_NONE);
    ck_assert(web_health_can_write(view));
}
END_TEST

START_TEST(test_taken_out)
{
    view->node[0].held_down = true;
    view->node[0].status = VIEW_DOWN;
    memcpy(view->node[0].held_by, "PCP user ann", 13);
    judge();
    ck_assert_ptr_nonnull(
        strstr(has(WEB_TROUBLE_NODE_HELD)->en, "0 (db0:5432) was taken out by PCP user ann"));
}
END_TEST

START_TEST(test_limits)
{
    facts.nclients = 90;
    judge();
    ck_assert_int_eq(troubles[0].kind, WEB_TROUBLE_NEARLY_FULL);
    facts.nclients = 100;
    facts.nwaiting = 3;
    judge();
    ck_assert_int_eq(troubles[0].kind, WEB_TROUBLE_FULL);
    ck_assert_int_eq(strncmp(has(WEB_TROUBLE_WAITING)->en, "3 clients wait", 14), 0);
}
END_TEST

START_TEST(test_lag)
{
    view->node[0].delay_bytes = 1000;
    judge();
    ck_assert_int_eq(troubles[0].kind, WEB_TROUBLE_NONE);
    view->node[0].delay_bytes = 1001;
    judge();
    ck_assert_ptr_nonnull(strstr(has(WEB_TROUBLE_LAGGING)->en, "by 1001 bytes"));
}
END_TEST

START_TEST(test_orders_and_stop)
{
    facts.orders = ORDER_PAUSE;
    judge();
    ck_assert(web_trouble_may_log_in(has(WEB_TROUBLE_PAUSED)->kind));
    facts.orders = ORDER_DRAIN;
    facts.is_stopping = true;
    facts.nworkers = 0;
    judge();
    ck_assert_int_eq(troubles[0].kind, WEB_TROUBLE_STOPPING);
    ck_assert(!web_trouble_may_log_in(has(WEB_TROUBLE_DRAINED)->kind));
    (void)has(WEB_TROUBLE_NO_WORKER);
}
END_TEST

/* No name of a database or operator can break out of the room that a sentence has. */
START_TEST(test_long_names)
{
    memset(facts.ordered, '{', sizeof facts.ordered - 1);
    view->node[0].held_down = true;
    memset(view->node[0].held_by, '}', sizeof view->node[0].held_by);
    judge();
    (void)has(WEB_TROUBLE_ORDERED);
    ck_assert_uint_lt(strlen(has(WEB_TROUBLE_NODE_HELD)->en), WEB_SENTENCE_BYTES);
}
END_TEST

static enum web_lead lead(const char *local, const char *status, const char *quorum)
{
    static const char *const columns[] = {"pgpool_id", "local", "status", "quorum"};
    struct admin_row *rows[2];
    struct admin_result res = {.columns = columns, .ncolumns = 4};
    enum web_lead found;
    int i;

    for (i = 0; i < 2; i++) {
        rows[i] = mem_alloc_zero(sizeof *rows[i] + 4 * sizeof rows[i]->cell[0]);
        rows[i]->cell[0] = slice_of_str(i == 0 ? "0" : "1");
        rows[i]->cell[1] = slice_of_str(i == 0 ? "false" : local);
        rows[i]->cell[2] = slice_of_str(i == 0 ? "LEADER" : status);
        rows[i]->cell[3] = slice_of_str(quorum);
    }
    rows[0]->next = rows[1];
    res.rows = rows[0];
    found = web_leader_judge(&res);
    mem_free(rows[0]);
    mem_free(rows[1]);
    return found;
}

START_TEST(test_leader)
{
    struct admin_result none = {0};

    ck_assert_int_eq(lead("true", "LEADER", "QUORUM EXIST"), WEB_LEAD_OURS);
    ck_assert_int_eq(lead("true", "LEADER", "QUORUM IS ON THE EDGE"), WEB_LEAD_OURS);
    ck_assert_int_eq(lead("true", "LEADER", "QUORUM ABSENT"), WEB_LEAD_OTHERS);
    ck_assert_int_eq(lead("true", "STANDBY", "QUORUM EXIST"), WEB_LEAD_OTHERS);
    ck_assert_int_eq(lead("false", "LEADER", "QUORUM EXIST"), WEB_LEAD_UNKNOWN);
    ck_assert_int_eq(web_leader_judge(&none), WEB_LEAD_UNKNOWN);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("web_health");
    TCase *t = tcase_create("judge");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_all_is_well);
    tcase_add_test(t, test_no_primary);
    tcase_add_test(t, test_no_server);
    tcase_add_test(t, test_why_down);
    tcase_add_test(t, test_certificates);
    tcase_add_test(t, test_a_standby_that_follows_nobody);
    tcase_add_test(t, test_down_without_auto_failback);
    tcase_add_test(t, test_roles_nobody_can_ask_for);
    tcase_add_test(t, test_taken_out);
    tcase_add_test(t, test_limits);
    tcase_add_test(t, test_lag);
    tcase_add_test(t, test_orders_and_stop);
    tcase_add_test(t, test_long_names);
    tcase_add_test(t, test_leader);
    suite_add_tcase(s, t);
    return run_suite(s);
}
