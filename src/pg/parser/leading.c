/* SPDX-License-Identifier: PostgreSQL
 * leading.c: the words that statements begin with. Runs in: workers, for every text: the first
 * letter tells most of them apart. The text may end anywhere, also within a comment. */
#include "config.h"

#include "parser/leading.h"

#include <string.h>
#include <strings.h>

#include "base/hot.h"

/* How long the comment at the start of `sql` is; 0: there is none. */
static size_t comment_len(struct slice sql)
{
    const char *end;
    size_t i = 2;
    int depth = 1;

    if (sql.n < 2)
        return 0;
    if (memcmp(sql.p, "--", 2) == 0) {
        end = memchr(sql.p, '\n', sql.n);
        return end == NULL ? sql.n : (size_t)(end - sql.p);
    }
    if (memcmp(sql.p, "/*", 2) != 0)
        return 0;
    while (i + 1 < sql.n && depth > 0) {
        int step = memcmp(sql.p + i, "/*", 2) == 0 ? 1 : memcmp(sql.p + i, "*/", 2) == 0 ? -1 : 0;

        depth += step;
        i += step == 0 ? 1 : 2;
    }
    return depth > 0 ? sql.n : i;
}

static struct slice skip_space(struct slice sql)
{
    size_t n;

    while (sql.n > 0) {
        if (sql.p[0] >= 'A')
            break; /* most begin with a word */
        n = memchr(" \t\r\n\f\v", sql.p[0], 6) != NULL ? 1 : comment_len(sql);
        if (n == 0)
            break;
        sql = slice_of(sql.p + n, sql.n - n);
    }
    return sql;
}

/* How far the next word is looked for: there may be a comment without an end behind each semicolon.
 */
#define BLANKS_MAX 256

static bool begins_with(struct slice sql, const char *words)
{
    struct slice blanks;
    size_t n;

    for (;;) {
        n = strcspn(words, " ");
        if (n > sql.n || strncasecmp(sql.p, words, n) != 0)
            return false;
        if (words[n] == '\0')
            return true;
        sql = slice_of(sql.p + n, sql.n - n);
        blanks = slice_of(sql.p, sql.n < BLANKS_MAX ? sql.n : BLANKS_MAX);
        n = blanks.n - skip_space(blanks).n;
        if (n == BLANKS_MAX)
            return true;
        sql = slice_of(sql.p + n, sql.n - n);
        words += strcspn(words, " ") + 1;
    }
}

HOT bool sql_leads_with(struct slice sql, const char *const words[])
{
    const char *semicolon;
    int i;

    for (;;) {
        sql = skip_space(sql);
        for (i = 0; sql.n > 0 && words[i] != NULL; i++)
            if ((sql.p[0] | 0x20) == words[i][0] && begins_with(sql, words[i]))
                return true;
        semicolon = sql.n == 0 ? NULL : memchr(sql.p, ';', sql.n);
        if (semicolon == NULL)
            return false;
        sql = slice_of(semicolon + 1, sql.n - (size_t)(semicolon + 1 - sql.p));
    }
}
