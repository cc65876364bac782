/* SPDX-License-Identifier: PostgreSQL
 * test_replicate_copy.c: rows of COPY with columns filled in, cut at every place; and what of a
 * COPY statement is filled in. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "replicate/copy.h"
#include "replicate/rewrite.h"

#include "run_suite.h"

static const struct {
    struct repl_copy_form form;
    const char *in;
    const char *out;
} fills[] = {
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "1\n2\n", "1\tV\n2\tV\n"},
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "1\r\n2\r\n", "1\tV\r\n2\tV\r\n"},
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "1\r2\r", "1\tV\r2\tV\r"},
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "1\n2", "1\tV\n2\tV"},
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "", ""},
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "\n\n", "\tV\n\tV\n"},
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "a\\\nb\nc\\\\\nd\n",
        "a\\\nb\tV\nc\\\\\tV\nd\tV\n"},
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "1\n\\.\n\n\n", "1\tV\n\\.\n\n\n"},
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "1\n\\.", "1\tV\n\\."},
    {{REPL_COPY_TEXT, '\t', '"', '"', false, false}, "\"1\n2\"\n", "\"1\tV\n2\"\tV\n"},
    {{REPL_COPY_TEXT, '|', '"', '"', true, false}, "id\n1\n", "id|H\n1|V\n"},
    {{REPL_COPY_CSV, ',', '"', '"', false, false}, "1,\"a\nb\"\n2,c\n",
        "1,\"a\nb\",\"V\"\n2,c,\"V\"\n"},
    {{REPL_COPY_CSV, ',', '"', '"', true, false}, "id\n\"a\"\"\n\"\n",
        "id,\"H\"\n\"a\"\"\n\",\"V\"\n"},
    {{REPL_COPY_CSV, ';', '\'', '\\', false, false}, "'a\\'\n'\nb\\\n", "'a\\'\n';'V'\nb\\;'V'\n"},
    {{REPL_COPY_CSV, ',', '"', '\\', false, false}, "\"a\\\\\"\nb\n", "\"a\\\\\",\"V\"\nb,\"V\"\n"},
};

static void fill(const struct repl_copy_form *form, const char *in, size_t cut, struct buf *out)
{
    struct repl_copy copy = {.form = *form};
    struct slice v = slice_of_str("V");
    struct slice h = slice_of_str("H");
    struct buf row = {0};
    struct buf head = {0};
    size_t n = strlen(in);

    repl_copy_put_row(form, &v, 1, &row);
    repl_copy_put_row(form, &h, 1, &head);
    copy.row = buf_slice(&row);
    copy.header = buf_slice(&head);
    if (cut > n) { /* byte by byte */
        for (size_t i = 0; i < n; i++)
            repl_copy_fill(&copy, slice_of(in + i, 1), out);
    } else {
        repl_copy_fill(&copy, slice_of(in, cut), out);
        repl_copy_fill(&copy, slice_of(in + cut, n - cut), out);
    }
    repl_copy_end(&copy, out);
    buf_free(&row);
    buf_free(&head);
}

START_TEST(test_rows)
{
    for (size_t cut = 0; cut <= strlen(fills[_i].in) + 1; cut++) {
        struct buf out = {0};

        fill(&fills[_i].form, fills[_i].in, cut, &out);
        buf_put_byte(&out, '\0');
        ck_assert_str_eq(out.data, fills[_i].out);
        buf_free(&out);
    }
}
END_TEST

START_TEST(test_values)
{
    struct repl_copy_form form = {REPL_COPY_TEXT, ',', '"', '"', false, false};
    struct slice v[2] = {slice_of_str("a\\b,c\nd\re"), slice_of_str("x\"y")};
    struct buf out = {0};

    repl_copy_put_row(&form, v, 2, &out);
    buf_put_byte(&out, '\0');
    ck_assert_str_eq(out.data, ",a\\\\b\\,c\\nd\\re,x\"y");
    buf_clear(&out);
    form.format = REPL_COPY_CSV;
    repl_copy_put_row(&form, v, 2, &out);
    buf_put_byte(&out, '\0');
    ck_assert_str_eq(out.data, ",\"a\\b,c\nd\re\",\"x\"\"y\"");
    buf_free(&out);
}
END_TEST

#define S(x)                                                                                       \
    {                                                                                              \
        x, sizeof(x) - 1                                                                           \
    }

