/* SPDX-License-Identifier: PostgreSQL
 * numbers.c: sequences of all nodes reach where the furthest stands. Runs in: workers. Pure.
 *
 * Who takes a number has locked the sequence on the main node, and is told with the lock where it
 * stands; those that are behind are brought there before they give the next one. Where one is
 * further, the main node is brought forward, under the same lock. Never back: what takes numbers
 * without the lock, as a function does, may have taken them meanwhile, and they would be given
 * twice. */
#include "config.h"

#include "replicate/numbers.h"

#include <string.h>

#include "base/arena.h"
#include "replicate/rewrite.h"
#include "wire/reader.h"

/* The first key of an advisory lock of a sequence, whose oid is the second; documented. */
#define LOCK_CLASS 1886857071

static void put_lock(struct slice sequence, struct buf *sql)
{
    buf_printf(sql,
        "pg_catalog.pg_advisory_xact_lock(%d, "
        "(%.*s)::pg_catalog.regclass::pg_catalog.oid::integer)",
        LOCK_CLASS, (int)sequence.n, sequence.p);
}

void repl_sequence_lock_sql(struct slice sequence, struct buf *sql)
{
    buf_printf(sql,
        "SELECT CASE WHEN pg_catalog.has_sequence_privilege(s, 'USAGE') "
        "OR pg_catalog.has_sequence_privilege(s, 'SELECT') "
        "AND pg_catalog.has_sequence_privilege(s, 'UPDATE') "
        "THEN pg_catalog.pg_sequence_last_value(s) END, "
        "pg_catalog.has_sequence_privilege(s, 'UPDATE') "
        "FROM (SELECT (%.*s)::pg_catalog.regclass AS s) q, ",
        (int)sequence.n, sequence.p);
    put_lock(sequence, sql);
}

/* ---- what the main node says ---- */

void repl_numbers_add(struct arena *a, struct repl_numbers *numbers, struct slice sequence)
{
    uint32_t n = numbers->n;
    struct repl_number *room;

    for (uint32_t i = 0; i < n; i++) {
        if (slice_eq(numbers->all[i].sequence, sequence))
            return;
    }
    if (n == 0 || (n >= REPL_MAX_SEQUENCES && (n & (n - 1)) == 0)) { /* full at 8, 16, 32 */
        room = arena_alloc_zero(a, (n == 0 ? REPL_MAX_SEQUENCES : n * 2) * sizeof *room);
        if (n > 0)
            memcpy(room, numbers->all, n * sizeof *room);
        numbers->all = room;
    }
    numbers->all[numbers->n++].sequence = sequence;
}

bool repl_numbers_are_hidden(const struct repl_numbers *numbers)
{
    for (uint32_t i = 0; i < numbers->n; i++) {
        const struct repl_number *number = &numbers->all[i];

        if (number->is_told && number->last.p == NULL && !number->may_set)
            return true;
    }
    return false;
}

static bool is_number(struct slice s)
{
    size_t i = s.n > 1 && s.p[0] == '-' ? 1 : 0;

    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    return s.n > 0 && s.n <= 20 && i == s.n;
}

static void take(struct arena *a, const struct slice value[2], struct repl_number *number)
{
    number->last = slice_of(NULL, 0);
    number->is_told = true;
    number->may_set = value[1].n == 1 && value[1].p[0] == 't';
    if (value[0].p != NULL && is_number(value[0]))
        number->last = slice_of(arena_strndup(a, value[0].p, value[0].n), value[0].n);
}

void repl_numbers_take(struct arena *a, const struct slice *values, struct repl_numbers *numbers)
{
    for (uint32_t i = 0; i < numbers->n; i++)
        take(a, values + 2 * i, &numbers->all[i]);
}

/* One more value of a row; p NULL: it is none, or no number. */
static struct slice next_number(struct wire_reader *r)
{
    bool is_null;
    struct slice value = wire_get_value(r, &is_null);

    return is_null || r->bad || !is_number(value) ? slice_of(NULL, 0) : value;
}

void repl_numbers_take_row(struct arena *a, struct slice row, struct repl_numbers *numbers)
{
    struct slice value[2];
    struct wire_reader r;
    bool is_null;

    wire_reader_init(&r, row);
    if (wire_get_u16(&r) != 2 || numbers->ntaken == numbers->n)
        return;
    value[0] = next_number(&r);
    value[1] = wire_get_value(&r, &is_null);
    if (is_null || r.bad)
        value[1] = slice_of(NULL, 0);
    take(a, value, &numbers->all[numbers->ntaken++]);
}

/* ---- what the others are told ---- */

