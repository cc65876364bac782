/* SPDX-License-Identifier: PostgreSQL
 * status_file.c: what operators decided about servers, kept over a restart.
 * Runs in: monitor; supervisor (discarding). The folder may be one in which everybody may write: a
 * file is made new and renamed, and only a file of our own user is read. */
#include "config.h"

#include "cluster/status_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "sys/fd.h"

#include "status_file_int.h"

#define WORDS_NAME    "pgpool_status"
#define HOLDS_NAME    "pgpool_status.held"
#define MAX_FILE      (64 * 1024)
#define FIELDS_A_LINE 4

static const char *word_of(const struct view_node *n)
{
    switch ((enum view_status)n->status) {
    case VIEW_UNUSED:
        return "unused";
    case VIEW_DOWN:
    case VIEW_QUARANTINE:
        return "down";
    case VIEW_WAITING:
    case VIEW_UP:
        break;
    }
    return "up";
}

/* Tabs and line ends separate; they have no place in a field. */
static void put_field(struct buf *b, const char *text, size_t room)
{
    size_t i;

    for (i = 0; i < room && text[i] != '\0'; i++)
        buf_put_byte(b, (unsigned char)text[i] < ' ' ? ' ' : text[i]);
}

void status_file_format(const struct view *v, struct buf *words, struct buf *holds)
{
    int i;

    for (i = 0; i < v->nnodes; i++) {
        const struct view_node *n = &v->node[i];

        buf_printf(words, "%s\n", word_of(n));
        if (!n->held_down)
            continue;
        buf_printf(holds, "%d\t%" PRId64 "\t", i, n->status_changed_us);
        put_field(holds, n->held_by, sizeof n->held_by);
        buf_put_byte(holds, '\t');
        put_field(holds, n->held_why, sizeof n->held_why);
        buf_put_byte(holds, '\n');
    }
}

static bool take_number(struct slice s, int64_t *out)
{
    char text[32];
    char *end;

    if (s.n == 0 || s.n >= sizeof text)
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static void copy_field(struct slice s, char *to, size_t room)
{
    size_t n = s.n < room ? s.n : room - 1;

    memset(to, 0, room);
    memcpy(to, s.p, n);
}

/* Cuts at tabs; false when there are not as many fields as there must be. */
static bool split(struct slice line, struct slice field[FIELDS_A_LINE])
{
    const char *tab;
    int i;

    for (i = 0; i < FIELDS_A_LINE - 1; i++) {
        tab = memchr(line.p, '\t', line.n);
        if (tab == NULL)
            return false;
        field[i] = slice_of(line.p, (size_t)(tab - line.p));
        line = slice_of(tab + 1, line.n - field[i].n - 1);
    }
    field[i] = line;
    return true;
}

static bool parse_line(struct slice line, struct status_hold *out)
{
    struct slice field[FIELDS_A_LINE];
    int64_t node;

    if (!split(line, field) || !take_number(field[0], &node) ||
        !take_number(field[1], &out->since_us) || node < 0 || node >= VIEW_MAX_NODES)
        return false;
    out->node = (int)node;
    copy_field(field[2], out->by, sizeof out->by);
    copy_field(field[3], out->why, sizeof out->why);
    return true;
}

int status_file_parse(struct slice *text, struct status_hold *out, int *nbad)
{
    while (text->n > 0) {
        const char *nl = memchr(text->p, '\n', text->n);
        struct slice line = slice_of(text->p, nl == NULL ? text->n : (size_t)(nl - text->p));
        size_t gone = nl == NULL ? line.n : line.n + 1;

        *text = slice_of(text->p + gone, text->n - gone);
        if (parse_line(line, out))
            return 1;
        (*nbad)++;
    }
    return 0;
}

static bool make_path(const char *dir, const char *name, const char *suffix, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/%s%s", dir, name, suffix);

    return n > 0 && n < PATH_MAX;
}

/* Has the new name outlive the machine's end, too; not every file system can. */
static void sync_folder(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd == -1)
        return;
    (void)fsync(fd);
    close(fd);
}

int status_file_write(const char *dir, const char *name, const struct buf *text, struct err *err)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    int fd;

    if (!make_path(dir, name, "", path) || !make_path(dir, name, ".new", fresh)) {
        err_set(err, "54000", "the name of folder \"%s\" is too long", dir);
        return -1;
    }
    (void)unlink(fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd == -1) {
        err_set_errno(err, errno, "could not write file \"%s\"", fresh);
        return -1;
    }
    if (fd_write_all(fd, text->data == NULL ? "" : text->data, text->len) == -1 ||
        fsync(fd) == -1 || rename(fresh, path) == -1) {
        err_set_errno(err, errno, "could not write file \"%s\"", path);
        close(fd);
        return -1;
    }
    close(fd);
    sync_folder(dir);
    return 0;
}

int status_file_save(const char *dir, const struct view *v, struct err *err)
{
    struct buf words = {0};
    struct buf holds = {0};
    int rc;

    status_file_format(v, &words, &holds);
    rc = status_file_write(dir, HOLDS_NAME, &holds, err);
    if (rc == 0)
        rc = status_file_write(dir, WORDS_NAME, &words, err);
    buf_free(&words);
    buf_free(&holds);
    return rc;
}

static size_t read_all(int fd, char *to, size_t room)
{
    size_t done = 0;

    while (done < room) {
        ssize_t n = read(fd, to + done, room - done);

        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

void status_file_read(const char *dir, const char *name, struct buf *out, struct err *err)
{
    char path[PATH_MAX];
    struct stat st;
    char *text;
    int fd;

    if (!make_path(dir, name, "", path))
        return;
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd == -1) {
        if (errno != ENOENT)
            err_set_errno(err, errno, "could not read file \"%s\"", path);
        return;
    }
    if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        err_set(err, "42501", "file \"%s\" is not read: it is not a file of this user's own", path);
        close(fd);
        return;
    }
    text = mem_alloc(MAX_FILE);
    buf_put(out, text, read_all(fd, text, MAX_FILE));
    close(fd);
    mem_free(text);
}

int status_file_remove(const char *dir, const char *name, struct err *err)
{
    char path[PATH_MAX];

    if (!make_path(dir, name, "", path) || unlink(path) == 0 || errno == ENOENT)
        return 0;
    err_set_errno(err, errno, "could not remove file \"%s\"", path);
    return -1;
}

int status_file_load(const char *dir, struct status_hold *out, int max, struct err *err)
{
    struct buf text = {0};
    struct slice rest;
    int n = 0;
    int nbad = 0;

    status_file_read(dir, HOLDS_NAME, &text, err);
    rest = slice_of(text.data, text.len);
    while (n < max && status_file_parse(&rest, &out[n], &nbad) == 1)
        n++;
    if (nbad > 0)
        err_set(err, "XX001", "%d lines of file \"%s/%s\" cannot be read", nbad, dir, HOLDS_NAME);
    if (err_is_set(err))
        err_hint(err,
            "A server that was detached is in use again unless the log says that it stays "
            "detached: look at SHOW POOL_NODES, and detach it anew.");
    buf_free(&text);
    return n;
}

void status_file_discard(const char *dir)
{
    struct err err = {0};

    (void)status_file_remove(dir, WORDS_NAME, &err);
    (void)status_file_remove(dir, HOLDS_NAME, &err);
}
