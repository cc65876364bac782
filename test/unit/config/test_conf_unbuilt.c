/* SPDX-License-Identifier: PostgreSQL
 * test_conf_unbuilt.c: what a file asks for and this program does not have. */
#include "config.h"

#include "conf_test.h"

/* States of the features, as the table has them. */
static bool is_refused_by_switch(enum conf_feature feature)
{
    static const struct {
        const char *state;
        const char *switch_name;
    } f[] = {
#define CONF_FEATURE(sym, letter, state, switch_name, text) {#state, switch_name},
#include "config/conf_feature.def"
#undef CONF_FEATURE
    };
    return strcmp(f[feature].state, "REFUSED") == 0 && f[feature].switch_name != NULL;
}

static bool has_no_effect(enum conf_feature feature)
{
    static const char *const states[] = {
#define CONF_FEATURE(sym, letter, state, switch_name, text) #state,
#include "config/conf_feature.def"
#undef CONF_FEATURE
    };
    return strcmp(states[feature], "NO_EFFECT") == 0;
}

/* A switch that would be on and do nothing is refused; off, it may stand in the file. */
START_TEST(what_is_refused_is_an_error)
{
    static const char *const switches[] = {
#define CONF_FEATURE(sym, letter, state, switch_name, text) switch_name,
#include "config/conf_feature.def"
#undef CONF_FEATURE
    };
    struct conf_gen *gen;
    char text[256];

    for (int i = 0; i < CONF_FEATURE_COUNT; i++) {
        if (!is_refused_by_switch((enum conf_feature)i))
            continue;
        snprintf(text, sizeof text, CONF_TEST_SERVER "%s = on\n", switches[i]);
        conf_test_bad(text, 3, "not built");
        snprintf(text, sizeof text, CONF_TEST_SERVER "%s = off\n", switches[i]);
        gen = conf_test_good(text);
        conf_gen_free(&gen);
    }
}
END_TEST

START_TEST(modes_of_old_releases)
{
    conf_test_bad(
        CONF_TEST_SERVER "master_slave_sub_mode = 'slony'\nwd_hostname = 'x'\n", 3, "chose a mode");
    conf_test_bad(CONF_TEST_SERVER "master_slave_sub_mode = 'logical'\n", 3, "chose a mode");
    conf_test_bad(CONF_TEST_SERVER "replication_mode = yes\n", 3, "chose a mode");
    conf_test_warns(CONF_TEST_SERVER "replication_mode = on\n"
                                     "backend_clustering_mode = 'native_replication'\n",
        CONF_NOTE, 3, "has no effect");
    conf_test_warns(
        CONF_TEST_SERVER "master_slave_sub_mode = 'stream'\n", CONF_WARNING, 3, "was removed");
    conf_test_warns(CONF_TEST_SERVER "master_slave_sub_mode = 'logical'\n"
                                     "backend_clustering_mode = 'logical_replication'\n",
        CONF_WARNING, 3, "was removed");
}
END_TEST

/* Files of pgpool-II have a quote in an item behind a backslash. */
START_TEST(a_quote_in_an_item_is_a_quote)
{
    struct conf_gen *gen =
        conf_test_good(CONF_TEST_SERVER "primary_routing_query_pattern_list = 'a\\'b;c\\;d;\\d'\n");
    const struct conf_list *l = &conf_of(gen)->primary_routing_query_pattern_list;

    ck_assert_int_eq(l->n, 3);
    ck_assert_str_eq(l->item[0], "a'b");
    ck_assert_str_eq(l->item[1], "c;d");
    ck_assert_str_eq(l->item[2], "\\d");
    conf_gen_free(&gen);
}
END_TEST

#define TWO_SERVERS CONF_TEST_SERVER "backend_hostname1 = 'h1'\nbackend_port1 = 5432\n"

/* Nobody has to find out from the log, once somebody has logged in, whose reads will not be
 * balanced. */
