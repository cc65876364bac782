/* SPDX-License-Identifier: PostgreSQL
 * names.c: a client's prepared statements, by the names that it gave them. Runs in:
 * workers. An entry is made when its message is sent; what became of it is learned from the queue
 * of owed replies, for an error skips the rest of its sequence. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/mem.h"
#include "config/conf.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "names/names_int.h"

HOT static int name_eq(const struct hash_node *node, const void *key)
{
    const struct names_entry *n = (const struct names_entry *)node;

    return prep_is_same_name(slice_of(n->name, n->len), *(const struct slice *)key);
}

static uint64_t name_hash(struct slice name)
{
    name = prep_known_name(name);
    return hash_bytes(name.p, name.n, 23);
}

WARM struct names_entry *names_find(const struct sstate *s, struct slice name)
{
    if (s->names == NULL)
        return NULL;
    return (struct names_entry *)hash_table_find(&s->names->table, name_hash(name), name_eq, &name);
}

void names_entry_free(struct sstate *s, struct names_entry *n)
{
    unsigned i;

    for (i = 0; i < s->errand->npending; i++)
        if (s->errand->pending[i].name == n)
            s->errand->pending[i].name = NULL;
    if (s->errand->last_bound == n)
        s->errand->last_bound = NULL;
    if (s->errand->unloaded == n)
        s->errand->unloaded = NULL;
    if (s->errand->look.at == n)
        s->errand->look.at = NULL;
    for (i = 0; i < s->errand->nwatched; i++)
        if (s->errand->watched[i].name == n)
            s->errand->watched[i].name = NULL;
    prep_unref(&n->prep);
    mem_free(n->sql);
    mem_free(n->why);
    mem_free(n);
}

static size_t name_bytes(const struct names_entry *n)
{
    return sizeof *n + n->len +
           (n->prep != NULL ? sizeof *n->prep + n->prep->body_len : strlen(n->sql));
}

HOT bool names_have_room(const struct client *c, size_t more)
{
    const struct names *all = c->sstate->names;
    int64_t limit = c->ss->conf->client_prepared_memory_bytes;

    return all == NULL || limit == 0 || (int64_t)(all->bytes + more) <= limit;
}

bool names_are_full(const struct client *c, size_t more, struct err *err)
{
    const struct names *all = c->sstate->names;
    int64_t limit = c->ss->conf->client_prepared_memory_bytes;

    if (names_have_room(c, more))
        return false;
    err_clear(err);
    err_set(err, "53400", "too many prepared statements");
    err_detail(err,
        "The %u statements of this session take %llu kB; client_prepared_memory is %lld kB.",
        all->table.count, (unsigned long long)all->bytes / 1024, (long long)limit / 1024);
    err_hint(err, "Close or DEALLOCATE those that are not needed any more.");
    return true;
}

void names_put(struct sstate *s, struct names_entry *n)
{
    if (s->names == NULL) {
        s->names = mem_alloc_zero(sizeof *s->names);
        hash_table_init(&s->names->table);
    }
    hash_table_add(&s->names->table, &n->node, name_hash(slice_of(n->name, n->len)));
    s->names->bytes += name_bytes(n);
    s->nsql_names += n->prep == NULL ? 1 : 0;
}

void names_take(struct sstate *s, struct names_entry *n)
{
    hash_table_del(&s->names->table, &n->node);
    s->names->bytes -= name_bytes(n);
    s->nsql_names -= n->prep == NULL ? 1 : 0;
}

struct names_entry *names_entry_new(struct slice name)
{
    struct names_entry *n;

    name = prep_sent_name(name);
    n = mem_alloc_zero(sizeof *n + name.n + 1);
    n->len = (uint32_t)name.n;
    memcpy(n->name, name.p, name.n);
    return n;
}

/* Calls `fn` for every name; `fn` may take it out. */
void names_each(struct client *c, struct feed_run *run,
    void (*fn)(struct client *c, struct feed_run *run, struct names_entry *n))
{
    struct hash_table *t = c->sstate->names == NULL ? NULL : &c->sstate->names->table;
    struct hash_node *node;
    struct hash_node *next;
    uint32_t i;

    for (i = 0; t != NULL && t->bucket != NULL && i <= t->mask; i++)
        for (node = t->bucket[i]; node != NULL; node = next) {
            next = node->next;
            fn(c, run, (struct names_entry *)node);
        }
}

static void count_sql_name(struct client *c, struct feed_run *run, struct names_entry *n)
{
    (void)run;
    c->sstate->nsql_names += n->prep == NULL ? 1 : 0;
}

