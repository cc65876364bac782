/* SPDX-License-Identifier: PostgreSQL
 * prep.h: prepared statements by content, so that clients share them on a link whatever each of
 * them calls its own. A worker keeps every text once (struct prep); a link has a set of those that
 * the server at its end knows (struct prepset). On the wire a statement is named after its content,
 * so that links can travel between workers. Runs in: workers. Pure. */
#ifndef PGP_BACKEND_PREP_H
#define PGP_BACKEND_PREP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"

#define PREP_ID_BYTES   16
#define PREP_NAME_BYTES (4 + 2 * PREP_ID_BYTES)

/* A server knows names of at most so many bytes: those of more are the same when they begin so. */
#define PREP_MAX_NAME_BYTES 63
static inline struct slice prep_known_name(struct slice name)
{
    return name.n > PREP_MAX_NAME_BYTES ? slice_of(name.p, PREP_MAX_NAME_BYTES) : name;
}

/* What of it is sent: the server refuses a part of a letter (UTF-8), before it cuts the rest off.
 */
static inline struct slice prep_sent_name(struct slice name)
{
    size_t n = prep_known_name(name).n;

    while (n < name.n && n < PREP_MAX_NAME_BYTES + 3 && ((unsigned char)name.p[n] & 0xC0) == 0x80)
        n++;
    return slice_of(name.p, n);
}

static inline bool prep_is_same_name(struct slice a, struct slice b)
{
    return slice_eq(prep_known_name(a), prep_known_name(b));
}

struct prep_store {
    struct hash_table table;
    uint64_t bytes;
};

struct prep {
    struct hash_node node;
    struct prep_store *store;
    uint64_t path_hash; /* what names meant when it was parsed */
    uint32_t refs;
    uint32_t body_len;
    uint8_t id[PREP_ID_BYTES];
    char name[PREP_NAME_BYTES + 1]; /* on links; see prep_need_name */
    uint8_t count;                  /* the session's: enum count_kind */
    bool has_effects;               /* the session's: executing it changes the session's state */
    bool names_one;                 /* the session's: what it returns is another statement's */
    bool is_plain;                  /* the session's: it is a statement that only touches rows */
    bool may_commit;                /* the session's: it runs code that may end its transaction */
    bool runs_code;                 /* the session's: that somebody has made */
    uint8_t kept;                   /* the query cache's: what its text says; 0: not looked at */
    bool keeps_time;                /* the session's: a literal in it is the time of its Parse */
    uint32_t counted;               /* the session's: stmtstats_handle, in its figures */
    uint64_t known;                 /* the router's: by what it is known to be a read; 0: nothing */
    char body[];                    /* of Parse, behind the name: SQL NUL, parameter types */
};

/* An empty store; fini frees it (no statement may be in use). */
void prep_store_init(struct prep_store *store);
/* See prep_store_init. */
void prep_store_fini(struct prep_store *store);
/* Finds or makes the statement with this Parse body (behind the name), counted for the caller;
 * *is_new says whether it was made. */
struct prep *prep_get(
    struct prep_store *store, struct slice body, uint64_t path_hash, bool *is_new);
static inline struct prep *prep_ref(struct prep *p)
{
    p->refs++;
    return p;
}
/* A literal in it becomes the time of its Parse ('now', 'today' and their like): who parses it anew
 * must not get one that was parsed before. Letters that are written as escapes are not seen. */
bool prep_keeps_time(const struct prep *p);
/* Gives up a reference; *pp becomes NULL. NULL is allowed. */
void prep_unref(struct prep **pp);
static inline struct slice prep_sql(const struct prep *p)
{
    return slice_of_str(p->body);
}
/* The parameter types of its Parse, with their count. */
static inline struct slice prep_types(const struct prep *p)
{
    size_t n = prep_sql(p).n + 1;

    return n < p->body_len ? slice_of(p->body + n, p->body_len - n) : slice_of("", 0);
}
/* Makes id and name: most statements never need one. */
void prep_need_name(struct prep *p);
static inline struct slice prep_name(const struct prep *p)
{
    return slice_of(p->name, PREP_NAME_BYTES);
}
/* A Parse message for it, under `name`. */
void prep_put_parse(struct buf *out, const struct prep *p, struct slice name);

/* What one link knows. A zeroed struct is an empty set. */
struct prepset {
    struct prep_known *known; /* those under our names; NULL while there was none */
    struct prep_named *named; /* statements under names that clients gave them (SQL PREPARE) */
};

/* Forgets everything and frees the memory. */
void prepset_clear(struct prepset *s);
static inline bool prepset_is_empty(const struct prepset *s)
{
    return s->known == NULL && s->named == NULL;
}
/* How many it has, those under clients' names not counted. */
uint32_t prepset_count(const struct prepset *s);
/* True when the link knows the statement; it is the most recently used now. */
bool prepset_touch(struct prepset *s, const uint8_t id[PREP_ID_BYTES]);
/* The statement was parsed, perhaps once more: nothing else is known of it. */
void prepset_add(struct prepset *s, const uint8_t id[PREP_ID_BYTES]);
void prepset_remove(struct prepset *s, const uint8_t id[PREP_ID_BYTES]);
/* The server has answered the Parse: not only is it under way. */
void prepset_confirm(struct prepset *s, const uint8_t id[PREP_ID_BYTES]);
bool prepset_is_sure(const struct prepset *s, const uint8_t id[PREP_ID_BYTES]);
/* prepset_touch, and the hash of the columns that it has there, as long as it is there; 0: nobody
 * has asked, or it is not there. */
uint64_t prepset_columns(struct prepset *s, const uint8_t id[PREP_ID_BYTES]);
void prepset_set_columns(struct prepset *s, const uint8_t id[PREP_ID_BYTES], uint64_t columns);
/* When there are more than `limit`: removes the one unused for longest and gives its name. */
bool prepset_evict(struct prepset *s, uint32_t limit, char name[PREP_NAME_BYTES + 1]);
/* In place of the hash of a content: the name may be there or not, with any content. */
#define PREPSET_DOUBTFUL 2
/* Statements under clients' own names: 0 when there is none, else the hash of its content. */
uint64_t prepset_named(const struct prepset *s, struct slice name);
void prepset_set_named(struct prepset *s, struct slice name, uint64_t content);
void prepset_drop_named(struct prepset *s, struct slice name);
/* Nobody knows which of all these are there: each is closed before it is made again. */
void prepset_doubt(struct prepset *s);
/* How many of them. */
uint32_t prepset_count_named(const struct prepset *s);
/* Any one of them, p == NULL when there is none. Valid until it is dropped. */
struct slice prepset_any_named(const struct prepset *s);
/* How many bytes prepset_encode will write, for a link that travels. */
size_t prepset_bytes(const struct prepset *s);
/* Appends all that is known to `out`. */
void prepset_encode(const struct prepset *s, struct buf *out);
/* Adds what an empty set's bytes say; false when they are none of prepset_encode. */
bool prepset_decode(struct prepset *s, struct slice bytes);

#endif
