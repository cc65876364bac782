/* SPDX-License-Identifier: PostgreSQL
 * rewrite_insert.c: columns that an INSERT leaves out and whose defaults differ between nodes, and
 * the word DEFAULT, wherever INSERT, UPDATE and MERGE stand: also within WITH. Runs in: workers.
 * Pure. It walks over tokens, between places that the parser has found. */
#include "config.h"

#include "base/arena.h"
#include "rewrite_int.h"

#include <string.h>

/* One INSERT, UPDATE or MERGE. */
struct target {
    struct repl_work *w;
    const struct sql_table *name;
    const struct repl_table *table;
    uint32_t end;         /* the token behind the statement */
    uint32_t first;       /* of the tokens of the column list; 0: there is none */
    uint32_t list_end;    /* its closing parenthesis */
    uint32_t name_end;    /* the token behind the name and its alias */
    const uint32_t *cols; /* of the list: numbers of columns */
    uint32_t ncols;
};

/* Rows of VALUES, as they are found. */
struct spans {
    struct sql_span *item;
    uint32_t n;
    uint32_t cap;
};

static void add_span(struct repl_work *w, struct spans *s, uint32_t from, uint32_t to)
{
    if (s->n == s->cap) {
        uint32_t cap = s->cap == 0 ? 8 : s->cap * 2;
        struct sql_span *item = arena_alloc(w->arena, cap * sizeof *item);

        if (item == NULL) {
            w->failed = true;
            return;
        }
        if (s->n > 0)
            memcpy(item, s->item, s->n * sizeof *item);
        s->item = item;
        s->cap = cap;
    }
    s->item[s->n].offset = w->tok[from].offset;
    s->item[s->n++].len = w->tok[to - 1].offset + w->tok[to - 1].len - w->tok[from].offset;
}

/* Behind the parts of a name. */
static uint32_t skip_name(const struct repl_work *w, uint32_t i)
{
    if (!repl_is_name(w, i))
        return i;
    while (repl_is_sign(w, i + 1, '.') && repl_is_name(w, i + 2))
        i += 2;
    return i + 1;
}

/* Where the statement that has token `i` ends: at the parenthesis it stands in. */
static uint32_t end_of(const struct repl_work *w, uint32_t i)
{
    uint32_t depth = 0;

    for (; i < w->to; i++) {
        if (repl_is_sign(w, i, '('))
            depth++;
        else if (repl_is_sign(w, i, ')') && depth-- == 0)
            return i;
    }
    return w->to;
}

static const struct sql_table *target_at(const struct repl_work *w, uint32_t i)
{
    for (uint32_t k = 0; i < w->to && k < w->stmt->ntables; k++) {
        const struct sql_table *t = &w->stmt->tables[k];

        if (t->offset == w->tok[i].offset && (t->flags & SQL_TABLE_TARGET) != 0)
            return t;
    }
    return NULL;
}

static const struct repl_column *column_named(const struct target *t, uint32_t i)
{
    for (uint32_t k = 0; k < t->table->ncolumns; k++) {
        if (repl_names_column(repl_tok(t->w, i), &t->table->columns[k]))
            return &t->table->columns[k];
    }
    return NULL;
}

/* The list behind the name, if it is one of columns and not a query. */
static void read_columns(struct target *t, uint32_t i)
{
    struct repl_work *w = t->w;
    uint32_t *cols;
    uint32_t n = 0;

    if (!repl_is_sign(w, i, '(') || !repl_is_name(w, i + 1) || repl_is(w, i + 1, "select") ||
        repl_is(w, i + 1, "with") || repl_is(w, i + 1, "values") || repl_is(w, i + 1, "table"))
        return;
    t->list_end = repl_skip_parens(w, i) - 1;
    t->first = i + 1;
    cols = arena_alloc(w->arena, (t->list_end - i) * sizeof *cols);
    if (cols == NULL) {
        w->failed = true;
        return;
    }
    for (uint32_t k = i + 1; k < t->list_end; k = repl_item_end(w, k, t->list_end) + 1) {
        const struct repl_column *c = column_named(t, k);

        cols[n++] = c == NULL ? UINT32_MAX : (uint32_t)(c - t->table->columns);
    }
    t->cols = cols;
    t->ncols = n;
}

/* The column that gets the value number `i` of a row; NULL: none that is known. */
static const struct repl_column *column_of(const struct target *t, uint32_t i)
{
    if (t->first == 0)
        return i < t->table->ncolumns ? &t->table->columns[i] : NULL;
    if (i >= t->ncols || t->cols[i] == UINT32_MAX)
        return NULL;
    return &t->table->columns[t->cols[i]];
}

