/* SPDX-License-Identifier: PostgreSQL
 * rewrite_copy.c: COPY FROM STDIN: which columns are left out and differ between nodes, and how its
 * rows are written. Runs in: workers. Pure. */
#include "config.h"

#include "base/arena.h"
#include "rewrite_int.h"

#include <string.h>

static const struct sql_table *copy_target(const struct repl_work *w)
{
    for (uint32_t i = 0; i < w->stmt->ntables; i++) {
        if ((w->stmt->tables[i].flags & SQL_TABLE_TARGET) != 0)
            return &w->stmt->tables[i];
    }
    return NULL;
}

/* A constant of one character: 'x', '''', E'\t', E'\\'. False: it is another. */
static bool one_char(struct slice tok, char *out)
{
    if (tok.n == 3 && tok.p[0] == '\'') {
        *out = tok.p[1];
        return true;
    }
    if (slice_eq_str(tok, "''''")) {
        *out = '\'';
        return true;
    }
    if (tok.n == 4 && (tok.p[0] == 'E' || tok.p[0] == 'e') && tok.p[1] == '\'') {
        *out = tok.p[2];
        return true;
    }
    if (tok.n == 5 && (tok.p[0] == 'E' || tok.p[0] == 'e') && tok.p[1] == '\'' &&
        tok.p[2] == '\\') {
        *out = tok.p[3] == 't' ? '\t' : tok.p[3];
        return strchr("t\\'\"", tok.p[3]) != NULL;
    }
    return false;
}

static bool says_no(const struct repl_work *w, uint32_t i)
{
    static const char *const no[] = {
        "false", "off", "'false'", "'off'", "\"false\"", "\"off\"", "0"};

    for (unsigned k = 0; k < sizeof no / sizeof no[0]; k++) {
        if (slice_ieq_str(repl_tok(w, i), no[k]))
            return true;
    }
    return false;
}

static enum repl_copy_format format_at(const struct repl_work *w, uint32_t i)
{
    struct slice tok = repl_tok(w, i);

    if (slice_ieq_str(tok, "csv") || slice_eq_str(tok, "'csv'") || slice_eq_str(tok, "\"csv\""))
        return REPL_COPY_CSV;
    if (slice_ieq_str(tok, "text") || slice_eq_str(tok, "'text'") || slice_eq_str(tok, "\"text\""))
        return REPL_COPY_TEXT;
    return REPL_COPY_OTHER;
}

/* An option of one character; true: it is one, and *fine is false when it cannot be read. */
static bool read_char(
    const struct repl_work *w, uint32_t i, struct repl_copy_form *form, bool *fine)
{
    uint32_t value = repl_is(w, i + 1, "as") ? i + 2 : i + 1;
    char *to;

    if (repl_is(w, i, "delimiter") || repl_is(w, i, "delimiters"))
        to = &form->delimiter;
    else if (repl_is(w, i, "escape"))
        to = &form->escape;
    else if (repl_is(w, i, "quote") && !repl_is(w, i - 1, "force"))
        to = &form->quote;
    else
        return false;
    *fine = one_char(repl_tok(w, value), to) && *fine;
    return true;
}

/* Options behind STDIN, in the new way of writing them and in the old ones. */
static struct repl_copy_form read_form(const struct repl_work *w, uint32_t i)
{
    struct repl_copy_form form = {.quote = '"'};
    bool fine = !repl_is(w, w->from + 1, "binary");

    for (; i < w->to && !repl_is(w, i, "where"); i++) {
        if (read_char(w, i, &form, &fine))
            continue;
        if (repl_is(w, i, "format"))
            form.format = format_at(w, ++i);
        else if (repl_is(w, i, "csv"))
            form.format = REPL_COPY_CSV;
        else if (repl_is(w, i, "binary"))
            fine = false;
        else if (repl_is(w, i, "header"))
            form.has_header = !says_no(w, i + 1);
        else if (repl_is(w, i, "default"))
            form.has_defaults = true;
    }
    if (!fine)
        form.format = REPL_COPY_OTHER;
    if (form.delimiter == '\0')
        form.delimiter = form.format == REPL_COPY_CSV ? ',' : '\t';
    if (form.escape == '\0')
        form.escape = form.quote;
    return form;
}

