/* SPDX-License-Identifier: PostgreSQL
 * web_tls.c: certificate and key for HTTPS: those of ssl_cert and ssl_key, as text, because
 * libmicrohttpd wants them so.
 * Runs in: web. Never logs what is in the files. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/tls.h"

#include "web_int.h"

#define FILE_MAX_BYTES (1024 * 1024)

static int fill(int fd, char *text, size_t size)
{
    size_t done = 0;
    ssize_t n;

    while (done < size) {
        n = read(fd, text + done, size - done);
        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        done += (size_t)n;
    }
    return 0;
}

/* The file's text with a NUL behind it; NULL with *err. */
static char *read_pem(const struct conf_gen *gen, const char *name, struct err *err)
{
    char path[PATH_MAX];
    char *text = NULL;
    struct stat st;
    int fd;

    if (conf_path(gen, name, path, sizeof path, err) == -1)
        return NULL;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd == -1 || fstat(fd, &st) == -1) {
        err_set_errno(err, errno, "could not open \"%s\"", path);
    } else if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES) {
        err_set(err, "58030", "\"%s\" is no file, or too long", path);
    } else {
        text = mem_alloc_secret((size_t)st.st_size + 1);
        if (fill(fd, text, (size_t)st.st_size) == -1) {
            err_set_errno(err, errno, "could not read \"%s\"", path);
            mem_free_secret(text);
            text = NULL;
        }
    }
    if (fd != -1)
        close(fd);
    return text;
}

/* The passphrase of an encrypted key; false with *err when it is needed and cannot be had. */
static bool find_passphrase(const struct conf_gen *gen, struct web_tls *t, struct err *err)
{
    struct tls_passphrase pp = {
        .command = conf_of(gen)->ssl_passphrase_command, .key_file = conf_of(gen)->ssl_key};
    int n;

    if (strstr(t->key, "ENCRYPTED") == NULL || pp.command[0] == '\0')
        return true;
    t->passphrase = mem_alloc_secret(TLS_PASSPHRASE_BYTES + 1);
    n = tls_passphrase_get(t->passphrase, TLS_PASSPHRASE_BYTES, &pp);
    tls_passphrase_forget(&pp);
    if (n >= 0) {
        t->passphrase[n] = '\0';
        return true;
    }
    err_set(err, "F0000", "ssl_passphrase_command gave no passphrase");
    err_hint(
        err, "Run it by hand as the user that pgpool runs as; it has to print the passphrase.");
    return false;
}

struct web_tls *web_tls_read(const struct conf_gen *gen, struct err *err)
{
    struct web_tls *t = mem_alloc_zero(sizeof *t);

    t->cert = read_pem(gen, conf_of(gen)->ssl_cert, err);
    if (t->cert != NULL)
        t->key = read_pem(gen, conf_of(gen)->ssl_key, err);
    if (t->key == NULL || !find_passphrase(gen, t, err))
        web_tls_free(&t);
    return t;
}

bool web_tls_is_same(const struct web_tls *a, const struct web_tls *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a->cert, b->cert) == 0 && strcmp(a->key, b->key) == 0;
}

void web_tls_free(struct web_tls **tp)
{
    struct web_tls *t = *tp;

    *tp = NULL;
    if (t == NULL)
        return;
    mem_free_secret(t->cert);
    mem_free_secret(t->key);
    mem_free_secret(t->passphrase);
    mem_free(t);
}
