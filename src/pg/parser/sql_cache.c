/* SPDX-License-Identifier: PostgreSQL
 * sql_cache.c: facts by fingerprint, least recently used out first.
 * Runs in: workers, one cache each. An entry is one block of memory with everything its facts point
 * at, so that throwing it out is one free. */
#include "config.h"

#include "base/hot.h"
#include "parser/sql_cache.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "fingerprint.h"
#include "sql_memo.h"
#include "sql_mould.h"

#include <string.h>

struct entry {
    struct hash_node node;
    struct list lru;
    struct sqlfp fp;
    size_t bytes;
    uint64_t verdict;
    uint32_t traits;
    struct sql_facts facts;
};

/* The text of the last call: where it was, how long, and what stood at both its ends. Statements
 * are counted by that (sql_cache_fingerprint): one that is mistaken for it was counted as its like.
 */
struct asked {
    const char *p;
    size_t n;
    uint64_t ends[2];
    struct sql_fingerprint sum;
    uint32_t *notes; /* NULL: it is not kept */
};

struct sql_cache {
    struct hash_table table;
    struct list lru; /* most recently used first */
    uint32_t max_entries;
    size_t max_bytes;
    struct sql_cache_stats stats;
    uint64_t seed;         /* of the fingerprints, another one in each process */
    struct arena *scan;    /* for fingerprinting; keeps a block, so that a hit allocates nothing */
    struct sql_facts last; /* of a statement that is not kept */
    struct sql_memo memo;
    struct sql_moulds moulds;
    struct asked asked;
};

/* Hands out pieces of an entry's block; with no block it only counts. */
struct packer {
    char *at;
    size_t used;
};

struct sql_cache *sql_cache_new(uint32_t max_entries, size_t max_bytes)
{
    struct sql_cache *c = mem_alloc_zero(sizeof(*c));

    hash_table_init(&c->table);
    list_init(&c->lru);
    c->scan = arena_new("sql fingerprint", 0);
    (void)arena_alloc(c->scan, 8);
    /* Where memory lies is the randomness that a pure module has. */
    c->seed = hash_bytes(&c, sizeof(c), (uint64_t)(uintptr_t)&c);
    c->max_entries = max_entries;
    c->max_bytes = max_bytes;
    return c;
}

static void drop(struct sql_cache *c, struct entry *e)
{
    hash_table_del(&c->table, &e->node);
    list_remove(&e->lru);
    c->stats.entries--;
    c->stats.bytes -= e->bytes;
    mem_free(e);
}

void sql_cache_free(struct sql_cache **cp)
{
    struct sql_cache *c = *cp;

    if (c == NULL)
        return;
    while (!list_is_empty(&c->lru))
        drop(c, LIST_ENTRY(list_first(&c->lru), struct entry, lru));
    hash_table_fini(&c->table);
    sql_memo_clear(&c->memo);
    arena_free(&c->scan);
    mem_free(c);
    *cp = NULL;
}

static void *pack(struct packer *p, const void *src, size_t n)
{
    void *dst = p->at == NULL ? NULL : p->at + p->used;

    if (dst != NULL && n != 0)
        memcpy(dst, src, n);
    p->used += (n + 7) & ~(size_t)7;
    return dst;
}

static void pack_slice(struct packer *p, struct slice *s)
{
    const char *copy = pack(p, s->p, s->n);

    if (copy != NULL)
        s->p = copy;
}

static void pack_tables(struct packer *p, struct sql_stmt *s)
{
    struct sql_table *copy = pack(p, s->tables, s->ntables * sizeof(*copy));

    for (uint32_t i = 0; i < s->ntables; i++) {
        struct sql_table t = s->tables[i];
        pack_slice(p, &t.catalog);
        pack_slice(p, &t.schema);
        pack_slice(p, &t.name);
        if (copy != NULL)
            copy[i] = t;
    }
    if (copy != NULL)
        s->tables = copy;
}

static void pack_funcs(struct packer *p, struct sql_stmt *s)
{
    struct sql_func *copy = pack(p, s->funcs, s->nfuncs * sizeof(*copy));

    for (uint32_t i = 0; i < s->nfuncs; i++) {
        struct sql_func f = s->funcs[i];
        pack_slice(p, &f.catalog);
        pack_slice(p, &f.schema);
        pack_slice(p, &f.name);
        if (copy != NULL)
            copy[i] = f;
    }
    if (copy != NULL)
        s->funcs = copy;
}

