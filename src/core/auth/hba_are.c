/* SPDX-License-Identifier: PostgreSQL
 * hba_are.c: reads PostgreSQL's advanced regular expressions into nodes for hba_run.c.
 * Runs in: workers, supervisor (checking). The C library's expressions are not these: it has no
 * look-around, catches other parts, takes ^ within for something else; decisions/0014 says why
 * there is an engine of our own. Names are bytes, as they are to PostgreSQL while it authenticates.
 * Must never: let an expression mean something else than in PostgreSQL; the oracle is
 * test/proto/auth/test_hba_regex.py. */
#include "config.h"

#include "hba_are_int.h"

#include <string.h>

#define ARE_MAX_BYTES  1000
#define ARE_MAX_DEPTH  8
#define ARE_MAX_BOUND  255U  /* of an interval, as in PostgreSQL */
#define ARE_MAX_REPEAT 1000U /* all bounds of intervals multiplied */

/* What a piece prefers, and what is in it: PostgreSQL decides by this how a match is divided. */
#define PREFERS_LONG  1U
#define PREFERS_SHORT ARE_PREFERS_SHORT
#define PREFERS       (PREFERS_LONG | PREFERS_SHORT)
#define HAS_BOTH      4U /* pieces of both kinds */
#define HAS_GROUP     8U
#define HAS_BACK      16U
#define HAS_PARTS     (HAS_BOTH | HAS_GROUP | HAS_BACK)

static const char too_complex[] = "the expression is too complex";
static const char bad_operand[] = "quantifier operand invalid";
static const char bad_interval[] = "invalid repetition count(s)";
static const char bad_parens[] = "parentheses () not balanced";

/* An atom with what is behind it. */
struct item {
    struct item *next;
    const struct are_node *re; /* counted */
    struct are_tree *tree;     /* of the atom alone; NULL: one '=' */
    unsigned flags;            /* of the atom */
    unsigned prefers;          /* its quantifier */
    bool is_counted;
    bool is_part; /* a group that captures, or a back reference: it stands for itself */
};

static struct are_tree *take_alternatives(struct are *a);

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- nodes ---- */

static struct are_node *node_new(struct are *a, enum are_op op)
{
    struct are_node *n = arena_alloc_zero(a->arena, sizeof *n);

    n->op = op;
    n->id = a->is->nnodes++;
    return n;
}

static const struct are_node *node_two(
    struct are *a, enum are_op op, const struct are_node *left, const struct are_node *right)
{
    struct are_node *n;

    if (op == ARE_CAT && left->op == ARE_EMPTY)
        return right;
    n = node_new(a, op);
    n->left = left;
    n->right = right;
    return n;
}

static const struct are_node *node_set(struct are *a, const struct hba_set *s)
{
    struct are_node *n = node_new(a, ARE_SET);
    struct hba_set *kept = arena_alloc_zero(a->arena, sizeof *kept);

    *kept = *s;
    n->set = kept;
    return n;
}

static const struct are_node *node_char(struct are *a, uint32_t c)
{
    struct hba_set s = {{0}};

    hba_set_add_range(&s, c, c); /* above 255: nothing, no name has such a byte */
    if (a->is->ignores_case)
        hba_set_ignore_case(&s);
    return node_set(a, &s);
}

static const struct are_node *node_anchor(struct are *a, char c)
{
    struct are_node *n = node_new(a, ARE_ANCHOR);

    n->anchor = c;
    if (!a->knows_lines && (c == '^' || c == '$'))
        n->anchor = c == '^' ? 'A' : 'Z';
    return n;
}

/* ---- how a match is divided ---- */

/* What is seen of flags from above. */
static unsigned flags_up(unsigned f)
{
    return (f & HAS_PARTS) | ((f & PREFERS) == PREFERS ? HAS_BOTH : 0);
}

/* The first that prefers something decides. */
static unsigned flags_of_two(unsigned f, unsigned g)
{
    return flags_up(f | g) | ((f & PREFERS) != 0 ? f & PREFERS : g & PREFERS);
}

