/* SPDX-License-Identifier: PostgreSQL
 * conf_report.c: the list of findings of one load.
 * Runs in: every process, while a file is read. */
#include "config.h"

#include "conf_int.h"

#include "base/arena.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
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

void conf_report_add(struct conf_report *report, enum conf_severity severity, const char *file,
    int line, const char *hint, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    if (report->n == report->cap) {
        report->cap = report->cap == 0 ? 16 : report->cap * 2;
        report->issue = mem_resize(report->issue, (size_t)report->cap * sizeof(report->issue[0]));
    }
    struct conf_issue *issue = &report->issue[report->n++];
    issue->severity = severity;
    issue->file = file == NULL ? NULL : arena_strdup(report->arena, file);
    issue->line = line;
    issue->text = arena_strdup(report->arena, text);
    issue->hint = hint == NULL || hint[0] == '\0' ? NULL : arena_strdup(report->arena, hint);
    report->nerrors += severity == CONF_ERROR;
    report->nwarnings += severity == CONF_WARNING;
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
    buf_printf(out, "%d error%s, %d warning%s\n", report->nerrors, report->nerrors == 1 ? "" : "s",
        report->nwarnings, report->nwarnings == 1 ? "" : "s");
}
