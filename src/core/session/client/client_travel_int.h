/* SPDX-License-Identifier: PostgreSQL
 * client_travel_int.h: an idle client goes to another worker: its descriptor, and its session as a
 * message, in parts that each have their length in front. Both sides are the same program: structs
 * travel as they are. Runs in: workers. */
#ifndef PGP_SESSION_CLIENT_TRAVEL_INT_H
#define PGP_SESSION_CLIENT_TRAVEL_INT_H

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/slice.h"

struct client;

/* Reads parts in the order in which they were put. */
struct travel_bag {
    const char *p;
    const char *end;
    bool bad;
};

static inline void travel_put(struct buf *out, const void *p, size_t n)
{
    uint32_t len = (uint32_t)n;

    buf_put(out, &len, sizeof len);
    buf_put(out, p, n);
}

static inline struct slice travel_take(struct travel_bag *bag)
{
    uint32_t len;
    const char *p;

    if (bag->bad || (size_t)(bag->end - bag->p) < sizeof len) {
        bag->bad = true;
        return slice_of("", 0);
    }
    memcpy(&len, bag->p, sizeof len);
    p = bag->p + sizeof len;
    if ((size_t)(bag->end - p) < len) {
        bag->bad = true;
        return slice_of("", 0);
    }
    bag->p = p + len;
    return slice_of(p, len);
}

/* A part that is a struct. */
static inline void travel_take_struct(struct travel_bag *bag, void *out, size_t n)
{
    struct slice s = travel_take(bag);

    if (s.n == n)
        memcpy(out, s.p, n);
    else
        bag->bad = true;
}

/* follow_travel.c: what makes the session of a followed client. */
/* True when it is between two exchanges, and all that it is can be told. */
bool follow_can_travel(const struct client *c);
/* follow_can_travel of one that waits for a link with the first message of an exchange. */
bool follow_waiter_can_travel(const struct client *c);
void follow_pack(const struct client *c, struct buf *out);
/* Makes c->sstate; c->pool is there. False: these are no such bytes. */
bool follow_unpack(struct client *c, struct travel_bag *bag);

/* client_travel.c */
bool client_can_travel(struct client *c);
/* Hands the client over to the worker of `ordinal`: it is gone here. False: it is still here. */
bool client_travel(struct client *c, int ordinal);
/* client_travel of one that waits for a link, if it can travel. */
bool client_travel_waiting(struct client *c, int ordinal);

#endif
