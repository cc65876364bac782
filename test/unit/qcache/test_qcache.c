/* SPDX-License-Identifier: PostgreSQL
 * test_qcache.c: what may be kept, and what statements change: by their texts (qcache_rows.def), by
 * the catalogue's answers, and how long that is believed. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/conf.h"
#include "qcache/qcache.h"

#include "run_suite.h"

#define QCACHE_W_NOTHING 0U

struct row {
    const char *text;
    unsigned expected;
};

static const struct row reads[] = {
#define READ(reason, text) {text, QCACHE_R_##reason},
#define WRITES(flags, text)
#include "qcache_rows.def"
#undef READ
#undef WRITES
};

static const struct row writes[] = {
#define READ(reason, text)
#define WRITES(flags, text) {text, QCACHE_W_##flags},
#include "qcache_rows.def"
#undef READ
#undef WRITES
};

static struct conf_gen *conf_of_text(const char *settings)
{
    struct conf_report report;
    struct conf_gen *gen;

    conf_report_init(&report);
    gen = conf_load_text("/nowhere/pgpool.conf", slice_of_str(settings), &report);
    conf_report_fini(&report);
    ck_assert_ptr_nonnull(gen);
    return gen;
}

static struct qcache_rules *rules_of(const char *settings, struct conf_gen **gen)
{
    struct qcache_rules *r;
    struct err err;

    *gen = conf_of_text(settings);
    err_clear(&err);
    r = qcache_rules_new(conf_of(*gen), &err);
    ck_assert_msg(r != NULL, "%s", err.msg);
    return r;
}

START_TEST(texts_are_judged)
{
    struct arena *a = arena_new("test", 0);
    struct sql_facts facts;
    bool is_forced;
    size_t i;

    for (i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        enum qcache_reason r;
        uint8_t kept = 0;
        int again;

        arena_reset(a);
        (void)sql_parse(a, slice_of_str(reads[i].text), &facts);
        r = qcache_text_reason(&facts, slice_of_str(reads[i].text), &is_forced);
        ck_assert_msg(r == reads[i].expected, "%s: %s", reads[i].text, qcache_reason_text(r));
        ck_assert_int_eq(is_forced, strstr(reads[i].text, "FORCE QUERY") != NULL);
        for (again = 0; again < 2; again++) {
            bool is_forced_again = !is_forced;

            ck_assert_int_eq(qcache_text_reason_once(
                                 &kept, &facts, slice_of_str(reads[i].text), &is_forced_again),
                r);
            ck_assert_int_eq(is_forced_again, is_forced);
            ck_assert_uint_ne(kept, 0);
        }
    }
    arena_free(&a);
}
END_TEST

START_TEST(writes_are_known)
{
    struct arena *a = arena_new("test", 0);
    struct sql_facts facts;
    size_t i;

    for (i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        uint32_t w;

        arena_reset(a);
        (void)sql_parse(a, slice_of_str(writes[i].text), &facts);
        w = qcache_writes(&facts, slice_of_str(writes[i].text));
        ck_assert_msg(w == writes[i].expected, "%s: %x", writes[i].text, w);
    }
    arena_free(&a);
}
END_TEST

START_TEST(parameters_may_be_the_time)
{
    static const char plain[] = "\0\0\0\2\0\0\0\4snow\377\377\377\377\0\0";
    static const char now[] = "\0\1\0\0\0\1\0\0\0\5 NOW \0\0";

    ck_assert(!qcache_values_may_be_time(slice_of(plain, sizeof plain - 1)));
    ck_assert(qcache_values_may_be_time(slice_of(now, sizeof now - 1)));
    ck_assert(qcache_values_may_be_time(slice_of(now, 9)));
}
END_TEST

/* Messages by their letters, each without a body. */
static struct slice reply(const char *letters, char bytes[128])
{
    size_t n;