static struct are_tree *tree_new(
    struct are *a, enum are_division op, unsigned flags, const struct are_node *re)
{
    struct are_tree *t = arena_alloc_zero(a->arena, sizeof *t);

    t->op = op;
    t->flags = flags;
    t->re = re;
    return t;
}

static struct are_tree *tree_two(
    struct are *a, unsigned flags, struct are_tree *left, struct are_tree *right)
{
    struct are_tree *t = tree_new(a, ARE_TWO, flags, node_two(a, ARE_CAT, left->re, right->re));

    t->child = left;
    left->next = right;
    return t;
}

/* The groups of what is counted are not followed: which turn they are from is not known here. */
static void forget_groups(struct are *a, const struct are_tree *t)
{
    const struct are_tree *child;

    if (t->group > 0) {
        a->is_closed[t->group] = false;
        a->is->is_vague |= t->group == 1;
    }
    for (child = t->child; child != NULL; child = child->next)
        forget_groups(a, child);
}

/* The atom with its quantifier. */
static struct are_tree *tree_of_item(struct are *a, const struct item *it)
{
    unsigned own = it->flags & (PREFERS | HAS_BOTH);
    struct are_tree *t = it->tree;

    if (t != NULL && t->op == ARE_BACK) {
        t->flags |= flags_of_two(it->prefers, t->flags);
        return t;
    }
    if (!it->is_counted && (it->prefers == 0 || own == 0 || own == it->prefers))
        return t != NULL ? t : tree_new(a, ARE_WHOLE, it->flags, it->re);
    if ((it->flags & HAS_BACK) != 0)
        (void)hba_are_fail(a, "a quantifier behind a group with a back reference is not supported");
    if (!it->is_counted && (it->flags & HAS_GROUP) != 0)
        (void)hba_are_fail(a, "{1,1} behind a group is not supported");
    return tree_new(a, ARE_WHOLE, flags_of_two(it->prefers, it->flags), it->re);
}

/* Pieces that agree in what they prefer are one; where that ends, the rest is divided from it. */
static struct are_tree *tree_of_branch(struct are *a, const struct item *it)
{
    const struct are_node *prefix = node_new(a, ARE_EMPTY);
    bool is_vacuous = true;
    unsigned top = 0;
    unsigned both;
    struct are_tree *atom;
    struct are_tree *rest;

    for (; it != NULL; it = it->next) {
        both = top | it->prefers | it->flags;
        if (it->is_part || (flags_up(both) & HAS_PARTS) != 0)
            break;
        prefix = node_two(a, ARE_CAT, prefix, it->re);
        is_vacuous = false;
        top = both;
    }
    if (it == NULL)
        return tree_new(a, ARE_WHOLE, top, prefix);
    atom = tree_of_item(a, it);
    both = flags_of_two(it->prefers, it->flags);
    if (it->next == NULL) {
        top |= flags_of_two(top, atom->flags);
        return is_vacuous ? atom : tree_two(a, top, tree_new(a, ARE_WHOLE, top, prefix), atom);
    }
    rest = tree_of_branch(a, it->next);
    both |= flags_of_two(both, rest->flags);
    if (is_vacuous)
        return tree_two(a, flags_of_two(top, both), atom, rest);
    if (atom->op == ARE_WHOLE && rest->op == ARE_WHOLE && atom->group == 0 && rest->group == 0 &&
        (flags_up(atom->flags | rest->flags) & HAS_PARTS) == 0)
        rest = tree_new(a, ARE_WHOLE, flags_of_two(atom->flags, rest->flags),
            node_two(a, ARE_CAT, atom->re, rest->re));
    else
        rest = tree_two(a, both, atom, rest);
    return tree_two(a, top | flags_of_two(top, both), tree_new(a, ARE_WHOLE, top, prefix), rest);
}

/* ---- groups ---- */

/* What is between parentheses, up to and with the closing one. */
static struct are_tree *take_inner(struct are *a)
{
    struct are_tree *t;

