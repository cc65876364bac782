/* SPDX-License-Identifier: PostgreSQL
 * prep.c: statements by content, and which of them a link knows. The name on the wire is a
 * cryptographic hash of the content: two texts never share one. */
#include "config.h"

#include "backend/prep.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"
#include "crypto/crypto.h"
#include "wire/proto.h"
#include "wire/writer.h"

struct prep_key {
    struct slice body;
    uint64_t path_hash;
};

/* A statement that a link knows. */
struct prep_entry {
    struct hash_node node;
    struct list lru;
    uint64_t columns; /* the hash of its result's; 0: not known */
    uint8_t id[PREP_ID_BYTES];
    bool is_sure; /* the server has said so */
};

/* A statement that a link knows under a client's name. */
struct prep_named {
    struct prep_named *next;
    uint64_t content;
    uint32_t len;
    char name[];
};

void prep_store_init(struct prep_store *store)
{
    memset(store, 0, sizeof *store);
    hash_table_init(&store->table);
}

void prep_store_fini(struct prep_store *store)
{
    hash_table_fini(&store->table);
}

static int prep_eq(const struct hash_node *node, const void *key)
{
    const struct prep *p = (const struct prep *)node;
    const struct prep_key *k = key;

    return p->path_hash == k->path_hash && slice_eq(slice_of(p->body, p->body_len), k->body);
}

HOT void prep_need_name(struct prep *p)
{
    uint8_t digest[CRYPTO_SHA256_BYTES];
    struct buf in = {0};
    struct err err;
    int i;

    if (p->name[0] != '\0')
        return;
    buf_put(&in, &p->path_hash, sizeof p->path_hash);
    buf_put(&in, p->body, p->body_len);
    err_clear(&err);
    if (crypto_sha256(buf_slice(&in), digest, &err) == -1) {
        /* A build without OpenSSL: two plain hashes. */
        uint64_t h[2] = {hash_bytes(in.data, in.len, 0x51), hash_bytes(in.data, in.len, 0xA7)};

        memcpy(digest, h, sizeof h);
    }
    buf_free(&in);
    memcpy(p->id, digest, PREP_ID_BYTES);
    memcpy(p->name, "pgp_", 4);
    for (i = 0; i < PREP_ID_BYTES; i++)
        (void)snprintf(p->name + 4 + 2 * i, 3, "%02x", p->id[i]);
}

struct prep *prep_get(struct prep_store *store, struct slice body, uint64_t path_hash, bool *is_new)
{
    struct prep_key k = {body, path_hash};
    uint64_t hash = hash_bytes(body.p, body.n, path_hash);
    struct hash_node *n = hash_table_find(&store->table, hash, prep_eq, &k);
    struct prep *p;

    *is_new = n == NULL;
    if (n != NULL)
        return prep_ref((struct prep *)n);
    p = mem_alloc_zero(sizeof *p + body.n + 1);
    p->store = store;
    p->refs = 1;
    p->path_hash = path_hash;
    p->body_len = (uint32_t)body.n;
    memcpy(p->body, body.p, body.n);
    store->bytes += body.n;
    hash_table_add(&store->table, &p->node, hash);
    return p;
}

static bool is_of_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '$' || (ch & 0x80) != 0;
}

/* A word at `at`, in front of which `nquotes` quotes are, belongs to a literal. A comment may have
 * a quote, too: what follows one at once is always taken for one. */
static bool is_in_literal(struct slice text, size_t at, unsigned nquotes)
{
    while (at > 0 && isspace((unsigned char)text.p[at - 1]))
        at--;
    return nquotes % 2 == 1 || (at > 0 && strchr("'\"{[$", text.p[at - 1]) != NULL);
}

/* One of the words stands at `at`, by itself. */
static bool is_time_at(struct slice text, size_t at)
{
    static const char *const words[] = {"now", "today", "tomorrow", "yesterday"};
    size_t n;
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        n = strlen(words[i]);
        if (at + n <= text.n && strncasecmp(text.p + at, words[i], n) == 0)
            return at + n == text.n || text.p[at + n] == '$' || !is_of_name(text.p[at + n]);
    }
    return false;
}

bool prep_keeps_time(const struct prep *p)
{
    struct slice text = prep_sql(p);
    unsigned nquotes = 0;
    size_t at;

    for (at = 1; at < text.n; at++) {
        nquotes += text.p[at - 1] == '\'';
        if ((text.p[at - 1] == '$' || !is_of_name(text.p[at - 1])) && is_time_at(text, at) &&
            is_in_literal(text, at, nquotes))
            return true;
    }
    return false;
}

