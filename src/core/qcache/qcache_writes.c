/* SPDX-License-Identifier: PostgreSQL
 * qcache_writes.c: what a statement changes that results in the cache depend on, by the parser's
 * facts. Runs in: workers. Pure. What is not known for sure is said to change everything in the
 * database. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "qcache/qcache.h"

/* Bytes of the comment at the start of `s`; there may be others in it. */
static size_t comment_bytes(struct slice s)
{
    unsigned depth = 0;
    size_t i = 0;

    while (i + 1 < s.n) {
        bool opens = s.p[i] == '/' && s.p[i + 1] == '*';
        bool closes = s.p[i] == '*' && s.p[i + 1] == '/';

        i += opens || closes ? 2 : 1;
        depth += opens ? 1 : 0;
        if (closes && --depth == 0)
            return i;
    }
    return s.n;
}

/* Blanks and comments in front of a word. */
static struct slice skip_blanks(struct slice s)
{
    while (s.n > 0) {
        size_t n = 0;

        if (isspace((unsigned char)s.p[0])) {
            n = 1;
        } else if (s.n >= 2 && s.p[0] == '-' && s.p[1] == '-') {
            while (n < s.n && s.p[n] != '\n')
                n++;
        } else if (s.n >= 2 && s.p[0] == '/' && s.p[1] == '*') {
            n = comment_bytes(s);
        } else {
            break;
        }
        s = slice_of(s.p + n, s.n - n);
    }
    return s;
}

static struct slice next_word(struct slice *s)
{
    struct slice rest = skip_blanks(*s);
    size_t n = 0;

    while (n < rest.n && (isalpha((unsigned char)rest.p[n]) || rest.p[n] == '_'))
        n++;
    *s = slice_of(rest.p + n, rest.n - n);
    return slice_of(rest.p, n);
}

static bool is_one_of(struct slice word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (slice_ieq_str(word, *words))
            return true;
    return false;
}

/* What is created, altered or dropped. */
static struct slice object_of(struct slice text)
{
    static const char *const before[] = {"or", "replace", "unique", "temp", "temporary", "global",
        "local", "unlogged", "recursive", "materialized", "foreign", "constraint", NULL};
    struct slice word;

    (void)next_word(&text);
    do
        word = next_word(&text);
    while (word.n > 0 && is_one_of(word, before));
    return word;
}

static bool has_word(struct slice text, const char *word)
{
    struct slice w;

    while ((text = skip_blanks(text)).n > 0) {
        w = next_word(&text);
        if (slice_ieq_str(w, word))
            return true;
        if (w.n == 0)
            text = slice_of(text.p + 1, text.n - 1);
    }
    return false;
}

static bool names_a_table(const struct sql_stmt *s)
{
    const uint32_t named = SQL_TABLE_TARGET | SQL_TABLE_CREATED | SQL_TABLE_DDL;
    uint32_t i;

    for (i = 0; i < s->ntables; i++)
        if ((s->tables[i].flags & named) != 0)
            return true;
    return false;
}

/* Looked at closer. */
#define LOOK 0x80000000u

#define ANY_OF_IT (QCACHE_W_CATALOG | QCACHE_W_DATABASE)
#define ANYWHERE  (QCACHE_W_CATALOG | QCACHE_W_ALL)
#define ROWS      (QCACHE_W_TABLES | QCACHE_W_FUNCTIONS)

