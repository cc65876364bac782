/* SPDX-License-Identifier: PostgreSQL
 * plan_test.h: the case of a session for tests of plan.h, and messages of the extended protocol
 * from a short text. */
#ifndef PGP_TEST_PLAN_TEST_H
#define PGP_TEST_PLAN_TEST_H

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "plan/plan.h"
#include "wire/writer.h"

/* What the catalogue and the client's names are; the router is the real one. */
struct plan_test {
    struct arena *arena;
    struct route_input *route;
    struct sql_facts facts;
    uint64_t lsn[VIEW_MAX_NODES];
    struct plan_case in;
};

static inline const struct sql_facts *plan_test_judge(
    void *ctx, struct slice sql, struct route_decision *out)
{
    struct plan_test *t = ctx;

    arena_reset(t->arena);
    memset(&t->facts, 0, sizeof t->facts);
    (void)sql_parse(t->arena, sql, &t->facts);
    route_query(t->route, sql, &t->facts, out);
    return &t->facts;
}

/* The client has prepared a read and a write. */
static inline struct slice plan_test_statement(void *ctx, struct slice name)
{
    (void)ctx;
    if (slice_eq_str(name, "r"))
        return slice_of_str("select * from t");
    return slice_eq_str(name, "w") ? slice_of_str("insert into t values (1)") : slice_of(NULL, 0);
}

static inline void plan_test_init(struct plan_test *t, struct arena *arena,
    struct route_input *route, const struct view *view, int primary)
{
    memset(t, 0, sizeof *t);
    t->arena = arena;
    t->route = route;
    t->in.conf = route->conf;
    t->in.view = view;
    t->in.replayed_lsn = t->lsn;
    t->in.judge = plan_test_judge;
    t->in.statement = plan_test_statement;
    t->in.lookup = route->lookup;
    t->in.session = route->session;
    t->in.ctx = t;
    t->in.own_node = primary;
    t->in.write_node = primary;
    t->in.home_node = VIEW_NO_NODE;
    t->in.avoid_node = VIEW_NO_NODE;
}

static inline void plan_test_put(
    struct buf *out, char type, char what, const char *a, const char *b)
{
    uint32_t at = wire_begin(out, type);

    if (what != 0)
        buf_put_byte(out, what);
    if (a != NULL)
        buf_put(out, a, strlen(a) + 1);
    if (b != NULL)
        buf_put(out, b, strlen(b) + 1);
    if (type == FE_PARSE)
        buf_put_u16(out, 0);
    else if (type == FE_BIND)
        buf_put(out, "\0\0\0\0\0\0", 6);
    else if (type == FE_EXECUTE)
        buf_put(out, "\0\0\0\0", 4);
    wire_end(out, at);
}

/* "P:sql", "Pname:sql", "Bportal:statement", "Sname" and "Dportal" (Describe), "Eportal",
 * "Fportal" (Execute of one row), "Cname", "Q:sql", "|" (Sync), "." (Flush): one a line. */
static inline void plan_test_messages(struct buf *out, const char *script)
{
    char line[256];
    const char *end;
    char *colon;
    size_t n;

    for (; *script != '\0'; script = *end == '\0' ? end : end + 1) {
        end = strchrnul(script, '\n');
        n = (size_t)(end - script) < sizeof line - 1 ? (size_t)(end - script) : sizeof line - 1;
        memcpy(line, script, n);
        line[n] = '\0';
        colon = strchr(line, ':');
        if (colon != NULL)
            *colon++ = '\0';
        switch (line[0]) {
        case 'P':
        case 'B':
            plan_test_put(out, line[0], 0, line + 1, colon == NULL ? "" : colon);
            break;
        case 'S':
        case 'D':
            plan_test_put(out, FE_DESCRIBE, line[0] == 'S' ? 'S' : 'P', line + 1, NULL);
            break;
        case 'C':
            plan_test_put(out, FE_CLOSE, 'S', line + 1, NULL);
            break;
        case 'Q':
            plan_test_put(out, FE_QUERY, 0, colon == NULL ? "" : colon, NULL);
            break;
        case 'E':
        case 'F':
            plan_test_put(out, FE_EXECUTE, 0, line + 1, NULL);
            if (line[0] == 'F')
                out->data[out->len - 1] = 1;
            break;
        default:
            plan_test_put(out, line[0] == '|' ? FE_SYNC : FE_FLUSH, 0, NULL, NULL);
            break;
        }
    }
}

#endif