START_TEST(the_price_of_passing_logins_on_is_told)
{
    static const char *const silent[] = {CONF_TEST_SERVER, TWO_SERVERS "load_balance_mode = off\n",
        TWO_SERVERS "auth_user = 'looker'\n",
        TWO_SERVERS "backend_clustering_mode = 'native_replication'\n"};
    struct conf_report report;
    struct conf_gen *gen;
    size_t i;

    conf_test_warns(
        TWO_SERVERS "load_balance_mode = on\n", CONF_NOTE, 5, "read on the primary alone");
    for (i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        gen = conf_test_load(silent[i], &report);
        ck_assert_msg(report.n == 0, "file %zu", i);
        conf_gen_free(&gen);
        conf_report_fini(&report);
    }
}
END_TEST

START_TEST(old_limits_are_told)
{
    struct conf_report report;
    struct conf_gen *gen;

    conf_test_warns(CONF_TEST_SERVER "num_init_children = 32\nmax_pool = 4\n", CONF_NOTE, 3,
        "max_clients = 32, max_backend_connections = 128");
    gen = conf_test_load(
        CONF_TEST_SERVER "num_init_children = 8\nmax_pool = 4\nmax_clients = 50\n", &report);
    ck_assert_int_eq(report.n, 0);
    conf_gen_free(&gen);
    conf_report_fini(&report);
}
END_TEST

/* Finds some parameter of a feature that is in `state`, to stay right when features get built. */
START_TEST(what_is_not_built_is_told)
{
    int n;
    int told = 0;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        const char *why;
        char text[256];
        if (conf_param_is_built(&t[i], &why) || t[i].type != CONF_STRING ||
            t[i].scope != CONF_SCOPE_GLOBAL || is_refused_by_switch(t[i].feature) ||
            has_no_effect(t[i].feature))
            continue;
        snprintf(text, sizeof(text),
            "use_watchdog = on\nmemory_cache_enabled = on\nssl = on\nssl_cert = c\nssl_key = k\n"
            "backend_port0 = 5432\nbackend_data_directory0 = '/d'\nauth_user = u\n%s = 'x'\n",
            t[i].name);
        conf_test_warns(text, CONF_WARNING, 9, "has no effect yet");
        told++;
    }
    for (int i = 0; i < n; i++)
        for (const struct conf_enum_value *v = t[i].values; v != NULL && v->text != NULL; v++) {
            char text[256];
            const char *why;
            struct conf_param of_value = {.feature = v->feature};
            if (conf_param_is_built(&of_value, &why) || t[i].scope != CONF_SCOPE_GLOBAL)
                continue;
            snprintf(text, sizeof(text), "\n%s = '%s'\n", t[i].name, v->text);
            struct conf_report report;
            struct conf_gen *gen = conf_test_load(text, &report);
            ck_assert_msg(gen == NULL
                              ? conf_test_found(&report, CONF_ERROR, 2, "not built")
                              : conf_test_found(&report, CONF_WARNING, 2, "has no effect") ||
                                    conf_test_found(&report, CONF_NOTE, 2, "has no effect"),
                "%s", text);
            conf_gen_free(&gen);
            conf_report_fini(&report);
        }
    conf_test_warns("child_life_time = 8\n", CONF_NOTE, 1, "max_clients");
    (void)told; /* 0 on the day when all is built */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conf_unbuilt");
    TCase *rules = tcase_create("rules");

    tcase_add_test(rules, what_is_not_built_is_told);
    tcase_add_test(rules, what_is_refused_is_an_error);
    tcase_add_test(rules, modes_of_old_releases);
    tcase_add_test(rules, the_price_of_passing_logins_on_is_told);
    tcase_add_test(rules, old_limits_are_told);
    tcase_add_test(rules, a_quote_in_an_item_is_a_quote);
    suite_add_tcase(s, rules);
    return conf_test_run(s);
}
