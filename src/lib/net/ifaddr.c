/* SPDX-License-Identifier: PostgreSQL
 * ifaddr.c: addresses of this machine's interfaces, over netlink.
 * Runs in: watchdog. One request at a time: the kernel has put its answer into the socket before
 * send returns, so nothing is waited for. Must never ask another machine. */
#include "config.h"

#include "net/ifaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

#define ANSWER_BYTES 32768 /* what the kernel puts into one datagram of a list, at most */

/* ---- addresses as values ---- */

bool net_ip_parse(const char *text, struct net_ip *ip)
{
    memset(ip, 0, sizeof *ip);
    ip->family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
    if (inet_pton(ip->family, text, ip->bytes) == 1)
        return true;
    ip->family = 0;
    return false;
}

const char *net_ip_text(const struct net_ip *ip, char to[NET_IP_TEXT])
{
    to[0] = '\0';
    (void)inet_ntop(ip->family, ip->bytes, to, NET_IP_TEXT);
    return to;
}

size_t net_ip_size(const struct net_ip *ip)
{
    return ip->family == AF_INET ? 4 : 16;
}

bool net_ip_eq(const struct net_ip *a, const struct net_ip *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, net_ip_size(a)) == 0;
}

bool net_ip_in(const struct net_ip *ip, const struct net_ip *net, int prefix)
{
    size_t whole = (size_t)prefix / 8;
    unsigned rest = (unsigned)prefix % 8;
    unsigned mask = 0xffu & (0xff00u >> rest);

    if (ip->family != net->family || whole > net_ip_size(ip))
        return false;
    if (memcmp(ip->bytes, net->bytes, whole) != 0)
        return false;
    return rest == 0 || ((ip->bytes[whole] ^ net->bytes[whole]) & mask) == 0;
}

/* ---- requests ---- */

struct request {
    struct nlmsghdr head;
    union {
        struct ifaddrmsg addr;
        struct ifinfomsg link;
    } of;
    char room[128]; /* for attributes */
};

static void put_attr(struct request *q, int type, const void *p, size_t n)
{
    struct rtattr *attr = (void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

    attr->rta_type = (unsigned short)type;
    attr->rta_len = (unsigned short)RTA_LENGTH(n);
    memcpy(RTA_DATA(attr), p, n);
    q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + (uint32_t)RTA_SPACE(n);
}

static struct request request_of(int type, int flags, size_t body)
{
    struct request q;

    memset(&q, 0, sizeof q);
    q.head.nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
    q.head.nlmsg_type = (uint16_t)type;
    q.head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    return q;
}

static struct request address_request(int type, int flags, const struct net_addr *a)
{
    struct request q = request_of(type, flags | NLM_F_ACK, sizeof q.of.addr);

    q.of.addr.ifa_family = (uint8_t)a->ip.family;
    q.of.addr.ifa_prefixlen = (uint8_t)a->prefix;
    q.of.addr.ifa_index = a->ifindex;
    put_attr(&q, IFA_LOCAL, a->ip.bytes, net_ip_size(&a->ip));
    put_attr(&q, IFA_ADDRESS, a->ip.bytes, net_ip_size(&a->ip));
    if (a->ip.family == AF_INET && a->label[0] != '\0')
        put_attr(&q, IFA_LABEL, a->label, strlen(a->label) + 1);
    return q;
}

static int send_request(int fd, const struct request *q)
{
    ssize_t n;

    do
        n = send(fd, q, q->head.nlmsg_len, 0);
    while (n == -1 && errno == EINTR);
    return n == -1 ? errno : 0;
}

/* The kernel's verdict on the request just sent: 0 or an errno. */
static int read_verdict(int fd)
{
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } in;
    struct nlmsgerr verdict;
    ssize_t n;

    do
        n = recv(fd, &in, sizeof in, MSG_DONTWAIT);
    while (n == -1 && errno == EINTR);
    if (n == -1)
        return errno;
    if (!NLMSG_OK(&in.head, (size_t)n) || in.head.nlmsg_type != NLMSG_ERROR ||
        in.head.nlmsg_len < NLMSG_LENGTH(sizeof verdict))
        return EPROTO;
    memcpy(&verdict, NLMSG_DATA(&in.head), sizeof verdict);
    return -verdict.error;
}

static int ask(int fd, const struct request *q)
{
    int code = send_request(fd, q);

    return code != 0 ? code : read_verdict(fd);
}