static void drop_one(struct client *c, struct feed_run *run, struct names_entry *n)
{
    (void)run;
    names_take(c->sstate, n);
    names_entry_free(c->sstate, n);
}

static void names_clear(struct client *c)
{
    struct sstate *s = c->sstate;

    names_each(c, NULL, drop_one);
    if (s->names != NULL)
        hash_table_fini(&s->names->table);
    mem_free(s->names);
    s->names = NULL;
}

/* The link may know the statement or not, or the client may have it under that name or not: nothing
 * behind the present sequence can rely on it before that is settled. */
static bool is_uncertain(const struct names_pending *p)
{
    return p->kind == PENDING_NAME || p->kind == PENDING_CLOSED ||
           (p->kind == PENDING_PARSE && p->sent);
}

static void pending_grow(struct errand *t)
{
    t->pending = mem_alloc((SSTATE_MAX_PENDING + 8) * sizeof *t->pending);
    memcpy(t->pending, t->few, sizeof t->few);
}

/* None is left. */
static void pending_free(struct errand *t)
{
    if (t->pending != t->few)
        mem_free(t->pending);
    t->pending = NULL;
}

HOT void names_pending_push(struct client *c, enum names_pending_kind kind, struct prep *prep,
    struct names_entry *name, bool sent)
{
    struct sstate *s = c->sstate;
    struct names_pending *p;

    if (s->errand->pending == NULL)
        s->errand->pending = s->errand->few;
    else if (s->errand->npending == SSTATE_FEW_PENDING && s->errand->pending == s->errand->few)
        pending_grow(s->errand);
    p = &s->errand->pending[s->errand->npending++];
    p->kind = (uint8_t)kind;
    p->prep = prep == NULL ? NULL : prep_ref(prep);
    p->name = name;
    p->sent = sent;
    p->was_refused = false;
    p->drop = s->errand->drops;
    p->before = NULL;
    p->serial = expect_next_serial(&c->link->expect);
    s->errand->nuncertain += is_uncertain(p) ? 1 : 0;
}

HOT void names_pending_unnamed(struct client *c, struct prep *prep)
{
    struct sstate *s = c->sstate;
    struct names_pending *p;

    names_pending_push(c, PENDING_UNNAMED, prep, NULL, true);
    p = &s->errand->pending[s->errand->npending - 1];
    p->before = s->unnamed;
    p->before_epoch = s->errand->unnamed_epoch;
    s->unnamed = prep == NULL ? NULL : prep_ref(prep);
    s->errand->unnamed_epoch = c->link->epoch;
}

void names_pending_refused(struct client *c)
{
    struct errand *t = c->sstate->errand;
    bool is_gone = false; /* so are the unnamed statements in front of one that was refused */
    unsigned i;

    for (i = t->npending; i-- > 0;) {
        struct names_pending *p = &t->pending[i];

        if (p->serial == c->link->expect.refused)
            p->was_refused = p->was_refused || p->before != p->prep;
        else if (is_gone && p->kind == PENDING_UNNAMED)
            p->was_refused = true;
        is_gone = is_gone || (p->was_refused && p->kind == PENDING_UNNAMED);
    }
}

void names_pending_overtaken(struct client *c)
{
    struct errand *t = c->sstate->errand;
    unsigned i;

    for (i = 0; i < t->npending; i++)
        t->pending[i].was_refused =
            t->pending[i].was_refused || t->pending[i].kind == PENDING_UNNAMED;
}

static struct prep *prep_ref_any(struct prep *p)
{
    return p == NULL ? NULL : prep_ref(p);
}

/* The next one of those behind `p` that are not settled. */
static struct names_pending *unnamed_behind(struct errand *t, struct names_pending *p)
{
    const struct names_pending *end = t->pending + t->npending;

    for (p++; p < end; p++)
        if (p->kind == PENDING_UNNAMED)
            return p;
    return NULL;
}

/* A Parse that the server refuses has taken the old one away; one that was skipped has not, nor has
 * one of ours that brought it to the link. Whether it got so far is for the server to know: what
 * the link has then may be another client's. */
static void settle_unnamed(struct client *c, struct names_pending *p, bool ok, bool is_undone)
{
    struct sstate *s = c->sstate;
    struct names_pending *next = unnamed_behind(s->errand, p);

    if (next != NULL && !ok && next->before == p->prep) {
        prep_unref(&next->before);
        next->before = p->was_refused ? NULL : prep_ref_any(p->before);
        next->before_epoch = p->was_refused ? 0 : p->before_epoch;
    } else if (next == NULL && !ok && s->unnamed == p->prep) {
        prep_unref(&s->unnamed);
        if (p->was_refused) {
            s->errand->unnamed_epoch = 0;
        } else {
            s->unnamed = p->before;
            if (s->errand->unnamed_epoch != 0) /* nothing of ours took it away meanwhile */
                s->errand->unnamed_epoch = is_undone ? 0 : p->before_epoch;
            p->before = NULL;
        }
    }
    prep_unref(&p->before);
}