    for (n = 0; letters[n] != '\0'; n++)
        memcpy(bytes + 5 * n, (char[5]){letters[n], 0, 0, 0, 4}, 5);
    return slice_of(bytes, 5 * n);
}

START_TEST(a_result_is_columns_rows_and_a_tag)
{
    static const struct {
        const char *in;
        unsigned number;
        unsigned nstatements;
        bool has_shape;
        const char *expected;
    } cases[] = {
        {"TDDCZ", 0, 1, true, "TDDC"},
        {"TCZ", 0, 1, true, "TC"},
        {"12TDC", 0, 1, true, "TDC"},
        {"2DCZ", 0, 1, false, "DC"},
        {"2TDCZ", 0, 1, false, NULL},
        {"2DCZ", 0, 1, true, NULL},
        {"12TDC2DCZ", 0, 2, true, "TDC"},
        {"12TDC2DCZ", 1, 2, false, "DC"},
        {"12TDC2DCZ", 1, 2, true, NULL},
        {"12TDCZ", 0, 2, true, NULL},
        {"TDECZ", 0, 1, true, NULL},
        {"NTDCZ", 0, 1, true, NULL},
        {"TDSCZ", 0, 1, true, NULL},
        {"12TDsZ", 0, 1, true, NULL},
        {"TDTDCZ", 0, 1, true, NULL},
        {"TDCTDCZ", 0, 1, true, NULL},
        {"TDCZZ", 0, 1, true, NULL},
        {"IZ", 0, 1, true, NULL},
        {"TD", 0, 1, true, NULL},
    };
    char in[128];
    char want[128];
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slice got = qcache_result_in(
            reply(cases[i].in, in), cases[i].number, cases[i].nstatements, cases[i].has_shape);

        ck_assert_msg((got.p == NULL) == (cases[i].expected == NULL) &&
                          (got.p == NULL || slice_eq(got, reply(cases[i].expected, want))),
            "%s", cases[i].in);
    }
}
END_TEST

/* One row of the catalogue's answer. */
static void row(struct qcache_judge *j, const char *kind, const char *i, const char *a,
    const char *b, const char *name)
{
    const struct slice value[QCACHE_COLUMNS] = {
        slice_of_str(kind), slice_of_str(i), slice_of_str(a), slice_of_str(b), slice_of_str(name)};

    qcache_judge_row(j, value);
}

static void judgement_free(struct qcache_judgement *j)
{
    mem_free(j->reads);
    mem_free(j->writes);
    mem_free(j->tables);
    mem_free(j);
}

/* What is said of one table and one function when the catalogue says this of them. */
static unsigned judged(const char *settings, const char *bits, const char *table, const char *volat,
    const char *function, const char *db)
{
    static const char question[] = "r\0t\0f\0\1\0f"; /* one table, one function */
    struct qcache_judgement *out;
    struct conf_gen *gen;
    struct qcache_rules *rules = rules_of(settings, &gen);
    struct qcache_judge *j = qcache_judge_new(slice_of(question, sizeof question), rules);
    unsigned reason;

    if (bits != NULL)
        row(j, "r", "0", "16385", bits, table);
    if (volat != NULL)
        row(j, "f", "0", volat, "0", function);
    if (db != NULL)
        row(j, "d", "0", db, "0", "");
    out = qcache_judge_end(&j, slice_of_str("key"));
    ck_assert_int_eq(out->nreads, bits == NULL ? 0 : 1);
    reason = out->reason;
    judgement_free(out);
    qcache_rules_free(&rules);
    conf_gen_free(&gen);
    return reason;
}

#define SAFE(list)   "cache_safe_memqcache_table_list = '" list "'\n"
#define UNSAFE(list) "cache_unsafe_memqcache_table_list = '" list "'\n"

