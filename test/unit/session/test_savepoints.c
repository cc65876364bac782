/* SPDX-License-Identifier: PostgreSQL
 * test_savepoints.c: what ROLLBACK TO brings back, as a table of transactions. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sstate/savepoints_int.h"
#include "run_suite.h"

/* A transaction in words: `set X` gives the one setting that there is the value X, `pin N` and `let
 * N` tie the session by reason N and let go of it; the others are SQL's. It begins with `start`. */
struct case_ {
    const char *what;
    const char *script;
    const char *value; /* behind it */
    uint32_t pins;
    unsigned left; /* savepoints */
};

static const struct case_ cases[] = {
    {"back to what was set in front of it", "set a; savepoint p; set b; rollback p", "a", 0, 1},
    {"back to what was before any SET", "savepoint p; set b; rollback p", "start", 0, 1},
    {"it stays, and can be gone back to again",
        "set a; savepoint p; set b; rollback p; set c; rollback p", "a", 0, 1},
    {"what is set behind the rollback holds", "savepoint p; set b; rollback p; set c", "c", 0, 1},
    {"newer ones go with the rollback",
        "savepoint p; set a; savepoint q; set b; rollback p; set c; rollback q", "c", 0, 1},
    {"back to the newer, and then to the older",
        "set a; savepoint p; set b; savepoint q; set c; rollback q; rollback p", "a", 0, 1},
    {"an older one of that name is hidden",
        "set a; savepoint p; set b; savepoint p; set c; rollback p", "b", 0, 2},
    {"... until the newer is released",
        "set a; savepoint p; set b; savepoint p; set c; release p; rollback p", "a", 0, 1},
    {"a released one is none", "set a; savepoint p; release p; set b; rollback p", "b", 0, 0},
    {"RELEASE changes no setting", "set a; savepoint p; set b; release p", "b", 0, 0},
    {"RELEASE takes newer ones along",
        "set a; savepoint p; savepoint q; release p; set b; rollback q", "b", 0, 0},
    {"... and leaves older ones",
        "set a; savepoint p; set b; savepoint q; release q; set c; rollback p", "a", 0, 1},
    {"a name that is none changes nothing", "set a; savepoint p; set b; rollback q", "b", 0, 1},
    {"nor does its release", "set a; savepoint p; set b; release q; rollback p", "a", 0, 1},
    {"none at all", "set a; rollback p; release p", "a", 0, 0},
    {"what ties since then ties still", "savepoint p; pin 2; rollback p", "start", 1U << 2, 1},
    {"what was let go since then ties again", "pin 3; savepoint p; let 3; rollback p", "start",
        1U << 3, 1},
    {"RELEASE ties nothing", "pin 3; savepoint p; let 3; release p", "start", 0, 0},
    {"the end of the transaction forgets them", "savepoint p; savepoint q; end; set a; rollback p",
        "a", 0, 0},
};

static struct varset_store store;
static struct savepoints sp;
static struct sstate_vars vars;
static uint32_t pins;

static void start(void)
{
    varset_store_init(&store);
    memset(&sp, 0, sizeof sp);
    memset(&vars, 0, sizeof vars);
    pins = 0;
    vars.client = varset_empty(&store);
    vars.link = varset_ref(vars.client);
}

/* Nothing is left of a transaction: no set but the empty one. */
static void end(void)
{
    savepoints_forget(&sp);
    sstate_vars_clear(&vars);
    ck_assert_uint_eq(store.table.count, 1);
    varset_store_fini(&store);
}

static void set(const char *value)
{
    ck_assert_int_eq(varset_put(&vars.client, slice_of_str("x"), slice_of_str(value)), 0);
    varset_assign(&vars.link, vars.client);
}

