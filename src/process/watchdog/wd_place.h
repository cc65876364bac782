/* SPDX-License-Identifier: PostgreSQL
 * wd_place.h: on which interface the virtual address belongs, and with which prefix and label.
 * Runs in: watchdog. Pure: what if_up_cmd says, and what the machine has. */
#ifndef PGP_WATCHDOG_WD_PLACE_H
#define PGP_WATCHDOG_WD_PLACE_H

#include <stdbool.h>

#include "base/err.h"
#include "net/ifaddr.h"

/* What an operator wrote into if_up_cmd. */
struct wd_place_words {
    char dev[IFNAMSIZ];   /* "" when it does not say */
    char label[IFNAMSIZ]; /* "" when it does not say */
    int prefix;           /* -1 when it does not say */
};

/* What a machine has. */
struct wd_place_host {
    struct net_addr addr[IFADDR_MAX];
    struct iflink link[IFLINK_MAX];
    int naddrs;
    int nlinks;
};

/* Reads `ip addr add $_IP_$/24 dev eth0 label eth0:0` and the like, `ifconfig eth0:0 $_IP_$ ...` as
 * far as it goes. */
void wd_place_read(const char *command, struct wd_place_words *words);
/* Looks at the machine. 0 or -1 with *err. */
int wd_place_look(struct wd_place_host *host, struct err *err);
/* Chooses: the interface that the operator named; with the default command (`is_default`) the one
 * whose network has the address, before the one of the default. The prefix is the command's, else
 * the network's, else that of a single address. 0, or -1 with *err when there is no place. */
int wd_place_choose(const struct wd_place_host *host, const struct wd_place_words *words,
    bool is_default, const struct net_ip *ip, struct net_addr *where, struct iflink *link,
    struct err *err);
/* The address when it is on the machine; NULL when it is not. */
const struct net_addr *wd_place_find(const struct wd_place_host *host, const struct net_ip *ip);

#endif
