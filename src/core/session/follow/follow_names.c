/* SPDX-License-Identifier: PostgreSQL
 * follow_names.c: the prepared statements of a followed client. Runs in: workers. The
 * client's names are its own; on links statements are named by content. What the server would
 * answer without doing anything (ParseComplete of a text that the link knows, CloseComplete) is
 * answered here, in its place among the replies. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/mem.h"
#include "config/conf.h"
#include "wire/batch.h"

#include "client/client_watch_int.h"
#include "follow/follow_columns_int.h"
#include "sstate_int.h"
#include "sstate/sstate_vars_int.h"

/* The link may know more than is thought, since a transaction that failed and has not ended yet. */
static void close_if_unsure(struct client *c, struct feed_run *run, const struct prep *p)
{
    if (!loan_is_sure(&c->sstate->loan))
        lent_put_close(c, run, prep_name(p));
}

HOT void follow_load(struct client *c, struct feed_run *run, struct prep *p)
{
    prep_need_name(p);
    if (p->names_one)
        follow_sql_load_names(c, run, prep_sql(p));
    if (prepset_touch(&c->link->preps, p->id)) {
        if (!p->names_one)
            return;
        lent_put_close(c, run, prep_name(p));
    } else {
        close_if_unsure(c, run, p);
    }
    (void)lent_make_place(c, run);
    follow_columns_forget(c, p);
    lent_put_parse(c, run, p, prep_name(p), OP_PARSE | OP_QUIET | OP_NOTE);
    lent_names_push(c, PENDING_PARSE, p, NULL, true);
    prepset_add(&c->link->preps, p->id);
}

/* The names of a Parse that is not looked at, and of a Bind, are, unless longer than this. */
#define UNREAD_NAME_BYTES 4096

/* New to this worker: what does executing it do? */
static void judge_new(struct client *c, struct prep *p)
{
    const struct sql_facts *facts = plan_facts(c->ss, prep_sql(p));
    struct effects e;
    uint32_t i;

    p->count = (uint8_t)count_kind_of(prep_sql(p));
    effects_of(facts, prep_sql(p), &e);
    p->has_effects = facts->status != SQL_OK || e.changes == SSTATE_CHANGES_SESSION ||
                     sstate_text_is_doubtful(c, prep_sql(p));
    for (i = 0; i < facts->nstmts; i++)
        p->has_effects = p->has_effects || sstate_names_a_statement(&facts->stmts[i]) ||
                         facts->stmts[i].tx.op != SQL_TX_NONE || facts->stmts[i].kind == SQL_DDL ||
                         facts->stmts[i].kind == SQL_CLOSE ||
                         (facts->stmts[i].flags & SQL_F_INTO) != 0;
    for (i = 0; i < facts->nstmts; i++)
        p->may_commit =
            p->may_commit || facts->stmts[i].kind == SQL_CALL || facts->stmts[i].kind == SQL_DO;
    p->has_effects = p->has_effects || p->may_commit;
    for (i = 0; i < facts->nstmts; i++)
        p->names_one = p->names_one || facts->stmts[i].kind == SQL_EXECUTE ||
                       facts->stmts[i].inner == SQL_EXECUTE;
    p->runs_code = (effects_traits(facts, prep_sql(p)) & EFFECTS_RUNS_CODE) != 0;
    p->keeps_time = prep_keeps_time(p);
    p->is_plain = !p->has_effects && memchr(p->body, '\\', prep_sql(p).n) == NULL &&
                  (effects_traits(facts, prep_sql(p)) & EFFECTS_IS_PLAIN) != 0;
}

struct prep *follow_prep_with(struct client *c, struct slice body, uint64_t path_hash)
{
    bool is_new;
    struct prep *p = prep_get(&c->ss->preps, body, path_hash, &is_new);

    if (is_new)
        judge_new(c, p);
    return p;
}

HOT struct prep *follow_prep_of(struct client *c, struct slice body)
{
    struct sstate *s = c->sstate;
    uint64_t path_hash = follow_types_path(c, body);
    struct prep *p = s->names.unnamed;

    if (p != NULL && p->path_hash == path_hash && slice_eq(slice_of(p->body, p->body_len), body))
        return prep_ref(p); /* mostly: the same again */
    return follow_prep_with(c, body, path_hash);
}