START_TEST(catalogue_decides)
{
    static const struct {
        const char *settings;
        const char *bits; /* of the table; NULL: it is not found */
        const char *volat;
        const char *function;
        const char *db;
        enum qcache_reason expected;
    } cases[] = {
        {"", "64", "0", "f", "0", QCACHE_R_NONE},
        {"", NULL, "0", "f", "0", QCACHE_R_MISSING},
        {"", "64", NULL, "f", "0", QCACHE_R_MISSING},
        {"", "64", "0", "f", NULL, QCACHE_R_UNKNOWN},
        {"", "64", "0", "f", "1", QCACHE_R_ODD},
        {"", "65", "0", "f", "0", QCACHE_R_CATALOG},
        {"", "66", "0", "f", "0", QCACHE_R_TEMP},
        {"", "68", "0", "f", "0", QCACHE_R_UNLOGGED},
        {SAFE("t"), "68", "0", "f", "0", QCACHE_R_NONE},
        {SAFE("s.t"), "68", "0", "f", "0", QCACHE_R_NONE},
        {SAFE("x.t"), "68", "0", "f", "0", QCACHE_R_UNLOGGED},
        {SAFE("t"), "66", "0", "f", "0", QCACHE_R_TEMP},
        {"", "72", "0", "f", "0", QCACHE_R_FOREIGN},
        {"", "192", "0", "f", "0", QCACHE_R_CATALOG_NAME},
        {"", "64", "0", "pg_partition_root", "0", QCACHE_R_FUNCTION},
        {"", "64", "0", "acldefault", "0", QCACHE_R_FUNCTION},
        {"memqcache_safe_function_list = 'acl.*'\n", "64", "0", "acldefault", "0", QCACHE_R_NONE},
        {"", "80", "0", "f", "0", QCACHE_R_SEQUENCE},
        {UNSAFE("t"), "64", "0", "f", "0", QCACHE_R_UNSAFE},
        {SAFE("t") UNSAFE("t"), "64", "0", "f", "0", QCACHE_R_UNSAFE},
        {"", "64", "2", "f", "0", QCACHE_R_FUNCTION},
        {"", "64", "2", "to_char", "0", QCACHE_R_NONE},
        {"", "64", "1", "to_char", "0", QCACHE_R_FUNCTION},
        {"memqcache_safe_function_list = 'f'\n", "64", "2", "f", "0", QCACHE_R_NONE},
        {"memqcache_safe_function_list = 'f'\n", "64", "5", "f", "0", QCACHE_R_FUNCTION},
        {"memqcache_safe_function_list = 'f'\n", "64", "6", "f", "0", QCACHE_R_NONE},
        {"", "64", "6", "to_char", "0", QCACHE_R_FUNCTION},
        {"memqcache_safe_function_list = 'to_char'\n", "64", "6", "to_char", "0", QCACHE_R_NONE},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned r = judged(cases[i].settings, cases[i].bits, "s.t", cases[i].volat,
            cases[i].function, cases[i].db);

        ck_assert_msg(r == (unsigned)cases[i].expected, "case %zu: %s", i,
            qcache_reason_text((enum qcache_reason)r));
    }
}
END_TEST

START_TEST(numbers_are_sorted_and_told_once)
{
    struct conf_gen *gen;
    struct qcache_rules *rules = rules_of("memqcache_expire_list = 't1:5, s.t:60'\n", &gen);
    struct qcache_judge *j = qcache_judge_new(slice_of("w\0t", 4), rules);
    struct qcache_judgement *out;

    row(j, "r", "0", "300", "64", "s.t");
    row(j, "r", "0", "200", "0", "s.t1");
    row(j, "r", "0", "300", "64", "s.t");
    row(j, "w", "0", "300", "0", "");
    row(j, "w", "0", "100", "0", "");
    row(j, "x", "0", "0", "0", "");
    row(j, "f", "0", "5", "0", "f");
    row(j, "d", "0", "2", "0", "");
    out = qcache_judge_end(&j, slice_of_str("key"));
    ck_assert_int_eq(out->nreads, 2);
    ck_assert_int_eq(out->reads[0], 200);
    ck_assert_int_eq(out->nwrites, 2);
    ck_assert_int_eq(out->expire_s, 5);
    ck_assert_int_eq(out->ntables, 2);
    ck_assert_int_eq(out->tables[1].oid, 200);
    ck_assert_int_eq(memcmp(out->tables[1].text, "st1", 3), 0);
    ck_assert_int_eq(out->tables[1].schema_len, 1);
    ck_assert_int_eq(out->writes[0], 100);
    ck_assert(out->writes_more && out->runs_code && out->repeats_reads);
    judgement_free(out);
    qcache_rules_free(&rules);
    conf_gen_free(&gen);
}
END_TEST