static void pack_stmt(struct packer *p, struct sql_stmt *s)
{
    const void *copy;

    pack_tables(p, s);
    pack_funcs(p, s);
    copy = pack(p, s->times, s->ntimes * sizeof(*s->times));
    if (copy != NULL)
        s->times = copy;
    copy = pack(p, s->literals, s->nliterals * sizeof(*s->literals));
    if (copy != NULL)
        s->literals = copy;
    pack_slice(p, &s->tx.name);
    pack_slice(p, &s->set.name);
    pack_slice(p, &s->set.value);
    pack_slice(p, &s->name);
}

/* Copies what `facts` points at into the block, and makes it point there. */
static void pack_facts(struct packer *p, struct sql_facts *facts)
{
    struct sql_stmt *copy = pack(p, facts->stmts, facts->nstmts * sizeof(*copy));

    for (uint32_t i = 0; i < facts->nstmts; i++) {
        struct sql_stmt s = facts->stmts[i];
        pack_stmt(p, &s);
        if (copy != NULL)
            copy[i] = s;
    }
    if (copy != NULL)
        facts->stmts = copy;
}

int sql_facts_copy(struct arena *a, const struct sql_facts *facts, struct sql_facts *out)
{
    struct packer p = {NULL, 0};

    *out = *facts;
    out->verdict = NULL;
    out->traits = NULL;
    if (facts->kept_bytes == 0)
        pack_facts(&p, out);
    p.at = arena_alloc(a, facts->kept_bytes == 0 ? p.used : facts->kept_bytes);
    p.used = 0;
    if (p.at == NULL)
        return -1;
    pack_facts(&p, out);
    return 0;
}

HOT static int same_fingerprint(const struct hash_node *node, const void *key)
{
    const struct sql_fingerprint *fp = key;
    const struct entry *e = (const struct entry *)(const void *)node;

    return e->fp.sum.hi == fp->hi && e->fp.sum.lo == fp->lo;
}

static bool is_cacheable(const struct sql_facts *facts)
{
    if (facts->status != SQL_OK)
        return false;
    for (uint32_t i = 0; i < facts->nstmts; i++) {
        if (facts->stmts[i].flags & SQL_F_LITERAL_DEPENDS)
            return false;
    }
    return true;
}

static void keep(struct sql_cache *c, const struct sql_facts *facts, const struct sqlfp *fp)
{
    struct sql_facts copy = *facts;
    struct packer p = {NULL, 0};
    struct entry *e;
    size_t bytes;

    pack_facts(&p, &copy);
    bytes = sizeof(*e) + p.used;
    if (bytes > c->max_bytes / 4 || c->max_entries == 0)
        return;
    while (c->stats.entries >= c->max_entries || c->stats.bytes + bytes > c->max_bytes) {
        drop(c, LIST_ENTRY(list_last(&c->lru), struct entry, lru));
        c->stats.evictions++;
    }
    e = mem_alloc(bytes);
    e->fp = *fp;
    e->bytes = bytes;
    e->facts = *facts;
    e->verdict = 0;
    e->facts.verdict = &e->verdict;
    e->traits = 0;
    e->facts.traits = &e->traits;
    e->facts.kept_bytes = (uint32_t)p.used;
    p.at = (char *)(e + 1);
    p.used = 0;
    pack_facts(&p, &e->facts);
    hash_table_add(&c->table, &e->node, fp->sum.lo);
    list_push_front(&c->lru, &e->lru);
    c->stats.entries++;
    c->stats.bytes += bytes;
}

/* Looks for a text among those that are kept. NULL: it is not there. */
HOT static uint32_t *find_kept(struct sql_cache *c, struct slice text, struct sql_mould_set *set,
    struct sql_memo_key *key, struct sqlfp *fp)
{
    struct sql_memo_slot *slot;
    struct sql_mould *mould;
    uint64_t layout;

    mould = set == NULL ? NULL : sql_mould_find(set, text, &layout);
    if (mould != NULL) {
        *fp = mould->fp;
        fp->layout ^= layout;
        return mould->note;
    }
    slot = sql_memo_find(&c->memo, text, key);
    if (slot == NULL)
        return NULL;
    *fp = slot->fp;
    return slot->note;
}

