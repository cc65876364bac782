# SPDX-License-Identifier: PostgreSQL
"""late: a pgpool whose processes are scheduled late, or whose sockets say little at a time, by a small library in front of libc's.

What a test takes for granted about the order of two sockets, or about what pgpool has noticed, fails soon under it."""
import os
import shutil
from pathlib import Path

from pgt import procs

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LEAST_MS 5
#define MOST_MS  60
#define FEW      64 /* bytes, at most, of a read that is cut */

static uint64_t dice;
static int whose; /* each process has dice of its own */
static int late;  /* one call in so many; 0: none */
static int few;

static uint32_t throw_dice(uint32_t sides)
{
    int pid = (int)getpid();
    uint64_t z;

    if (whose != pid) {
        dice = strtoull(getenv("PGT_LATE_SEED"), NULL, 10) * 1000003U + (uint64_t)pid;
        late = atoi(getenv("PGT_LATE"));
        few = atoi(getenv("PGT_FEW"));
        whose = pid;
    }
    z = __atomic_add_fetch(&dice, 0x9E3779B97F4A7C15U, __ATOMIC_RELAXED);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return (uint32_t)((z ^ (z >> 31)) % sides);
}

int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
    int (*next)(int, struct epoll_event *, int, int, const sigset_t *) = dlsym(RTLD_NEXT, "epoll_pwait");
    int found = next(fd, events, n, timeout, mask);
    int why = errno;
    uint32_t spread = throw_dice(MOST_MS - LEAST_MS + 1);
    struct timespec t = {0, (long)(LEAST_MS + spread) * 1000000};

    if ((found > 0 || timeout != 0) && late > 0 && throw_dice((uint32_t)late) == 0)
        nanosleep(&t, NULL);
    errno = why;
    return found;
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    return epoll_pwait(fd, events, n, timeout, NULL);
}

/* What is left of a datagram, netlink's say, would be lost. */
static int is_stream(int fd)
{
    int type = 0;
    socklen_t n = sizeof type;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
}

/* Who is told of new bytes once (libmicrohttpd) takes a read that was cut for all there is. */
static unsigned char is_told_once[4096];

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    int (*next)(int, int, int, struct epoll_event *) = dlsym(RTLD_NEXT, "epoll_ctl");

    if (event != NULL && fd >= 0 && fd < (int)sizeof is_told_once)
        is_told_once[fd] = (event->events & EPOLLET) != 0;
    return next(epoll, op, fd, event);
}

static int may_cut(int fd)
{
    return fd >= 0 && (fd >= (int)sizeof is_told_once || !is_told_once[fd]) && is_stream(fd);
}

ssize_t recv(int fd, void *to, size_t n, int flags)
{
    ssize_t (*next)(int, void *, size_t, int) = dlsym(RTLD_NEXT, "recv");
    size_t some = 1 + throw_dice(FEW);

    if (flags == 0 && few > 0 && some < n && throw_dice((uint32_t)few) == 0 && may_cut(fd))
        n = some;
    return next(fd, to, n, flags);
}
"""


LINGER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static void linger(void)
{
    int why = errno;
    long ms = strtol(getenv("PGT_LINGER"), NULL, 10);
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
    errno = why;
}

/* A client says goodbye, or has gone without a word. */
ssize_t recv(int fd, void *to, size_t n, int flags)
{
    ssize_t (*next)(int, void *, size_t, int) = dlsym(RTLD_NEXT, "recv");
    ssize_t got = next(fd, to, n, flags);

    if (got == 0 || (got >= 5 && memcmp((char *)to + got - 5, "X\0\0\0\4", 5) == 0))
        linger();
    return got;
}

static void (*ends)(int);

static void end_late(int sig)
{
    linger();
    ends(sig);
}

int sigaction(int sig, const struct sigaction *act, struct sigaction *was)
{
    int (*next)(int, const struct sigaction *, struct sigaction *) = dlsym(RTLD_NEXT, "sigaction");
    struct sigaction mine;

    if (sig != SIGTERM || act == NULL || act->sa_handler == SIG_DFL || act->sa_handler == SIG_IGN || act->sa_handler == end_late)
        return next(sig, act, was);
    ends = act->sa_handler;
    mine = *act;
    mine.sa_handler = end_late;
    return next(sig, &mine, was);
}
"""

linger_env: dict[str, str] = {}  # of each PostgreSQL that is started


def have_servers_linger(ms: int) -> None:
    """From now on a process of PostgreSQL takes so long to notice that its client has gone, or that it is told to end: what it
    holds (locks, temporary tables, a place among the connections) is there for so long."""
    home = procs.folder("linger")
    (home / "linger.c").write_text(LINGER, encoding="ascii")
    procs.run([shutil.which("cc") or "gcc", "-shared", "-fPIC", "-O1", "-o", str(home / "linger.so"), str(home / "linger.c"), "-ldl"])
    linger_env.update({"PGT_LINGER": str(ms), "LD_PRELOAD": str(home / "linger.so")})


NAME = "by-turns.invalid"
BY_TURNS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>

static int turns;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");

    if (name == NULL || strcmp(name, "by-turns.invalid") != 0)
        return next(name, service, hints, found);
    if (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0)
        return EAI_NONAME;
    return next(__atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED) % 2 == 0 ? "127.0.0.1" : "127.0.0.2", service, hints, found);
}
"""


def names_by_turns() -> Path:
    """A program that is pgpool, for which NAME leads to 127.0.0.1 and 127.0.0.2 by turns, as DNS does with several addresses."""
    home = procs.folder("by-turns")
    (home / "by_turns.c").write_text(BY_TURNS, encoding="ascii")
    procs.run([shutil.which("cc") or "gcc", "-shared", "-fPIC", "-o", str(home / "by_turns.so"), str(home / "by_turns.c"), "-ldl"])
    script = home / "pgpool"
    script.write_text(f"#!/bin/sh\nLD_PRELOAD=\"{home}/by_turns.so $LD_PRELOAD\" exec {os.environ['PGPOOL_BIN']} \"$@\"\n", encoding="utf-8")
    script.chmod(0o755)
    return script


def reads_pieces() -> bool:
    """--few: a sequence that was sent at once may come to pgpool in pieces, and is routed before all of it is there."""
    return "PGT_READS_PIECES" in os.environ


def put_in_front(late: int, few: int) -> None:
    """From now on PGPOOL_BIN is a pgpool that is late one time in `late`, and reads a few bytes one time in `few`."""
    program = Path(os.environ["PGPOOL_BIN"])
    if few > 0:
        os.environ["PGT_READS_PIECES"] = "1"
    home = procs.folder("late")
    for other in program.parent.iterdir():  # tests look for programs beside it
        if other.is_file() and other.name != program.name:
            (home / other.name).symlink_to(other)
    (home / "late.c").write_text(SOURCE, encoding="ascii")
    compiler = shutil.which("cc") or "gcc"
    procs.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(home / "late.so"), str(home / "late.c"), "-ldl"])
    script = home / program.name
    script.write_text(f"#!/bin/sh\nPGT_LATE={late} PGT_FEW={few} PGT_LATE_SEED={os.environ.get('PGT_LATE_SEED', os.getpid())} "
                      f"LD_PRELOAD=\"{home}/late.so $LD_PRELOAD\"\nexport PGT_LATE PGT_FEW PGT_LATE_SEED LD_PRELOAD\nexec {program} \"$@\"\n",
                      encoding="utf-8")
    script.chmod(0o755)
    os.environ["PGPOOL_BIN"] = str(script)
