/* SPDX-License-Identifier: PostgreSQL
 * copy_fill.c: finds the ends of rows in the data of COPY, which comes in any pieces, and writes
 * the columns that were left out in front of them. Runs in: workers. Pure.
 *
 * A byte that ends a row for the server ends one here: a newline, or a carriage return with or
 * without one, not escaped and not within quotes. Where the data is broken the server says so. */
#include "config.h"

#include "replicate/copy.h"

static void put_text_value(const struct repl_copy_form *form, struct slice value, struct buf *out)
{
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];

        if (c == '\n' || c == '\r' || c == '\\' || c == form->delimiter)
            buf_put_byte(out, '\\');
        if (c == '\n')
            c = 'n';
        else if (c == '\r')
            c = 'r';
        buf_put_byte(out, c);
    }
}

static void put_csv_value(const struct repl_copy_form *form, struct slice value, struct buf *out)
{
    buf_put_byte(out, form->quote);
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] == form->quote || value.p[i] == form->escape)
            buf_put_byte(out, form->escape);
        buf_put_byte(out, value.p[i]);
    }
    buf_put_byte(out, form->quote);
}

void repl_copy_put_row(
    const struct repl_copy_form *form, const struct slice *values, uint32_t n, struct buf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        buf_put_byte(out, form->delimiter);
        if (form->format == REPL_COPY_CSV)
            put_csv_value(form, values[i], out);
        else
            put_text_value(form, values[i], out);
    }
}

/* "\." by itself: what is behind it is not read. */
static bool is_end_mark(const struct repl_copy *copy)
{
    return copy->row_bytes == 2 && copy->first[0] == '\\' && copy->first[1] == '.';
}

static void fill_row(struct repl_copy *copy, struct buf *out)
{
    copy->is_over = is_end_mark(copy);
    if (!copy->is_over && copy->form.has_header)
        buf_put(out, copy->header.p, copy->header.n);
    else if (!copy->is_over)
        buf_put(out, copy->row.p, copy->row.n);
    copy->form.has_header = false;
    copy->row_bytes = 0;
}

/* Whether the byte ends a row; it is taken note of. */
static bool ends_row(struct repl_copy *copy, char c)
{
    bool is_end = c == '\n' || c == '\r';

    if (copy->form.format == REPL_COPY_TEXT) {
        bool was_escaped = copy->is_escaped;

        copy->is_escaped = !was_escaped && c == '\\';
        return is_end && !was_escaped;
    }
    if (copy->form.quote != copy->form.escape && copy->in_quote && c == copy->form.escape)
        copy->is_escaped = !copy->is_escaped;
    if (c == copy->form.quote && !copy->is_escaped)
        copy->in_quote = !copy->in_quote;
    if (copy->form.quote == copy->form.escape || c != copy->form.escape)
        copy->is_escaped = false;
    return is_end && !copy->in_quote;
}

void repl_copy_fill(struct repl_copy *copy, struct slice data, struct buf *out)
{
    size_t from = 0;

    for (size_t i = 0; i < data.n && !copy->is_over; i++) {
        char c = data.p[i];
        bool is_rest = copy->after_cr && c == '\n';

        copy->after_cr = false;
        if (is_rest)
            continue;
        if (!ends_row(copy, c)) {
            if (copy->row_bytes < sizeof copy->first)
                copy->first[copy->row_bytes] = c;
            copy->row_bytes += copy->row_bytes < UINT32_MAX;
            continue;
        }
        buf_put(out, data.p + from, i - from);
        from = i;
        fill_row(copy, out);
        copy->after_cr = c == '\r';
    }
    buf_put(out, data.p + from, data.n - from);
}

void repl_copy_end(struct repl_copy *copy, struct buf *out)
{
    if (copy->row_bytes > 0 && !copy->is_over)
        fill_row(copy, out);
}
