/* SPDX-License-Identifier: PostgreSQL
 * ifaddr.h: addresses of this machine's interfaces, over netlink: which there are, setting one with
 * a lifetime, removing it, and being told of changes.
 * Runs in: watchdog. A request is carried out by the kernel before the call returns; nothing here
 * waits for another machine. */
#ifndef PGP_NET_IFADDR_H
#define PGP_NET_IFADDR_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* An address of IPv4 (the first four bytes) or IPv6. */
struct net_ip {
    int family; /* AF_INET, AF_INET6; 0: none */
    uint8_t bytes[16];
};

/* One address on one interface. */
struct net_addr {
    struct net_ip ip;
    int prefix;
    unsigned ifindex;
    char label[IFNAMSIZ]; /* "" for the interface's name; IPv4 only */
    bool is_lasting;      /* it has no lifetime; read by ifaddr_list alone */
};

/* An interface. */
struct iflink {
    unsigned ifindex;
    char name[IFNAMSIZ];
    bool is_up; /* switched on, and the wire (or what stands for one) is there */
    bool is_loopback;
    bool has_ethernet; /* neighbours are found by ARP or neighbour solicitation */
    uint8_t mac[6];    /* when it has_ethernet */
};

#define NET_IP_TEXT INET6_ADDRSTRLEN
#define IFADDR_MAX  512 /* more addresses or interfaces than these are not looked at */
#define IFLINK_MAX  256

/* Reads a literal address; false when it is none. */
bool net_ip_parse(const char *text, struct net_ip *ip);
/* Writes it into `to` and returns that. */
const char *net_ip_text(const struct net_ip *ip, char to[NET_IP_TEXT]);
bool net_ip_eq(const struct net_ip *a, const struct net_ip *b);
/* 4 or 16. */
size_t net_ip_size(const struct net_ip *ip);
/* True when the first `prefix` bits are the same. */
bool net_ip_in(const struct net_ip *ip, const struct net_ip *net, int prefix);

/* Opens a socket for the requests below; -1 with *err. */
int ifaddr_open(struct err *err);
/* Sets the address, or a new lifetime when it is there: the kernel removes it `valid_s` seconds
 * from now (and up to a second later, for it looks once a second at most). An address of IPv6 is
 * usable at once, without the kernel asking for duplicates, and is not chosen for connections that
 * begin here. 0; or the kernel's errno with *err: EPERM without CAP_NET_ADMIN. */
int ifaddr_set(int fd, const struct net_addr *a, uint32_t valid_s, struct err *err);
/* Removes it. 0; EADDRNOTAVAIL when it was not there; EPERM; another errno. *err for all but the
 * first. */
int ifaddr_remove(int fd, const struct net_addr *a, struct err *err);
/* Fills at most `max` addresses of all interfaces into `to`; how many, or -1 with *err. */
int ifaddr_list(struct net_addr *to, int max, struct err *err);
/* Fills at most `max` interfaces into `to`; how many, or -1 with *err. */
int iflink_list(struct iflink *to, int max, struct err *err);
/* Fills *to for the interface of that number; false when there is none. */
bool iflink_of(unsigned ifindex, struct iflink *to);

/* Opens a socket, not blocking, that is readable when addresses or interfaces have changed; -1 with
 * *err. */
int ifaddr_watch(struct err *err);
/* Reads away what it says. True when an address was removed or an interface has changed: the caller
 * looks at the lists. New addresses and lifetimes are not told. */
bool ifaddr_watch_read(int fd);

#endif