static const uint32_t by_kind[SQL_KIND_COUNT] = {
    [SQL_OTHER] = LOOK,
    [SQL_SELECT] = LOOK,
    [SQL_VALUES] = LOOK,
    [SQL_INSERT] = ROWS,
    [SQL_UPDATE] = ROWS,
    [SQL_DELETE] = ROWS,
    [SQL_MERGE] = ROWS,
    [SQL_COPY_TO] = ROWS, /* of a query, which may be an UPDATE */
    [SQL_COPY_FROM] = ROWS,
    [SQL_EXPLAIN] = LOOK,
    [SQL_COMMIT] = QCACHE_W_COMMITS,
    [SQL_ROLLBACK] = QCACHE_W_ENDS,
    [SQL_SET] = LOOK,
    [SQL_RESET] = LOOK,
    [SQL_EXECUTE] = QCACHE_W_UNREAD,
    [SQL_DECLARE] = QCACHE_W_FUNCTIONS,
    [SQL_TRUNCATE] = LOOK,
    [SQL_CALL] = QCACHE_W_UNREAD,
    [SQL_DO] = QCACHE_W_UNREAD,
    [SQL_DDL] = LOOK,
    /* The others: nothing. */
};

/* Names that lead somewhere else afterwards have other judgements, and these other keys: what is
 * kept under the old ones is not found any more. So only what changes what a name that stays gives
 * has to name its table. */
static const uint32_t by_verb[] = {
    [SQL_VERB_NONE] = LOOK,
    [SQL_VERB_UNLISTEN] = 0,
    [SQL_VERB_VACUUM] = 0,
    [SQL_VERB_ANALYZE] = 0,
    [SQL_VERB_CLUSTER] = 0,
    [SQL_VERB_REINDEX] = 0,
    [SQL_VERB_CHECKPOINT] = 0,
    [SQL_VERB_LOAD] = 0,
    [SQL_VERB_ALTER_SYSTEM] = ANYWHERE,
    [SQL_VERB_DISCARD] = QCACHE_W_NAMES,
    [SQL_VERB_CREATE] = LOOK,
    [SQL_VERB_CREATE_AS] = LOOK,
    [SQL_VERB_ALTER] = LOOK,
    [SQL_VERB_DROP] = LOOK,
    [SQL_VERB_GRANT] = LOOK,
    [SQL_VERB_COMMENT] = 0,
    [SQL_VERB_REFRESH] = ROWS,
    [SQL_VERB_CREATE_DATABASE] = 0,
    [SQL_VERB_DROP_DATABASE] = ANYWHERE,
    [SQL_VERB_ALTER_DATABASE] = ANYWHERE,
    [SQL_VERB_ALTER_ROLE] = ANYWHERE,
    [SQL_VERB_ALTER_ROLE_SET] = ANYWHERE,
    [SQL_VERB_RENAME_ROLE] = ANYWHERE,
    [SQL_VERB_DROP_ROLE] = ANYWHERE,
};

static uint32_t writes_of_create(const struct sql_stmt *s, struct slice object)
{
    static const char *const of_a_table[] = {
        "table", "index", "view", "trigger", "policy", "rule", "sequence", "statistics", NULL};
    static const char *const nothing[] = {"role", "user", NULL};
    bool creates = s->verb == SQL_VERB_CREATE;

    if (creates && ((s->flags & SQL_F_TEMP) != 0 || is_one_of(object, nothing)))
        return 0; /* who has temporary tables uses no cache */
    if (creates && slice_ieq_str(object, "schema"))
        return QCACHE_W_CATALOG;
    if (is_one_of(object, of_a_table) && names_a_table(s))
        return QCACHE_W_CATALOG | QCACHE_W_TABLES;
    return ANY_OF_IT;
}

static uint32_t writes_of_ddl(const struct sql_stmt *s, struct slice text)
{
    /* DROP SCHEMA drops functions, too: calls may mean others of their name then. */
    static const char *const of_names[] = {
        "table", "index", "view", "sequence", "statistics", NULL};

    switch (s->verb) {
    case SQL_VERB_CREATE_AS: /* its query may write, and what EXECUTE runs is not known */
        return has_word(text, "execute") ? QCACHE_W_UNREAD : QCACHE_W_CATALOG | ROWS;
    case SQL_VERB_GRANT: /* to roles, when it names no table: their rights are everywhere */
        return names_a_table(s) ? QCACHE_W_CATALOG | QCACHE_W_TABLES : ANYWHERE;
    case SQL_VERB_CREATE:
    case SQL_VERB_ALTER:
        return writes_of_create(s, object_of(text));
    case SQL_VERB_DROP:
        return is_one_of(object_of(text), of_names) ? QCACHE_W_CATALOG : ANY_OF_IT;
    default:
        return by_verb[s->verb] == LOOK ? ANY_OF_IT : by_verb[s->verb];
    }
}

