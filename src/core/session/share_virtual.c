/* SPDX-License-Identifier: PostgreSQL
 * share_virtual.c: the beginning and the end of a transaction of which no server knows: answered
 * here (virtual_begin), in both protocols. Runs in: workers. What is between them: share_out.c. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "config/conf.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "share_int.h"

/* A plain BEGIN needs no server yet. Its tag, or NULL: a server is to answer. */
static const char *virtual_begin(struct client *c, struct slice sql, const struct sql_stmt *st)
{
    struct share *s = c->share;
    const struct sql_facts facts = {.status = SQL_OK, .nstmts = 1, .stmts = st};

    if (!c->ss->conf->virtual_begin || s->mode == CONF_POOL_STATEMENT || s->is_virtual ||
        s->is_lost || st->tx.op != SQL_TX_BEGIN || st->tx.isolation == SQL_ISO_SERIALIZABLE)
        return NULL;
    client_stats_on_query(c);
    buf_put(&s->turn->begin, sql.p, sql.n);
    s->is_virtual = true;
    share_note(c, sql, &facts);
    s->has_tx_words = false;
    s->recovered = false; /* no link was asked to */
    return strncasecmp(sql.p + st->offset, "START", 5) == 0 ? "START TRANSACTION" : "BEGIN";
}

/* The end of a transaction of which no server knows (any more). */
static void forget_transaction(struct client *c)
{
    struct share *s = c->share;

    s->is_virtual = false;
    s->is_lost = false;
    s->is_untold = false;
    buf_free(&s->turn->begin);
    share_end_lost(s);
    client_stats_on_virtual_end(c);
    if (c->balance != NULL)
        c->balance->tx_status = 'I';
    share_route_end(c, false);
}

/* The end of a transaction in which nothing was done on the primary, or that died with its link. */
static const char *virtual_end(struct client *c, const struct sql_stmt *st)
{
    struct share *s = c->share;
    bool commit = st->kind == SQL_COMMIT && st->tx.op == SQL_TX_COMMIT;
    bool rollback = st->kind == SQL_ROLLBACK && st->tx.op == SQL_TX_ROLLBACK;

    if ((!s->is_virtual && !s->is_lost) || (!commit && !rollback) ||
        (st->flags & SQL_F_CHAIN) != 0 || (s->is_untold && commit))
        return NULL;
    commit = commit && s->is_virtual;
    forget_transaction(c);
    return commit ? "COMMIT" : "ROLLBACK";
}

static const char *answer(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    const char *tag;

    if (facts->status != SQL_OK || facts->nstmts != 1)
        return NULL;
    tag = virtual_begin(c, sql, &facts->stmts[0]);
    return tag != NULL ? tag : virtual_end(c, &facts->stmts[0]);
}

bool share_virtual_query(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    struct share *s = c->share;
    struct buf out = {0};
    const char *tag;

    if (s->phase != SHARE_DETACHED)
        return false;
    tag = answer(c, sql, facts);
    if (tag == NULL)
        return false;
    if (client_log_statements(c))
        client_log_statement(c, "", sql);
    s->turn->has_portal = false;
    prep_unref(&s->unnamed); /* as any simple query does */
    s->turn->unnamed_epoch = 0;
    wire_put_command_complete(&out, tag);
    wire_put_ready(&out, share_tx_status(c));
    client_send(c, &out);
    client_note_idle(c);
    return true;
}

/* The messages that run one word of a transaction: Parse (or none), Bind, Describe (or none),
 * Execute, and the Sync behind them when it is there. */
struct word {
    struct slice name;  /* of the statement */
    struct slice parse; /* the Parse behind its name; NULL: it is known */
    struct slice sql;
    bool describes;
    bool syncs;
    uint16_t nmessages;
};

static bool next_message(const char **p, const char *end, char *type, struct wire_reader *r)
{
    uint32_t len;

    if (end - *p < PROTO_HEADER_BYTES)
        return false;
    len = proto_get_u32(*p + 1);
    if (len < 4 || (size_t)(end - *p) < len + 1U)
        return false;
    *type = **p;
    wire_reader_init(r, slice_of(*p + PROTO_HEADER_BYTES, len - 4));
    *p += len + 1U;
    return true;
}

/* The first letters of BEGIN, START, COMMIT, END, ROLLBACK and ABORT, or of what may stand before.
 */
static bool is_likely(struct slice sql)
{
    static const char *const word[] = {"be", "st", "co", "en", "ro", "ab"};
    size_t i;

    if (sql.n < 3)
        return false;
    for (i = 0; i < sizeof word / sizeof word[0]; i++)
        if (strncasecmp(sql.p, word[i], 2) == 0)
            return true;
    return strchr("/- \t\r\n", sql.p[0]) != NULL;
}

/* The text of a statement that the client has. */
static bool find_known(const struct share *s, struct word *w)
{
    const struct share_name *n = w->name.n == 0 ? NULL : share_name_find(s, w->name);
    struct prep *prep = w->name.n == 0 ? s->unnamed : n == NULL ? NULL : n->prep;

    if (prep == NULL)
        return false;
    w->sql = prep_sql(prep);
    return is_likely(w->sql);
}

