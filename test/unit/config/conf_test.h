/* SPDX-License-Identifier: PostgreSQL
 * conf_test.h: what the tests of the config module share. */
#ifndef PGP_TEST_CONF_TEST_H
#define PGP_TEST_CONF_TEST_H

#include "config/conf.h"
#include "config/conf_param.h"

#include "base/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONF_TEST_SERVER "backend_hostname0 = 'h0'\nbackend_port0 = 5432\n"

static inline struct conf_gen *conf_test_load(const char *text, struct conf_report *report)
{
    conf_report_init(report);
    return conf_load_text("/nowhere/pgpool.conf", slice_of_str(text), report);
}

/* Prints all findings, for the message of a failed test. The result is static. */
static inline const char *conf_test_findings(const struct conf_report *report)
{
    static char text[2048]; /* Check refuses longer messages */
    struct buf b = {0};
    conf_report_format(report, &b);
    snprintf(text, sizeof(text), "%.*s", (int)buf_unread(&b), b.data);
    buf_free(&b);
    return text;
}

/* Only the errors of a report: with many warnings they would not fit. */
static inline const char *conf_test_errors(const struct conf_report *report)
{
    static char text[2048];
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < report->n && n < sizeof(text); i++)
        if (report->issue[i].severity == CONF_ERROR)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "line %d: %s\n",
                report->issue[i].line, report->issue[i].text);
    return text;
}

/* Loads a text that must be right. */
static inline struct conf_gen *conf_test_good(const char *text)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_load(text, &report);
    ck_assert_msg(gen != NULL, "refused:\n%s", conf_test_errors(&report));
    conf_report_fini(&report);
    return gen;
}

/* True when there is a finding of `severity` at `line` whose text or hint contains `part`. */
static inline bool conf_test_found(
    const struct conf_report *report, enum conf_severity severity, int line, const char *part)
{
    for (int i = 0; i < report->n; i++) {
        const struct conf_issue *issue = &report->issue[i];
        if (issue->severity != severity || issue->line != line)
            continue;
        if (strstr(issue->text, part) != NULL ||
            (issue->hint != NULL && strstr(issue->hint, part) != NULL))
            return true;
    }
    return false;
}

/* A text with exactly one error, at `line`, that contains `part`. */
static inline void conf_test_bad(const char *text, int line, const char *part)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_load(text, &report);
    ck_assert_msg(gen == NULL, "accepted: %s", text);
    ck_assert_msg(report.nerrors == 1 && conf_test_found(&report, CONF_ERROR, line, part),
        "wanted line %d: %s\ngot:\n%s", line, part, conf_test_findings(&report));
    conf_report_fini(&report);
}

/* A right text with a finding of `severity` at `line` that contains `part`. */
static inline void conf_test_warns(
    const char *text, enum conf_severity severity, int line, const char *part)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_load(text, &report);
    ck_assert_msg(gen != NULL, "refused:\n%s", conf_test_findings(&report));
    ck_assert_msg(conf_test_found(&report, severity, line, part), "wanted line %d: %s\ngot:\n%s",
        line, part, conf_test_findings(&report));
    conf_gen_free(&gen);
    conf_report_fini(&report);
}

/* Reads a whole file; free with mem_free. */
static inline char *conf_test_slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "cannot open %s", path);
    struct buf b = {0};
    char chunk[4096];
    size_t n;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        buf_put(&b, chunk, n);
    fclose(f);
    char *text = mem_strndup(b.data == NULL ? "" : b.data, buf_unread(&b));
    buf_free(&b);
    return text;
}

/* Runs the suite; returns the exit code of the program. */
static inline int conf_test_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
