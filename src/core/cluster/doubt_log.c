/* SPDX-License-Identifier: PostgreSQL
 * doubt_log.c: files of decisions: made, written so that they outlive a loss of power, read.
 * Runs in: workers, on a thread; control; supervisor (the pgpool's number). The folder may be one
 * in which everybody may write: a file is made new, and only one of our own user is read. */
#include "config.h"

#include "cluster/doubt_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_PREFIX   "pgpool_decisions."
#define INSTANCE_NAME "pgpool_decisions.id"
#define INSTANCE_TEXT 17 /* 16 digits and the end of the line */
/* Who looks whether a file is held, or removes it, has its lock for a moment. */
#define LOCK_TRIES 1000
/* Others may have put anything into the folder: a pipe, say, which is not waited for. */
#define READ_ONLY (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

static int fail(struct err *err, const char *what, const char *path)
{
    err_set(err, "58030", "could not %s file \"%s\": %s", what, path, strerror(errno));
    return -1;
}

static int path_of(
    const char *dir, const struct doubt_owner *o, const char *suffix, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX,
        "%s/" FILE_PREFIX "%016" PRIx64 "_%016" PRIx64 "_%08" PRIx32 "_%08" PRIx32 "%s", dir,
        o->instance, o->run, o->slot, o->pid, suffix);

    return n < PATH_MAX ? 0 : -1;
}

