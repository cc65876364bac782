/* SPDX-License-Identifier: PostgreSQL
 * hba_lex.c: pool_hba.conf and pg_ident.conf as lines of fields of tokens, with quotes, comments,
 * continued lines, include lines and @file. */
#include "config.h"

#include "hba_int.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "passwd_int.h"

/* Where we are: one file, one logical line. */
struct cursor {
    struct hba_lex *lx;
    const char *file;
    unsigned line;
    unsigned depth;
    const char *p;
    const char *end;
};

/* A growing list of tokens. */
struct tokens {
    struct hba_token *item;
    unsigned n;
    unsigned cap;
};

static void read_path(struct hba_lex *lx, const char *path, unsigned depth,
    const struct cursor *from, struct tokens *names);

void hba_lex_init(struct hba_lex *lx, unsigned flags, hba_report_fn *report, void *ctx)
{
    memset(lx, 0, sizeof *lx);
    lx->arena = arena_new("hba", 0);
    lx->flags = flags;
    lx->report = report;
    lx->ctx = ctx;
    lx->last = &lx->first;
}

void hba_complain(struct hba_lex *lx, const char *file, unsigned line, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    lx->nerrors++;
    if (lx->report == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    lx->report(file, line, text, lx->ctx);
}

static void tokens_add(struct hba_lex *lx, struct tokens *list, struct hba_token t)
{
    struct hba_token *wider;

    if (list->n == list->cap) {
        list->cap = list->cap == 0 ? 4 : list->cap * 2;
        wider = arena_alloc(lx->arena, list->cap * sizeof *wider);
        if (list->n > 0)
            memcpy(wider, list->item, list->n * sizeof *wider);
        list->item = wider;
    }
    list->item[list->n++] = t;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next token; false at the end of the line. *comma tells that a comma follows, so that
 * the field goes on. Quotes may open anywhere in a token; a doubled quote inside is a quote. */
static bool next_token(struct cursor *c, struct hba_token *t, bool *comma)
{
    struct buf text = {0};
    bool in_quote = false;

    *comma = false;
    while (c->p < c->end && (is_blank(*c->p) || *c->p == ','))
        c->p++;
    if (c->p == c->end || *c->p == '#')
        return false;
    t->quoted = *c->p == '"';
    t->regex = NULL;
    for (; c->p < c->end; c->p++) {
        if (*c->p == '"' && in_quote && c->p + 1 < c->end && c->p[1] == '"') {
            buf_put_byte(&text, '"');
            c->p++;
        } else if (*c->p == '"') {
            in_quote = !in_quote;
        } else if (!in_quote && (is_blank(*c->p) || *c->p == ',' || *c->p == '#')) {
            break;
        } else {
            buf_put_byte(&text, *c->p);
        }
    }
    if (in_quote)
        hba_complain(c->lx, c->file, c->line, "unterminated quoted string");
    if (c->p < c->end && *c->p == ',') {
        *comma = true;
        c->p++;
    }
    t->n = text.len;
    t->text = arena_strndup(c->lx->arena, text.data, text.len);
    buf_free(&text);
    return true;
}

/* Name of a file as the including file means it: relative to its own folder. */
static const char *path_of(const struct cursor *c, const char *name)
{
    const char *slash = strrchr(c->file, '/');

    if (name[0] == '/' || slash == NULL)
        return name;
    return arena_printf(c->lx->arena, "%.*s/%s", (int)(slash - c->file), c->file, name);
}

/* Adds a token, or the tokens of the file that it names. */
static void add_or_expand(struct cursor *c, struct tokens *list, struct hba_token t)
{
    if (t.quoted || t.text[0] != '@' || t.n < 2) {
        tokens_add(c->lx, list, t);
        return;
    }
    read_path(c->lx, path_of(c, t.text + 1), c->depth + 1, c, list);
}

/* Takes one field: tokens joined by commas. */
static bool next_field(struct cursor *c, struct tokens *list)
{
    struct hba_token t;
    bool comma = true;
    bool any = false;

    memset(list, 0, sizeof *list);
    while (comma && next_token(c, &t, &comma)) {
        any = true;
        add_or_expand(c, list, t);
    }
    return any;
}

static int name_cmp(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_conf_name(const char *name)
{
    size_t n = strlen(name);

    return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".conf") == 0;
}

static void include_dir(struct cursor *c, const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    char **name = NULL;
    size_t n = 0;
    size_t i;

    if (dir == NULL) {
        hba_complain(
            c->lx, c->file, c->line, "could not open directory \"%s\": %s", path, strerror(errno));
        return;
    }
    while (n < HBA_FILES_MAX && (e = readdir(dir)) != NULL) {
        if (!is_conf_name(e->d_name))
            continue;
        name = mem_resize(name, (n + 1) * sizeof *name);
        name[n++] = arena_printf(c->lx->arena, "%s/%s", path, e->d_name);
    }
    closedir(dir);
    if (n > 1)
        qsort(name, n, sizeof *name, name_cmp);
    for (i = 0; i < n; i++)
        read_path(c->lx, name[i], c->depth + 1, c, NULL);
    mem_free(name);
}

/* Acts on an include line; false when it is not one. */
static bool take_include(struct cursor *c, const struct hba_field *field, unsigned n)
{
    const struct hba_token *word = &field[0].token[0];
    const char *path;
    bool is_dir = hba_token_is(word, "include_dir");
    bool if_exists = hba_token_is(word, "include_if_exists");

    if (!is_dir && !if_exists && !hba_token_is(word, "include"))
        return false;
    if (n != 2 || field[1].n != 1) {
        hba_complain(c->lx, c->file, c->line, "\"%s\" takes exactly one name", word->text);
        return true;
    }
    if ((c->lx->flags & HBA_NO_FILES) != 0) {
        hba_complain(c->lx, c->file, c->line, "files cannot be included here");
        return true;
    }
    path = path_of(c, field[1].token[0].text);
    if (is_dir)
        include_dir(c, path);
    else
        read_path(c->lx, path, c->depth + 1, if_exists ? NULL : c, NULL);
    return true;
}

/* Reads one logical line into the list, or acts on it. */
static void take_line(struct cursor *c, struct tokens *names)
{
    struct hba_field *field = NULL;
    struct hba_field *wider;
    struct tokens list;
    struct hba_raw *raw;
    unsigned n = 0;
    unsigned i;

    while (next_field(c, &list)) {
        if (names != NULL) { /* an @file is nothing but names */
            for (i = 0; i < list.n; i++)
                tokens_add(c->lx, names, list.item[i]);
            continue;
        }
        if ((n & (n - 1)) == 0) { /* room is doubled at powers of two */
            wider = arena_alloc(c->lx->arena, (n == 0 ? 1 : 2 * (size_t)n) * sizeof *wider);
            if (n > 0)
                memcpy(wider, field, n * sizeof *wider);
            field = wider;
        }
        field[n++] = (struct hba_field){list.item, list.n};
    }
    if (n == 0 || (field[0].n > 0 && take_include(c, field, n)))
        return;
    raw = arena_alloc_zero(c->lx->arena, sizeof *raw);
    raw->file = c->file;
    raw->line = c->line;
    raw->field = field;
    raw->n = n;
    *c->lx->last = raw;
    c->lx->last = &raw->next;
}

/* Cuts a text into logical lines: a backslash before the end joins the next one. */
static void read_text(
    struct hba_lex *lx, const char *file, unsigned depth, struct slice text, struct tokens *names)
{
    struct cursor c = {.lx = lx, .file = file, .depth = depth};
    struct buf joined = {0};
    const char *p = text.p;
    const char *end = text.p + text.n;
    const char *nl;
    unsigned at = 0;
    size_t n;

    while (p < end) {
        nl = memchr(p, '\n', (size_t)(end - p));
        n = (size_t)((nl == NULL ? end : nl) - p);
        at++;
        if (joined.len == 0)
            c.line = at;
        buf_put(&joined, p, n);
        p += n + (nl == NULL ? 0 : 1);
        if (joined.len > 0 && joined.data[joined.len - 1] == '\r')
            joined.len--;
        if (joined.len > 0 && joined.data[joined.len - 1] == '\\') {
            joined.len--;
            if (p < end && joined.len <= HBA_LINE_MAX && joined.len > 0)
                continue;
        }
        if (joined.len > HBA_LINE_MAX || (n > 0 && memchr(joined.data, '\0', joined.len) != NULL)) {
            hba_complain(lx, file, c.line, "the line is too long or contains a zero byte");
        } else if (joined.len > 0) {
            c.p = joined.data;
            c.end = joined.data + joined.len;
            take_line(&c, names);
        }
        buf_clear(&joined);
    }
    buf_free(&joined);
}

/* Reads a file: into `names` for an @file, else as lines. `from` says who asked; NULL means that a
 * missing file is fine. */
static void read_path(struct hba_lex *lx, const char *path, unsigned depth,
    const struct cursor *from, struct tokens *names)
{
    struct secret text = {0};
    struct err err = {0};
    struct stat st;
    const char *file = from == NULL ? path : from->file;
    unsigned line = from == NULL ? 0 : from->line;

    if (depth > 0 && (lx->flags & HBA_NO_FILES) != 0) {
        hba_complain(lx, file, line, "files cannot be included here");
        return;
    }
    if (depth > HBA_DEPTH_MAX || lx->nfiles++ > HBA_FILES_MAX) {
        hba_complain(lx, file, line,
            "could not open file \"%s\": too many files or too deeply nested", path);
        return;
    }
    if (passwd_read_file(path, HBA_FILE_MAX, &text, &st, &err) == -1) {
        if (from != NULL || strcmp(err.sqlstate, "58P01") != 0)
            hba_complain(lx, file, line, "%s", err.msg);
        return;
    }
    read_text(lx, arena_strdup(lx->arena, path), depth, secret_slice(&text), names);
    secret_free(&text);
}

void hba_lex_file(struct hba_lex *lx, const char *path)
{
    struct cursor top = {.lx = lx, .file = path};

    read_path(lx, path, 0, &top, NULL);
}

void hba_lex_text(struct hba_lex *lx, const char *name, struct slice text)
{
    read_text(lx, arena_strdup(lx->arena, name), 0, text, NULL);
}
