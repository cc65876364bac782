/* SPDX-License-Identifier: PostgreSQL
 * logfile.c: one log file and its rotation by age and size.
 * Runs in: logger. Rotation by age falls on multiples of the age in local time, as in PostgreSQL:
 * with a day it is midnight. */
#include "config.h"

#include "process/logger/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/fd.h"

#define FOLDER_MODE   0700
#define RETRY_OPEN_US (1 * CLOCK_US_PER_S)
#define WAIT_MAX_MS   3600000

void logfile_init(struct logfile *f, const struct logfile_opts *opts)
{
    memset(f, 0, sizeof *f);
    f->opts = *opts;
    f->fd = -1;
}

void logfile_fini(struct logfile *f)
{
    fd_close(&f->fd);
}

/* The next moment, in local time, that is a multiple of the age. */
static int64_t next_rotation_us(int64_t age_ms, int64_t wall_us)
{
    int64_t age_s = age_ms / 1000;
    time_t now = (time_t)(wall_us / CLOCK_US_PER_S);
    int64_t local;
    struct tm tm;

    if (age_s <= 0)
        return 0;
    localtime_r(&now, &tm);
    local = (int64_t)now + tm.tm_gmtoff;
    local -= local % age_s;
    return (local + age_s - tm.tm_gmtoff) * CLOCK_US_PER_S;
}

bool logfile_set_opts(struct logfile *f, const struct logfile_opts *opts)
{
    bool other_place =
        strcmp(f->opts.folder, opts->folder) != 0 || strcmp(f->opts.pattern, opts->pattern) != 0;
    bool other_age = f->opts.age_ms != opts->age_ms;

    f->opts = *opts;
    f->rotate_at_bytes = opts->max_bytes;
    if (other_age)
        f->rotate_at_wall_us = next_rotation_us(opts->age_ms, clock_wall_us());
    if (f->fd != -1)
        fchmod(f->fd, (mode_t)opts->mode);
    return other_place;
}

bool logfile_is_elsewhere(const struct logfile *f)
{
    struct stat ours;
    struct stat there;

    if (f->fd == -1 || fstat(f->fd, &ours) == -1)
        return false;
    return lstat(f->path, &there) == -1 || there.st_dev != ours.st_dev ||
           there.st_ino != ours.st_ino;
}

static void make_name(const struct logfile *f, int64_t wall_us, char *path, size_t size)
{
    time_t now = (time_t)(wall_us / CLOCK_US_PER_S);
    size_t used;
    struct tm tm;

    localtime_r(&now, &tm);
    used = (size_t)snprintf(path, size, "%s/", f->opts.folder);
/* The pattern is a setting; strftime reads no arguments but tm. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (strftime(path + used, size - used, f->opts.pattern, &tm) == 0)
#pragma GCC diagnostic pop
        snprintf(path + used, size - used, "pgpool.log");
}

static int open_file(struct logfile *f, const char *path, bool empty_it, struct err *err)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (empty_it ? O_TRUNC : 0);
    struct stat st;
    bool is_link;
    int fd;

    if (mkdir(f->opts.folder, FOLDER_MODE) == -1 && errno != EEXIST) {
        err_set_errno(err, errno, "could not make log folder \"%s\"", f->opts.folder);
        return -1;
    }
    fd = open(path, flags, 0600);
    if (fd == -1 || fchmod(fd, (mode_t)f->opts.mode) == -1 || fstat(fd, &st) == -1) {
        is_link = errno == ELOOP;
        err_set_errno(err, errno, "could not open log file \"%s\"", path);
        if (is_link)
            err_hint(err, "It is a symbolic link, and what others may have linked is not written "
                          "to: take it away.");
        fd_close(&fd);
        return -1;
    }
    fd_close(&f->fd);
    f->fd = fd;
    f->bytes = st.st_size;
    return 0;
}

int logfile_rotate(struct logfile *f, enum logfile_reason reason, int64_t wall_us, struct err *err)
{
    char path[sizeof f->path];
    bool other_name;

    f->rotate_at_wall_us = next_rotation_us(f->opts.age_ms, wall_us);
    f->retry_at_wall_us = wall_us + RETRY_OPEN_US;
    make_name(f, wall_us, path, sizeof path);
    other_name = strcmp(path, f->path) != 0;
    /* A pattern that gives the same name again must not make every line a rotation. */
    f->rotate_at_bytes = f->opts.max_bytes == 0 ? 0 : f->opts.max_bytes;
    if (!other_name && f->fd != -1 && reason == LOGFILE_SIZE && f->opts.max_bytes > 0) {
        f->rotate_at_bytes = f->bytes + f->opts.max_bytes;
        return 0;
    }
    /* The file of our own last run, or of one size ago, is never emptied: only what time comes back
     * to. */
    if (open_file(f, path, f->opts.truncate && reason == LOGFILE_AGE && other_name, err) == -1)
        return -1;
    memcpy(f->path, path, sizeof path);
    if (f->opts.max_bytes > 0 && !other_name && f->bytes >= f->opts.max_bytes)
        f->rotate_at_bytes = f->bytes + f->opts.max_bytes;
    return 0;
}

