/* SPDX-License-Identifier: PostgreSQL
 * route_text.c: words for classes and reasons, and the little that the router reads in texts by
 * itself. Runs in: workers. */
#include "config.h"

#include "route_int.h"

#include "base/assert.h"

static const char *const reason_text[] = {
#define ROUTE_REASON(sym, text) [ROUTE_R_##sym] = text,
#include "base/hot.h"
#include "route/reasons.def"
#undef ROUTE_REASON
};

const char *route_reason_text(enum route_reason reason)
{
    ASSERT((unsigned)reason < ROUTE_REASON_COUNT);
    return reason_text[reason];
}

const char *route_class_text(enum route_class class)
{
    switch (class) {
    case ROUTE_PRIMARY:
        return "primary";
    case ROUTE_EITHER:
        return "either";
    case ROUTE_SESSION:
        return "session";
    case ROUTE_TX:
        return "transaction";
    }
    UNREACHED();
}

static bool is_blank(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

static bool is_word(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || is_digit(ch) || ch == '_' ||
           (unsigned char)ch >= 0x80;
}

/* Where the comment that begins at `i` ends; `i` when none begins there. Comments nest. */
WARM static size_t comment_end(struct slice s, size_t i)
{
    unsigned depth = 0;

    if (i + 1 >= s.n)
        return i;
    if (s.p[i] == '-' && s.p[i + 1] == '-') {
        while (i < s.n && s.p[i] != '\n' && s.p[i] != '\r')
            i++;
        return i;
    }
    if (s.p[i] != '/' || s.p[i + 1] != '*')
        return i;
    while (i + 1 < s.n) {
        if (s.p[i] == '/' && s.p[i + 1] == '*') {
            depth++;
            i += 2;
        } else if (s.p[i] == '*' && s.p[i + 1] == '/') {
            depth--;
            i += 2;
            if (depth == 0)
                return i;
        } else {
            i++;
        }
    }
    return s.n;
}

static bool is_hint(struct slice comment)
{
    if (comment.n < 4 || comment.p[0] != '/')
        return false;
    comment = slice_of(comment.p + 2, comment.n - 4);
    while (comment.n > 0 && is_blank(comment.p[0]))
        comment = slice_of(comment.p + 1, comment.n - 1);
    while (comment.n > 0 && is_blank(comment.p[comment.n - 1]))
        comment.n--;
    return slice_ieq_str(comment, "no load balance");
}

WARM struct route_lead route_lead_of(struct slice text)
{
    struct route_lead lead = {0};
    size_t i = 0;

    while (i < text.n) {
        size_t end = comment_end(text, i);
        if (end > i) {
            lead.has_comment = true;
            lead.has_hint = lead.has_hint || is_hint(slice_of(text.p + i, end - i));
            i = end;
        } else if (is_blank(text.p[i])) {
            lead.has_blank = lead.has_blank || i == 0;
            i++;
        } else {
            break;
        }
    }
    lead.offset = i;
    return lead;
}

static size_t skip_blanks(struct slice s, size_t i)
{
    while (i < s.n && is_blank(s.p[i]))
        i++;
    return i;
}

/* The argument list behind `i`, when it is one integer, or one and a second argument. */
static int32_t constant_argument(struct slice s, size_t i)
{
    int64_t pid = 0;
    size_t begin;

    i = skip_blanks(s, i);
    if (i >= s.n || s.p[i] != '(')
        return 0;
    i = skip_blanks(s, i + 1);
    begin = i;
    while (i < s.n && is_digit(s.p[i]) && i - begin < 10)
        pid = pid * 10 + (s.p[i++] - '0');
    if (i == begin || pid > INT32_MAX)
        return 0;
    i = skip_blanks(s, i);
    return i < s.n && (s.p[i] == ')' || s.p[i] == ',') ? (int32_t)pid : 0;
}

int32_t route_text_pid(struct slice text)
{
    static const char *const name[] = {"pg_terminate_backend", "pg_cancel_backend"};
    size_t i;
    unsigned k;

    for (i = 0; i < text.n; i++) {
        if (text.p[i] != 'p' && text.p[i] != 'P')
            continue;
        for (k = 0; k < sizeof name / sizeof name[0]; k++) {
            size_t n = strlen(name[k]);
            if (text.n - i > n && strncasecmp(text.p + i, name[k], n) == 0)
                return constant_argument(text, i + n);
        }
    }
    return 0;
}

/* Where the quoted thing that begins at `i` ends. Backslashes count in E'' only: whoever turns
 * standard_conforming_strings off and uses volatile operators has to name them in
 * primary_routing_query_pattern_list. */
static size_t quoted_end(struct slice s, size_t i)
{
    char quote = s.p[i];
    bool is_escape = quote == '\'' && i > 0 && (s.p[i - 1] == 'e' || s.p[i - 1] == 'E') &&
                     (i == 1 || (!is_word(s.p[i - 2]) && s.p[i - 2] != '$'));

    for (i++; i < s.n; i++) {
        if (is_escape && s.p[i] == '\\')
            i++;
        else if (s.p[i] == quote)
            return i + 1;
    }
    return s.n;
}

/* $tag$ ... $tag$, or `i` when no such string begins there. */
static size_t dollar_end(struct slice s, size_t i)
{
    size_t tag = i + 1;
    size_t n;

    if (i > 0 && (is_word(s.p[i - 1]) || s.p[i - 1] == '$'))
        return i;
    while (tag < s.n && is_word(s.p[tag]))
        tag++;
    if (tag >= s.n || s.p[tag] != '$' || (tag > i + 1 && is_digit(s.p[i + 1])))
        return i;
    n = tag + 1 - i;
    for (tag++; tag + n <= s.n; tag++)
        if (memcmp(s.p + tag, s.p + i, n) == 0)
            return tag + n;
    return s.n;
}

/* PostgreSQL's rule: an operator of several characters ends with + or - only if it holds one of
 * the characters that standard SQL has no operators with. */
static size_t operator_end(struct slice s, size_t i)
{
    size_t begin = i;
    bool is_special = false;

    while (i < s.n && s.p[i] != '\0' && strchr("+-*/<>=~!@#%^&|`?", s.p[i]) != NULL) {
        if (comment_end(s, i) > i)
            break;
        is_special = is_special || strchr("~!@#%^&|`?", s.p[i]) != NULL;
        i++;
    }
    while (!is_special && i > begin + 1 && (s.p[i - 1] == '+' || s.p[i - 1] == '-'))
        i--;
    return i;
}

static size_t word_end(struct slice s, size_t i)
{
    if (!is_word(s.p[i]))
        return i;
    while (i < s.n && (is_word(s.p[i]) || s.p[i] == '$'))
        i++;
    return i;
}

/* What begins at `i` ends where? `token->text` is set when it is one. */
static size_t token_end(struct slice s, size_t i, struct route_token *token)
{
    size_t end = s.p[i] == '$' ? dollar_end(s, i) : i;

    if (end > i)
        return end;
    if (s.p[i] == '\'' || s.p[i] == '"') {
        end = quoted_end(s, i);
        token->is_quoted = s.p[i] == '"' && end - i > 2;
        if (token->is_quoted)
            token->text = slice_of(s.p + i + 1, end - i - 2);
        return end;
    }
    end = word_end(s, i);
    if (end == i)
        token->is_operator = (end = operator_end(s, i)) > i;
    if (end > i && !is_digit(s.p[i]))
        token->text = slice_of(s.p + i, end - i);
    return end > i ? end : i + 1;
}

static bool is_bare(const struct route_token *t, const char *word)
{
    return !t->is_quoted && !t->is_operator && slice_ieq_str(t->text, word);
}

/* Where types may stand in a text, as far as the tokens before tell. */
struct type_place {
    struct route_token last[2]; /* the last token, and that before it; a sign has no text */
    char sign;                  /* the last token, when it is one */
    char sign_before;
    unsigned depth;     /* of parentheses */
    unsigned columns;   /* so deep begins a list of columns with their types; 0: none */
    bool opens_columns; /* the last token did, unless a query follows */
};

static bool begins_query(const struct route_token *t)
{
    return is_bare(t, "select") || is_bare(t, "with") || is_bare(t, "values") ||
           is_bare(t, "table") || is_bare(t, "insert") || is_bare(t, "update") ||
           is_bare(t, "delete") || is_bare(t, "merge");
}

/* By "(": AS (a int), AS x (a int), f() x (a int). */
static bool opens_columns(const struct type_place *at)
{
    const struct route_token *t = &at->last[0];

    if (t->text.n == 0 || t->is_operator || begins_query(t) || is_bare(t, "over") ||
        is_bare(t, "filter"))
        return false;
    return is_bare(t, "as") || is_bare(&at->last[1], "as") || at->sign_before == ')';
}

static bool may_be_type(const struct type_place *at)
{
    const struct route_token *t = &at->last[0];

    if (at->sign == ':' || at->sign == '.' || is_bare(t, "as") || is_bare(t, "returning"))
        return true;
    return at->columns > 0 && t->text.n > 0 && !t->is_operator;
}

static void step_over(struct type_place *at, const struct route_token *t, char sign)
{
    if (at->opens_columns && (begins_query(t) || sign == '('))
        at->columns = 0;
    at->opens_columns = sign == '(' && at->columns == 0 && opens_columns(at);
    at->depth += sign == '(';
    if (at->opens_columns || (at->columns == 0 && is_bare(t, "columns")))
        at->columns = at->depth; /* XMLTABLE and JSON_TABLE name their columns up to their ")" */
    if (sign == ')' && at->columns == at->depth)
        at->columns = 0;
    at->depth -= sign == ')' && at->depth > 0;
    at->last[1] = at->last[0];
    at->last[0] = *t;
    at->sign_before = at->sign;
    at->sign = sign;
}

void route_text_tokens(struct slice text, route_token_fn *fn, void *ctx)
{
    struct type_place at = {0};
    size_t i = 0;

    while (i < text.n) {
        struct route_token t = {0};
        size_t end = comment_end(text, i);
        size_t next;

        if (end > i || is_blank(text.p[i])) {
            i = end > i ? end : i + 1;
            continue;
        }
        end = token_end(text, i, &t);
        next = skip_blanks(text, end);
        t.is_behind = may_be_type(&at) || (next < text.n && text.p[next] == '\'');
        step_over(&at, &t, t.text.n == 0 ? text.p[i] : '\0');
        if (t.text.n > 0 && !fn(ctx, &t))
            return;
        i = end;
    }
}

bool route_text_has(struct slice text, const char *word)
{
    size_t n = strlen(word);
    size_t i;

    for (i = 0; i + n <= text.n; i++)
        if ((text.p[i] | 0x20) == word[0] && strncasecmp(text.p + i, word, n) == 0)
            return true;
    return false;
}

static bool begins_with(struct slice text, const char *word)
{
    size_t n = strlen(word);

    return text.n >= n && strncasecmp(text.p, word, n) == 0;
}

/* Behind its first underscore. */
static bool is_rest_of_trace(struct slice text)
{
    static const char *const rests[] = {"replication_origin_session_setup", "backup_start",
        "start_backup", "create_logical_replication_slot", "create_physical_replication_slot",
        "copy_logical_replication_slot", "copy_physical_replication_slot"};
    size_t i;

    for (i = 0; i < sizeof rests / sizeof rests[0]; i++)
        if (begins_with(text, rests[i]))
            return true;
    return false;
}

HOT bool route_leaves_traces(struct slice text)
{
    const char *end = text.p + text.n;
    const char *p = text.n == 0 ? NULL : memchr(text.p, '_', text.n);

    while (p != NULL) {
        struct slice rest = slice_of(p + 1, (size_t)(end - p - 1));

        if (p - text.p >= 2 && (p[-1] | 0x20) == 'g' && (p[-2] | 0x20) == 'p' &&
            is_rest_of_trace(rest))
            return true;
        if (p - text.p >= 6 && (p[-1] | 0x20) == 'k' && begins_with(rest, "connect") &&
            strncasecmp(p - 6, "dblink", 6) == 0)
            return true;
        p = rest.n == 0 ? NULL : memchr(rest.p, '_', rest.n);
    }
    return false;
}