static const struct repl_column columns[] = {
    {S("id"), S("integer"), S("nextval('s'::regclass)"), false, true},
    {S("at"), S("timestamp with time zone"), S("now()"), false, false},
    {S("Day"), S("date"), S("CURRENT_DATE"), false, false},
    {S("note"), S("text"), S("'x'::text"), false, false},
    {S("u"), S("uuid"), S("gen_random_uuid()"), false, false},
};
static const struct repl_table table = {columns, 5, 0, false, true, true};

static const struct repl_table *find(void *ctx, const struct sql_table *t)
{
    (void)ctx;
    return slice_eq_str(t->name, "unknown") ? NULL : &table;
}

static const struct {
    const char *sql;
    const char *want; /* NULL: as it is */
    unsigned nasks;
    bool serial;
    bool differs;
    struct repl_copy_form form;
} plans[] = {
    {"copy t from stdin", NULL, 0, false, false, {0}},
    {"copy s.t (id, at, \"Day\", note, u) from stdin", NULL, 0, false, false, {0}},
    {"copy t (at, \"Day\", u) from stdin", NULL, 0, true, false, {0}},
    {"copy t (id, u) from stdin", "copy t (id, u, \"at\", \"Day\") from stdin", 2, false, false,
        {REPL_COPY_TEXT, '\t', '"', '"', false, false}},
    {"copy t (id, u) from stdin with (format csv, header, delimiter ';')",
        "copy t (id, u, \"at\", \"Day\") from stdin with (format csv, header, delimiter ';')", 2,
        false, false, {REPL_COPY_CSV, ';', '"', '"', true, false}},
    {"copy t (id, u) from stdin with (format csv, header 'off')",
        "copy t (id, u, \"at\", \"Day\") from stdin with (format csv, header 'off')", 2, false,
        false, {REPL_COPY_CSV, ',', '"', '"', false, false}},
    {"copy t (id, u) from stdin csv quote as '''' escape E'\\\\'",
        "copy t (id, u, \"at\", \"Day\") from stdin csv quote as '''' escape E'\\\\'", 2, false,
        false, {REPL_COPY_CSV, ',', '\'', '\\', false, false}},
    {"copy t (id, \"at\", \"Day\") from stdin", NULL, 0, false, true, {0}},
    {"copy t (id, u) from stdin (format binary)", NULL, 0, false, true, {0}},
    {"copy binary t (id, u) from stdin", NULL, 0, false, true, {0}},
    {"copy t from stdin (default '\\D')", NULL, 0, true, true, {0}},
};

START_TEST(test_plan)
{
    struct arena *a = arena_new("test", 0);
    struct repl_catalog catalog = {find, NULL};
    struct sql_facts facts;
    struct repl_plan plan;
    struct buf out = {0};
    struct slice sql = slice_of_str(plans[_i].sql);

    ck_assert_int_eq(sql_parse(a, sql, &facts), 0);
    (void)repl_rewrite_plan(a, sql, &facts.stmts[0], &catalog, false, 0, &plan);
    ck_assert_int_eq(plan.verdict, plans[_i].want == NULL ? REPL_KEEP : REPL_REWRITE);
    ck_assert_uint_eq(plan.nasks, plans[_i].nasks);
    ck_assert_int_eq(plan.serial != NULL, plans[_i].serial);
    ck_assert_int_eq(plan.differs.n > 0, plans[_i].differs);
    if (plans[_i].want != NULL) {
        repl_rewrite_text(&plan, sql, &facts.stmts[0], NULL, &out);
        buf_put_byte(&out, '\0');
        ck_assert_str_eq(out.data, plans[_i].want);
        ck_assert_uint_eq(plan.copy->n, 2);
        ck_assert_int_eq(plan.copy->form.format, plans[_i].form.format);
        ck_assert_int_eq(plan.copy->form.delimiter, plans[_i].form.delimiter);
        ck_assert_int_eq(plan.copy->form.quote, plans[_i].form.quote);
        ck_assert_int_eq(plan.copy->form.escape, plans[_i].form.escape);
        ck_assert_int_eq(plan.copy->form.has_header, plans[_i].form.has_header);
    } else {
        ck_assert_ptr_null(plan.copy);
    }
    buf_free(&out);
    arena_free(&a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replicate_copy");
    TCase *tc = tcase_create("copy");

    tcase_add_loop_test(tc, test_rows, 0, sizeof fills / sizeof fills[0]);
    tcase_add_test(tc, test_values);
    tcase_add_loop_test(tc, test_plan, 0, sizeof plans / sizeof plans[0]);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