    if (++a->depth > ARE_MAX_DEPTH) {
        (void)hba_are_fail(a, too_complex);
        return NULL;
    }
    t = take_alternatives(a);
    a->depth--;
    if (a->problem == NULL && *a->p != ')')
        (void)hba_are_fail(a, bad_parens);
    if (a->problem != NULL)
        return NULL;
    a->p++;
    return t;
}

/* Behind "(?", at what says that it is look-around. */
static const struct are_node *take_look(struct are *a)
{
    struct are_node *n = node_new(a, ARE_LOOK);
    bool was_looking = a->is_looking;
    struct are_tree *t;

    n->is_behind = *a->p == '<';
    a->p += n->is_behind;
    n->is_not = *a->p == '!';
    if (*a->p != '=' && *a->p != '!') {
        (void)hba_are_fail(a, bad_operand);
        return NULL;
    }
    a->p++;
    a->is_looking = true;
    t = take_inner(a);
    a->is_looking = was_looking;
    n->left = t == NULL ? NULL : t->re;
    return n;
}

/* Behind "(": a group that captures. */
static struct are_tree *take_capture(struct are *a)
{
    unsigned number = ++a->is->ngroups;
    struct are_tree *t;
    struct are_tree *outer;

    if (number >= ARE_GROUPS) {
        (void)hba_are_fail(a, too_complex);
        return NULL;
    }
    t = take_inner(a);
    if (t == NULL)
        return NULL;
    if (t->group > 0) { /* ((x)) */
        outer = tree_new(a, ARE_AROUND, t->flags, t->re);
        outer->child = t;
        t = outer;
    }
    t->flags |= HAS_GROUP;
    t->group = number;
    a->is_closed[number] = true;
    return t;
}

static void take_back(struct are *a, uint32_t number, struct item *it)
{
    if (number > a->is->ngroups || a->is_looking) {
        (void)hba_are_fail(a, "invalid backreference number");
        return;
    }
    if (!a->is_closed[number]) {
        (void)hba_are_fail(a,
            "a back reference to a group that is open, or that a quantifier counts, is not "
            "supported");
        return;
    }
    it->re = node_new(a, ARE_ANYTHING);
    it->tree = tree_new(a, ARE_BACK, HAS_BACK, it->re);
    it->tree->back = number;
    it->tree->min = it->tree->max = 1;
    it->flags = HAS_BACK;
    it->is_part = true;
    a->is->refers_back = true;
}

/* ---- quantifiers ---- */

static void skip_blanks(struct are *a)
{
    while (a->is_expanded && (is_space(*a->p) || *a->p == '#')) {
        if (*a->p == '#')
            a->p += strcspn(a->p, "\n");
        else
            a->p++;
    }
}

/* Comments as well. */
static void skip_nothings(struct are *a)
{
    for (;;) {
        skip_blanks(a);
        if (strncmp(a->p, "(?#", 3) != 0)
            return;
        a->p += strcspn(a->p, ")");
        a->p += *a->p == ')';
    }
}

static bool take_bound(struct are *a, unsigned *out)
{
    unsigned v = 0;

    if (!is_digit(*a->p))
        return hba_are_fail(a, bad_interval);
    for (; is_digit(*a->p); skip_blanks(a)) {
        v = v * 10 + (unsigned)(*a->p++ - '0');
        if (v > ARE_MAX_BOUND)
            return hba_are_fail(a, bad_interval);
    }
    *out = v;
    return true;
}

/* Behind "{", at a digit. */
static bool take_interval(struct are *a, unsigned *min, unsigned *max, bool *is_exact)
{
    *is_exact = true;
    if (!take_bound(a, min))
        return false;
    *max = *min;
    if (*a->p == ',') {
        *is_exact = false;
        a->p++;
        skip_blanks(a);
        *max = ARE_ENDLESS;
        if (*a->p != '}' && !take_bound(a, max))
            return false;
    }
    if (*a->p != '}' || *max < *min)
        return hba_are_fail(a, bad_interval);
    a->p++;
    if (*max != ARE_ENDLESS)
        a->product *= *max > 1 ? *max : 1;
    return a->product <= ARE_MAX_REPEAT || hba_are_fail(a, too_complex);
}

