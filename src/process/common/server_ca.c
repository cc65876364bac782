/* SPDX-License-Identifier: PostgreSQL
 * server_ca.c: keeps the file of authorities for libpq.
 * Runs in: monitor, control, invalidator, the command line. Each of them writes it when it differs
 * from what the settings name, whole and under another name first: nobody reads half of one. A file
 * that somebody else could have written is never used: work_dir may be /tmp. */
#include "config.h"

#include "process/common/server_ca.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "config/conf.h"
#include "ipc/proc.h"
#include "net/tls.h"
#include "sys/fd.h"

/* A descriptor of the file when nobody but us can have written it, else -1. */
static int open_own(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (fd != -1 && (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
                        (st.st_mode & (S_IRWXG | S_IRWXO)) != 0))
        fd_close(&fd);
    return fd;
}

static bool is_own(const char *path)
{
    int fd = open_own(path);
    bool is = fd != -1;

    fd_close(&fd);
    return is;
}

static bool is_up_to_date(const char *path, const struct buf *text)
{
    char part[4096];
    size_t at = 0;
    ssize_t n = -1;
    int fd = open_own(path);

    while (fd != -1 && (n = read(fd, part, sizeof part)) > 0) {
        if ((size_t)n > text->len - at || memcmp(part, text->data + at, (size_t)n) != 0)
            break;
        at += (size_t)n;
    }
    fd_close(&fd);
    return n == 0 && at == text->len;
}

static int replace(const char *path, const struct buf *text, struct err *err)
{
    char fresh[PATH_MAX];
    int fd;
    int rc;

    if (snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid()) >= (int)sizeof fresh) {
        err_set(err, "54000", "the name of file \"%s\" is too long", path);
        return -1;
    }
    (void)unlink(fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    rc = fd == -1 || (text->len > 0 && fd_write_all(fd, text->data, text->len) == -1) ||
                 rename(fresh, path) == -1
             ? -1
             : 0;
    if (rc == -1) {
        err_set_errno(err, errno, "could not write file \"%s\"", path);
        (void)unlink(fresh);
    }
    fd_close(&fd);
    return rc;
}

static int full_name(const struct conf_gen *gen, const char *name, char *out, struct err *err)
{
    out[0] = '\0';
    return name[0] == '\0' ? 0 : conf_path(gen, name, out, PROC_PATH_BYTES, err);
}

int server_ca_write(const struct conf_gen *gen, const char *path, struct err *err)
{
    const struct conf *conf = conf_of(gen);
    char file[PROC_PATH_BYTES];
    char dir[PROC_PATH_BYTES];
    struct buf text = {0};
    int rc = -1;

    if (full_name(gen, conf->ssl_ca_cert, file, err) == 0 &&
        full_name(gen, conf->ssl_ca_cert_dir, dir, err) == 0 &&
        tls_authorities_text(file, dir, &text, err) == 0)
        rc = is_up_to_date(path, &text) ? 0 : replace(path, &text, err);
    buf_free(&text);
    return rc;
}

void server_ca_file(const struct conf_gen *gen, char *path, size_t room)
{
    const struct conf *conf = conf_of(gen);
    char name[PROC_PATH_BYTES];
    struct err err = {0};
    bool fits = snprintf(name, sizeof name, "%s/pgpool_ca.%d.pem", conf->work_dir, conf->port) <
                (int)sizeof name;

    path[0] = '\0';
    if (!fits)
        err_set(&err, "54000", "the name of folder \"%s\" is too long", conf->work_dir);
    if (fits && conf_path(gen, name, path, room, &err) == 0 &&
        server_ca_write(gen, path, &err) == 0)
        return;
    err_wrap(&err, "authorities of pgpool's own connections");
    if (fits && is_own(path)) {
        err_hint(&err, "What was in use before stays in use.");
    } else {
        err_hint(&err, "Until this is mended and reloaded no certificate of a server holds there.");
        snprintf(path, room, "%s", SERVER_CA_UNUSABLE);
    }
    log_err(LVL_WARNING, &err);
}
