/* SPDX-License-Identifier: PostgreSQL
 * follow_types.c: statements that clients share, and DDL. Runs in: workers. A server finds the
 * types of a statement's parameters when it parses it, once: after an ALTER COLUMN, or when a type
 * was dropped and made again, who parses the text anew must not get one that was parsed before
 * that. So DDL is counted, over all workers, and a text whose types were not all told by its client
 * is another one behind it. Without DDL that costs one look at the counter. */
#include "config.h"

#include <string.h>

#include "base/hash.h"
#include "base/hot.h"
#include "config/conf.h"
#include "wire/errmsg.h"
#include "wire/proto.h"
#include "wire/reader.h"

#include "plan_int.h"
#include "sstate_int.h"

/* Types below are built in: they stay what they are. */
#define FIRST_OTHER_TYPE 16384
/* What servers say of stale types is believed so often: each time all is parsed anew. */
#define STALE_PAUSE_US 1000000

/* The largest number of a parameter; what stands in strings counts, too. */
static uint32_t last_param(struct slice sql)
{
    const char *p = sql.p;
    const char *end = p + sql.n;
    uint32_t last = 0;

    while (p < end && (p = memchr(p, '$', (size_t)(end - p))) != NULL) {
        uint32_t n = 0;

        for (p++; p < end && *p >= '0' && *p <= '9' && n < UINT16_MAX; p++)
            n = n * 10 + (uint32_t)(*p - '0');
        last = n > last ? n : last;
    }
    return last;
}

bool follow_types_are_open(struct slice body)
{
    struct wire_reader r;
    uint32_t nparams;
    uint32_t type;
    uint16_t n;

    wire_reader_init(&r, body);
    nparams = last_param(wire_get_cstr(&r));
    if (nparams == 0)
        return false;
    n = wire_get_u16(&r);
    if (r.bad || n < nparams)
        return true;
    while (n-- > 0) {
        type = wire_get_u32(&r);
        if (type == 0 || type >= FIRST_OTHER_TYPE)
            return true;
    }
    return r.bad;
}

uint32_t follow_types_known(const struct client *c, uint32_t type)
{
    const struct conf *conf = c->ss->conf;
    bool differ =
        conf->backend_clustering_mode == CONF_CLUSTER_LOGICAL || conf_writes_everywhere(conf);

    return differ && type >= FIRST_OTHER_TYPE ? 0 : type;
}

HOT uint64_t follow_types_path(const struct client *c, struct slice body)
{
    uint64_t path = c->sstate->vars.client->path_hash;
    uint64_t n = session_name_changes(c->ss->shared);

    if (n != 0)
        path = hash_bytes(&n, sizeof n, path);
    n = session_type_changes(c->ss->shared);
    return n == 0 || !follow_types_are_open(body) ? path : hash_bytes(&n, sizeof n, path);
}

void follow_types_note(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    bool has_temp = (c->sstate->pins & 1U << PIN_REASON_TEMP_TABLE) != 0;
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++)
        c->sstate->errand->ddl |=
            route_ddl_of(&facts->stmts[i], effects_stmt_text(&facts->stmts[i], sql), has_temp);
}

/* Long scripts are DDL more often than not. */
void follow_types_note_unread(struct client *c)
{
    follow_note_unread(c);
    c->sstate->errand->ddl |= ROUTE_DDL_TYPES | ROUTE_DDL_NAMES;
}

void follow_types_settle(struct client *c, char tx_status)
{
    struct errand *t = c->sstate->errand;

    if (t->ddl == 0 || tx_status != 'I')
        return;
    session_ddl_done(c->ss->shared, t->ddl);
    t->ddl = 0;
}

/* What a server says of types that it knew when it parsed the statement. */
static bool is_of_types(const struct errmsg *m)
{
    static const char *const other[] = {"42883", "42804", "42725", "42704", "42846"};
    static const char gone[] = "cache lookup failed for type";
    unsigned i;

    if (slice_eq_str(m->sqlstate, "XX000"))
        return memmem(m->message.p, m->message.n, gone, sizeof gone - 1) != NULL;
    for (i = 0; i < sizeof other / sizeof other[0]; i++)
        if (slice_eq_str(m->sqlstate, other[i]))
            return true;
    return false;
}

/* The server has parsed it just now: what it says holds. */
static bool was_parsed_now(const struct client *c)
{
    const struct errand *t = c->sstate->errand;
    unsigned i;

    for (i = 0; i < t->way.npending; i++)
        if (t->way.pending[i].serial == c->link->expect.refused)
            return true;
    return false;
}

void follow_types_differ(const struct client *c, const struct prep *p)
{
    if (p->path_hash == follow_types_path(c, slice_of(p->body, p->body_len)))
        session_types_stale(c->ss->shared, loop_now_us(c->ss->loop), STALE_PAUSE_US);
}

bool follow_types_are_stale(struct client *c, const struct errmsg *m, bool may_replan)
{
    if (!is_of_types(m) || was_parsed_now(c))
        return false;
    if (may_replan || slice_eq_str(m->sqlstate, "XX000"))
        session_types_stale(c->ss->shared, loop_now_us(c->ss->loop), STALE_PAUSE_US);
    return may_replan;
}