static bool is_listed(const struct target *t, uint32_t column, uint32_t nvalues)
{
    if (t->first == 0)
        return column < nvalues;
    for (uint32_t i = 0; i < t->ncols; i++) {
        if (t->cols[i] == column)
            return true;
    }
    return false;
}

/* A default that has to be written out. Time is the same in all rows; `each`: so is all else, for
 * there is one row. */
static bool must_fill(const struct target *t, uint32_t column, uint32_t nvalues)
{
    const struct repl_column *c = &t->table->columns[column];
    struct repl_plan *p = t->w->plan;
    uint32_t nasks = p->nasks;
    bool fills;

    if (is_listed(t, column, nvalues))
        return false;
    fills = repl_default(t->w, c, true).n > 0;
    p->nasks = nasks;
    return fills;
}

/* The list gets the columns that are filled in: the names of all that have values, when there was
 * none. */
static void name_columns(struct target *t, uint32_t nvalues, const uint32_t *fill, uint32_t nfill)
{
    struct buf out = {0};
    uint32_t at = t->first == 0 ? t->name_end - 1 : t->list_end - 1;

    if (t->first == 0) {
        buf_printf(&out, " (");
        for (uint32_t i = 0; i < nvalues; i++) {
            if (i > 0)
                buf_printf(&out, ", ");
            repl_put_name(&out, repl_plain(t->w, t->table->columns[i].name));
        }
    }
    for (uint32_t i = 0; i < nfill; i++) {
        if (i > 0 || t->first != 0 || nvalues > 0)
            buf_printf(&out, ", ");
        repl_put_name(&out, repl_plain(t->w, t->table->columns[fill[i]].name));
    }
    if (t->first == 0)
        buf_put_byte(&out, ')');
    repl_splice(t->w, t->w->tok[at].offset + t->w->tok[at].len, 0, "%.*s", (int)out.len, out.data);
    buf_free(&out);
}

static uint32_t *columns_to_fill(struct target *t, uint32_t nvalues, uint32_t *n)
{
    uint32_t *fill = arena_alloc(t->w->arena, (t->table->ncolumns + 1) * sizeof *fill);

    *n = 0;
    if (fill == NULL) {
        t->w->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < t->table->ncolumns; i++) {
        if (must_fill(t, i, nvalues))
            fill[(*n)++] = i;
    }
    return fill;
}

/* Appends the values of the columns that are filled in, each behind a comma. */
static void put_fill(struct target *t, const uint32_t *fill, uint32_t n, bool each, struct buf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        struct slice def = repl_default(t->w, &t->table->columns[fill[i]], each);

        if (def.n == 0)
            def = slice_of_str("DEFAULT");
        buf_printf(out, ", %.*s", (int)def.n, def.p);
    }
}

/* DEFAULT, or a constant like 'now', as a whole value. */
static void one_value(
    struct target *t, uint32_t i, uint32_t end, const struct repl_column *c, bool each)
{
    struct repl_work *w = t->w;
    struct slice def;

    if (c == NULL || end != i + 1)
        return;
    if (repl_time_value(w, i, c->type) || !repl_is(w, i, "default"))
        return;
    def = repl_default(w, c, each);
    if (def.n > 0)
        repl_splice_text(w, w->tok[i].offset, w->tok[i].len, def);
}

static uint32_t count_items(const struct repl_work *w, uint32_t i, uint32_t end)
{
    uint32_t n = 0;

    for (; i < end; n++)
        i = repl_item_end(w, i, end) + 1;
    return n;
}

/* The rows of VALUES from token `i` on; returns the token behind them. */
static uint32_t values_rows(struct target *t, uint32_t i, struct spans *spans)
{
    struct repl_work *w = t->w;
    uint32_t end = repl_skip_parens(w, i) - 1;
    uint32_t nvalues = count_items(w, i + 1, end);
    uint32_t nfill;
    const uint32_t *fill = columns_to_fill(t, nvalues, &nfill);

    if (fill == NULL || (t->first == 0 && nvalues > t->table->ncolumns))
        return end + 1;
    if (nfill > 0)
        name_columns(t, nvalues, fill, nfill);
    while (repl_is_sign(w, i, '(')) {
        uint32_t k = 0;
        struct buf out = {0};

        end = repl_skip_parens(w, i) - 1;
        add_span(w, spans, i, end + 1);
        for (uint32_t at = i + 1; at < end; at = repl_item_end(w, at, end) + 1)
            one_value(t, at, repl_item_end(w, at, end), column_of(t, k++), true);
        put_fill(t, fill, nfill, true, &out);
        if (out.len > 0)
            repl_splice(w, w->tok[end].offset, 0, "%.*s", (int)out.len, out.data);
        buf_free(&out);
        i = end + 1;
        if (!repl_is_sign(w, i, ',') || !repl_is_sign(w, i + 1, '('))
            break;
        i++;
    }
    return i;
}

