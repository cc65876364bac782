/* SPDX-License-Identifier: PostgreSQL
 * wd_net.h: the connections between the pgpools of a cluster.
 * Runs in: watchdog. Each calls each other one, and sends on the connection that it has opened;
 * what it receives comes on those that the others have opened. Who does not prove that it knows
 * wd_authkey is sent away and counted. Never waits. */
#ifndef PGP_WATCHDOG_WD_NET_H
#define PGP_WATCHDOG_WD_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "cluster/wd_state.h"
#include "event/loop.h"

struct conf;
struct wd_net;

struct wd_net_calls {
    /* A message of member `from`, whose seal was good. */
    void (*on_message)(void *owner, int from, char type, struct slice body);
    /* Member `to` can be sent to from now on. */
    void (*on_open)(void *owner, int to);
};

/* Makes it for the pgpool number `self`; it listens and calls as wd_net_set says. */
struct wd_net *wd_net_new(struct loop *lp, int self, const struct wd_net_calls *calls, void *owner);
/* Takes the settings over: who is there, where to listen, the key. */
void wd_net_set(struct wd_net *net, const struct conf *conf);
/* Sends; false when there is no connection, or it takes no more. */
bool wd_net_send(struct wd_net *net, int to, char type, struct slice body);
/* Sends to all that can be reached; returns how many these are. */
int wd_net_send_all(struct wd_net *net, char type, struct slice body);
bool wd_net_is_open(const struct wd_net *net, int to);
/* Loop time of the last message of `from`; 0: none came, or its connection is gone. */
int64_t wd_net_heard_us(const struct wd_net *net, int from);
/* How many were refused. */
uint64_t wd_net_strangers(const struct wd_net *net);
void wd_net_free(struct wd_net **np);

#endif
