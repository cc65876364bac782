/* SPDX-License-Identifier: PostgreSQL
 * pcp_login.c: pcp.conf: who may administer, and with which password.
 * Runs in: control. The file is read again at every log-in, so a change needs no reload; it holds
 * the md5 of passwords and is refused when it is too long, never kept in memory. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/cred.h"
#include "base/mem.h"
#include "config/conf.h"
#include "crypto/crypto.h"

#include "control_int.h"

#define FILE_MAX_BYTES (1024 * 1024)
#define FILE_NAME      "pcp.conf"

static int read_all(int fd, char *text, size_t size, size_t *n)
{
    ssize_t got;

    *n = 0;
    while (*n < size) {
        got = read(fd, text + *n, size - *n);
        if (got == -1 && errno == EINTR)
            continue;
        if (got == -1)
            return -1;
        if (got == 0)
            break;
        *n += (size_t)got;
    }
    return 0;
}

/* Reads the file into *text (owned by the caller, who wipes it). */
static int read_file(const struct pcp_conn *c, char **text, size_t *n, struct err *err)
{
    const struct proc_env *env = c->ctl->role.env;
    char path[PROC_PATH_BYTES];
    const char *name = env->paths->pcp[0] != '\0' ? env->paths->pcp : FILE_NAME;
    struct stat st;
    int fd;
    int rc;

    if (conf_path(role_loop_gen(&c->ctl->role), name, path, sizeof path, err) == -1)
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd == -1 || fstat(fd, &st) == -1) {
        err_set_errno(err, errno, "could not open \"%s\", so nobody can use PCP", path);
        if (fd != -1)
            close(fd);
        return -1;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES) {
        err_set(err, "58030", "\"%s\" is no file, or too long", path);
        close(fd);
        return -1;
    }
    *text = mem_alloc((size_t)st.st_size + 1);
    rc = read_all(fd, *text, (size_t)st.st_size, n);
    if (rc == -1) {
        err_set_errno(err, errno, "could not read \"%s\"", path);
        mem_free(*text);
    }
    close(fd);
    return rc;
}

/* True when the line is about `user` and its password fits. */
static bool line_fits(
    const struct pcp_conn *c, struct slice line, struct slice user, struct slice response)
{
    const char *colon = memchr(line.p, ':', line.n);
    char lower[CRYPTO_MD5_HEX_BYTES];
    struct cred cred = {0};
    struct err ignored = {0};
    bool match = false;
    size_t i;

    if (line.n == 0 || line.p[0] == '#' || colon == NULL)
        return false;
    if (!slice_eq(slice_of(line.p, (size_t)(colon - line.p)), user))
        return false;
    line = slice_of(colon + 1, line.n - (size_t)(colon + 1 - line.p));
    while (line.n > 0 && strchr(" \t\r", line.p[line.n - 1]) != NULL)
        line.n--;
    if (line.n != sizeof lower)
        return false;
    for (i = 0; i < sizeof lower; i++)
        lower[i] = (char)(line.p[i] >= 'A' && line.p[i] <= 'F' ? line.p[i] + 32 : line.p[i]);
    /* The md5 of the password stands where PostgreSQL has the password; the rest is the same. */
    cred_from_plain(slice_of(lower, sizeof lower), &cred);
    if (cred_check_md5(&cred, user, c->salt, response, &match, &ignored) == -1)
        match = false;
    cred_free(&cred);
    mem_wipe(lower, sizeof lower);
    return match;
}

static bool any_line_fits(
    const struct pcp_conn *c, struct slice text, struct slice user, struct slice response)
{
    while (text.n > 0) {
        const char *newline = memchr(text.p, '\n', text.n);
        size_t n = newline == NULL ? text.n : (size_t)(newline - text.p);

        if (line_fits(c, slice_of(text.p, n), user, response))
            return true;
        if (newline == NULL)
            return false;
        text = slice_of(newline + 1, text.n - n - 1);
    }
    return false;
}

bool pcp_login_check(
    const struct pcp_conn *c, struct slice user, struct slice answer, struct err *err)
{
    char response[CRED_MD5_BYTES] = "md5";
    char *text = NULL;
    size_t n = 0;
    bool ok;

    if (answer.n != CRYPTO_MD5_HEX_BYTES || user.n == 0)
        return false;
    memcpy(response + 3, answer.p, answer.n);
    if (read_file(c, &text, &n, err) == -1)
        return false;
    ok = any_line_fits(c, slice_of(text, n), user, slice_of(response, sizeof response));
    mem_wipe(text, n);
    mem_free(text);
    return ok;
}
