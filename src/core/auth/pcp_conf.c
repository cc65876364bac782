/* SPDX-License-Identifier: PostgreSQL
 * pcp_conf.c: reads pcp.conf: who may administer, and with which password. It holds the md5 of
 * passwords, each as good as the password itself, or SCRAM verifiers: whoever reads it wipes it
 * when a log-in is judged. */
#include "config.h"

#include "auth/pcp_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "auth/scram.h"
#include "base/mem.h"
#include "crypto/crypto.h"

#define FILE_MAX_BYTES (1024 * 1024)

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

int pcp_conf_read(const char *path, char **text, size_t *n, struct stat *st, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc;

    if (fd == -1 || fstat(fd, st) == -1) {
        err_set_errno(err, errno, "could not open \"%s\", so nobody can use PCP", path);
        if (fd != -1)
            close(fd);
        return -1;
    }
    if (!S_ISREG(st->st_mode) || st->st_size > FILE_MAX_BYTES) {
        err_set(err, "58030", "\"%s\" is no file, or too long", path);
        close(fd);
        return -1;
    }
    *text = mem_alloc_secret((size_t)st->st_size + 1);
    rc = read_all(fd, *text, (size_t)st->st_size, n);
    if (rc == -1) {
        err_set_errno(err, errno, "could not read \"%s\"", path);
        mem_free_secret(*text);
    }
    close(fd);
    return rc;
}

/* Of an empty password: it opens nothing. */
static bool is_md5_of_nothing(struct slice value)
{
    static const char hex[] = "d41d8cd98f00b204e9800998ecf8427e";

    return value.n == sizeof hex - 1 && strncasecmp(value.p, hex, value.n) == 0;
}

bool pcp_conf_next(struct slice *text, struct pcp_line *out)
{
    struct scram_verifier v;
    struct slice line;
    const char *end;

    while (text->n > 0) {
        end = memchr(text->p, '\n', text->n);
        line = slice_of(text->p, end == NULL ? text->n : (size_t)(end - text->p));
        *text = slice_of(text->p + line.n, text->n - line.n);
        if (end != NULL)
            *text = slice_of(text->p + 1, text->n - 1);
        while (line.n > 0 && strchr(" \t\r", line.p[line.n - 1]) != NULL)
            line.n--;
        end = line.n == 0 || line.p[0] == '#' ? NULL : memchr(line.p, ':', line.n);
        if (end == NULL)
            continue;
        out->user = slice_of(line.p, (size_t)(end - line.p));
        out->value = slice_of(end + 1, line.n - out->user.n - 1);
        out->is_scram = scram_verifier_parse(out->value, &v) == 0;
        mem_wipe(&v, sizeof v);
        if (out->is_scram ||
            (out->value.n == CRYPTO_MD5_HEX_BYTES && !is_md5_of_nothing(out->value)))
            return true;
    }
    return false;
}