static void do_word(const char *verb, const char *arg)
{
    struct slice name = slice_of_str(arg);
    uint32_t bit = 1U << (strtoul(arg, NULL, 10) & 31);

    if (strcmp(verb, "set") == 0)
        set(arg);
    else if (strcmp(verb, "pin") == 0)
        pins |= bit;
    else if (strcmp(verb, "let") == 0)
        pins &= ~bit;
    else if (strcmp(verb, "savepoint") == 0)
        ck_assert(savepoints_set(&sp, name, &vars, pins));
    else if (strcmp(verb, "rollback") == 0)
        savepoints_roll_back_to(&sp, name, &vars, &pins);
    else if (strcmp(verb, "release") == 0)
        savepoints_release(&sp, name);
    else if (strcmp(verb, "end") == 0)
        savepoints_forget(&sp);
    else
        ck_abort_msg("no such word: %s", verb);
}

static void play(const char *script)
{
    char text[256];
    char verb[32];
    char arg[32];
    char *rest = text;
    char *one;

    ck_assert_uint_lt(strlen(script), sizeof text);
    memcpy(text, script, strlen(script) + 1);
    while ((one = strsep(&rest, ";")) != NULL) {
        arg[0] = '\0';
        ck_assert_int_ge(sscanf(one, "%31s %31s", verb, arg), 1);
        do_word(verb, arg);
    }
}

START_TEST(a_transaction)
{
    const struct case_ *c = &cases[_i];

    set("start");
    play(c->script);
    ck_assert_msg(slice_eq_str(varset_get(vars.client, slice_of_str("x")), c->value) &&
                      vars.link == vars.client,
        "%s: the setting is %.*s", c->what, (int)varset_get(vars.client, slice_of_str("x")).n,
        varset_get(vars.client, slice_of_str("x")).p);
    ck_assert_msg(pins == c->pins, "%s: tied by %x", c->what, pins);
    ck_assert_msg(sp.n == c->left, "%s: %u left", c->what, sp.n);
}
END_TEST

START_TEST(the_link_may_have_another_set)
{
    struct varset *then;

    set("a");
    varset_drop(&vars.link, slice_of_str("x")); /* RESET: the server's default */
    then = vars.link;
    do_word("savepoint", "p");
    set("b");
    do_word("rollback", "p");
    ck_assert_ptr_eq(vars.link, then);
    ck_assert(slice_eq_str(varset_get(vars.client, slice_of_str("x")), "a"));
}
END_TEST

START_TEST(too_many_are_said_so)
{
    unsigned i;

    for (i = 0; i < SAVEPOINTS_MAX; i++)
        ck_assert(savepoints_set(&sp, slice_of_str("p"), &vars, 0));
    ck_assert(!savepoints_set(&sp, slice_of_str("p"), &vars, 0));
    savepoints_release(&sp, slice_of_str("p"));
    ck_assert(savepoints_set(&sp, slice_of_str("p"), &vars, 0));
}
END_TEST

START_TEST(a_name_has_its_length)
{
    char name[SAVEPOINT_NAME_BYTES + 1];

    memset(name, 'n', sizeof name);
    ck_assert(savepoints_set(&sp, slice_of(name, sizeof name - 1), &vars, 0));
    ck_assert_uint_eq(sp.n, 0); /* 64 bytes: the server would cut it, or has */
    ck_assert(savepoints_set(&sp, slice_of(name, sizeof name - 2), &vars, 0));
    ck_assert_uint_eq(sp.n, 1);
    set("b");
    savepoints_roll_back_to(&sp, slice_of(name, sizeof name - 3), &vars, &pins); /* a prefix */
    ck_assert(slice_eq_str(varset_get(vars.client, slice_of_str("x")), "b"));
    savepoints_roll_back_to(&sp, slice_of(name, sizeof name - 2), &vars, &pins);
    ck_assert(varset_is_empty(vars.client));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("savepoints");
    TCase *tc = tcase_create("savepoints");

    tcase_add_checked_fixture(tc, start, end);
    tcase_add_loop_test(tc, a_transaction, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(tc, the_link_may_have_another_set);
    tcase_add_test(tc, too_many_are_said_so);
    tcase_add_test(tc, a_name_has_its_length);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