/* A Parse gets a statement of its own, whoever has parsed the text before, when it keeps the time
 * of its Parse or names what may since be hidden by a temporary table of the session. */
static void prep_own(struct client *c, struct slice body, struct prep **p)
{
    const uint64_t parse[] = {(*p)->path_hash, (uint64_t)backend_wall_us(&c->ss->be),
        expect_next_serial(&c->link->expect)};

    prep_unref(p);
    *p = follow_prep_with(c, body, hash_bytes(parse, sizeof parse, 7));
}

/* A Parse of a name that is taken goes to the server, which refuses it when it has a statement of
 * that name. The link may lack it, unless SQL made it: its Parse may have been skipped behind an
 * error. So a ROLLBACK is parsed under the name first, which works in a failed transaction, too. */
static enum feed_step parse_duplicate(struct client *c, struct feed_run *run, struct names_entry *n)
{
    struct slice name = slice_of(n->name, n->len);
    uint64_t has = prepset_named(&c->link->preps, name);
    struct prep *word;

    if (n->prep != NULL || (c->link->tx_status == 'E' && has != n->content)) {
        if (has == 0)
            (void)lent_make_place(c, run);
        lent_put_close(c, run, name); /* behind a DEALLOCATE that failed it is there, too */
        word = follow_prep_of(c, slice_of("ROLLBACK\0\0", sizeof "ROLLBACK\0\0"));
        lent_put_parse(c, run, word, name, OP_PARSE | OP_QUIET);
        prep_unref(&word);
        prepset_set_named(&c->link->preps, name, PREPSET_DOUBTFUL);
    }
    link_expect(c->link, OP_PARSE);
    return FEED_PASS;
}

/* A failed transaction refuses a Parse. Whether this one has failed is not known before what runs
 * in front of the sequence is answered; and one that died with its link is made to fail again just
 * in front of it (put_transaction). */
static bool may_be_aborted(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return c->link->tx_status == 'E' ||
           (c->link->must_clean && expect_head_is_ours(&c->link->expect)) ||
           (s->again.is_behind && (c->link->tx_status == 'T' || s->errand->tx.client != NULL));
}

/* A plan that DDL has made stale is renewed outside of transactions, where the sequence can be sent
 * again: else who parses has to have a new one. */
static bool may_be_stale(const struct client *c)
{
    return !c->sstate->again.may_replan || c->link->tx_status == 'T' ||
           c->sstate->errand->tx.client != NULL;
}

struct names_entry *follow_names_of_prep(struct slice name, struct prep *p)
{
    struct names_entry *n = names_entry_new(name);

    prep_need_name(p);
    n->prep = prep_ref(p);
    n->content = hash_bytes(p->id, sizeof p->id, 3) | 1;
    return n;
}

static enum feed_step parse_named(
    struct client *c, struct feed_run *run, struct slice name, struct prep *p)
{
    struct sstate *s = c->sstate;
    struct names_entry *n;
    struct err err;

    if (names_are_full(&c->sstate->names, c->ss->conf->client_prepared_memory_bytes,
            p->body_len + name.n, &err))
        return follow_refuse(c, run, &err);
    n = follow_names_of_prep(name, p);
    names_put(&s->names, n);
    if (prepset_touch(&c->link->preps, p->id)) {
        if (!may_be_aborted(c) && !may_be_stale(c) && !expect_may_blur(&c->link->expect) &&
            !p->names_one) {
            lent_names_push(c, PENDING_NAME, p, n, false);
            link_reply_made(c->link, OP_MADE_PARSED | OP_NOTE);
            return FEED_PUT;
        }
        lent_put_close(c, run, prep_name(p)); /* the server is to judge */
    } else {
        close_if_unsure(c, run, p);
    }
    (void)lent_make_place(c, run);
    follow_columns_forget(c, p);
    lent_put_parse(c, run, p, prep_name(p), OP_PARSE | OP_NOTE);
    lent_names_push(c, PENDING_NAME, p, n, true);
    prepset_add(&c->link->preps, p->id);
    return FEED_PUT;
}

static enum feed_step parse_unnamed(struct client *c, struct prep *p)
{
    lent_names_unnamed(c, p);
    link_expect(c->link, OP_PARSE | OP_NOTE);
    return FEED_PASS;
}

