/* SPDX-License-Identifier: PostgreSQL
 * hba_are_int.h: what the two files that read regular expressions share. */
#ifndef PGP_AUTH_HBA_ARE_INT_H
#define PGP_AUTH_HBA_ARE_INT_H

#include "hba_are.h"

struct are {
    const char *p; /* what comes next */
    struct arena *arena;
    struct hba_are *is;
    const char *problem;
    bool is_literal;    /* (?q) */
    bool is_expanded;   /* (?x) */
    bool newline_stops; /* (?p): . and [^x] do not go over the end of a line */
    bool knows_lines;   /* (?w): ^ and $ are at each */
    bool is_looking;    /* within look-around: nothing is caught */
    unsigned product;   /* of the intervals */
    unsigned depth;
    bool is_closed[ARE_GROUPS]; /* may be referred back to */
};

enum esc_kind { ESC_CHAR, ESC_CLASS, ESC_ANCHOR, ESC_BACK };

struct esc {
    enum esc_kind kind;
    uint32_t c;       /* the character, the anchor or the number of the group */
    const char *text; /* the class's name */
    bool is_complement;
};

/* Notes the first problem; always false. */
bool hba_are_fail(struct are *a, const char *problem);
/* Reads what is behind a backslash. */
bool hba_are_escape(struct are *a, struct esc *e);
/* Reads what is behind "[", with its end, into *s. */
bool hba_are_bracket(struct are *a, struct hba_set *s);
/* Adds a class, or all that is not in it. */
bool hba_are_class(struct are *a, struct slice name, bool is_complement, struct hba_set *s);

#endif
