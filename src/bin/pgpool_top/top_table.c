/* SPDX-License-Identifier: PostgreSQL
 * top_table.c: an answer of SHOW as a table that is cut to columns, sorted, and compared with the
 * one before. Runs in: pgpool-top. */
#include "config.h"

#include "base/mem.h"
#include "bin/pgpool_top/top.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP_VIEW(key, name, statement, columns, sorted_by)                                         \
    {key, name, statement, columns, sorted_by},
const struct top_view top_views[] = {
#include "bin/pgpool_top/top_views.def"
};
#undef TOP_VIEW
const int top_nviews = (int)(sizeof top_views / sizeof top_views[0]);

void top_table_init(struct top_table *t, const struct top_view *view)
{
    memset(t, 0, sizeof *t);
    t->view = view;
    t->sort_column = -1;
}

void top_table_fini(struct top_table *t)
{
    PQclear(t->now);
    PQclear(t->before);
    mem_free(t->order);
    top_table_init(t, t->view);
}

int top_table_rows(const struct top_table *t)
{
    return t->order == NULL ? 0 : PQntuples(t->now);
}

/* A number with its sign and fraction only; empty cells do not count against it. */
static bool is_number(const char *s)
{
    char *end;

    if (*s == '\0')
        return true;
    (void)strtod(s, &end);
    return end != s && *end == '\0';
}

/* The row of the answer before that has the same first shown column. -1: none. */
static int row_before(const struct top_table *t, int row)
{
    int key = t->columns[0].at;
    int i;

    for (i = 0; i < (t->before == NULL ? 0 : PQntuples(t->before)); i++) {
        if (strcmp(PQgetvalue(t->before, i, key), PQgetvalue(t->now, row, key)) == 0)
            return i;
    }
    return -1;
}

/* Growth per second, -1 when it cannot be told. */
static double rate(const struct top_table *t, int row, const struct top_column *c)
{
    double seconds = (double)(t->now_ms - t->before_ms) / 1000;
    int was = row_before(t, row);
    double grown;

    if (was == -1 || seconds <= 0)
        return -1;
    grown = strtod(PQgetvalue(t->now, row, c->at), NULL) -
            strtod(PQgetvalue(t->before, was, c->at), NULL);
    return grown < 0 ? -1 : grown / seconds;
}

