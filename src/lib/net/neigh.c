/* SPDX-License-Identifier: PostgreSQL
 * neigh.c: ARP and neighbour discovery, packet by packet, over a packet socket.
 * Runs in: watchdog. A packet socket, because a question for duplicates has no sender's address,
 * and because the kernel keeps answers about addresses that are not its own to itself. What comes
 * from the wire is not trusted: every length is checked. */
#include "config.h"

#include "net/neigh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ARP_BYTES     28
#define ARP_REQUEST   1
#define ARP_REPLY     2
#define IP6_HEAD      40
#define ND_BYTES      24 /* type, code, checksum, flags, target */
#define ND_OPTION     8  /* the ethernet address */
#define ND_SOLICIT    135
#define ND_ADVERTISE  136
#define ICMP6         58
#define ND_TARGET_MAC 2

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
static const uint8_t no_ip[16];

/* ---- ARP ---- */

static const uint8_t arp_head[6] = {0, 1, 0x08, 0x00, 6, 4}; /* IPv4 over ethernet */

static size_t make_arp(
    enum neigh_packet what, const uint8_t mac[6], const struct net_ip *ip, uint8_t *to)
{
    memset(to, 0, ARP_BYTES);
    memcpy(to, arp_head, sizeof arp_head);
    to[7] = what == NEIGH_TELL_AS_REPLY ? ARP_REPLY : ARP_REQUEST;
    memcpy(to + 8, mac, 6);
    if (what != NEIGH_ASK)
        memcpy(to + 14, ip->bytes, 4);
    if (what == NEIGH_TELL_AS_REPLY)
        memcpy(to + 18, everybody, 6);
    memcpy(to + 24, ip->bytes, 4);
    return ARP_BYTES;
}

static enum neigh_said judge_arp(
    const uint8_t *p, size_t n, const uint8_t own[6], const struct net_ip *ip, uint8_t mac[6])
{
    const uint8_t *sender = p + 8;

    if (n < ARP_BYTES || memcmp(p, arp_head, sizeof arp_head) != 0 || memcmp(sender, own, 6) == 0)
        return NEIGH_NOTHING;
    memcpy(mac, sender, 6);
    if (memcmp(p + 14, ip->bytes, 4) == 0)
        return NEIGH_HOLDS;
    if (p[7] == ARP_REQUEST && memcmp(p + 14, no_ip, 4) == 0 && memcmp(p + 24, ip->bytes, 4) == 0)
        return NEIGH_ASKS;
    return NEIGH_NOTHING;
}

/* ---- IPv6 ---- */

static uint32_t sum_up(uint32_t sum, const uint8_t *p, size_t n)
{
    size_t i;

    for (i = 0; i + 1 < n; i += 2)
        sum += (uint32_t)(p[i] << 8 | p[i + 1]);
    return sum;
}

/* The checksum of ICMPv6 covers addresses, length and protocol; all lengths here are even. */
static void put_checksum(uint8_t *packet, size_t n)
{
    uint32_t sum = (uint32_t)(n - IP6_HEAD) + ICMP6;

    sum = sum_up(sum, packet + 8, n - 8);
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    sum = ~sum & 0xffff;
    packet[IP6_HEAD + 2] = (uint8_t)(sum >> 8);
    packet[IP6_HEAD + 3] = (uint8_t)sum;
}

static size_t make_nd(
    enum neigh_packet what, const uint8_t mac[6], const struct net_ip *ip, uint8_t *to)
{
    size_t n = IP6_HEAD + ND_BYTES + (what == NEIGH_ASK ? 0 : ND_OPTION);
    uint8_t *nd = to + IP6_HEAD;

    memset(to, 0, n);
    to[0] = 0x60;
    to[5] = (uint8_t)(n - IP6_HEAD);
    to[6] = ICMP6;
    to[7] = 255; /* packets with less have passed a router and are not believed */
    memcpy(nd + 8, ip->bytes, 16);
    if (what == NEIGH_ASK) {
        memcpy(to + 24, (const uint8_t[]){0xff, 0x02, [11] = 1, [12] = 0xff}, 13);
        memcpy(to + 37, ip->bytes + 13, 3);
        nd[0] = ND_SOLICIT;
    } else {
        memcpy(to + 8, ip->bytes, 16);
        memcpy(to + 24, all_nodes, 16);
        nd[0] = ND_ADVERTISE;
        nd[4] = 0x20; /* override what is known */
        nd[24] = ND_TARGET_MAC;
        nd[25] = 1;
        memcpy(nd + 26, mac, 6);
    }
    put_checksum(to, n);
    return n;
}

static enum neigh_said judge_nd(const uint8_t *p, size_t n, const uint8_t from[6],
    const uint8_t own[6], const struct net_ip *ip, uint8_t mac[6])
{
    const uint8_t *nd = p + IP6_HEAD;

    if (n < IP6_HEAD + ND_BYTES || p[6] != ICMP6 || p[7] != 255 || memcmp(from, own, 6) == 0 ||
        memcmp(nd + 8, ip->bytes, 16) != 0)
        return NEIGH_NOTHING;
    memcpy(mac, from, 6);
    if (nd[0] == ND_ADVERTISE)
        return NEIGH_HOLDS;
    if (nd[0] == ND_SOLICIT && memcmp(p + 8, no_ip, 16) == 0)
        return NEIGH_ASKS;
    return NEIGH_NOTHING;
}

/* ---- packets of either ---- */

size_t neigh_make(enum neigh_packet what, const uint8_t mac[6], const struct net_ip *ip,
    uint8_t to[NEIGH_PACKET_BYTES])
{
    return ip->family == AF_INET ? make_arp(what, mac, ip, to) : make_nd(what, mac, ip, to);
}

