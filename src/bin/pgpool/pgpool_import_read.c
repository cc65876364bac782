/* SPDX-License-Identifier: PostgreSQL
 * pgpool_import_read.c: reads pgbouncer.ini: sections, lines of key = value, comments that begin
 * with ; or #, %include. Runs in: the command line. A value goes to the end of its line; ; and # in
 * it are part of it. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bin/pgpool/pgpool_import.h"

#define IMP_DEPTH_MAX  10
#define IMP_FILE_BYTES (16 * 1024 * 1024)

struct reader {
    struct imp *imp;
    const char *section;
    int depth;
};

int imp_slurp(const char *path, struct buf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;

    if (fd == -1) {
        err_set_errno(err, errno, "could not open \"%s\"", path);
        return -1;
    }
    out->is_secret = true;
    while (n > 0 && out->len < IMP_FILE_BYTES) {
        n = read(fd, buf_reserve(out, 8192), 8192);
        if (n > 0)
            buf_advance(out, (size_t)n);
    }
    if (n == -1)
        err_set_errno(err, errno, "could not read \"%s\"", path);
    else if (n > 0)
        err_set(err, "54000", "\"%s\" is too long", path);
    else if (out->len > 0 && memchr(out->data, '\0', out->len) != NULL)
        err_set(err, "22000", "\"%s\" is not a text", path);
    close(fd);
    buf_put_byte(out, '\0');
    return err_is_set(err) ? -1 : 0;
}

static const char *skip(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* Copies [p, end) without the blanks around it. */
static const char *trimmed(struct imp *imp, const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    return arena_strndup(imp->arena, p, (size_t)(end - p));
}

/* A text that begins at the quote **pp, in which two quotes stand for one; NULL: it has no end. */
static const char *quoted(struct imp *imp, const char **pp)
{
    const char *p = *pp;
    char quote = *p++;
    char *out = arena_alloc(imp->arena, strlen(p) + 1);
    size_t n = 0;

    for (; *p != '\0' && (*p != quote || p[1] == quote); p++) {
        if (*p == quote)
            p++;
        out[n++] = *p;
    }
    out[n] = '\0';
    *pp = p + 1;
    return *p == '\0' ? NULL : out;
}

static int read_file(struct reader *rd, const char *path, struct err *err);

static int include(struct reader *rd, const char *path, int line, const char *rest, struct err *err)
{
    const char *name = trimmed(rd->imp, rest, rest + strlen(rest));

    if (rd->depth >= IMP_DEPTH_MAX) {
        err_set(err, "54000", "%s:%d: files are included too deep", path, line);
        return -1;
    }
    return read_file(rd, imp_path(rd->imp, name), err);
}

static int read_line(
    struct reader *rd, const char *path, int line, const char *text, struct err *err)
{
    const char *p = skip(text);
    const char *sign;
    struct imp_item *item;

    if (*p == '\0' || *p == ';' || *p == '#')
        return 0;
    if (strncmp(p, "%include", 8) == 0 && isspace((unsigned char)p[8]))
        return include(rd, path, line, p + 8, err);
    if (*p == '[' && strchr(p, ']') != NULL) {
        rd->section = trimmed(rd->imp, p + 1, strchr(p, ']'));
        return 0;
    }
    item = arena_alloc_zero(rd->imp->arena, sizeof *item);
    sign = strchr(p, '=');
    if (*p == '"') {
        item->key = quoted(rd->imp, &p);
        sign = item->key != NULL && *skip(p) == '=' ? skip(p) : NULL;
    } else if (sign != NULL) {
        item->key = trimmed(rd->imp, p, sign);
    }
    if (sign == NULL || item->key == NULL || item->key[0] == '\0' || rd->section == NULL) {
        err_set(err, "F0000", "%s:%d: this is no line of pgbouncer.ini", path, line);
        return -1;
    }
    item->file = path;
    item->line = line;
    item->section = rd->section;
    item->value = trimmed(rd->imp, sign + 1, sign + strlen(sign));
    *rd->imp->end = item;
    rd->imp->end = &item->next;
    return 0;
}

static int read_file(struct reader *rd, const char *path, struct err *err)
{
    struct buf text = {0};
    const char *p;
    int line = 0;
    int rc = imp_slurp(path, &text, err);

    rd->depth++;
    for (p = text.data; rc == 0 && *p != '\0';) {
        size_t n = strcspn(p, "\n");

        rc = read_line(rd, path, ++line, arena_strndup(rd->imp->arena, p, n), err);
        p += n + (p[n] == '\n');
    }
    rd->depth--;
    buf_free(&text);
    return rc;
}

int imp_read(struct imp *imp, const char *path, struct err *err)
{
    struct reader rd = {.imp = imp};

    return read_file(&rd, path, err);
}

int imp_split(struct imp *imp, const char *text, struct imp_pair **out)
{
    const char *p = skip(text);

    *out = NULL;
    while (*p != '\0') {
        size_t n = strcspn(p, "= \t");
        struct imp_pair *pair = arena_alloc_zero(imp->arena, sizeof *pair);

        pair->key = arena_strndup(imp->arena, p, n);
        p = skip(p + n);
        if (*p != '=' || n == 0)
            return -1;
        p = skip(p + 1);
        if (*p == '\'') {
            pair->value = quoted(imp, &p);
        } else {
            n = strcspn(p, " \t");
            pair->value = arena_strndup(imp->arena, p, n);
            p += n;
        }
        if (pair->value == NULL)
            return -1;
        *out = pair;
        out = &pair->next;
        p = skip(p);
    }
    return 0;
}

const struct imp_item *imp_find(const struct imp *imp, const char *section, const char *key)
{
    const struct imp_item *found = NULL;
    const struct imp_item *i;

    for (i = imp->first; i != NULL; i = i->next)
        if (strcmp(i->section, section) == 0 && strcmp(i->key, key) == 0)
            found = i;
    return found;
}

bool imp_is_replaced(const struct imp_item *item)
{
    const struct imp_item *i;

    for (i = item->next; i != NULL; i = i->next)
        if (strcmp(i->section, item->section) == 0 && strcmp(i->key, item->key) == 0)
            return true;
    return false;
}
