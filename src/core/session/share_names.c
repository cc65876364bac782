/* SPDX-License-Identifier: PostgreSQL
 * share_names.c: the prepared statements of a client that shares links. Runs in: workers. The
 * client's names are its own; on links statements are named by content. What the server would
 * answer without doing anything (ParseComplete of a text that the link knows, CloseComplete) is
 * answered here, in its place among the replies. What became of each is learned from the queue of
 * owed replies: an error skips the rest of its sequence. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "config/conf.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "share_int.h"

static int name_eq(const struct hash_node *node, const void *key)
{
    const struct share_name *n = (const struct share_name *)node;

    return slice_eq(slice_of(n->name, n->len), *(const struct slice *)key);
}

static uint64_t name_hash(struct slice name)
{
    return hash_bytes(name.p, name.n, 23);
}

struct share_name *share_name_find(const struct share *s, struct slice name)
{
    if (s->names == NULL)
        return NULL;
    return (struct share_name *)hash_table_find(s->names, name_hash(name), name_eq, &name);
}

static void name_free(struct share *s, struct share_name *n)
{
    unsigned i;

    for (i = 0; i < s->npending; i++)
        if (s->pending[i].name == n)
            s->pending[i].name = NULL;
    if (s->last_bound == n)
        s->last_bound = NULL;
    prep_unref(&n->prep);
    mem_free(n->sql);
    mem_free(n);
}

static void names_put(struct share *s, struct share_name *n)
{
    if (s->names == NULL) {
        s->names = mem_alloc_zero(sizeof *s->names);
        hash_table_init(s->names);
    }
    hash_table_add(s->names, &n->node, name_hash(slice_of(n->name, n->len)));
    s->nsql_names += n->prep == NULL ? 1 : 0;
}

static void names_take(struct share *s, struct share_name *n)
{
    hash_table_del(s->names, &n->node);
    s->nsql_names -= n->prep == NULL ? 1 : 0;
}

static struct share_name *name_new(struct slice name)
{
    struct share_name *n = mem_alloc_zero(sizeof *n + name.n + 1);

    n->len = (uint32_t)name.n;
    memcpy(n->name, name.p, name.n);
    return n;
}

/* Calls `fn` for every name; `fn` may take it out. */
static void names_each(struct client *c, struct feed_run *run,
    void (*fn)(struct client *c, struct feed_run *run, struct share_name *n))
{
    struct hash_table *t = c->share->names;
    struct hash_node *node;
    struct hash_node *next;
    uint32_t i;

    for (i = 0; t != NULL && t->bucket != NULL && i <= t->mask; i++)
        for (node = t->bucket[i]; node != NULL; node = next) {
            next = node->next;
            fn(c, run, (struct share_name *)node);
        }
}

static void count_sql_name(struct client *c, struct feed_run *run, struct share_name *n)
{
    (void)run;
    c->share->nsql_names += n->prep == NULL ? 1 : 0;
}

static void drop_one(struct client *c, struct feed_run *run, struct share_name *n)
{
    (void)run;
    names_take(c->share, n);
    name_free(c->share, n);
}

static void names_clear(struct client *c)
{
    struct share *s = c->share;

    names_each(c, NULL, drop_one);
    if (s->names != NULL)
        hash_table_fini(s->names);
    mem_free(s->names);
    s->names = NULL;
    prep_unref(&s->unnamed);
}

/* The link may know the statement or not: nothing else can rely on it before that is settled. */
static bool is_uncertain(const struct share_pending *p)
{
    return p->sent && p->kind != PENDING_UNNAMED;
}

static void pending_push(struct client *c, enum share_pending_kind kind, struct prep *prep,
    struct share_name *name, bool sent)
{
    struct share *s = c->share;
    struct share_pending **spare = &c->ss->spare_pending;
    struct share_pending *p;

    if (s->pending == NULL) {
        s->pending = *spare;
        *spare = NULL;
    }
    if (s->pending == NULL)
        s->pending = mem_alloc((SHARE_MAX_PENDING + 8) * sizeof *s->pending);
    p = &s->pending[s->npending++];
    p->kind = (uint8_t)kind;
    p->prep = prep == NULL ? NULL : prep_ref(prep);
    p->name = name;
    p->sent = sent;
    s->nuncertain += is_uncertain(p) ? 1 : 0;
}

