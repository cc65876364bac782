/* SPDX-License-Identifier: PostgreSQL
 * rewrite_time.c: what tells the time becomes the main node's time, to the microsecond.
 * Runs in: workers. Pure.
 *
 * The value is asked for in a form that reads back equal under every DateStyle and TimeZone; zone
 * and precision of CURRENT_TIME and its like come from a cast that each server does, as it would
 * have done itself. */
#include "config.h"

#include "base/arena.h"
#include "rewrite_int.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UTC_OF(expr)                                                                               \
    "pg_catalog.concat(pg_catalog.to_char(pg_catalog.timezone('UTC', " expr                        \
    "), 'YYYY-MM-DD HH24:MI:SS.US'), '+00')"
#define TZ "timestamp with time zone"

/* The ask for a kind of time, and what is cast around its value (%s: the precision). */
static const struct {
    const char *expr;
    const char *cast;
    const char *label; /* of the column, when it stands alone in a list */
} times[] = {
    [SQL_TIME_DATE] = {UTC_OF("pg_catalog.now()"), "date", "current_date"},
    [SQL_TIME_TIME] = {UTC_OF("pg_catalog.now()"), "time%s with time zone", "current_time"},
    [SQL_TIME_TIMESTAMP] = {UTC_OF("pg_catalog.now()"), "timestamp%s with time zone",
        "current_timestamp"},
    [SQL_TIME_LOCALTIME] = {UTC_OF("pg_catalog.now()"), "time%s", "localtime"},
    [SQL_TIME_LOCALTIMESTAMP] = {UTC_OF("pg_catalog.now()"), "timestamp%s", "localtimestamp"},
    [SQL_TIME_NOW] = {UTC_OF("pg_catalog.now()"), NULL, "now"},
    [SQL_TIME_STATEMENT] = {UTC_OF("pg_catalog.statement_timestamp()"), NULL,
        "statement_timestamp"},
    [SQL_TIME_CLOCK] = {UTC_OF("pg_catalog.clock_timestamp()"), NULL, "clock_timestamp"},
};

static const char timeofday[] = "pg_catalog.timeofday()";

bool repl_asks_of_transaction(const struct repl_plan *plan)
{
    static const char now[] = UTC_OF("pg_catalog.now()");

    for (uint32_t i = 0; i < plan->nasks; i++) {
        if (!slice_eq(plan->asks[i].expr, slice_of(now, sizeof now - 1)))
            return false;
    }
    return plan->copy == NULL && !plan->makes_lobj && !plan->as_params;
}

static bool is_timeofday(struct slice as)
{
    for (size_t i = 0; i + 9 <= as.n; i++) {
        if (strncasecmp(as.p + i, "timeofday", 9) == 0)
            return true;
    }
    return false;
}

static void put_cast(const char *cast, struct slice precision, uint32_t ask, struct buf *out)
{
    const char *at = strstr(cast, "%s");

    repl_put(out, "CAST(");
    repl_put_mark(out, ask);
    repl_put(out, " AS ");
    if (at == NULL) {
        repl_put(out, cast);
    } else {
        buf_put(out, cast, (size_t)(at - cast));
        buf_put(out, precision.p, precision.n);
        repl_put(out, at + 2);
    }
    buf_put_byte(out, ')');
}

/* Appends what stands in place of a time function of `kind`, written as `as`. */
static void put_time(struct repl_work *w, enum sql_time_kind kind, struct slice as, struct buf *out)
{
    const char *open = memchr(as.p, '(', as.n);
    struct slice precision = slice_of("", 0);

    if (open != NULL)
        precision = repl_plain(w, slice_of(open, (size_t)(as.p + as.n - open)));
    if (kind == SQL_TIME_CLOCK && is_timeofday(as))
        repl_put_mark(out, repl_ask(w, slice_of_str(timeofday), slice_of_str("text"), true));
    else if (times[kind].cast == NULL)
        repl_put_mark(out, repl_ask(w, slice_of_str(times[kind].expr), slice_of_str(TZ), true));
    else
        put_cast(times[kind].cast, precision,
            repl_ask(w, slice_of_str(times[kind].expr), slice_of_str(TZ), true), out);
}

static struct slice keep(struct repl_work *w, struct buf *out)
{
    size_t n = out->len;
    const char *copy = arena_strndup(w->arena, buf_slice(out).p, n);

    buf_free(out);
    if (copy == NULL) {
        w->failed = true;
        return slice_of("", 0);
    }
    return slice_of(copy, n);
}