static uint32_t writes_of_other(const struct sql_stmt *s)
{
    if (s->tx.op == SQL_TX_PREPARE)
        return QCACHE_W_COMMITS;
    if (s->tx.op == SQL_TX_ROLLBACK_PREPARED)
        return 0;
    return by_verb[s->verb] == LOOK ? QCACHE_W_UNREAD : by_verb[s->verb];
}

/* What decides about where names lead. */
static bool is_of_names(struct slice setting)
{
    static const char *const names[] = {"search_path", "role", "session_authorization", NULL};

    return is_one_of(setting, names);
}

static uint32_t writes_of_set(const struct sql_stmt *s)
{
    return s->set.how == SQL_SET_RESET_ALL || is_of_names(s->set.name) ? QCACHE_W_NAMES : 0;
}

/* Each set_config in the text names a setting with a dot in it, as the server's own have none. */
static bool sets_others_settings(struct slice text)
{
    const char *at;
    const char *quote;

    while ((at = memmem(text.p, text.n, "set_config(", 11)) != NULL) {
        text = slice_of(at + 11, text.n - (size_t)(at + 11 - text.p));
        text = skip_blanks(text);
        if (text.n == 0 || text.p[0] != '\'')
            return false;
        quote = memchr(text.p + 1, '\'', text.n - 1);
        if (quote == NULL || memchr(text.p + 1, '.', (size_t)(quote - text.p - 1)) == NULL)
            return false;
    }
    return true;
}

static uint32_t names_of_calls(const struct sql_stmt *s, struct slice text)
{
    uint32_t i;

    for (i = 0; i < s->nfuncs; i++)
        if (slice_eq_str(s->funcs[i].name, "set_config") &&
            (memmem(text.p, text.n, "set_config(", 11) == NULL || !sets_others_settings(text)))
            return QCACHE_W_NAMES;
    return 0;
}

static uint32_t writes_of_explain(const struct sql_stmt *s, struct slice text)
{
    if ((s->flags & SQL_F_ANALYZE) == 0)
        return 0;
    if (has_word(text, "execute"))
        return QCACHE_W_UNREAD;
    return s->inner == SQL_DDL ? QCACHE_W_CATALOG | ROWS : ROWS;
}

static uint32_t writes_of_select(const struct sql_stmt *s)
{
    return QCACHE_W_FUNCTIONS | ((s->flags & SQL_F_DML_IN_CTE) != 0 ? QCACHE_W_TABLES : 0) |
           ((s->flags & SQL_F_INTO) != 0 ? QCACHE_W_CATALOG : 0);
}

static uint32_t writes_of(const struct sql_stmt *s, struct slice text)
{
    uint32_t w = by_kind[s->kind];

    if (w != LOOK)
        return w;
    switch (s->kind) {
    case SQL_EXPLAIN:
        return writes_of_explain(s, text);
    case SQL_TRUNCATE: /* CASCADE: all that refer to it, whatever else they do then */
        return has_word(text, "cascade") ? QCACHE_W_DATABASE : QCACHE_W_TABLES;
    case SQL_DDL:
        return writes_of_ddl(s, text);
    case SQL_OTHER:
        return writes_of_other(s);
    case SQL_SET:
    case SQL_RESET:
        return writes_of_set(s);
    default:
        return writes_of_select(s);
    }
}

/* The text of one statement. Where there are several, the offsets are those of this very text. */
static struct slice stmt_text(const struct sql_facts *facts, uint32_t i, struct slice text)
{
    const struct sql_stmt *s = &facts->stmts[i];

    if (facts->nstmts == 1 || (size_t)s->offset + s->len > text.n)
        return text;
    return slice_of(text.p + s->offset, s->len);
}

