/* SPDX-License-Identifier: PostgreSQL
 * follow_columns.c: what followed clients were told of the columns of their statements.
 * Runs in: workers. A link that parses a statement anew plans it as the tables are then: who was
 * told its columns on another link, and does not ask again, would get rows of another shape, and
 * what it sends would be taken for values of other types. So the columns and parameters told are
 * kept with the client's name, as a hash, and those that it has with the link's
 * statement, which keeps them for its life. Where they differ the client is told what a server says
 * of a plan that has gone stale. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "wire/batch.h"
#include "wire/errmsg.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "follow/follow_columns_int.h"
#include "sstate_int.h"
#include "sstate/phase_int.h"

static const char stale_text[] = "cached plan must not change result type";

/* Names, types and their modifiers: what a server compares. */
static uint64_t hash_columns(const struct client *c, char type, struct slice body)
{
    struct wire_reader r;
    uint64_t hash = (uint64_t)type;
    struct slice name;
    uint32_t kind[2];
    uint16_t n;

    if (type == BE_NO_DATA)
        return hash;
    wire_reader_init(&r, body);
    for (n = wire_get_u16(&r); n > 0 && !r.bad; n--) {
        name = wire_get_cstr(&r);
        (void)wire_get_u32(&r); /* the table */
        (void)wire_get_u16(&r); /* its column */
        kind[0] = follow_types_known(c, wire_get_u32(&r));
        (void)wire_get_u16(&r); /* length */
        kind[1] = wire_get_u32(&r);
        (void)wire_get_u16(&r); /* format */
        hash = hash_bytes(kind, sizeof kind, hash_bytes(name.p, name.n, hash));
    }
    return r.bad ? 0 : hash | 1;
}

/* A ParameterDescription as the types of a Parse, which have the same form. */
static void put_types(const struct client *c, struct slice body, struct buf *out)
{
    struct wire_reader r;
    uint16_t n;

    wire_reader_init(&r, body);
    n = wire_get_u16(&r);
    buf_put_u16(out, n);
    for (; n > 0 && !r.bad; n--)
        buf_put_u32(out, follow_types_known(c, wire_get_u32(&r)));
}

static uint64_t hash_types(struct slice types)
{
    if (types.n <= sizeof(uint16_t))
        return 0; /* there are none */
    return (hash_bytes(types.p, types.n, 1) | (uint64_t)1 << 32) & COLUMNS_TYPES;
}

/* A portal's types are those of its statement, which never change. */
static uint64_t merged(uint64_t before, uint64_t columns)
{
    return (columns & COLUMNS_TYPES) != 0 ? columns : (before & COLUMNS_TYPES) | columns;
}

/* Marks an unnamed statement, to know it again: another may stand at its address by then. */
static uint64_t mark_of(const struct prep *p)
{
    return p == NULL ? 0 : p->node.hash | 1;
}

static unsigned watch(
    struct client *c, enum names_watched of, struct names_entry *n, uint64_t unnamed)
{
    unsigned op = of == WATCHED_OURS ? OP_DESCRIBE | OP_SWALLOW : OP_DESCRIBE;
    struct errand *t = c->sstate->errand;
    struct names_watch *w;

    if (t->way.watched_epoch != c->link->epoch)
        t->way.nwatched = 0;
    t->way.watched_epoch = c->link->epoch;
    if (t->way.nwatched == NAMES_MAX_WATCHED)
        return op;
    w = &t->way.watched[t->way.nwatched++];
    w->serial = expect_next_serial(&c->link->expect);
    w->of = of;
    w->name = n;
    w->unnamed = unnamed;
    return op | OP_COLUMNS;
}

unsigned follow_columns_watch(struct client *c, struct names_entry *n)
{
    if (n == NULL || c->link->expect.skipping || n->prep == NULL || n->prep->names_one ||
        ((n->told & ~COLUMNS_TYPES) != 0 &&
            follow_columns_agree(n->told, prepset_columns(&c->link->preps, n->prep->id))))
        return OP_DESCRIBE;
    n->told &= COLUMNS_TYPES; /* should it fail, nobody knows which ones the client goes by */
    return watch(c, WATCHED_HIS, n, 0);
}