/* A name that our folding makes another one of, as that of a table in SJIS, or in upper case with
 * an accent in LATIN1: what the server writes is not known then. What is created is not there yet.
 */
START_TEST(what_is_written_and_not_found_may_be_anything)
{
    struct conf_gen *gen;
    struct qcache_rules *rules = rules_of("", &gen);
    static const char *const question[] = {"w\0t", "c\0t", "r\0t"};
    size_t i;

    for (i = 0; i < 3; i++) {
        struct qcache_judge *j = qcache_judge_new(slice_of(question[i], 4), rules);
        struct qcache_judgement *out;

        row(j, "d", "0", "0", "0", "");
        out = qcache_judge_end(&j, slice_of_str("key"));
        ck_assert_uint_eq(out->writes_more, i == 0);
        judgement_free(out);
    }
    qcache_rules_free(&rules);
    conf_gen_free(&gen);
}
END_TEST

START_TEST(what_no_row_should_be_makes_all_unknown)
{
    static const char *const bad[][2] = {{"q", "0"}, {"r", "x"}, {"r", "99"}, {"", "0"}};
    struct conf_gen *gen;
    struct qcache_rules *rules = rules_of("", &gen);
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct qcache_judge *j = qcache_judge_new(slice_of("r\0t", 4), rules);
        struct qcache_judgement *out;

        row(j, "r", "0", "300", "64", "s.t");
        row(j, "d", "0", "0", "0", "");
        row(j, bad[i][0], bad[i][1], "1", "0", "x");
        out = qcache_judge_end(&j, slice_of_str("key"));
        ck_assert_int_eq(out->reason, QCACHE_R_UNKNOWN);
        ck_assert_int_eq(out->forced_reason, QCACHE_R_UNKNOWN);
        ck_assert(out->writes_more && out->runs_code);
        judgement_free(out);
    }
    qcache_rules_free(&rules);
    conf_gen_free(&gen);
}
END_TEST

#define NCELLS 1024

static struct qcache_judgement *judgement(
    const struct qcache_rules *rules, const char *key, struct cache_gens *g, cache_cell cell)
{
    struct qcache_judge *j = qcache_judge_new(slice_of("r\0t", 4), rules);
    struct qcache_judgement *out = qcache_judge_end(&j, slice_of_str(key));

    cache_deps_init(&out->known);
    cache_deps_add(&out->known, g, cell);
    (void)cache_deps_read(&out->known, g, 1);
    return out;
}

START_TEST(what_stands_behind_ddl_is_doubtful)
{
    uint32_t traits = 0;

    ck_assert(!qcache_is_behind(&traits, QCACHE_W_TABLES, 1));
    ck_assert(!qcache_is_behind(&traits, QCACHE_W_CATALOG | QCACHE_W_TABLES, 1));
    ck_assert(qcache_is_behind(&traits, QCACHE_W_TABLES, 1));
    ck_assert(qcache_is_behind(&traits, QCACHE_W_CATALOG | QCACHE_W_TABLES, 1));
    ck_assert(!qcache_is_behind(&traits, QCACHE_W_COMMITS, 1));
    traits = 0;
    ck_assert(qcache_is_behind(&traits, QCACHE_W_CATALOG | QCACHE_W_TABLES, 2));
    traits = 0;
    ck_assert(qcache_is_behind(&traits, QCACHE_W_NAMES | QCACHE_W_TABLES, 1));
}
END_TEST