static void put_close(struct client *c, struct feed_run *run, struct slice name)
{
    struct buf out = {0};

    wire_put_close(&out, 'S', name);
    link_expect(c->link, OP_CLOSE | OP_SWALLOW);
    feed_put(run, out.data, out.len);
    buf_free(&out);
}

static void put_sync(struct client *c, struct feed_run *run)
{
    struct buf out = {0};

    wire_put_empty(&out, FE_SYNC);
    link_expect(c->link, OP_SYNC | OP_SWALLOW);
    feed_put(run, out.data, out.len);
    buf_free(&out);
}

/* The link's statements stay within max_prepared_statements. */
static void evict(struct client *c, struct feed_run *run)
{
    int limit = c->ss->conf->max_prepared_statements;
    char name[PREP_NAME_BYTES + 1];

    while (prepset_evict(&c->link->preps, (uint32_t)(limit < 8 ? 8 : limit), name))
        put_close(c, run, slice_of_str(name));
}

static void put_parse(
    struct client *c, struct feed_run *run, struct prep *p, struct slice name, unsigned op)
{
    struct buf out = {0};

    prep_put_parse(&out, p, name);
    link_expect(c->link, op);
    feed_put(run, out.data, out.len);
    buf_free(&out);
}

/* The link knows the statement after this. */
static void load(struct client *c, struct feed_run *run, struct prep *p)
{
    prep_need_name(p);
    if (prepset_touch(&c->link->preps, p->id))
        return;
    put_parse(c, run, p, prep_name(p), OP_PARSE | OP_QUIET | OP_NOTE);
    pending_push(c, PENDING_PARSE, p, NULL, true);
    prepset_add(&c->link->preps, p->id);
    evict(c, run);
}

static bool is_our_name(struct slice name)
{
    return name.n == PREP_NAME_BYTES && memcmp(name.p, "pgp_", 4) == 0;
}

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* The client has no statement of this name: the link must not have one either, whoever left it
 * there. */
static void forget_foreign(struct client *c, struct feed_run *run, struct slice name)
{
    uint8_t id[PREP_ID_BYTES] = {0};
    int i;

    if (prepset_named(&c->link->preps, name) != 0) {
        put_close(c, run, name);
        prepset_drop_named(&c->link->preps, name);
    }
    if (!is_our_name(name))
        return;
    for (i = 0; i < PREP_ID_BYTES; i++)
        id[i] = (uint8_t)(hex_digit(name.p[4 + 2 * i]) << 4 | hex_digit(name.p[5 + 2 * i]));
    put_close(c, run, name);
    prepset_remove(&c->link->preps, id);
}

static bool names_a_statement(const struct sql_stmt *st)
{
    return st->kind == SQL_PREPARE || st->kind == SQL_EXECUTE || st->inner == SQL_EXECUTE ||
           (st->kind == SQL_DEALLOCATE && (st->flags & SQL_F_ALL) == 0);
}

/* New to this worker: what does executing it do? */
static void judge_new(struct client *c, struct prep *p)
{
    const struct sql_facts *facts = balance_facts(c->ss, prep_sql(p));
    struct share_effects e;
    uint32_t i;

    p->count = (uint8_t)count_kind_of(prep_sql(p));
    share_effects_of(facts, prep_sql(p), &e);
    p->has_effects = e.any || e.pins != 0;
    for (i = 0; i < facts->nstmts; i++)
        p->has_effects = p->has_effects || names_a_statement(&facts->stmts[i]) ||
                         facts->stmts[i].tx.op != SQL_TX_NONE || facts->stmts[i].kind == SQL_DDL ||
                         facts->stmts[i].kind == SQL_CLOSE;
}

/* A name that is taken: the server says so itself, once it has one of that name. */
static enum feed_step parse_duplicate(struct client *c, struct feed_run *run, struct share_name *n)
{
    struct slice name = slice_of(n->name, n->len);

    if (n->prep != NULL && prepset_named(&c->link->preps, name) != n->content) {
        if (prepset_named(&c->link->preps, name) != 0)
            put_close(c, run, name);
        put_parse(c, run, n->prep, name, OP_PARSE | OP_QUIET);
        prepset_set_named(&c->link->preps, name, n->content);
    }
    link_expect(c->link, OP_PARSE);
    return FEED_PASS;
}