static int open_netlink(unsigned groups, int flags, struct err *err)
{
    struct sockaddr_nl addr = {.nl_family = AF_NETLINK, .nl_groups = groups};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);

    if (fd == -1 || bind(fd, (struct sockaddr *)&addr, sizeof addr) == -1) {
        err_set_errno(err, errno, "could not talk to the kernel about network addresses");
        if (fd != -1)
            close(fd);
        return -1;
    }
    return fd;
}

int ifaddr_open(struct err *err)
{
    return open_netlink(0, 0, err);
}

int ifaddr_set(int fd, const struct net_addr *a, uint32_t valid_s, struct err *err)
{
    struct request q = address_request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, a);
    struct ifa_cacheinfo life = {.ifa_valid = valid_s, .ifa_prefered = valid_s};
    uint32_t flags = IFA_F_NODAD;
    char text[NET_IP_TEXT];
    int code;

    /* Connections from here would break when the address goes: IPv6 does not choose one whose
     * preferred time is over; IPv4 chooses the first of a network, which this one is not. */
    if (a->ip.family == AF_INET6) {
        life.ifa_prefered = 0;
        put_attr(&q, IFA_FLAGS, &flags, sizeof flags);
    }
    put_attr(&q, IFA_CACHEINFO, &life, sizeof life);
    code = ask(fd, &q);
    if (code != 0)
        err_set_errno(
            err, code, "could not set the address %s/%d", net_ip_text(&a->ip, text), a->prefix);
    return code;
}

int ifaddr_remove(int fd, const struct net_addr *a, struct err *err)
{
    struct request q = address_request(RTM_DELADDR, 0, a);
    char text[NET_IP_TEXT];
    int code = ask(fd, &q);

    if (code != 0)
        err_set_errno(
            err, code, "could not remove the address %s/%d", net_ip_text(&a->ip, text), a->prefix);
    return code;
}

/* ---- lists ---- */

/* What a list is made of: returns false to end it. */
typedef bool take_fn(const struct nlmsghdr *head, void *to);

/* Goes over one datagram: 1 when the list is over, 0 when more follows, -1 after an error (errno).
 */
static int take_datagram(char *bytes, size_t n, take_fn *take, void *to)
{
    const struct nlmsghdr *head = (const void *)bytes;

    for (; NLMSG_OK(head, n); head = NLMSG_NEXT(head, n)) {
        if (head->nlmsg_type == NLMSG_DONE)
            return 1;
        if (head->nlmsg_type == NLMSG_ERROR) {
            errno = EPROTO;
            return -1;
        }
        if (!take(head, to))
            return 1;
    }
    return 0;
}

/* A list goes over a socket of its own: what is left of one that was ended early, or was cut, must
 * not be taken for the answer to another question. */
static int read_list(struct request *q, take_fn *take, void *to, struct err *err)
{
    int fd = open_netlink(0, 0, err);
    char *bytes;
    ssize_t n;
    int state = 0;

    if (fd == -1)
        return -1;
    q->head.nlmsg_flags |= NLM_F_DUMP;
    bytes = mem_alloc(ANSWER_BYTES);
    errno = send_request(fd, q);
    if (errno != 0)
        state = -1;
    while (state == 0) {
        n = recv(fd, bytes, ANSWER_BYTES, 0);
        if (n > 0)
            state = take_datagram(bytes, (size_t)n, take, to);
        else if (n == 0 || errno != EINTR)
            state = -1;
    }
    if (state == -1)
        err_set_errno(err, errno, "could not list network interfaces");
    mem_free(bytes);
    close(fd);
    return state == -1 ? -1 : 0;
}

struct address_list {
    struct net_addr *to;
    int n;
    int max;
};

static void take_address_attr(struct net_addr *a, const struct rtattr *attr, bool *is_local)
{
    size_t n = RTA_PAYLOAD(attr);
    uint32_t flags;

    /* Of a line between two machines IFA_ADDRESS is the other end; IFA_LOCAL is always ours. */
    if ((attr->rta_type == IFA_LOCAL || (attr->rta_type == IFA_ADDRESS && !*is_local)) &&
        n == net_ip_size(&a->ip)) {
        memcpy(a->ip.bytes, RTA_DATA(attr), n);
        *is_local = attr->rta_type == IFA_LOCAL || *is_local;
    } else if (attr->rta_type == IFA_LABEL && n <= sizeof a->label) {
        memcpy(a->label, RTA_DATA(attr), n);
        a->label[sizeof a->label - 1] = '\0';
    } else if (attr->rta_type == IFA_FLAGS && n == sizeof flags) {
        memcpy(&flags, RTA_DATA(attr), sizeof flags);
        a->is_lasting = (flags & IFA_F_PERMANENT) != 0;
    }
}

