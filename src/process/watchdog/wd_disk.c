/* SPDX-License-Identifier: PostgreSQL
 * wd_disk.c: who this pgpool is, and the folder that holds the log of the cluster.
 * Runs in: watchdog. The folder has an identity of its own: a pgpool whose disk was emptied has
 * forgotten what it voted and promised, and must not be taken for who it was. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "config/wd_id.h"
#include "crypto/crypto.h"
#include "sys/fd.h"

#include "wd_int.h"

#define IDENTITY_FILE "identity"
#define ELECTION_FILE "election_timeout"
#define LOG_FOLDER    "log"

static void name_self(struct wd *w)
{
    const struct conf *conf = wd_conf(w);
    const struct conf_wd_node *own = &conf->wd_nodes[w->self];
    struct utsname u;

    memset(&u, 0, sizeof u);
    (void)uname(&u);
    snprintf(w->name, sizeof w->name, "%.48s:%d %.16s %.40s", own->hostname,
        own->pgpool_port != 0 ? own->pgpool_port : conf->port, u.sysname, u.nodename);
}

static int make_folder(const char *path, struct err *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    err_set_errno(err, errno, "could not make folder \"%s\"", path);
    return -1;
}

/* A log is at least one segment (open-1, 0000000000000001-...) or snapshot. */
static bool is_of_log(const char *name)
{
    return strncmp(name, "open-", 5) == 0 || strncmp(name, "snapshot-", 9) == 0 ||
           (name[0] >= '0' && name[0] <= '9');
}

static bool has_log(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    bool found = false;

    while (d != NULL && (e = readdir(d)) != NULL)
        found = found || is_of_log(e->d_name);
    if (d != NULL)
        closedir(d);
    return found;
}

/* libraft writes the term in front of the first segment: alone it is what a beginning on a full
 * disk leaves. Only who has a log votes, so nothing was promised with it; left there, it would keep
 * libraft from beginning a log, and the others would take this one for a member of a cluster. */
static int drop_term(const char *dir, struct err *err)
{
    char path[WD_PATH_BYTES + 16];
    int i;

    for (i = 1; i <= 2; i++) {
        snprintf(path, sizeof path, "%s/metadata%d", dir, i);
        if (unlink(path) == -1 && errno != ENOENT) {
            err_set_errno(err, errno, "could not remove file \"%s\"", path);
            return -1;
        }
    }
    return 0;
}

/* A file beside the folder of the log. */
static void file_path(const struct wd *w, const char *name, char *out, size_t room)
{
    snprintf(out, room, "%.*s/%s", (int)(strlen(w->dir) - strlen("/" LOG_FOLDER)), w->dir, name);
}

int wd_disk_renew(struct wd *w, struct err *err)
{
    char path[WD_PATH_BYTES + 16];
    int fd;
    int rc;

    if (crypto_random(w->identity, sizeof w->identity, err) == -1)
        return -1;
    file_path(w, IDENTITY_FILE, path, sizeof path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    rc = fd == -1 ? -1 : fd_write_all(fd, w->identity, sizeof w->identity);
    if (rc == 0)
        rc = fsync(fd);
    if (rc != 0)
        err_set_errno(err, errno, "could not write file \"%s\"", path);
    if (fd != -1)
        close(fd);
    return rc == 0 ? 0 : -1;
}

static bool read_identity(struct wd *w)
{
    char path[WD_PATH_BYTES + 16];
    int fd;
    ssize_t n;

    file_path(w, IDENTITY_FILE, path, sizeof path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return false;
    n = read(fd, w->identity, sizeof w->identity);
    close(fd);
    return n == (ssize_t)sizeof w->identity;
}

/* 0: this disk does not say. */
static int64_t read_promise(const struct wd *w)
{
    char path[WD_PATH_BYTES + 32];
    char text[24] = "";
    int fd;

    file_path(w, ELECTION_FILE, path, sizeof path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return 0;
    (void)!read(fd, text, sizeof text - 1);
    close(fd);
    return strtoll(text, NULL, 10);
}

/* A machine that loses its power takes longer to come back than any promise lasts: no fsync. */
int wd_disk_promise(struct wd *w, struct err *err)
{
    int64_t now_ms = wd_conf(w)->wd_election_timeout_ms;
    char path[WD_PATH_BYTES + 32];
    char next[WD_PATH_BYTES + 32];
    char text[24];
    int fd;
    int rc;

    if (read_promise(w) == now_ms)
        return 0;
    file_path(w, ELECTION_FILE, path, sizeof path);
    file_path(w, ELECTION_FILE ".next", next, sizeof next);
    snprintf(text, sizeof text, "%lld\n", (long long)now_ms);
    fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    rc = fd == -1 ? -1 : fd_write_all(fd, text, strlen(text));
    if (fd != -1 && close(fd) == -1)
        rc = -1;
    if (rc == 0)
        rc = rename(next, path);
    if (rc != 0)
        err_set_errno(err, errno, "could not write file \"%s\"", path);
    return rc == 0 ? 0 : -1;
}

int wd_disk_open(struct wd *w, struct err *err)
{
    char work[WD_PATH_BYTES - 64];

    if (wd_id_read(role_loop_gen(&w->role), &w->self, err) == -1 ||
        conf_path(role_loop_gen(&w->role), wd_conf(w)->work_dir, work, sizeof work, err) == -1)
        return -1;
    snprintf(w->dir, sizeof w->dir, "%s/pgpool_watchdog.%d", work, w->self);
    if (make_folder(w->dir, err) == -1)
        return -1;
    strncat(w->dir, "/" LOG_FOLDER, sizeof w->dir - strlen(w->dir) - 1);
    if (make_folder(w->dir, err) == -1)
        return -1;
    name_self(w);
    w->promised_ms = read_promise(w);
    if (w->promised_ms < wd_conf(w)->wd_election_timeout_ms)
        w->promised_ms = wd_conf(w)->wd_election_timeout_ms;
    w->is_new = !has_log(w->dir);
    if (w->is_new && drop_term(w->dir, err) == -1)
        return -1;
    if (!w->is_new && read_identity(w))
        return 0;
    return wd_disk_renew(w, err);
}
