/* SPDX-License-Identifier: PostgreSQL
 * values.c: values as they come by the protocol: those that the main node gives, and those that a
 * client binds. Runs in: workers. Pure. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "replicate/rewrite.h"
#include "wire/reader.h"

void repl_take_values(struct arena *a, struct slice rows, struct slice *values, uint32_t n)
{
    struct wire_reader r;
    uint32_t at = 0;

    wire_reader_init(&r, rows);
    while (at < n && wire_get_u32(&r) > 0 && !r.bad) {
        for (uint32_t left = wire_get_u16(&r); left > 0 && at < n; left--, at++) {
            bool is_null;
            struct slice value = wire_get_value(&r, &is_null);

            if (!is_null && !r.bad)
                values[at] = slice_of(arena_strndup(a, value.p, value.n), value.n);
        }
    }
}

void repl_which_sql(struct buf *sql)
{
    buf_printf(sql,
        "%sSELECT virtualtransaction FROM pg_catalog.pg_locks WHERE pid = "
        "pg_catalog.pg_backend_pid() AND locktype = 'virtualxid' LIMIT 1",
        sql->len > 0 ? ";" : "");
}

uint64_t repl_which_number(struct slice which)
{
    const char *slash = which.n == 0 ? NULL : memchr(which.p, '/', which.n);
    struct slice number = slice_of(slash, slash == NULL ? 0 : (size_t)(which.p + which.n - slash));
    uint64_t value = 0;

    for (size_t i = 1; i < number.n; i++)
        value = value * 10 + (uint64_t)(number.p[i] - '0');
    return value;
}

/* A type of times, or one that the server finds out. */
static bool may_be_time(struct slice types, uint32_t i)
{
    static const uint16_t oid[] = {0, 1082, 1083, 1114, 1184, 1266, /* arrays of them: */ 1115,
        1182, 1183, 1185, 1270, /* ranges: */ 3908, 3910, 3912, 4533, 4534, 4535};
    struct wire_reader r;
    uint32_t count;
    uint32_t type = 0;

    wire_reader_init(&r, types);
    count = types.n == 0 ? 0 : wire_get_u16(&r);
    for (uint32_t k = 0; k <= i && k < count; k++)
        type = wire_get_u32(&r);
    for (unsigned k = 0; (i < count) && k < sizeof oid / sizeof oid[0]; k++) {
        if (type == oid[k])
            return true;
    }
    return i >= count;
}

uint32_t repl_bind_moves(struct slice rest, struct slice types)
{
    struct wire_reader formats;
    struct wire_reader r;
    uint16_t nformats;
    uint16_t format = 0;
    uint16_t count;

    wire_reader_init(&r, rest);
    nformats = wire_get_u16(&r);
    formats = r;
    (void)wire_get_bytes(&r, nformats * 2U);
    count = wire_get_u16(&r);
    for (uint32_t i = 0; i < count && !r.bad; i++) {
        bool is_null;
        struct slice value = wire_get_value(&r, &is_null);

        if (i == 0 || nformats > 1)
            format = nformats == 0 ? 0 : wire_get_u16(&formats);
        if (format == 0 && !is_null && !r.bad && repl_word_moves(value) && may_be_time(types, i))
            return i + 1;
    }
    return 0;
}