void names_watch_tag(struct client *c, struct names_run *run)
{
    run->at = c->sstate->errand->string.at;
    run->serial = expect_next_serial(&c->link->expect);
    run->is_done = false;
    c->sstate->errand->op_flags |= OP_TAGS;
}

/* The unnamed statement stays: it has no name to lose. */
void names_drop_all(struct client *c)
{
    struct sstate *s = c->sstate;
    struct names_drop *d = mem_alloc_zero(sizeof *d);

    d->names = s->names;
    d->preps = c->link->preps;
    names_watch_tag(c, &d->run);
    d->older = s->errand->drops;
    s->errand->drops = d;
    s->names = NULL;
    s->nsql_names = 0;
    c->link->preps = (struct prepset){0};
}

/* The names before that drop, and what the link had, are at hand until this is called again. */
static void swap_books(struct client *c, struct names_drop *d)
{
    struct sstate *s = c->sstate;
    struct names *names = s->names;
    struct prepset preps = d->preps;

    s->names = d->names;
    d->names = names;
    if (c->link == NULL)
        return;
    d->preps = c->link->preps;
    c->link->preps = preps;
}

static void note_done(struct names_run *run, uint32_t serial)
{
    run->is_done = run->is_done || run->serial == serial;
}

static void note_made(struct client *c, struct feed_run *run, struct names_entry *n)
{
    (void)run;
    if (n->is_new)
        note_done(&n->made, expect_head_serial(&c->link->expect));
}

WARM bool names_note_tag(struct client *c, uint32_t serial)
{
    struct sstate *s = c->sstate;
    struct names_drop *d;
    struct names_entry *n;
    bool is_drop = false;
    unsigned i;

    for (n = s->errand->dropped; n != NULL; n = n->next_dropped) {
        note_made(c, NULL, n);
        note_done(&n->dropped, serial);
    }
    for (i = 0; i < s->errand->npending; i++)
        if (s->errand->pending[i].kind == PENDING_CLOSED && s->errand->pending[i].name != NULL)
            note_made(c, NULL, s->errand->pending[i].name);
    if (s->has_new_names)
        names_each(c, NULL, note_made);
    for (d = s->errand->drops; d != NULL; d = d->older) {
        if (s->has_new_names) {
            swap_books(c, d);
            names_each(c, NULL, note_made);
            swap_books(c, d);
        }
        note_done(&d->run, serial);
        is_drop = is_drop || d->run.serial == serial;
    }
    return is_drop;
}

/* Did a statement of the exchange that is over work? What names statements is in no transaction:
 * an error behind it undoes nothing. */
static bool has_worked(const struct sstate *s, const struct names_run *run)
{
    if (!s->exchange.saw_error)
        return true;
    if (s->exchange.in_string)
        return run->at < s->errand->string.ntags;
    return run->is_done && s->errand->lost_query != run->serial + 1;
}

/* DISCARD ALL and DEALLOCATE ALL are over: what was is forgotten, or, when one failed, is there
 * again in place of what came since. Those in front of one that worked do not matter. */
static void settle_drops(struct client *c)
{
    struct sstate *s = c->sstate;
    struct names_drop *d;
    bool is_over = false; /* what is older */

    while ((d = s->errand->drops) != NULL) {
        s->errand->drops = d->older;
        is_over = is_over || has_worked(s, &d->run);
        if (is_over)
            swap_books(c, d);
        else if (c->link != NULL) /* it may have come to its end, and to an error behind that */
            s->loan.is_unsure = s->loan.lacks_some = true;
        names_clear(c);
        if (c->link != NULL)
            prepset_clear(&c->link->preps);
        swap_books(c, d);
        prepset_clear(&d->preps);
        mem_free(d);
    }
    s->nsql_names = 0;
    names_each(c, NULL, count_sql_name);
}

/* Not there either when the PREPARE in front of it failed. */
static bool is_gone(const struct sstate *s, const struct names_entry *n)
{
    return has_worked(s, &n->dropped) || (n->is_new && !has_worked(s, &n->made)) ||
           names_find(s, slice_of(n->name, n->len)) != NULL;
}

