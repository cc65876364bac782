/* SPDX-License-Identifier: PostgreSQL
 * counts.c: which kind of statement is it, for what is counted per node? */
#include "config.h"

#include <string.h>

#include "base/hot.h"

#include "known/session_shared.h"

/* First words, as pgpool-II sorts statements: what is in none of the lists is DDL. */
static const struct {
    const char *word;
    enum count_kind kind;
} words[] = {{"SELECT", COUNT_SELECT}, {"WITH", COUNT_SELECT}, {"VALUES", COUNT_SELECT},
    {"TABLE", COUNT_SELECT}, {"INSERT", COUNT_INSERT}, {"UPDATE", COUNT_UPDATE},
    {"DELETE", COUNT_DELETE}, {"BEGIN", COUNT_OTHER}, {"START", COUNT_OTHER},
    {"COMMIT", COUNT_OTHER}, {"END", COUNT_OTHER}, {"ROLLBACK", COUNT_OTHER},
    {"ABORT", COUNT_OTHER}, {"SAVEPOINT", COUNT_OTHER}, {"RELEASE", COUNT_OTHER},
    {"SET", COUNT_OTHER}, {"SHOW", COUNT_OTHER}, {"RESET", COUNT_OTHER}, {"EXPLAIN", COUNT_OTHER},
    {"PREPARE", COUNT_OTHER}, {"EXECUTE", COUNT_OTHER}, {"DEALLOCATE", COUNT_OTHER},
    {"DISCARD", COUNT_OTHER}, {"LISTEN", COUNT_OTHER}, {"UNLISTEN", COUNT_OTHER},
    {"NOTIFY", COUNT_OTHER}, {"LOCK", COUNT_OTHER}, {"VACUUM", COUNT_OTHER},
    {"ANALYZE", COUNT_OTHER}, {"CHECKPOINT", COUNT_OTHER}, {"LOAD", COUNT_OTHER}};

/* Behind blanks, comments and opening brackets. */
static const char *skip_to_word(const char *p, const char *end)
{
    for (;;) {
        while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r' || *p == '('))
            p++;
        if (end - p >= 2 && p[0] == '-' && p[1] == '-') {
            while (p < end && *p != '\n')
                p++;
        } else if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
            const char *close = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);

            p = close == NULL ? end : close + 2;
        } else {
            return p;
        }
    }
}

/* Most are one, and have nothing before it. */
static bool is_select(struct slice sql)
{
    static const char word[8] = "select";
    static const char small[8] = "      "; /* the bit that makes a letter small */
    uint64_t is = 0;
    uint64_t want;
    uint64_t bits = 0;

    if (sql.n < 6)
        return false;
    memcpy(&is, sql.p, 6);
    memcpy(&bits, small, 6);
    memcpy(&want, word, sizeof want);
    return (is | bits) == want;
}

HOT enum count_kind count_kind_of(struct slice sql)
{
    const char *end = sql.p + sql.n;
    const char *p;
    size_t i;
    size_t n;

    if (is_select(sql))
        return COUNT_SELECT;
    p = skip_to_word(sql.p, end);
    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        n = strlen(words[i].word);
        if ((size_t)(end - p) >= n && (*p & ~0x20) == words[i].word[0] &&
            strncasecmp(p, words[i].word, n) == 0)
            return words[i].kind;
    }
    return p == end ? COUNT_OTHER : COUNT_DDL;
}
