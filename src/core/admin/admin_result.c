/* SPDX-License-Identifier: PostgreSQL
 * admin_result.c: answers under construction, and answers as protocol messages.
 * Runs in: worker, control, web. An answer lives in one arena with a limit: ten thousand clients
 * fit, a runaway report gives an error instead of taking the process down. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "admin_int.h"
#include "base/assert.h"
#include "wire/writer.h"

#define INT4_OID          23
#define INT8_OID          20
#define NUMERIC_OID       1700
#define TYPED_COLUMNS_MAX 32

void admin_rows_init(struct admin_rows *rows, struct admin_result *res)
{
    rows->res = res;
    rows->tail = &res->rows;
    rows->row = NULL;
    rows->col = 0;
    rows->full = false;
}

void admin_rows_end(struct admin_rows *rows)
{
    ASSERT(rows->row == NULL || rows->col == rows->res->ncolumns);
    rows->row = NULL;
}

void admin_row_begin(struct admin_rows *rows)
{
    struct admin_result *res = rows->res;
    struct admin_row *row;

    admin_rows_end(rows);
    rows->col = 0;
    if (rows->full)
        return;
    row = arena_alloc(res->arena, sizeof *row + res->ncolumns * sizeof row->cell[0]);
    if (row == NULL) {
        rows->full = true;
        return;
    }
    row->next = NULL;
    *rows->tail = row;
    rows->tail = &row->next;
    rows->row = row;
    res->nrows++;
}

/* Puts a cell whose text lives as long as the answer; NULL means that memory ran out. */
static void put_cell(struct admin_rows *rows, const char *p, size_t n)
{
    if (rows->row == NULL)
        return;
    if (p == NULL) {
        rows->full = true;
        rows->row = NULL;
        return;
    }
    ASSERT(rows->col < rows->res->ncolumns);
    rows->row->cell[rows->col++] = slice_of(p, n);
}

void admin_put_static(struct admin_rows *rows, const char *text)
{
    put_cell(rows, text, strlen(text));
}

void admin_put(struct admin_rows *rows, struct slice text)
{
    if (text.n == 0)
        put_cell(rows, "", 0);
    else
        put_cell(rows, arena_strndup(rows->res->arena, text.p, text.n), text.n);
}

void admin_put_str(struct admin_rows *rows, const char *text)
{
    admin_put(rows, slice_of_str(text));
}

void admin_put_int(struct admin_rows *rows, int64_t v)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, v);
    admin_put_str(rows, text);
}

void admin_put_uint(struct admin_rows *rows, uint64_t v)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, v);
    admin_put_str(rows, text);
}

void admin_put_real(struct admin_rows *rows, double v)
{
    char text[400]; /* the largest double in %f */

    snprintf(text, sizeof text, "%f", v);
    admin_put_str(rows, text);
}

void admin_put_time(struct admin_rows *rows, int64_t at_us)
{
    char text[64] = "";
    time_t at = (time_t)(at_us / 1000000);
    struct tm tm;

    if (at_us != 0 && localtime_r(&at, &tm) != NULL)
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    admin_put_str(rows, text);
}

void admin_result_fini(struct admin_result *res)
{
    arena_free(&res->arena);
    memset(res, 0, sizeof *res);
}

static void encode_notices(const struct admin_result *res, struct buf *out)
{
    const struct admin_notice *n;

    for (n = res->notices; n != NULL; n = n->next)
        wire_put_notice(out, n->severity, n->sqlstate, n->msg);
}

static void encode_complete(const struct admin_result *res, uint32_t nrows, struct buf *out)
{
    char tag[32];

    if (res->columns == NULL && res->tag == NULL) {
        wire_put_empty(out, BE_EMPTY_QUERY);
        return;
    }
    if (res->columns == NULL) {
        wire_put_command_complete(out, res->tag);
        return;
    }
    snprintf(tag, sizeof tag, "SELECT %" PRIu32, nrows);
    wire_put_command_complete(out, tag);
}

static uint32_t type_oid(char type)
{
    switch (type) {
    case 'i':
        return INT4_OID;
    case 'q':
        return INT8_OID;
    case 'n':
        return NUMERIC_OID;
    default:
        ASSERT(type == 't');
        return ADMIN_TEXT_OID;
    }
}

static void describe(const struct admin_result *res, struct buf *out)
{
    uint32_t oids[TYPED_COLUMNS_MAX];
    unsigned i;

    if (res->types == NULL) {
        wire_put_row_description(out, res->columns, res->ncolumns, ADMIN_TEXT_OID);
        return;
    }
    ASSERT(res->ncolumns <= TYPED_COLUMNS_MAX);
    for (i = 0; i < res->ncolumns; i++)
        oids[i] = type_oid(res->types[i]);
    wire_put_typed_columns(out, res->columns, res->ncolumns, oids);
}

void admin_encode(const struct admin_result *res, struct buf *out)
{
    struct admin_cursor all = {res->rows, false};

    if (res->columns != NULL)
        describe(res, out);
    admin_encode_execute(res, &all, 0, out);
}

void admin_encode_execute(
    const struct admin_result *res, struct admin_cursor *cur, uint32_t max_rows, struct buf *out)
{
    uint32_t n = 0;

    if (!cur->told)
        encode_notices(res, out);
    cur->told = true;
    while (cur->next != NULL && (max_rows == 0 || n < max_rows)) {
        wire_put_data_row(out, cur->next->cell, res->ncolumns);
        cur->next = cur->next->next;
        n++;
    }
    if (max_rows != 0 && n == max_rows)
        wire_put_empty(out, BE_PORTAL_SUSPENDED);
    else
        encode_complete(res, n, out);
}
