/* SPDX-License-Identifier: PostgreSQL
 * auth_kept.c: the secret that stand-ins are made from, kept over a restart: the salt of a verifier
 * survives one, and so must that of a user who does not exist.
 * Runs in: supervisor. The folder may be one in which everybody may write: a file is made new and
 * renamed, and only one that nobody but our own user could read or write is believed. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/auth_guard.h"

#define KEPT_NAME "pgpool_salt"

static bool kept_read(const char *path, uint8_t secret[AUTH_GUARD_SECRET_BYTES])
{
    uint8_t found[AUTH_GUARD_SECRET_BYTES + 1];
    struct stat st;
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (fd == -1)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        n = read(fd, found, sizeof found);
    close(fd);
    if (n != AUTH_GUARD_SECRET_BYTES)
        return false;
    memcpy(secret, found, AUTH_GUARD_SECRET_BYTES);
    return true;
}

static int kept_write(const char *path, struct slice secret, struct err *err)
{
    char fresh[PATH_MAX];
    ssize_t n;
    int fd;

    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh) {
        err_set(err, "54000", "the name of file \"%s\" is too long", path);
        return -1;
    }
    (void)unlink(fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    n = fd == -1 ? -1 : write(fd, secret.p, secret.n);
    if (n != (ssize_t)secret.n || fsync(fd) == -1 || rename(fresh, path) == -1) {
        err_set_errno(err, n >= 0 && n < (ssize_t)secret.n ? ENOSPC : errno,
            "could not write file \"%s\"", path);
        if (fd != -1)
            close(fd);
        (void)unlink(fresh);
        return -1;
    }
    close(fd);
    return 0;
}

int auth_guard_keep(struct auth_guard *g, const char *dir, struct err *err)
{
    uint8_t secret[AUTH_GUARD_SECRET_BYTES];
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", dir, KEPT_NAME) >= (int)sizeof path) {
        err_set(err, "54000", "the name of folder \"%s\" is too long", dir);
        return -1;
    }
    if (!kept_read(path, secret))
        return kept_write(path, auth_guard_secret(g), err);
    auth_guard_set_secret(g, secret);
    return 0;
}