unsigned follow_columns_watch_unnamed(struct client *c)
{
    const struct prep *p = c->sstate->names.unnamed;

    if (p == NULL || c->link->expect.skipping ||
        !follow_types_are_open(slice_of(p->body, p->body_len)))
        return OP_DESCRIBE;
    return watch(c, WATCHED_UNNAMED, NULL, mark_of(p));
}

/* A statement keeps its types for the client that has it: a link that lacks it has to parse it with
 * them, for the client sends values of these types. */
static void fill_in_types(struct client *c, struct slice types)
{
    const struct prep *old = c->sstate->names.unnamed;
    struct buf body = {0};
    struct prep *p;

    buf_put(&body, old->body, prep_sql(old).n + 1);
    buf_put(&body, types.p, types.n);
    p = follow_prep_with(c, slice_of(body.data, body.len), old->path_hash);
    names_fill_in_unnamed(&c->sstate->errand->way, p);
    prep_unref(&p);
    buf_free(&body);
}

void follow_columns_forget(struct client *c, const struct prep *p)
{
    struct errand *t = c->sstate->errand;
    unsigned i;

    for (i = 0; i < t->way.nwatched; i++)
        if (t->way.watched[i].name != NULL && t->way.watched[i].name->prep == p)
            t->way.watched[i].name = NULL;
}

/* Drops the first `n` watches, whose messages were skipped behind an error. */
static void drop_watches(struct errand *t, unsigned n)
{
    t->way.nwatched = (uint8_t)(t->way.nwatched - n);
    memmove(t->way.watched, t->way.watched + n, t->way.nwatched * sizeof t->way.watched[0]);
}

void follow_columns_on_told(
    void *owner, struct link *link, uint32_t serial, char type, struct slice body)
{
    struct client *c = owner;
    struct errand *t = c->sstate->errand;
    struct buf types = {0};
    uint64_t columns;
    struct names_watch w;
    unsigned i = 0;

    if (link != c->link || t->way.watched_epoch != link->epoch)
        return;
    while (i < t->way.nwatched && (int32_t)(t->way.watched[i].serial - serial) < 0)
        i++;
    drop_watches(t, i);
    if (type == BE_PARAMETER_DESCRIPTION) {
        put_types(c, body, &types);
        t->types_serial = serial;
        t->types = hash_types(buf_slice(&types));
        if (t->way.nwatched > 0 && t->way.watched[0].serial == serial &&
            t->way.watched[0].of == WATCHED_UNNAMED &&
            t->way.watched[0].unnamed == mark_of(c->sstate->names.unnamed))
            fill_in_types(c, buf_slice(&types));
        buf_free(&types);
        return;
    }
    columns = hash_columns(c, type, body) & ~COLUMNS_TYPES;
    if (t->types_serial == serial)
        columns |= t->types;
    if (t->way.nwatched > 0 && t->way.watched[0].serial == serial) {
        w = t->way.watched[0];
        drop_watches(t, 1);
        if (w.name != NULL) {
            prepset_set_columns(&link->preps, w.name->prep->id,
                merged(prepset_columns(&link->preps, w.name->prep->id), columns));
            if (w.of == WATCHED_HIS)
                w.name->told = merged(w.name->told, columns);
        }
    }
}

bool follow_columns_counts(struct slice bind)
{
    struct wire_reader r;
    bool is_null;
    uint16_t n;

    wire_reader_init(&r, slice_of(bind.p + PROTO_HEADER_BYTES, bind.n - PROTO_HEADER_BYTES));
    (void)wire_get_cstr(&r);
    (void)wire_get_cstr(&r);
    for (n = wire_get_u16(&r); n > 0 && !r.bad; n--)
        (void)wire_get_u16(&r);
    for (n = wire_get_u16(&r); n > 0 && !r.bad; n--)
        (void)wire_get_value(&r, &is_null);
    return wire_get_u16(&r) > 1 && !r.bad;
}

