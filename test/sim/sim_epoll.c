/* SPDX-License-Identifier: PostgreSQL
 * sim_epoll.c: epoll sets over simulated descriptors, level-triggered as the kernel's. Which of the
 * descriptors that are ready are told of, and in which order, is chance. libuv's own descriptor may
 * be a member; it is never ready, for nothing here comes to libuv by a descriptor. */
#include "config.h"

#include "sim.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/assert.h"

#define MAX_SETS  8
#define FIRST_SET (SIM_FD_BASE + SIM_MAX_FDS)

struct member {
    bool used;
    struct epoll_event ev;
};

struct set {
    bool used;
    struct member of[SIM_MAX_FDS];
};

static struct set sets[MAX_SETS];

int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int set, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_wait(int set, struct epoll_event *ev, int max, int timeout_ms);

static struct set *set_of(int fd)
{
    return fd >= FIRST_SET && fd < FIRST_SET + MAX_SETS ? &sets[fd - FIRST_SET] : NULL;
}

int __wrap_epoll_create1(int flags)
{
    int i;

    (void)flags;
    for (i = 0; i < MAX_SETS && sets[i].used; i++)
        continue;
    ASSERT(i < MAX_SETS);
    memset(&sets[i], 0, sizeof sets[i]);
    sets[i].used = true;
    return FIRST_SET + i;
}

int __wrap_epoll_ctl(int set, int op, int fd, struct epoll_event *ev)
{
    struct set *s = set_of(set);
    struct member *m;

    ASSERT(s != NULL && s->used);
    if (fd < SIM_FD_BASE || fd >= FIRST_SET)
        return 0; /* libuv's */
    m = &s->of[fd - SIM_FD_BASE];
    if (m->used != (op != EPOLL_CTL_ADD)) {
        errno = m->used ? EEXIST : ENOENT;
        return -1;
    }
    m->used = op != EPOLL_CTL_DEL;
    if (m->used)
        m->ev = *ev;
    return 0;
}

static uint32_t member_ready(const struct set *s, int i)
{
    return s->of[i].used ? sim_net_epoll(SIM_FD_BASE + i) &
                               (s->of[i].ev.events | (uint32_t)EPOLLERR | (uint32_t)EPOLLHUP)
                         : 0;
}

bool sim_epoll_is_ready(int set)
{
    const struct set *s = set_of(set);
    int i;

    for (i = 0; i < SIM_MAX_FDS; i++)
        if (member_ready(s, i) != 0)
            return true;
    return false;
}

int __wrap_epoll_wait(int set, struct epoll_event *ev, int max, int timeout_ms)
{
    struct set *s = set_of(set);
    struct epoll_event one;
    uint32_t events;
    uint32_t at;
    int n = 0;
    int i;

    ASSERT(s != NULL && timeout_ms == 0);
    for (i = 0; i < SIM_MAX_FDS && n < max; i++) {
        events = member_ready(s, i);
        if (events == 0)
            continue;
        ev[n] = s->of[i].ev;
        ev[n++].events = events;
    }
    for (i = 0; i + 1 < n; i++) {
        at = (uint32_t)i + sim_below((uint32_t)(n - i));
        one = ev[at];
        ev[at] = ev[i];
        ev[i] = one;
    }
    return n > 1 && !sim_one_in(3) ? 1 + (int)sim_below((uint32_t)n) : n;
}

bool sim_epoll_close(int fd)
{
    struct set *s = set_of(fd);

    if (s != NULL)
        s->used = false;
    return s != NULL;
}

void sim_epoll_forget(int fd, bool is_last)
{
    int i;

    for (i = 0; i < MAX_SETS; i++) {
        if (!sets[i].used || !sets[i].of[fd - SIM_FD_BASE].used)
            continue;
        if (!is_last)
            sim_fail("descriptor %d is closed, and watched still: it is open elsewhere", fd);
        sets[i].of[fd - SIM_FD_BASE].used = false;
    }
}