/* True when a brace is a quantifier: without a number it is a character like others. */
static bool is_interval(struct are *a)
{
    const char *start = a->p;
    bool is;

    if (*a->p != '{')
        return false;
    a->p++;
    skip_blanks(a);
    is = is_digit(*a->p);
    if (!is)
        a->p = start;
    return is;
}

static void item_count(struct are *a, struct item *it, unsigned min, unsigned max, unsigned prefers)
{
    struct are_node *n;

    it->prefers = prefers;
    it->is_counted = min != 1 || max != 1;
    if (max == 0) { /* as if it were not there */
        if (it->tree != NULL)
            forget_groups(a, it->tree);
        *it = (struct item){.re = node_new(a, ARE_EMPTY)};
    } else if (it->tree != NULL && it->tree->op == ARE_BACK) {
        it->tree->min = min;
        it->tree->max = max;
    } else if (it->is_counted) {
        if (it->tree != NULL)
            forget_groups(a, it->tree);
        n = node_new(a, ARE_REPEAT);
        n->left = it->re;
        n->min = min;
        n->max = max;
        it->re = n;
    }
}

static void take_quantifier(struct are *a, struct item *it)
{
    unsigned min = *a->p == '+';
    unsigned max = *a->p == '?' ? 1 : ARE_ENDLESS;
    bool is_exact = false;
    bool is_short;

    if (is_interval(a)) {
        if (!take_interval(a, &min, &max, &is_exact))
            return;
    } else if (*a->p != '\0' && strchr("*+?", *a->p) != NULL) {
        a->p++;
    } else {
        return;
    }
    is_short = *a->p == '?';
    a->p += is_short;
    item_count(a, it, min, max, is_exact ? 0 : is_short ? PREFERS_SHORT : PREFERS_LONG);
}

/* ---- atoms ---- */

static bool take_backslash(struct are *a, struct item *it)
{
    struct hba_set s = {{0}};
    struct esc e;

    if (!hba_are_escape(a, &e))
        return false;
    switch (e.kind) {
    case ESC_CHAR:
        it->re = node_char(a, e.c);
        break;
    case ESC_CLASS:
        if (hba_are_class(a, slice_of_str(e.text), e.is_complement, &s))
            it->re = node_set(a, &s);
        break;
    case ESC_ANCHOR:
        it->re = node_anchor(a, (char)e.c);
        return false;
    case ESC_BACK:
        take_back(a, e.c, it);
        break;
    }
    return true;
}

/* Behind "(". */
static bool take_group(struct are *a, struct item *it)
{
    if (a->p[0] == '?' && a->p[1] != ':') {
        a->p++;
        it->re = take_look(a);
        return false;
    }
    if (a->p[0] == '?' || a->is_looking) {
        a->p += a->p[0] == '?' ? 2 : 0;
        it->tree = take_inner(a);
    } else {
        it->tree = take_capture(a);
        it->is_part = true;
    }
    if (it->tree != NULL) {
        it->re = it->tree->re;
        it->flags = it->tree->flags;
    }
    return true;
}

/* One atom; false when no quantifier may follow. */
static bool take_atom(struct are *a, struct item *it)
{
    struct hba_set s;
    char c = *a->p++;

    switch (c) {
    case '(':
        return take_group(a, it);
    case '*':
    case '+':
    case '?':
        (void)hba_are_fail(a, bad_operand);
        return false;
    case '[':
        if (strncmp(a->p, "[:<:]]", 6) == 0 || strncmp(a->p, "[:>:]]", 6) == 0) {
            it->re = node_anchor(a, a->p[2]);
            a->p += 6;
            return false;
        }
        if (hba_are_bracket(a, &s))
            it->re = node_set(a, &s);
        return true;
    case '.':
        memset(&s, true, sizeof s);
        s.has['\n'] = !a->newline_stops;
        it->re = node_set(a, &s);
        return true;
    case '^':
    case '$':
        it->re = node_anchor(a, c);
        return false;
    case '\\':
        return take_backslash(a, it);
    default:
        a->p--;
        if (is_interval(a))
            (void)hba_are_fail(a, bad_operand);
        else
            it->re = node_char(a, (unsigned char)*a->p++);
        return true;
    }
}