static bool is_listed(
    const struct repl_work *w, uint32_t i, uint32_t end, const struct repl_column *column)
{
    for (i++; i < end; i++) {
        if (repl_is_name(w, i) && repl_names_column(repl_tok(w, i), column))
            return true;
    }
    return false;
}

/* The value of a default that is one for all rows is asked for, as text. */
static void fill_column(struct repl_work *w, const struct repl_column *column, uint32_t end,
    struct repl_copy_plan *copy)
{
    struct repl_plan *p = w->plan;
    uint32_t nasks = p->nasks;
    struct buf expr = {0};
    struct buf name = {0};
    const char *text;

    if (repl_default(w, column, false).n == 0)
        return;
    p->nasks = nasks; /* not its times: the whole of it */
    if (copy->form.format == REPL_COPY_OTHER) {
        repl_differs(w, column->def);
        return;
    }
    buf_printf(&expr, "CAST(CAST((%.*s) AS %.*s) AS pg_catalog.text)", (int)column->def.n,
        column->def.p, (int)column->type.n, column->type.p);
    text = arena_strndup(w->arena, expr.data, expr.len);
    if (text == NULL) {
        w->failed = true;
    } else {
        (void)repl_ask(w, slice_of(text, expr.len), slice_of_str("text"), false);
        copy->names[copy->n++] = column->name;
        repl_put_name(&name, repl_plain(w, column->name));
        repl_splice(
            w, w->tok[end - 1].offset + w->tok[end - 1].len, 0, ", %.*s", (int)name.len, name.data);
    }
    buf_free(&expr);
    buf_free(&name);
}

static uint32_t behind_name(const struct repl_work *w, uint32_t i)
{
    while (repl_is_sign(w, i + 1, '.'))
        i += 2;
    return i + 1;
}

/* Whether the mark of a default may stand for one that differs. */
static void look_at_marks(struct repl_work *w, const struct repl_column *column)
{
    uint32_t nasks = w->plan->nasks;

    if (repl_default(w, column, true).n > 0)
        repl_differs(w, column->def);
    w->plan->nasks = nasks;
}

/* The tokens of the list of columns; there is none when it is empty. */
struct listed {
    uint32_t from;
    uint32_t end;
};

static void one_column(struct repl_work *w, const struct sql_table *name,
    const struct repl_column *c, struct listed list, struct repl_copy_plan *copy)
{
    bool has_data = list.from == list.end || is_listed(w, list.from, list.end, c);

    if (has_data && copy->form.has_defaults)
        look_at_marks(w, c);
    if (c->is_sequence && w->plan->serial == NULL && (!has_data || copy->form.has_defaults))
        w->plan->serial = name;
    if (c->is_sequence && (!has_data || copy->form.has_defaults))
        repl_default_sequences(w, slice_of(w->text.p + name->offset, name->len), c);
    if (!c->is_sequence && !has_data)
        fill_column(w, c, list.end, copy);
}

bool repl_copy(struct repl_work *w)
{
    const struct sql_table *name = copy_target(w);
    const struct repl_table *table;
    struct repl_copy_plan *copy;
    uint32_t list;
    uint32_t end;

    if (name == NULL || w->catalog == NULL)
        return true;
    table = w->catalog->find(w->catalog->ctx, name);
    if (table == NULL) {
        w->plan->table = name;
        return false;
    }
    list = behind_name(w, repl_token_at(w, name->offset));
    end = repl_is_sign(w, list, '(') ? repl_skip_parens(w, list) - 1 : list;
    copy = arena_alloc_zero(w->arena, sizeof *copy);
    if (copy == NULL || (copy->names = arena_alloc_zero(
                             w->arena, (table->ncolumns + 1) * sizeof *copy->names)) == NULL) {
        w->failed = true;
        return true;
    }
    copy->form = read_form(w, end);
    for (uint32_t i = 0; i < table->ncolumns; i++)
        one_column(w, name, &table->columns[i], (struct listed){list, end}, copy);
    w->plan->copy = copy->n > 0 ? copy : NULL;
    return true;
}