static bool read_parse(const struct client *c, struct wire_reader *r, struct word *w)
{
    struct err err;

    w->name = wire_get_cstr(r);
    w->parse = slice_of(r->p, (size_t)(r->end - r->p));
    w->sql = wire_get_cstr(r);
    if (wire_get_u16(r) != 0)
        return false; /* types of parameters: Bind has to give them */
    return !r->bad && is_likely(w->sql) &&
           (w->name.n == 0 || (w->name.n <= 1024 && share_name_find(c->share, w->name) == NULL &&
                                  !share_names_are_full(c, w->sql.n, &err)));
}

/* Of the unnamed portal, without parameters. */
static bool read_bind(const struct client *c, struct wire_reader *r, struct word *w)
{
    struct slice portal = wire_get_cstr(r);
    struct slice name = wire_get_cstr(r);
    uint16_t nformats = wire_get_u16(r);

    while (nformats-- > 0 && !r->bad)
        (void)wire_get_u16(r);
    if (r->bad || portal.n > 0 || wire_get_u16(r) != 0)
        return false;
    if (w->parse.p != NULL)
        return slice_eq(name, w->name);
    w->name = name;
    return find_known(c->share, w);
}

static bool read_word(struct client *c, const char *p, const char *end, struct word *w)
{
    const char *from = p;
    struct wire_reader r;
    char type;

    memset(w, 0, sizeof *w);
    if (!next_message(&p, end, &type, &r))
        return false;
    if (type == FE_PARSE && (!read_parse(c, &r, w) || !next_message(&p, end, &type, &r)))
        return false;
    if (type != FE_BIND || !read_bind(c, &r, w) || !next_message(&p, end, &type, &r))
        return false;
    w->nmessages = w->parse.p != NULL ? 3 : 2;
    if (type == FE_DESCRIBE) {
        w->describes = wire_get_u8(&r) == 'P' && wire_get_cstr(&r).n == 0;
        w->nmessages++;
        if (!w->describes || r.bad || !next_message(&p, end, &type, &r))
            return false;
    }
    if (type != FE_EXECUTE || wire_get_cstr(&r).n > 0 || r.bad || p == from)
        return false;
    w->syncs = next_message(&p, end, &type, &r) && type == FE_SYNC && r.p == r.end;
    w->nmessages = (uint16_t)(w->nmessages + (w->syncs ? 1 : 0));
    return true;
}

/* The messages of a word that is answered here. */
static void log_word(struct client *c, const char *p, const char *end, const struct word *w)
{
    struct slice body;
    uint16_t i;

    for (i = 0; i < w->nmessages && end - p >= PROTO_HEADER_BYTES; i++) {
        body = slice_of(p + PROTO_HEADER_BYTES, proto_get_u32(p + 1) - 4);
        client_said(c, p[0], body);
        p = body.p + body.n;
    }
}

bool share_virtual_word(struct client *c, const char *p, const char *end)
{
    struct share *s = c->share;
    struct buf out = {0};
    struct word w;
    const char *tag;

    if ((!c->ss->conf->virtual_begin && !s->is_virtual && !s->is_lost) ||
        s->phase != SHARE_DETACHED || c->server_batch || c->local_batch ||
        !read_word(c, p, end, &w))
        return false;
    tag = answer(c, w.sql, balance_facts(c->ss, w.sql));
    if (tag == NULL)
        return false;
    if (client_log_statements(c))
        log_word(c, p, end, &w);
    if (w.parse.p != NULL) {
        share_names_learn(c, w.name, w.parse);
        wire_put_empty(&out, BE_PARSE_COMPLETE);
    }
    wire_put_empty(&out, BE_BIND_COMPLETE);
    if (w.describes)
        wire_put_empty(&out, BE_NO_DATA);
    wire_put_command_complete(&out, tag);
    if (w.syncs)
        wire_put_ready(&out, share_tx_status(c));
    client_send(c, &out);
    client_note_idle(c);
    s->turn->nskip = (uint16_t)(w.nmessages - 1);
    s->turn->has_portal = s->is_virtual;
    return true;
}

/* By the protocol: its portal can be named until another takes its place. */
static void put_with_portal(struct client *c, struct feed_run *run, struct slice sql)
{
    static const unsigned ops[] = {OP_PARSE, OP_BIND, OP_EXECUTE, OP_SYNC};
    struct buf out = {0};
    uint32_t at;
    size_t i;

    wire_put_parse(&out, slice_of("", 0), sql);
    at = wire_begin(&out, FE_BIND);
    buf_put(&out, "\0\0\0\0\0\0\0\0", 8); /* no names, formats, values */
    wire_end(&out, at);
    at = wire_begin(&out, FE_EXECUTE);
    buf_put(&out, "\0\0\0\0\0", 5);
    wire_end(&out, at);
    wire_put_empty(&out, FE_SYNC);
    for (i = 0; i < sizeof ops / sizeof ops[0]; i++)
        link_expect(c->link, ops[i] | OP_SWALLOW);
    c->share->turn->unnamed_epoch = 0;
    feed_put(run, out.data, out.len);
    buf_free(&out);
}

void share_virtual_put(struct client *c, struct feed_run *run)
{
    struct share_turn *t = c->share->turn;
    struct slice sql = buf_slice(&t->begin);

    if (client_log_statements(c))
        client_log_on_node(c, "", sql);
    if (t->has_portal && !t->was_out) {
        put_with_portal(c, run, sql);
        return;
    }
    if (t->needs_snapshot)
        buf_printf(&t->begin, "%s", "\n;SELECT");
    t->needs_snapshot = false;
    share_put_own_query(c, run, buf_slice(&t->begin));
}
