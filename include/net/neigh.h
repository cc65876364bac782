/* SPDX-License-Identifier: PostgreSQL
 * neigh.h: asking the machines on the wire who has an address, and telling them that we have: ARP
 * for IPv4 (RFC 5227), neighbour solicitation and advertisement for IPv6 (RFC 4861, 4862).
 * Runs in: watchdog. Needs CAP_NET_RAW. Never waits: the caller asks, looks for answers for as long
 * as it wants, and announces. */
#ifndef PGP_NET_NEIGH_H
#define PGP_NET_NEIGH_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "net/ifaddr.h"

#define NEIGH_PACKET_BYTES 256
#define NEIGH_MAC_TEXT     18

enum neigh_said {
    NEIGH_NOTHING, /* about this address */
    NEIGH_HOLDS,   /* another machine has the address */
    NEIGH_ASKS     /* another machine wants to take it as well */
};

/* Opens a socket, not blocking, for packets about the address on the interface, which must have
 * ethernet; -1 with *err. No other packet wakes who waits for it. */
int neigh_open(const struct iflink *link, const struct net_ip *ip, struct err *err);
/* Asks on the wire whether anybody has the address. 0 or -1 with errno. */
int neigh_ask(int fd, const struct iflink *link, const struct net_ip *ip);
/* Tells everybody on the wire that the address is on our interface now. 0 or -1 with errno. */
int neigh_announce(int fd, const struct iflink *link, const struct net_ip *ip);
/* Reads one packet: false when there is none. *said tells what another machine says in it about the
 * address; `mac` then is that machine's. */
bool neigh_read(int fd, const struct iflink *link, const struct net_ip *ip, enum neigh_said *said,
    uint8_t mac[6]);
const char *neigh_mac_text(const uint8_t mac[6], char to[NEIGH_MAC_TEXT]);

/* ---- the packets themselves, for tests ---- */

enum neigh_packet { NEIGH_ASK, NEIGH_TELL, NEIGH_TELL_AS_REPLY };

/* Writes a packet without its ethernet header; how many bytes. */
size_t neigh_make(enum neigh_packet what, const uint8_t mac[6], const struct net_ip *ip,
    uint8_t to[NEIGH_PACKET_BYTES]);
/* What a packet from `from` (the sender's ethernet address) says about the address. `own` is ours:
 * what we sent ourselves says nothing. Fills `mac` unless it says nothing. */
enum neigh_said neigh_judge(const uint8_t *p, size_t n, const uint8_t from[6], const uint8_t own[6],
    const struct net_ip *ip, uint8_t mac[6]);

#endif