static void settle_dropped(struct client *c)
{
    struct sstate *s = c->sstate;
    struct names_entry *n;

    while ((n = s->errand->dropped) != NULL) {
        s->errand->dropped = n->next_dropped;
        if (is_gone(s, n)) {
            names_entry_free(s, n);
            continue;
        }
        n->is_new = false;
        names_put(s, n);
        if (n->was_loaded && c->link != NULL && c->link->tx_status == 'E')
            prepset_set_named(&c->link->preps, slice_of(n->name, n->len), n->content);
    }
}

/* The first drop behind `p`; NULL: none. It may come to nothing, too. */
static struct names_drop *drop_behind(const struct errand *t, const struct names_pending *p)
{
    struct names_drop *behind = NULL;
    struct names_drop *d;

    for (d = t->drops; d != NULL && d != p->drop; d = d->older)
        behind = d;
    return behind;
}

/* True when it was deallocated in the present exchange: what became of that does not matter. */
static bool take_dropped(struct errand *t, const struct names_entry *n)
{
    struct names_entry **pp = &t->dropped;

    while (*pp != NULL && *pp != n)
        pp = &(*pp)->next_dropped;
    if (*pp == NULL)
        return false;
    *pp = n->next_dropped;
    return true;
}

/* A Parse came to nothing. */
static void forget_name(struct sstate *s, struct names_entry *n)
{
    bool is_dropped = take_dropped(s->errand, n);

    if (!is_dropped && names_find(s, slice_of(n->name, n->len)) != n)
        return;
    if (!is_dropped)
        names_take(s, n);
    names_entry_free(s, n);
}

/* A PREPARE came to nothing: the link has no such statement either. */
static void drop_new(struct client *c, struct names_entry *n)
{
    struct slice name = slice_of(n->name, n->len);

    if (c->link != NULL && prepset_named(&c->link->preps, name) == n->content)
        prepset_set_named(&c->link->preps, name, PREPSET_DOUBTFUL);
    drop_one(c, NULL, n);
}

/* A Close came to nothing, and so did a PREPARE of that name behind it. What an older PREPARE made
 * the link had, and has it still. */
static void put_back(struct client *c, struct names_entry *n)
{
    struct slice name = slice_of(n->name, n->len);
    struct names_entry *other = names_find(c->sstate, name);

    if (other != NULL && !other->is_new) {
        names_entry_free(c->sstate, n);
        return;
    }
    if (other != NULL)
        drop_new(c, other);
    names_put(c->sstate, n);
    if (n->prep == NULL && n->was_loaded && c->link != NULL)
        prepset_set_named(&c->link->preps, name, n->content);
}

/* What the link has by now. */
HOT static inline void settle_on_link(struct link *link, const struct names_pending *p, bool ok)
{
    if (p->sent && !ok)
        prepset_remove(&link->preps, p->prep->id);
    else if (p->sent && (p->kind == PENDING_NAME || p->kind == PENDING_PARSE))
        prepset_confirm(&link->preps, p->prep->id);
    if (p->kind == PENDING_CLOSED && !ok && p->prep != NULL)
        prepset_add(&link->preps, p->prep->id); /* it was not closed */
}

/* `is_undone`: it is going to be sent again, whatever became of it on the link. */
HOT static void settle_one(struct client *c, struct names_pending *p, bool ok, bool is_undone)
{
    struct sstate *s = c->sstate;
    struct names_drop *behind = drop_behind(s->errand, p);
    bool holds = ok && !is_undone;

    if (behind != NULL)
        swap_books(c, behind);
    s->errand->nuncertain -= is_uncertain(p) ? 1 : 0;
    if (p->kind != PENDING_UNNAMED && c->link != NULL)
        settle_on_link(c->link, p, ok);
    if (p->kind == PENDING_UNNAMED)
        settle_unnamed(c, p, holds, is_undone);
    else if (p->kind == PENDING_NAME && !holds && p->name != NULL)
        forget_name(s, p->name);
    else if (p->kind == PENDING_CLOSED && holds)
        names_entry_free(s, p->name);
    else if (p->kind == PENDING_CLOSED)
        put_back(c, p->name);
    if (behind != NULL)
        swap_books(c, behind);
    prep_unref(&p->prep);
    p->kind = PENDING_SETTLED;
}

static void drop_if_new(struct client *c, struct feed_run *run, struct names_entry *n)
{
    (void)run;
    if (n->is_new && !has_worked(c->sstate, &n->made))
        drop_new(c, n);
    else
        n->is_new = false;
}

static void forget_first(struct errand *t, unsigned n)
{
    t->npending = (uint16_t)(t->npending - n);
    if (t->npending == 0)
        pending_free(t);
    else
        memmove(t->pending, t->pending + n, t->npending * sizeof t->pending[0]);
}