bool logfile_is_due(const struct logfile *f, int64_t wall_us, enum logfile_reason *reason)
{
    if (f->fd == -1) {
        *reason = LOGFILE_START;
        return wall_us >= f->retry_at_wall_us;
    }
    if (f->rotate_at_wall_us != 0 && wall_us >= f->rotate_at_wall_us) {
        *reason = LOGFILE_AGE;
        return true;
    }
    *reason = LOGFILE_SIZE;
    return f->rotate_at_bytes != 0 && f->bytes >= f->rotate_at_bytes;
}

int logfile_wait_ms(const struct logfile *f, int64_t wall_us)
{
    int64_t at_us = f->fd == -1 ? f->retry_at_wall_us : f->rotate_at_wall_us;
    int64_t ms;

    if (at_us == 0)
        return -1;
    ms = (at_us - wall_us) / CLOCK_US_PER_MS + 1;
    if (ms < 0)
        return 0;
    return ms > WAIT_MAX_MS ? WAIT_MAX_MS : (int)ms;
}

/* Once when it begins; standard error may lead nowhere. */
static void tell_failure(const struct logfile *f, int error)
{
    char text[sizeof f->path + 128];
    int n = snprintf(text, sizeof text,
        "WARNING:  could not write to log file \"%s\": %s; lines go to standard error\n", f->path,
        strerror(error));

    (void)fd_write_all(STDERR_FILENO, text, (size_t)n);
    syslog(LOG_DAEMON | LOG_WARNING, "pgpool: %.*s", n - 1, text);
}

/* The file itself says that lines are missing there. False: it takes none yet. */
static bool tell_gap(struct logfile *f)
{
    char text[160];
    struct stat st;
    bool is_cut = fstat(f->fd, &st) == 0 && st.st_size > f->bytes; /* the last of them went half */
    int n = snprintf(text, sizeof text,
        "%sWARNING:  %lu pieces of the log are missing here: they could not be written (%s)\n",
        is_cut ? "\n" : "", f->failed_writes, strerror(f->write_error));

    if (fd_write_all(f->fd, text, (size_t)n) == -1)
        return false;
    f->bytes = (is_cut ? st.st_size : f->bytes) + n;
    f->failed_writes = 0;
    f->write_error = 0;
    return true;
}

void logfile_write(struct logfile *f, const char *p, size_t n)
{
    if (f->fd != -1 && (f->write_error == 0 || tell_gap(f))) {
        if (fd_write_all(f->fd, p, n) == 0) {
            f->bytes += (int64_t)n;
            return;
        }
        f->write_error = errno;
        tell_failure(f, f->write_error);
    }
    f->failed_writes++;
    (void)fd_write_all(STDERR_FILENO, p, n);
}
