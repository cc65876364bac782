/* SPDX-License-Identifier: PostgreSQL
 * sqlcomment.c: the trace of a statement's comment. Runs in: workers, with jsonlog only. */
#include "config.h"

#include "parser/sqlcomment.h"

#include <string.h>

#define KEY         "traceparent='"
#define TRACE_AT    3 /* behind the version */
#define TRACE_CHARS 32
#define SPAN_AT     (TRACE_AT + TRACE_CHARS + 1)
#define SPAN_CHARS  16
#define VALUE_CHARS 55

/* Copies `n` digits; false when they are none, or all 0, which stands for "none". */
static bool take_digits(char *to, const char *from, size_t n)
{
    memcpy(to, from, n);
    to[n] = '\0';
    return strspn(to, "0123456789abcdef") == n && strspn(to, "0") != n;
}

bool sqlcomment_trace(struct slice sql, struct sql_trace *out)
{
    const char *key = memmem(sql.p, sql.n, KEY, sizeof KEY - 1);
    const char *value = key == NULL ? NULL : key + sizeof KEY - 1;
    size_t left = key == NULL ? 0 : (size_t)(sql.p + sql.n - value);

    if (left > VALUE_CHARS && value[2] == '-' && value[SPAN_AT - 1] == '-' &&
        value[SPAN_AT + SPAN_CHARS] == '-' && value[VALUE_CHARS] == '\'' &&
        take_digits(out->trace_id, value + TRACE_AT, TRACE_CHARS) &&
        take_digits(out->span_id, value + SPAN_AT, SPAN_CHARS))
        return true;
    out->trace_id[0] = '\0';
    out->span_id[0] = '\0';
    return false;
}