static bool take_address(const struct nlmsghdr *head, void *to)
{
    struct address_list *list = to;
    const struct ifaddrmsg *msg = NLMSG_DATA(head);
    const struct rtattr *attr = IFA_RTA(msg);
    size_t left;
    bool is_local = false;
    struct net_addr *a;

    if (head->nlmsg_type != RTM_NEWADDR || head->nlmsg_len < NLMSG_LENGTH(sizeof *msg) ||
        (msg->ifa_family != AF_INET && msg->ifa_family != AF_INET6))
        return true;
    if (list->n == list->max)
        return false;
    a = &list->to[list->n++];
    memset(a, 0, sizeof *a);
    a->ip.family = msg->ifa_family;
    a->prefix = msg->ifa_prefixlen;
    a->ifindex = msg->ifa_index;
    left = IFA_PAYLOAD(head);
    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
        take_address_attr(a, attr, &is_local);
    return true;
}

int ifaddr_list(struct net_addr *to, int max, struct err *err)
{
    struct request q = request_of(RTM_GETADDR, 0, sizeof q.of.addr);
    struct address_list list = {to, 0, max};

    return read_list(&q, take_address, &list, err) == -1 ? -1 : list.n;
}

struct link_list {
    struct iflink *to;
    int n;
    int max;
};

static bool take_link(const struct nlmsghdr *head, void *to)
{
    struct link_list *list = to;
    const struct ifinfomsg *msg = NLMSG_DATA(head);
    const struct rtattr *attr = IFLA_RTA(msg);
    size_t left;
    struct iflink *l;

    if (head->nlmsg_type != RTM_NEWLINK || head->nlmsg_len < NLMSG_LENGTH(sizeof *msg))
        return true;
    if (list->n == list->max)
        return false;
    l = &list->to[list->n++];
    memset(l, 0, sizeof *l);
    l->ifindex = (unsigned)msg->ifi_index;
    l->is_up = (msg->ifi_flags & IFF_UP) != 0 && (msg->ifi_flags & IFF_RUNNING) != 0;
    l->is_loopback = (msg->ifi_flags & IFF_LOOPBACK) != 0;
    left = IFLA_PAYLOAD(head);
    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
        if (attr->rta_type == IFLA_IFNAME && RTA_PAYLOAD(attr) <= sizeof l->name)
            memcpy(l->name, RTA_DATA(attr), RTA_PAYLOAD(attr));
        if (attr->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(attr) == sizeof l->mac) {
            memcpy(l->mac, RTA_DATA(attr), sizeof l->mac);
            l->has_ethernet = msg->ifi_type == ARPHRD_ETHER && (msg->ifi_flags & IFF_NOARP) == 0;
        }
    }
    l->name[sizeof l->name - 1] = '\0';
    return true;
}

int iflink_list(struct iflink *to, int max, struct err *err)
{
    struct request q = request_of(RTM_GETLINK, 0, sizeof q.of.link);
    struct link_list list = {to, 0, max};

    return read_list(&q, take_link, &list, err) == -1 ? -1 : list.n;
}

bool iflink_of(unsigned ifindex, struct iflink *to)
{
    struct iflink all[IFLINK_MAX];
    struct err err = {0};
    int n = iflink_list(all, IFLINK_MAX, &err);
    int i;

    for (i = 0; i < n; i++) {
        if (all[i].ifindex == ifindex) {
            *to = all[i];
            return true;
        }
    }
    return false;
}

/* ---- changes ---- */

int ifaddr_watch(struct err *err)
{
    return open_netlink(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR, SOCK_NONBLOCK, err);
}

/* Each renewal of a lifetime is told to everybody, us included: no news. */
bool ifaddr_watch_read(int fd)
{
    char *bytes = mem_alloc(ANSWER_BYTES);
    const struct nlmsghdr *head;
    bool is_news = false;
    size_t left;
    ssize_t n;

    for (;;) {
        n = recv(fd, bytes, ANSWER_BYTES, MSG_DONTWAIT);
        if (n <= 0 && errno == EINTR)
            continue;
        is_news = is_news || (n == -1 && errno == ENOBUFS);
        if (n <= 0)
            break;
        head = (const void *)bytes;
        for (left = (size_t)n; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left))
            is_news = is_news || head->nlmsg_type != RTM_NEWADDR;
    }
    mem_free(bytes);
    return is_news;
}