/* INSERT INTO t DEFAULT VALUES: the columns that differ are named. */
static void default_values(struct target *t, uint32_t i)
{
    struct repl_work *w = t->w;
    uint32_t nfill;
    const uint32_t *fill = columns_to_fill(t, 0, &nfill);
    struct buf out = {0};

    if (fill == NULL || nfill == 0)
        return;
    name_columns(t, 0, fill, nfill);
    put_fill(t, fill, nfill, true, &out);
    repl_splice(w, w->tok[i].offset, w->tok[i + 1].offset + w->tok[i + 1].len - w->tok[i].offset,
        "VALUES (%.*s)", (int)out.len - 2, out.data + 2);
    buf_free(&out);
}

static bool ends_targets(const struct repl_work *w, uint32_t i)
{
    static const char *const word[] = {"into", "where", "having", "window", "union", "intersect",
        "except", "order", "limit", "offset", "fetch", "for", "returning", "on"};

    if (repl_is(w, i, "from"))
        return !repl_is(w, i - 1, "distinct") ||
               !(repl_is(w, i - 2, "is") || repl_is(w, i - 2, "not"));
    if (repl_is(w, i, "group"))
        return !repl_is(w, i - 1, "within");
    for (unsigned k = 0; k < sizeof word / sizeof word[0]; k++) {
        if (repl_is(w, i, word[k]) && !repl_is_sign(w, i - 1, '.') && !repl_is(w, i - 1, "as"))
            return true;
    }
    return false;
}

/* The end of a query behind INSERT INTO t: ON CONFLICT or RETURNING or the statement's. */
static uint32_t query_end(const struct target *t, uint32_t i)
{
    const struct repl_work *w = t->w;

    while (i < t->end) {
        if (repl_is_sign(w, i, '('))
            i = repl_skip_parens(w, i);
        else if (repl_is(w, i, "returning") ||
                 (repl_is(w, i, "on") && repl_is(w, i + 1, "conflict")))
            return i;
        else
            i++;
    }
    return t->end;
}

/* The token behind the list of columns of the SELECT at `i`. */
static uint32_t list_end(const struct repl_work *w, uint32_t i, uint32_t end)
{
    for (i++; i < end && !ends_targets(w, i);) {
        if (repl_is(w, i, "distinct") && repl_is(w, i + 1, "on"))
            i = repl_skip_parens(w, i + 2);
        else if (repl_is_sign(w, i, '('))
            i = repl_skip_parens(w, i);
        else
            i++;
    }
    return i;
}

static bool has_star(const struct repl_work *w, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (repl_is_sign(w, i, '(')) {
            i = repl_skip_parens(w, i) - 1;
            continue;
        }
        if (repl_is_sign(w, i, '*') &&
            (repl_is_sign(w, i - 1, '.') || repl_is_sign(w, i - 1, ',') || i == from ||
                repl_is(w, i - 1, "select") || repl_is(w, i - 1, "all") ||
                repl_is(w, i - 1, "distinct")))
            return true;
    }
    return false;
}

/* Each SELECT of a union, when all stand without parentheses: their number, 0 else. */
static uint32_t find_arms(const struct repl_work *w, uint32_t i, uint32_t end, uint32_t *first)
{
    uint32_t n = 0;
    bool plain = true;

    for (; i < end; i++) {
        if (repl_is_sign(w, i, '(')) {
            plain = plain && !(n == 0 && !repl_is_name(w, i - 1)) && !repl_is(w, i - 1, "union") &&
                    !repl_is(w, i - 1, "except") && !repl_is(w, i - 1, "intersect");
            i = repl_skip_parens(w, i) - 1;
        } else if (repl_is(w, i, "select")) {
            if (n++ == 0)
                *first = i;
        } else if (repl_is(w, i, "values") || (repl_is(w, i, "table") && n == 0)) {
            plain = false;
        } else if ((repl_is(w, i, "union") || repl_is(w, i, "except") ||
                       repl_is(w, i, "intersect")) &&
                   !repl_is(w, i + 1, "select") && !repl_is(w, i + 2, "select")) {
            plain = false;
        }
    }
    return plain ? n : 0;
}