/* Control characters would move the cursor; what clients send may have any. */
static void copy_plain(char *out, const char *text)
{
    size_t n = 0;

    for (; *text != '\0' && n < TOP_CELL_BYTES - 1; text++) {
        bool is_c1 = (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] >= 0x80 &&
                     (unsigned char)text[1] < 0xa0; /* C1, as UTF-8 has it */

        if (is_c1)
            text++;
        out[n++] = is_c1 || (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text;
    }
    out[n] = '\0';
}

const char *top_table_cell(const struct top_table *t, int row, int column, char *out)
{
    const struct top_column *c = &t->columns[column];
    int at = t->order[row];
    double per_second;

    if (!c->is_rate) {
        copy_plain(out, PQgetvalue(t->now, at, c->at));
        return out;
    }
    per_second = rate(t, at, c);
    if (per_second < 0)
        snprintf(out, TOP_CELL_BYTES, "-");
    else
        snprintf(out, TOP_CELL_BYTES, per_second < 10 ? "%.1f" : "%.0f", per_second);
    return out;
}

/* Columns of the view that the answer has: an older pgpool may lack some. */
static void find_columns(struct top_table *t)
{
    const char *from = t->view->columns;
    struct top_column *c;
    size_t len;
    char name[sizeof t->columns[0].name];

    t->ncolumns = 0;
    for (; *from != '\0' && t->ncolumns < TOP_COLUMNS_MAX; from += strspn(from, " ")) {
        len = strcspn(from, " ");
        snprintf(name, sizeof name, "%.*s", (int)len, from);
        from += len;
        c = &t->columns[t->ncolumns];
        c->is_rate = name[strlen(name) - 1] == '/';
        if (c->is_rate)
            name[strlen(name) - 1] = '\0';
        c->at = PQfnumber(t->now, name);
        snprintf(c->name, sizeof c->name, "%.36s%s", name, c->is_rate ? "/s" : "");
        if (c->at != -1)
            t->ncolumns++;
    }
}

static void find_sort_column(struct top_table *t)
{
    const char *by = t->view->sorted_by;
    int i;

    if (t->sort_column != -1)
        return;
    t->is_descending = *by == '-';
    by += *by == '-';
    t->sort_column = 0;
    for (i = 0; i < t->ncolumns; i++) {
        if (strncmp(t->columns[i].name, by, strlen(by)) == 0)
            t->sort_column = i;
    }
}

static int compare_rows(const struct top_table *t, int a, int b)
{
    const struct top_column *c = &t->columns[t->sort_column];
    const char *x = PQgetvalue(t->now, a, c->at);
    const char *y = PQgetvalue(t->now, b, c->at);
    double m = c->is_rate ? rate(t, a, c) : strtod(x, NULL);
    double n = c->is_rate ? rate(t, b, c) : strtod(y, NULL);
    int order = c->is_rate || c->is_number ? (m > n) - (m < n) : strcmp(x, y);

    return t->is_descending ? -order : order;
}

/* Sorts by merging, so that rows which compare equal keep their order from one look to the next. */
static void merge_sort(struct top_table *t, int *rows, int n, int *spare)
{
    int half = n / 2;
    int i = 0;
    int j = half;
    int k;

    if (n < 2)
        return;
    merge_sort(t, rows, half, spare);
    merge_sort(t, rows + half, n - half, spare);
    memcpy(spare, rows, (size_t)n * sizeof *rows);
    for (k = 0; k < n; k++) {
        if (j == n || (i < half && compare_rows(t, spare[i], spare[j]) <= 0))
            rows[k] = spare[i++];
        else
            rows[k] = spare[j++];
    }
}

static void measure(struct top_table *t)
{
    char cell[TOP_CELL_BYTES];
    int column;
    int row;
    int len;

    for (column = 0; column < t->ncolumns; column++) {
        t->columns[column].width = (int)strlen(t->columns[column].name);
        for (row = 0; row < top_table_rows(t); row++) {
            len = (int)strlen(top_table_cell(t, row, column, cell));
            if (len > t->columns[column].width)
                t->columns[column].width = len;
        }
    }
}

static void sort_rows(struct top_table *t)
{
    int n = PQntuples(t->now);
    int *order = mem_alloc(((size_t)n + 1) * 2 * sizeof *order);
    int i;

    for (i = 0; i < n; i++)
        order[i] = i;
    merge_sort(t, order, n, order + n);
    mem_free(t->order);
    t->order = order;
}

int top_table_take(struct top_table *t, PGresult *answer, int64_t now_ms)
{
    int i;
    int row;

    PQclear(t->before);
    t->before = t->now;
    t->before_ms = t->now_ms;
    t->now = answer;
    t->now_ms = now_ms;
    find_columns(t);
    if (t->ncolumns == 0) {
        top_table_fini(t);
        return -1;
    }
    find_sort_column(t);
    for (i = 0; i < t->ncolumns; i++) {
        t->columns[i].is_number = true;
        for (row = 0; row < PQntuples(answer) && t->columns[i].is_number; row++)
            t->columns[i].is_number = is_number(PQgetvalue(answer, row, t->columns[i].at));
    }
    sort_rows(t);
    measure(t);
    return 0;
}

void top_table_sort(struct top_table *t, int step)
{
    if (t->ncolumns == 0)
        return;
    if (step == 0)
        t->is_descending = !t->is_descending;
    else
        t->sort_column = (t->sort_column + step + t->ncolumns) % t->ncolumns;
    sort_rows(t);
}
