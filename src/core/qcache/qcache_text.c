/* SPDX-License-Identifier: PostgreSQL
 * qcache_text.c: what the text of a statement says of its result: is it one that the next one who
 * asks would get, too? Runs in: workers. Pure. Facts found by fingerprint belong to another text:
 * what differs between texts like each other (literals, comments) is looked at here. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "parser/sql_cache.h"
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

/* Input functions of dates and times read these as the time of the call; UESCAPE can hide one. */
static const char *const time_words[] = {"now", "today", "tomorrow", "yesterday", "uescape", NULL};
/* A value of such a type was looked up by its name, and may mean another thing by now; the first
 * schema of search_path that is there is another one when one is made. Of a row that nobody has
 * written, who locks it or moves it is told by the last ones (not by xmin). */
static const char *const catalog_words[] = {"current_schema", "current_schemas", "regclass",
    "regproc", "regprocedure", "regoper", "regoperator", "regtype", "regrole", "regnamespace",
    "regconfig", "regdictionary", "regcollation", "regdatabase", "aclitem", "ctid", "cmin", "cmax",
    "xmax", NULL};

/* What a character may be: part of a word, and the first one of a word of the lists above. */
#define OF_WORD       1
#define OF_TIME       2
#define OF_NAMES      4
#define LETTERS(a, z) [(a)...(z)] = OF_WORD
static const uint8_t classes[256] = {LETTERS('0', '9'), ['B'] = OF_WORD, LETTERS('D', 'M'),
    LETTERS('O', 'Q'), LETTERS('V', 'W'), ['b'] = OF_WORD, LETTERS('d', 'm'), LETTERS('o', 'q'),
    LETTERS('v', 'w'), LETTERS(128, 255), ['_'] = OF_WORD, ['S'] = OF_WORD, ['s'] = OF_WORD,
    ['Z'] = OF_WORD, ['z'] = OF_WORD, ['N'] = OF_WORD | OF_TIME, ['n'] = OF_WORD | OF_TIME,
    ['T'] = OF_WORD | OF_TIME, ['t'] = OF_WORD | OF_TIME, ['Y'] = OF_WORD | OF_TIME,
    ['y'] = OF_WORD | OF_TIME, ['U'] = OF_WORD | OF_TIME, ['u'] = OF_WORD | OF_TIME,
    ['A'] = OF_WORD | OF_NAMES, ['a'] = OF_WORD | OF_NAMES, ['C'] = OF_WORD | OF_NAMES,
    ['c'] = OF_WORD | OF_NAMES, ['R'] = OF_WORD | OF_NAMES, ['r'] = OF_WORD | OF_NAMES,
    ['X'] = OF_WORD | OF_NAMES, ['x'] = OF_WORD | OF_NAMES};
#undef LETTERS

/* The word stands at `at`, where no other goes on, by itself. */
static bool is_word_at(struct slice text, size_t at, const char *word)
{
    size_t n = strlen(word);

    return at + n <= text.n && strncasecmp(text.p + at, word, n) == 0 &&
           (at + n == text.n || (classes[(unsigned char)text.p[at + n]] & OF_WORD) == 0);
}

static bool is_any_at(struct slice text, size_t at, const char *const *words)
{
    char first = (char)(text.p[at] | 0x20); /* a letter */

    for (; *words != NULL; words++)
        if (first == (*words)[0] && is_word_at(text, at, *words))
            return true;
    return false;
}

/* OF_TIME when a word about the time is in it, else OF_NAMES for one about the catalogue, or 0.
 * Every text is looked through that may be answered from the cache: in one go, and letters inside
 * of words are passed over. The name of an array's type begins with "_". */
static uint8_t words_in(struct slice text)
{
    uint8_t before = 0;
    uint8_t found = 0;
    size_t at;

    for (at = 0; at < text.n; at++) {
        uint8_t is = classes[(unsigned char)text.p[at]];

        if (is > OF_WORD && (before & OF_WORD) == 0) {
            if ((is & OF_TIME) != 0 && is_any_at(text, at, time_words))
                return OF_TIME;
            if ((is & OF_NAMES) != 0 && is_any_at(text, at, catalog_words))
                found = OF_NAMES;
        }
        before = text.p[at] == '_' ? before : is;
    }
    return found;
}

/* Behind a quote: does the string go on in a later line? */
static bool goes_on(const char *p, const char *end)
{
    bool is_later = false;

    for (; p < end; p++) {
        if (*p == '\n' || *p == '\r')
            is_later = true;
        else if (p + 1 < end && p[0] == '-' && p[1] == '-')
            while (p + 1 < end && p[1] != '\n' && p[1] != '\r')
                p++;
        else if (!isspace((unsigned char)*p))
            return is_later && *p == '\'';
    }
    return false;
}

static bool has_pieces(struct slice text)
{
    const char *end = text.p + text.n;
    const char *p = text.p;

    if (memchr(p, '\n', text.n) == NULL && memchr(p, '\r', text.n) == NULL)
        return false;
    while ((p = memchr(p, '\'', (size_t)(end - p))) != NULL)
        if (goes_on(++p, end))
            return true;
    return false;
}

/* Strings end where we see them end, and nothing is hidden in them. */
static bool has_odd_literal(struct slice text)
{
    const char *end = text.p + text.n;
    const char *p = text.p;

    if (memchr(p, '\\', text.n) != NULL || has_pieces(text))
        return true;
    for (; (p = memchr(p, '$', (size_t)(end - p))) != NULL; p++)
        if (p + 1 < end && !isdigit((unsigned char)p[1]))
            return true;
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
    uint8_t words;

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
    words = words_in(text);
    if (words == OF_TIME)
        return QCACHE_R_WORD;
    return words == OF_NAMES ? QCACHE_R_CATALOG_NAME : QCACHE_R_NONE;
}

#define KEPT_FORCED 0x80U

enum qcache_reason qcache_text_reason_once(
    uint8_t *kept, const struct sql_facts *facts, struct slice text, bool *is_forced)
{
    enum qcache_reason r;

    if (*kept != 0) {
        *is_forced = (*kept & KEPT_FORCED) != 0;
        return (enum qcache_reason)((*kept & ~KEPT_FORCED) - 1);
    }
    r = qcache_text_reason(facts, text, is_forced);
    *kept = (uint8_t)((unsigned)r + 1 + (*is_forced ? KEPT_FORCED : 0));
    return r;
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
        if (!r.bad && !is_null && value.n < 64 && words_in(value) == OF_TIME)
            return true;
    }
    return r.bad;
}

struct slice qcache_text_bare(struct slice text)
{
    while (text.n > 0 && memchr("; \t\r\n", text.p[text.n - 1], 5) != NULL)
        text.n--;
    return text;
}

uint64_t qcache_kind(struct sql_cache *known, struct slice sql)
{
    struct sql_fingerprint fp;

    return sql_cache_fingerprint(known, sql, QCACHE_TEXT_MAX, &fp) == 0 ? fp.lo : 0;
}