static enum feed_step parse_named(
    struct client *c, struct feed_run *run, struct slice name, struct prep *p)
{
    struct share *s = c->share;
    struct share_name *n = name_new(name);

    prep_need_name(p);
    n->prep = prep_ref(p);
    n->content = hash_bytes(p->id, sizeof p->id, 3) | 1;
    names_put(s, n);
    if (prepset_touch(&c->link->preps, p->id)) {
        pending_push(c, PENDING_NAME, p, n, false);
        link_reply_made(c->link, OP_MADE_PARSED | OP_NOTE);
        return FEED_PUT;
    }
    put_parse(c, run, p, prep_name(p), OP_PARSE | OP_NOTE);
    pending_push(c, PENDING_NAME, p, n, true);
    prepset_add(&c->link->preps, p->id);
    evict(c, run);
    return FEED_PUT;
}

static enum feed_step parse_unnamed(struct client *c, struct prep *p)
{
    struct share *s = c->share;

    prep_unref(&s->unnamed);
    s->unnamed = prep_ref(p);
    s->unnamed_epoch = c->link->epoch;
    pending_push(c, PENDING_UNNAMED, p, NULL, true);
    link_expect(c->link, OP_PARSE | OP_NOTE);
    return FEED_PASS;
}

enum feed_step share_parse(struct client *c, struct feed_run *run, struct slice msg)
{
    struct share *s = c->share;
    struct wire_reader r;
    struct slice name;
    struct slice body;
    struct share_name *n;
    struct prep *p;
    enum feed_step step;
    bool is_new;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    name = wire_get_cstr(&r);
    body = slice_of(r.p, (size_t)(r.end - r.p));
    (void)wire_get_cstr(&r);
    if (r.bad || name.n > 1024) {
        link_expect(c->link, OP_PARSE);
        return FEED_PASS; /* the server says what is wrong with it */
    }
    n = name.n == 0 ? NULL : share_name_find(s, name);
    if (n != NULL)
        return parse_duplicate(c, run, n);
    p = prep_get(&c->ss->preps, body, s->vars.client->path_hash, &is_new);
    if (is_new)
        judge_new(c, p);
    step = name.n == 0 ? parse_unnamed(c, p) : parse_named(c, run, name, p);
    prep_unref(&p);
    return step;
}

/* The unnamed statement is on the link after this; or none, when the client has none. */
static void load_unnamed(struct client *c, struct feed_run *run)
{
    struct share *s = c->share;

    if (s->unnamed_epoch == c->link->epoch)
        return;
    if (s->unnamed == NULL) {
        put_close(c, run, slice_of("", 0)); /* that of another client may be there */
    } else {
        put_parse(c, run, s->unnamed, slice_of("", 0), OP_PARSE | OP_QUIET | OP_NOTE);
        pending_push(c, PENDING_UNNAMED, s->unnamed, NULL, true);
    }
    s->unnamed_epoch = c->link->epoch;
}

/* The statement that `name` means, loaded; NULL: the message goes as it is. */
static struct prep *resolve(struct client *c, struct feed_run *run, struct slice name)
{
    struct share_name *n;

    if (name.n == 0) {
        load_unnamed(c, run);
        return NULL;
    }
    n = share_name_find(c->share, name);
    if (n == NULL) {
        forget_foreign(c, run, name);
        return NULL;
    }
    if (n->prep == NULL)
        return NULL; /* made by PREPARE: on the link since the sequence began */
    load(c, run, n->prep);
    c->share->last_bound = n;
    return n->prep;
}

static void portal_drop(struct share *s, struct slice name)
{
    struct share_portal **pp = &s->portals;
    struct share_portal *p;

    for (; (p = *pp) != NULL; pp = &p->next)
        if (slice_eq(slice_of(p->name, p->len), name)) {
            *pp = p->next;
            prep_unref(&p->prep);
            mem_free(p);
            return;
        }
}

void share_portals_free(struct share *s)
{
    while (s->portals != NULL)
        portal_drop(s, slice_of(s->portals->name, s->portals->len));
}

