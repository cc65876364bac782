/* SPDX-License-Identifier: PostgreSQL
 * names.c: a client's prepared statements, by the names that it gave them. Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/err.h"
#include "base/hot.h"
#include "base/mem.h"

#include "names/names.h"

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

WARM struct names_entry *names_find(const struct names *all, struct slice name)
{
    if (all->set == NULL)
        return NULL;
    return (struct names_entry *)hash_table_find(&all->set->table, name_hash(name), name_eq, &name);
}

void names_entry_free(struct names_way *w, struct names_entry *n)
{
    unsigned i;

    for (i = 0; i < w->npending; i++)
        if (w->pending[i].name == n)
            w->pending[i].name = NULL;
    if (w->last_bound == n)
        w->last_bound = NULL;
    if (w->unloaded == n)
        w->unloaded = NULL;
    if (w->looked_at == n)
        w->looked_at = NULL;
    for (i = 0; i < w->nwatched; i++)
        if (w->watched[i].name == n)
            w->watched[i].name = NULL;
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

HOT bool names_have_room(const struct names *all, int64_t limit, size_t more)
{
    return all->set == NULL || limit == 0 || (int64_t)(all->set->bytes + more) <= limit;
}

bool names_are_full(const struct names *all, int64_t limit, size_t more, struct err *err)
{
    if (names_have_room(all, limit, more))
        return false;
    err_clear(err);
    err_set(err, "53400", "too many prepared statements");
    err_detail(err,
        "The %u statements of this session take %llu kB; client_prepared_memory is %lld kB.",
        all->set->table.count, (unsigned long long)all->set->bytes / 1024, (long long)limit / 1024);
    err_hint(err, "Close or DEALLOCATE those that are not needed any more.");
    return true;
}

void names_put(struct names *all, struct names_entry *n)
{
    if (all->set == NULL) {
        all->set = mem_alloc_zero(sizeof *all->set);
        hash_table_init(&all->set->table);
    }
    hash_table_add(&all->set->table, &n->node, name_hash(slice_of(n->name, n->len)));
    all->set->bytes += name_bytes(n);
    all->set->nsql += n->prep == NULL ? 1 : 0;
}

void names_take(struct names *all, struct names_entry *n)
{
    hash_table_del(&all->set->table, &n->node);
    all->set->bytes -= name_bytes(n);
    all->set->nsql -= n->prep == NULL ? 1 : 0;
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

struct names_entry *names_next(const struct names_set *set, const struct names_entry *n)
{
    struct hash_node *node = n == NULL ? NULL : n->node.next;
    uint32_t i;

    if (set == NULL || set->table.bucket == NULL)
        return NULL;
    for (i = n == NULL ? 0 : (uint32_t)(n->node.hash & set->table.mask) + 1;
         node == NULL && i <= set->table.mask; i++)
        node = set->table.bucket[i];
    return (struct names_entry *)node;
}

static void take_one(struct names_way *w, struct names_entry *n)
{
    names_take(w->names, n);
    names_entry_free(w, n);
}

static void names_clear(struct names_way *w)
{
    struct names_entry *n;

    while ((n = names_next(w->names->set, NULL)) != NULL)
        take_one(w, n);
    if (w->names->set != NULL)
        hash_table_fini(&w->names->set->table);
    mem_free(w->names->set);
    w->names->set = NULL;
}

/* The link may know the statement or not, or the client may have it under that name or not: nothing
 * behind the present sequence can rely on it before that is settled. */
static bool is_uncertain(const struct names_pending *p)
{
    return p->kind == PENDING_NAME || p->kind == PENDING_CLOSED ||
           (p->kind == PENDING_PARSE && p->sent != PENDING_NOT_SENT);
}

static void pending_grow(struct names_way *w)
{
    w->pending = mem_alloc((NAMES_MAX_PENDING + 8) * sizeof *w->pending);
    memcpy(w->pending, w->few, sizeof w->few);
}