static bool is_moved(struct cache_gens *g, cache_cell moved, uint32_t what)
{
    const cache_cell db = 7;
    struct qcache_judgement j = {.reason = 0};
    struct cache_deps judged = {0};
    struct cache_deps before;

    cache_deps_init(&j.known);
    cache_deps_add(&j.known, g, db);
    cache_deps_add(&j.known, g, cache_cell_table(db, 0));
    (void)cache_deps_read(&j.known, g, 0);
    qcache_note_judged(&judged, what, &j);
    if (moved != 0)
        cache_gens_bump(g, &moved, 1, (struct cache_written){0, 0});
    cache_deps_init(&before);
    cache_deps_add(&before, g, db);
    (void)cache_deps_read(&before, g, 0);
    qcache_settle_judged(&judged, g, db, (struct cache_written){.us = 1});
    return !cache_deps_hold(&before, g);
}

START_TEST(who_was_misjudged_wrote_anything)
{
    void *mem = mem_alloc_zero(cache_gens_bytes(NCELLS, 1));
    struct cache_gens *g = cache_gens_init(mem, NCELLS, 1);

    ck_assert(!is_moved(g, 0, QCACHE_W_TABLES));
    ck_assert(!is_moved(g, cache_cell_table(7, 12), QCACHE_W_TABLES));
    ck_assert(is_moved(g, cache_cell_table(7, 0), QCACHE_W_TABLES));
    ck_assert(!is_moved(g, cache_cell_table(7, 0), QCACHE_W_TABLES | QCACHE_W_CATALOG));
    mem_free(mem);
}
END_TEST

START_TEST(the_book_forgets)
{
    size_t bytes = cache_gens_bytes(NCELLS, 1);
    void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct cache_gens *g = cache_gens_init(mem, NCELLS, 1);
    struct qcache_book *b = qcache_book_new(1, 1000);
    cache_cell cell = cache_cell_database(slice_of_str("d"));
    struct conf_gen *gen;
    struct qcache_rules *rules = rules_of("", &gen);
    struct cache_written w = {0};
    char name[16];
    int i;

    for (i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "k%d", i);
        qcache_book_put(b, judgement(rules, name, g, cell), 0);
        ck_assert_ptr_nonnull(qcache_book_find(b, g, slice_of_str("k0"), 999999));
    }
    ck_assert_ptr_null(qcache_book_find(b, g, slice_of_str("k1"), 0)); /* for k0 is in use */
    ck_assert_ptr_nonnull(qcache_book_find(b, g, slice_of_str("k99"), 0));
    ck_assert_ptr_null(qcache_book_find(b, g, slice_of_str("k99"), 1000000));
    cache_gens_bump(g, &cell, 1, w);
    ck_assert_ptr_null(qcache_book_find(b, g, slice_of_str("k0"), 0));
    qcache_book_free(&b);
    qcache_rules_free(&rules);
    conf_gen_free(&gen);
    munmap(mem, bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("qcache");
    TCase *tc = tcase_create("qcache");

    tcase_add_test(tc, texts_are_judged);
    tcase_add_test(tc, writes_are_known);
    tcase_add_test(tc, parameters_may_be_the_time);
    tcase_add_test(tc, a_result_is_columns_rows_and_a_tag);
    tcase_add_test(tc, catalogue_decides);
    tcase_add_test(tc, numbers_are_sorted_and_told_once);
    tcase_add_test(tc, what_is_written_and_not_found_may_be_anything);
    tcase_add_test(tc, what_no_row_should_be_makes_all_unknown);
    tcase_add_test(tc, what_stands_behind_ddl_is_doubtful);
    tcase_add_test(tc, who_was_misjudged_wrote_anything);
    tcase_add_test(tc, the_book_forgets);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