/* The clauses behind a list of columns. */
static bool ends_list(const struct repl_work *w, uint32_t i)
{
    static const char *const word[] = {"from", "where", "group", "having", "window", "union",
        "intersect", "except", "order", "limit", "offset", "fetch", "for", "into"};

    if (i >= w->to || repl_is_sign(w, i, ')') || repl_is_sign(w, i, ','))
        return true;
    for (unsigned k = 0; k < sizeof word / sizeof word[0]; k++) {
        if (repl_is(w, i, word[k]))
            return true;
    }
    return false;
}

/* The item that ends in front of token `i` begins a list of columns, or goes on in one. */
static bool is_in_list(const struct repl_work *w, uint32_t i)
{
    uint32_t depth = 0;

    while (i-- > w->from) {
        if (repl_is_sign(w, i, ')') || repl_is_sign(w, i, ']'))
            depth++;
        else if (depth > 0 && (repl_is_sign(w, i, '(') || repl_is_sign(w, i, '[')))
            depth--;
        else if (depth > 0)
            continue;
        else if (repl_is(w, i, "select") || repl_is(w, i, "returning"))
            return true;
        else if (repl_is_sign(w, i, '(') || ends_list(w, i))
            if (!repl_is_sign(w, i, ','))
                return false;
    }
    return false;
}

static bool begins_item(const struct repl_work *w, uint32_t i)
{
    return i > w->from && (repl_is_sign(w, i - 1, ',') || repl_is(w, i - 1, "select") ||
                              repl_is(w, i - 1, "returning") || repl_is(w, i - 1, "distinct") ||
                              repl_is(w, i - 1, "all"));
}

/* A call that is a whole column keeps the column's name. */
static const char *label_of(
    const struct repl_work *w, const struct sql_time *t, struct slice as, const char *label)
{
    uint32_t i = repl_token_at(w, t->span.offset);
    uint32_t end = repl_token_at(w, t->span.offset + t->span.len);

    if (!begins_item(w, i) || !ends_list(w, end) || !is_in_list(w, i))
        return "";
    if (t->kind == SQL_TIME_CLOCK && is_timeofday(as))
        return " AS timeofday";
    return t->kind == SQL_TIME_NOW && as.n > 20 ? " AS transaction_timestamp" : label;
}

/* Words that PostgreSQL reads as a time in a constant. */
static bool is_moving(struct slice s)
{
    return s.n >= 2 && s.p[0] == '\'' && repl_word_moves(slice_of(s.p + 1, s.n - 2));
}

enum moment { MOMENT_NONE, MOMENT_TIMESTAMP, MOMENT_TZ, MOMENT_DATE, MOMENT_TIME, MOMENT_TIMETZ };

static bool is_with_zone(const struct repl_work *w, uint32_t i)
{
    if (repl_is_sign(w, i, '('))
        i = repl_skip_parens(w, i);
    return repl_is(w, i, "with") && repl_is(w, i + 1, "time");
}

/* The type that is written at token `i`. */
static enum moment moment_at(const struct repl_work *w, uint32_t i)
{
    if (repl_is(w, i, "pg_catalog") && repl_is_sign(w, i + 1, '.'))
        i += 2;
    if (repl_is(w, i, "timestamptz"))
        return MOMENT_TZ;
    if (repl_is(w, i, "timetz"))
        return MOMENT_TIMETZ;
    if (repl_is(w, i, "date"))
        return MOMENT_DATE;
    if (repl_is(w, i, "timestamp"))
        return is_with_zone(w, i + 1) ? MOMENT_TZ : MOMENT_TIMESTAMP;
    if (repl_is(w, i, "time"))
        return is_with_zone(w, i + 1) ? MOMENT_TIMETZ : MOMENT_TIME;
    return MOMENT_NONE;
}

/* The constant at token `i` behind the name of its type: timestamp(3) with time zone 'now'. Where
 * that begins comes back. */
static enum moment moment_before(const struct repl_work *w, uint32_t i, uint32_t *begin)
{
    for (uint32_t back = 1; back <= 7 && back <= i - w->from; back++) {
        uint32_t at = i - back;
        uint32_t end = at + 1;
        enum moment m = moment_at(w, at);

        if (m == MOMENT_NONE)
            continue;
        if (repl_is_sign(w, end, '('))
            end = repl_skip_parens(w, end);
        if ((repl_is(w, end, "with") || repl_is(w, end, "without")) && repl_is(w, end + 1, "time"))
            end += 3;
        *begin = at;
        if (end == i)
            return m;
    }
    return MOMENT_NONE;
}