/* None is left. */
static void pending_free(struct names_way *w)
{
    if (w->pending != w->few)
        mem_free(w->pending);
    w->pending = NULL;
}

HOT void names_pending_push(struct names_way *w, enum names_pending_kind kind, struct prep *prep,
    struct names_entry *name, bool sent, uint32_t serial)
{
    struct names_pending *p;

    if (w->pending == NULL)
        w->pending = w->few;
    else if (w->npending == NAMES_FEW_PENDING && w->pending == w->few)
        pending_grow(w);
    p = &w->pending[w->npending++];
    p->kind = (uint8_t)kind;
    p->prep = prep == NULL ? NULL : prep_ref(prep);
    p->name = name;
    p->sent = sent ? PENDING_SENT : PENDING_NOT_SENT;
    p->before = NULL;
    p->serial = serial;
    w->nuncertain += is_uncertain(p) ? 1 : 0;
}

HOT void names_pending_unnamed(
    struct names_way *w, struct prep *prep, uint32_t serial, uint64_t epoch)
{
    struct names_pending *p;

    names_pending_push(w, PENDING_UNNAMED, prep, NULL, true, serial);
    p = &w->pending[w->npending - 1];
    p->before = w->names->unnamed;
    p->before_epoch = w->unnamed_epoch;
    w->names->unnamed = prep == NULL ? NULL : prep_ref(prep);
    w->unnamed_epoch = epoch;
}

void names_pending_refused(struct names_way *w, uint32_t serial)
{
    bool is_gone = false; /* so are the unnamed statements in front of one that was refused */
    unsigned i;

    for (i = w->npending; i-- > 0;) {
        struct names_pending *p = &w->pending[i];

        if (p->kind != PENDING_UNNAMED)
            continue;
        if (p->serial == serial ? p->before != p->prep : is_gone)
            p->sent = PENDING_REFUSED;
        is_gone = is_gone || p->sent == PENDING_REFUSED;
    }
}

void names_pending_overtaken(struct names_way *w)
{
    unsigned i;

    for (i = 0; i < w->npending; i++)
        if (w->pending[i].kind == PENDING_UNNAMED)
            w->pending[i].sent = PENDING_REFUSED;
}

static struct prep *prep_ref_any(struct prep *p)
{
    return p == NULL ? NULL : prep_ref(p);
}

void names_fill_in_unnamed(struct names_way *w, struct prep *prep)
{
    struct prep *old = w->names->unnamed;
    unsigned i;

    for (i = 0; i < w->npending; i++) {
        if (w->pending[i].kind != PENDING_UNNAMED || w->pending[i].prep != old)
            continue;
        prep_unref(&w->pending[i].prep);
        w->pending[i].prep = prep_ref(prep);
        if (w->pending[i].before != old)
            continue; /* else a Parse of the statement that there was, on another link */
        prep_unref(&w->pending[i].before);
        w->pending[i].before = prep_ref(prep);
    }
    prep_unref(&w->names->unnamed);
    w->names->unnamed = prep_ref(prep);
}

/* The next one of those behind `p` that are not settled. */
static struct names_pending *unnamed_behind(struct names_way *w, struct names_pending *p)
{
    const struct names_pending *end = w->pending + w->npending;

    for (p++; p < end; p++)
        if (p->kind == PENDING_UNNAMED)
            return p;
    return NULL;
}

/* A Parse that the server refuses has taken the old one away; one that was skipped has not, nor has
 * one of ours that brought it to the link. Whether it got so far is for the server to know: what
 * the link has then may be another client's. */