/* What is another value in each row is left to each node; that was noted. */
static uint32_t drop_volatile(struct target *t, uint32_t *fill, uint32_t n)
{
    uint32_t left = 0;

    for (uint32_t k = 0; k < n; k++) {
        if (repl_default(t->w, &t->table->columns[fill[k]], false).n > 0)
            fill[left++] = fill[k];
    }
    return left;
}

/* How many columns the query has is not known: if they are not all, a default may be what differs.
 */
static void note_unknown(struct target *t)
{
    for (uint32_t i = 1; i < t->table->ncolumns; i++) {
        if (must_fill(t, i, 1))
            repl_differs(t->w, t->table->columns[i].def);
    }
}

/* INSERT INTO t SELECT ...: one more column in each list. */
static void query(struct target *t, uint32_t i)
{
    struct repl_work *w = t->w;
    uint32_t end = query_end(t, i);
    uint32_t first = i;
    uint32_t narms = find_arms(w, i, end, &first);
    uint32_t nvalues = narms > 0 ? count_items(w, first + 1, list_end(w, first, end)) : 0;
    uint32_t nfill;
    uint32_t *fill;
    struct buf out = {0};

    if (t->first == 0 && (narms == 0 || has_star(w, first + 1, list_end(w, first, end)))) {
        nvalues = t->table->ncolumns; /* as most do: all of them */
        note_unknown(t);
    }
    fill = columns_to_fill(t, nvalues, &nfill);
    if (fill == NULL || nfill == 0)
        return;
    nfill = drop_volatile(t, fill, nfill);
    if (nfill == 0)
        return;
    name_columns(t, nvalues, fill, nfill);
    put_fill(t, fill, nfill, false, &out);
    if (narms == 0) {
        repl_splice(w, w->tok[i].offset, 0, "SELECT pgp_q.*%.*s FROM (", (int)out.len, out.data);
        repl_splice(w, w->tok[end - 1].offset + w->tok[end - 1].len, 0, ") AS pgp_q");
    }
    for (uint32_t at = first; narms > 0 && at < end; narms--) {
        uint32_t last = list_end(w, at, end) - 1;

        repl_splice(w, w->tok[last].offset + w->tok[last].len, 0, "%.*s", (int)out.len, out.data);
        for (at = last + 1; at < end && !repl_is(w, at, "select");)
            at = repl_is_sign(w, at, '(') ? repl_skip_parens(w, at) : at + 1;
    }
    buf_free(&out);
}

/* (a, b) = (x, DEFAULT): the columns from `i` on, the values behind `eq`. */
static void assign_row(struct target *t, uint32_t i, uint32_t eq, uint32_t end)
{
    struct repl_work *w = t->w;
    uint32_t names_end = repl_skip_parens(w, i) - 1;
    uint32_t at = repl_is(w, eq + 1, "row") ? eq + 2 : eq + 1;
    uint32_t name = i + 1;

    if (!repl_is_sign(w, at, '('))
        return;
    end = repl_skip_parens(w, at) - 1;
    for (at++; at < end && name < names_end; at = repl_item_end(w, at, end) + 1) {
        one_value(t, at, repl_item_end(w, at, end), column_named(t, name), false);
        name = repl_item_end(w, name, names_end) + 1;
    }
}

/* What stands behind SET, up to `end`. */
static void assignments(struct target *t, uint32_t i, uint32_t end)
{
    struct repl_work *w = t->w;

    while (i < end) {
        uint32_t next = repl_item_end(w, i, end);
        uint32_t eq = repl_is_sign(w, i, '(') ? repl_skip_parens(w, i) : i + 1;

        while (eq < next && !repl_is_sign(w, eq, '='))
            eq++;
        if (repl_is_sign(w, i, '('))
            assign_row(t, i, eq, next);
        else
            one_value(t, eq + 1, next, column_named(t, i), false);
        i = next + 1;
    }
}

static uint32_t set_end(const struct target *t, uint32_t i)
{
    const struct repl_work *w = t->w;

    while (i < t->end) {
        if (repl_is(w, i, "from") || repl_is(w, i, "where") || repl_is(w, i, "returning") ||
            repl_is(w, i, "when"))
            return i;
        i = repl_is_sign(w, i, '(') ? repl_skip_parens(w, i) : i + 1;
    }
    return t->end;
}

