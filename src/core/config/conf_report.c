/* SPDX-License-Identifier: PostgreSQL
 * conf_report.c: the list of findings of one load.
 * Runs in: every process, while a file is read. */
#include "config.h"

#include "conf_int.h"

#include "base/arena.h"
#include "base/mem.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void conf_report_init(struct conf_report *report)
{
    memset(report, 0, sizeof(*report));
    report->arena = arena_new("conf report", 0);
}

void conf_report_fini(struct conf_report *report)
{
    arena_free(&report->arena);
    mem_free(report->issue);
    memset(report, 0, sizeof(*report));
}

/* The report's own copy of `file`, and its rank: files are listed in the order of their first
 * finding. */
static void conf_report_place(
    struct conf_report *report, struct conf_issue *issue, const char *file, int line)
{
    issue->file = NULL;
    issue->line = line;
    issue->rank = INT_MAX;
    if (file == NULL)
        return;
    int rank = 0;
    for (int i = 0; i < report->n; i++) {
        const struct conf_issue *other = &report->issue[i];
        if (other->file == NULL)
            continue;
        if (strcmp(other->file, file) == 0) {
            issue->file = other->file;
            issue->rank = other->rank;
            return;
        }
        if (other->rank >= rank)
            rank = other->rank + 1;
    }
    issue->file = arena_strdup(report->arena, file);
    issue->rank = rank;
}

void conf_report_add(struct conf_report *report, enum conf_severity severity, const char *file,
    int line, const char *hint, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    report->nerrors += severity == CONF_ERROR;
    report->nwarnings += severity == CONF_WARNING;
    if (report->n == CONF_MAX_ISSUES) {
        report->nleft_out++;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    if (report->n == report->cap) {
        report->cap = report->cap == 0 ? 16 : report->cap * 2;
        report->issue = mem_resize(report->issue, (size_t)report->cap * sizeof(report->issue[0]));
    }
    struct conf_issue issue = {.severity = severity, .seq = report->n};
    conf_report_place(report, &issue, file, line);
    issue.text = arena_strdup(report->arena, text);
    issue.hint = hint == NULL || hint[0] == '\0' ? NULL : arena_strdup(report->arena, hint);
    report->issue[report->n++] = issue;
}

/* Orders findings by file, then by line; what is about a file as a whole comes after its lines. */
static int conf_report_order(const void *a, const void *b)
{
    const struct conf_issue *ia = a;
    const struct conf_issue *ib = b;
    if (ia->rank != ib->rank)
        return ia->rank < ib->rank ? -1 : 1;
    if (ia->line != ib->line) {
        if (ia->line == 0 || ib->line == 0)
            return ia->line == 0 ? 1 : -1;
        return ia->line < ib->line ? -1 : 1;
    }
    return ia->seq < ib->seq ? -1 : 1;
}

void conf_report_sort(struct conf_report *report)
{
    if (report->n > 1)
        qsort(report->issue, (size_t)report->n, sizeof(report->issue[0]), conf_report_order);
}

void conf_report_err(struct conf_report *report, enum conf_severity severity, const char *file,
    int line, const struct err *err)
{
    char hint[sizeof(err->detail) + sizeof(err->hint) + 2];
    snprintf(hint, sizeof(hint), "%s%s%s", err->detail,
        err->detail[0] != '\0' && err->hint[0] != '\0' ? " " : "", err->hint);
    conf_report_add(report, severity, file, line, hint, "%s", err->msg);
}

static const char *conf_severity_text(enum conf_severity severity)
{
    switch (severity) {
    case CONF_NOTE:
        return "note";
    case CONF_WARNING:
        return "warning";
    case CONF_ERROR:
        break;
    }
    return "error";
}

void conf_issue_format(const struct conf_issue *issue, struct buf *out)
{
    if (issue->file != NULL)
        buf_printf(out, "%s:", issue->file);
    if (issue->file != NULL && issue->line > 0)
        buf_printf(out, "%d:", issue->line);
    buf_printf(out, "%s%s: %s", issue->file == NULL ? "" : " ", conf_severity_text(issue->severity),
        issue->text);
    if (issue->hint != NULL)
        buf_printf(out, "\n  hint: %s", issue->hint);
}

void conf_report_format(const struct conf_report *report, struct buf *out)
{
    for (int i = 0; i < report->n; i++) {
        conf_issue_format(&report->issue[i], out);
        buf_put_byte(out, '\n');
    }
    if (report->nleft_out > 0)
        buf_printf(out, "%d more findings are left out\n", report->nleft_out);
    buf_printf(out, "%d error%s, %d warning%s\n", report->nerrors, report->nerrors == 1 ? "" : "s",
        report->nwarnings, report->nwarnings == 1 ? "" : "s");
}
