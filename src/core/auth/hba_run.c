/* SPDX-License-Identifier: PostgreSQL
 * hba_run.c: matches what hba_are.c has read.
 * Runs in: workers. Of each node it is found out once where what begins at a place may end, so that
 * the time is bounded whatever the expression and the name are: clients choose the names. How a
 * match is divided into groups follows PostgreSQL: each piece takes as much (or, where it prefers
 * that, as little) as leaves the rest a chance, from left to right. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "hba_are.h"

#define RUN_TEXT_MAX  1024   /* names are shorter */
#define RUN_STEPS_MAX 200000 /* of finding ends, and of trying divisions */

typedef uint64_t run_word;
#define RUN_WORD_BITS 64U

struct run {
    const struct hba_are *is;
    const char *text;
    unsigned n;
    unsigned words;  /* of a set of places */
    run_word **ends; /* by node and place; NULL: not known yet */
    struct arena *arena;
    unsigned steps;
    int from[ARE_GROUPS]; /* of groups; -1: took no part */
    int to[ARE_GROUPS];
};

static const run_word *run_ends(struct run *r, const struct are_node *n, unsigned at);

static bool run_is_over(struct run *r)
{
    return ++r->steps > RUN_STEPS_MAX;
}

static void places_add(run_word *set, unsigned at)
{
    set[at / RUN_WORD_BITS] |= (run_word)1 << at % RUN_WORD_BITS;
}

static bool places_has(const run_word *set, unsigned at)
{
    return (set[at / RUN_WORD_BITS] >> at % RUN_WORD_BITS & 1) != 0;
}

static bool places_is_empty(const struct run *r, const run_word *set)
{
    unsigned i;

    for (i = 0; i < r->words; i++)
        if (set[i] != 0)
            return false;
    return true;
}

static void places_join(const struct run *r, const run_word *more, run_word *set)
{
    unsigned i;

    for (i = 0; i < r->words; i++)
        set[i] |= more[i];
}

static run_word *places_new(struct run *r)
{
    return arena_alloc_zero(r->arena, r->words * sizeof(run_word));
}

/* Where `n` may end that begins at one of `from`. */
static void places_follow(
    struct run *r, const struct are_node *n, const run_word *from, run_word *out)
{
    unsigned i;
    run_word left;

    for (i = 0; i < r->words; i++)
        for (left = from[i]; left != 0; left &= left - 1)
            places_join(
                r, run_ends(r, n, i * RUN_WORD_BITS + (unsigned)__builtin_ctzll(left)), out);
}