static enum moment moment_of_type(struct slice type)
{
    bool tz = type.n > 9 && memcmp(type.p + type.n - 9, "time zone", 9) == 0 &&
              !(type.n > 17 && memcmp(type.p + type.n - 17, "without time zone", 17) == 0);

    if (type.n >= 9 && memcmp(type.p, "timestamp", 9) == 0)
        return tz ? MOMENT_TZ : MOMENT_TIMESTAMP;
    if (type.n >= 4 && memcmp(type.p, "time", 4) == 0)
        return tz ? MOMENT_TIMETZ : MOMENT_TIME;
    return slice_eq_str(type, "date") ? MOMENT_DATE : MOMENT_NONE;
}

/* The constant is read by the main node, as the type it is meant to be: the value's number. */
static uint32_t ask_moment(struct repl_work *w, uint32_t i, enum moment m)
{
    static const char *const ask[] = {
        [MOMENT_TIMESTAMP] =
            "pg_catalog.to_char(CAST(%.*s AS timestamp), 'YYYY-MM-DD HH24:MI:SS.US')",
        [MOMENT_TZ] = UTC_OF("CAST(%.*s AS timestamp with time zone)"),
        [MOMENT_DATE] = "pg_catalog.to_char(CAST(%.*s AS date), 'YYYY-MM-DD')",
        [MOMENT_TIME] = "CAST(CAST(%.*s AS time) AS text)",
        [MOMENT_TIMETZ] = "CAST(CAST(%.*s AS time with time zone) AS text)"};
    static const char *const cast[] = {[MOMENT_TIMESTAMP] = "timestamp",
        [MOMENT_TZ] = TZ,
        [MOMENT_DATE] = "date",
        [MOMENT_TIME] = "time",
        [MOMENT_TIMETZ] = "time with time zone"};
    struct slice as = repl_tok(w, i);
    const char *at = strstr(ask[m], "%.*s");
    struct buf out = {0};
    struct slice expr;

    buf_printf(&out, "%.*s%.*s%s", (int)(at - ask[m]), ask[m], (int)as.n, as.p, at + 4);
    expr = keep(w, &out);
    return repl_ask(w, expr, slice_of_str(cast[m]), true);
}

static void replace_moment(struct repl_work *w, uint32_t i, enum moment m)
{
    repl_splice(w, w->tok[i].offset, w->tok[i].len, "\1%u\2", ask_moment(w, i, m));
    repl_settle(w, i);
}

bool repl_time_value(struct repl_work *w, uint32_t i, struct slice type)
{
    enum moment m = moment_of_type(type);

    if (i >= w->to || w->tok[i].kind != SQL_TOKEN_STRING)
        return false;
    if (repl_is_text_type(type))
        repl_settle(w, i);
    if (m == MOMENT_NONE || !is_moving(repl_tok(w, i)))
        return false;
    replace_moment(w, i, m);
    return true;
}

/* 'now'::type, CAST('now' AS type), type 'now'. In front of the constant the type's name goes with
 * it: what replaces it is cast by itself. */
static void constant(struct repl_work *w, uint32_t i)
{
    enum moment m = MOMENT_NONE;
    struct slice type;
    uint32_t at;

    if (!is_moving(repl_tok(w, i)))
        return;
    if (slice_eq_str(repl_tok(w, i + 1), "::"))
        m = moment_at(w, i + 2);
    else if (repl_is(w, i + 1, "as") && i >= w->from + 2 && repl_is_sign(w, i - 1, '(') &&
             repl_is(w, i - 2, "cast"))
        m = moment_at(w, i + 2);
    if (m != MOMENT_NONE) {
        replace_moment(w, i, m);
        return;
    }
    m = moment_before(w, i, &at);
    if (m == MOMENT_NONE)
        return;
    /* The type's name becomes a cast around the value: its precision is not lost. One splice:
     * behind the constant columns that are filled in may begin. */
    type = repl_plain(
        w, slice_of(w->text.p + w->tok[at].offset, w->tok[i].offset - w->tok[at].offset));
    repl_splice(w, w->tok[at].offset, (uint32_t)type.n + w->tok[i].len, "CAST(\1%u\2 AS %.*s)",
        ask_moment(w, i, m), (int)type.n, type.p);
    repl_settle(w, i);
}