HOT void prep_unref(struct prep **pp)
{
    struct prep *p = *pp;

    *pp = NULL;
    if (p == NULL)
        return;
    ASSERT(p->refs > 0);
    if (--p->refs > 0)
        return;
    hash_table_del(&p->store->table, &p->node);
    p->store->bytes -= p->body_len;
    mem_free(p);
}

void prep_put_parse(struct buf *out, const struct prep *p, struct slice name)
{
    uint32_t at = wire_begin(out, FE_PARSE);

    buf_put(out, name.p, name.n);
    buf_put_byte(out, '\0');
    buf_put(out, p->body, p->body_len);
    wire_end(out, at);
}

static uint64_t id_hash(const uint8_t *id)
{
    uint64_t h;

    memcpy(&h, id, sizeof h);
    return h;
}

HOT static int entry_eq(const struct hash_node *node, const void *key)
{
    return memcmp(((const struct prep_entry *)node)->id, key, PREP_ID_BYTES) == 0;
}

struct prep_known {
    struct hash_table table; /* by id */
    struct list lru;         /* least recently used first */
};

static struct prep_entry *newest(const struct prepset *s)
{
    return LIST_ENTRY(list_last(&s->known->lru), struct prep_entry, lru);
}

static struct prep_entry *prepset_find(const struct prepset *s, const uint8_t *id)
{
    if (s->known == NULL)
        return NULL;
    if (list_last(&s->known->lru) != NULL && memcmp(newest(s)->id, id, PREP_ID_BYTES) == 0)
        return newest(s); /* it was looked for just before */
    return (struct prep_entry *)hash_table_find(&s->known->table, id_hash(id), entry_eq, id);
}

static void entry_free(struct prepset *s, struct prep_entry *e)
{
    hash_table_del(&s->known->table, &e->node);
    list_remove(&e->lru);
    mem_free(e);
}

static void forget_known(struct prepset *s)
{
    struct list *n;

    if (s->known == NULL)
        return;
    while ((n = list_first(&s->known->lru)) != NULL)
        entry_free(s, LIST_ENTRY(n, struct prep_entry, lru));
    hash_table_fini(&s->known->table);
    mem_free(s->known);
    s->known = NULL;
}

void prepset_doubt(struct prepset *s)
{
    struct prep_named *p;

    forget_known(s);
    for (p = s->named; p != NULL; p = p->next)
        p->content = PREPSET_DOUBTFUL;
}

void prepset_clear(struct prepset *s)
{
    struct prep_named *named;

    forget_known(s);
    while ((named = s->named) != NULL) {
        s->named = named->next;
        mem_free(named);
    }
}

uint32_t prepset_count(const struct prepset *s)
{
    return s->known == NULL ? 0 : s->known->table.count;
}

HOT bool prepset_touch(struct prepset *s, const uint8_t id[PREP_ID_BYTES])
{
    struct prep_entry *e = prepset_find(s, id);

    if (e == NULL)
        return false;
    if (list_last(&s->known->lru) != &e->lru) {
        list_remove(&e->lru);
        list_push_back(&s->known->lru, &e->lru);
    }
    return true;
}

void prepset_add(struct prepset *s, const uint8_t id[PREP_ID_BYTES])
{
    struct prep_entry *e;

    if (prepset_touch(s, id)) {
        newest(s)->columns = 0;
        return;
    }
    if (s->known == NULL) {
        s->known = mem_alloc_zero(sizeof *s->known);
        hash_table_init(&s->known->table);
        list_init(&s->known->lru);
    }
    e = mem_alloc_zero(sizeof *e);
    memcpy(e->id, id, PREP_ID_BYTES);
    hash_table_add(&s->known->table, &e->node, id_hash(id));
    list_push_back(&s->known->lru, &e->lru);
}

void prepset_confirm(struct prepset *s, const uint8_t id[PREP_ID_BYTES])
{
    struct prep_entry *e = prepset_find(s, id);

    if (e != NULL)
        e->is_sure = true;
}

bool prepset_is_sure(const struct prepset *s, const uint8_t id[PREP_ID_BYTES])
{
    const struct prep_entry *e = prepset_find(s, id);

    return e != NULL && e->is_sure;
}

HOT uint64_t prepset_columns(struct prepset *s, const uint8_t id[PREP_ID_BYTES])
{
    return prepset_touch(s, id) ? newest(s)->columns : 0;
}

void prepset_set_columns(struct prepset *s, const uint8_t id[PREP_ID_BYTES], uint64_t columns)
{
    struct prep_entry *e = prepset_find(s, id);

    if (e != NULL)
        e->columns = columns;
}

