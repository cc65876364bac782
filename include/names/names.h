/* SPDX-License-Identifier: PostgreSQL
 * names.h: a client's prepared statements and portals by the names that it gave them: what a name
 * means when all works that was sent, and what it means when that fails. A value: it knows neither
 * client nor link, sends nothing, and is told what a link has said. Runs in: workers.
 *
 * A name is put when its message is sent; what became of it is learned from the queue of owed
 * replies, for an error skips the rest of its sequence. */
#ifndef PGP_NAMES_NAMES_H
#define PGP_NAMES_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/prep.h"
#include "base/hash.h"
#include "base/slice.h"

struct err;

/* Statements of the present exchange whose fate is followed; see expect_notes. */
#define NAMES_MAX_PENDING 56
/* How many pending statements stand in the value itself: most sequences have one. */
#define NAMES_FEW_PENDING 4
/* Describes that are watched at a time. What a client is told by others is not known here. */
#define NAMES_MAX_WATCHED 4

/* A prepared statement under the client's name. */
struct names_entry {
    struct hash_node node;
    struct prep *prep; /* of a Parse; NULL: made by PREPARE in SQL */
    char *sql;         /* of such a PREPARE */
    uint64_t content;  /* its hash */
    char *why;         /* an ErrorResponse: such a PREPARE could not be repeated; NULL mostly */
    uint64_t load;     /* the last time that was tried: the loan and the serial of the op */
    uint64_t told;     /* the hash of the columns that the client was told; 0: not known */
    bool is_described; /* the client was told its columns */
    bool was_loaded;   /* the link had it before Close in the present exchange */
    uint32_t len;
    char name[];
};

struct names_set {
    struct hash_table table;
    uint64_t bytes : 48; /* of names and texts; a text that others have, too, counts for each */
    uint64_t nsql : 16;  /* made by PREPARE in SQL */
};

/* What an idle client has of it; all zero: no statement. */
struct names {
    struct names_set *set; /* NULL: none has a name */
    struct prep *unnamed;
};

/* PREPARE, DEALLOCATE or DISCARD ALL in the present exchange: it counts when its tag comes. */
struct names_word {
    struct names_word *next;
    struct names_entry *entry; /* with SQL: what is prepared; else the name that is deallocated, as
                                  an entry; NULL: all are */
    uint32_t serial;           /* of its op */
    uint16_t at;               /* which statement of its string */
};

enum names_pending_kind {
    PENDING_PARSE,
    PENDING_NAME,
    PENDING_UNNAMED,
    PENDING_CLOSED,
    PENDING_SETTLED
};

/* Was the link told of it? Refused, PENDING_UNNAMED alone: by the server, not skipped, or a Query
 * went behind it: what was before it is gone. */
enum names_pending_sent { PENDING_NOT_SENT, PENDING_SENT, PENDING_REFUSED };

/* A Parse or Close whose fate is not known yet. */
struct names_pending {
    uint8_t kind;             /* enum names_pending_kind */
    uint8_t sent;             /* enum names_pending_sent */
    uint32_t serial;          /* of its op */
    struct prep *prep;        /* PENDING_UNNAMED: NULL when it goes */
    struct prep *before;      /* PENDING_UNNAMED: the one that it takes the place of */
    uint64_t before_epoch;    /* PENDING_UNNAMED: what unnamed_epoch was before */
    struct names_entry *name; /* PENDING_NAME: added; PENDING_CLOSED: taken out, ours */
};

/* What a Describe that is watched is of. */
enum names_watched {
    WATCHED_HIS,    /* of a name of the client, who asks */
    WATCHED_OURS,   /* of a name of the client, by a question of ours */
    WATCHED_UNNAMED /* of the unnamed statement; the client asks */
};

/* A Describe whose answer tells the columns of a statement. */
struct names_watch {
    uint32_t serial; /* of its op */
    enum names_watched of;
    struct names_entry *name;
    uint64_t unnamed; /* WATCHED_UNNAMED: stands for its text and types */
};

/* What is under way with the names of a client; all zero but for `names`: nothing is. */
struct names_way {
    struct names *names;
    uint16_t npending;
    uint16_t nuncertain;            /* of those pending: the link may know them or not */
    uint8_t nwatched;               /* of `watched`, on the link of watched_epoch */
    struct names_entry *last_bound; /* valid within one sequence */
    struct names_entry *looked_at;  /* its columns are being asked for; NULL: none's */
    struct names_entry *unloaded;   /* failed a transaction as it was repeated in it */
    struct names_word *words;       /* without their tags, in order */
    uint64_t unnamed_epoch; /* the loan in which the link was told the unnamed one, or that there
                               is none; 0: it may have another client's */
    struct names_pending *pending; /* `few`, or on the heap; NULL: there are none */
    struct names_pending few[NAMES_FEW_PENDING];
    uint64_t watched_epoch;
    struct names_watch watched[NAMES_MAX_WATCHED];
};

/* What a link has said of the exchange, as far as names go. */
struct names_heard {
    struct prepset *preps; /* what it knows, put right here; NULL: it is dead */
    char tx_status;        /* of the link */
};

