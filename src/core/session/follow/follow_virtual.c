/* SPDX-License-Identifier: PostgreSQL
 * follow_virtual.c: the beginning and the end of a transaction of which no server knows: answered
 * here (virtual_begin), in both protocols. Runs in: workers. What is between them: plan_away.c. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "config/conf.h"
#include "wire/batch.h"
#include "wire/writer.h"

#include "client/client_lost_int.h"
#include "sstate_int.h"

/* In place of a tag: an error, for the client does not know yet that its transaction was lost. */
static const char tag_lost[] = "";

WARM static void begin(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    struct sstate *s = c->sstate;

    buf_put(&s->errand->begin, sql.p, sql.n);
    s->tx = SSTATE_TX_VIRTUAL;
    follow_note(c, sql, facts);
    s->exchange.words = EXCHANGE_NO_WORDS; /* no link was asked to do anything */
}

/* A plain BEGIN needs no server yet. Its tag, or NULL: a server is to answer. */
WARM static const char *virtual_begin(
    struct client *c, struct slice sql, const struct sql_facts *facts)
{
    struct sstate *s = c->sstate;
    const struct sql_stmt *st = &facts->stmts[0];

    if (!c->ss->conf->virtual_begin || s->mode == CONF_POOL_STATEMENT ||
        s->tx == SSTATE_TX_VIRTUAL || sstate_tx_is_lost(s) || st->tx.op != SQL_TX_BEGIN ||
        st->tx.isolation == SQL_ISO_SERIALIZABLE)
        return NULL;
    client_stats_on_query(c);
    begin(c, sql, facts);
    return strncasecmp(sql.p + st->offset, "START", 5) == 0 ? "START TRANSACTION" : "BEGIN";
}

void follow_virtual_begin_again(struct client *c, struct slice sql)
{
    begin(c, sql, plan_facts(c->ss, sql));
}

/* The end of a transaction of which no server knows (any more). */
static void forget_transaction(struct client *c)
{
    struct sstate *s = c->sstate;

    s->tx = SSTATE_TX_OF_LINK;
    buf_empty(&s->errand->begin);
    follow_end_lost(s);
    stats_on_virtual_end(&c->stats, loop_now_us(c->ss->loop));
    c->kind->routed(c, ROUTED_VIRTUAL_END);
}

/* COMMIT or ROLLBACK when that is all the text says: the transaction, whatever has become of it, is
 * over then, and no other one begins. */
static enum sql_tx_op ends_all(const struct sql_facts *facts)
{
    const struct sql_stmt *st = facts->stmts;

    if ((st->flags & SQL_F_CHAIN) != 0)
        return SQL_TX_NONE;
    if (st->kind == SQL_COMMIT && st->tx.op == SQL_TX_COMMIT)
        return SQL_TX_COMMIT;
    return st->kind == SQL_ROLLBACK && st->tx.op == SQL_TX_ROLLBACK ? SQL_TX_ROLLBACK : SQL_TX_NONE;
}

/* The end of a transaction in which nothing was done on the primary, or that died with its link. */
static const char *virtual_end(struct client *c, const struct sql_facts *facts)
{
    struct sstate *s = c->sstate;
    enum sql_tx_op end = ends_all(facts);
    bool was_virtual = s->tx == SSTATE_TX_VIRTUAL;
    bool was_untold = s->tx == SSTATE_TX_UNTOLD;

    if ((s->tx != SSTATE_TX_VIRTUAL && !sstate_tx_is_lost(s)) || end == SQL_TX_NONE)
        return NULL;
    forget_transaction(c);
    if (end == SQL_TX_ROLLBACK)
        return "ROLLBACK";
    return was_untold ? tag_lost : was_virtual ? "COMMIT" : "ROLLBACK";
}

WARM static const char *answer(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    const char *tag;

    if (facts->status != SQL_OK || facts->nstmts != 1)
        return NULL;
    tag = virtual_begin(c, sql, facts);
    return tag != NULL ? tag : virtual_end(c, facts);
}

static void put_answer(const struct client *c, struct buf *out, const char *tag)
{
    if (tag == tag_lost)
        client_lost_put(c->sstate->errand->lost_words, out);
    else
        wire_put_command_complete(out, tag);
}

static void say_lost(struct client *c)
{
    struct buf out = {0};

    client_lost_put(c->sstate->errand->lost_words, &out);
    wire_put_ready(&out, sstate_tx_status(c));
    client_send(c, &out);
}

/* The longest tag of ours, with its NUL. */
#define TAG_BYTES sizeof "START TRANSACTION"

