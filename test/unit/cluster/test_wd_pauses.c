/* SPDX-License-Identifier: PostgreSQL
 * test_wd_pauses.c: pauses here and in the log are brought together, whoever changed what. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/wd_pauses.h"

#include "run_suite.h"

/* Each letter is a database. */
static void fill(struct wd_pauses *p, const char *letters)
{
    char name[2] = "";

    memset(p, 0, sizeof *p);
    for (; *letters != '\0'; letters++) {
        name[0] = *letters;
        ck_assert(wd_pauses_set(p, name, true));
    }
}

static const struct {
    const char *known, *here, *agreed;
    enum wd_pauses_do what;
    const char *database;
    bool is_on;
} rows[] = {
    {"", "", "", WD_PAUSES_NOTHING, "", false},
    {"a", "a", "a", WD_PAUSES_NOTHING, "", false},
    {"", "a", "", WD_PAUSES_SAY, "a", true},      /* paused here */
    {"a", "", "a", WD_PAUSES_SAY, "a", false},    /* resumed here */
    {"", "", "a", WD_PAUSES_OBEY, "a", true},     /* paused elsewhere */
    {"a", "a", "", WD_PAUSES_OBEY, "a", false},   /* resumed elsewhere */
    {"", "a", "a", WD_PAUSES_NOTHING, "", false}, /* on both sides at once */
    {"a", "", "", WD_PAUSES_NOTHING, "", false},  /* and ended on both */
    {"ab", "ab", "abc", WD_PAUSES_OBEY, "c", true},
    {"ab", "b", "ab", WD_PAUSES_SAY, "a", false},
};

START_TEST(test_next)
{
    struct wd_pauses known;
    struct wd_pauses here;
    struct wd_pauses agreed;
    struct wd_pauses_step step;

    fill(&known, rows[_i].known);
    fill(&here, rows[_i].here);
    fill(&agreed, rows[_i].agreed);
    step = wd_pauses_next(&known, &here, &agreed);
    ck_assert_int_eq(step.what, rows[_i].what);
    ck_assert_str_eq(step.database, rows[_i].database);
    ck_assert_int_eq(step.is_on, rows[_i].is_on);
    if (step.what == WD_PAUSES_OBEY) {
        ck_assert(wd_pauses_set(&here, step.database, step.is_on));
        ck_assert_int_eq(wd_pauses_next(&known, &here, &agreed).what, WD_PAUSES_NOTHING);
    }
}
END_TEST

START_TEST(test_set)
{
    struct wd_pauses p;
    char name[WD_DATABASE_BYTES];
    int i;

    memset(&p, 0, sizeof p);
    ck_assert(!wd_pauses_set(&p, "a", false));
    ck_assert(wd_pauses_set(&p, "", true)); /* all databases */
    ck_assert(!wd_pauses_set(&p, "", true));
    for (i = 1; i < WD_PAUSES; i++) {
        snprintf(name, sizeof name, "db%d", i);
        ck_assert(wd_pauses_set(&p, name, true));
    }
    ck_assert(!wd_pauses_set(&p, "one more", true));
    ck_assert(wd_pauses_set(&p, "db7", false));
    ck_assert(!wd_pauses_has(&p, "db7") && wd_pauses_has(&p, "db8") && wd_pauses_has(&p, ""));
    ck_assert(wd_pauses_set(&p, "one more", true));
}
END_TEST

/* Some pgpools, a log, words that are lost, operators: when no more is done, all are alike. */
#define POOLS 3

struct pool {
    struct wd_pauses known, here;
    struct wd_pauses_step said; /* on its way */
};

static void step(struct pool *p, struct wd_pauses *log, unsigned r)
{
    struct wd_pauses_step next;

    if (p->said.what == WD_PAUSES_SAY) {
        if (r % 3 == 0)
            return; /* it takes its time */
        if (r % 3 == 1) {
            (void)wd_pauses_set(log, p->said.database, p->said.is_on);
            (void)wd_pauses_set(&p->known, p->said.database, p->said.is_on);
        } /* else it is lost */
        p->said.what = WD_PAUSES_NOTHING;
        return;
    }
    while (next = wd_pauses_next(&p->known, &p->here, log), next.what == WD_PAUSES_OBEY)
        ck_assert(wd_pauses_set(&p->here, next.database, next.is_on));
    p->said = next;
}

START_TEST(test_all_are_alike_in_the_end)
{
    struct pool pool[POOLS];
    struct wd_pauses log;
    unsigned seed = (unsigned)_i;
    int last = 0;
    int n;
    int i;

    memset(pool, 0, sizeof pool);
    memset(&log, 0, sizeof log);
    for (n = 0; n < 4000; n++) {
        unsigned r = (seed = seed * 1103515245u + 12345u) >> 16;
        char name[2] = {(char)('a' + r / 7 % 4), 0};

        i = (int)(r % POOLS);
        if (n < 1000 && r / 3 % 5 == 0) {
            (void)wd_pauses_set(&pool[i].here, name, r / 11 % 2 == 0);
            last = n;
        }
        step(&pool[i], &log, r / 29);
    }
    ck_assert_int_lt(last, 1000);
    for (i = 0; i < POOLS; i++)
        for (n = 0; n < 4; n++) {
            char name[2] = {(char)('a' + n), 0};

            ck_assert_msg(wd_pauses_has(&pool[i].here, name) == wd_pauses_has(&log, name),
                "seed %d: pgpool %d, database %s", _i, i, name);
        }
}
END_TEST

/* The last word of one who is alone with his changes holds. */
START_TEST(test_paused_and_resumed_before_the_log_knows)
{
    struct pool p;
    struct wd_pauses log;

    memset(&p, 0, sizeof p);
    memset(&log, 0, sizeof log);
    (void)wd_pauses_set(&p.here, "a", true);
    step(&p, &log, 0);
    (void)wd_pauses_set(&p.here, "a", false); /* while the word is on its way */
    step(&p, &log, 1);
    step(&p, &log, 0);
    ck_assert(!wd_pauses_has(&p.here, "a"));
    ck_assert_int_eq(p.said.what, WD_PAUSES_SAY);
    step(&p, &log, 1);
    ck_assert(!wd_pauses_has(&log, "a"));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("wd_pauses");
    TCase *t = tcase_create("all");

    tcase_add_loop_test(t, test_next, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(t, test_set);
    tcase_add_loop_test(t, test_all_are_alike_in_the_end, 0, 300);
    tcase_add_test(t, test_paused_and_resumed_before_the_log_knows);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return run_suite(make_suite());
}