/* Code runs that may prepare statements under any name: none that others left may be there. */
static void forget_all_named(struct client *c, struct feed_run *run)
{
    struct slice name;

    while ((name = prepset_any_named(&c->link->preps)).p != NULL) {
        put_close(c, run, name);
        prepset_drop_named(&c->link->preps, name);
    }
}

/* The names in PREPARE, EXECUTE and DEALLOCATE are the client's: its statements must be there under
 * them, and nobody else's. */
static void load_names_in(struct client *c, struct feed_run *run, struct slice sql)
{
    const struct sql_facts *facts = balance_facts(c->ss, sql);
    const struct sql_stmt *st = facts->nstmts == 1 ? &facts->stmts[0] : NULL;
    struct share_name *n;
    struct slice name;

    if (st != NULL && st->kind == SQL_DO && c->share->nsql_names == 0)
        forget_all_named(c, run);
    if (st == NULL || !names_a_statement(st) || st->name.n == 0)
        return;
    n = share_name_find(c->share, st->name);
    if (n == NULL)
        forget_foreign(c, run, st->name);
    if (n == NULL || n->prep == NULL)
        return;
    name = slice_of(n->name, n->len);
    if (prepset_named(&c->link->preps, name) == n->content)
        return;
    put_close(c, run, name);
    put_parse(c, run, n->prep, name, OP_PARSE | OP_QUIET);
    prepset_set_named(&c->link->preps, name, n->content);
}

/* What executing the statement will do to the session. */
static void note_bound(struct client *c, struct feed_run *run, struct slice portal, struct prep *p)
{
    struct share *s = c->share;
    struct share_portal *known;

    if (s->portals != NULL)
        portal_drop(s, portal);
    if (p == NULL)
        return;
    c->bound_count = p->count;
    share_route_note(c, prep_sql(p));
    if (!p->has_effects)
        return;
    load_names_in(c, run, prep_sql(p));
    known = mem_alloc_zero(sizeof *known + portal.n + 1);
    known->prep = prep_ref(p);
    known->len = (uint32_t)portal.n;
    memcpy(known->name, portal.p, portal.n);
    known->next = s->portals;
    s->portals = known;
}

/* PREPARE is sent: from here on there is a statement of that name, unless it fails. */
void share_names_note_prepare(struct client *c, const struct sql_stmt *st, struct slice sql)
{
    struct share *s = c->share;
    struct share_name *n;

    if ((size_t)st->offset + st->len > sql.n || st->name.n == 0 ||
        share_name_find(s, st->name) != NULL)
        return;
    n = name_new(st->name);
    n->sql = mem_strndup(sql.p + st->offset, st->len);
    n->content = hash_bytes(n->sql, st->len, 5) | 1;
    n->is_new = true;
    n->at = s->at;
    s->has_new_names = true;
    names_put(s, n);
    prepset_set_named(&c->link->preps, st->name, n->content);
    if (s->nsql_names > SHARE_MAX_SQL_NAMES)
        s->pins |= 1U << PIN_REASON_PREPARED;
}

void share_execute(struct client *c, struct slice msg)
{
    struct share *s = c->share;
    const struct sql_facts *facts;
    struct share_portal *p;
    struct wire_reader r;
    struct slice name;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    name = wire_get_cstr(&r);
    for (p = s->portals; p != NULL; p = p->next)
        if (slice_eq(slice_of(p->name, p->len), name))
            break;
    if (p == NULL || r.bad)
        return;
    facts = balance_facts(c->ss, prep_sql(p->prep));
    if (facts->nstmts != 1)
        return; /* the server did not take it either */

    share_note(c, prep_sql(p->prep), facts);
    portal_drop(s, name);
}

/* A message with the client's name of a statement in it, sent with ours. `at` is where the name
 * begins in the body. */
static void put_renamed(
    struct feed_run *run, struct slice msg, size_t at, size_t name_len, const struct prep *p)
{
    uint32_t len = proto_get_u32(msg.p + 1) + PREP_NAME_BYTES - (uint32_t)name_len;
    size_t rest = PROTO_HEADER_BYTES + at + name_len;
    struct buf head = {0};