/* The answer to a simple query, in one piece. */
WARM static void say_tag(struct client *c, const char *tag)
{
    char msg[PROTO_HEADER_BYTES + TAG_BYTES + PROTO_HEADER_BYTES + 1] = {BE_COMMAND_COMPLETE};
    const char ready[] = {BE_READY, 0, 0, 0, 5, sstate_tx_status(c)};
    size_t n = strnlen(tag, TAG_BYTES - 1) + 1;

    msg[PROTO_HEADER_BYTES - 1] = (char)(4 + n);
    memcpy(msg + PROTO_HEADER_BYTES, tag, n);
    memcpy(msg + PROTO_HEADER_BYTES + n, ready, sizeof ready);
    (void)stream_send_later(&c->stream, msg, PROTO_HEADER_BYTES + n + sizeof ready);
}

WARM bool follow_virtual_query(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    struct sstate *s = c->sstate;
    const char *tag;

    if (s->phase != PHASE_DETACHED)
        return false;
    tag = answer(c, sql, facts);
    if (tag == NULL)
        return false;
    if (client_log_statements(c))
        client_log_statement(c, "", sql);
    prep_unref(&s->names.unnamed); /* as any simple query does */
    s->errand->way.unnamed_epoch = 0;
    if (tag == tag_lost)
        say_lost(c);
    else
        say_tag(c, tag);
    client_note_idle(c);
    return true;
}

/* First letters of BEGIN, START, COMMIT, END, ROLLBACK and ABORT, or of what may stand before. */
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

/* The text of a statement that was parsed before; p == NULL: there is none of that name. */
static struct slice known_text(const struct client *c, struct slice name)
{
    const struct names *names = &c->sstate->names;
    const struct names_entry *n = name.n == 0 ? NULL : names_find(names, name);
    struct prep *prep = name.n == 0 ? names->unnamed : n == NULL ? NULL : n->prep;

    return prep == NULL ? slice_of(NULL, 0) : prep_sql(prep);
}

/* A statement can be given this name. */
static bool is_free(const struct client *c, const struct batch_lone *sent)
{
    const struct names *names = &c->sstate->names;

    return sent->name.n == 0 ||
           (sent->name.n <= 1024 && names_find(names, sent->name) == NULL &&
               names_have_room(names, c->ss->conf->client_prepared_memory_bytes, sent->sql.n));
}

/* What may be a word of a transaction, said by the extended protocol. */
static bool read_word(
    const struct client *c, const char *p, const char *end, struct batch_lone *sent)
{
    if (!batch_lone_read(sent, p, end) || !batch_lone_is_bare(sent))
        return false;
    if (sent->parse.p == NULL)
        sent->sql = known_text(c, sent->name);
    return is_likely(sent->sql) && (sent->parse.p == NULL || is_free(c, sent));
}

/* What is due in front of its tag, or of an error. Its statement is known from now on. */
static void put_head(struct client *c, const struct batch_lone *sent, struct buf *out)
{
    if (sent->parse.p != NULL) {
        follow_names_learn(c, sent->name, batch_lone_statement(sent));
        wire_put_empty(out, BE_PARSE_COMPLETE);
    }
    wire_put_empty(out, BE_BIND_COMPLETE);
    if (sent->describes)
        wire_put_empty(out, BE_NO_DATA);
}

bool follow_virtual_word(struct client *c, const char *p, const char *end)
{
    struct sstate *s = c->sstate;
    struct buf out = {0};
    struct batch_lone w;
    struct message m;
    const char *tag;

    if ((!c->ss->conf->virtual_begin && s->tx != SSTATE_TX_VIRTUAL && !sstate_tx_is_lost(s)) ||
        s->phase != PHASE_DETACHED || c->server_batch || c->local_part != LOCAL_PART_NONE ||
        !read_word(c, p, end, &w))
        return false;
    tag = answer(c, w.sql, plan_facts(c->ss, w.sql));
    if (tag == NULL)
        return false;
    while (client_log_statements(c) && message_next(&p, w.end, &m))
        client_said(c, m.type, m.body);
    put_head(c, &w, &out);
    put_answer(c, &out, tag);
    if (w.syncs)
        wire_put_ready(&out, sstate_tx_status(c));
    else if (tag == tag_lost)
        c->local_part = LOCAL_PART_FAILED;
    client_send(c, &out);
    client_note_idle(c);
    s->errand->nskip = c->local_part == LOCAL_PART_FAILED
                           ? 0
                           : (uint16_t)(1 + (w.parse.p != NULL) + w.describes + w.syncs);
    return true;
}

WARM void follow_virtual_put(struct client *c, struct feed_run *run)
{
    struct errand *t = c->sstate->errand;

    if (client_log_statements(c))
        client_log_on_node(c, "", buf_slice(&t->begin));
    if (t->leave.snapshot == PLAN_SNAPSHOT_DUE)
        buf_printf(&t->begin, "%s", "\n;SELECT");
    t->leave.snapshot = PLAN_SNAPSHOT_NONE;
    lent_put_own_query(c, run, buf_slice(&t->begin));
}