/* The first `n`. Those of one sequence that came to nothing are undone in reverse order: a Parse
 * behind a Close of the same name goes before that name comes back. */
HOT static void settle_first(struct client *c, unsigned n, uint64_t worked)
{
    struct errand *t = c->sstate->errand;
    unsigned i;
    unsigned j;
    unsigned k;

    for (i = 0; i < n; i = j) {
        for (j = i; j < n && (worked >> j & 1) == (worked >> i & 1); j++)
            if ((worked >> j & 1) != 0)
                settle_one(c, &t->pending[j], true, false);
        for (k = j; k > i && (worked >> i & 1) == 0; k--)
            settle_one(c, &t->pending[k - 1], false, false);
    }
    forget_first(t, n);
}

void names_undo(struct client *c)
{
    struct errand *t = c->sstate->errand;
    uint64_t worked;
    unsigned n = expect_take_notes(&c->link->expect, &worked);

    unsigned i;

    n = n < t->npending ? n : t->npending;
    for (i = n; i > 0; i--)
        settle_one(c, &t->pending[i - 1], (worked >> (i - 1) & 1) != 0, true);
    forget_first(t, n);
}

void names_settle_told(struct client *c, struct link *link, bool all_worked)
{
    struct errand *t = c->sstate->errand;
    uint64_t worked;
    unsigned n = expect_take_notes(&link->expect, &worked);

    settle_first(c, n < t->npending ? n : t->npending, worked);
    if (all_worked)
        settle_first(c, t->npending, UINT64_MAX);
}

HOT void names_settle(struct client *c)
{
    struct sstate *s = c->sstate;
    struct errand *t = s->errand;
    uint64_t worked = 0;
    unsigned n = t->npending;

    if (t->pending == NULL && t->dropped == NULL && !s->has_new_names && t->drops == NULL &&
        c->link != NULL && c->link->expect.nnotes == 0)
        return; /* mostly */
    if (c->link != NULL)
        n = expect_take_notes(&c->link->expect, &worked);
    settle_first(c, n < s->errand->npending ? n : s->errand->npending, worked);
    if (c->link != NULL && !expect_is_quiet(&c->link->expect))
        return;
    if (t->drops != NULL)
        settle_drops(c);
    if (s->has_new_names)
        names_each(c, NULL, drop_if_new);
    s->has_new_names = false;
    if (s->errand->dropped != NULL)
        settle_dropped(c); /* behind that: what was not dropped goes where it was */
}

static struct slice name_among(const struct names *all, const char *content_name)
{
    const struct hash_table *t = all == NULL ? NULL : &all->table;
    const struct hash_node *node;
    uint32_t i;

    for (i = 0; t != NULL && t->bucket != NULL && i <= t->mask; i++)
        for (node = t->bucket[i]; node != NULL; node = node->next) {
            const struct names_entry *n = (const struct names_entry *)node;

            if (n->prep != NULL && memcmp(n->prep->name, content_name, PREP_NAME_BYTES) == 0)
                return slice_of(n->name, n->len);
        }
    return slice_of(NULL, 0);
}

struct slice names_of_message(const struct client *c, const char *content_name)
{
    const struct errand *t = c->sstate->errand;
    const struct names_entry *last = t->last_bound;
    const struct names_drop *d;
    struct slice name;
    unsigned i;

    if (last != NULL && last->prep != NULL &&
        memcmp(last->prep->name, content_name, PREP_NAME_BYTES) == 0)
        return slice_of(last->name, last->len); /* mostly; others may have the same text */
    name = name_among(c->sstate->names, content_name);
    for (d = t->drops; name.p == NULL && d != NULL; d = d->older)
        name = name_among(d->names, content_name); /* dropped, or not, as the error decides */
    for (i = 0; name.p == NULL && i < t->npending; i++) { /* the same with Close */
        const struct names_entry *n = t->pending[i].name;

        if (n != NULL && n->prep != NULL &&
            memcmp(n->prep->name, content_name, PREP_NAME_BYTES) == 0)
            name = slice_of(n->name, n->len);
    }
    return name;
}

void names_free(struct client *c)
{
    struct sstate *s = c->sstate;
    unsigned i;

    for (i = 0; i < s->errand->npending; i++) {
        if (s->errand->pending[i].kind == PENDING_CLOSED)
            names_entry_free(s, s->errand->pending[i].name);
        prep_unref(&s->errand->pending[i].prep);
        prep_unref(&s->errand->pending[i].before);
    }
    s->errand->npending = 0;
    pending_free(s->errand);
    s->exchange.saw_error = true;
    settle_dropped(c);
    settle_drops(c);
    names_clear(c);
    prep_unref(&s->unnamed);
}