static bool is_word_at(const struct run *r, unsigned at)
{
    unsigned char c;

    if (at >= r->n)
        return false;
    c = (unsigned char)r->text[at];
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool anchor_holds(const struct run *r, char anchor, unsigned at)
{
    bool before = at > 0 && is_word_at(r, at - 1);
    bool behind = is_word_at(r, at);

    switch (anchor) {
    case 'A':
        return at == 0;
    case 'Z':
        return at == r->n;
    case '^':
        return at == 0 || r->text[at - 1] == '\n';
    case '$':
        return at == r->n || r->text[at] == '\n';
    case '<':
        return !before && behind;
    case '>':
        return before && !behind;
    case 'y':
        return before != behind;
    default: /* Y */
        return before == behind;
    }
}

static bool look_holds(struct run *r, const struct are_node *n, unsigned at)
{
    bool is = false;
    unsigned from;

    if (!n->is_behind)
        is = !places_is_empty(r, run_ends(r, n->left, at));
    for (from = 0; n->is_behind && from <= at && !is; from++)
        is = places_has(run_ends(r, n->left, from), at);
    return is != n->is_not;
}

static void repeat_ends(struct run *r, const struct are_node *n, unsigned at, run_word *out)
{
    run_word *now = places_new(r);
    run_word *then;
    unsigned turn;
    unsigned i;

    places_add(now, at);
    for (turn = 0; turn < n->max; turn++) {
        if (turn >= n->min) { /* go on from what is new only */
            for (i = 0; i < r->words; i++)
                now[i] &= ~out[i];
            places_join(r, now, out);
        }
        if (places_is_empty(r, now) || run_is_over(r))
            return;
        then = places_new(r);
        places_follow(r, n->left, now, then);
        now = then;
    }
    places_join(r, now, out);
}

static void find_ends(struct run *r, const struct are_node *n, unsigned at, run_word *out)
{
    unsigned i;

    switch (n->op) {
    case ARE_EMPTY:
        places_add(out, at);
        break;
    case ARE_SET:
        if (at < r->n && n->set->has[(unsigned char)r->text[at]])
            places_add(out, at + 1);
        break;
    case ARE_CAT:
        places_follow(r, n->right, run_ends(r, n->left, at), out);
        break;
    case ARE_ALT:
        places_join(r, run_ends(r, n->left, at), out);
        places_join(r, run_ends(r, n->right, at), out);
        break;
    case ARE_REPEAT:
        repeat_ends(r, n, at, out);
        break;
    case ARE_ANCHOR:
        if (anchor_holds(r, n->anchor, at))
            places_add(out, at);
        break;
    case ARE_LOOK:
        if (look_holds(r, n, at))
            places_add(out, at);
        break;
    case ARE_ANYTHING:
        for (i = at; i <= r->n; i++)
            places_add(out, i);
        break;
    }
}

static const run_word *run_ends(struct run *r, const struct are_node *n, unsigned at)
{
    run_word **known = &r->ends[n->id * (r->n + 1) + at];
    run_word *out;

    if (*known == NULL) {
        out = places_new(r);
        if (!run_is_over(r))
            find_ends(r, n, at, out);
        *known = out;
    }
    return *known;
}

/* The next end that `t` would take, beginning at `from`, among `low` to `high`; -1: none. */
static int next_end(struct run *r, const struct are_tree *t, int from, int low, int high)
{
    const run_word *ends = run_ends(r, t->re, (unsigned)from);
    bool is_short = (t->flags & ARE_PREFERS_SHORT) != 0;
    int at;

    if (is_short) {
        for (at = low; at <= high; at++)
            if (places_has(ends, (unsigned)at))
                return at;
        return -1;
    }
    for (at = high; at >= low; at--)
        if (places_has(ends, (unsigned)at))
            return at;
    return -1;
}

static void forget(struct run *r, const struct are_tree *t)
{
    const struct are_tree *child;

    if (t->group > 0)
        r->from[t->group] = r->to[t->group] = -1;
    for (child = t->child; child != NULL; child = child->next)
        forget(r, child);
}

static bool divide(struct run *r, const struct are_tree *t, int from, int to);

static bool divide_two(struct run *r, const struct are_tree *t, int from, int to)
{
    const struct are_tree *left = t->child;
    const struct are_tree *right = left->next;
    int low = from;
    int high = to;
    int mid;

    while (!run_is_over(r) && (mid = next_end(r, left, from, low, high)) >= 0) {
        if (places_has(run_ends(r, right->re, (unsigned)mid), (unsigned)to) &&
            divide(r, left, from, mid) && divide(r, right, mid, to))
            return true;
        forget(r, left);
        forget(r, right);
        if ((left->flags & ARE_PREFERS_SHORT) != 0)
            low = mid + 1;
        else
            high = mid - 1;
    }
    return false;
}

static bool is_same_text(const struct run *r, const char *a, const char *b, unsigned n)
{
    return (r->is->ignores_case ? strncasecmp(a, b, n) : memcmp(a, b, n)) == 0;
}

static bool divide_back(const struct run *r, const struct are_tree *t, int from, int to)
{
    unsigned have = (unsigned)(to - from);
    unsigned n = (unsigned)(r->to[t->back] - r->from[t->back]);
    unsigned i;

    if (r->from[t->back] < 0)
        return false;
    if (n == 0 || have == 0)
        return have == 0 && (n == 0 || t->min == 0);
    if (have % n != 0 || have / n < t->min || (t->max != ARE_ENDLESS && have / n > t->max))
        return false;
    for (i = 0; i < have; i += n)
        if (!is_same_text(r, r->text + from + i, r->text + r->from[t->back], n))
            return false;
    return true;
}

static bool divide_either(struct run *r, const struct are_tree *t, int from, int to)
{
    const struct are_tree *child;

    for (child = t->child; child != NULL; child = child->next)
        if (places_has(run_ends(r, child->re, (unsigned)from), (unsigned)to) &&
            divide(r, child, from, to))
            return true;
    return false;
}

/* Divides what `t` matches between the two places; false when back references do not fit. */
static bool divide(struct run *r, const struct are_tree *t, int from, int to)
{
    bool fits = true;

    if (t->op == ARE_TWO)
        fits = divide_two(r, t, from, to);
    else if (t->op == ARE_EITHER)
        fits = divide_either(r, t, from, to);
    else if (t->op == ARE_AROUND)
        fits = divide(r, t->child, from, to);
    else if (t->op == ARE_BACK)
        fits = divide_back(r, t, from, to);
    if (fits && t->group > 0) {
        r->from[t->group] = from;
        r->to[t->group] = to;
    }
    return fits;
}

/* Looks at all ends of what begins at `from`, the preferred one first. */
static bool run_begins(struct run *r, int from)
{
    const struct are_tree *t = r->is->tree;
    int low = from;
    int high = (int)r->n;
    int end;

    while (!run_is_over(r) && (end = next_end(r, t, from, low, high)) >= 0) {
        if (divide(r, t, from, end))
            return true;
        forget(r, t);
        if ((t->flags & ARE_PREFERS_SHORT) != 0)
            low = end + 1;
        else
            high = end - 1;
    }
    return false;
}

enum hba_answer hba_are_match(const struct hba_are *is, struct slice s, struct slice *caught)
{
    struct run r = {.is = is, .text = s.n == 0 ? "" : s.p, .n = (unsigned)s.n};
    bool is_match = false;
    unsigned from;

    if (caught != NULL)
        *caught = slice_of(NULL, 0);
    if (s.n > RUN_TEXT_MAX || (s.n > 0 && memchr(s.p, '\0', s.n) != NULL))
        return HBA_FAIL;
    r.words = r.n / RUN_WORD_BITS + 1;
    memset(r.from, -1, sizeof r.from);
    memset(r.to, -1, sizeof r.to);
    r.arena = arena_new("regex", 0);
    r.ends = arena_alloc_zero(r.arena, (size_t)is->nnodes * (r.n + 1) * sizeof *r.ends);
    for (from = 0; from <= r.n && !is_match; from++)
        is_match = run_begins(&r, (int)from);
    arena_free(&r.arena);
    if (r.steps > RUN_STEPS_MAX)
        return HBA_FAIL;
    if (is_match && caught != NULL && r.from[1] >= 0)
        *caught = slice_of(r.text + r.from[1], (size_t)(r.to[1] - r.from[1]));
    return is_match ? HBA_YES : HBA_NO;
}
