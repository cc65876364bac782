/* SPDX-License-Identifier: PostgreSQL
 * passwd_file.c: the key file, file modes, and changing one line of pool_passwd. A change writes a
 * new file beside the old one and renames it, so that a reader never sees half of it. */
#include "config.h"

#include "auth/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mem.h"
#include "passwd_int.h"

bool passwd_mode_is_safe(const char *path, const struct stat *st, const char *what, struct err *err)
{
    /* A file of root's may be read by a group: so packages let the service's user read it. */
    mode_t bad = st->st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;

    if ((st->st_mode & bad) == 0)
        return true;
    err_set(err, "F0000", "%s \"%s\" has group or world access", what, path);
    err_hint(err, "Permissions should be u=rw (0600) or less, or u=rw,g=r (0640) when owned by "
                  "root.");
    if (err != NULL)
        err->severity = ERR_WARNING;
    return false;
}

static void put_escaped(struct slice s, struct buf *out)
{
    size_t i;

    for (i = 0; i < s.n; i++) {
        if (s.p[i] == ':' || s.p[i] == '\\')
            buf_put_byte(out, '\\');
        buf_put_byte(out, s.p[i]);
    }
}

void passwd_put_line(struct slice user, struct slice value, struct buf *out)
{
    put_escaped(user, out);
    buf_put_byte(out, ':');
    if (passwd_value_of(value).kind == PASSWD_SCRAM)
        buf_put(out, value.p, value.n); /* read to the end of the line, colons and all */
    else
        put_escaped(value, out);
    buf_put_byte(out, '\n');
}

/* True when the raw line is one of `user`. */
static bool line_is_of(struct slice line, struct slice user)
{
    struct buf want = {0};
    bool same;

    put_escaped(user, &want);
    buf_put_byte(&want, ':');
    same = line.n >= want.len && memcmp(line.p, want.data, want.len) == 0;
    buf_free(&want);
    return same;
}

/* Copies `old` with the line of `user` replaced, or added at the end. */
static void replace_line(struct slice old, struct slice user, struct slice value, struct buf *out)
{
    struct slice line;
    const char *nl;
    bool done = false;

    while (old.n > 0) {
        nl = memchr(old.p, '\n', old.n);
        line = slice_of(old.p, nl == NULL ? old.n : (size_t)(nl - old.p));
        if (!done && line_is_of(line, user)) {
            passwd_put_line(user, value, out);
            done = true;
        } else {
            buf_put(out, line.p, line.n);
            buf_put_byte(out, '\n');
        }
        old = slice_of(line.p + line.n, old.n - line.n);
        if (nl != NULL)
            old = slice_of(old.p + 1, old.n - 1);
    }
    if (!done)
        passwd_put_line(user, value, out);
}

static int write_all(int fd, const char *p, size_t n)
{
    ssize_t w;

    for (; n > 0; p += w, n -= (size_t)w) {
        w = write(fd, p, n);
        if (w == -1)
            return -1;
    }
    return 0;
}

/* Writes `text` to a new file and puts it in the place of `path`, which *st is about. */
static int replace_file(
    const char *path, const struct buf *text, const struct stat *st, struct err *err)
{
    struct buf tmp = {0};
    int rc = -1;
    int fd;

    buf_printf(&tmp, "%s.XXXXXX", path);
    buf_put_byte(&tmp, '\0');
    fd = mkstemp(tmp.data); /* mode 0600 */
    if (fd == -1) {
        err_set_errno(err, errno, "could not create a file beside \"%s\"", path);
        buf_free(&tmp);
        return -1;
    }
    if (write_all(fd, text->data, text->len) == 0 && fsync(fd) == 0 &&
        (fchown(fd, st->st_uid, st->st_gid) == 0 || errno == EPERM) &&
        fchmod(fd, st->st_mode & 07777) == 0 && rename(tmp.data, path) == 0)
        rc = 0;
    if (rc == -1) {
        err_set_errno(err, errno, "could not write file \"%s\"", path);
        unlink(tmp.data);
    }
    close(fd);
    buf_free(&tmp);
    return rc;
}

/* Opens the file, made if there is none, and waits until nobody else changes it. What was locked
 * may have been replaced in the meantime: then the new one is. Returns the descriptor that holds
 * the lock, or -1. */
static int lock_file(const char *path, struct err *err)
{
    struct stat locked;
    struct stat there;
    int fd;

    for (;;) {
        fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
        if (fd == -1)
            break;
        while (flock(fd, LOCK_EX) == -1)
            if (errno != EINTR)
                return fd; /* a file system without locks */
        if (fstat(fd, &locked) == 0 && stat(path, &there) == 0 && locked.st_dev == there.st_dev &&
            locked.st_ino == there.st_ino)
            return fd;
        close(fd);
    }
    err_set_errno(err, errno, "could not open file \"%s\"", path);
    err_hint(err, "Its folder has to exist, and who runs this program may write there.");
    return -1;
}

static int change_file(const char *path, struct slice user, struct slice value, struct err *err)
{
    struct secret old = {0};
    struct buf text = {0};
    struct stat st;
    int rc;

    if (passwd_read_file(path, PASSWD_FILE_MAX, &old, &st, err) == -1)
        return -1;
    replace_line(secret_slice(&old), user, value, &text);
    rc = replace_file(path, &text, &st, err);
    secret_free(&old);
    mem_wipe(text.data, text.len);
    buf_free(&text);
    return rc;
}

int passwd_update(const char *path, struct slice user, struct slice value, struct err *err)
{
    char real[PATH_MAX];
    int lock;
    int rc;

    if (memchr(value.p, '\n', value.n) != NULL || user.n == 0 || memchr(user.p, '\n', user.n)) {
        err_set(err, "22023", "a user name or password with a line break cannot be stored");
        return -1;
    }
    lock = lock_file(path, err);
    if (lock == -1)
        return -1;
    /* Through a link, as volumes of containers have them: the file is replaced, not the link. */
    if (realpath(path, real) != NULL)
        path = real;
    rc = change_file(path, user, value, err);
    close(lock);
    return rc;
}

char *passwd_key_path(const char *option)
{
    const char *env = getenv("PGPOOLKEYFILE");
    const char *home = getenv("HOME");
    struct buf path = {0};

    if (option != NULL)
        return mem_strdup(option);
    if (env != NULL && env[0] != '\0')
        return mem_strdup(env);
    if (home == NULL || home[0] == '\0')
        return NULL;
    buf_printf(&path, "%s/.pgpoolkey", home);
    buf_put_byte(&path, '\0');
    return path.data; /* heap of mem.c: the caller's now */
}

int passwd_key_load(const char *path, struct secret *key, struct err *warn, struct err *err)
{
    struct secret text = {0};
    struct slice line;
    struct stat st;
    const char *nl;
    int rc = -1;

    if (passwd_read_file(path, 1024 * 1024, &text, &st, err) == -1)
        return -1;
    passwd_mode_is_safe(path, &st, "pool key file", warn);
    line = secret_slice(&text);
    nl = line.n == 0 ? NULL : memchr(line.p, '\n', line.n);
    if (nl != NULL)
        line.n = (size_t)(nl - line.p);
    /* Nothing else is trimmed, a carriage return neither: pgpool-II takes it as part of the key. */
    if (line.n > PASSWD_FILE_KEY_MAX)
        line.n = PASSWD_FILE_KEY_MAX;
    if (line.n == 0)
        err_set(err, "F0000", "the first line of pool key file \"%s\" is empty", path);
    else
        rc = 0;
    if (rc == 0)
        secret_set(key, line);
    secret_free(&text);
    return rc;
}
