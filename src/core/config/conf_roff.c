/* SPDX-License-Identifier: PostgreSQL
 * conf_roff.c: the reference of settings as man page pgpool.conf(5).
 * Runs in: the pgpool command. It is the text of the manual's chapter, line by line in the language
 * of man pages, so that there is one description of each setting. */
#include "config.h"

#include "config/conf_describe.h"

#include <string.h>

/* Puts text: words of code in bold, what roff would take for a command protected. */
static void roff_text(const char *p, size_t n, struct buf *out)
{
    const char *end = p + n;
    bool bold = false;

    if (n > 0 && (*p == '.' || *p == '\''))
        buf_printf(out, "\\&");
    for (; p < end; p++) {
        if (*p == '`') {
            bold = !bold;
            buf_printf(out, "%s", bold ? "\\fB" : "\\fR");
        } else if (*p == '*' && p + 1 < end && p[1] == '*') {
            p++; /* bold words of the chapter need no mark here */
        } else if (*p == '\\') {
            buf_printf(out, "\\e");
        } else if (*p == '-') {
            buf_printf(out, "\\-");
        } else {
            buf_put_byte(out, *p);
        }
    }
    buf_put_byte(out, '\n');
}

/* The cells of a row of a table: the first in front, the others behind it. */
static void roff_row(const char *p, size_t n, struct buf *out)
{
    const char *bar = memchr(p + 1, '|', n - 1);

    if (bar == NULL || strncmp(p, "|---", 4) == 0 || strncmp(p, "| old name", 10) == 0)
        return;
    buf_printf(out, ".TP\n");
    roff_text(p + 2, (size_t)(bar - p) - 3, out);
    roff_text(bar + 2, (size_t)(p + n - bar) - 4, out);
}

static void roff_line(const char *p, size_t n, struct buf *out)
{
    if (n == 0 || strncmp(p, "<!--", 4) == 0 || strncmp(p, "# ", 2) == 0)
        return;
    if (strncmp(p, "## ", 3) == 0) {
        buf_printf(out, ".SH %.*s\n", (int)(n - 3), p + 3);
    } else if (strncmp(p, "### ", 4) == 0) {
        buf_printf(out, ".TP\n");
        roff_text(p + 4, n - 4, out);
    } else if (strncmp(p, "- ", 2) == 0) {
        buf_printf(out, ".br\n");
        roff_text(p + 2, n - 2, out);
    } else if (*p == '|') {
        roff_row(p, n, out);
    } else {
        roff_text(p, n, out);
    }
}

void conf_describe_roff(struct buf *out)
{
    struct buf chapter = {0};
    bool is_later = false; /* a paragraph of the introduction, but not the first */
    bool in_settings = false;
    const char *p;

    conf_describe_man(&chapter);
    buf_put_byte(&chapter, '\0');
    buf_printf(out,
        ".\\\" SPDX-License-Identifier: PostgreSQL\n"
        ".\\\" Made by pgpool --describe=roff. Change include/config/params, not this file.\n"
        ".TH PGPOOL.CONF 5 \"2026\" \"pgpool " PACKAGE_VERSION "\" \"pgpool\"\n.SH NAME\n"
        "pgpool.conf \\- settings of pgpool\n.SH DESCRIPTION\n");
    for (p = chapter.data; *p != '\0';) {
        size_t n = strcspn(p, "\n");

        in_settings = in_settings || strncmp(p, "## ", 3) == 0;
        if (!in_settings && n > 0 && *p != '#' && *p != '<') {
            if (is_later)
                buf_printf(out, ".PP\n");
            is_later = true;
        }
        roff_line(p, n, out);
        p += n + (p[n] == '\n');
    }
    buf_printf(out, ".SH SEE ALSO\n.BR pgpool (1),\n.BR pools.conf (5),\n.BR pool_hba.conf (5)\n");
    buf_free(&chapter);
}
