/* SPDX-License-Identifier: PostgreSQL
 * qcache_text.c: what the text of a statement says of its result: is it one that the next one who
 * asks would get, too? Runs in: workers. Pure. Facts found by fingerprint belong to another text:
 * what differs between texts like each other (literals, comments) is looked at here. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "qcache/qcache.h"
#include "wire/reader.h"

static const char *const reason_texts[] = {
#define QCACHE_REASON(sym, text) text,
#include "qcache/qcache_reasons.def"
#undef QCACHE_REASON
};

const char *qcache_reason_text(enum qcache_reason r)
{
    return reason_texts[r];
}

static bool begins_with(struct slice text, const char *word)
{
    size_t n = strlen(word);

    return text.n >= n && strncasecmp(text.p, word, n) == 0;
}

static bool is_of_word(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || (ch & 0x80) != 0;
}

/* The word stands at `at`, by itself. */
static bool is_word_at(struct slice text, size_t at, const char *word)
{
    size_t n = strlen(word);

    return at + n <= text.n && strncasecmp(text.p + at, word, n) == 0 &&
           (at == 0 || !is_of_word(text.p[at - 1])) &&
           (at + n == text.n || !is_of_word(text.p[at + n]));
}

/* Input functions of dates and times read these as the time of the call; UESCAPE can hide one. */
static bool has_time_word(struct slice text)
{
    static const char *const words[] = {"now", "today", "tomorrow", "yesterday", "uescape"};
    size_t at;
    size_t i;

    for (at = 0; at < text.n; at++) {
        if (strchr("nNtTyYuU", text.p[at]) == NULL || text.p[at] == '\0')
            continue;
        for (i = 0; i < sizeof words / sizeof words[0]; i++)
            if (is_word_at(text, at, words[i]))
                return true;
    }
    return false;
}

/* Strings end where we see them end, and nothing is hidden in them. */
static bool has_odd_literal(struct slice text)
{
    size_t at;

    if (memchr(text.p, '\\', text.n) != NULL)
        return true;
    for (at = 0; at + 1 < text.n; at++)
        if (text.p[at] == '$' && !isdigit((unsigned char)text.p[at + 1]))
            return true;
    return false;
}

/* A value of such a type was looked up by its name, and may mean another thing by now. */
static bool has_catalog_type(struct slice text)
{
    static const char *const words[] = {"regclass", "regproc", "regprocedure", "regoper",
        "regoperator", "regtype", "regrole", "regnamespace", "regconfig", "regdictionary",
        "regcollation"};
    size_t at;
    size_t i;

    for (at = 0; at + 6 < text.n; at++) {
        if ((text.p[at] | 0x20) != 'r')
            continue;
        for (i = 0; i < sizeof words / sizeof words[0]; i++)
            if (is_word_at(text, at, words[i]))
                return true;
    }
    return false;
}

static bool is_read(const struct sql_stmt *s)
{
    return (s->kind == SQL_SELECT || s->kind == SQL_VALUES) && (s->flags & SQL_F_READ_ONLY) != 0 &&
           (s->flags & (SQL_F_INTO | SQL_F_DML_IN_CTE)) == 0;
}

/* What a hint in front of it cannot change. */
static enum qcache_reason reason_for_all(const struct sql_facts *facts, struct slice text)
{
    const struct sql_stmt *s = facts->stmts;

    if (facts->status != SQL_OK || facts->nstmts == 0)
        return QCACHE_R_NOT_A_READ;
    if (facts->nstmts > 1)
        return QCACHE_R_SEVERAL;
    if ((s->flags & SQL_F_LOCKING) != 0)
        return QCACHE_R_LOCKING;
    if (!is_read(s))
        return QCACHE_R_NOT_A_READ;
    if (s->ntables == 0)
        return QCACHE_R_NO_TABLE;
    return text.n > QCACHE_TEXT_MAX ? QCACHE_R_LONG : QCACHE_R_NONE;
}

enum qcache_reason qcache_text_reason(
    const struct sql_facts *facts, struct slice text, bool *is_forced)
{
    enum qcache_reason r = reason_for_all(facts, text);

    *is_forced = begins_with(text, "/*FORCE QUERY CACHE*/");
    if (r != QCACHE_R_NONE)
        return r;
    if (begins_with(text, "/*NO QUERY CACHE*/"))
        return QCACHE_R_HINT;
    if (has_odd_literal(text))
        return QCACHE_R_LITERAL;
    if (*is_forced)
        return QCACHE_R_NONE;
    if (facts->stmts[0].ntimes > 0)
        return QCACHE_R_TIME;
    if ((facts->stmts[0].flags & SQL_F_TABLESAMPLE) != 0)
        return QCACHE_R_SAMPLE;
    if (has_time_word(text))
        return QCACHE_R_WORD;
    return has_catalog_type(text) ? QCACHE_R_CATALOG_NAME : QCACHE_R_NONE;
}

bool qcache_values_may_be_time(struct slice binds)
{
    struct wire_reader r;
    struct slice value;
    bool is_null;
    uint16_t n;

    wire_reader_init(&r, binds);
    for (n = wire_get_u16(&r); n > 0 && !r.bad; n--)
        (void)wire_get_u16(&r);
    for (n = wire_get_u16(&r); n > 0 && !r.bad; n--) {
        value = wire_get_value(&r, &is_null);
        if (!r.bad && !is_null && value.n < 64 && has_time_word(value))
            return true;
    }
    return r.bad;
}