uint32_t qcache_writes(const struct sql_facts *facts, struct slice text)
{
    uint32_t w = 0;
    uint32_t i;

    if (facts->status != SQL_OK)
        return QCACHE_W_UNREAD;
    for (i = 0; i < facts->nstmts; i++) {
        struct slice one = stmt_text(facts, i, text);

        w |= writes_of(&facts->stmts[i], one) | names_of_calls(&facts->stmts[i], one);
    }
    /* Of several statements those behind a ROLLBACK are a transaction of their own. */
    return facts->nstmts > 1 && (w & QCACHE_W_ENDS) != 0 ? w | QCACHE_W_COMMITS : w;
}

bool qcache_leaves_no_trace(const struct sql_facts *facts, const struct qcache_judgement *j)
{
    const uint32_t odd = SQL_F_LOCKING | SQL_F_INTO | SQL_F_DML_IN_CTE;
    const struct sql_stmt *s = &facts->stmts[0];

    if (facts->status != SQL_OK || facts->nstmts != 1)
        return false;
    if (s->kind == SQL_SELECT || s->kind == SQL_VALUES)
        return (s->flags & SQL_F_READ_ONLY) != 0 && (s->flags & odd) == 0 &&
               (s->nfuncs == 0 || (j != NULL && j->reason == QCACHE_R_NONE));
    return s->kind == SQL_SHOW || s->kind == SQL_COMMIT || s->tx.op == SQL_TX_BEGIN ||
           s->tx.op == SQL_TX_ROLLBACK || s->tx.op == SQL_TX_SAVEPOINT ||
           s->tx.op == SQL_TX_RELEASE || s->tx.op == SQL_TX_ROLLBACK_TO;
}

uint32_t qcache_judged(uint32_t writes, const struct qcache_judgement *j)
{
    const uint32_t by_names = QCACHE_W_TABLES | QCACHE_W_FUNCTIONS;
    bool is_unknown = (writes & by_names) != 0 && j == NULL;

    if (is_unknown || ((writes & QCACHE_W_TABLES) != 0 && j->writes_more) ||
        ((writes & QCACHE_W_FUNCTIONS) != 0 && j->runs_code))
        writes |= QCACHE_W_DATABASE;
    return writes & ~QCACHE_W_FUNCTIONS;
}

bool qcache_may_run_code(
    const struct sql_facts *facts, uint32_t writes, const struct qcache_judgement *j)
{
    uint32_t i;

    if ((writes & QCACHE_W_DATABASE) != 0 || (j != NULL && j->runs_code))
        return true;
    for (i = 0; j == NULL && i < facts->nstmts; i++)
        if (facts->stmts[i].nfuncs > 0)
            return true;
    return false;
}

bool qcache_is_behind(uint32_t *traits, uint32_t writes, uint32_t nstatements)
{
    bool is_behind = ((*traits | writes) & QCACHE_W_NAMES) != 0 ||
                     (nstatements > 1 && (writes & QCACHE_W_CATALOG) != 0);

    if ((writes & QCACHE_W_MOVES) != 0)
        *traits |= QCACHE_W_NAMES;
    return is_behind && (writes & QCACHE_W_TABLES) != 0;
}

/* A transaction's own DDL moves what was known, and what may write anything needs nothing known. */
void qcache_note_judged(
    struct cache_deps *judged, uint32_t writes, const struct qcache_judgement *j)
{
    const uint32_t by_itself = QCACHE_W_CATALOG | QCACHE_W_DATABASE | QCACHE_W_ALL;

    if (j != NULL && judged->ncells == 0 && (writes & by_itself) == 0)
        *judged = j->known;
}

void qcache_settle_judged(const struct cache_deps *judged, struct cache_gens *gens,
    cache_cell database, struct cache_written at)
{
    if (judged->ncells > 0 && !cache_deps_hold(judged, gens))
        cache_gens_bump(gens, &database, 1, at);
}