/* False when `text` has none. */
static bool find_fingerprint(
    struct sql_cache *c, struct slice text, struct sqlfp *fp, uint32_t **notes)
{
    struct sql_mould_set *set = sql_mould_set_of(&c->moulds, text);
    struct sql_memo_key key;

    *notes = find_kept(c, text, set, &key, fp);
    if (*notes != NULL)
        return true;
    c->asked.p = NULL; /* its notes may become another text's */
    if (sqlfp_text(c->scan, text, false, fp) == -1)
        return false;
    sql_memo_put(&key, fp);
    if (set != NULL)
        sql_mould_put(set, c->scan, text, fp);
    return true;
}

static void read_ends(struct slice text, uint64_t ends[2])
{
    memcpy(&ends[0], text.p, sizeof ends[0]);
    memcpy(&ends[1], text.p + text.n - sizeof ends[1], sizeof ends[1]);
}

static void note_asked(
    struct sql_cache *c, struct slice text, const struct sqlfp *fp, uint32_t *notes)
{
    c->asked.p = text.n < sizeof c->asked.ends[0] ? NULL : text.p;
    c->asked.n = text.n;
    c->asked.sum = fp->sum;
    c->asked.notes = notes;
    if (c->asked.p != NULL)
        read_ends(text, c->asked.ends);
}

static bool is_asked(const struct sql_cache *c, struct slice text)
{
    uint64_t ends[2];

    if (text.p != c->asked.p || text.n != c->asked.n || text.p == NULL)
        return false;
    read_ends(text, ends);
    return ends[0] == c->asked.ends[0] && ends[1] == c->asked.ends[1];
}

HOT int sql_cache_fingerprint(
    struct sql_cache *c, struct slice text, size_t max, struct sql_fingerprint *out)
{
    struct sqlfp fp = {.seed = c->seed};
    uint32_t *notes;

    if (is_asked(c, text)) {
        *out = c->asked.sum;
        return 0;
    }
    if (text.n > max || !find_fingerprint(c, text, &fp, &notes))
        return -1;
    *out = fp.sum;
    return 0;
}

HOT uint32_t *sql_cache_notes(struct sql_cache *c, struct slice text, size_t max)
{
    struct sql_mould_set *set;
    struct sql_mould *mould;
    struct sql_memo_slot *slot;
    struct sql_memo_key key;
    uint64_t layout;

    if (is_asked(c, text))
        return c->asked.notes;
    if (text.n > max)
        return NULL;
    set = sql_mould_set_of(&c->moulds, text);
    mould = set == NULL ? NULL : sql_mould_find(set, text, &layout);
    if (mould != NULL)
        return mould->note;
    slot = sql_memo_find(&c->memo, text, &key);
    return slot == NULL ? NULL : slot->note;
}

HOT const struct sql_facts *sql_cache_get(
    struct sql_cache *c, struct arena *scratch, struct slice text, bool *same_layout)
{
    struct sqlfp fp = {.seed = c->seed};
    uint32_t *notes;
    bool has_fp = find_fingerprint(c, text, &fp, &notes);
    struct hash_node *node =
        has_fp ? hash_table_find(&c->table, fp.sum.lo, same_fingerprint, &fp.sum) : NULL;

    *same_layout = true;
    if (has_fp)
        note_asked(c, text, &fp, notes);
    else
        c->asked.p = NULL;
    if (node != NULL) {
        struct entry *e = (struct entry *)(void *)node;
        c->stats.hits++;
        if (list_first(&c->lru) != &e->lru) {
            list_remove(&e->lru);
            list_push_front(&c->lru, &e->lru);
        }
        *same_layout = e->fp.layout == fp.layout;
        return &e->facts;
    }
    c->stats.misses++;
    (void)sql_parse(scratch, text, &c->last);
    if (has_fp && is_cacheable(&c->last))
        keep(c, &c->last, &fp);
    else
        c->stats.uncacheable++;
    return &c->last;
}

void sql_cache_stats(const struct sql_cache *c, struct sql_cache_stats *out)
{
    *out = c->stats;
}
