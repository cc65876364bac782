/* SPDX-License-Identifier: PostgreSQL
 * test_conf_docs.c: the documents made from the table: the checked-in files are up to date, the
 * sample is a right file, and every default that departs from pgpool-II is explained. */
#include "config.h"

#include "conf_test.h"

#include "config/conf_describe.h"

#define CONF_TEST_ROOT TOP_SRCDIR "/"

/* ---- drift ---- */

static void conf_test_same(const char *path, void (*describe)(struct buf *))
{
    struct buf b = {0};
    char *file = conf_test_slurp(path);
    describe(&b);
    buf_put_byte(&b, '\0');
    size_t at = 0;
    int line = 1;
    while (file[at] != '\0' && file[at] == b.data[at])
        line += file[at++] == '\n';
    ck_assert_msg(file[at] == b.data[at],
        "%s is out of date from line %d on; make it anew (doc/internals/settings-how-to.md)", path,
        line);
    mem_free(file);
    buf_free(&b);
}

START_TEST(sample_is_up_to_date)
{
    conf_test_same(CONF_TEST_ROOT "pgpool.conf.sample", conf_describe_sample);
}
END_TEST

START_TEST(reference_is_up_to_date)
{
    conf_test_same(CONF_TEST_ROOT "doc/user/reference-settings.md", conf_describe_man);
}
END_TEST

START_TEST(man_page_is_up_to_date)
{
    conf_test_same(CONF_TEST_ROOT "doc/man/pgpool.conf.5", conf_describe_roff);
}
END_TEST

/* ---- the sample as a file ---- */

/* Takes the # away from lines "#name = value". */
static void conf_test_uncomment(const char *text, struct buf *out)
{
    for (const char *p = text; *p != '\0';) {
        const char *eol = strchr(p, '\n');
        size_t n = eol == NULL ? strlen(p) : (size_t)(eol - p) + 1;
        bool is_setting = p[0] == '#' && p[1] >= 'a' && p[1] <= 'z' && memchr(p, '=', n) != NULL;
        buf_put(out, p + is_setting, n - is_setting);
        p += n;
    }
    buf_put_byte(out, '\0');
}

START_TEST(sample_holds_the_defaults)
{
    struct buf sample = {0};
    struct buf active = {0};
    struct conf_report report;
    conf_describe_sample(&sample);
    buf_put_byte(&sample, '\0');
    struct conf_gen *defaults = conf_test_good("");
    struct conf_gen *commented = conf_test_load(sample.data, &report);
    ck_assert_msg(commented != NULL && report.n == 1, "%s", conf_test_findings(&report));
    ck_assert(conf_equal(defaults, commented));
    conf_report_fini(&report);

    conf_test_uncomment(sample.data, &active);
    struct conf_gen *all = conf_test_load(active.data, &report);
    ck_assert_msg(all != NULL, "%s", conf_test_findings(&report));
    ck_assert_ptr_null(strstr(conf_test_findings(&report), "unrecognized"));
    int n;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        struct conf_ref ref = {&t[i], -1};
        struct buf a = {0};
        struct buf b = {0};
        if (t[i].scope != CONF_SCOPE_GLOBAL)
            continue;
        conf_format_value(defaults, NULL, &ref, CONF_STYLE_CANONICAL, &a);
        conf_format_value(all, NULL, &ref, CONF_STYLE_CANONICAL, &b);
        ck_assert_msg(slice_eq(buf_slice(&a), buf_slice(&b)), "%s", t[i].name);
        buf_free(&a);
        buf_free(&b);
    }
    ck_assert_int_eq(conf_of(all)->nodes[0].backend_port, 5432); /* the example */
    conf_report_fini(&report);
    conf_gen_free(&defaults);
    conf_gen_free(&commented);
    conf_gen_free(&all);
    buf_free(&sample);
    buf_free(&active);
}
END_TEST

START_TEST(every_parameter_is_described)
{
    int n;
    struct buf sample = {0};
    struct buf man = {0};
    struct buf json = {0};
    const struct conf_param *t = conf_param_table(&n);
    conf_describe_sample(&sample);
    conf_describe_man(&man);
    conf_describe_json(&json);
    buf_put_byte(&sample, '\0');
    buf_put_byte(&man, '\0');
    buf_put_byte(&json, '\0');
    for (int i = 0; i < n; i++) {
        char part[128];
        bool numbered = t[i].scope != CONF_SCOPE_GLOBAL;
        ck_assert_uint_gt(strlen(t[i].brief), 0);
        ck_assert_uint_le(strlen(t[i].brief), 80);
        ck_assert_msg(t[i].brief[strlen(t[i].brief) - 1] != '.', "%s", t[i].name);
        ck_assert_msg(t[i].text[strlen(t[i].text) - 1] == '.', "%s", t[i].name);
        snprintf(part, sizeof(part), "\"name\": \"%s\"", t[i].name);
        ck_assert_msg(strstr(json.data, part) != NULL, "%s", t[i].name);
        if ((t[i].flags & CONF_NO_SHOW) != 0)
            continue;
        snprintf(part, sizeof(part), "%s%s`", t[i].name, numbered ? "N" : "");
        ck_assert_msg(strstr(man.data, part) != NULL, "%s", t[i].name);
        snprintf(part, sizeof(part), "\n#%s%s = ", t[i].name, numbered ? "0" : "");
        ck_assert_msg(strstr(sample.data, part) != NULL || strstr(sample.data, t[i].name) != NULL,
            "%s", t[i].name);
    }
    ck_assert_ptr_null(strstr(sample.data, " \n")); /* no blanks at the end of a line */
    buf_free(&sample);
    buf_free(&man);
    buf_free(&json);
}
END_TEST