enum neigh_said neigh_judge(const uint8_t *p, size_t n, const uint8_t from[6], const uint8_t own[6],
    const struct net_ip *ip, uint8_t mac[6])
{
    return ip->family == AF_INET ? judge_arp(p, n, own, ip, mac)
                                 : judge_nd(p, n, from, own, ip, mac);
}

const char *neigh_mac_text(const uint8_t mac[6], char to[NEIGH_MAC_TEXT])
{
    snprintf(to, NEIGH_MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
        mac[4], mac[5]);
    return to;
}

/* ---- the socket ---- */

static uint16_t protocol_of(int family)
{
    return htons(family == AF_INET ? ETH_P_ARP : ETH_P_IPV6);
}

static uint32_t word_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

#define LOAD_BYTE(at)           BPF_STMT(BPF_LD | BPF_B | BPF_ABS, at)
#define LOAD_WORD(at)           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define IF_SAME(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define PASS                    BPF_STMT(BPF_RET | BPF_K, NEIGH_PACKET_BYTES)
#define BLOCK                   BPF_STMT(BPF_RET | BPF_K, 0)

/* The kernel sorts out what is not about the address: all packets of IPv6, those of clients and
 * servers too, and all questions of ARP on the wire would come here else. */
static int filter(int fd, const struct net_ip *ip)
{
    const uint8_t *b = ip->bytes;
    struct sock_filter arp[] = {LOAD_WORD(14), IF_SAME(word_at(b), 3, 0), IF_SAME(0, 0, 3),
        LOAD_WORD(24), IF_SAME(word_at(b), 0, 1), PASS, BLOCK};
    struct sock_filter nd[] = {LOAD_BYTE(6), IF_SAME(ICMP6, 0, 12), LOAD_BYTE(IP6_HEAD),
        IF_SAME(ND_SOLICIT, 1, 0), IF_SAME(ND_ADVERTISE, 0, 9), LOAD_WORD(IP6_HEAD + 8),
        IF_SAME(word_at(b), 0, 7), LOAD_WORD(IP6_HEAD + 12), IF_SAME(word_at(b + 4), 0, 5),
        LOAD_WORD(IP6_HEAD + 16), IF_SAME(word_at(b + 8), 0, 3), LOAD_WORD(IP6_HEAD + 20),
        IF_SAME(word_at(b + 12), 0, 1), PASS, BLOCK};
    struct sock_fprog of_arp = {sizeof arp / sizeof arp[0], arp};
    struct sock_fprog of_nd = {sizeof nd / sizeof nd[0], nd};

    return setsockopt(
        fd, SOL_SOCKET, SO_ATTACH_FILTER, ip->family == AF_INET ? &of_arp : &of_nd, sizeof of_arp);
}

int neigh_open(const struct iflink *link, const struct net_ip *ip, struct err *err)
{
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
        .sll_protocol = protocol_of(ip->family),
        .sll_ifindex = (int)link->ifindex};
    struct packet_mreq want = {.mr_ifindex = (int)link->ifindex, .mr_type = PACKET_MR_ALLMULTI};
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd == -1 || filter(fd, ip) == -1 || bind(fd, (struct sockaddr *)&at, sizeof at) == -1) {
        err_set_errno(err, errno, "could not listen to the neighbours on %s", link->name);
        if (fd != -1)
            close(fd);
        return -1;
    }
    /* Questions of others for an address of IPv6 go to a group that we are not in. */
    if (ip->family == AF_INET6)
        (void)setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &want, sizeof want);
    return fd;
}

static int send_packet(
    int fd, const struct iflink *link, enum neigh_packet what, const struct net_ip *ip)
{
    uint8_t packet[NEIGH_PACKET_BYTES];
    size_t n = neigh_make(what, link->mac, ip, packet);
    struct sockaddr_ll to = {.sll_family = AF_PACKET,
        .sll_protocol = protocol_of(ip->family),
        .sll_ifindex = (int)link->ifindex,
        .sll_halen = 6};

    if (ip->family == AF_INET) {
        memcpy(to.sll_addr, everybody, 6);
    } else {
        to.sll_addr[0] = to.sll_addr[1] = 0x33;
        memcpy(to.sll_addr + 2, packet + 36, 4);
    }
    return sendto(fd, packet, n, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to) == -1 ? -1 : 0;
}

int neigh_ask(int fd, const struct iflink *link, const struct net_ip *ip)
{
    return send_packet(fd, link, NEIGH_ASK, ip);
}

/* Some machines look at requests only, some at replies only. */
int neigh_announce(int fd, const struct iflink *link, const struct net_ip *ip)
{
    if (ip->family == AF_INET && send_packet(fd, link, NEIGH_TELL_AS_REPLY, ip) == -1)
        return -1;
    return send_packet(fd, link, NEIGH_TELL, ip);
}

bool neigh_read(int fd, const struct iflink *link, const struct net_ip *ip, enum neigh_said *said,
    uint8_t mac[6])
{
    uint8_t packet[NEIGH_PACKET_BYTES];
    struct sockaddr_ll from = {0};
    socklen_t len = sizeof from;
    ssize_t n;

    do
        n = recvfrom(fd, packet, sizeof packet, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
    while (n == -1 && errno == EINTR);
    *said = NEIGH_NOTHING;
    if (n == -1)
        return false;
    if (from.sll_pkttype != PACKET_OUTGOING && from.sll_halen == 6)
        *said = neigh_judge(packet, (size_t)n, from.sll_addr, link->mac, ip, mac);
    return true;
}
