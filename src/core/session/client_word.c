/* SPDX-License-Identifier: PostgreSQL
 * client_word.c: a word of a transaction, as the messages of the extended protocol say it. Runs in:
 * workers. */
#include "config.h"

#include <string.h>

#include "wire/reader.h"
#include "wire/writer.h"

#include "client_word_int.h"
#include "share_int.h"

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

/* The text of a statement that a client with a link of its own has. */
static bool find_own(const struct client *c, struct client_word *w)
{
    const struct statement *st = statements_find(c->statements, w->name);

    if (st == NULL || st->msg_len == 0 || st->is_doubtful || statement_is_sql(st))
        return false;
    w->sql = statement_sql(st);
    return is_likely(w->sql);
}

static bool find_known(const struct client *c, struct client_word *w)
{
    const struct share_name *n;
    struct prep *prep;

    if (c->share == NULL)
        return find_own(c, w);
    n = w->name.n == 0 ? NULL : share_name_find(c->share, w->name);
    prep = w->name.n == 0 ? c->share->unnamed : n == NULL ? NULL : n->prep;
    if (prep == NULL)
        return false;
    w->sql = prep_sql(prep);
    return is_likely(w->sql);
}

/* A statement can be given this name. */
static bool is_free(const struct client *c, const struct client_word *w)
{
    if (c->share == NULL && w->parse.n > STATEMENT_MSG_MAX)
        return false; /* it would not be kept */
    if (w->name.n == 0)
        return true;
    if (c->share == NULL)
        return statements_find(c->statements, w->name) == NULL;
    return w->name.n <= 1024 && share_name_find(c->share, w->name) == NULL &&
           share_names_have_room(c, w->sql.n);
}

static bool read_parse(const struct client *c, struct wire_reader *r, struct client_word *w)
{
    w->name = wire_get_cstr(r);
    w->sql = wire_get_cstr(r);
    if (wire_get_u16(r) != 0)
        return false; /* types of parameters: Bind has to give them */
    return !r->bad && is_likely(w->sql) && is_free(c, w);
}

/* Of the unnamed portal, without parameters. */
static bool read_bind(const struct client *c, struct wire_reader *r, struct client_word *w)
{
    struct slice portal = wire_get_cstr(r);
    struct slice name = wire_get_cstr(r);
    uint16_t nformats = wire_get_u16(r);

    while (nformats-- > 0 && !r->bad)
        (void)wire_get_u16(r);
    if (r->bad || portal.n > 0 || wire_get_u16(r) != 0)
        return false;
    if (w->parse.p != NULL)
        return prep_is_same_name(name, w->name);
    w->name = name;
    return find_known(c, w);
}

bool client_word_read(struct client *c, const char *p, const char *end, struct client_word *w)
{
    const char *from = p;
    struct wire_reader r;
    char type;

    memset(w, 0, sizeof *w);
    if (!next_message(&p, end, &type, &r))
        return false;
    if (type == FE_PARSE) {
        w->parse = slice_of(from, (size_t)(p - from));
        if (!read_parse(c, &r, w) || !next_message(&p, end, &type, &r))
            return false;
    }
    if (type != FE_BIND || !read_bind(c, &r, w) || !next_message(&p, end, &type, &r))
        return false;
    w->nmessages = w->parse.p != NULL ? 3 : 2;
    if (type == FE_DESCRIBE) {
        w->describes = wire_get_u8(&r) == 'P' && wire_get_cstr(&r).n == 0;
        w->nmessages++;
        if (!w->describes || r.bad || !next_message(&p, end, &type, &r))
            return false;
    }
    if (type != FE_EXECUTE || wire_get_cstr(&r).n > 0 || r.bad)
        return false;
    w->end = p;
    w->syncs = next_message(&p, end, &type, &r) && type == FE_SYNC && r.p == r.end;
    w->nmessages = (uint16_t)(w->nmessages + (w->syncs ? 1 : 0));
    w->end = w->syncs ? p : w->end;
    return true;
}

/* No link of its own knows it yet: one is told when it needs it. */
static void learn_own(struct client *c, const struct client_word *w)
{
    statements_add(&c->statements, w->name, w->parse, COUNT_OTHER)->on_own = false;
}

void client_word_begin(struct client *c, const struct client_word *w, struct buf *out)
{
    size_t head = PROTO_HEADER_BYTES + w->name.n + 1;

    if (w->parse.p != NULL) {
        if (c->share == NULL)
            learn_own(c, w);
        else
            share_names_learn(c, w->name, slice_of(w->parse.p + head, w->parse.n - head));
        wire_put_empty(out, BE_PARSE_COMPLETE);
    }
    wire_put_empty(out, BE_BIND_COMPLETE);
    if (w->describes)
        wire_put_empty(out, BE_NO_DATA);
}

void client_word_log(struct client *c, const char *p, const struct client_word *w)
{
    struct slice body;
    uint16_t i;

    for (i = 0; i < w->nmessages; i++) {
        body = slice_of(p + PROTO_HEADER_BYTES, proto_get_u32(p + 1) - 4);
        client_said(c, p[0], body);
        p = body.p + body.n;
    }
}

enum sql_tx_op client_word_ends(const struct sql_facts *facts)
{
    const struct sql_stmt *st = facts->stmts;

    if (facts->status != SQL_OK || facts->nstmts != 1 || (st->flags & SQL_F_CHAIN) != 0)
        return SQL_TX_NONE;
    if (st->kind == SQL_COMMIT && st->tx.op == SQL_TX_COMMIT)
        return SQL_TX_COMMIT;
    return st->kind == SQL_ROLLBACK && st->tx.op == SQL_TX_ROLLBACK ? SQL_TX_ROLLBACK : SQL_TX_NONE;
}