/* The statement of this Bind, when the client was told its columns; NULL: it was not. */
static struct names_entry *told_name(const struct client *c, struct slice bind)
{
    struct names_entry *n;
    struct batch_msg m;

    batch_read(&m, FE_BIND, message_body(bind));
    n = m.name.n == 0 ? NULL : names_find(&c->sstate->names, m.name);
    return n == NULL || n->prep == NULL || n->told == 0 ? NULL : n;
}

/* The client does not ask for columns behind this Bind, as far as that has come. */
static bool asks_not(struct slice bind, const char *end)
{
    const char *next = bind.p + bind.n;

    return follow_columns_counts(bind) || (next < end && *next != FE_DESCRIBE);
}

/* The client relies on what it was told: it sends values of these types, or does not ask. */
static bool relies(const struct names_entry *n, struct slice bind, const char *end)
{
    return (n->told & COLUMNS_TYPES) != 0 || asks_not(bind, end);
}

struct names_entry *follow_columns_first(struct client *c, const char *p, const char *end)
{
    struct names_entry *n;
    struct slice bind;

    if (*p != FE_BIND || c->sstate->names.set == NULL || end - p < PROTO_HEADER_BYTES)
        return NULL;
    bind = slice_of(p, message_bytes(p));
    if ((size_t)(end - p) < bind.n)
        return NULL;
    n = told_name(c, bind);
    return n != NULL && relies(n, bind, end) ? n : NULL;
}

static uint64_t id_of(const struct prep *p)
{
    uint64_t id;

    memcpy(&id, p->id, sizeof id);
    return id;
}

/* In a transaction a failure is told to the client, whose own message would meet it. Once for each
 * loan, until another statement is asked about: a server may say what cannot be read. */
static bool may_ask(const struct client *c, const struct names_entry *n)
{
    const struct sstate *s = c->sstate;
    const struct errand *t = s->errand;

    return n->told != 0 && !n->prep->names_one && s->phase == PHASE_ATTACHED &&
           !sstate_tx_is_lost(s) && c->link->tx_status != 'E' && !c->server_batch &&
           loan_is_sure(&s->loan) &&
           (t->look.epoch != c->link->epoch || t->look.id != id_of(n->prep));
}

/* The columns can be asked for only when what runs is over. */
static bool must_wait(struct client *c, const struct names_entry *n)
{
    const struct expect *e = &c->link->expect;

    return e->len > 0 && !e->skipping && !e->copy_in && !expect_is_stuck(e) && !c->server_batch &&
           !n->prep->names_one &&
           !follow_columns_agree(n->told, prepset_columns(&c->link->preps, n->prep->id));
}

bool follow_columns_ask(struct client *c, struct feed_run *run, struct names_entry *n)
{
    struct errand *t = c->sstate->errand;
    struct prep *p = n->prep;
    struct buf out = {0};
    uint32_t at;

    if (!may_ask(c, n) || follow_columns_agree(n->told, prepset_columns(&c->link->preps, p->id)))
        return false;
    t->way.looked_at = n;
    t->look.epoch = c->link->epoch;
    t->look.id = id_of(p);
    t->look.from = expect_next_serial(&c->link->expect);
    if (prepset_touch(&c->link->preps, p->id))
        lent_put_close(c, run, prep_name(p)); /* the client may know newer ones than this plan */
    else
        (void)lent_make_place(c, run);
    lent_put_parse(c, run, p, prep_name(p), OP_PARSE | OP_SWALLOW);
    prepset_add(&c->link->preps, p->id);
    at = wire_begin(&out, FE_DESCRIBE);
    buf_put_byte(&out, 'S');
    buf_put(&out, p->name, PREP_NAME_BYTES + 1);
    wire_end(&out, at);
    link_expect(c->link, watch(c, WATCHED_OURS, n, 0));
    wire_put_empty(&out, FE_SYNC);
    link_expect(c->link, OP_SYNC | OP_SWALLOW);
    feed_put(run, out.data, out.len);
    buf_free(&out);
    phase_goto(c, PHASE_LOOKING);
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_REPLAY);
    return true;
}