    buf_put_byte(&head, msg.p[0]);
    buf_put_u32(&head, len);
    buf_put(&head, msg.p + PROTO_HEADER_BYTES, at);
    buf_put(&head, p->name, PREP_NAME_BYTES);
    buf_put(&head, msg.p + rest, msg.n - rest);
    feed_put(run, head.data, head.len);
    buf_free(&head);
}

enum feed_step share_bind(struct client *c, struct feed_run *run, struct slice msg, bool is_whole)
{
    struct wire_reader r;
    struct slice portal;
    struct slice name;
    struct prep *p;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    portal = wire_get_cstr(&r);
    name = wire_get_cstr(&r);
    if (r.bad && !is_whole)
        return FEED_CARRY;
    if (r.bad) {
        link_expect(c->link, OP_BIND);
        return FEED_PASS;
    }
    c->share->last_bound = NULL;
    p = resolve(c, run, name);
    note_bound(c, run, portal, name.n == 0 ? c->share->unnamed : p);
    link_expect(c->link, OP_BIND);
    if (p == NULL)
        return FEED_PASS;
    put_renamed(run, msg, portal.n + 1, name.n, p);
    return FEED_PUT;
}

enum feed_step share_describe(struct client *c, struct feed_run *run, struct slice msg)
{
    struct wire_reader r;
    struct slice name;
    struct prep *p = NULL;
    char what;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    what = (char)wire_get_u8(&r);
    name = wire_get_cstr(&r);
    if (!r.bad && what == 'S')
        p = resolve(c, run, name);
    if (c->share->last_bound != NULL)
        c->share->last_bound->is_described = true;
    link_expect(c->link, OP_DESCRIBE);
    if (p == NULL)
        return FEED_PASS;
    put_renamed(run, msg, 1, name.n, p);
    return FEED_PUT;
}

enum feed_step share_close(struct client *c, struct feed_run *run, struct slice msg)
{
    struct share *s = c->share;
    struct wire_reader r;
    struct slice name;
    struct share_name *n;
    char what;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    what = (char)wire_get_u8(&r);
    name = wire_get_cstr(&r);
    if (r.bad || what != 'S' || name.n == 0) {
        if (what == 'S' && !r.bad) {
            prep_unref(&s->unnamed);
            s->unnamed_epoch = c->link->epoch;
        }
        link_expect(c->link, OP_CLOSE);
        return FEED_PASS;
    }
    n = share_name_find(s, name);
    if (n == NULL && is_our_name(name))
        forget_foreign(c, run, name);
    if (n == NULL || n->prep == NULL) {
        /* Whatever the link has under this name goes. */
        if (n != NULL) {
            names_take(s, n);
            name_free(s, n);
        }
        prepset_drop_named(&c->link->preps, name);
        link_expect(c->link, OP_CLOSE);
        return FEED_PASS;
    }
    names_take(s, n);
    pending_push(c, PENDING_CLOSED, NULL, n, false);
    link_reply_made(c->link, OP_MADE_CLOSED | OP_NOTE);
    return FEED_PUT;
}

/* Brings a statement of the client to the link under the client's own name: for SQL that names it.
 */
static void load_named(struct client *c, struct feed_run *run, struct share_name *n)
{
    struct slice name = slice_of(n->name, n->len);
    uint64_t has = prepset_named(&c->link->preps, name);
    struct buf out = {0};

    if (has == n->content)
        return;
    if (has != 0 || n->prep != NULL) {
        if (has != 0)
            put_close(c, run, name);
        if (n->prep != NULL)
            put_parse(c, run, n->prep, name, OP_PARSE | OP_SWALLOW);
        wire_put_empty(&out, FE_SYNC);
        link_expect(c->link, OP_SYNC | OP_SWALLOW);
    }
    if (n->prep == NULL) {
        wire_put_query(&out, slice_of_str(n->sql));
        link_expect(c->link, OP_QUERY | OP_SWALLOW);
    }
    feed_put(run, out.data, out.len);
    buf_free(&out);
    prepset_set_named(&c->link->preps, name, n->content);
}

static void load_sql_one(struct client *c, struct feed_run *run, struct share_name *n)
{
    if (n->prep == NULL)
        load_named(c, run, n);
}