static void settle_unnamed(struct names_way *w, struct names_pending *p, bool ok, bool is_undone)
{
    struct names *all = w->names;
    struct names_pending *next = unnamed_behind(w, p);

    if (next != NULL && !ok && next->before == p->prep) {
        prep_unref(&next->before);
        next->before = p->sent == PENDING_REFUSED ? NULL : prep_ref_any(p->before);
        next->before_epoch = p->sent == PENDING_REFUSED ? 0 : p->before_epoch;
    } else if (next == NULL && !ok && all->unnamed == p->prep) {
        prep_unref(&all->unnamed);
        if (p->sent == PENDING_REFUSED) {
            w->unnamed_epoch = 0;
        } else {
            all->unnamed = p->before;
            if (w->unnamed_epoch != 0) /* nothing of ours took it away meanwhile */
                w->unnamed_epoch = is_undone ? 0 : p->before_epoch;
            p->before = NULL;
        }
    }
    prep_unref(&p->before);
}

void names_word_push(struct names_way *w, struct names_entry *entry, uint32_t serial, uint16_t at)
{
    struct names_word **pp = &w->words;

    while (*pp != NULL)
        pp = &(*pp)->next;
    *pp = mem_alloc_zero(sizeof **pp);
    **pp = (struct names_word){.entry = entry, .serial = serial, .at = at};
}

/* The first of those that have no tag. */
static struct names_entry *take_word(struct names_way *w)
{
    struct names_word *word = w->words;
    struct names_entry *entry = word->entry;

    w->words = word->next;
    mem_free(word);
    return entry;
}

static void do_word(struct names_way *w, struct prepset *preps, struct names_entry *entry)
{
    struct slice name = slice_of(entry->name, entry->len);
    struct names_entry *n = names_find(w->names, name);

    if (n != NULL)
        take_one(w, n);
    if (entry->sql == NULL) {
        prepset_drop_named(preps, name);
        names_entry_free(w, entry);
        return;
    }
    names_put(w->names, entry);
    prepset_set_named(preps, name, entry->content);
}

WARM bool names_note_tag(struct names_way *w, struct prepset *preps, uint32_t serial, int at)
{
    struct names_entry *entry;

    if (w->words == NULL || w->words->serial != serial || (at != -1 && w->words->at != at))
        return false;
    entry = take_word(w);
    if (entry != NULL) {
        do_word(w, preps, entry);
        return false;
    }
    names_clear(w);
    prepset_clear(preps);
    return true;
}

bool names_forget_words(struct names_way *w, const struct names_heard *heard)
{
    bool is_unsure = false;
    struct names_entry *n;
    struct slice name;

    while (w->words != NULL) {
        n = take_word(w);
        if (n == NULL) {
            is_unsure = heard->preps != NULL;
            continue;
        }
        /* The word may have worked, with the error behind it. */
        name = slice_of(n->name, n->len);
        if (heard->preps != NULL && heard->tx_status != 'E' &&
            (n->sql != NULL || prepset_named(heard->preps, name) != 0))
            prepset_set_named(heard->preps, name, PREPSET_DOUBTFUL);
        names_entry_free(w, n);
    }
    return is_unsure;
}

/* A Parse came to nothing. */
static void forget_name(struct names_way *w, struct names_entry *n)
{
    if (names_find(w->names, slice_of(n->name, n->len)) == n)
        take_one(w, n);
}

/* A Close came to nothing. What an older PREPARE made the link had, and has it still. */
static void put_back(struct names_way *w, struct prepset *preps, struct names_entry *n)
{
    struct slice name = slice_of(n->name, n->len);

    if (names_find(w->names, name) != NULL) {
        names_entry_free(w, n);
        return;
    }
    names_put(w->names, n);
    if (n->prep == NULL && n->was_loaded && preps != NULL)
        prepset_set_named(preps, name, n->content);
}

/* What the link has by now. */
HOT static inline void settle_on_link(struct prepset *preps, const struct names_pending *p, bool ok)
{
    if (p->sent != PENDING_NOT_SENT && !ok)
        prepset_remove(preps, p->prep->id);
    else if (p->sent != PENDING_NOT_SENT && (p->kind == PENDING_NAME || p->kind == PENDING_PARSE))
        prepset_confirm(preps, p->prep->id);
    if (p->kind == PENDING_CLOSED && !ok && p->prep != NULL)
        prepset_add(preps, p->prep->id); /* it was not closed */
}