static struct are_tree *take_branch(struct are *a)
{
    struct item *first = NULL;
    struct item **last = &first;
    struct item *it;

    for (;;) {
        skip_nothings(a);
        if (a->problem != NULL || *a->p == '\0' || *a->p == '|' || *a->p == ')')
            break;
        it = arena_alloc_zero(a->arena, sizeof *it);
        if (take_atom(a, it) && a->problem == NULL) {
            skip_nothings(a);
            take_quantifier(a, it);
        }
        *last = it;
        last = &it->next;
    }
    return a->problem != NULL ? NULL : tree_of_branch(a, first);
}

static struct are_tree *take_alternatives(struct are *a)
{
    struct are_tree *all = tree_new(a, ARE_EITHER, PREFERS_LONG, NULL);
    struct are_tree **last = &all->child;

    for (;;) {
        *last = take_branch(a);
        if (*last == NULL)
            return NULL;
        all->re = all->re == NULL ? (*last)->re : node_two(a, ARE_ALT, all->re, (*last)->re);
        all->flags |= flags_up(all->flags | (*last)->flags);
        if (*a->p != '|')
            break;
        a->p++;
        last = &(*last)->next;
    }
    if (all->child->next == NULL)
        return all->child;
    if ((all->flags & HAS_PARTS) == 0) {
        all->op = ARE_WHOLE;
        all->child = NULL;
    }
    return all;
}

/* ---- what stands in front ---- */

/* One letter of "(?...)" at the beginning. */
static bool take_option(struct are *a, char c)
{
    switch (c) {
    case 'c':
    case 'i':
        a->is->ignores_case = c == 'i';
        return true;
    case 'm':
    case 'n':
    case 's':
        a->newline_stops = a->knows_lines = c != 's';
        return true;
    case 'p':
        a->newline_stops = true;
        a->knows_lines = false;
        return true;
    case 'w':
        a->newline_stops = false;
        a->knows_lines = true;
        return true;
    case 'q':
        a->is_literal = true;
        return true;
    case 't':
    case 'x':
        a->is_expanded = c == 'x';
        return true;
    case 'b':
    case 'e':
        return hba_are_fail(a, "the options b and e are not supported");
    default:
        return hba_are_fail(a, "invalid embedded option");
    }
}

static bool take_prefix(struct are *a)
{
    if (strncmp(a->p, "***=", 4) == 0) {
        a->is_literal = true;
        a->p += 4;
        return true;
    }
    if (strncmp(a->p, "***:", 4) == 0)
        a->p += 4;
    if (a->p[0] != '(' || a->p[1] != '?' || !is_letter(a->p[2]))
        return true;
    for (a->p += 2; is_letter(*a->p); a->p++)
        if (!take_option(a, *a->p))
            return false;
    return *a->p++ == ')' || hba_are_fail(a, "invalid embedded option");
}

static struct are_tree *take_literal(struct are *a)
{
    const struct are_node *re = node_new(a, ARE_EMPTY);

    for (; *a->p != '\0'; a->p++)
        re = node_two(a, ARE_CAT, re, node_char(a, (unsigned char)*a->p));
    return tree_new(a, ARE_WHOLE, 0, re);
}

const char *hba_are_read(const char *text, struct arena *arena, struct hba_are *is)
{
    struct are a = {.p = text, .arena = arena, .is = is, .product = 1};

    memset(is, 0, sizeof *is);
    if (strlen(text) > ARE_MAX_BYTES)
        return "the expression is too long";
    if (!take_prefix(&a))
        return a.problem;
    is->tree = a.is_literal ? take_literal(&a) : take_alternatives(&a);
    if (a.problem == NULL && *a.p != '\0')
        (void)hba_are_fail(&a, bad_parens);
    return a.problem;
}