void share_names_load_sql(struct client *c, struct feed_run *run)
{
    if (c->share->nsql_names > 0)
        names_each(c, run, load_sql_one);
}

/* PREPARE: the server says itself when the name is taken. */
static void before_prepare(struct client *c, struct feed_run *run, const struct sql_stmt *st)
{
    struct share_name *n = share_name_find(c->share, st->name);

    if (n != NULL) {
        load_named(c, run, n);
        return;
    }
    forget_foreign(c, run, st->name);
}

void share_names_before_sql(struct client *c, struct feed_run *run, const struct sql_facts *facts)
{
    struct share_name *n;
    uint32_t i;

    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *st = &facts->stmts[i];

        if (st->kind == SQL_DO && c->share->nsql_names == 0 &&
            prepset_any_named(&c->link->preps).p != NULL) {
            forget_all_named(c, run);
            put_sync(c, run);
        } else if (st->kind == SQL_PREPARE) {
            before_prepare(c, run, st);
        } else if (names_a_statement(st)) {
            n = share_name_find(c->share, st->name);
            if (n != NULL)
                load_named(c, run, n);
            else if (st->name.n > 0)
                forget_foreign(c, run, st->name);
        }
    }
}

void share_names_drop_all(struct client *c)
{
    struct share *s = c->share;

    if (s->old_names == NULL && s->old_unnamed == NULL) {
        s->old_names = s->names;
        s->old_unnamed = s->unnamed;
        s->names = NULL;
        s->unnamed = NULL;
        s->nsql_names = 0;
    } else {
        names_clear(c);
    }
    prepset_clear(&c->link->preps);
    s->dropped_all = true;
}

/* DISCARD ALL or DEALLOCATE ALL is over: what was is forgotten, or, when it failed, is there again
 * in place of what came since. */
static void settle_drop_all(struct client *c)
{
    struct share *s = c->share;
    bool failed = s->saw_error && !s->in_string;
    struct hash_table *names = failed ? s->old_names : s->names;
    struct prep *unnamed = failed ? s->old_unnamed : s->unnamed;

    if (!failed) {
        s->names = s->old_names;
        s->unnamed = s->old_unnamed;
    } else if (c->link != NULL) {
        c->link->must_clean = true; /* it knows more than is thought */
    }
    names_clear(c);
    s->old_names = NULL;
    s->old_unnamed = NULL;
    s->names = names;
    s->unnamed = unnamed;
    s->nsql_names = 0;
    names_each(c, NULL, count_sql_name);
}

void share_names_note_deallocate(struct client *c, const struct sql_stmt *st)
{
    struct share_name *n;

    if ((st->flags & SQL_F_ALL) != 0) {
        share_names_drop_all(c);
        if (c->share->old_unnamed != NULL && c->share->unnamed == NULL)
            c->share->unnamed = prep_ref(c->share->old_unnamed); /* has no name to lose */
        return;
    }
    n = share_name_find(c->share, st->name);
    if (n == NULL)
        return;
    prepset_drop_named(&c->link->preps, st->name);
    names_take(c->share, n);
    n->at = c->share->at;
    n->next_dropped = c->share->dropped;
    c->share->dropped = n;
}

/* PREPARE or DEALLOCATE in the exchange that is over: did it work? */
static bool has_worked(const struct share *s, const struct share_name *n)
{
    return !s->saw_error || (s->in_string && n->at < s->ntags);
}

static void settle_dropped(struct client *c)
{
    struct share *s = c->share;
    struct share_name *n;

    while ((n = s->dropped) != NULL) {
        s->dropped = n->next_dropped;
        if (!has_worked(s, n) && share_name_find(s, slice_of(n->name, n->len)) == NULL)
            names_put(s, n);
        else
            name_free(s, n);
    }
}

static void settle_one(struct client *c, struct share_pending *p, bool ok)
{
    struct share *s = c->share;

    s->nuncertain -= is_uncertain(p) ? 1 : 0;
    if (!ok && p->sent && p->kind != PENDING_UNNAMED && c->link != NULL)
        prepset_remove(&c->link->preps, p->prep->id);
    if (!ok && p->kind == PENDING_UNNAMED && s->unnamed == p->prep)
        prep_unref(&s->unnamed);
    if (!ok && p->kind == PENDING_NAME && p->name != NULL &&
        share_name_find(s, slice_of(p->name->name, p->name->len)) == p->name) {
        names_take(s, p->name);
        name_free(s, p->name);
    }
    if (p->kind == PENDING_CLOSED) {
        if (ok || share_name_find(s, slice_of(p->name->name, p->name->len)) != NULL)
            name_free(s, p->name);
        else
            names_put(s, p->name);
    }
    prep_unref(&p->prep);
}