void prepset_remove(struct prepset *s, const uint8_t id[PREP_ID_BYTES])
{
    struct prep_entry *e = prepset_find(s, id);

    if (e != NULL)
        entry_free(s, e);
}

bool prepset_evict(struct prepset *s, uint32_t limit, char name[PREP_NAME_BYTES + 1])
{
    struct prep_entry *e;
    int i;

    if (prepset_count(s) <= limit)
        return false;
    e = LIST_ENTRY(list_first(&s->known->lru), struct prep_entry, lru);
    memcpy(name, "pgp_", 4);
    for (i = 0; i < PREP_ID_BYTES; i++)
        (void)snprintf(name + 4 + 2 * i, 3, "%02x", e->id[i]);
    entry_free(s, e);
    return true;
}

uint64_t prepset_named(const struct prepset *s, struct slice name)
{
    const struct prep_named *p;

    for (p = s->named; p != NULL; p = p->next)
        if (prep_is_same_name(slice_of(p->name, p->len), name))
            return p->content;
    return 0;
}

uint32_t prepset_count_named(const struct prepset *s)
{
    const struct prep_named *p;
    uint32_t n = 0;

    for (p = s->named; p != NULL; p = p->next)
        n++;
    return n;
}

struct slice prepset_any_named(const struct prepset *s)
{
    return s->named == NULL ? slice_of(NULL, 0) : slice_of(s->named->name, s->named->len);
}

void prepset_drop_named(struct prepset *s, struct slice name)
{
    struct prep_named **pp = &s->named;
    struct prep_named *p;

    while ((p = *pp) != NULL) {
        if (prep_is_same_name(slice_of(p->name, p->len), name)) {
            *pp = p->next;
            mem_free(p);
            return;
        }
        pp = &p->next;
    }
}

static void named_push(struct prepset *s, struct slice name, uint64_t content)
{
    struct prep_named *p = mem_alloc_zero(sizeof *p + name.n + 1);

    p->content = content;
    p->len = (uint32_t)name.n;
    memcpy(p->name, name.p, name.n);
    p->next = s->named;
    s->named = p;
}

void prepset_set_named(struct prepset *s, struct slice name, uint64_t content)
{
    prepset_drop_named(s, name);
    named_push(s, prep_sent_name(name), content == 0 ? 1 : content);
}

/* ---- a journey: how many are known, these, least recently used first, the clients' names ---- */

struct known_mail {
    uint64_t columns;
    uint8_t id[PREP_ID_BYTES];
};

struct named_mail {
    uint64_t content;
    uint32_t len; /* of the name behind it */
};

size_t prepset_bytes(const struct prepset *s)
{
    size_t n = sizeof(uint32_t) + (size_t)prepset_count(s) * sizeof(struct known_mail);
    const struct prep_named *p;

    for (p = s->named; p != NULL; p = p->next)
        n += sizeof(struct named_mail) + p->len;
    return n;
}

void prepset_encode(const struct prepset *s, struct buf *out)
{
    uint32_t count = prepset_count(s);
    const struct prep_named *p;
    struct list *n;

    buf_put(out, &count, sizeof count);
    if (s->known != NULL)
        LIST_FOREACH(n, &s->known->lru)
        {
            const struct prep_entry *e = LIST_ENTRY(n, struct prep_entry, lru);
            struct known_mail k = {.columns = e->columns};

            memcpy(k.id, e->id, PREP_ID_BYTES);
            buf_put(out, &k, sizeof k);
        }
    for (p = s->named; p != NULL; p = p->next) {
        struct named_mail m = {.content = p->content, .len = p->len};

        buf_put(out, &m, sizeof m);
        buf_put(out, p->name, p->len);
    }
}

static bool take_bytes(struct slice *from, void *to, size_t n)
{
    if (from->n < n)
        return false;
    memcpy(to, from->p, n);
    *from = slice_of(from->p + n, from->n - n);
    return true;
}

bool prepset_decode(struct prepset *s, struct slice bytes)
{
    struct known_mail k;
    struct named_mail m;
    uint32_t count;

    if (!take_bytes(&bytes, &count, sizeof count))
        return false;
    while (count-- > 0) {
        if (!take_bytes(&bytes, &k, sizeof k))
            return false;
        prepset_add(s, k.id);
        prepset_set_columns(s, k.id, k.columns);
        prepset_confirm(s, k.id); /* a link that owes answers does not travel */
    }
    while (bytes.n > 0) {
        if (!take_bytes(&bytes, &m, sizeof m) || bytes.n < m.len)
            return false;
        named_push(s, slice_of(bytes.p, m.len), m.content);
        bytes = slice_of(bytes.p + m.len, bytes.n - m.len);
    }
    return true;
}