void repl_times(struct repl_work *w)
{
    struct buf out = {0};

    for (uint32_t i = 0; i < w->stmt->ntimes; i++) {
        const struct sql_time *t = &w->stmt->times[i];
        struct slice as = slice_of(w->text.p + t->span.offset, t->span.len);
        const char *label = times[t->kind].label;

        if (w->from == w->to || t->span.offset < w->tok[w->from].offset)
            continue;
        put_time(w, t->kind, as, &out);
        if (label[0] != ' ') {
            const char *named = label_of(w, t, as, label);

            if (named == label)
                buf_printf(&out, " AS \"%s\"", label);
            else
                buf_printf(&out, "%s", named);
        }
        repl_splice_text(w, t->span.offset, t->span.len, keep(w, &out));
    }
    for (uint32_t i = w->from; i < w->to; i++) {
        if (w->tok[i].kind != SQL_TOKEN_STRING || repl_is_settled(w, i))
            continue;
        constant(w, i);
        if (!repl_is_settled(w, i) && repl_constant_moves(repl_tok(w, i)))
            repl_differs(w, repl_tok(w, i));
    }
}

uint32_t repl_bound_at(const struct repl_work *w)
{
    for (uint32_t i = w->from; i < w->to; i++) {
        if (repl_is(w, i, "for") && repl_is(w, i + 1, "values"))
            return i;
    }
    return w->to;
}

/* A default with the times in it replaced, its text being of its own. */
static struct slice splice_default(
    struct repl_work *w, struct slice text, const struct sql_stmt *st)
{
    struct buf out = {0};
    size_t at = 7; /* "SELECT " */

    (void)repl_plain(w, text);
    buf_put_byte(&out, '(');
    for (uint32_t i = 0; i < st->ntimes; i++) {
        const struct sql_span *s = &st->times[i].span;

        buf_put(&out, text.p + at, s->offset - at);
        put_time(w, st->times[i].kind, slice_of(text.p + s->offset, s->len), &out);
        at = s->offset + s->len;
    }
    buf_put(&out, text.p + at, text.n - at);
    buf_put_byte(&out, ')');
    return keep(w, &out);
}

static int by_place(const void *a, const void *b)
{
    const struct sql_time *x = a;
    const struct sql_time *y = b;

    return (x->span.offset > y->span.offset) - (x->span.offset < y->span.offset);
}

/* ('now'::text)::timestamp: a word that is read anew for each row. */
static bool holds_moving_text(
    struct repl_work *w, const struct repl_column *column, struct slice text)
{
    const struct sql_token *tok;
    uint32_t n;

    if (repl_is_text_type(column->type) || sql_tokens(w->arena, text, &tok, &n) == -1)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (tok[i].kind == SQL_TOKEN_STRING &&
            repl_constant_moves(slice_of(text.p + tok[i].offset, tok[i].len)))
            return true;
    }
    return false;
}

struct slice repl_default(struct repl_work *w, const struct repl_column *column, bool each)
{
    struct sql_facts facts;
    const char *text;
    struct buf out = {0};
    enum repl_call worst = REPL_CALL_SAME;

    if (column->def.n == 0 || column->is_generated || column->is_sequence)
        return slice_of("", 0);
    text = arena_printf(w->arena, "SELECT %.*s", (int)column->def.n, column->def.p);
    if (text == NULL || sql_parse(w->arena, slice_of_str(text), &facts) == -1 || facts.nstmts != 1)
        return slice_of("", 0);
    for (uint32_t i = 0; i < facts.stmts[0].nfuncs; i++) {
        const char *type;
        enum repl_call kind = repl_call_kind(&facts.stmts[0].funcs[i], &type);

        worst = kind > worst ? kind : worst;
    }
    if (worst == REPL_CALL_VALUE && each) {
        buf_printf(&out, "\1%u\2", repl_ask(w, column->def, column->type, false));
        return keep(w, &out);
    }
    if (worst != REPL_CALL_SAME || holds_moving_text(w, column, slice_of_str(text)))
        repl_differs(w, column->def);
    if (worst != REPL_CALL_SAME || facts.stmts[0].ntimes == 0)
        return slice_of("", 0);
    qsort((void *)(uintptr_t)facts.stmts[0].times, facts.stmts[0].ntimes, sizeof(struct sql_time),
        by_place);
    return splice_default(w, slice_of_str(text), &facts.stmts[0]);
}