/* The statement that a Bind in `msg` names; NULL: none of the protocol. */
static struct share_name *bound_name(const struct client *c, struct slice msg)
{
    struct wire_reader r;
    struct slice name;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    (void)wire_get_cstr(&r);
    name = wire_get_cstr(&r);
    return r.bad || name.n == 0 ? NULL : share_name_find(c->share, name);
}

void share_names_replan(struct client *c, struct feed_run *run, struct slice batch)
{
    const char *p = batch.p;
    const char *end = p + batch.n;
    struct share_name *n;
    struct buf sync = {0};
    uint32_t len;

    for (; end - p >= PROTO_HEADER_BYTES; p += len) {
        len = proto_get_u32(p + 1) + 1;
        if ((size_t)(end - p) < len)
            break;
        n = p[0] == FE_BIND ? bound_name(c, slice_of(p, len)) : NULL;
        if (n == NULL || n->prep == NULL)
            continue;
        put_close(c, run, prep_name(n->prep));
        prepset_remove(&c->link->preps, n->prep->id);
    }
    wire_put_empty(&sync, FE_SYNC);
    link_expect(c->link, OP_SYNC | OP_SWALLOW);
    feed_put(run, sync.data, sync.len);
    buf_free(&sync);
}

static void drop_if_new(struct client *c, struct feed_run *run, struct share_name *n)
{
    if (n->is_new && !has_worked(c->share, n))
        drop_one(c, run, n);
    else
        n->is_new = false;
}

void share_names_settle(struct client *c)
{
    struct share *s = c->share;
    uint64_t worked = 0;
    unsigned n = s->npending;
    unsigned i;

    if (c->link != NULL)
        n = expect_take_notes(&c->link->expect, &worked);
    for (i = 0; i < n && i < s->npending; i++)
        settle_one(c, &s->pending[i], (worked >> i & 1) != 0);
    s->npending = (uint16_t)(s->npending - i);
    if (s->npending > 0)
        memmove(s->pending, s->pending + i, s->npending * sizeof s->pending[0]);
    if (s->npending == 0 && s->pending != NULL) {
        mem_free(c->ss->spare_pending); /* NULL mostly: one is kept for whoever comes next */
        c->ss->spare_pending = s->pending;
        s->pending = NULL;
    }
    if (s->has_new_names && (c->link == NULL || expect_is_quiet(&c->link->expect))) {
        names_each(c, NULL, drop_if_new);
        s->has_new_names = false;
    }
    if (c->link != NULL && !expect_is_quiet(&c->link->expect))
        return;
    if (s->dropped != NULL)
        settle_dropped(c);
    if (s->dropped_all)
        settle_drop_all(c);
    s->dropped_all = false;
}

struct slice share_name_of(const struct client *c, const char *content_name)
{
    const struct hash_table *t = c->share->names;
    const struct hash_node *node;
    uint32_t i;

    for (i = 0; t != NULL && t->bucket != NULL && i <= t->mask; i++)
        for (node = t->bucket[i]; node != NULL; node = node->next) {
            const struct share_name *n = (const struct share_name *)node;

            if (n->prep != NULL && memcmp(n->prep->name, content_name, PREP_NAME_BYTES) == 0)
                return slice_of(n->name, n->len);
        }
    return slice_of(NULL, 0);
}

void share_names_free(struct client *c)
{
    struct share *s = c->share;
    unsigned i;

    for (i = 0; i < s->npending; i++) {
        if (s->pending[i].kind == PENDING_CLOSED)
            name_free(s, s->pending[i].name);
        prep_unref(&s->pending[i].prep);
    }
    s->npending = 0;
    mem_free(s->pending);
    s->pending = NULL;
    s->saw_error = true;
    settle_dropped(c);
    settle_drop_all(c);
    names_clear(c);
}