void follow_names_learn(struct client *c, struct slice name, struct slice body)
{
    struct sstate *s = c->sstate;
    struct prep *p = follow_prep_of(c, body);

    if (name.n == 0) {
        prep_unref(&s->names.unnamed);
        s->names.unnamed = p;
        s->errand->way.unnamed_epoch = 0;
        return;
    }
    names_put(&s->names, follow_names_of_prep(name, p));
    prep_unref(&p);
}

enum feed_step follow_parse(struct client *c, struct feed_run *run, struct slice msg)
{
    struct sstate *s = c->sstate;
    struct batch_msg m;
    struct slice name;
    struct slice body;
    struct names_entry *n;
    struct prep *p;
    enum feed_step step;

    batch_read(&m, FE_PARSE, message_body(msg));
    if (m.is_bad) {
        link_expect(c->link, OP_PARSE);
        return FEED_PASS; /* the server says what is wrong with it */
    }
    name = m.name;
    body = batch_statement(&m);
    n = name.n == 0 ? NULL : names_find(&s->names, name);
    if (n != NULL)
        return parse_duplicate(c, run, n);
    p = follow_prep_of(c, body);
    if (name.n > 0 && (p->keeps_time || (s->pins & ROWS_PIN(PIN_REASON_TEMP_TABLE)) != 0))
        prep_own(c, body, &p);
    if (p->names_one)
        follow_sql_load_names(c, run, prep_sql(p));
    step = name.n == 0 ? parse_unnamed(c, p) : parse_named(c, run, name, p);
    prep_unref(&p);
    return step;
}

/* A statement whose text is not kept: the link is. */
static void put_unread(struct client *c, struct feed_run *run, struct slice name)
{
    struct names_entry *n = names_entry_new(name);

    lent_forget_foreign(c, run, name);
    (void)lent_make_place(c, run);
    n->sql = mem_strndup("", 0);
    n->content = hash_bytes(name.p, name.n, c->link->epoch) | 1;
    names_put(&c->sstate->names, n);
    lent_names_push(c, PENDING_NAME, NULL, n, false);
    prepset_set_named(&c->link->preps, name, n->content);
}

enum feed_step follow_parse_unread(struct client *c, struct feed_run *run, struct slice msg)
{
    struct names_entry *n;
    struct batch_msg m;
    bool is_noted;

    batch_read(&m, FE_PARSE, message_body(msg));
    if (m.name.p == NULL && msg.n < UNREAD_NAME_BYTES)
        return FEED_CARRY;
    follow_note_unread(c);
    n = m.name.n == 0 ? NULL : names_find(&c->sstate->names, m.name);
    if (n != NULL)
        return parse_duplicate(c, run, n);
    is_noted = m.name.p != NULL && (m.name.n == 0 || c->sstate->pins != 0);
    if (is_noted && m.name.n == 0)
        lent_names_unnamed(c, NULL);
    else if (is_noted)
        put_unread(c, run, m.name);
    link_expect(c->link, is_noted ? OP_PARSE | OP_NOTE : OP_PARSE);
    return FEED_PASS;
}

/* The unnamed statement is on the link after this; or none, when the client has none. */
static void load_unnamed(struct client *c, struct feed_run *run)
{
    struct sstate *s = c->sstate;

    if (s->errand->way.unnamed_epoch == c->link->epoch)
        return;
    if (s->names.unnamed == NULL) {
        lent_names_unnamed(c, NULL); /* it may be skipped, and another client's stay there */
        lent_put_close_as(c, run, slice_of("", 0), OP_CLOSE | OP_SWALLOW | OP_NOTE);
    } else {
        lent_names_unnamed(c, s->names.unnamed);
        lent_put_parse(c, run, s->names.unnamed, slice_of("", 0), OP_PARSE | OP_QUIET | OP_NOTE);
    }
    s->errand->way.unnamed_epoch = c->link->epoch;
}

/* The statement that `name` means, loaded; NULL: the message goes as it is. */
static struct prep *resolve(struct client *c, struct feed_run *run, struct slice name)
{
    struct names_entry *n;