static inline bool names_are_settled(const struct names_way *w)
{
    return w->pending == NULL && w->words == NULL;
}

/* An entry, not among the names yet. */
struct names_entry *names_entry_new(struct slice name);
/* Frees it; it is not among the names, and nothing under way means it afterwards. */
void names_entry_free(struct names_way *w, struct names_entry *n);
static inline struct slice names_entry_sql(const struct names_entry *n)
{
    return n->prep == NULL ? slice_of_str(n->sql) : prep_sql(n->prep);
}
/* True for one whose Parse was too long to be looked at: its link, which is kept, has it, and
 * nobody could make it again. */
static inline bool names_entry_is_unread(const struct names_entry *n)
{
    return n->prep == NULL && n->sql[0] == '\0';
}

/* NULL: no statement has that name. */
struct names_entry *names_find(const struct names *all, struct slice name);
/* No other one of that name is there. */
void names_put(struct names *all, struct names_entry *n);
void names_take(struct names *all, struct names_entry *n);
static inline unsigned names_nsql(const struct names *all)
{
    return all->set == NULL ? 0 : all->set->nsql;
}
/* The first one, n == NULL, or the next; NULL: no more. None is put in between, and `n` is there.
 */
struct names_entry *names_next(const struct names_set *set, const struct names_entry *n);
/* False when one more statement of so many bytes would be too much; limit == 0: none is. */
bool names_have_room(const struct names *all, int64_t limit, size_t more);
/* True when it would be, with what the client is told. */
bool names_are_full(const struct names *all, int64_t limit, size_t more, struct err *err);

/* Something whose fate is not known yet, of the op with this serial; prep may be NULL. There are
 * fewer than NAMES_MAX_PENDING. */
void names_pending_push(struct names_way *w, enum names_pending_kind kind, struct prep *prep,
    struct names_entry *name, bool sent, uint32_t serial);
/* The op with this serial makes `prep` the unnamed statement of the client, or takes that away
 * (NULL), on the link of this epoch. */
void names_pending_unnamed(struct names_way *w, struct prep *prep, uint32_t serial, uint64_t epoch);
/* An error came in answer to the op with this serial. */
void names_pending_refused(struct names_way *w, uint32_t serial);
/* The unnamed statement is this one instead: the same text, with what was left open said. */
void names_fill_in_unnamed(struct names_way *w, struct prep *prep);
/* A Query goes behind what is pending, which takes the unnamed statement away whatever becomes of
 * that. */
void names_pending_overtaken(struct names_way *w);

/* PREPARE, DEALLOCATE or DISCARD ALL was sent (struct names_word, whose entry is its own). */
void names_word_push(struct names_way *w, struct names_entry *entry, uint32_t serial, uint16_t at);
/* The server has sent the tag of the op with this serial, or of statement `at` of its string (-1:
 * not of a string). What that prepared or deallocated holds, whatever comes behind it, and `preps`
 * knows it. What is pending in front of it has been settled. The unnamed statement stays: it has no
 * name to lose. True when all names are gone by it. */
bool names_note_tag(struct names_way *w, struct prepset *preps, uint32_t serial, int at);

/* What became of the `n` oldest of those pending: bit i of `worked` is that of the i-th. Those of
 * one sequence that came to nothing are undone in reverse order: a Parse behind a Close of the same
 * name goes before that name comes back. */
void names_settle_first(
    struct names_way *w, const struct names_heard *heard, unsigned n, uint64_t worked);
/* The first `n` are going to be sent again, whatever became of them on the link: the names are what
 * they were before. */
void names_undo_first(
    struct names_way *w, const struct names_heard *heard, unsigned n, uint64_t worked);
/* The exchange is over: words without a tag came to nothing for the client, but perhaps not on the
 * link. True when that may know less than heard->preps says. */
bool names_forget_words(struct names_way *w, const struct names_heard *heard);

/* The statement with this content, as the client calls it; p == NULL: none of its own. */
struct slice names_of_content(const struct names_way *w, const char *content_name);
/* The client goes: all of it. */
void names_free(struct names_way *w);

enum names_portal_state {
    PORTAL_IS_THERE,
    PORTAL_IS_NEW,  /* bound in the present exchange */
    PORTAL_IS_OVER, /* executed in it, or another was bound in its place */
    PORTAL_IN_DOUBT /* one of these was in an exchange that failed: it may be there or not */
};

/* A portal of a statement that changes the session when it is executed. */
struct names_portal {
    struct names_portal *next;
    struct prep *prep;
    char *sql;     /* with what was bound; NULL: as it was parsed */
    uint8_t state; /* enum names_portal_state */
    uint32_t len;
    char name[];
};

/* The one that the name means when all works that was sent. */
struct names_portal *names_portal_find(struct names_portal *first, struct slice name);
void names_portals_free(struct names_portal **first);
/* An exchange of an open transaction is over: those that are over go, unless it failed, and nobody
 * knows how far it came. */
void names_portals_settle(struct names_portal **first, bool saw_error);

#endif
