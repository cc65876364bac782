/* SPDX-License-Identifier: PostgreSQL
 * client_word.c: a word of a transaction, as the messages of the extended protocol say it. Runs in:
 * workers. */
#include "config.h"

#include <string.h>

#include "wire/batch.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "follow/client_word_int.h"
#include "sstate_int.h"

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

static bool find_known(const struct client *c, struct client_word *w)
{
    const struct names_entry *n;
    struct prep *prep;

    n = w->name.n == 0 ? NULL : names_find(&c->sstate->names, w->name);
    prep = w->name.n == 0 ? c->sstate->names.unnamed : n == NULL ? NULL : n->prep;
    if (prep == NULL)
        return false;
    w->sql = prep_sql(prep);
    return is_likely(w->sql);
}

/* A statement can be given this name. */
static bool is_free(const struct client *c, const struct client_word *w)
{
    if (w->name.n == 0)
        return true;
    return w->name.n <= 1024 && names_find(&c->sstate->names, w->name) == NULL &&
           names_have_room(&c->sstate->names, c->ss->conf->client_prepared_memory_bytes, w->sql.n);
}

/* Types of parameters: Bind has to give them. */
static bool has_types(struct slice statement)
{
    struct wire_reader r;

    wire_reader_init(&r, statement);
    (void)wire_get_cstr(&r);
    return wire_get_u16(&r) != 0 || r.bad;
}

static bool has_parameters(struct slice values)
{
    struct wire_reader r;
    uint16_t nformats;

    wire_reader_init(&r, values);
    for (nformats = wire_get_u16(&r); nformats > 0 && !r.bad; nformats--)
        (void)wire_get_u16(&r);
    return wire_get_u16(&r) != 0 || r.bad;
}

bool client_word_read(struct client *c, const char *p, const char *end, struct client_word *w)
{
    struct batch_lone sent;

    if (!batch_lone_read(&sent, p, end) || has_parameters(batch_lone_values(&sent)))
        return false;
    *w = (struct client_word){.name = sent.name,
        .parse = sent.parse,
        .end = sent.end,
        .describes = sent.describes,
        .syncs = sent.syncs};
    w->nmessages = (uint16_t)(2 + (sent.parse.p != NULL) + sent.describes + sent.syncs);
    if (sent.parse.p == NULL)
        return find_known(c, w);
    w->sql = sent.sql;
    return !has_types(batch_lone_statement(&sent)) && is_likely(w->sql) && is_free(c, w);
}

void client_word_begin(struct client *c, const struct client_word *w, struct buf *out)
{
    size_t head = PROTO_HEADER_BYTES + w->name.n + 1;

    if (w->parse.p != NULL) {
        follow_names_learn(c, w->name, slice_of(w->parse.p + head, w->parse.n - head));
        wire_put_empty(out, BE_PARSE_COMPLETE);
    }
    wire_put_empty(out, BE_BIND_COMPLETE);
    if (w->describes)
        wire_put_empty(out, BE_NO_DATA);
}

void client_word_log(struct client *c, const char *p, const struct client_word *w)
{
    struct message m;

    while (message_next(&p, w->end, &m))
        client_said(c, m.type, m.body);
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