    if (expect_is_copying(&c->link->expect))
        return NULL; /* refused whatever it names; one of ours would be refused in its place */
    if (name.n == 0) {
        load_unnamed(c, run);
        return NULL;
    }
    n = names_find(&c->sstate->names, name);
    if (n == NULL) {
        lent_forget_foreign(c, run, name);
        return NULL;
    }
    if (n->prep == NULL)
        return NULL; /* made by PREPARE: on the link since the sequence began */
    follow_load(c, run, n->prep);
    c->sstate->errand->way.last_bound = n;
    return n->prep;
}

HOT void follow_put_renamed(
    struct feed_run *run, struct slice msg, size_t at, size_t name_len, const struct prep *p)
{
    size_t bytes = message_bytes(msg.p) + PREP_NAME_BYTES - name_len;
    size_t rest = PROTO_HEADER_BYTES + at + name_len;
    size_t n = msg.n - name_len + PREP_NAME_BYTES; /* of the message perhaps not all is there */
    char *to;

    feed_put(run, "", 0); /* it goes behind what there is */
    to = buf_reserve(&run->out, n);
    *to = msg.p[0];
    proto_put_u32(to + 1, (uint32_t)(bytes - 1));
    to += PROTO_HEADER_BYTES;
    memcpy(to, msg.p + PROTO_HEADER_BYTES, at);
    memcpy(to + at, p->name, PREP_NAME_BYTES);
    memcpy(to + at + PREP_NAME_BYTES, msg.p + rest, msg.n - rest);
    buf_advance(&run->out, n);
}

enum feed_step follow_bind(struct client *c, struct feed_run *run, struct slice msg, bool is_whole)
{
    struct batch_msg m;
    struct prep *p;

    batch_read(&m, FE_BIND, message_body(msg));
    if (m.name.p == NULL && !is_whole && msg.n < UNREAD_NAME_BYTES)
        return FEED_CARRY;
    if (m.name.p == NULL) {
        if (!is_whole)
            follow_note_unread(c); /* what it binds is not known */
        link_expect(c->link, OP_BIND);
        return FEED_PASS;
    }
    c->sstate->errand->way.last_bound = NULL;
    c->sstate->errand->last_portal = hash_bytes(m.portal.p, m.portal.n, 0) | 1;
    p = resolve(c, run, m.name);
    follow_portal_bound(
        c, run, m.portal, m.name.n == 0 ? c->sstate->names.unnamed : p, message_body(msg));
    link_expect(c->link, OP_BIND);
    if (p == NULL)
        return FEED_PASS;
    follow_put_renamed(run, msg, m.portal.n + 1, m.name.n, p);
    return FEED_PUT;
}

enum feed_step follow_describe(struct client *c, struct feed_run *run, struct slice msg)
{
    struct names_entry *n = NULL;
    struct prep *p = NULL;
    struct batch_msg m;

    batch_read(&m, FE_DESCRIBE, message_body(msg));
    if (!m.is_bad && m.what == 'S')
        p = resolve(c, run, m.name);
    if (c->sstate->errand->way.last_bound != NULL)
        c->sstate->errand->way.last_bound->is_described = true;
    if (m.what == 'S')
        c->sstate->errand->last_portal = 0;
    if (p != NULL ||
        (m.what == 'P' && !m.is_bad &&
            (hash_bytes(m.portal.p, m.portal.n, 0) | 1) == c->sstate->errand->last_portal))
        n = c->sstate->errand->way.last_bound;
    if (m.what == 'S' && m.name.n == 0 && !m.is_bad)
        link_expect(c->link, follow_columns_watch_unnamed(c));
    else
        link_expect(c->link, follow_columns_watch(c, n));
    if (p == NULL)
        return FEED_PASS;
    follow_put_renamed(run, msg, 1, m.name.n, p);
    return FEED_PUT;
}

enum feed_step follow_close(struct client *c, struct feed_run *run, struct slice msg)
{
    struct sstate *s = c->sstate;
    struct batch_msg m;
    struct slice name;
    struct names_entry *n;
    bool is_unnamed;