static bool is_our_own(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* The file that was opened is the one that has this name now. */
static bool has_name(int fd, const char *path)
{
    struct stat then;
    struct stat now;

    return fstat(fd, &then) == 0 && stat(path, &now) == 0 && then.st_ino == now.st_ino &&
           then.st_dev == now.st_dev;
}

static int lock(int fd)
{
    int tries = LOCK_TRIES;

    while (flock(fd, LOCK_EX | LOCK_NB) == -1) {
        if (errno != EWOULDBLOCK || --tries == 0)
            return -1;
        (void)sched_yield();
    }
    return 0;
}

/* Names of files made or renamed are on disk. */
static int sync_folder_of(const char *path)
{
    char dir[PATH_MAX];
    char *slash;
    int fd;
    int rc;

    snprintf(dir, sizeof dir, "%s", path);
    slash = strrchr(dir, '/');
    *slash = '\0';
    fd = open(dir[0] == '\0' ? "/" : dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd == -1)
        return -1;
    rc = fsync(fd);
    close(fd);
    return rc;
}

static int write_all(int fd, struct slice text, off_t at)
{
    while (text.n > 0) {
        ssize_t n = pwrite(fd, text.p, text.n, at);

        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text = slice_of(text.p + n, text.n - (size_t)n);
        at += n;
    }
    return 0;
}

int doubt_log_open(
    struct doubt_log *log, const char *dir, const struct doubt_owner *owner, struct err *err)
{
    int tries = LOCK_TRIES;
    struct stat st;

    memset(log, 0, sizeof *log);
    log->fd = -1;
    if (path_of(dir, owner, "", log->path) == -1) {
        err_set(err, "58030", "the name of folder \"%s\" is too long", dir);
        return -1;
    }
    do {
        doubt_log_close(log);
        log->fd = open(log->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (log->fd == -1)
            return fail(err, "open", log->path);
        if (!is_our_own(log->fd) || lock(log->fd) == -1 || fstat(log->fd, &st) == -1) {
            (void)fail(err, "take", log->path);
            doubt_log_close(log);
            return -1;
        }
        /* What has lost its name before it was locked nobody would find again. */
    } while (!has_name(log->fd, log->path) && --tries > 0);
    log->bytes = st.st_size;
    if (tries > 0)
        return 0;
    doubt_log_close(log);
    return fail(err, "keep", log->path);
}

void doubt_log_close(struct doubt_log *log)
{
    if (log->fd != -1)
        close(log->fd);
    log->fd = -1;
}

int doubt_log_append(struct doubt_log *log, struct slice text, struct err *err)
{
    if (log->is_broken) {
        err_set(err, "58030", "file \"%s\" takes no more, after an earlier error", log->path);
        return -1;
    }
    if (write_all(log->fd, text, log->bytes) == 0 && fdatasync(log->fd) == 0 &&
        (log->is_named || sync_folder_of(log->path) == 0)) {
        log->bytes += (off_t)text.n;
        log->is_named = true;
        return 0;
    }
    (void)fail(err, "write", log->path);
    if (ftruncate(log->fd, log->bytes) == 0 && fsync(log->fd) == 0)
        return -1;
    log->is_broken = true;
    return -2;
}

int doubt_log_replace(struct doubt_log *log, struct slice text, struct err *err)
{
    char fresh[PATH_MAX];
    int fd;

    if (snprintf(fresh, sizeof fresh, "%s.new", log->path) >= (int)sizeof fresh) {
        err_set(err, "58030", "the name of file \"%s\" is too long", log->path);
        return -1;
    }
    (void)unlink(fresh);
    fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd == -1)
        return fail(err, "make", fresh);
    if (flock(fd, LOCK_EX | LOCK_NB) == -1 || write_all(fd, text, 0) == -1 || fsync(fd) == -1 ||
        rename(fresh, log->path) == -1) {
        (void)fail(err, "write", fresh);
        (void)unlink(fresh);
        close(fd);
        return -1;
    }
    close(log->fd);
    log->fd = fd;
    log->bytes = (off_t)text.n;
    log->is_named = sync_folder_of(log->path) == 0;
    if (log->is_named)
        return 0;
    (void)fail(err, "keep the name of", log->path); /* a loss of power may bring back the old one */
    log->is_broken = true;
    return -2;
}

/* ---- reading ---- */

bool doubt_log_is_held(const char *dir, const struct doubt_owner *owner)
{
    char path[PATH_MAX];
    bool held = false;
    int fd;

    if (path_of(dir, owner, "", path) == -1)
        return false;
    fd = open(path, READ_ONLY);
    if (fd == -1)
        return errno != ENOENT; /* who knows */
    held = flock(fd, LOCK_SH | LOCK_NB) == -1 || !has_name(fd, path);
    close(fd);
    return held;
}

static int read_all(int fd, struct buf *out)
{
    char bytes[8192];
    ssize_t n;

    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        buf_put(out, bytes, (size_t)n);
    return n == -1 ? -1 : 0;
}

int doubt_log_read(
    const char *dir, const struct doubt_owner *owner, struct buf *out, struct err *err)
{
    char path[PATH_MAX];
    int rc;
    int fd;

    if (path_of(dir, owner, "", path) == -1)
        return -1;
    fd = open(path, READ_ONLY);
    if (fd == -1)
        return errno == ENOENT ? 0 : fail(err, "open", path);
    if (!is_our_own(fd)) {
        close(fd);
        err_set(err, "58030", "file \"%s\" is not ours", path);
        return -1;
    }
    rc = read_all(fd, out);
    if (rc == 0 && fdatasync(fd) == -1) /* whoever wrote it may have died before it was on disk */
        rc = -1;
    if (rc == -1)
        (void)fail(err, "read", path);
    close(fd);
    return rc;
}

void doubt_log_tidy(const char *dir, const struct doubt_owner *owner,
    bool (*is_needed)(void *ctx, struct slice text), void *ctx)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    struct buf text = {0};
    int fd;

    if (path_of(dir, owner, "", path) == -1 || path_of(dir, owner, ".new", fresh) == -1)
        return;
    fd = open(path, READ_ONLY);
    if (fd == -1)
        return;
    if (is_our_own(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0 && has_name(fd, path) &&
        read_all(fd, &text) == 0 && !is_needed(ctx, buf_slice(&text))) {
        (void)unlink(path);
        (void)unlink(fresh);
    }
    close(fd);
    buf_free(&text);
}

/* The owner in the name of a file is written as in a transaction's name. */
static bool owner_of_name(const char *name, struct doubt_owner *out)
{
    char gid[DOUBT_GID_BYTES];
    struct doubt_gid parsed;

    if (strncmp(name, FILE_PREFIX, strlen(FILE_PREFIX)) != 0)
        return false;
    if (snprintf(gid, sizeof gid, "pgpool_%s_%016d", name + strlen(FILE_PREFIX), 0) >=
        (int)sizeof gid)
        return false;
    if (!doubt_gid_parse(slice_of_str(gid), &parsed))
        return false;
    *out = parsed.owner;
    return true;
}

int doubt_log_each(const char *dir, uint64_t instance,
    void (*fn)(void *ctx, const struct doubt_owner *owner), void *ctx, struct err *err)
{
    struct doubt_owner owner;
    struct dirent *e;
    DIR *d = opendir(dir);

    if (d == NULL)
        return fail(err, "open", dir);
    while ((e = readdir(d)) != NULL) {
        if (owner_of_name(e->d_name, &owner) && owner.instance == instance)
            fn(ctx, &owner);
    }
    closedir(d);
    return 0;
}

/* ---- the pgpool's number ---- */

static int read_instance(const char *path, uint64_t *out)
{
    char text[INSTANCE_TEXT + 1] = "";
    int fd = open(path, READ_ONLY);
    bool is_good;

    if (fd == -1)
        return errno == ENOENT ? 0 : -1;
    errno = EINVAL;
    is_good = is_our_own(fd) && read(fd, text, INSTANCE_TEXT) == INSTANCE_TEXT &&
              sscanf(text, "%16" SCNx64 "\n", out) == 1;
    close(fd);
    return is_good ? 1 : -1;
}

static int make_instance(const char *path, uint64_t number)
{
    char text[INSTANCE_TEXT + 1];
    char fresh[PATH_MAX];
    int rc = -1;
    int fd;

    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return -1;
    snprintf(text, sizeof text, "%016" PRIx64 "\n", number);
    (void)unlink(fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd == -1)
        return -1;
    if (write_all(fd, slice_of_str(text), 0) == 0 && fsync(fd) == 0 && link(fresh, path) == 0)
        rc = sync_folder_of(path);
    close(fd);
    (void)unlink(fresh);
    return rc;
}

int doubt_log_instance(const char *dir, uint64_t candidate, uint64_t *out, struct err *err)
{
    char path[PATH_MAX];
    int found;

    if (snprintf(path, sizeof path, "%s/" INSTANCE_NAME, dir) >= (int)sizeof path) {
        err_set(err, "58030", "the name of folder \"%s\" is too long", dir);
        return -1;
    }
    found = read_instance(path, out);
    if (found == 0 && make_instance(path, candidate) == 0) {
        *out = candidate;
        found = 1;
    }
    return found == 1 ? 0 : fail(err, "use", path);
}
