/* SPDX-License-Identifier: PostgreSQL
 * varset.h: what a session has SET, as a value: an immutable set of name → statement, kept once per
 * worker and counted. A client points at the settings it wants, a link at those it has: whether
 * they are the same is a comparison of two pointers. Runs in: workers. Pure. */
#ifndef PGP_BACKEND_VARSET_H
#define PGP_BACKEND_VARSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/slice.h"

/* A session that sets more than this cannot be moved. */
#define VARSET_MAX_BYTES 16384

/* The role of nobody, as a setting: it is none that was not made, for ALTER ROLE and start-up
 * packets give roles, too. */
#define VARSET_ROLE_NONE "SET ROLE none"

struct varset_store {
    struct hash_table table;
    struct varset *empty;
};

struct varset {
    struct hash_node node;
    struct varset_store *store;
    uint32_t refs;
    uint32_t len;       /* of data */
    uint64_t path_hash; /* of what gives names and literals their meaning: role, search_path,
                           DateStyle, ... */
    uint32_t reads;     /* of what plans are made by that functions keep: see varset_may_read */
    bool is_ascii;
    char data[]; /* "name NUL statement NUL", by name */
};

/* Makes a store with its empty set; fini frees it (no set may be in use). */
void varset_store_init(struct varset_store *store);
void varset_store_fini(struct varset_store *store);
/* The empty set, counted for the caller. */
struct varset *varset_empty(struct varset_store *store);
static inline struct varset *varset_ref(struct varset *v)
{
    v->refs++;
    return v;
}
/* Gives up a reference; *vp becomes NULL. NULL is allowed. */
void varset_unref(struct varset **vp);
/* *vp becomes (a counted reference to) `v`, whatever it was before. */
void varset_assign(struct varset **vp, struct varset *v);
static inline bool varset_is_empty(const struct varset *v)
{
    return v->len == 0;
}
/* Replaces *vp by the set with `name` set by `sql` (one statement, no semicolon). -1 when it would
 * be too large: *vp stays. `name` is folded by the caller. */
int varset_put(struct varset **vp, struct slice name, struct slice sql);
/* Replaces *vp by the set without `name`. */
void varset_drop(struct varset **vp, struct slice name);
/* Replaces *vp by what is left after RESET ALL: role and session authorization stay. */
void varset_reset_all(struct varset **vp);
/* A server keeps plans of functions, and in them what their literals meant when it made them: it
 * looks at them again when search_path or the role changes, but not for DateStyle, TimeZone and
 * others. True when this, a name or a call of set_config(), may set one of these. */
bool varset_may_read(struct slice sql);
/* role, session_authorization */
bool varset_is_identity(struct slice name);
/* The statement that set `name`, or a slice with p == NULL. */
struct slice varset_get(const struct varset *v, struct slice name);
/* Appends the statements (each with its semicolon) that turn a session with `from` into one with
 * `to`. False when the server might refuse one of them although it was accepted before: then
 * nothing else may be sent before they are known to have worked. */
bool varset_diff(const struct varset *from, const struct varset *to, struct buf *sql);
/* The server reads a query as a whole in the encoding of the time: true when what the values of
 * `to` are written in has to be set by a query in front, which is appended. */
bool varset_diff_encoding(const struct varset *from, const struct varset *to, struct buf *sql);
/* A set from the bytes of another one's data (from another worker); counted for the caller. */
struct varset *varset_of_bytes(struct varset_store *store, const char *data, uint32_t len);
/* Quotes a value as SET wants it; false when its meaning would depend on settings (backslash). */
bool varset_quote(struct buf *out, struct slice value);
/* Any value as a string of SQL, whatever settings say of backslashes. Where it has one, its bytes
 * are those that the server gets, as of a start-up packet, whatever the client's encoding. */
void varset_quote_any(struct buf *out, struct slice value);

#endif
