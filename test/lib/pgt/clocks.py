# SPDX-License-Identifier: PostgreSQL
"""clocks: programs whose clocks are not this machine's. The wall clock is off by what a test says, at any moment, by a small library in
front of libc's; the clocks that count from the boot of a machine are off by a time namespace. The library also makes programs
believe that the kernel has no IPv6."""
import functools
import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

from pgt import procs

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_us;

static void __attribute__((constructor)) begin(void)
{
    const char *path = getenv("PGT_CLOCK");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *at = fd == -1 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);

    if (fd != -1)
        close(fd);
    if (at != MAP_FAILED)
        offset_us = at;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, out);
    int64_t us;

    if (rc != 0 || offset_us == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return rc;
    us = (int64_t)out->tv_sec * 1000000 + out->tv_nsec / 1000 + *offset_us;
    out->tv_sec = us / 1000000;
    out->tv_nsec = us % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    tv->tv_sec = t.tv_sec;
    tv->tv_usec = t.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (out != NULL)
        *out = t.tv_sec;
    return t.tv_sec;
}

int socket(int domain, int type, int protocol)
{
    if (domain == AF_INET6 && getenv("PGT_NO_IPV6") != NULL) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return (int)syscall(SYS_socket, domain, type, protocol);
}
"""


@functools.cache
def library() -> str | None:
    """None: there is no compiler, or the program under test has sanitizers, which want to be the first library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or procs.is_sanitized():
        return None
    home = procs.folder("clocks")
    (home / "clocks.c").write_text(SOURCE, encoding="ascii")
    procs.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(home / "clocks.so"), str(home / "clocks.c")])
    return str(home / "clocks.so")


def no_ipv6() -> dict[str, str]:
    """Environment of a program on a kernel without IPv6."""
    return {"LD_PRELOAD": library() or "", "PGT_NO_IPV6": "1"}


class WallClock:
    """How far a program's wall clock is off."""

    def __init__(self) -> None:
        self.path: Path = procs.folder("clock") / "offset_us"
        self.path.write_bytes(bytes(mmap.PAGESIZE))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def set(self, seconds: float) -> None:
        self.map[:8] = struct.pack("q", int(seconds * 1e6))

    def env(self) -> dict[str, str]:
        return {"LD_PRELOAD": library() or "", "PGT_CLOCK": str(self.path)}


class BootClock:
    """A time namespace in which the machine has been up for so many seconds more."""

    def __init__(self, seconds: int):
        self.keeper = subprocess.Popen(["unshare", "--time", f"--boottime={seconds}", f"--monotonic={seconds}", "cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.keeper.stdin and self.keeper.stdout
        try:
            self.keeper.stdin.write(b"x")
            self.keeper.stdin.flush()
        except BrokenPipeError:
            pass
        if self.keeper.stdout.read(1) != b"x":  # it has arrived
            self.close()
            raise OSError("no time namespace")

    def enter(self) -> list[str]:
        return ["nsenter", f"--time=/proc/{self.keeper.pid}/ns/time_for_children"]

    def close(self) -> None:
        for pipe in (self.keeper.stdin, self.keeper.stdout, self.keeper.stderr):
            assert pipe
            pipe.close()
        self.keeper.wait()


def why_not() -> str:
    """Why clocks cannot be wrong here; "" when they can."""
    if library() is None:
        return "wrong clocks need a C compiler, and a program without sanitizers"
    try:
        BootClock(1).close()
    except OSError as e:
        return f"time namespaces are not permitted here ({e})"
    return "" if os.path.exists("/proc/self/ns/time") else "the kernel has no time namespaces"