bool follow_columns_ask_first(struct client *c, struct feed_run *run)
{
    struct names_entry *n = c->sstate->errand->bound_first;

    if (n == NULL)
        return false;
    return expect_is_quiet(&c->link->expect) ? follow_columns_ask(c, run, n) : must_wait(c, n);
}

bool follow_columns_failed(struct client *c, const struct errmsg *m)
{
    struct errand *t = c->sstate->errand;

    if ((int32_t)(c->link->expect.refused - t->look.from) < 0)
        return false;
    if (t->way.looked_at != NULL)
        prepset_remove(&c->link->preps, t->way.looked_at->prep->id); /* it was not parsed */
    t->way.looked_at = NULL;
    c->sstate->loan.doubt = LOAN_MAY_HAVE; /* it may have been cut short behind the Parse */
    if (c->link->tx_status == 'T' && t->refusal == NULL) {
        t->refusal = mem_alloc_zero(sizeof *t->refusal);
        errmsg_to_err(m, t->refusal);
    }
    return true;
}

/* The transaction has failed by it: what the client is told is what its own message would meet. */
static void tell_failure(struct client *c)
{
    struct errand *t = c->sstate->errand;
    struct err err = *t->refusal;

    mem_free(t->refusal);
    t->refusal = NULL;
    follow_fail_parked(c, &err);
}

void follow_columns_asked(struct client *c)
{
    struct errand *t = c->sstate->errand;

    if (t->way.looked_at != NULL)
        prepset_confirm(&c->link->preps, t->way.looked_at->prep->id);
    if (c->sstate->loan.doubt == LOAN_CLOSES)
        c->sstate->loan.doubt = LOAN_SURE;
    t->way.looked_at = NULL;
    t->way.nwatched = 0;
    phase_goto(c, PHASE_ATTACHED);
    if (t->refusal != NULL)
        tell_failure(c);
    else
        client_unpark(c);
}

static bool half_differs(uint64_t told, uint64_t known, uint64_t half)
{
    return (known & half) != 0 && !follow_columns_half_agrees(told, known, half);
}

bool follow_columns_differ(struct client *c, struct slice msg, const char *end)
{
    const struct names_entry *n;
    uint64_t columns;

    if (c->sstate->names.set == NULL || c->link->expect.skipping)
        return false;
    n = told_name(c, msg);
    if (n == NULL || n->prep->names_one)
        return false;
    columns = prepset_columns(&c->link->preps, n->prep->id);
    if (half_differs(n->told, columns, COLUMNS_TYPES)) {
        follow_types_differ(c, n->prep);
        return true;
    }
    return half_differs(n->told, columns, ~COLUMNS_TYPES) && asks_not(msg, end);
}

enum feed_step follow_columns_refuse(struct client *c, struct feed_run *run)
{
    struct err err;

    err_clear(&err);
    err_set(&err, "0A000", "%s", stale_text);
    return follow_refuse(c, run, &err);
}

bool follow_columns_put_refusal(struct buf *out, const struct err *err)
{
    uint32_t at;

    if (strcmp(err->msg, stale_text) != 0)
        return false;
    at = wire_begin(out, BE_ERROR);
    buf_put(out, "SERROR\0VERROR\0C0A000", sizeof "SERROR\0VERROR\0C0A000");
    buf_put_byte(out, 'M');
    buf_put(out, stale_text, sizeof stale_text);
    buf_put(out, "Fplancache.c\0RRevalidateCachedQuery\0",
        sizeof "Fplancache.c\0RRevalidateCachedQuery\0");
    wire_end(out, at);
    return true;
}

bool follow_columns_are_relied_on(const struct client *c)
{
    struct slice kept = buf_slice(&c->sstate->errand->retry);
    const char *p = kept.p;
    struct message m;

    while (message_next(&p, kept.p + kept.n, &m))
        if (m.type == FE_BIND && told_name(c, m.whole) != NULL && follow_columns_counts(m.whole))
            return true;
    return false;
}