/* Who may only use a sequence, as by GRANT USAGE, takes from it what it lacks. */
static void put_steps(const struct repl_number *number, struct buf *sql)
{
    const struct slice *s = &number->sequence;

    buf_printf(sql,
        "coalesce((SELECT pg_catalog.max(pg_catalog.nextval(s.seqrelid::pg_catalog.regclass)) "
        "FROM pg_catalog.pg_sequence s, pg_catalog.generate_series(1, (%.*s - coalesce("
        "pg_catalog.pg_sequence_last_value(s.seqrelid::pg_catalog.regclass), "
        "s.seqstart - s.seqincrement)) / s.seqincrement) "
        "WHERE s.seqrelid = (%.*s)::pg_catalog.regclass), "
        "pg_catalog.pg_sequence_last_value((%.*s)::pg_catalog.regclass))",
        (int)number->last.n, number->last.p, (int)s->n, s->p, (int)s->n, s->p);
}

static void put_set(const struct repl_number *number, struct buf *sql)
{
    struct slice s = number->sequence;
    struct slice last = number->last;

    buf_printf(sql,
        "(SELECT CASE WHEN v IS NULL OR v <> %.*s AND (v < %.*s) = "
        "((pg_catalog.pg_sequence_parameters((%.*s)::pg_catalog.regclass)).increment > 0) "
        "THEN pg_catalog.setval((%.*s)::pg_catalog.regclass, %.*s) ELSE v END "
        "FROM pg_catalog.pg_sequence_last_value((%.*s)::pg_catalog.regclass) v)",
        (int)last.n, last.p, (int)last.n, last.p, (int)s.n, s.p, (int)s.n, s.p, (int)last.n, last.p,
        (int)s.n, s.p);
}

/* Under the lock of that node, which who was cut short may still hold there. */
void repl_numbers_sql(const struct repl_numbers *numbers, struct buf *sql)
{
    const char *before = "SELECT ";

    for (uint32_t i = 0; i < numbers->n; i++) {
        const struct repl_number *number = &numbers->all[i];

        if (number->last.p == NULL)
            continue;
        buf_printf(sql, "%s", before);
        before = ", ";
        if (!number->may_set)
            put_steps(number, sql);
        else
            put_set(number, sql);
    }
    before = " FROM ";
    for (uint32_t i = 0; i < numbers->n; i++) {
        if (numbers->all[i].last.p == NULL)
            continue;
        buf_printf(sql, "%s", before);
        put_lock(numbers->all[i].sequence, sql);
        buf_printf(sql, " l%u", i);
        before = ", ";
    }
}

/* ---- what the others say ---- */

void repl_numbers_compare(struct slice row, struct repl_numbers *numbers)
{
    struct wire_reader r;

    wire_reader_init(&r, row);
    (void)wire_get_u16(&r);
    for (uint32_t i = 0; i < numbers->n; i++) {
        const struct repl_number *number = &numbers->all[i];
        struct slice value = number->last.p == NULL ? number->last : next_number(&r);

        if (value.p != NULL && !slice_eq(value, number->last))
            numbers->are_apart = true;
    }
}

void repl_numbers_where_sql(const struct repl_numbers *numbers, struct buf *sql)
{
    for (uint32_t i = 0; i < numbers->n; i++) {
        struct slice s = numbers->all[i].sequence;

        if (numbers->all[i].last.p != NULL)
            buf_printf(sql, "%s pg_catalog.pg_sequence_last_value((%.*s)::pg_catalog.regclass)",
                sql->len == 0 ? "SELECT" : ",", (int)s.n, s.p);
    }
}

/* Brings this node's to where that row says that another one's stand. */
static void put_forward(const struct repl_numbers *numbers, struct slice row, struct buf *sql)
{
    struct wire_reader r;

    wire_reader_init(&r, row);
    (void)wire_get_u16(&r);
    for (uint32_t i = 0; i < numbers->n; i++) {
        struct repl_number there = numbers->all[i];
        struct repl_numbers one = {.all = &there, .n = 1};

        there.last = there.last.p == NULL ? there.last : next_number(&r);
        if (there.last.p == NULL)
            continue;
        repl_numbers_sql(&one, sql);
        buf_put_byte(sql, ';');
    }
}

bool repl_numbers_are_alike(const struct repl_numbers *numbers, struct slice rows, struct buf *sql)
{
    struct slice first = slice_of(NULL, 0);
    bool alike = true;
    struct wire_reader r;

    wire_reader_init(&r, rows);
    while (wire_reader_left(&r) >= 4) {
        uint32_t len = wire_get_u32(&r);
        struct slice row = wire_get_bytes(&r, len);

        alike = alike && (first.p == NULL || slice_eq(row, first));
        first = first.p == NULL ? row : first;
        put_forward(numbers, row, sql);
    }
    return alike;
}
