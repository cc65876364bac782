/* SPDX-License-Identifier: PostgreSQL
 * top.h: the parts of `pgpool top`: a link to pgpool, tables that are sorted and cut to columns, a
 * screen. */
#ifndef PGPOOL_TOP_H
#define PGPOOL_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

#define TOP_COLUMNS_MAX 24
#define TOP_CELL_BYTES  160

struct top_view {
    char key;
    const char *name;
    const char *statement;
    const char *columns;
    const char *sorted_by;
};

/* All views, in the order of their keys. */
extern const struct top_view top_views[];
extern const int top_nviews;

/* ---- the link: top_link.c */

struct top_link {
    const char *const *keywords;
    const char *const *values;
    PGconn *conn;    /* NULL while there is none */
    char error[256]; /* why there is none, or what the last statement was answered with */
    int wake_fd;     /* its input ends a wait early; -1: none */
};

/* Runs one statement. NULL: `error` says why; a connection that broke is opened again by the next
 * call. The caller frees the result. Waits at most ten seconds. */
PGresult *top_link_ask(struct top_link *l, const char *sql);
void top_link_close(struct top_link *l);

/* ---- tables: top_table.c */

struct top_column {
    char name[40];
    int at;       /* in the answer */
    int width;    /* of the longest cell, and of the title */
    bool is_rate; /* growth per second */
    bool is_number;
};

/* One answer, as it is shown. The answer before it stays, for rates. */
struct top_table {
    const struct top_view *view;
    PGresult *now;
    PGresult *before;
    int64_t now_ms;
    int64_t before_ms;
    struct top_column columns[TOP_COLUMNS_MAX];
    int ncolumns;
    int sort_column; /* of `columns` */
    bool is_descending;
    int *order; /* rows of `now`; NULL when there are none */
};

/* An empty table of a view. */
void top_table_init(struct top_table *t, const struct top_view *view);
/* Takes an answer over (the table frees it) and sorts it. -1: out of memory, or the answer has none
 * of the view's columns; the table is then empty. */
int top_table_take(struct top_table *t, PGresult *answer, int64_t now_ms);
/* Sorts by another column: `step` columns to the right, 0 to turn the direction. */
void top_table_sort(struct top_table *t, int step);
int top_table_rows(const struct top_table *t);
/* The cell as it is shown: row of the order, column of `columns`. `out` has TOP_CELL_BYTES. */
const char *top_table_cell(const struct top_table *t, int row, int column, char *out);
void top_table_fini(struct top_table *t);

/* ---- one sentence about all: top_summary.c */

/* Asks for servers and clients and writes what there is of them, and first of all what is wrong. */
void top_summary(struct top_link *l, char *out, size_t size);

/* ---- the screen: top_screen.c */

/* Shows views until q is pressed. The exit status. */
int top_screen_run(struct top_link *l, int interval_ms, const struct top_view *first);

#endif