START_TEST(names_of_descriptions)
{
    struct err err = {0};
    struct buf b = {0};
    ck_assert_int_eq(conf_describe("sample", &b, &err), 0);
    ck_assert_int_eq(conf_describe("man", &b, &err), 0);
    ck_assert_int_eq(conf_describe("roff", &b, &err), 0);
    ck_assert_int_eq(conf_describe("json", &b, &err), 0);
    ck_assert_int_eq(conf_describe("xml", &b, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.hint, "sample, man, roff, json"));
    buf_free(&b);
}
END_TEST

/* ---- defaults of pgpool-II ---- */

static const struct {
    const char *name;
    const char *value; /* as PGPOOL SHOW prints it */
} pgpool_defaults[] = {
#define PGPOOL_DEFAULT(name, value) {name, value},
#include "pgpool_defaults.def"
#undef PGPOOL_DEFAULT
};

/* True when `section` of compat.md has a line that begins "| `name` |", or nameN. */
static bool conf_test_is_explained(const char *section, const struct conf_ref *ref)
{
    char part[128];
    snprintf(part, sizeof(part), "\n| `%s%s` |", ref->param->name, ref->index < 0 ? "" : "N");
    return strstr(section, part) != NULL;
}

START_TEST(departures_from_pgpool_are_explained)
{
    char *compat = conf_test_slurp(CONF_TEST_ROOT "doc/internals/compat.md");
    char *section = strstr(compat, "\n## Defaults\n");
    ck_assert_ptr_nonnull(section);
    char *end = strstr(section + 5, "\n## ");
    if (end != NULL)
        *end = '\0';
    struct conf_gen *gen = conf_test_good("");
    int departures = 0;
    for (size_t i = 0; i < sizeof(pgpool_defaults) / sizeof(pgpool_defaults[0]); i++) {
        struct conf_ref ref;
        struct err err = {0};
        struct buf b = {0};
        const char *name = pgpool_defaults[i].name;
        ck_assert_msg(conf_param_find(name, &ref, &err) == 0, "%s is missing", name);
        if (ref.param->scope != CONF_SCOPE_GLOBAL)
            ref.index = 0;
        conf_format_value(gen, NULL, &ref, CONF_STYLE_SHOW, &b);
        buf_put_byte(&b, '\0');
        bool departs =
            (ref.param->flags & CONF_SECRET) == 0 && strcmp(b.data, pgpool_defaults[i].value) != 0;
        ck_assert_msg(departs == conf_test_is_explained(section, &ref),
            "%s: pgpool-II has \"%s\", we have \"%s\"; compat.md says otherwise", name,
            pgpool_defaults[i].value, b.data);
        departures += departs;
        buf_free(&b);
    }
    ck_assert_int_gt(departures, 0);
    conf_gen_free(&gen);
    mem_free(compat);
}
END_TEST

/* pgpool-II's parameters are all there, and what pgpool-II does not know is marked as ours. */
START_TEST(ours_are_marked)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        bool theirs = false;
        for (size_t k = 0; k < sizeof(pgpool_defaults) / sizeof(pgpool_defaults[0]); k++) {
            struct conf_ref ref;
            struct err err = {0};
            ck_assert_int_eq(conf_param_find(pgpool_defaults[k].name, &ref, &err), 0);
            theirs |= strcmp(ref.param->name, t[i].name) == 0;
        }
        ck_assert_msg(theirs == ((t[i].flags & CONF_OURS) == 0), "%s", t[i].name);
    }
}
END_TEST

static Suite *conf_docs_suite(void)
{
    Suite *s = suite_create("conf_docs");
    TCase *docs = tcase_create("docs");
    tcase_add_test(docs, sample_is_up_to_date);
    tcase_add_test(docs, reference_is_up_to_date);
    tcase_add_test(docs, man_page_is_up_to_date);
    tcase_add_test(docs, sample_holds_the_defaults);
    tcase_add_test(docs, every_parameter_is_described);
    tcase_add_test(docs, names_of_descriptions);
    tcase_add_test(docs, departures_from_pgpool_are_explained);
    tcase_add_test(docs, ours_are_marked);
    suite_add_tcase(s, docs);
    return s;
}

int main(void)
{
    return conf_test_run(conf_docs_suite());
}
