/* SPDX-License-Identifier: PostgreSQL
 * hba_are.h: PostgreSQL's regular expressions: what is read (hba_are.c) and how it is matched
 * (hba_run.c). Nodes live in the arena of the file that the expression is from. */
#ifndef PGP_AUTH_HBA_ARE_H
#define PGP_AUTH_HBA_ARE_H

#include <stdbool.h>

#include "auth/hba.h"
#include "base/arena.h"
#include "base/slice.h"
#include "hba_class.h"

#define ARE_GROUPS        100U
#define ARE_ENDLESS       100000U /* more than any number of an interval, and any text is long */
#define ARE_PREFERS_SHORT 2U      /* of are_tree.flags; the others are hba_are.c's */

enum are_op {
    ARE_EMPTY,
    ARE_SET,
    ARE_CAT, /* left, then right */
    ARE_ALT,
    ARE_REPEAT,
    ARE_ANCHOR,
    ARE_LOOK,
    ARE_ANYTHING /* where a back reference stands */
};

/* What matches. */
struct are_node {
    enum are_op op;
    unsigned id; /* below hba_are.nnodes */
    const struct are_node *left;
    const struct are_node *right;
    const struct hba_set *set;
    unsigned min;
    unsigned max;
    char anchor; /* A Z: of the text, ^ $: of lines, < > y Y: of words */
    bool is_behind;
    bool is_not;
};

enum are_division {
    ARE_WHOLE,  /* nothing in it is of interest */
    ARE_TWO,    /* child, then its next */
    ARE_EITHER, /* one of the children */
    ARE_AROUND, /* the child, which is another group */
    ARE_BACK    /* what group `back` is, min to max times */
};

/* How a match is divided, to know the groups. */
struct are_tree {
    enum are_division op;
    unsigned flags;
    unsigned group; /* its number, or 0 */
    const struct are_node *re;
    struct are_tree *child;
    struct are_tree *next;
    unsigned back;
    unsigned min;
    unsigned max;
};

struct hba_are {
    const struct are_tree *tree;
    unsigned nnodes;
    unsigned ngroups;
    bool ignores_case;
    bool refers_back;
    bool is_vague; /* which part of the match \1 is cannot be told: a quantifier counts it */
};

/* Reads an expression. Returns what is wrong with it, or NULL. */
const char *hba_are_read(const char *text, struct arena *arena, struct hba_are *is);
/* Looks for the first match in `s`. `caught` (may be NULL) gets what \1 is, a view into `s`; its p
 * is NULL when there is no such group, or it took no part. HBA_FAIL: the text is too long to be
 * looked at or has a NUL, or it takes too many steps. */
enum hba_answer hba_are_match(const struct hba_are *is, struct slice s, struct slice *caught);

#endif