/* What comes behind the name of an INSERT's target, from its columns on. */
static void insert_body(struct target *t, uint32_t i, struct spans *spans)
{
    struct repl_work *w = t->w;

    t->name_end = i;
    read_columns(t, i);
    if (t->first != 0)
        i = t->list_end + 1;
    if (repl_is(w, i, "overriding"))
        i += 3;
    if (repl_is(w, i, "default"))
        default_values(t, i);
    else if (repl_is(w, i, "values"))
        i = values_rows(t, i + 1, spans);
    else
        query(t, i);
}

/* Columns whose rows get numbers; and those behind a view that it does not show, which nobody can
 * write out. */
static void note_columns(struct target *t)
{
    struct repl_plan *p = t->w->plan;

    for (uint32_t i = 0; i < t->table->ncolumns + t->table->nhidden; i++) {
        const struct repl_column *c = &t->table->columns[i];
        uint32_t nasks = p->nasks;

        if (c->is_sequence && p->serial == NULL) {
            p->serial = t->name;
            p->serial_is_view = t->table->is_view;
        }
        if (c->is_sequence && !(t->table->is_view && c->def.n == 0))
            repl_default_sequences(t->w, slice_of(t->w->text.p + t->name->offset, t->name->len), c);
        if (i >= t->table->ncolumns && repl_default(t->w, c, true).n > 0)
            repl_differs(t->w, c->def);
        p->nasks = nasks;
    }
}

/* The SETs and INSERTs of one statement: behind ON CONFLICT, and in MERGE. */
static void clauses(struct target *t, uint32_t i, struct spans *spans)
{
    struct repl_work *w = t->w;

    while (i < t->end) {
        if (repl_is(w, i, "set") && (repl_is(w, i - 1, "update") || w->stmt->kind != SQL_INSERT))
            assignments(t, i + 1, set_end(t, i + 1));
        if (repl_is(w, i, "insert") && repl_is(w, i - 1, "then")) {
            t->first = 0;
            insert_body(t, i + 1, spans);
        }
        i = repl_is_sign(w, i, '(') ? repl_skip_parens(w, i) : i + 1;
    }
}

/* Has its facts, or says that they are wanted. */
static bool open_target(struct target *t, struct repl_work *w, uint32_t name)
{
    *t = (struct target){.w = w, .name = target_at(w, name), .end = end_of(w, name)};
    if (t->name == NULL)
        return true;
    t->table = w->catalog == NULL ? NULL : w->catalog->find(w->catalog->ctx, t->name);
    if (t->table != NULL || w->catalog == NULL)
        return true;
    w->plan->table = t->name;
    return false;
}

/* UPDATE x SET a = 1 asks the catalogue only where a DEFAULT or a constant like 'now' is seen. */
static bool needs_columns(const struct repl_work *w, uint32_t i, uint32_t end)
{
    for (; i < end; i++) {
        if (repl_is(w, i, "default") || repl_is(w, i, "insert"))
            return true;
        if (w->tok[i].kind == SQL_TOKEN_STRING && w->tok[i].len >= 5 && w->tok[i].len < 40 &&
            (repl_is_sign(w, i - 1, '=') || repl_is_sign(w, i - 1, '(') ||
                repl_is_sign(w, i - 1, ',')) &&
            strpbrk("nNtTyY ", (char[]){repl_tok(w, i).p[1], '\0'}) != NULL)
            return true;
    }
    return false;
}

static bool one_statement(struct repl_work *w, uint32_t i, struct spans *spans)
{
    bool inserts = repl_is(w, i, "insert") && repl_is(w, i + 1, "into");
    bool merges = repl_is(w, i, "merge") && repl_is(w, i + 1, "into");
    uint32_t name = inserts || merges ? i + 2 : i + 1;
    struct target t;

    if (!inserts && !merges && !repl_is(w, i, "update"))
        return true;
    if (repl_is(w, name, "only"))
        name++;
    if (repl_is_sign(w, name, '('))
        name++;
    if (!inserts && (target_at(w, name) == NULL || !needs_columns(w, name, end_of(w, name))))
        return true;
    if (!open_target(&t, w, name))
        return false;
    if (t.table == NULL || t.table->ncolumns == 0)
        return true;
    name = skip_name(w, name);
    if (inserts) {
        if (repl_is(w, name, "as"))
            name += 2;
        insert_body(&t, name, spans);
    }
    if (inserts || merges)
        note_columns(&t);
    clauses(&t, name, spans);
    return true;
}

bool repl_defaults(struct repl_work *w, const struct sql_span **values, uint32_t *n)
{
    struct spans spans = {0};

    for (uint32_t i = w->from; i < w->to; i++) {
        if (!one_statement(w, i, &spans))
            return false;
    }
    *values = spans.item;
    *n = spans.n;
    return true;
}