/* `is_undone`: it is going to be sent again, whatever became of it on the link. */
HOT static void settle_one(
    struct names_way *w, struct prepset *preps, struct names_pending *p, bool ok, bool is_undone)
{
    bool holds = ok && !is_undone;

    w->nuncertain -= is_uncertain(p) ? 1 : 0;
    if (p->kind != PENDING_UNNAMED && preps != NULL)
        settle_on_link(preps, p, ok);
    if (p->kind == PENDING_UNNAMED)
        settle_unnamed(w, p, holds, is_undone);
    else if (p->kind == PENDING_NAME && !holds && p->name != NULL)
        forget_name(w, p->name);
    else if (p->kind == PENDING_CLOSED && holds)
        names_entry_free(w, p->name);
    else if (p->kind == PENDING_CLOSED)
        put_back(w, preps, p->name);
    prep_unref(&p->prep);
    p->kind = PENDING_SETTLED;
}

static void forget_first(struct names_way *w, unsigned n)
{
    w->npending = (uint16_t)(w->npending - n);
    if (w->npending == 0)
        pending_free(w);
    else
        memmove(w->pending, w->pending + n, w->npending * sizeof w->pending[0]);
}

HOT void names_settle_first(
    struct names_way *w, const struct names_heard *heard, unsigned n, uint64_t worked)
{
    unsigned i;
    unsigned j;
    unsigned k;

    n = n < w->npending ? n : w->npending;
    for (i = 0; i < n; i = j) {
        for (j = i; j < n && (worked >> j & 1) == (worked >> i & 1); j++)
            if ((worked >> j & 1) != 0)
                settle_one(w, heard->preps, &w->pending[j], true, false);
        for (k = j; k > i && (worked >> i & 1) == 0; k--)
            settle_one(w, heard->preps, &w->pending[k - 1], false, false);
    }
    forget_first(w, n);
}

void names_undo_first(
    struct names_way *w, const struct names_heard *heard, unsigned n, uint64_t worked)
{
    unsigned i;

    n = n < w->npending ? n : w->npending;
    for (i = n; i > 0; i--)
        settle_one(w, heard->preps, &w->pending[i - 1], (worked >> (i - 1) & 1) != 0, true);
    forget_first(w, n);
}

static struct slice name_among(const struct names_set *set, const char *content_name)
{
    const struct names_entry *n = NULL;

    while ((n = names_next(set, n)) != NULL)
        if (n->prep != NULL && memcmp(n->prep->name, content_name, PREP_NAME_BYTES) == 0)
            return slice_of(n->name, n->len);
    return slice_of(NULL, 0);
}

struct slice names_of_content(const struct names_way *w, const char *content_name)
{
    const struct names_entry *last = w->last_bound;
    struct slice name;
    unsigned i;

    if (last != NULL && last->prep != NULL &&
        memcmp(last->prep->name, content_name, PREP_NAME_BYTES) == 0)
        return slice_of(last->name, last->len); /* mostly; others may have the same text */
    name = name_among(w->names->set, content_name);
    for (i = 0; name.p == NULL && i < w->npending; i++) { /* closed, or not */
        const struct names_entry *n = w->pending[i].name;

        if (n != NULL && n->prep != NULL &&
            memcmp(n->prep->name, content_name, PREP_NAME_BYTES) == 0)
            name = slice_of(n->name, n->len);
    }
    return name;
}

void names_free(struct names_way *w)
{
    const struct names_heard nothing = {.preps = NULL};
    unsigned i;

    for (i = 0; i < w->npending; i++) {
        if (w->pending[i].kind == PENDING_CLOSED)
            names_entry_free(w, w->pending[i].name);
        prep_unref(&w->pending[i].prep);
        prep_unref(&w->pending[i].before);
    }
    w->npending = 0;
    pending_free(w);
    (void)names_forget_words(w, &nothing);
    names_clear(w);
    prep_unref(&w->names->unnamed);
}
