/* SPDX-License-Identifier: PostgreSQL
 * listen.c: opens listening sockets.
 * Runs in: supervisor. */
#include "config.h"

#include "sys/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "sys/clock.h"

#define BACKLOG_MIN          1024
#define SOMAXCONN_FILE       "/proc/sys/net/core/somaxconn"
#define SOMAXCONN_FALLBACK   4096
#define FOLDER_LOCK_WAIT_MS  5000
#define FOLDER_LOCK_RETRY_MS 20

int listen_backlog(long wanted)
{
    FILE *f = fopen(SOMAXCONN_FILE, "re");
    int cap = SOMAXCONN_FALLBACK;

    if (f != NULL) {
        if (fscanf(f, "%d", &cap) != 1 || cap <= 0)
            cap = SOMAXCONN_FALLBACK;
        fclose(f);
    }
    if (wanted < BACKLOG_MIN)
        wanted = BACKLOG_MIN;
    return wanted > cap ? cap : (int)wanted;
}

static void format_name(const struct addrinfo *ai, char *name, size_t size)
{
    char host[64];
    char port[16];

    if (getnameinfo(ai->ai_addr, ai->ai_addrlen, host, sizeof host, port, sizeof port,
            NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(name, size, "?");
    else
        snprintf(name, size, ai->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static bool already_open(const struct listen_sock *socks, int n, const char *name)
{
    int i;

    for (i = 0; i < n; i++) {
        if (strcmp(socks[i].name, name) == 0)
            return true;
    }
    return false;
}

static int open_one_tcp(
    const struct addrinfo *ai, int backlog, struct listen_sock *sock, struct err *err)
{
    int on = 1;

    sock->is_unix = false;
    sock->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock->fd == -1) {
        err_set_errno(err, errno, "could not make a socket for %s", sock->name);
        return -1;
    }
    setsockopt(sock->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (ai->ai_family == AF_INET6)
        setsockopt(sock->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(sock->fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(sock->fd, backlog) == 0)
        return 0;
    err_set_errno(err, errno, "could not bind to %s", sock->name);
    if (errno == EADDRINUSE) {
        memcpy(err->sqlstate, "55006", sizeof err->sqlstate);
        err_hint(err,
            "Is another pgpool or PostgreSQL listening on %s? If not, wait a few seconds "
            "and try again.",
            sock->name);
    }
    close(sock->fd);
    sock->fd = -1;
    return -1;
}

static struct addrinfo *resolve(const char *host, int port, struct err *err)
{
    struct addrinfo hints = {0};
    struct addrinfo *list = NULL;
    char service[16];
    int rc;

    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    snprintf(service, sizeof service, "%d", port);
    rc = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host, service, &hints, &list);
    if (rc != 0) {
        err_set(err, "08001", "could not resolve listen address \"%s\": %s", host,
            rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
        err_hint(err, "Correct listen_addresses (or that of PCP or HTTP); * stands for all.");
        return NULL;
    }
    return list;
}

int listen_open_tcp(const char *host, int port, int backlog, struct listen_sock *socks, int *n,
    int max, struct err *err)
{
    struct addrinfo *list = resolve(host, port, err);
    const struct addrinfo *ai;
    struct err first = {0};
    int opened = 0;
    bool in_use = false;

    if (list == NULL)
        return -1;
    for (ai = list; ai != NULL && *n < max && !in_use; ai = ai->ai_next) {
        struct listen_sock *sock = &socks[*n];
        struct err one = {0};

        if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
            continue;
        format_name(ai, sock->name, sizeof sock->name);
        if (already_open(socks, *n, sock->name)) {
            opened++;
        } else if (open_one_tcp(ai, backlog, sock, &one) == 0) {
            opened++;
            (*n)++;
        } else {
            in_use = strcmp(one.sqlstate, "55006") == 0;
            if (!err_is_set(&first) || in_use)
                first = one;
        }
    }
    freeaddrinfo(list);
    if (opened > 0 && !in_use) {
        if (err_is_set(&first))
            log_err(LVL_WARNING, &first);
        return 0;
    }
    if (!err_is_set(&first))
        err_set(&first, "08001", "listen address \"%s\" has no usable address", host);
    if (err != NULL && !err_is_set(err))
        *err = first;
    return -1;
}

/* Locks the folder against another pgpool that starts now. Returns the descriptor, -1 on failure.
 */
static int lock_folder(const char *dir, struct err *err)
{
    int64_t deadline_us = clock_mono_us() + FOLDER_LOCK_WAIT_MS * CLOCK_US_PER_MS;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd == -1) {
        err_set_errno(err, errno, "could not open folder \"%s\" of a unix socket", dir);
        err_hint(err, "Make it, or name another one in unix_socket_directories.");
        return -1;
    }
    while (flock(fd, LOCK_EX | LOCK_NB) == -1) {
        if (errno != EWOULDBLOCK || clock_mono_us() > deadline_us) {
            err_set_errno(err, errno, "could not lock folder \"%s\"", dir);
            close(fd);
            return -1;
        }
        poll(NULL, 0, FOLDER_LOCK_RETRY_MS);
    }
    return fd;
}

/* True when the file is a socket that nobody listens on. Any doubt means no. */
static bool is_abandoned(const struct sockaddr_un *addr)
{
    struct stat st;
    int fd;
    bool refused;

    if (lstat(addr->sun_path, &st) == -1 || !S_ISSOCK(st.st_mode))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return false;
    refused =
        connect(fd, (const struct sockaddr *)addr, sizeof *addr) == -1 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static int set_owner_and_mode(
    const char *path, const struct listen_unix_opts *opts, struct err *err)
{
    if (opts->group != NULL && *opts->group != '\0') {
        char *end;
        unsigned long number = strtoul(opts->group, &end, 10);
        const struct group *g = *end == '\0' ? NULL : getgrnam(opts->group);

        if (*end != '\0' && g == NULL) {
            err_set(err, "22023", "group \"%s\" of unix_socket_group does not exist", opts->group);
            return -1;
        }
        if (chown(path, (uid_t)-1, g != NULL ? g->gr_gid : (gid_t)number) == -1) {
            err_set_errno(err, errno, "could not set the group of \"%s\"", path);
            return -1;
        }
    }
    if (chmod(path, opts->mode & 0777) == -1) {
        err_set_errno(err, errno, "could not set the permissions of \"%s\"", path);
        return -1;
    }
    return 0;
}

/* Which file it is. The number of a removed file is given out again soon, so its time of birth is
 * looked at too (zero where the file system keeps none). */
static int identify(const char *path, struct listen_file *file)
{
    struct statx st;

    memset(file, 0, sizeof *file);
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &st) == -1)
        return -1;
    file->dev_major = st.stx_dev_major;
    file->dev_minor = st.stx_dev_minor;
    file->ino = st.stx_ino;
    if ((st.stx_mask & STATX_BTIME) != 0)
        file->birth_ns = st.stx_btime.tv_sec * INT64_C(1000000000) + st.stx_btime.tv_nsec;
    return 0;
}

static int bind_unix(struct listen_sock *sock, const struct sockaddr_un *addr,
    const struct listen_unix_opts *opts, int backlog, struct err *err)
{
    const struct sockaddr *sa = (const struct sockaddr *)addr;
    int rc = bind(sock->fd, sa, sizeof *addr);

    if (rc == -1 && errno == EADDRINUSE && is_abandoned(addr)) {
        unlink(addr->sun_path);
        rc = bind(sock->fd, sa, sizeof *addr);
    }
    if (rc == -1) {
        err_set_errno(err, errno, "could not bind to unix socket \"%s\"", addr->sun_path);
        if (errno == EADDRINUSE)
            err_hint(err, "Is another pgpool or PostgreSQL listening on \"%s\"?", addr->sun_path);
        return -1;
    }
    (void)identify(addr->sun_path, &sock->file);
    if (set_owner_and_mode(addr->sun_path, opts, err) == -1)
        return -1;
    if (listen(sock->fd, backlog) == -1) {
        err_set_errno(err, errno, "could not listen on \"%s\"", addr->sun_path);
        return -1;
    }
    return 0;
}

int listen_open_unix(const char *dir, int port, const struct listen_unix_opts *opts, int backlog,
    struct listen_sock *sock, struct err *err)
{
    struct sockaddr_un addr = {0};
    int lock_fd;
    int rc;
    int n;

    addr.sun_family = AF_UNIX;
    n = snprintf(addr.sun_path, sizeof addr.sun_path, "%s/%s%d", dir,
        opts->name != NULL ? opts->name : ".s.PGSQL.", port);
    if (n < 0 || (size_t)n >= sizeof addr.sun_path) {
        err_set(err, "22023", "path of a unix socket in \"%s\" is longer than %zu bytes", dir,
            sizeof addr.sun_path - 1);
        return -1;
    }
    memset(sock, 0, sizeof *sock);
    snprintf(sock->name, sizeof sock->name, "%s", addr.sun_path);
    sock->is_unix = true;
    sock->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sock->fd == -1) {
        err_set_errno(err, errno, "could not make a unix socket");
        return -1;
    }
    lock_fd = lock_folder(dir, err);
    rc = lock_fd == -1 ? -1 : bind_unix(sock, &addr, opts, backlog, err);
    if (rc == -1)
        listen_close(sock);
    if (lock_fd != -1)
        close(lock_fd);
    return rc;
}

void listen_close(struct listen_sock *sock)
{
    struct listen_file now;

    if (sock->fd == -1)
        return;
    if (sock->is_unix && sock->file.ino != 0 && identify(sock->name, &now) == 0 &&
        memcmp(&now, &sock->file, sizeof now) == 0)
        unlink(sock->name);
    shutdown(sock->fd, SHUT_RDWR);
    close(sock->fd);
    sock->fd = -1;
}