    batch_read(&m, FE_CLOSE, message_body(msg));
    name = m.name;
    if (m.is_bad || m.what != 'S' || name.n == 0) {
        is_unnamed = m.what == 'S' && !m.is_bad && s->names.unnamed != NULL;
        if (is_unnamed)
            lent_names_unnamed(c, NULL);
        link_expect(c->link, is_unnamed ? OP_CLOSE | OP_NOTE : OP_CLOSE);
        return FEED_PASS;
    }
    n = names_find(&s->names, name);
    if (n == NULL && lent_is_our_name(name))
        lent_forget_foreign(c, run, name);
    if (n == NULL || n->prep == NULL) {
        /* Whatever the link has under this name goes, unless this is skipped behind an error. */
        if (n != NULL)
            n->was_loaded = prepset_named(&c->link->preps, name) == n->content;
        if (prepset_named(&c->link->preps, name) != 0)
            prepset_set_named(&c->link->preps, name, PREPSET_DOUBTFUL);
        if (n != NULL) {
            names_take(&s->names, n);
            lent_names_push(c, PENDING_CLOSED, NULL, n, false);
        }
        link_expect(c->link, n == NULL ? OP_CLOSE : OP_CLOSE | OP_NOTE);
        return FEED_PASS;
    }
    names_take(&s->names, n);
    if (!prepset_touch(&c->link->preps, n->prep->id)) {
        lent_names_push(c, PENDING_CLOSED, NULL, n, false);
        if (expect_may_blur(&c->link->expect)) { /* a made reply would have no place */
            link_expect(c->link, OP_CLOSE | OP_NOTE);
            follow_put_renamed(run, msg, 1, name.n, n->prep);
            return FEED_PUT;
        }
        link_reply_made(c->link, OP_MADE_CLOSED | OP_NOTE);
        return FEED_PUT;
    }
    /* Closed here for everybody: who parses it again wants a new plan. */
    lent_names_push(c, PENDING_CLOSED, n->prep, n, false);
    prepset_remove(&c->link->preps, n->prep->id);
    link_expect(c->link, OP_CLOSE | OP_NOTE);
    follow_put_renamed(run, msg, 1, name.n, n->prep);
    return FEED_PUT;
}

const struct prep *follow_bound_prep(const struct client *c, struct slice body)
{
    const struct names_entry *n;
    struct batch_msg m;

    batch_read(&m, FE_BIND, body);
    if (m.name.p == NULL || m.name.n == 0)
        return m.name.p == NULL ? NULL : c->sstate->names.unnamed;
    n = names_find(&c->sstate->names, m.name);
    return n == NULL ? NULL : n->prep;
}

struct slice follow_bound_values(struct slice body)
{
    struct batch_msg m;

    batch_read(&m, FE_BIND, body);
    return m.rest;
}

bool follow_bind_wants_whole(const struct client *c, struct slice msg)
{
    const struct prep *p = follow_bound_prep(c, message_body(msg));

    return p != NULL && p->has_effects && message_bytes(msg.p) <= CLIENT_COLLECT_MAX &&
           sstate_bound_may_matter(prep_sql(p));
}

/* True for a Bind or Describe of the unnamed statement. What was parsed as that in what runs may be
 * skipped there, and then the link may have another client's. */
static bool uses_unnamed(const struct batch_msg *m)
{
    return (m->type == FE_BIND || m->type == FE_DESCRIBE) && m->name.p != NULL && m->name.n == 0;
}

bool follow_names_go_last(struct client *c, const char *p, const char *end)
{
    bool is_sure = c->sstate->errand->way.npending == 0; /* what the unnamed statement is */
    struct names_entry *n;
    struct effects e;
    struct batch_msg m;

    if (expect_is_quiet(&c->link->expect))
        return false;
    while (batch_next(&p, end, &m)) {
        if (m.type == FE_SYNC)
            return false;
        if (m.is_bad || m.type == FE_QUERY || m.type == FE_FUNCTION_CALL ||
            (!is_sure && uses_unnamed(&m)))
            return true;
        is_sure = is_sure || (m.type == FE_PARSE && m.name.n == 0);
        if (m.type == FE_PARSE) {
            effects_here(c, plan_facts(c->ss, m.sql), m.sql, &e);
            if (e.changes != SSTATE_CHANGES_NOTHING)
                return true;
        } else if (m.type == FE_BIND) {
            n = names_find(&c->sstate->names, m.name);
            if ((n != NULL && (n->prep == NULL || n->prep->has_effects)) ||
                (m.name.n == 0 && c->sstate->names.unnamed != NULL &&
                    c->sstate->names.unnamed->has_effects))
                return true;
        }
    }
    return true;
}
